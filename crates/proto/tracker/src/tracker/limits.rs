//! What bounds a tracker, and when it gives out.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What bounds a [`crate::Tracker`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections followed at once; beyond it the one silent for longest is dropped and counted.
    /// At least 1.
    pub connections: usize,
    /// Bytes of each direction of a TCP connection that are put in order.
    pub stream_bytes: u64,
    /// Bytes held in all connections together whose records are not out: segments and CRYPTO frames
    /// that came out of order with what keeping them takes, hellos that are not whole, names and
    /// lists of hellos. A connection that would exceed it loses what is not whole; where that is not
    /// enough, the ones silent for longest are dropped and counted.
    pub held_bytes: usize,
    /// Silence after which an open connection is given out.
    pub idle: Duration,
    /// Silence after which a closed connection is given out: late segments count until then.
    pub linger: Duration,
    /// Keys the hash table, so that who sends packets cannot make them collide.
    pub seed: u64,
    /// When records are given out.
    pub hand_out: HandOut,
}

/// When a connection's record is given out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandOut {
    /// When it has ended.
    #[default]
    AtEnd,
    /// When its handshake is over and both sides have sent application data, or it is clear that
    /// nothing more will be told: [`crate::Connection::goes_on`] says that its end follows as an
    /// [`crate::Ending`]. Little memory is held until then.
    AfterHandshake,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 100_000,
            stream_bytes: 64 * 1024,
            held_bytes: 256 * 1024 * 1024,
            idle: Duration::from_secs(300),
            linger: Duration::from_secs(5),
            seed: 0,
            hand_out: HandOut::AtEnd,
        }
    }
}
