//! The endpoint in virtual time, its packets and its sockets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tcp::{Checksum, ConnectionId, Endpoint, EventKind, ListenerId};
use units::Time;

use super::addresses::{self, FIRST_PEER, PORT};
use super::packet::{Flow, Icmp, Segment, Sent};
use super::settings::Settings;
use super::verdict::Failure;

/// The endpoint's time at the script's beginning.
const BEGIN: Time = Time::from_millis(1000);
/// Nothing is waited for longer.
const PATIENCE: Duration = Duration::from_secs(100_000);
/// An endpoint that sends more at one time is broken.
const MOST_AT_ONCE: usize = 100_000;

/// What a file descriptor stands for.
#[derive(Debug, Clone)]
pub enum Socket {
    Fresh,
    Listening(ListenerId),
    Connection(ConnectionId),
    /// Descriptors that an epoll instance watches, with their events.
    Poll(BTreeMap<i64, String>),
}

/// A file descriptor.
#[derive(Debug, Clone)]
pub struct Descriptor {
    pub socket: Socket,
    pub nonblocking: bool,
    pub fast_open: bool,
    /// SO_LINGER with no time.
    pub resets: bool,
    /// The error of the connection has been told.
    pub told: bool,
}

impl Descriptor {
    pub fn new(socket: Socket) -> Self {
        Descriptor { socket, nonblocking: false, fast_open: false, resets: false, told: false }
    }
}

pub struct World {
    pub endpoint: Endpoint,
    pub now: Time,
    pub settings: Settings,
    pub descriptors: BTreeMap<i64, Descriptor>,
    /// The connection that the script's packets are of.
    pub flow: Option<Flow>,
    pub listener: Option<ListenerId>,
    /// Payload of the SYN that the script expects next.
    pub next_syn: Option<usize>,
    /// Differences that are no failures.
    pub but: BTreeSet<&'static str>,
    sent: VecDeque<Sent>,
    buffer: Vec<u8>,
    next_peer: u16,
}

impl World {
    pub fn new(settings: Settings) -> Self {
        World {
            endpoint: Endpoint::new(settings.config.clone(), [7; 32]),
            now: BEGIN,
            settings,
            descriptors: BTreeMap::new(),
            flow: None,
            listener: None,
            next_syn: None,
            but: BTreeSet::new(),
            sent: VecDeque::new(),
            buffer: vec![0; 70_000],
            next_peer: FIRST_PEER,
        }
    }

    /// The endpoint's time for a time of the script.
    pub fn at(&self, script: Duration) -> Time {
        BEGIN + script
    }

    /// The script's time for one of the endpoint's.
    pub fn script_time(&self, at: Time) -> Duration {
        at.saturating_since(BEGIN)
    }

