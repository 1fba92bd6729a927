//! One TCP connection: sequence numbers, both streams, Fast Open, how it ends.

pub(crate) mod reported;
mod sequence;

use units::{SeqNumber, Time};
use wire::tcp::{Flags, Segment, TcpOption};

use self::sequence::SynAck;
use crate::content::Content;
use crate::envelope::{self, Unwrapper};
use crate::keylog::KeyLog;
use crate::reassembly::{Kind, Reassembler};
use crate::record::{Connection, End, TcpFacts, Uncertain};
use crate::side::{Pair, Sender};
use crate::syn_data::{SynData, SynDataState};
use crate::tls::Mark;

/// Data of the server that are held while no SYN+ACK was captured: an initial window and more.
const HELD_SEGMENTS: usize = 64;

/// Data of the server that came before its SYN+ACK: behind it in the initial window, while it was
/// lost. Where they lie in the stream only the SYN+ACK says.
#[derive(Debug)]
struct Held {
    sequence: SeqNumber,
    payload: Box<[u8]>,
    len: usize,
    mark: Mark,
}

/// One direction of a connection.
#[derive(Debug)]
struct Side {
    /// The sequence number of the stream's first byte.
    base: Option<SeqNumber>,
    stream: Reassembler,
    /// The furthest byte seen, relative to `base`.
    highest: u64,
    /// How far the peer acknowledged it, relative to `base`.
    acked: u64,
    fin: bool,
}

impl Side {
    /// Where a sequence number lies in the stream, relative to `base`; negative before it.
    fn offset(&self, sequence: SeqNumber) -> i64 {
        let Some(base) = self.base else { return 0 };
        // The furthest byte is the anchor, so that streams may be longer than 2^32.
        let anchor = base + self.highest as u32;
        (self.highest as i64).saturating_add(i64::from(sequence.distance(anchor)))
    }
}

/// A TCP connection being followed.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    facts: TcpFacts,
    sides: Pair<Side>,
    content: Content,
    syn: SynDataState,
    /// Data of the server that wait for its SYN+ACK.
    held: Vec<Held>,
    /// SYN+ACKs with different initial sequence numbers, until the client acknowledges one.
    syn_acks: Option<Box<[SynAck; 2]>>,
    /// The client has sent more than SYNs.
    client_goes_on: bool,
    /// What takes off SSLmTCP's envelopes, where there are any.
    envelopes: Option<Box<Pair<Unwrapper>>>,
    stream_bytes: u64,
    /// First payload of either side that belongs to the stream.
    first: Pair<Option<Mark>>,
    end: End,
    reset: bool,
    mid_stream: bool,
    done: bool,
}

/// A segment as the tracker hands it on.
pub(crate) struct Input<'a> {
    pub(crate) segment: Segment<'a>,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_len: usize,
    /// Who sent it.
    pub(crate) side: Sender,
    pub(crate) mark: Mark,
    /// Where the keys of its session may be.
    pub(crate) keys: &'a KeyLog,
}

impl TcpFlow {
    pub(crate) fn new(stream_bytes: u64, mid_stream: bool) -> Self {
        let side = || Side {
            base: None,
            stream: Reassembler::new(stream_bytes),
            highest: 0,
            acked: 0,
            fin: false,
        };
        TcpFlow {
            facts: TcpFacts::default(),
            sides: Pair { client: side(), server: side() },
            content: Content::new(),
            syn: SynDataState::default(),
            held: Vec::new(),
            syn_acks: None,
            client_goes_on: false,
            envelopes: None,
            stream_bytes,
            first: Pair::default(),
            end: End::Open,
            reset: false,
            mid_stream,
            done: false,
        }
    }

