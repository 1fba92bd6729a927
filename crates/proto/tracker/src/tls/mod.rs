//! The TLS handshake, from the bytes of both directions in order.

mod decrypt;
mod fingerprint;
mod handshake;
mod hello;
mod messages;
mod open;
mod outcome;
mod records;
mod rule13;
mod ssl2;

pub(crate) use decrypt::Start;
pub use fingerprint::{ja3, ja3_text, ja4};
pub(crate) use handshake::Handshake;
pub(crate) use hello::{HelloWork, ServerSaid, protocol, read_client_hello, read_server_hello};
pub(crate) use messages::{MessageEvent, MessageReader};
pub(crate) use open::{Opened, Opener12, Opener13};
pub(crate) use records::{RecordEvent, RecordReader};
pub(crate) use rule13::Rule13;

use units::Time;

use crate::record::Traffic;
use crate::side::Pair;

/// Where and when bytes were handed on: taken from the frame that completed the stream up to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    /// The frame's time.
    pub(crate) at: Time,
    /// How much of the peer's stream the frame acknowledged.
    pub(crate) acked: u64,
    /// The client's and the server's frames so far, with this one.
    pub(crate) traffic: Pair<Traffic>,
}

/// An encrypted record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encrypted {
    /// The frame with its first byte.
    pub(crate) begin: Mark,
    /// Time of its last byte.
    pub(crate) end: Time,
    /// Where its header begins in its stream.
    pub(crate) begin_offset: u64,
    /// Where it ends in its stream.
    pub(crate) end_offset: u64,
    /// Bytes after its header.
    pub(crate) len: usize,
    /// Bytes of TLS that the server had sent when it ended.
    pub(crate) server_bytes: u64,
}
