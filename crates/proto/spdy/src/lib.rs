//! SPDY/3 and SPDY/3.1 as a pure session, client and server: bytes in, bytes out, events out. No
//! sockets, no clock, no randomness. Sections are those of the SPDY Protocol, draft 3.1; draft 3, which
//! has no window of the session, is named where it differs. Frames are [`wire::spdy`]'s.
//!
//! ```text
//!   bytes ──▶ receive ─▶ Session ─▶ write_to ──▶ bytes
//!                          │  ▲
//!    poll_event, poll_change  open, push, reply, headers, write, consume, reset, ping, go_away
//! ```
//!
//! # One task that carries a session
//!
//! 1. What the transport gave goes to [`Session::receive`]; then [`Session::poll_event`] until it has no
//!    more. Frames are parsed as events are asked for, so that no more than one is held.
//! 2. Calls on streams follow from events and from the program.
//! 3. [`Session::write_to`] while [`Session::wants_write`] and the transport takes bytes. A frame of data
//!    is cut when it is written, so that what is queued later with a higher priority goes first.
//! 4. [`Session::poll_change`] until it has no more, if stalls or windows are of interest; the caller adds
//!    the time.
//! 5. The transport is closed when [`Session::is_over`].
//!
//! ```
//! use bytes::Bytes;
//! use spdy::{Config, Event, Headers, Priority, Role, Session, Version};
//! use units::Time;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Session::new(Role::Client, Version::V3_1, Config::default())?;
//! let mut server = Session::new(Role::Server, Version::V3_1, Config::default())?;
//! let get = Headers::from_pairs([
//!     (":method", "GET"), (":path", "/"), (":version", "HTTP/1.1"),
//!     (":host", "example.org"), (":scheme", "https"),
//! ])?;
//! client.open(&get, Priority::HIGHEST, true)?;
//! let mut bytes = Vec::new();
//! client.write_to(&mut bytes, usize::MAX);
//!
//! server.receive(Bytes::from(bytes));
//! while let Some(event) = server.poll_event(Time::ZERO) {
//!     if let Event::Opened { stream, .. } = event {
//!         let ok = Headers::from_pairs([(":status", "200"), (":version", "HTTP/1.1")])?;
//!         server.reply(stream, &ok, false)?;
//!         server.write(stream, &mut Bytes::from_static(b"hello"), true)?;
//!     }
//! }
//! let mut bytes = Vec::new();
//! server.write_to(&mut bytes, usize::MAX);
//! client.receive(Bytes::from(bytes));
//! let events: Vec<_> = std::iter::from_fn(|| client.poll_event(Time::ZERO)).collect();
//! assert!(matches!(&events[..], [Event::Settings { .. }, Event::Reply { .. }, Event::Data { .. }]));
//! # Ok(())
//! # }
//! ```
//!
//! # Bounds
//!
//! A stream queues [`Config::send_queue`] bytes ([`Session::writable`]); what is received and not
//! consumed is bounded by the windows, and streams by [`Config::max_peer_streams`], which counts those
//! whose data are not consumed. Header blocks are decompressed up to [`Config::max_header_block`], control
//! frames taken up to [`Config::max_control_frame`]. Frames that bring nothing are bounded by
//! [`FloodLimit`], answers that the peer does not read by [`Config::max_answers`].
//!
//! Not done: CREDENTIAL is passed over; whether headers of a pushed stream come twice (§3.3.2) and
//! whether a request has all its headers (§3.2.1: 400 Bad Request) is left to the program.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod changes;
mod compress;
mod config;
mod dictionary;
mod error;
mod event;
mod flood;
mod flow;
pub mod fuzz;
mod input;
mod queue;
mod scheduler;
mod session;
mod stream;

pub use config::{Config, FlowControl, Role, Version};
pub use dictionary::DICTIONARY;
pub use error::{CallError, SessionError};
pub use event::{Change, Counters, Event, ResetReason, Traffic, Window};
pub use flood::FloodLimit;
pub use session::Session;
pub use wire::spdy::{
    GoAwayStatus, Headers, Priority, RstStatus, Setting, SettingId, StreamId, values,
};
