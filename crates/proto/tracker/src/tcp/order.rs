//! Segments in the order of cause and effect. A segment that acknowledges bytes was sent after them. A capture
//! may show it before: two interfaces, two files, or two clocks. Such a segment waits until the bytes come,
//! until the peer goes on behind them, or until too many wait. Each keeps its own time.

use std::collections::VecDeque;

use units::SeqNumber;
use wire::tcp::{Flags, Segment};

use super::sequence::{FAR, end_of};
use super::{Input, TcpFlow};
use crate::keylog::KeyLog;
use crate::side::{Pair, Sender};
use crate::tls::Mark;

/// Segments of one side that wait at most: the flights of a handshake, and the first of an answer.
const WAITING: usize = 64;

/// A segment that waits.
#[derive(Debug)]
struct Waiting {
    /// Header, options, and the payload as far as wanted.
    bytes: Box<[u8]>,
    payload_len: usize,
    /// Its acknowledgment.
    acknowledged: Option<SeqNumber>,
    end: SeqNumber,
    mark: Mark,
}

/// Segments of one side that wait, in the order of capture.
#[derive(Debug, Default)]
struct Queue {
    segments: VecDeque<Waiting>,
    /// Where those that found no room any more end, and whether one of them was a FIN.
    beyond: Option<(SeqNumber, bool)>,
}

impl Queue {
    fn front(&self) -> Option<&Waiting> {
        self.segments.front()
    }

    fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

/// Segments that wait for their cause.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Whether the connection's beginning was captured, and something of it is still wanted.
    pub(super) watches: bool,
    queues: Option<Box<Pair<Queue>>>,
    held_bytes: usize,
}

impl Order {
    pub(super) fn new(watches: bool) -> Self {
        Order { watches, ..Order::default() }
    }

    fn front(&self, side: Sender) -> Option<&Waiting> {
        self.queues.as_ref()?[side].front()
    }

    fn is_empty(&self) -> bool {
        self.queues.is_none()
    }

    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Forgets what waits, and watches no more. Whether anything waited.
    pub(super) fn give_up(&mut self) -> bool {
        let waited = !self.is_empty();
        *self = Order::default();
        waited
    }

    fn push(&mut self, input: &Input<'_>, room: usize) {
        let payload = input.payload.get(..room).unwrap_or(input.payload);
        let bytes = input.segment.to_bytes(payload).into_boxed_slice();
        let waiting = Waiting {
            payload_len: input.payload_len,
            acknowledged: input.segment.acknowledgment().map(SeqNumber),
            end: end_of(&input.segment, input.payload_len),
            mark: input.mark,
            bytes,
        };
        self.held_bytes = self.held_bytes.saturating_add(waiting.held_bytes());
        self.queues.get_or_insert_default()[input.side].segments.push_back(waiting);
    }

    fn pop(&mut self, side: Sender) -> Option<Waiting> {
        let queues = self.queues.as_mut()?;
        let waiting = queues[side].segments.pop_front()?;
        self.held_bytes = self.held_bytes.saturating_sub(waiting.held_bytes());
        let over = |queue: &Queue| queue.is_empty() && queue.beyond.is_none();
        if over(&queues.client) && over(&queues.server) {
            self.queues = None;
        }
        Some(waiting)
    }

    /// Whether a side's queue has no room for more.
    fn is_full(&self, side: Sender, stream_bytes: u64) -> bool {
        let many = self.queues.as_ref().is_some_and(|all| all[side].segments.len() >= WAITING);
        many || self.held_bytes as u64 > stream_bytes
    }

    /// Notes a segment that found no room.
    fn pass(&mut self, input: &Input<'_>) {
        let Some(queues) = &mut self.queues else { return };
        let (end, fin) = (end_of(&input.segment, input.payload_len), input.segment.flags());
        let beyond = queues[input.side].beyond.get_or_insert((end, false));
        if end.distance(beyond.0) > 0 {
            beyond.0 = end;
        }
        beyond.1 |= fin.has(Flags::FIN);
    }

    /// The side whose front was sent first: the other has seen it, or else the earlier one.
    fn first(&self) -> Option<Sender> {
        let (client, server) = (self.front(Sender::Client), self.front(Sender::Server));
        let (Some(client), Some(server)) = (client, server) else {
            return client.map(|_| Sender::Client).or(server.map(|_| Sender::Server));
        };
        let saw = |who: &Waiting, what: &Waiting| {
            who.acknowledged.is_some_and(|ack| ack.distance(what.end) >= 0)
        };
        Some(match (saw(server, client), saw(client, server)) {
            (true, false) => Sender::Client,
            (false, true) => Sender::Server,
            _ if client.mark.at <= server.mark.at => Sender::Client,
            _ => Sender::Server,
        })
    }
}

impl Waiting {
    const fn held_bytes(&self) -> usize {
        self.bytes.len().saturating_add(2 * size_of::<Waiting>())
    }
}

