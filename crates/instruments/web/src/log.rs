//! What a server saw of each connection and each stream.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conn::TcpInfo;
use serde::Serialize;
use units::Time;

use crate::{Protocol, TcpStall};

/// Most intervals kept of one stream; the rest is in its sum and its count.
const MAX_STALLS: usize = 64;
/// Most bytes kept of a path, and of an authority.
const MAX_PATH: usize = 256;

/// One connection as the server saw it, by CLOCK_MONOTONIC. Pushed at its end.
#[derive(Debug, Clone, Serialize)]
pub struct ConnectionRecord {
    /// Its number on this server, from 1.
    pub connection: u64,
    /// The client's address and port.
    pub peer: SocketAddr,
    /// The server's address and port.
    pub local: SocketAddr,
    /// What was negotiated; `None` if the handshake did not get so far.
    pub protocol: Option<Protocol>,
    /// What TLS says; `None` in clear, and if the handshake did not get so far.
    pub tls: Option<tls::Facts>,
    /// Whether an earlier session was resumed; `None` as `tls` is.
    pub resumed: Option<bool>,
    /// accept() returned, or quinn gave the first datagram.
    pub accepted: Time,
    /// The handshake of TLS or QUIC was over; over TCP `None` where early data came before its end.
    pub secured: Option<Time>,
    /// The connection's end on this side.
    pub closed: Time,
    /// Requests whose head was read.
    pub requests: u64,
    /// Bytes read from the transport, TLS included (TCP) or UDP payload (QUIC).
    pub bytes_received: u64,
    /// Bytes written to it.
    pub bytes_sent: u64,
    /// Sum of its streams' [`StreamRecord::stalled`]; streams that stall together count each.
    pub stalled: Duration,
    /// When its TCP stalled, or QUIC's congestion control held it back, in order of time: the first 4096 intervals.
    /// `None` without a [`Bottleneck`](crate::Bottleneck).
    pub tcp_stalls: Option<Vec<TcpStall>>,
    /// TCP_INFO at the end, while the socket was still open.
    pub tcp: Option<TcpInfo>,
    /// TCP_INFO in between, if the plan asks for it.
    pub samples: Vec<Sample<TcpInfo>>,
    /// What quinn says at the end.
    pub quic: Option<QuicRecord>,
    /// The same in between.
    pub quic_samples: Vec<Sample<QuicRecord>>,
    /// Why it ended, if not in good order.
    pub error: Option<String>,
}

/// A reading at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sample<T> {
    /// The time of it, by the clock of who saw it.
    pub at: Time,
    /// What was read.
    pub value: T,
}

/// quinn's counters of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuicRecord {
    /// Smoothed round-trip time, acknowledgement delay taken off.
    pub rtt: Duration,
    /// Smallest round-trip time seen.
    pub min_rtt: Duration,
    /// Congestion window, bytes.
    pub congestion_window: u64,
    /// Times that quinn saw congestion: by loss, or by ECN's marks.
    pub congestion_events: u64,
    /// QUIC packets sent, several of which may be in one datagram.
    pub packets_sent: u64,
    /// Of them, packets taken for lost.
    pub packets_lost: u64,
    /// DATA_BLOCKED frames sent: the peer's window for the connection was shut (RFC 9000 §19.12).
    pub blocked: u64,
    /// STREAM_DATA_BLOCKED frames sent: its window for a stream was shut (RFC 9000 §19.13).
    pub stream_blocked: u64,
    /// MAX_DATA frames received: the peer opened the connection's window.
    pub updates: u64,
    /// MAX_STREAM_DATA frames received: the peer opened a stream's window.
    pub stream_updates: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received.
    pub bytes_received: u64,
}

/// An interval in which a body had data to send, no window to send it in, and a transport that
/// would have taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stall {
    /// When it begins, by CLOCK_MONOTONIC.
    pub from: Time,
    /// When it ends, by CLOCK_MONOTONIC.
    pub to: Time,
}

/// The time that a body stalled on a flow-control window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stalled {
    /// The sum of all intervals.
    pub time: Duration,
    /// How many intervals there were.
    pub count: u32,
    /// The first 64 of them.
    pub intervals: Vec<Stall>,
}

impl Stalled {
    pub(crate) fn note(&mut self, stall: Stall) {
        self.time += stall.to.saturating_since(stall.from);
        self.count += 1;
        if self.intervals.len() < MAX_STALLS {
            self.intervals.push(stall);
        }
    }
}

/// How a stream ended on the server's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The whole response was given to the transport.
    Complete,
    /// The client reset it, or the server did; with the code's name.
    Reset(String),
    /// The connection ended first.
    Broken,
}

