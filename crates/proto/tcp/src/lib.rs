//! TCP as a pure state machine, whose handshake segments may carry data.
//!
//! ```text
//!   IP packets, now ──▶ Endpoint ──▶ IP packets, events, next timeout
//!                          ▲
//!        connect, listen, read, write, answer, shutdown
//! ```
//!
//! No sockets, no clock, no randomness but the seed. RFC 9293 with RFC 7323 (window scale,
//! timestamps, PAWS), RFC 2018 and 2883 (SACK), RFC 8985 (RACK-TLP), RFC 9438 (CUBIC), RFC 5961
//! (challenge ACKs), RFC 6528 (sequence numbers), RFC 7413 (data on the SYN, cookies, refusals, black
//! holes), RFC 4987 (SYN cookies), RFC 6191 and 1337 (TIME-WAIT) and RFC 5927 (ICMP errors).
//!
//! # Data on the handshake
//!
//! The client's first bytes may ride in its SYN ([`ConnectOptions::syn_data`]). A listener that admits
//! them ([`ListenOptions::admit`]) has a connection to [accept](Endpoint::accept) at once; the SYN-ACK
//! waits for [`Endpoint::answer`], carries what was written, and the rest follows behind it in the
//! initial window. The bytes are those of the stream: a peer or path that knows nothing of it takes
//! the SYN alone, and they are sent again or withdrawn ([`IfRefused`]).
//!
//! # Bounds
//!
//! Until a client's address is validated it is sent at most three times the bytes that came from it
//! (RFC 9000 §8.1). Half-open connections are bounded by [`Config::max_half_open_with_data`] and
//! [`Config::max_half_open_plain`]; one takes [`HALF_OPEN_BYTES`] and the data of its SYN and its
//! answer. Past the first, SYNs with data are answered as ordinary ones; past the second, SYN cookies
//! keep no state. What a RST ends keeps its place for [`Config::reset_counted`], and of addresses that
//! are not validated no more SYNs with data are taken in a second than [`Config::unvalidated_rate`].
//!
//! A window begins with [`Config::receive_initial`] and grows with what the application reads. What
//! comes beyond a gap takes its real size. All connections together hold
//! [`Config::receive_memory`], and each twice its first window beside.
//!
//! A connection whose application is gone ends within [`Config::orphan_wait`] and the time that its
//! data are given; those with data are [`Config::max_orphans`] at most.
//!
//! # Choices
//!
//! - A hard ICMP error ends an attempt to open; later ones are kept and told ([`Info::icmp_error`]).
//! - Release with unread bytes is a RST (RFC 9293 §3.6.1, SHLD-3).
//! - No segment is larger than half of the largest window that the peer has told.
//! - Fast Open leaves a port alone that has refused it, for [`Config::black_hole_memory`]
//!   (RFC 7413 §4.1.3.1). Data on a SYN without cookies are sent all the same.
//! - SYNs that cross open a connection; data on the peer's are not taken and come again.
//!
//! # Gaps
//!
//! Not done: ECN and AccECN, MPTCP, urgent data (the pointer is ignored, RFC 6093), TCP-AO, timeouts
//! that ICMP errors keep from backing off (RFC 6069), the peer's MSS remembered beside its cookie
//! (RFC 7413 §4.1.3).
//!
//! # Tests
//!
//! `tests/clauses` holds an endpoint against the standards clause by clause; `tests/scripts` are
//! conversations in packetdrill's notation, which `tests/packetdrill` plays in virtual time. Other
//! scripts are tried by
//! `WIRETAX_PACKETDRILL=DIR cargo test -p tcp --test it scripts_of_folders -- --ignored --nocapture`.
//! packetdrill itself takes the endpoint as a shared object: `cargo build -p tcpio --example packetdrill`.
#![forbid(unsafe_code)]

mod config;
mod congestion;
mod connection;
mod destinations;
mod endpoint;
mod event;
pub mod fuzz;
mod icmp;
mod info;
mod receive_buffer;
mod recovery;
mod rtt;
mod secrets;
mod segment;
mod send_buffer;
mod time_wait;

pub use config::{Config, ConnectOptions, IfRefused, KeepAlive, ListenOptions, SynWithData};
pub use congestion::Congestion;
pub use connection::HALF_OPEN_BYTES;
pub use endpoint::Endpoint;
pub use event::{
    CloseReason, ConnectError, ConnectionId, Event, EventKind, Ignored, ListenError, ListenerId,
    StreamError,
};
pub use info::{
    Checksum, Counters, Hold, IcmpError, IcmpKind, Info, PathMtu, State, SynData, Transmit,
};
