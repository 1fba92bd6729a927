//! Frames in, connections out.

mod outer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Time;
use wire::tcp::Flags;
use wire::{dtls, quic};

use crate::counters::Counters;
use crate::decode::{
    Content, Decoded, Fragment, Layer, LinkType, MAX_HEADERS, Transport, decode, plain_tcp,
};
use crate::flow::{Flow, FlowContent, Leave};
use crate::fragments::Fragments;
use crate::keylog::KeyLog;
use crate::record::{Connection, Output, Traffic};
use crate::side::Sender;
use crate::table::{Activity, Table};
use crate::tcp::Input;
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

/// Frames that [`Tracker::handle_packets`] reads before it takes the first of them: enough to wait
/// for memory together, few enough to stay in the nearest cache.
const GROUP: usize = 16;

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When it was captured.
    pub at: Time,
    /// What it begins with.
    pub link_type: LinkType,
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// Bytes that it had on the link.
    pub original_len: usize,
}

/// What a frame is.
struct Read<'a> {
    content: Option<Content<'a>>,
    /// Of a transport packet's key.
    hash: u32,
    /// Headers that may still follow.
    left: u8,
}

/// QUIC versions that are counted one by one at most.
const UNREAD_VERSIONS: usize = 16;

/// How often connections are looked through for silent ones, in the capture's time.
pub(crate) const EXPIRY_PERIOD: Duration = Duration::from_millis(1);

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

    /// Takes a frame captured at `at`: `bytes` of it were kept, `original_len` it had on the link.
    /// Frames that are no TCP or QUIC are counted and passed over.
    pub fn handle_packet(
        &mut self,
        at: Time,
        link_type: LinkType,
        bytes: &[u8],
        original_len: usize,
    ) {
        let packet = Packet { at, link_type, bytes, original_len };
        let read = self.read_frame(&packet, None);
        self.handle_frame(&packet, &read);
    }

    /// Takes frames in the capture's order, as [`Tracker::handle_packet`] one by one would. It is
    /// faster: what several of them need from memory is asked for at once.
    pub fn handle_packets(&mut self, packets: &[Packet<'_>]) {
        for group in packets.chunks(GROUP) {
            let mut hashes = [None; GROUP];
            for (hash, packet) in hashes.iter_mut().zip(group) {
                *hash = self.hash_of(packet);
            }
            let guessed = hashes.map(|hash| hash.and_then(|hash| self.table.guess(hash)));
            for place in guessed.into_iter().flatten() {
                std::hint::black_box(self.table.warm(place));
            }
            // Read again: to keep what was read of all of them would cost more.
            for (packet, hash) in group.iter().zip(hashes) {
                let read = self.read_frame(packet, hash);
                self.handle_frame(packet, &read);
            }
        }
    }

    /// The hash of a transport packet's key.
    #[inline]
    fn hash_of(&self, packet: &Packet<'_>) -> Option<u32> {
        if let Some(ends) = plain_tcp(packet.link_type, packet.bytes) {
            return Some(self.table.hash_plain(ends));
        }
        let read = self.read_frame(packet, None);
        matches!(read.content, Some(Content::Transport(_))).then_some(read.hash)
    }

    /// Reads a frame whose key may have been hashed before.
    fn read_frame<'a>(&self, packet: &Packet<'a>, hash: Option<u32>) -> Read<'a> {
        let mut left = MAX_HEADERS;
        let layer = Layer::of_frame(packet.link_type, packet.bytes);
        let content = layer.and_then(|layer| decode(layer, &mut left));
        let hash = match &content {
            Some(Content::Transport(packet)) => {
                let hash = hash.unwrap_or_else(|| self.table.hash(&packet.key));
                debug_assert_eq!(hash, self.table.hash(&packet.key));
                hash
            }
            _ => 0,
        };
        Read { content, hash, left }
    }

    fn handle_frame(&mut self, packet: &Packet<'_>, read: &Read<'_>) {
        self.counters.frames += 1;
        self.now = self.now.max(packet.at);
        let frames = Traffic { frames: 1, bytes: packet.original_len as u64 };
        self.handle_content(packet.at, read, frames);
        if self.outer_clock.is_none() {
            self.expire();
        }
    }

    /// What is to be given out: records, and with [`HandOut::AfterHandshake`] endings too. The
    /// ending of a connection comes after its record.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.ready.pop_front()
    }

    /// A connection that has ended, fallen silent or been dropped, or with
    /// [`HandOut::AfterHandshake`] one of which all is told; endings are passed over.
    pub fn poll_connection(&mut self) -> Option<Connection> {
        loop {
            if let Output::Connection(connection) = self.ready.pop_front()? {
                return Some(*connection);
            }
        }
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

    /// All connections not polled yet, in the order of their first frames, those still open too.
    /// Endings are passed over.
    #[must_use]
    pub fn finish(mut self) -> Vec<Connection> {
        self.close();
        let mut all: Vec<Connection> = Vec::new();
        while let Some(connection) = self.poll_connection() {
            all.push(connection);
        }
        all.sort_by_key(|connection| connection.first_frame);
        all
    }

    /// Gives out all connections, as if the capture ended here: poll them. Fragments that wait are
    /// dropped and counted. Connections come in the order in which they began.
    pub fn close(&mut self) {
        let before = self.ready.len();
        for list in [Activity::Closed, Activity::Reported, Activity::Open] {
            while let Some(oldest) = self.table.oldest(list) {
                self.give_out(oldest, Leave::CaptureEnded);
            }
        }
        let number = |output: &Output| match output {
            Output::Connection(connection) => connection.number,
            Output::Ending(ending) => ending.number,
        };
        if let Some(added) = self.ready.make_contiguous().get_mut(before..) {
            added.sort_by_key(number);
        }
        self.fragments.finish();
        self.count_fragments();
    }

    /// Takes what was read of `frames`, and what is inside of that.
    fn handle_content(&mut self, at: Time, read: &Read<'_>, frames: Traffic) {
        match &read.content {
            Some(Content::Transport(packet)) => {
                self.handle_transport(at, packet, read.hash, frames);
            }
            None => add(&mut self.counters.other, frames),
            Some(Content::Fragment(fragment)) => {
                add(&mut self.counters.fragments, frames);
                self.handle_fragment(at, fragment, read.left, frames);
                self.count_fragments();
            }
        }
    }

    /// Takes a fragment, and if it is the last one missing the datagram, in which there may be no
    /// more headers than `left`: so a datagram within a datagram comes to an end.
    fn handle_fragment(&mut self, at: Time, part: &Fragment<'_>, mut left: u8, frames: Traffic) {
        let Some(whole) = self.fragments.insert(self.now, part, frames) else { return };
        self.counters.reassembled = self.counters.reassembled.saturating_add(1);
        let content = whole.layer().and_then(|layer| decode(layer, &mut left));
        let hash = match &content {
            Some(Content::Transport(packet)) => self.table.hash(&packet.key),
            _ => 0,
        };
        self.handle_content(at, &Read { content, hash, left }, whole.frames);
    }

    fn count_fragments(&mut self) {
        self.counters.fragments_waiting = self.fragments.waiting();
        self.counters.fragments_dropped = *self.fragments.dropped();
    }

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

    /// Drops the connection in these lists that was silent for longest. False if there is none.
    fn drop_one(&mut self, lists: &[Activity]) -> bool {
        let mut best: Option<(Time, u32)> = None;
        for list in lists {
            let Some(place) = self.table.stalest(*list) else { continue };
            let Some(last) = self.table.get(place).map(|flow| flow.last_frame) else { continue };
            if best.is_none_or(|(earliest, _)| last < earliest) {
                best = Some((last, place));
            }
        }
        let Some((_, stalest)) = best else { return false };
        self.counters.dropped += 1;
        self.give_out(stalest, Leave::Dropped);
        true
    }

    /// The connection that a packet begins, if it does.
    fn begin(&mut self, at: Time, packet: &Decoded<'_>) -> Option<Flow> {
        let number = self.counters.connections;
        let stream_bytes = self.limits.stream_bytes;
        Flow::begin(number, at, packet, stream_bytes, &mut self.scratch)
    }

    /// Gives out what has been silent for long enough: looked at once a millisecond of the
    /// capture's time.
    fn expire(&mut self) {
        if self.now < self.next_expiry {
            return;
        }
        self.next_expiry = self.now + EXPIRY_PERIOD;
        self.expire_now();
    }

    fn expire_now(&mut self) {
        let Limits { linger, idle, .. } = self.limits;
        for (list, silence) in
            [(Activity::Closed, linger), (Activity::Reported, idle), (Activity::Open, idle)]
        {
            while let Some(oldest) = self.table.oldest(list) {
                let now = self.now;
                let due = |flow: &mut Flow| now.saturating_since(flow.last_frame) > silence;
                if !self.table.get(oldest).is_some_and(due) {
                    break;
                }
                self.give_out(oldest, Leave::Over);
            }
        }
        if self.fragments.waiting() > 0 {
            self.fragments.expire(self.now);
            self.count_fragments();
        }
    }

    fn give_out(&mut self, place: u32, why: Leave) {
        let Some(flow) = self.table.remove(place) else { return };
        self.held = self.held.saturating_sub(flow.held_bytes());
        self.ready.push_back(flow.leave(why, &self.key_log));
    }
}

fn add(counter: &mut u64, frames: Traffic) {
    *counter = counter.saturating_add(frames.frames);
}
