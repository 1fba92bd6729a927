//! What a capture's connections come to.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use units::Time;

use crate::event::Event;
use crate::protocol::Protocol;
use crate::windows::Windows;

/// What was read of a capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The connections of SPDY and HTTP/2, in the order in which they began.
    pub connections: Vec<Connection>,
    /// Connections of which nothing could be read: the first 100.
    pub unread: Vec<Unread>,
    /// How many further ones there were, which `unread` does not list.
    pub more_unread: u64,
    /// Connections that speak something else, or nothing.
    pub others: u64,
    /// Connections beyond the limits.
    pub left_out: u64,
    /// Segments of connections that had begun before the capture, or came after they were over.
    pub stray_segments: u64,
    /// Datagrams of UDP: HTTP/3 is not read.
    pub datagrams: u64,
    /// Frames in the capture.
    pub frames: u64,
}

/// A connection of SPDY or HTTP/2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Who opened it.
    pub client: SocketAddr,
    /// The other one.
    pub server: SocketAddr,
    /// The name that the client asked for in TLS.
    pub server_name: Option<String>,
    /// The version of TLS; `None` in clear.
    pub tls: Option<String>,
    /// What it speaks.
    pub protocol: Protocol,
    /// When it began: the time of its SYN.
    #[serde(rename = "begun_ns")]
    pub begun: Time,
    /// Its frames, in the order in which they could be read.
    pub events: Vec<Event>,
    /// Frames beyond the limit: they count for windows, and are not among the events.
    pub left_out: u64,
    /// The windows of what the client sends: the server gives them.
    pub client_sends: Windows,
    /// The windows of what the server sends: the client gives them.
    pub server_sends: Windows,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// A direction ends here for us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The time from which nothing could be read.
    #[serde(rename = "at_ns")]
    pub at: Time,
    /// Whether it is the client's.
    pub from_client: bool,
    /// The reason, in a few words.
    pub why: String,
}

/// A connection of which nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Who opened it.
    pub client: SocketAddr,
    /// The other one.
    pub server: SocketAddr,
    /// The name that the client asked for.
    pub server_name: Option<String>,
    /// The reason, in a few words.
    pub why: String,
}

impl Chart {
    /// Its connections with their numbers, from 1 in the order in which they began: those with most data
    /// first.
    #[must_use]
    pub fn by_data(&self) -> Vec<(usize, &Connection)> {
        let mut numbered: Vec<_> = self.connections.iter().enumerate().collect();
        numbered.sort_by_key(|(_, connection)| std::cmp::Reverse(connection.data_bytes()));
        numbered.into_iter().map(|(at, connection)| (at.saturating_add(1), connection)).collect()
    }
}

impl Connection {
    /// Bytes of DATA, both ways.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.client_sends.data_bytes.saturating_add(self.server_sends.data_bytes)
    }
}