/// One request and its response as the server saw them, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Serialize)]
pub struct StreamRecord {
    /// The connection's number.
    pub connection: u64,
    /// The stream's number in its protocol; the request's, counted from 0, with HTTP/1.1.
    pub stream: u64,
    /// The host that was asked, with the port if one was said, cut to 256 bytes.
    pub authority: String,
    /// The path, cut to 256 bytes.
    pub path: String,
    /// Whether it was pushed: there was no request then.
    pub pushed: bool,
    /// Its urgency (RFC 9218), 0 to 7.
    pub urgency: u8,
    /// The response's status; 0 if there was none.
    pub status: u16,
    /// Bytes of the response's body.
    pub length: u64,
    /// Of them, bytes given to the library.
    pub sent: u64,
    /// Bytes of the request's body that were read.
    pub received: u64,
    /// The request's head was read; of what is pushed, it was promised.
    pub requested: Time,
    /// The request's body was read to its end.
    pub uploaded: Option<Time>,
    /// The response's head was given to the library.
    pub answered: Option<Time>,
    /// The first piece of the body was given to it.
    pub first_data: Option<Time>,
    /// The last piece was.
    pub finished: Option<Time>,
    /// Time stalled on a flow-control window. HTTP/1.1 has none.
    pub stalled: Stalled,
    /// Time in which the transport took nothing, with data of this stream to send. HTTP/2, SPDY: the socket
    /// was full. HTTP/3: quinn's send buffer was. HTTP/1.1: zero, since hyper does not say; TCP_INFO does.
    pub transport_blocked: Duration,
    /// How it ended.
    pub finish: Finish,
}

impl StreamRecord {
    /// `asked`: authority and path.
    pub(crate) fn new(
        connection: u64,
        stream: u64,
        asked: (&str, &str),
        urgency: u8,
        now: Time,
    ) -> Self {
        StreamRecord {
            connection,
            stream,
            authority: cut(asked.0),
            path: cut(asked.1),
            pushed: false,
            urgency,
            status: 0,
            length: 0,
            sent: 0,
            received: 0,
            requested: now,
            uploaded: None,
            answered: None,
            first_data: None,
            finished: None,
            stalled: Stalled::default(),
            transport_blocked: Duration::ZERO,
            finish: Finish::Broken,
        }
    }
}

/// So much of a text as a record keeps.
fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_PATH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// Records of finished streams and connections, until they are taken. Past its capacity new ones are
/// counted and dropped. A clone is another handle to the same log; any thread may hold one.
#[derive(Debug, Clone)]
pub struct Log {
    state: Arc<Mutex<State>>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    streams: VecDeque<StreamRecord>,
    connections: VecDeque<ConnectionRecord>,
    dropped: u64,
}

impl Log {
    pub(crate) fn new(capacity: usize) -> Self {
        Log { state: Arc::default(), capacity }
    }

    /// Whether it keeps anything.
    pub(crate) fn is_on(&self) -> bool {
        self.capacity > 0
    }

    /// Takes the records of finished streams, oldest first.
    #[must_use]
    pub fn take_streams(&self) -> Vec<StreamRecord> {
        self.lock().streams.drain(..).collect()
    }

    /// Takes the records of finished connections, oldest first.
    #[must_use]
    pub fn take_connections(&self) -> Vec<ConnectionRecord> {
        self.lock().connections.drain(..).collect()
    }

    /// Records dropped because the log was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    pub(crate) fn push_stream(&self, record: StreamRecord) {
        let mut state = self.lock();
        if state.streams.len() < self.capacity {
            state.streams.push_back(record);
        } else if self.is_on() {
            state.dropped += 1;
        }
    }

    pub(crate) fn push_connection(&self, record: ConnectionRecord) {
        let mut state = self.lock();
        if state.connections.len() < self.capacity {
            state.connections.push_back(record);
        } else if self.is_on() {
            state.dropped += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_counts_what_it_drops() {
        let log = Log::new(2);
        for stream in 0..5 {
            log.push_stream(StreamRecord::new(1, stream, ("a.test", "/"), 3, Time::ZERO));
        }
        assert_eq!(log.dropped(), 3);
        let kept: Vec<u64> = log.take_streams().iter().map(|record| record.stream).collect();
        assert_eq!(kept, [0, 1]);
        assert!(log.take_streams().is_empty());
    }

    #[test]
    fn paths_and_intervals_are_bounded() {
        let long = "/é".repeat(1000);
        let record = StreamRecord::new(1, 1, (&long, &long), 3, Time::ZERO);
        assert!(record.path.len() <= MAX_PATH && record.authority == record.path);
        let mut stalled = Stalled::default();
        for at in 0..1000 {
            stalled.note(Stall { from: Time::from_millis(at), to: Time::from_millis(at + 1) });
        }
        assert_eq!((stalled.intervals.len(), stalled.count), (MAX_STALLS, 1000));
        assert_eq!(stalled.time, Duration::from_secs(1));
    }
}