impl TcpFlow {
    /// Takes a segment when what it acknowledges has been taken.
    pub(super) fn handle_in_order(&mut self, input: &Input<'_>) {
        let (side, keys) = (input.side, input.keys);
        if !self.order.is_empty() {
            // Bytes before this segment were captured by now, or never will be.
            self.release(Some((side, SeqNumber(input.segment.sequence()))), keys);
        }
        let acknowledged = input.segment.acknowledgment().map(SeqNumber);
        if self.order.front(side).is_some() || self.is_early(side, acknowledged, None) {
            self.wait(input);
        } else {
            self.take(input);
            self.release(None, keys);
        }
        if self.done && self.order.watches {
            self.flush(keys);
        }
    }

    /// Whether a segment acknowledges bytes that have not been taken. `shown`: the peer goes on from here.
    fn is_early(&self, side: Sender, ack: Option<SeqNumber>, shown: Option<SeqNumber>) -> bool {
        let Some(ack) = ack else { return false };
        let near = |from: SeqNumber| i64::from(ack.distance(from)) <= FAR as i64;
        if shown.is_some_and(|shown| ack.distance(shown) <= 0 && near(shown)) {
            return false;
        }
        match self.next_of(side.peer()) {
            Some(next) => ack.distance(next) > 0 && near(next),
            // Which of two SYN+ACKs counts only an acknowledgment says.
            None => self.syn_acks.is_none(),
        }
    }

    /// The number behind what was taken of a side, SYN and FIN included; `None` before its beginning.
    fn next_of(&self, side: Sender) -> Option<SeqNumber> {
        let one = &self.sides[side];
        let Some(base) = one.base else {
            let held = self.held.iter().filter(|_| side == Sender::Server);
            let ends = held.map(|held| held.sequence + held.len as u32);
            return ends.reduce(|a, b| if b.distance(a) > 0 { b } else { a });
        };
        let syn_data = match side {
            Sender::Client => self.syn.waiting().map_or(0, |(_, longest)| longest),
            Sender::Server => 0,
        };
        Some(base + one.highest.max(syn_data) as u32 + u32::from(one.fin))
    }

    fn wait(&mut self, input: &Input<'_>) {
        let side = input.side;
        if self.order.is_full(side, self.stream_bytes) {
            let peer = side.peer();
            if self.sides[peer].highest == 0 && self.order.front(peer).is_none() {
                // The other direction may come as a whole later: of this one enough is known.
                self.order.pass(input);
            } else {
                self.flush(input.keys);
                self.take(input);
            }
            return;
        }
        let room = usize::try_from(self.stream_bytes).unwrap_or(usize::MAX);
        self.order.push(input, room);
        // Both wait for each other: what one of them acknowledges was never captured.
        while let (Some(_), Some(_)) =
            (self.order.front(Sender::Client), self.order.front(Sender::Server))
        {
            let Some(first) = self.order.first() else { break };
            self.take_front(first, input.keys);
            self.release(None, input.keys);
        }
    }

    /// Takes all that need not wait any longer. `shown`: a side goes on from this number.
    fn release(&mut self, shown: Option<(Sender, SeqNumber)>, keys: &KeyLog) {
        loop {
            let free = [Sender::Client, Sender::Server].into_iter().find(|side| {
                let shown = shown.filter(|(who, _)| *who == side.peer()).map(|(_, from)| from);
                let front = self.order.front(*side);
                front.is_some_and(|front| !self.is_early(*side, front.acknowledged, shown))
            });
            let Some(side) = free else { return };
            self.take_front(side, keys);
        }
    }

    fn take_front(&mut self, side: Sender, keys: &KeyLog) {
        let Some(waiting) = self.order.pop(side) else { return };
        let Waiting { bytes, payload_len, mark, .. } = waiting;
        if let Ok(segment) = Segment::new_checked(&bytes) {
            let payload = segment.payload();
            self.take(&Input { segment, payload, payload_len, side, mark, keys });
        }
        let beyond = self.order.queues.as_mut().and_then(|all| {
            let queue = &mut all[side];
            queue.beyond.take_if(|_| queue.segments.is_empty())
        });
        if let Some((end, fin)) = beyond {
            self.skip_to(side, end, fin);
        }
        if self.order.queues.as_ref().is_some_and(|all| {
            let over = |queue: &Queue| queue.is_empty() && queue.beyond.is_none();
            over(&all.client) && over(&all.server)
        }) {
            self.order.queues = None;
        }
    }

    /// A side went on up to this number in segments that were not kept.
    fn skip_to(&mut self, side: Sender, end: SeqNumber, fin: bool) {
        let offset = self.sides[side].offset(end).max(0) as u64;
        let of_side = &mut self.sides[side];
        of_side.highest = of_side.highest.max(offset.saturating_sub(fin.into()));
        self.note_fin(side, fin);
    }

    /// Takes all that waits, and watches no more.
    pub(super) fn flush(&mut self, keys: &KeyLog) {
        self.order.watches = false;
        while let Some(side) = self.order.first() {
            self.take_front(side, keys);
            self.release(None, keys);
        }
    }

    /// Whether a SYN begins another connection than the SYN+ACK that waits for its SYN.
    pub(super) fn is_of_other_syn(&self, first: SeqNumber) -> bool {
        let waiting = self.order.front(Sender::Server).and_then(|front| front.acknowledged);
        waiting.is_some_and(|ack| !(0..=FAR as i32).contains(&ack.distance(first)))
    }
}
