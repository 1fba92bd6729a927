//! One TCP connection, put in order to its end.

use std::collections::VecDeque;

use units::{SeqNumber, Time};
use wire::tcp::{Flags, Segment};

use super::session::Session;
use super::{StreamEvent, StreamFact, Unreadable, is_client};
use crate::envelope::{self, Unwrapper};
use crate::keylog::KeyLog;
use crate::reassembly::Reassembler;
use crate::record::End;
use crate::side::{Pair, Sender};

/// Bytes of a direction that are held behind a hole: the largest receive window of common kernels.
const ROOM: usize = 32 << 20;
/// Segments of a direction that are held behind a hole.
const PIECES: usize = 8 << 10;

/// A segment, and how much of it was captured.
pub(super) struct Input<'a> {
    pub(super) segment: Segment<'a>,
    /// As far as it was captured.
    pub(super) payload: &'a [u8],
    /// As long as it was.
    pub(super) payload_len: usize,
    pub(super) side: Sender,
    pub(super) at: Time,
    pub(super) keys: &'a KeyLog,
}

/// One direction of a connection.
#[derive(Debug)]
struct Half {
    /// The sequence number of the stream's first byte.
    base: Option<SeqNumber>,
    stream: Reassembler,
    /// The furthest byte seen, relative to `base`.
    highest: u64,
    /// Where it ends, once its FIN was seen.
    end: Option<u64>,
}

impl Half {
    fn new(base: Option<SeqNumber>) -> Self {
        let stream = Reassembler::whole(u64::MAX, (ROOM, PIECES));
        Half { base, stream, highest: 0, end: None }
    }

    /// Where a sequence number lies in the stream; negative before it.
    fn offset(&self, sequence: SeqNumber) -> i64 {
        let Some(base) = self.base else { return 0 };
        // The furthest byte is the anchor, so that streams may be longer than 2^32.
        let anchor = base + self.highest as u32;
        (self.highest as i64).saturating_add(i64::from(sequence.distance(anchor)))
    }

    /// Whether all of it was handed on.
    fn is_through(&self) -> bool {
        self.end.is_some_and(|end| self.stream.next() >= end)
    }
}

/// A connection that is read.
#[derive(Debug)]
pub(super) struct Flow {
    number: u64,
    client_is_low: bool,
    halves: Pair<Half>,
    /// Data of the SYN, until the server says how much of them it took.
    syn_data: Option<(Time, usize, Box<[u8]>)>,
    /// What takes off SSLmTCP's envelopes, where there are any.
    envelopes: Option<Box<Pair<Unwrapper>>>,
    session: Session,
    end: End,
    reset: bool,
}

