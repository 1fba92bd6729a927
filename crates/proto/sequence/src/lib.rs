//! Sequence charts of flow control, from a capture: each frame of SPDY/3, SPDY/3.1 and HTTP/2 over TCP, in
//! clear or in TLS whose secrets are known, with the windows that its sender has left after it.
//!
//! [`Reader`] takes captured frames in order of time and TLS secrets in the format of SSLKEYLOGFILE, and
//! gives a [`Chart`]: per connection its [`Event`]s, what can be read of the [`Windows`] of either
//! direction, and what could not be read. [`fold()`] makes one line of a run of like DATA frames,
//! [`text`] writes both for a terminal.
//!
//! # What times and windows mean
//! A frame's time is that of the captured packet with which its last byte could be read. Windows are
//! those at the capture point: what went by counts as arrived. Captured at the sender they are the
//! sender's own; captured at the receiver a sender may still have heard of fewer, so that its true
//! window is that or smaller.
//!
//! A window begins as its protocol says (RFC 9113 §6.9.2: 65,535 bytes; SPDY draft 3.1 §2.6.8: 64 KiB, the
//! session's too, and in SPDY/3 the session has none). SETTINGS_INITIAL_WINDOW_SIZE changes those of
//! all streams, open ones too (§6.9.2), and never the connection's. A WINDOW_UPDATE that gives back
//! more than was sent since the last one makes the window larger; any other says what was consumed.
//!
//! # What is not guessed
//! Without its secrets a connection is named among those that could not be read; where bytes are
//! missing a direction ends there, and says so. Without ALPN the client's first bytes say which
//! protocol it is; SPDY is then taken for SPDY/3, whose session has no window. HTTP/3 is not read.
//!
//! In clear, a server may speak before its client (RFC 9113 §3.4), and HTTP/1.1 may be upgraded (`h2c`, RFC
//! 7540 §3.2): the client's HTTP2-Settings then stand as its first SETTINGS.
//!
//! # Bounds
//! [`Limits`], and 1024 streams a direction whose windows are known at once. Of header blocks nothing is
//! kept.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod chart;
mod connection;
mod event;
mod fold;
mod frames;
pub mod fuzz;
mod opening;
mod protocol;
mod reader;
pub mod text;
mod windows;

pub use chart::{Chart, Connection, Gap, Unread};
pub use event::{Event, Kind};
pub use fold::fold;
pub use protocol::Protocol;
pub use reader::{Limits, Reader};
pub use windows::{Least, Updates, Windows};
