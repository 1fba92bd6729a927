//! The `virtio_net_hdr` that precedes frames in offload mode (virtio 1.2 §5.1.6).
//!
//! It says which checksum is unfinished and into which segments the frame is to be cut. A link
//! carries it along unread: what one kernel put in, another takes out.

/// Length of the header in bytes, without merged-buffer fields.
pub const HEADER_LEN: usize = 10;
