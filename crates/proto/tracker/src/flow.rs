//! One connection in the table: two cache lines, and what its handshake needs while it lasts.

use std::net::SocketAddr;

use units::Time;
use wire::tcp::{Flags, Segment};

use crate::decode::{Decoded, Transport};
use crate::keylog::KeyLog;
use crate::quic::{self, Origins, QuicFlow};
use crate::record::{Connection, End, Ending, Output, Traffic, Transport as Kind, Uncertain};
use crate::side::{Pair, Sender};
use crate::table::{Activity, Entry, Key, Links};
use crate::tcp::reported::Reported;
use crate::tcp::{TcpFlow, is_padding};

/// The low end of the key is the client.
const CLIENT_IS_LOW: u8 = 1;
/// Client and server are known, not guessed.
const ROLES_KNOWN: u8 = 2;

/// Why a connection leaves the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It ended, fell silent, or another began between the same ports.
    Over,
    /// The table or what may be held is full.
    Dropped,
    /// There are no more frames.
    CaptureEnded,
}

/// A connection that is followed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Flow {
    links: Links,
    number: u64,
    first_frame: Time,
    pub(crate) last_frame: Time,
    pub(crate) traffic: Pair<Traffic>,
    pub(crate) content: FlowContent,
    key: Key,
    list: Activity,
    flags: u8,
}

// Two cache lines; what it shares of the index and of a chunk comes to it.
const _: () = assert!(size_of::<Option<Flow>>() == 128);

/// What is known of a connection.
#[derive(Debug)]
pub(crate) enum FlowContent {
    /// A TCP connection whose record is not out.
    Tcp(Box<TcpFlow>),
    /// A QUIC connection whose record is not out.
    Quic(Box<QuicFlow>),
    /// A TCP connection whose record is out.
    ReportedTcp(Reported),
    /// A QUIC connection whose record is out.
    ReportedQuic(Origins),
}

impl FlowContent {
    fn end(&self) -> End {
        match self {
            FlowContent::ReportedTcp(reported) => reported.end(),
            _ => End::Open,
        }
    }
}

impl Entry for Flow {
    fn key(&self) -> &Key {
        &self.key
    }
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
    fn list(&mut self) -> &mut Activity {
        &mut self.list
    }
    fn last(&self) -> Time {
        self.last_frame
    }
}

impl Flow {
    /// The connection number `number` that a packet begins, if it does.
    pub(crate) fn begin(
        number: u64,
        at: Time,
        packet: &Decoded<'_>,
        stream_bytes: u64,
        scratch: &mut Vec<u8>,
    ) -> Option<Self> {
        let (client_first, roles_known, content) = match packet.transport {
            Transport::Tcp { segment, payload, payload_len } => {
                let start = tcp_start(packet, &segment, payload, payload_len)?;
                let opening = segment.flags().has(Flags::SYN);
                let flow = TcpFlow::new(stream_bytes, start.mid_stream, opening);
                (start.from_client, start.roles_known, FlowContent::Tcp(Box::new(flow)))
            }
            Transport::Udp { payload, .. } => {
                let flow = quic::starts_connection(payload, scratch)?;
                (true, true, FlowContent::Quic(Box::new(flow)))
            }
        };
        let client_is_low = if client_first == packet.from_low { CLIENT_IS_LOW } else { 0 };
        let roles_known = if roles_known { ROLES_KNOWN } else { 0 };
        Some(Flow {
            links: Links::NONE,
            number,
            first_frame: at,
            last_frame: at,
            traffic: Pair::default(),
            content,
            key: packet.key,
            list: Activity::Open,
            flags: client_is_low | roles_known,
        })
    }

    /// Who sent a packet; `from_low` says that the low end of the key did.
    pub(crate) const fn sender(&self, from_low: bool) -> Sender {
        if from_low == (self.flags & CLIENT_IS_LOW != 0) { Sender::Client } else { Sender::Server }
    }

    /// Counts a packet's frames.
    pub(crate) fn count(&mut self, at: Time, side: Sender, frames: Traffic) {
        self.last_frame = self.last_frame.max(at);
        let traffic = &mut self.traffic[side];
        traffic.frames = traffic.frames.saturating_add(frames.frames);
        traffic.bytes = traffic.bytes.saturating_add(frames.bytes);
    }

    /// Notes a frame captured at `at`, which may be dated before others that were captured earlier.
    pub(crate) fn began_by(&mut self, at: Time) {
        self.first_frame = self.first_frame.min(at);
    }

