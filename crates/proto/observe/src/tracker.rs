//! Frames in, connections out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Time;
use wire::tcp::{Flags, Segment};

use crate::decode::{Content, Decoded, LinkType, Transport, decode};
use crate::keylog::KeyLog;
use crate::quic::{self, QuicFlow};
use crate::record::{Connection, End, Output, Traffic, Transport as Kind};
use crate::side::{Pair, Sender};
use crate::table::{Activity, Key, Table};
use crate::tcp::{Input, TcpFlow};
use crate::tls::Mark;

/// What bounds a [`Tracker`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections followed at once; beyond it the one silent for longest is dropped and counted.
    /// At least 1.
    pub connections: usize,
    /// Bytes of each direction of a TCP connection that are put in order.
    pub stream_bytes: u64,
    /// Bytes of segments that came out of order, held in all connections together; a connection
    /// that would exceed it loses what it holds.
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
            held_bytes: 64 * 1024 * 1024,
            idle: Duration::from_secs(300),
            linger: Duration::from_secs(5),
            seed: 0,
            hand_out: HandOut::AtEnd,
        }
    }
}

/// What a [`Tracker`] has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Frames taken.
    pub frames: u64,
    /// Frames that are neither TCP nor UDP over IP, or are malformed.
    pub other: u64,
    /// IP fragments, which are not put together.
    pub fragments: u64,
    /// TCP segments of no connection followed, which do not begin one; UDP datagrams of no QUIC
    /// connection.
    pub stray: u64,
    /// Connections begun.
    pub connections: u64,
    /// Connections dropped because there were too many.
    pub dropped: u64,
}

struct Flow {
    number: u64,
    client: SocketAddr,
    server: SocketAddr,
    roles_known: bool,
    first_frame: Time,
    last_frame: Time,
    traffic: Pair<Traffic>,
    content: FlowContent,
}

impl Flow {
    fn sender(&self, packet: &Decoded<'_>) -> Sender {
        if packet.source == self.client { Sender::Client } else { Sender::Server }
    }

    fn held_bytes(&self) -> usize {
        match &self.content {
            FlowContent::Tcp(tcp) => tcp.held_bytes(),
            FlowContent::Quic(quic) => quic.held_bytes(),
        }
    }

    fn give_up(&mut self) {
        match &mut self.content {
            FlowContent::Tcp(tcp) => tcp.give_up(),
            FlowContent::Quic(quic) => quic.give_up(),
        }
    }
}

enum FlowContent {
    Tcp(Box<TcpFlow>),
    Quic(Box<QuicFlow>),
}

/// Follows connections through captured frames.
///
/// Call [`Tracker::handle_packet`] for each frame in the capture's order, then
/// [`Tracker::poll_connection`] until it has none; at the end [`Tracker::finish`]. Memory is bounded
/// by [`Limits`] as long as finished connections are polled.
pub struct Tracker {
    limits: Limits,
    table: Table<Flow>,
    ready: VecDeque<Connection>,
    counters: Counters,
    now: Time,
    /// Bytes that all connections hold.
    held: usize,
    /// Where Initial packets are opened.
    scratch: Vec<u8>,
    key_log: Option<Arc<KeyLog>>,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracker")
            .field("limits", &self.limits)
            .field("counters", &self.counters)
            .field("connections", &self.table.len())
            .finish_non_exhaustive()
    }
}

