//! What the two sides of TCP connections said, byte for byte and in order: in clear, or out of TLS where
//! the secrets are known.
//!
//! [`Tracker`](crate::Tracker) stops reading when a handshake is over; [`Streams`] reads to the end. It
//! takes the same frames, puts each direction in order, opens the records of TLS 1.3 and of TLS 1.2's AEAD
//! suites, and hands out the application's bytes with the time of the frame with which they could be
//! read. What cannot be read is said ([`Unreadable`]) and ends its direction: nothing is guessed.
//!
//! A connection is followed from its SYN; one that was under way when the capture began is counted and
//! passed over, since its keys begin with its hellos. QUIC is not read.
//!
//! # Bounds
//! [`StreamLimits`]. A record that is not whole takes at most 18 KiB a direction, early data that waits for
//! the server's word 128 KiB a connection; both count for [`StreamLimits::held_bytes`].

mod flow;
mod session;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;
use units::Time;
use wire::tcp::{Flags, Segment};
use wire::tls::{CipherSuite, Version};

use self::flow::{Flow, Input};
use crate::KeyLogCounters;
use crate::decode::{Content, Decoded, LinkType, Passing, Transport, decode, decode_frame};
use crate::fragments::Fragments;
use crate::keylog::KeyLog;
use crate::record::{End, Traffic};
use crate::side::Sender;
use crate::table::{Key, Keyed};

/// What bounds [`Streams`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections followed at once; further ones are counted and passed over.
    pub connections: usize,
    /// Bytes held in all connections together: what came out of order, and what is not whole. A
    /// connection that would exceed it is given up.
    pub held_bytes: usize,
    /// Connections whose secrets are kept.
    pub secrets: usize,
    /// Keys the hash table, so that who sends packets cannot make them collide.
    pub seed: u64,
}

impl Default for StreamLimits {
    /// 4096 connections, 256 MiB, 65,536 connections' secrets.
    fn default() -> Self {
        StreamLimits { connections: 4096, held_bytes: 256 << 20, secrets: 1 << 16, seed: 0 }
    }
}

/// Why a direction, or both, cannot be read from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unreadable {
    /// The key log does not have its secrets.
    NoKeys,
    /// Its cipher suite, or its draft of TLS 1.3, is none that is opened here.
    Suite(CipherSuite),
    /// A record could not be opened: the secrets are another connection's, or bytes are wrong.
    Record,
    /// What stands where a TLS record should is none.
    NotTls,
    /// Bytes are missing from the capture.
    Missing,
    /// More came out of order than is held.
    NoRoom,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreadable::NoKeys => "there are no TLS secrets of it",
            Unreadable::Suite(suite) => return write!(f, "{suite} is not opened"),
            Unreadable::Record => "a TLS record could not be opened with its secrets",
            Unreadable::NotTls => "its bytes are no TLS records",
            Unreadable::Missing => "bytes of it are not in the capture",
            Unreadable::NoRoom => "more of it came out of order than is held",
        })
    }
}

/// Something about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEvent {
    /// Its number: connections count from 0 in the order in which they began.
    pub connection: u64,
    /// The time of the frame with which this could be told.
    pub at: Time,
    /// What there is to tell.
    pub fact: StreamFact,
}

/// What there is to tell of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamFact {
    /// The connection begins: its SYN was captured.
    Began {
        /// Who sent the SYN.
        client: SocketAddr,
        /// The other one.
        server: SocketAddr,
    },
    /// The hellos are through.
    Tls {
        /// The version negotiated.
        version: Version,
        /// The cipher suite negotiated.
        suite: CipherSuite,
        /// The name that the client asked for.
        server_name: Option<String>,
    },
    /// The application protocol that the server chose (RFC 7301); `None` if it chose none. Comes before
    /// any bytes of it.
    Alpn(Option<String>),
    /// Bytes of the application.
    Data {
        /// Whether the client sent them.
        from_client: bool,
        /// In the order of the stream, decrypted where it was TLS.
        bytes: Vec<u8>,
    },
    /// A direction is not read from here on.
    Unreadable {
        /// Whether it is the client's.
        from_client: bool,
        /// What makes it unreadable.
        why: Unreadable,
    },
    /// It is over, or the capture is.
    Ended(End),
}

/// What became of frames and connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Frames that were given to the reader.
    pub frames: u64,
    /// Connections that were followed, those that are over included.
    pub connections: u64,
    /// Segments of connections whose SYN is not in the capture, or that came when it was over.
    pub stray_segments: u64,
    /// Connections beyond [`StreamLimits::connections`].
    pub over_limit: u64,
    /// Datagrams of UDP: QUIC among them is not read.
    pub datagrams: u64,
}

/// Reads what the two sides of TCP connections said.
#[derive(Debug)]
pub struct Streams {
    limits: StreamLimits,
    key_log: KeyLog,
    flows: HashMap<Key, Flow, Keyed>,
    fragments: Fragments,
    counters: StreamCounters,
    held: usize,
    now: Time,
    ready: VecDeque<StreamEvent>,
}

