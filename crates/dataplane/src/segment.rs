//! A part at work: frames from its port through its nodes to the other port.

use std::collections::VecDeque;
use std::rc::Rc;

use packet::clock::RealtimeOffset;
use packet::{BATCH, Buffer, OpenPort, Outlet, Pool, PortCounters, SendBatch, Sent, Sink};
use seclink::Slot;
use seclink::plane::Hop;
use units::Time;

use crate::board::PartBoard;
use crate::chain::Part;

/// Frames that a slow gateway holds without memory being asked for.
const HELD: usize = 256;

/// A part at work.
pub(crate) struct Segment {
    pub(crate) input: OpenPort,
    hops: Vec<Hop>,
    output: Outlet,
    /// Frames to be sent by the next system call.
    outbox: Vec<Buffer>,
    /// Frames that a slow gateway holds, and until when, in order.
    held: VecDeque<(Time, Buffer)>,
    /// Up to this time all frames have been taken.
    horizon: Time,
    came: PortCounters,
    sent: Sent,
    /// The port failed for good.
    pub(crate) broken: bool,
}

/// Where a port's frames go.
struct Inlet<'s> {
    hops: &'s mut [Hop],
    outbox: &'s mut Vec<Buffer>,
    held: &'s mut VecDeque<(Time, Buffer)>,
}

impl Sink for Inlet<'_> {
    #[inline]
    fn frame(&mut self, arrival: Time, mut buffer: Buffer) {
        let (whole, range) = buffer.whole_mut();
        let Some(mut slot) = Slot::new(whole, range) else { return };
        let mut leaves = None;
        for hop in &mut *self.hops {
            match hop.handle(arrival, &mut slot) {
                Ok(at) => leaves = leaves.max(at),
                // Counted by the hop; the buffer goes back to its pool.
                Err(_) => return,
            }
        }
        let range = slot.range();
        buffer.set_range(range);
        match leaves {
            None => self.outbox.push(buffer),
            Some(at) => self.held.push_back((at, buffer)),
        }
    }
}

impl Segment {
    pub(crate) fn new(part: Part, now: Time) -> Segment {
        Segment {
            input: part.input,
            hops: part.hops,
            output: part.output,
            outbox: Vec::with_capacity(2 * BATCH),
            held: VecDeque::with_capacity(HELD),
            horizon: now,
            came: PortCounters::default(),
            sent: Sent::default(),
            broken: false,
        }
    }

    /// Takes frames, works on them and sends what is to leave by `now`. Whether there was anything to do.
    pub(crate) fn turn(
        &mut self,
        now: Time,
        offset: RealtimeOffset,
        pool: &Rc<Pool>,
        batch: &mut SendBatch,
    ) -> bool {
        let Segment { hops, outbox, held, came, .. } = self;
        let mut any = false;
        if !self.broken {
            let mut inlet = Inlet { hops, outbox, held };
            let taken = self.input.take(now, self.horizon, offset, pool, came, &mut inlet);
            (self.horizon, self.broken, any) = (taken.horizon, taken.broken, taken.any);
        }
        while self.outbox.len() < 2 * BATCH && self.held.front().is_some_and(|(at, _)| *at <= now) {
            self.outbox.extend(self.held.pop_front().map(|(_, buffer)| buffer));
            any = true;
        }
        if !self.outbox.is_empty() {
            let sent = self.output.send_all(batch, self.outbox.iter().map(Buffer::wire_bytes));
            self.sent.given += sent.given;
            self.sent.refused += sent.refused;
            self.sent.calls += sent.calls;
            self.outbox.clear();
        }
        any
    }

    /// When the next frame that is held leaves.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.held.front().map(|(at, _)| *at)
    }

    /// Whether a frame waits, as far as that is known without a system call.
    pub(crate) fn is_ready(&self) -> bool {
        self.input.is_ready()
    }

    /// Writes what it has done where others read it.
    pub(crate) fn publish(&self, board: &PartBoard) {
        for (at, hop) in self.hops.iter().enumerate() {
            board.hop(at, hop.counters());
        }
        board.ports(&self.came, &self.sent);
    }
}