impl Flow {
    /// One that this SYN begins.
    pub(super) fn new(number: u64, client_is_low: bool, syn: &Segment<'_>) -> Self {
        let base = SeqNumber(syn.sequence()) + 1;
        Flow {
            number,
            client_is_low,
            halves: Pair { client: Half::new(Some(base)), server: Half::new(None) },
            syn_data: None,
            envelopes: None,
            session: Session::default(),
            end: End::Open,
            reset: false,
        }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Who sent a segment.
    pub(super) const fn sender(&self, from_low: bool) -> Sender {
        if from_low == self.client_is_low { Sender::Client } else { Sender::Server }
    }

    /// Whether this SYN is the one that began it, sent again.
    pub(super) fn is_begun_by(&self, syn: &Segment<'_>, from_low: bool) -> bool {
        self.sender(from_low) == Sender::Client
            && self.halves.client.base == Some(SeqNumber(syn.sequence()) + 1)
    }

    /// Whether both sides are through, or one has reset it.
    pub(super) fn is_over(&self) -> bool {
        self.reset || (self.halves.client.is_through() && self.halves.server.is_through())
    }

    /// Bytes held: behind holes, of records that are not whole, of a SYN.
    pub(super) fn held_bytes(&self) -> usize {
        let streams =
            self.halves.client.stream.held_bytes() + self.halves.server.stream.held_bytes();
        let syn = self.syn_data.as_ref().map_or(0, |(_, _, bytes)| bytes.len());
        streams + syn + self.session.held_bytes()
    }

    /// Takes a segment.
    pub(super) fn handle(&mut self, input: &Input<'_>, ready: &mut VecDeque<StreamEvent>) {
        let (flags, side) = (input.segment.flags(), input.side);
        let sequence = SeqNumber(input.segment.sequence());
        let is_syn = flags.has(Flags::SYN);
        let data = if is_syn { sequence + 1 } else { sequence };
        let mut facts = Vec::new();
        if side == Sender::Server && is_syn && self.halves.server.base.is_none() {
            self.halves.server.base = Some(data);
        }
        if let Some(acknowledged) = input.segment.acknowledgment().map(SeqNumber) {
            let peer = &mut self.halves[side.peer()];
            if side == Sender::Client && peer.base.is_none() {
                // The SYN+ACK was not captured: this is what it said, or the first byte behind that.
                peer.base = Some(acknowledged);
            }
            if side == Sender::Server && self.syn_data.is_some() {
                let taken = self.halves.client.offset(acknowledged).max(0);
                self.take_syn_data(usize::try_from(taken).unwrap_or(0), input.keys, &mut facts);
            }
        }
        if is_syn && side == Sender::Client {
            if input.payload_len > 0 && self.syn_data.is_none() {
                let segment_len = input.segment.header_len().saturating_add(input.payload_len);
                self.syn_data = Some((input.at, segment_len, input.payload.into()));
            }
        } else if input.payload_len > 0 && self.halves[side].base.is_some() {
            self.payload(side, self.halves[side].offset(data), input, &mut facts);
        }
        if flags.has(Flags::FIN) {
            let half = &mut self.halves[side];
            let end = half.offset(data).saturating_add(input.payload_len as i64).max(0) as u64;
            half.end.get_or_insert(end);
            if self.end == End::Open {
                self.end = End::Fin;
            }
        }
        if flags.has(Flags::RST) && self.is_in_order(side, sequence) {
            self.reset = true;
            if self.end == End::Open {
                self.end = End::Reset;
            }
        }
        self.tell(facts, ready);
    }

    /// A reset counts only where its sequence number lies at what was seen, or behind (RFC 9293 §3.5.3);
    /// the server's answer to a SYN has none.
    fn is_in_order(&self, side: Sender, sequence: SeqNumber) -> bool {
        let half = &self.halves[side];
        half.base.is_none() || half.offset(sequence) >= half.highest as i64
    }

    /// Puts the data of the SYN into the stream, as far as the server took them (RFC 7413 §4.2.2).
    fn take_syn_data(&mut self, taken: usize, keys: &KeyLog, facts: &mut Vec<Fact>) {
        let Some((at, segment_len, bytes)) = self.syn_data.take() else { return };
        let taken = bytes.get(..taken).unwrap_or(&bytes);
        if taken.is_empty() {
            return;
        }
        if envelope::begins(segment_len, taken) {
            let (client, server) = (Unwrapper::new(2), Unwrapper::new(1));
            self.envelopes = Some(Box::new(Pair { client, server }));
        }
        self.insert(Sender::Client, 0, taken, at, keys, facts);
    }

    fn payload(&mut self, side: Sender, start: i64, input: &Input<'_>, facts: &mut Vec<Fact>) {
        // Bytes before the stream's first: a keep-alive's.
        let skipped = usize::try_from(start.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let end = start.saturating_add(input.payload_len as i64).max(0) as u64;
        let payload = input.payload.get(skipped..).unwrap_or(&[]);
        self.insert(side, start.max(0) as u64, payload, input.at, input.keys, facts);
        let half = &mut self.halves[side];
        half.highest = half.highest.max(end);
    }

    fn insert(
        &mut self,
        side: Sender,
        start: u64,
        payload: &[u8],
        at: Time,
        keys: &KeyLog,
        facts: &mut Vec<Fact>,
    ) {
        if self.session.is_unreadable(side) {
            return;
        }
        let (session, envelopes) = (&mut self.session, &mut self.envelopes);
        let half = &mut self.halves[side];
        half.stream.insert(start, payload, |bytes| match envelopes {
            None => session.deliver(side, bytes, at, keys, facts),
            Some(envelopes) => {
                let mut bytes = bytes;
                while let Some(inside) = envelopes[side].next(&mut bytes) {
                    session.deliver(side, inside, at, keys, facts);
                }
            }
        });
        half.highest = half.highest.max(start.saturating_add(payload.len() as u64));
        if half.stream.has_overflowed() {
            half.stream.release();
            self.session.stop(side, at, Unreadable::NoRoom, facts);
        } else if self.session.is_unreadable(side) {
            half.stream.release();
        }
    }

    /// Lets go of all that is held; what is behind it cannot be read.
    pub(super) fn give_up(&mut self, at: Time, why: Unreadable, ready: &mut VecDeque<StreamEvent>) {
        let mut facts = Vec::new();
        for side in [Sender::Client, Sender::Server] {
            self.halves[side].stream.release();
            self.session.stop(side, at, why, &mut facts);
        }
        self.syn_data = None;
        self.session.release();
        self.tell(facts, ready);
    }

    /// Says how it ended, and what of it never came.
    pub(super) fn end(&mut self, at: Time, ready: &mut VecDeque<StreamEvent>) {
        let mut facts = Vec::new();
        for side in [Sender::Client, Sender::Server] {
            let half = &self.halves[side];
            let short = half.end.is_some_and(|end| half.stream.next() < end);
            if half.stream.is_incomplete() || short {
                self.session.stop(side, at, Unreadable::Missing, &mut facts);
            }
        }
        facts.push((at, StreamFact::Ended(self.end)));
        self.tell(facts, ready);
    }

    fn tell(&self, facts: Vec<Fact>, ready: &mut VecDeque<StreamEvent>) {
        let connection = self.number;
        ready.extend(facts.into_iter().map(|(at, fact)| StreamEvent { connection, at, fact }));
    }
}

/// A fact and its time.
pub(super) type Fact = (Time, StreamFact);

/// A direction that is not read from here on.
pub(super) fn unreadable(side: Sender, at: Time, why: Unreadable) -> Fact {
    (at, StreamFact::Unreadable { from_client: is_client(side), why })
}
