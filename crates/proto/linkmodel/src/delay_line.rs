//! Frames on their way, in the order in which they are due.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use units::Time;

use crate::config::{DELAY_LINE_BYTES, DELAY_LINE_FRAMES};

/// A frame on its way. Ordered by due time, ties by arrival, the earliest greatest, as
/// [`BinaryHeap`] wants it.
#[derive(Debug)]
struct Entry<F> {
    due: Time,
    seq: u64,
    len: usize,
    frame: F,
}

impl<F> Entry<F> {
    fn key(&self) -> (Time, u64) {
        (self.due, self.seq)
    }
}

impl<F> Ord for Entry<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<F> PartialOrd for Entry<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> PartialEq for Entry<F> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<F> Eq for Entry<F> {}

/// Frames on their way. Those that are due after all others, which is nearly all, are in a ring;
/// those that overtake in a heap. Both grow to what was needed once and stay.
#[derive(Debug)]
pub(crate) struct DelayLine<F> {
    ring: VecDeque<Entry<F>>,
    heap: BinaryHeap<Entry<F>>,
    bytes: usize,
}

impl<F> DelayLine<F> {
    pub(crate) fn new() -> Self {
        DelayLine { ring: VecDeque::new(), heap: BinaryHeap::new(), bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.ring.len() + self.heap.len()
    }

    /// Bytes of the frames on their way.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn has_room_for(&self, len: usize) -> bool {
        self.len() < DELAY_LINE_FRAMES && self.bytes.saturating_add(len) <= DELAY_LINE_BYTES
    }

    pub(crate) fn push(&mut self, due: Time, seq: u64, len: usize, frame: F) {
        self.bytes += len;
        let entry = Entry { due, seq, len, frame };
        match self.ring.back() {
            Some(last) if last.key() > entry.key() => self.heap.push(entry),
            _ => self.ring.push_back(entry),
        }
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        match (self.ring.front(), self.heap.peek()) {
            (Some(a), Some(b)) => Some(a.due.min(b.due)),
            (a, b) => a.or(b).map(|entry| entry.due),
        }
    }

    /// Takes the frame that is due first, if it is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(F, usize, Time)> {
        let from_heap = match (self.ring.front(), self.heap.peek()) {
            (Some(ring), Some(heap)) => heap.key() < ring.key(),
            (ring, _) => ring.is_none(),
        };
        if self.next_due()? > now {
            return None;
        }
        let entry = if from_heap { self.heap.pop() } else { self.ring.pop_front() }?;
        self.bytes -= entry.len;
        Some((entry.frame, entry.len, entry.due))
    }
}
