//! Captured frames from files, pipes and interfaces, in order of time.
//!
//! | to read | use |
//! |---|---|
//! | one capture file, or a pipe | [`Source`] |
//! | several of them, merged by time | [`Merge`] |
//! | interfaces, as frames pass | [`Live`], then [`drop_privileges`] |
//! | bytes that are already in memory | [`format::Reader`] |
//!
//! Files are recognised by content, not by name: pcap, pcapng, and both in gzip or zstd. Frames are
//! handed out in place, in the buffer that the file was read into or in the kernel's ring: nothing
//! is copied or allocated per frame.
//!
//! # What times mean
//! They are those of the capture, as nanoseconds since 1970. A resolution finer than a nanosecond,
//! or one of powers of two, is cut to the nanosecond before. A pcapng Simple Packet Block has no
//! time; it takes that of the frame before it. pcap's `thiszone` is zero wherever it was ever
//! written, and is not looked at.
//!
//! # Bounds
//! A file takes its buffer of 512 KiB, and up to 16 MiB more if it holds TLS secrets of that
//! length; four buffers more, and those that others look at, where several threads read it
//! ([`Merge::read_ahead`]). gzip takes 32 KiB beside it, zstd its window of at most 128 MiB. A merge
//! holds open only files whose times overlap.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod ahead;
mod error;
mod filter;
pub mod format;
mod frame;
mod input;
mod link_types;
mod live;
mod merge;
mod source;
mod window;

pub use ahead::ReadAhead;
pub use error::Error;
pub use filter::Filter;
pub use frame::{Batch, Cut, Doubts, Event, Frame, Frames, Progress};
pub use link_types::link_type_name;
pub use live::{Live, LiveFrames, LiveOptions, LiveStatistics};
pub use merge::Merge;
pub use packet::Keeper;
pub use packet::privileges::{Dropped, Identity, drop_privileges, heir};
pub use source::{STDIN, Source};
