//! Limits that kept TCP connections from filling the path of `wiretax lab`: facts counted while the program runs, and
//! the verdict from them.

mod verdict;
mod watch;
mod words;

pub use self::verdict::{Held, held};
pub use self::watch::Watch;

use std::collections::BTreeMap;
use std::time::Duration;

use conn::TcpInfo;

/// A connection, as the kernel of its sender counted it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Flow {
    /// The last that was seen of it.
    pub info: TcpInfo,
    /// Bytes of the sender's buffer, the most that was seen.
    pub send_buffer: u32,
    /// Bytes of the receiver's buffer, the most that was seen.
    pub receive_buffer: u32,
    /// Bytes of the largest window that the receiver announced.
    pub window: u32,
    /// Bytes of the largest congestion window.
    pub congestion_window: u64,
}

/// Connections that sent one way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Way {
    /// Time in which at least one of them had data to send or under way.
    pub active: Duration,
    /// By the kernel's number of the socket.
    pub flows: BTreeMap<u64, Flow>,
    /// The most that the sender's kernel gives a send buffer (`tcp_wmem`), in bytes.
    pub most_send_buffer: Option<u64>,
    /// The most that the receiver's kernel gives a receive buffer (`tcp_rmem`), in bytes.
    pub most_receive_buffer: Option<u64>,
}

impl Way {
    /// The connection that delivered most.
    pub fn largest(&self) -> Option<&Flow> {
        self.flows.values().max_by_key(|flow| flow.info.bytes_acknowledged)
    }
}

/// Connections by the way of their data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// From the client to the server.
    pub up: Way,
    /// From the server to the client.
    pub down: Way,
}