impl Tracker {
    /// A tracker that has seen nothing.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Tracker {
            table: Table::new(limits.seed),
            limits,
            ready: VecDeque::new(),
            counters: Counters::default(),
            now: Time::ZERO,
            held: 0,
            scratch: Vec::new(),
            key_log: None,
        }
    }

    /// Gives it the secrets of TLS 1.3 connections over TCP; they serve connections that begin from
    /// now on. A longer log may take the place of one given before.
    pub fn set_key_log(&mut self, key_log: Arc<KeyLog>) {
        self.key_log = Some(key_log);
    }

    /// Takes a frame captured at `at`: `bytes` of it were kept, `original_len` it had on the link.
    /// Frames that are no TCP or QUIC are counted and passed over.
    pub fn handle_packet(
        &mut self,
        at: Time,
        link_type: LinkType,
        bytes: &[u8],
        original_len: usize,
    ) {
        self.counters.frames += 1;
        self.now = self.now.max(at);
        match decode(link_type, bytes) {
            Content::Other => self.counters.other += 1,
            Content::Fragment => self.counters.fragments += 1,
            Content::Transport(packet) => self.handle_transport(at, &packet, original_len as u64),
        }
        self.expire();
    }

    /// What is to be given out: with [`HandOut::AfterHandshake`] endings too.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.poll_connection().map(|connection| Output::Connection(Box::new(connection)))
    }

    /// A connection that has ended, fallen silent or been dropped.
    pub fn poll_connection(&mut self) -> Option<Connection> {
        self.ready.pop_front()
    }

    /// What has been seen so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections being followed.
    #[must_use]
    pub fn active(&self) -> usize {
        self.table.len()
    }

    /// All connections not polled yet, in the order of their first frames, those still open too.
    #[must_use]
    pub fn finish(mut self) -> Vec<Connection> {
        for list in [Activity::Closed, Activity::Open] {
            while let Some(oldest) = self.table.oldest(list) {
                self.give_out(oldest, false);
            }
        }
        let mut all: Vec<Connection> = self.ready.into();
        all.sort_by_key(|connection| connection.first_frame);
        all
    }

    fn handle_transport(&mut self, at: Time, packet: &Decoded<'_>, len: u64) {
        let tcp = matches!(packet.transport, Transport::Tcp { .. });
        let key = Key::new(packet.source, packet.destination, tcp);
        let found = self.table.find(&key).filter(|place| !self.superseded(*place, packet));
        let place = match found {
            Some(place) => place,
            None => match self.begin(at, packet) {
                Some(flow) => self.add(key, flow),
                None => {
                    self.counters.stray += 1;
                    return;
                }
            },
        };
        let Some(flow) = self.table.get(place) else { return };
        let side = flow.sender(packet);
        flow.last_frame = flow.last_frame.max(at);
        let traffic = &mut flow.traffic[side];
        traffic.frames += 1;
        traffic.bytes = traffic.bytes.saturating_add(len);
        let mark = Mark { at, acked: 0, traffic: flow.traffic };
        let mut list = Activity::Open;
        let before = flow.held_bytes();
        match (&mut flow.content, packet.transport) {
            (FlowContent::Tcp(tcp), Transport::Tcp { segment, payload, payload_len }) => {
                tcp.handle(&Input { segment, payload, payload_len, side, mark });
                list = if tcp.is_closed() { Activity::Closed } else { Activity::Open };
            }
            (FlowContent::Quic(quic), Transport::Udp(datagram)) => {
                quic.handle(side, datagram, mark, &mut self.scratch);
            }
            _ => {}
        }
        self.held = (self.held + flow.held_bytes()).saturating_sub(before);
        if self.held > self.limits.held_bytes {
            self.held = self.held.saturating_sub(flow.held_bytes());
            flow.give_up();
        }
        self.table.touch(place, list);
    }

    /// Gives out the connection at a place if the packet begins another between the same ports.
    fn superseded(&mut self, place: u32, packet: &Decoded<'_>) -> bool {
        let Transport::Tcp { segment, .. } = &packet.transport else { return false };
        let superseded = self.table.get(place).is_some_and(|flow| {
            let side = flow.sender(packet);
            matches!(&flow.content, FlowContent::Tcp(tcp) if tcp.is_superseded_by(segment, side))
        });
        if superseded {
            self.give_out(place, false);
        }
        superseded
    }

    fn add(&mut self, key: Key, flow: Flow) -> u32 {
        while self.table.len() >= self.limits.connections.max(1) {
            match self.table.oldest(Activity::Closed).or_else(|| self.table.oldest(Activity::Open))
            {
                Some(oldest) => {
                    self.counters.dropped += 1;
                    self.give_out(oldest, true);
                }
                None => break,
            }
        }
        self.counters.connections += 1;
        self.table.insert(key, flow)
    }

    /// The connection that a packet begins, if it does.
    fn begin(&mut self, at: Time, packet: &Decoded<'_>) -> Option<Flow> {
        let (client_first, roles_known, content) = match packet.transport {
            Transport::Tcp { segment, payload, payload_len } => {
                let start = tcp_start(packet, &segment, payload, payload_len)?;
                let flow = TcpFlow::new(self.limits.stream_bytes, start.mid_stream)
                    .with_key_log(self.key_log.clone());
                (start.from_client, start.roles_known, FlowContent::Tcp(Box::new(flow)))
            }
            Transport::Udp(datagram) => {
                let flow = quic::starts_connection(datagram, &mut self.scratch)?;
                (true, true, FlowContent::Quic(Box::new(flow)))
            }
        };
        let (client, server) = if client_first {
            (packet.source, packet.destination)
        } else {
            (packet.destination, packet.source)
        };
        Some(Flow {
            number: self.counters.connections,
            client,
            server,
            roles_known,
            first_frame: at,
            last_frame: at,
            traffic: Pair::default(),
            content,
        })
    }

    fn expire(&mut self) {
        for (list, silence) in
            [(Activity::Closed, self.limits.linger), (Activity::Open, self.limits.idle)]
        {
            while let Some(oldest) = self.table.oldest(list) {
                let now = self.now;
                let due = |flow: &mut Flow| now.saturating_since(flow.last_frame) > silence;
                if !self.table.get(oldest).is_some_and(due) {
                    break;
                }
                self.give_out(oldest, false);
            }
        }
    }

    fn give_out(&mut self, place: u32, dropped: bool) {
        let Some(flow) = self.table.remove(place) else { return };
        self.held = self.held.saturating_sub(flow.held_bytes());
        let Pair { client: up, server: down } = flow.traffic;
        let mut connection = Connection {
            number: flow.number,
            goes_on: false,
            transport: match flow.content {
                FlowContent::Tcp(_) => Kind::Tcp,
                FlowContent::Quic(_) => Kind::Quic,
            },
            client: flow.client,
            server: flow.server,
            roles_known: flow.roles_known,
            first_frame: flow.first_frame,
            last_frame: flow.last_frame,
            up,
            down,
            up_to_response: None,
            down_to_response: None,
            client_data: None,
            server_data: None,
            tcp: None,
            quic: None,
            tls: None,
            end: End::Open,
            dropped,
            uncertain: Vec::new(),
        };
        match flow.content {
            FlowContent::Tcp(tcp) => tcp.close(&mut connection),
            FlowContent::Quic(quic) => quic.close(&mut connection),
        }
        self.ready.push_back(connection);
    }
}

/// How a TCP connection comes to be followed.
struct Start {
    from_client: bool,
    roles_known: bool,
    mid_stream: bool,
}

fn tcp_start(
    packet: &Decoded<'_>,
    segment: &Segment<'_>,
    payload: &[u8],
    payload_len: usize,
) -> Option<Start> {
    let flags = segment.flags();
    if flags.has(Flags::RST) {
        return None;
    }
    if flags.has(Flags::SYN) {
        let from_client = !flags.has(Flags::ACK);
        return Some(Start { from_client, roles_known: true, mid_stream: !from_client });
    }
    if payload_len == 0 {
        return None;
    }
    // A ClientHello at the front of a segment: the capture began between SYN and it.
    let hello = matches!(payload, [22, 3, _, _, _, 1, ..]);
    let from_client = hello || packet.source.port() > packet.destination.port();
    Some(Start { from_client, roles_known: hello, mid_stream: true })
}