impl Streams {
    /// Follows nothing yet.
    #[must_use]
    pub fn new(limits: StreamLimits) -> Self {
        let seed = limits.seed;
        Streams {
            key_log: KeyLog::new(limits.secrets).with_tls12(),
            flows: HashMap::with_hasher(Keyed::new(seed)),
            fragments: Fragments::new(seed),
            counters: StreamCounters::default(),
            held: 0,
            now: Time::ZERO,
            ready: VecDeque::new(),
            limits,
        }
    }

    /// Takes secrets, in the format of SSLKEYLOGFILE: before the frames that need them.
    pub fn add_keys(&mut self, lines: &[u8]) {
        self.key_log.read(lines);
    }

    /// What the lines of the secrets were.
    #[must_use]
    pub const fn key_log(&self) -> KeyLogCounters {
        self.key_log.counters()
    }

    /// What became of frames and connections so far.
    #[must_use]
    pub const fn counters(&self) -> &StreamCounters {
        &self.counters
    }

    /// Bytes that count for [`StreamLimits::held_bytes`].
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held
    }

    /// Takes a frame captured at `at`. What can be told then waits for [`Streams::poll_event`].
    pub fn handle_packet(&mut self, at: Time, link_type: LinkType, bytes: &[u8]) {
        self.counters.frames = self.counters.frames.saturating_add(1);
        self.now = self.now.max(at);
        let mut passing = Passing::default();
        if let Some(content) = decode_frame(link_type, bytes, &mut passing) {
            self.content(at, &content, passing);
        }
    }

    /// What there is to tell, in the order in which it could be told.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.ready.pop_front()
    }

    /// Ends all connections, as if the capture ended here: poll what is left to tell.
    pub fn close(&mut self) {
        let mut left: Vec<Flow> = self.flows.drain().map(|(_, flow)| flow).collect();
        left.sort_by_key(Flow::number);
        for flow in left {
            self.end(flow);
        }
        self.held = 0;
    }

    /// Takes what a frame holds; in a datagram put together there may be no more headers than `passing`
    /// allows.
    fn content(&mut self, at: Time, content: &Content<'_>, mut passing: Passing) {
        match content {
            Content::Transport(packet) => self.packet(at, packet),
            Content::Fragment(part) => {
                let Some(whole) = self.fragments.insert(self.now, part, Traffic::default()) else {
                    return;
                };
                let inside = whole.layer().and_then(|layer| decode(layer, &mut passing));
                if let Some(content) = inside {
                    self.content(at, &content, passing);
                }
            }
        }
    }

    fn packet(&mut self, at: Time, packet: &Decoded<'_>) {
        let Transport::Tcp { segment, payload, payload_len } = packet.transport else {
            self.counters.datagrams = self.counters.datagrams.saturating_add(1);
            return;
        };
        let opens = segment.flags().has(Flags::SYN) && segment.acknowledgment().is_none();
        let again = |flow: &Flow| flow.is_begun_by(&segment, packet.from_low);
        if opens && !self.flows.get(&packet.key).is_some_and(again) {
            self.begin(at, packet, &segment);
        }
        let Some(flow) = self.flows.get_mut(&packet.key) else {
            self.counters.stray_segments = self.counters.stray_segments.saturating_add(1);
            return;
        };
        let side = flow.sender(packet.from_low);
        let input = Input { segment, payload, payload_len, side, at, keys: &self.key_log };
        let before = flow.held_bytes();
        flow.handle(&input, &mut self.ready);
        self.held = (self.held + flow.held_bytes()).saturating_sub(before);
        if self.held > self.limits.held_bytes {
            let before = flow.held_bytes();
            flow.give_up(at, Unreadable::NoRoom, &mut self.ready);
            self.held = (self.held + flow.held_bytes()).saturating_sub(before);
        }
        if flow.is_over()
            && let Some(flow) = self.flows.remove(&packet.key)
        {
            self.end(flow);
        }
    }

    /// A new connection between two ends; what was between them before is over.
    fn begin(&mut self, at: Time, packet: &Decoded<'_>, segment: &Segment<'_>) {
        if let Some(before) = self.flows.remove(&packet.key) {
            self.end(before);
        }
        if self.flows.len() >= self.limits.connections {
            self.counters.over_limit = self.counters.over_limit.saturating_add(1);
            return;
        }
        let number = self.counters.connections;
        self.counters.connections = number.saturating_add(1);
        let [low, high] = packet.key.ends();
        let (client, server) = if packet.from_low { (low, high) } else { (high, low) };
        let fact = StreamFact::Began { client, server };
        self.ready.push_back(StreamEvent { connection: number, at, fact });
        self.flows.insert(packet.key, Flow::new(number, packet.from_low, segment));
    }

    fn end(&mut self, mut flow: Flow) {
        self.held = self.held.saturating_sub(flow.held_bytes());
        flow.end(self.now, &mut self.ready);
    }
}

/// As [`StreamFact`] has it.
pub(crate) const fn is_client(side: Sender) -> bool {
    matches!(side, Sender::Client)
}