    /// Whether nothing more will be told of it than how it ends.
    pub(crate) fn is_reported(&self) -> bool {
        match &self.content {
            FlowContent::Tcp(tcp) => tcp.is_reported(),
            FlowContent::Quic(quic) => {
                let Pair { client, server } = &self.traffic;
                quic.is_reported(client.frames.saturating_add(server.frames))
            }
            FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) => false,
        }
    }

    /// Whether a segment begins another connection between the same ports.
    pub(crate) fn is_superseded_by(&self, segment: &Segment<'_>, from_low: bool) -> bool {
        let side = self.sender(from_low);
        match &self.content {
            FlowContent::Tcp(tcp) => tcp.is_superseded_by(segment, side),
            FlowContent::ReportedTcp(reported) => reported.is_superseded_by(segment, side),
            FlowContent::Quic(_) | FlowContent::ReportedQuic(_) => false,
        }
    }

    /// Whether a datagram begins another QUIC connection between the same ports.
    pub(crate) fn is_superseded_by_datagram(
        &self,
        datagram: &[u8],
        from_low: bool,
        scratch: &mut Vec<u8>,
    ) -> bool {
        if self.sender(from_low) == Sender::Server {
            return false;
        }
        match &self.content {
            FlowContent::Quic(quic) => quic.is_superseded_by(datagram, scratch),
            FlowContent::ReportedQuic(origins) => origins.are_superseded_by(datagram, scratch),
            FlowContent::Tcp(_) | FlowContent::ReportedTcp(_) => false,
        }
    }

    /// Bytes held until its record is out, beside what every connection takes.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.content {
            FlowContent::Tcp(tcp) => tcp.held_bytes(),
            FlowContent::Quic(quic) => quic.held_bytes(),
            FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) => 0,
        }
    }

    /// Gives up what is held, to save memory.
    pub(crate) fn give_up(&mut self) {
        match &mut self.content {
            FlowContent::Tcp(tcp) => tcp.give_up(),
            FlowContent::Quic(quic) => quic.give_up(),
            FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) => {}
        }
    }

    /// The record of a connection that goes on; `None` if it is out already.
    pub(crate) fn tell(&mut self, keys: &KeyLog) -> Option<Output> {
        let rest = match &self.content {
            FlowContent::Tcp(tcp) => FlowContent::ReportedTcp(tcp.reported()),
            FlowContent::Quic(quic) => FlowContent::ReportedQuic(quic.reported()),
            FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) => return None,
        };
        let content = std::mem::replace(&mut self.content, rest);
        let mut connection = self.connection(content, keys);
        connection.goes_on = true;
        Some(Output::Connection(Box::new(connection)))
    }

    /// What is to be given out when it leaves the table.
    pub(crate) fn leave(mut self, why: Leave, keys: &KeyLog) -> Output {
        let dropped = why == Leave::Dropped;
        if let FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) = self.content {
            let Pair { client: up, server: down } = self.traffic;
            let (number, last_frame) = (self.number, self.last_frame);
            let end = self.content.end();
            return Output::Ending(Ending { number, last_frame, up, down, end, dropped });
        }
        let content =
            std::mem::replace(&mut self.content, FlowContent::ReportedQuic(Origins::none()));
        let mut connection = self.connection(content, keys);
        connection.dropped = dropped;
        if connection.class().is_some() && connection.is_unfinished() {
            match why {
                Leave::CaptureEnded => connection.uncertain.push(Uncertain::CaptureEnded),
                Leave::Over if !connection.was_given_up() => {
                    connection.uncertain.push(Uncertain::FellSilent);
                }
                Leave::Over | Leave::Dropped => {}
            }
        }
        Output::Connection(Box::new(connection))
    }

    fn connection(&self, content: FlowContent, keys: &KeyLog) -> Connection {
        let [low, high] = self.key.ends();
        let client_is_low = self.flags & CLIENT_IS_LOW != 0;
        let (client, server): (SocketAddr, SocketAddr) =
            if client_is_low { (low, high) } else { (high, low) };
        let Pair { client: up, server: down } = self.traffic;
        let mut connection = Connection {
            number: self.number,
            goes_on: false,
            transport: if self.key.is_tcp() { Kind::Tcp } else { Kind::Quic },
            client,
            server,
            roles_known: self.flags & ROLES_KNOWN != 0,
            first_frame: self.first_frame,
            last_frame: self.last_frame,
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
            dropped: false,
            uncertain: Vec::new(),
        };
        match content {
            FlowContent::Tcp(tcp) => tcp.close(&mut connection, keys),
            FlowContent::Quic(quic) => quic.close(&mut connection),
            FlowContent::ReportedTcp(_) | FlowContent::ReportedQuic(_) => {}
        }
        connection
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
    if payload_len == 0 || is_padding(segment, payload, payload_len) {
        return None;
    }
    // A ClientHello at the front of a segment: the capture began between SYN and it.
    let hello = matches!(payload, [22, 3, _, _, _, 1, ..]);
    let [low, high] = packet.key.ports();
    let (source, destination) = if packet.from_low { (low, high) } else { (high, low) };
    let from_client = hello || source > destination;
    Some(Start { from_client, roles_known: hello, mid_stream: true })
}