    /// Takes what the endpoint sends and tells.
    pub fn collect(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let mut more = false;
            while let Some(event) = self.endpoint.poll_event() {
                more = true;
                // A kernel answers a SYN with data at once.
                if matches!(event.kind, EventKind::Incoming(_)) {
                    self.endpoint.answer(self.now, event.connection);
                }
            }
            while let Some(transmit) = self.endpoint.poll_transmit(self.now, &mut self.buffer) {
                more = true;
                let packet = self.buffer[..transmit.len].to_vec();
                let ip = if transmit.source.is_ipv4() { 20 } else { 40 };
                let (source, destination) =
                    addresses::ports(transmit.source, transmit.destination, &packet[ip..]);
                self.sent.push_back(Sent {
                    at: self.now,
                    source,
                    destination,
                    packet,
                    ip,
                    joined: 0,
                });
            }
            if !more {
                return;
            }
        }
        panic!("packets without end at {:?}", self.now);
    }

    /// Lets time pass; timers fire on the way.
    pub fn advance(&mut self, to: Time) {
        self.collect();
        while self.step(to) {}
        self.now = self.now.max(to);
        self.collect();
    }

    /// Fires the next timers if they are due until `end`; returns false if there are none.
    fn step(&mut self, end: Time) -> bool {
        let Some(next) = self.endpoint.next_timeout().filter(|at| *at <= end) else { return false };
        self.now = self.now.max(next);
        self.endpoint.handle_timeout(self.now);
        self.collect();
        true
    }

    fn position(&self) -> Option<usize> {
        let flow = self.flow.as_ref()?;
        // The port of a connection that this side opens is not known before its SYN.
        let is_ours = |sent: &Sent| match flow.local.port() {
            0 => sent.segment().flags().has(wire::tcp::Flags::SYN),
            _ => sent.source == flow.local,
        };
        self.sent.iter().position(|sent| sent.destination == flow.remote && is_ours(sent))
    }

    /// The next packet of the script's connection, if there is one until `end`. Segments that follow are joined to
    /// it up to `len` bytes, as a device without segmentation would see them.
    pub fn next_sent(&mut self, end: Option<Time>, len: usize) -> Option<Sent> {
        let end = end.unwrap_or(self.now + PATIENCE);
        self.collect();
        let mut position = self.position();
        while position.is_none() && self.step(end) {
            position = self.position();
        }
        let mut sent = self.sent.remove(position?)?;
        while sent.len() > 0 && sent.len() < len {
            let after = sent.segment().sequence().wrapping_add(sent.len() as u32);
            let follows = self.position().filter(|at| {
                let next = &self.sent[*at];
                next.at == sent.at
                    && next.segment().sequence() == after
                    && next.len() > 0
                    && sent.len() + next.len() <= len
            });
            let Some(next) = follows.and_then(|at| self.sent.remove(at)) else { break };
            let joined = sent.len();
            let first = sent.segment().sequence();
            sent = Sent { joined, ..next };
            // The header is the last one's, the beginning the first one's.
            sent.packet[sent.ip + 4..sent.ip + 8].copy_from_slice(&first.to_be_bytes());
        }
        if let Some(flow) = &mut self.flow
            && flow.local.port() == 0
        {
            flow.local = sent.source;
        }
        Some(sent)
    }

    /// Gives the endpoint a segment of the peer's.
    pub fn give(&mut self, segment: &Segment) -> Result<(), Failure> {
        self.collect();
        self.choose_flow(segment);
        let Some(flow) = &mut self.flow else { return Ok(()) };
        let packet = flow.make(segment)?;
        let _ignored = self.endpoint.handle_packet(self.now, &packet, Checksum::Verify);
        self.collect();
        Ok(())
    }

    /// A SYN to a listener is of a new connection once the application has closed the one before.
    fn choose_flow(&mut self, segment: &Segment) {
        let begins = segment.is_syn() && !segment.flags.contains('.');
        let keeps = self.flow.as_ref().is_some_and(|flow| !begins || !flow.closed);
        if keeps || self.flow.is_some() && self.listener.is_none() {
            return;
        }
        let (ours, theirs) = addresses::pair(self.settings.ipv6);
        let cookies = self.flow.take().map(|flow| flow.cookies).unwrap_or_default();
        let mut flow = Flow::new((ours, PORT).into(), (theirs, self.next_peer).into());
        flow.cookies = cookies;
        self.next_peer += 1;
        self.flow = Some(flow);
    }

    /// Gives the endpoint an ICMP error about a segment of ours.
    pub fn report(&mut self, icmp: &Icmp) -> Result<(), Failure> {
        self.collect();
        let Some(flow) = &self.flow else { return Ok(()) };
        let sequence = units::SeqNumber(flow.our_sequence(icmp.sequence));
        let (local, remote) = (flow.local, flow.remote);
        let kind = match (icmp.kind.as_str(), icmp.code.as_str()) {
            ("unreachable", "frag_needed") | ("packet_too_big", _) => {
                let reported = tcp::PathMtu { local, remote, sequence, mtu: icmp.mtu };
                let _ignored = self.endpoint.set_path_mtu(self.now, reported);
                self.collect();
                return Ok(());
            }
            ("unreachable", code) => match unreachable_code(self.settings.ipv6, code) {
                Some(code) if self.settings.ipv6 => tcp::IcmpKind::of_v6(1, code),
                Some(code) => tcp::IcmpKind::of_v4(3, code),
                None => return Err(Failure::Unread(format!("the ICMP code {code}"))),
            },
            ("time_exceeded", _) => Some(tcp::IcmpKind::TimeExceeded),
            ("parameter_problem", _) => Some(tcp::IcmpKind::ParameterProblem),
            ("source_quench" | "redirect", _) => None,
            (kind, _) => return Err(Failure::Unread(format!("the ICMP type {kind}"))),
        };
        if let Some(kind) = kind {
            let reported = tcp::IcmpError { local, remote, sequence, kind };
            let _ignored = self.endpoint.report_icmp_error(self.now, reported);
            self.collect();
        }
        Ok(())
    }
}

/// The number of a code's name (RFC 792, RFC 1812 §5.2.7.1, RFC 4443 §3.1).
fn unreachable_code(ipv6: bool, name: &str) -> Option<u8> {
    const V4: [&str; 16] = [
        "net_unreachable",
        "host_unreachable",
        "protocol_unreachable",
        "port_unreachable",
        "frag_needed",
        "source_route_failed",
        "net_unknown",
        "host_unknown",
        "source_host_isolated",
        "net_prohibited",
        "host_prohibited",
        "net_unreachable_for_tos",
        "host_unreachable_for_tos",
        "packet_filtered",
        "precedence_violation",
        "precedence_cutoff",
    ];
    const V6: [&str; 5] = [
        "no_route",
        "admin_prohibited",
        "not_neighbour",
        "address_unreachable",
        "port_unreachable",
    ];
    if name.is_empty() {
        return Some(0);
    }
    let names = if ipv6 { &V6[..] } else { &V4[..] };
    names.iter().position(|known| *known == name).map(|code| code as u8)
}
