//! What became of a connection, and when.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Time;

use crate::Embedding;

/// How the TLS handshake was carried in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carried {
    /// Not known yet: the SYN with early data is under way.
    Pending,
    /// TCP, then TLS, as the client wanted it.
    Sequential,
    /// In TCP's handshake.
    Embedded,
    /// TCP, then TLS: the server, or a box on the path, did not take the SYN's data.
    Refused,
    /// TCP, then TLS: the path drops SYNs that carry data, as far as is known.
    BlackHole,
    /// TCP, then TLS, on a second connection: the server took an envelope for stream data.
    Reconnected,
    /// TCP, then TLS: the server is remembered to take envelopes for stream data.
    Remembered,
}

/// When each step of a connection happened, by CLOCK_MONOTONIC. A step that did not happen is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// A client: just before the SYN. A server: the connection was taken from TCP.
    pub started: Option<Time>,
    /// A client: the SYN+ACK was seen.
    pub connected: Option<Time>,
    /// A client: the ClientHello was given to TCP; with an embedding the SYN has it.
    pub hello_sent: Option<Time>,
    /// Application data may be sent: the SSLmTCP paper's handshake time ends. With early data, just
    /// before the SYN.
    pub ready: Option<Time>,
    /// The first application data were given to TCP, early data included.
    pub request_sent: Option<Time>,
    /// Early data were rejected and given to TCP again.
    pub request_resent: Option<Time>,
    /// The first byte of application data was read and decrypted.
    pub first_byte: Option<Time>,
    /// Both Finished are done on this side.
    pub handshake_complete: Option<Time>,
}

impl Timeline {
    /// From `started` to `step`; `None` if either did not happen.
    #[must_use]
    pub fn since_start(&self, step: Option<Time>) -> Option<Duration> {
        step?.checked_since(self.started?)
    }
}

/// Stamps a step once; the first time stays.
pub(crate) fn stamp(step: &mut Option<Time>, time: Time) {
    step.get_or_insert(time);
}

/// What is known of a connection so far.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the client asked for; on a server what came.
    pub embedding_asked: Embedding,
    /// How the handshake was carried.
    pub carried: Carried,
    /// What TLS negotiated.
    pub facts: tls::Facts,
    /// When each step happened.
    pub timeline: Timeline,
    /// What TCP knows; `None` once the connection is gone.
    pub tcp: Option<tcp::Info>,
    /// CPU time inside the TLS library until the handshake was over, by the thread's CPU clock.
    pub crypto: Duration,
}