    /// Whether both sides are through.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || (self.sides.client.fin && self.sides.server.fin)
    }

    /// Takes a segment.
    pub(crate) fn handle(&mut self, input: &Input<'_>) {
        let (at, keys) = (input.mark.at, input.keys);
        let (flags, side) = (input.segment.flags(), input.side);
        let sequence = SeqNumber(input.segment.sequence());
        if flags.has(Flags::RST) && !self.is_own_reset(&input.segment, side) {
            return;
        }
        if flags.has(Flags::SYN) {
            self.synchronise(input, sequence);
        } else if self.sides[side].base.is_none() && !self.awaits_syn_ack(side) {
            self.sides[side].base = Some(sequence);
        }
        if side == Sender::Client && !flags.has(Flags::SYN) {
            // It knows the SYN+ACK, captured or not.
            self.client_goes_on = true;
            self.choose_syn_ack(input.segment.acknowledgment().map(SeqNumber));
            self.take_held(keys);
        }
        let mut mark = input.mark;
        if let Some(ack) = input.segment.acknowledgment() {
            mark.acked = self.sides[side.peer()].offset(SeqNumber(ack)).max(0) as u64;
            self.note_acknowledged(side.peer(), mark.acked);
            if side == Sender::Client && !flags.has(Flags::SYN) && self.facts.syn_ack.is_some() {
                self.facts.handshake_ack.get_or_insert(at);
            }
            if side == Sender::Server && !flags.has(Flags::RST) && !self.syn.is_settled() {
                self.server_acknowledged(mark.acked, flags.has(Flags::SYN), keys);
            }
        }
        let data = if flags.has(Flags::SYN) { sequence + 1 } else { sequence };
        match (input.payload_len > 0, flags.has(Flags::SYN), side) {
            (false, _, _) => {}
            (true, true, Sender::Client) => self.syn_payload(input, mark),
            (true, ..) if self.sides[side].base.is_none() => self.hold(input, data, mark),
            (true, _, _) => {
                self.segment_payload(side, data, (input.payload, input.payload_len), mark, keys)
            }
        }
        if side == Sender::Server && flags.has(Flags::SYN) && self.syn_acks.is_none() {
            self.take_held(keys);
        }
        if flags.has(Flags::FIN) && !self.reset {
            self.sides[side].fin = true;
            self.end = End::Fin;
        }
        if flags.has(Flags::RST) {
            self.reset = true;
            if self.end == End::Open {
                self.end = End::Reset;
            }
        }
    }

    /// Whether only the SYN+ACK can say where the server's stream begins.
    fn awaits_syn_ack(&self, side: Sender) -> bool {
        side == Sender::Server
            && self.facts.syn.is_some()
            && !self.client_goes_on
            && self.held.len() < HELD_SEGMENTS
    }

    fn hold(&mut self, input: &Input<'_>, sequence: SeqNumber, mark: Mark) {
        let limit = usize::try_from(self.stream_bytes).unwrap_or(usize::MAX);
        let payload = input.payload.get(..limit).unwrap_or(input.payload).into();
        self.held.push(Held { sequence, payload, len: input.payload_len, mark });
    }

    /// Puts what was held into the server's stream, which begins with the SYN+ACK's data, or with
    /// the first of these where there was none.
    fn take_held(&mut self, keys: &KeyLog) {
        if self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let mut first = held.iter().map(|held| held.sequence);
        let begin = first.next();
        let begin =
            begin.map(|begin| first.fold(begin, |a, b| if b.distance(a) < 0 { b } else { a }));
        if self.sides.server.base.is_none() {
            self.sides.server.base = begin;
        }
        for held in held {
            let Held { sequence, payload, len, mark } = held;
            self.segment_payload(Sender::Server, sequence, (&payload, len), mark, keys);
        }
    }

    fn synchronise(&mut self, input: &Input<'_>, sequence: SeqNumber) {
        let (side, at) = (input.side, input.mark.at);
        if side == Sender::Server && self.differing_syn_ack(input, sequence + 1) {
            return;
        }
        if self.sides[side].base.is_some() {
            let again = if side == Sender::Client {
                &mut self.facts.client_retransmitted
            } else {
                &mut self.facts.server_retransmitted
            };
            self.facts.handshake_retransmitted |= self.facts.handshake_ack.is_none();
            // The server's payload is counted where it is put in order; the client's may never be.
            if side == Sender::Client || input.payload_len == 0 {
                *again += 1;
            }
        } else {
            self.sides[side].base = Some(sequence + 1);
        }
        if side == Sender::Client {
            self.facts.syn.get_or_insert(at);
            self.fast_open_syn(input);
        } else if input.segment.acknowledgment().is_some() {
            if self.facts.syn_ack.is_none() {
                let granted = cookie_len(&input.segment).filter(|len| *len > 0);
                self.facts.fast_open.cookie_granted_len = granted;
            }
            self.facts.syn_ack.get_or_insert(at);
            if self.facts.syn_ack_data == 0 {
                self.facts.syn_ack_data = input.payload_len as u32;
            }
        }
    }

    /// RFC 7413 §4.1: an empty option asks for a cookie, another carries it.
    fn fast_open_syn(&mut self, input: &Input<'_>) {
        let fast_open = &mut self.facts.fast_open;
        match cookie_len(&input.segment) {
            Some(0) => fast_open.cookie_requested = true,
            Some(len) => fast_open.cookie_len = Some(len),
            None => {}
        }
        if fast_open.syn_data == 0 && input.payload_len > 0 {
            fast_open.syn_data = input.payload_len as u32;
            fast_open.without_cookie = fast_open.cookie_len.is_none();
            self.facts.syn_data = input.payload_len as u32;
        }
    }

    /// Data on a SYN wait for the server's word.
    fn syn_payload(&mut self, input: &Input<'_>, mark: Mark) {
        self.facts.client_payload.get_or_insert(mark.at);
        let limit = usize::try_from(self.stream_bytes).unwrap_or(usize::MAX);
        let bytes = input.payload.get(..limit).unwrap_or(input.payload).into();
        let segment_len = input.segment.header_len().saturating_add(input.payload_len);
        self.syn.keep(SynData { bytes, len: input.payload_len, segment_len, mark });
    }

    /// The server's word on the data of the SYN: its SYN+ACK, or where that was not captured the
    /// first segment that acknowledges what a SYN+ACK could.
    fn server_acknowledged(&mut self, acked: u64, syn_ack: bool, keys: &KeyLog) {
        let waiting = self.syn.waiting();
        if !syn_ack && waiting.is_some_and(|(_, longest)| acked > longest) {
            return;
        }
        let taken = self.settle_syn_data(acked, keys);
        if waiting.is_some() {
            self.facts.syn_data_taken = Some(taken > 0);
            self.facts.fast_open.syn_data_acked = taken as u32;
        }
    }

    /// Puts the data of the SYN into the stream, as far as they were taken. Gives their number.
    fn settle_syn_data(&mut self, acked: u64, keys: &KeyLog) -> u64 {
        let Some(data) = self.syn.settle(acked) else { return 0 };
        if envelope::begins(data.segment_len, &data.bytes) {
            let (client, server) = (Unwrapper::new(2), Unwrapper::new(1));
            self.envelopes = Some(Box::new(Pair { client, server }));
        }
        self.payload(Sender::Client, 0, (&data.bytes, data.len), data.mark, keys);
        data.len as u64
    }

    fn segment_payload(
        &mut self,
        side: Sender,
        sequence: SeqNumber,
        payload: (&[u8], usize),
        mark: Mark,
        keys: &KeyLog,
    ) {
        let start = self.sides[side].offset(sequence);
        if side == Sender::Server
            && self.facts.syn_ack.is_some()
            && self.facts.handshake_ack.is_none()
        {
            self.facts.server_data_before_ack = true;
        }
        if side == Sender::Client
            && let Some((_, longest)) = self.syn.waiting()
        {
            // No word of the server was captured: the client knew it.
            self.settle_syn_data(longest.min(start.max(0) as u64), keys);
        }
        self.payload(side, start, payload, mark, keys);
    }

    /// Takes a payload, of which `len` bytes were sent, at an offset of the stream.
    fn payload(
        &mut self,
        side: Sender,
        start: i64,
        (payload, len): (&[u8], usize),
        mark: Mark,
        keys: &KeyLog,
    ) {
        let end = start.saturating_add(len as i64).max(0) as u64;
        self.first[side].get_or_insert(mark);
        if payload.len() < len && !self.done {
            self.facts.bytes_missing = true;
        }
        // Bytes before the stream's first: an old segment, or a capture that began later.
        let skipped = usize::try_from(start.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let payload = payload.get(skipped..).unwrap_or(&[]);
        let start = start.max(0) as u64;
        let sent_again = side == Sender::Client && self.syn.sent_again(start, payload);
        let behind = start < self.sides[side].highest;
        let duplicate = if self.done {
            end <= self.sides[side].highest
        } else {
            self.deliver(side, start, payload, mark, keys) == Kind::Duplicate
        };
        let facts = &mut self.facts;
        let (again, late, bytes) = if side == Sender::Client {
            let f = facts;
            (&mut f.client_retransmitted, &mut f.client_out_of_order, &mut f.client_payload_bytes)
        } else {
            let f = facts;
            (&mut f.server_retransmitted, &mut f.server_out_of_order, &mut f.server_payload_bytes)
        };
        if duplicate || sent_again {
            *again += 1;
        } else if behind {
            *late += 1;
        }
        let side = &mut self.sides[side];
        side.highest = side.highest.max(end);
        *bytes = side.highest;
    }

    fn deliver(
        &mut self,
        side: Sender,
        start: u64,
        payload: &[u8],
        mark: Mark,
        keys: &KeyLog,
    ) -> Kind {
        let (content, envelopes) = (&mut self.content, &mut self.envelopes);
        let kind = self.sides[side].stream.insert(start, payload, |bytes| match envelopes {
            None => content.deliver(side, bytes, mark, keys),
            Some(envelopes) => {
                content.begin_tls();
                unwrap(envelopes, content, side, (bytes, mark), keys);
            }
        });
        if self.content.is_done() {
            self.finish_streams();
        }
        kind
    }

    /// Nothing more of the streams is wanted.
    fn finish_streams(&mut self) {
        self.done = true;
        self.sides.client.stream.release();
        self.sides.server.stream.release();
        self.syn.release();
        self.content.release();
    }

    /// Bytes held beside its own: behind holes in both directions, data of SYNs, what the handshake
    /// holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let streams = self.sides.client.stream.held_bytes() + self.sides.server.stream.held_bytes();
        let held: usize = self.held.iter().map(|held| held.payload.len()).sum();
        let places = self.held.capacity() * size_of::<Held>();
        streams + self.syn.held_bytes() + held + places + self.content.held_bytes()
    }

    /// Gives up what is held, to save memory.
    pub(crate) fn give_up(&mut self) {
        self.sides.client.stream.give_up();
        self.sides.server.stream.give_up();
        let hello = self.content.give_up();
        let waiting = self.syn.waiting().is_some() || !self.held.is_empty();
        self.facts.bytes_missing |= hello || waiting;
        self.held = Vec::new();
        self.syn.release();
    }

    /// Completes the record.
    pub(crate) fn close(mut self: Box<Self>, connection: &mut Connection, keys: &KeyLog) {
        if let Some((first, _)) = self.syn.waiting() {
            // Nobody answered: what was sent first is what there is.
            self.settle_syn_data(first, keys);
        }
        self.choose_syn_ack(None);
        self.take_held(keys);
        let Pair { client, server } = &self.sides;
        let lacks =
            |side: &Side| side.stream.is_incomplete() || side.lacks_acknowledged(self.stream_bytes);
        let incomplete = lacks(client) || lacks(server);
        self.facts.bytes_missing |= incomplete && !self.done;
        if self.mid_stream {
            connection.uncertain.push(Uncertain::MidStream);
        }
        let first = self.first.client.map(|mark| mark.at);
        self.facts.client_payload = self.facts.client_payload.or(first);
        self.facts.server_payload = self.first.server.map(|mark| mark.at);
        let (client_data, server_data) = self.application_data(connection);
        connection.client_data = client_data.map(|mark| mark.at);
        connection.server_data = server_data.map(|mark| mark.at);
        connection.up_to_response = server_data.map(|mark| mark.traffic.client);
        connection.down_to_response = server_data.map(|mark| mark.traffic.server);
        let before = |ack: Time, data: Option<Mark>| data.is_some_and(|data| data.at < ack);
        if let (Some(ack), Some(_)) = (self.facts.handshake_ack, self.facts.syn_ack) {
            self.facts.server_data_before_ack &= before(ack, server_data);
        } else {
            self.facts.server_data_before_ack &= server_data.is_some();
        }
        connection.end = self.end;
        connection.tcp = Some(self.facts);
    }

    fn application_data(&mut self, connection: &mut Connection) -> (Option<Mark>, Option<Mark>) {
        let one_direction = connection.up.frames == 0 || connection.down.frames == 0;
        let content = std::mem::replace(&mut self.content, Content::new());
        let Some(mut handshake) = content.into_handshake(self.facts.bytes_missing) else {
            return (self.first.client, self.first.server);
        };
        handshake.close();
        self.facts.enveloped = self.envelopes.is_some();
        if one_direction {
            connection.uncertain.push(Uncertain::OneDirection);
        }
        // Bytes given up after all was found, such as a long upload, cast no doubt.
        let found = handshake.facts.client_finished.is_some()
            && handshake.client_data.is_some()
            && handshake.server_data.is_some();
        if self.facts.bytes_missing && !found {
            connection.uncertain.push(Uncertain::BytesMissing);
        }
        connection.uncertain.extend(&handshake.uncertain);
        let data = (handshake.client_data, handshake.server_data);
        connection.roles_known = true;
        connection.tls = Some(handshake.facts);
        data
    }
}

/// Hands on the payload of envelopes. What acknowledges the peer's stream is counted in payload, too.
fn unwrap(
    envelopes: &mut Pair<Unwrapper>,
    content: &mut Content,
    side: Sender,
    (mut bytes, mut mark): (&[u8], Mark),
    keys: &KeyLog,
) {
    mark.acked = mark.acked.saturating_sub(envelopes[side.peer()].overhead());
    while let Some(payload) = envelopes[side].next(&mut bytes) {
        content.deliver(side, payload, mark, keys);
    }
}

/// Bytes of the Fast Open cookie in a segment's options; 0 is the request for one.
fn cookie_len(segment: &Segment<'_>) -> Option<u8> {
    segment.options().map_while(Result::ok).find_map(|option| match option {
        TcpOption::FastOpen(fast_open) => Some(fast_open.cookie.len() as u8),
        _ => None,
    })
}
