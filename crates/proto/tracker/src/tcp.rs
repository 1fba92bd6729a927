//! One TCP connection: sequence numbers, both streams, Fast Open, how it ends.

mod clocks;
mod copies;
mod opening;
mod order;
mod outcome;
mod payload;
pub(crate) mod reported;
mod sequence;

use units::{SeqNumber, Time};
use wire::tcp::{Flags, Segment};

use self::clocks::Clocks;
use self::copies::Seen;
use self::order::Order;
use self::sequence::SynAck;
use crate::content::Content;
use crate::envelope::Unwrapper;
use crate::keylog::KeyLog;
use crate::reassembly::Reassembler;
use crate::record::{End, TcpFacts};
use crate::side::{Pair, Sender};
use crate::syn_data::SynDataState;
use crate::tls::Mark;

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
    /// When the furthest byte, or the SYN, came first.
    advanced_at: Option<Time>,
    /// The last bytes were sent again since.
    sent_again: bool,
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
    order: Order,
    clocks: Clocks,
    /// The latest SYN and SYN+ACK.
    seen: Pair<Option<Seen>>,
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

/// Bytes by which Ethernet lengthens the shortest acknowledgment at most.
const PADDING: usize = 6;

/// FIN, SYN, RST, PSH and URG.
const OTHER_FLAGS: u8 = 0x2f;

/// Whether a payload is padding of a bare acknowledgment that the IP header counts, as some devices write it:
/// a few zeros. Whoever sends as few bytes of data pushes them.
pub(crate) fn is_padding(segment: &Segment<'_>, payload: &[u8], payload_len: usize) -> bool {
    (1..=PADDING).contains(&payload_len)
        && payload.iter().all(|byte| *byte == 0)
        && segment.flags().has(Flags::ACK)
        && segment.flags().0 & OTHER_FLAGS == 0
}

impl TcpFlow {
    /// A connection of which nothing has been taken. `opening`: it begins with a SYN or a SYN+ACK.
    pub(crate) fn new(stream_bytes: u64, mid_stream: bool, opening: bool) -> Self {
        let side = || Side {
            base: None,
            stream: Reassembler::new(stream_bytes),
            highest: 0,
            acked: 0,
            advanced_at: None,
            sent_again: false,
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
            order: Order::new(opening),
            clocks: Clocks::default(),
            seen: Pair::default(),
        }
    }

    /// Whether both sides are through.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || (self.sides.client.fin && self.sides.server.fin)
    }

    /// Takes a segment as it was captured.
    pub(crate) fn handle(&mut self, input: &Input<'_>) {
        if is_padding(&input.segment, input.payload, input.payload_len) {
            self.handle_bare(&Input { payload: &[], payload_len: 0, ..*input });
        } else {
            self.handle_bare(input);
        }
    }

    /// Takes a segment without padding.
    fn handle_bare(&mut self, input: &Input<'_>) {
        if self.order.watches { self.handle_in_order(input) } else { self.take(input) }
    }

    /// Takes a segment.
    fn take(&mut self, input: &Input<'_>) {
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
            if self.order.watches {
                self.compare_clocks(side, at, mark.acked);
            }
            if side == Sender::Client && !flags.has(Flags::SYN) && self.facts.syn_ack.is_some() {
                // Frames of one direction may be out of order, too.
                let first = self.facts.handshake_ack.get_or_insert(at);
                *first = at.min(*first);
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
        self.note_fin(side, flags.has(Flags::FIN));
        if flags.has(Flags::RST) {
            self.reset = true;
            if self.end == End::Open {
                self.end = End::Reset;
            }
        }
    }

    fn note_fin(&mut self, side: Sender, fin: bool) {
        if fin && !self.reset {
            self.sides[side].fin = true;
            self.end = End::Fin;
        }
    }

    /// Bytes held beside its own: behind holes in both directions, data of SYNs, what the handshake
    /// holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let streams = self.sides.client.stream.held_bytes() + self.sides.server.stream.held_bytes();
        let held: usize = self.held.iter().map(|held| held.payload.len()).sum();
        let places = self.held.capacity() * size_of::<Held>();
        let waiting = self.syn.held_bytes() + self.order.held_bytes();
        streams + waiting + held + places + self.content.held_bytes()
    }

    /// Gives up what is held, to save memory.
    pub(crate) fn give_up(&mut self) {
        self.sides.client.stream.give_up();
        self.sides.server.stream.give_up();
        let hello = self.content.give_up();
        let waiting = self.syn.waiting().is_some() || !self.held.is_empty();
        let waiting = self.order.give_up() || waiting;
        self.facts.bytes_missing |= hello || waiting;
        self.held = Vec::new();
        self.syn.release();
    }
}
