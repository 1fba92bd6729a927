//! Frames in, connections out.

mod frames;
mod leaving;
mod limits;
mod outer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use units::Time;
use wire::tcp::Flags;
use wire::{dtls, quic};

use crate::counters::Counters;
use crate::decode::{Decoded, Transport};
use crate::flow::{Flow, FlowContent, Leave};
use crate::fragments::Fragments;
use crate::keylog::KeyLog;
use crate::record::{Output, Traffic};
use crate::side::Sender;
use crate::table::{Activity, Table};
use crate::tcp::Input;
use crate::tls::Mark;

pub use frames::Packet;
pub(crate) use leaving::EXPIRY_PERIOD;
pub use limits::{HandOut, Limits};

/// QUIC versions that are counted one by one at most.
const UNREAD_VERSIONS: usize = 16;

/// The longest that a connection keeps its place in the order of activity while it is active.
const MAX_LAZINESS: Duration = Duration::from_secs(1);

/// Follows connections through captured frames.
///
/// Call [`Tracker::handle_packet`] for each frame in the capture's order, then
/// [`Tracker::poll_output`] until it has none; at the end [`Tracker::finish`]. Memory is bounded by
/// [`Limits`] as long as what is given out is polled.
///
/// A connection of which only the end is still to come takes 128 bytes, and of the index 11 to 22.
/// It is looked at once a millisecond whether connections have fallen silent, and one that has may
/// stay up to a second longer, an eighth of [`Limits::idle`] or [`Limits::linger`] at most.
pub struct Tracker {
    limits: Limits,
    table: Table<Flow>,
    fragments: Fragments,
    ready: VecDeque<Output>,
    counters: Counters,
    now: Time,
    next_expiry: Time,
    /// Bytes that all connections hold.
    held: usize,
    /// Where Initial packets are opened.
    scratch: Vec<u8>,
    key_log: KeyLog,
    /// First datagrams of QUIC versions that are not read.
    unread_quic: BTreeMap<u32, u64>,
    /// Another clock says when connections fall silent; then also where in the frames taken each
    /// connection began.
    outer_clock: Option<Vec<u64>>,
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
        let laziness = MAX_LAZINESS.min(limits.idle.min(limits.linger) / 8);
        Tracker {
            table: Table::new(limits.seed, laziness.as_nanos() as u64),
            fragments: Fragments::new(limits.seed),
            ready: VecDeque::new(),
            counters: Counters::default(),
            now: Time::ZERO,
            next_expiry: Time::ZERO,
            held: 0,
            scratch: Vec::new(),
            key_log: KeyLog::new(limits.connections),
            unread_quic: BTreeMap::new(),
            outer_clock: None,
            limits,
        }
    }

    /// Adds secrets of TLS 1.3 connections over TCP: lines as programs write them to the file that
    /// `SSLKEYLOGFILE` names. They serve connections whose ServerHello is still to come. There is one
    /// log, of the secrets of [`Limits::connections`] sessions at most.
    pub fn add_keys(&mut self, lines: &[u8]) {
        self.key_log.read(lines);
    }

    /// The secrets that it was given.
    #[must_use]
    pub const fn key_log(&self) -> &KeyLog {
        &self.key_log
    }

    /// What has been seen so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// First datagrams of QUIC connections whose version is not read, by version; those of versions
    /// that clients make up to exercise negotiation, and of further ones, under 0.
    #[must_use]
    pub const fn unread_quic(&self) -> &BTreeMap<u32, u64> {
        &self.unread_quic
    }

    /// Bytes that count for [`Limits::held_bytes`].
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held
    }

    /// Connections being followed.
    #[must_use]
    pub fn active(&self) -> usize {
        self.table.len()
    }

    /// Takes a packet of a connection that is followed, of one that it begins, or of none.
    fn handle_transport(&mut self, at: Time, packet: &Decoded<'_>, hash: u32, frames: Traffic) {
        match packet.transport {
            Transport::Tcp { .. } => {}
            // Before all else: a record of DTLS begins with no bits of a QUIC connection's first
            // packet, and is too particular to be one of the later ones (RFC 9443 §2).
            Transport::Udp { payload, payload_len } => {
                if let Ok(record) = dtls::Record::new_captured(payload, payload_len) {
                    add(&mut self.counters.dtls, frames);
                    self.counters.dtls_handshakes += u64::from(record.begins_handshake());
                    return;
                }
            }
        }
        let from_low = packet.from_low;
        let found =
            self.table.find(hash, &packet.key).filter(|place| !self.superseded(*place, packet));
        let place = match found {
            Some(place) => place,
            None => match self.begin(at, packet) {
                Some(flow) => self.add(flow),
                None => {
                    self.pass_over(packet, frames);
                    return;
                }
            },
        };
        add(&mut self.counters.followed, frames);
        let Some(flow) = self.table.get(place) else { return };
        let side = flow.sender(from_low);
        flow.count(at, side, frames);
        let list = match (&mut flow.content, packet.transport) {
            (FlowContent::ReportedTcp(reported), Transport::Tcp { segment, payload_len, .. }) => {
                reported.handle(&segment, payload_len, side);
                if reported.is_closed() { Activity::Closed } else { Activity::Reported }
            }
            (FlowContent::ReportedQuic(_), _) => Activity::Reported,
            _ => self.read(place, at, side, packet.transport),
        };
        self.table.touch(place, list, self.now);
        const MAY_HOLD: [Activity; 2] = [Activity::Closed, Activity::Open];
        while self.held > self.limits.held_bytes && self.drop_one(&MAY_HOLD) {}
    }

    /// Counts a packet of no connection.
    fn pass_over(&mut self, packet: &Decoded<'_>, frames: Traffic) {
        if let Transport::Udp { payload, payload_len } = packet.transport
            && let Some(version) = quic::unread_version(payload, payload_len)
        {
            add(&mut self.counters.quic_unread, frames);
            let known = self.unread_quic.contains_key(&version.0);
            let room = self.unread_quic.len() < UNREAD_VERSIONS;
            // Those that clients make up are one (RFC 9000 §15), and so are those beyond the limit.
            let reserved = version.is_reserved() || !(known || room);
            let version = if reserved { quic::Version::NEGOTIATION.0 } else { version.0 };
            let count = self.unread_quic.entry(version).or_default();
            *count = count.saturating_add(1);
        } else {
            add(&mut self.counters.stray, frames);
        }
    }

    /// Hands a packet to a connection whose record is not out, and its record out if it can go.
    fn read(&mut self, place: u32, at: Time, side: Sender, transport: Transport<'_>) -> Activity {
        let Some(flow) = self.table.get(place) else { return Activity::Open };
        flow.began_by(at);
        let mark = Mark { at, acked: 0, traffic: flow.traffic };
        let mut list = Activity::Open;
        let before = flow.held_bytes();
        match (&mut flow.content, transport) {
            (FlowContent::Tcp(tcp), Transport::Tcp { segment, payload, payload_len }) => {
                let keys = &self.key_log;
                tcp.handle(&Input { segment, payload, payload_len, side, mark, keys });
                list = if tcp.is_closed() { Activity::Closed } else { Activity::Open };
            }
            (FlowContent::Quic(quic), Transport::Udp { payload, .. }) => {
                quic.handle(side, payload, mark, &mut self.scratch);
            }
            _ => {}
        }
        self.held = (self.held + flow.held_bytes()).saturating_sub(before);
        if self.held > self.limits.held_bytes {
            self.held = self.held.saturating_sub(flow.held_bytes());
            flow.give_up();
            self.held = self.held.saturating_add(flow.held_bytes());
        }
        if self.limits.hand_out == HandOut::AfterHandshake && flow.is_reported() {
            self.held = self.held.saturating_sub(flow.held_bytes());
            self.ready.extend(flow.tell(&self.key_log));
            if list == Activity::Open {
                list = Activity::Reported;
            }
        }
        list
    }

    /// Gives out the connection at a place if the packet begins another between the same ports.
    fn superseded(&mut self, place: u32, packet: &Decoded<'_>) -> bool {
        let from_low = packet.from_low;
        let superseded = match &packet.transport {
            Transport::Tcp { segment, .. } => {
                segment.flags().has(Flags::SYN)
                    && self
                        .table
                        .get(place)
                        .is_some_and(|flow| flow.is_superseded_by(segment, from_low))
            }
            // A first Initial has a long header.
            Transport::Udp { payload, .. } => {
                payload.first().is_some_and(|first| first & 0x80 != 0)
                    && self.table.get(place).is_some_and(|flow| {
                        flow.is_superseded_by_datagram(payload, from_low, &mut self.scratch)
                    })
            }
        };
        if superseded {
            self.give_out(place, Leave::Over);
        }
        superseded
    }

    fn add(&mut self, flow: Flow) -> u32 {
        let most = self.limits.connections.max(1);
        while self.table.len() >= most
            && (self.drop_one(&[Activity::Closed])
                || self.drop_one(&[Activity::Reported, Activity::Open]))
        {}
        self.counters.connections += 1;
        if let Some(begun) = &mut self.outer_clock {
            begun.push(self.counters.frames);
        }
        self.table.insert(flow, self.now)
    }

    /// The connection that a packet begins, if it does.
    fn begin(&mut self, at: Time, packet: &Decoded<'_>) -> Option<Flow> {
        let number = self.counters.connections;
        let stream_bytes = self.limits.stream_bytes;
        Flow::begin(number, at, packet, stream_bytes, &mut self.scratch)
    }
}

fn add(counter: &mut u64, frames: Traffic) {
    *counter = counter.saturating_add(frames.frames);
}
