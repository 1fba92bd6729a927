//! What came of a stream of frames.

use std::time::Duration;

use hdrhistogram::Histogram;
use units::Time;

use crate::Probe;

/// Delays are told apart to this share of themselves: 3 significant digits.
const DIGITS: u8 = 3;
/// The longest delay that is told: 60 s.
const LONGEST: u64 = 60_000_000_000;

/// Numbers behind the highest that are remembered, to tell a late frame from one that came twice.
const REMEMBERED: u64 = 65_536;

/// Delays of a stream, one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Shortest delay of a frame.
    pub least: Duration,
    /// Half of the frames take at most so long.
    pub median: Duration,
    /// 99 of 100 frames take at most so long.
    pub p99: Duration,
    /// 999 of 1000.
    pub p999: Duration,
    /// Longest delay of a frame.
    pub longest: Duration,
    /// Mean over all frames.
    pub mean: Duration,
}

/// The order of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Its number is above all before.
    InOrder,
    /// It came after one of a higher number (RFC 4737 §3.3).
    Reordered,
    /// It had come before.
    Duplicate,
    /// It is so late that nobody knows whether it had come before.
    TooLate,
}

/// The longest time without a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the last frame before it came.
    pub from: Time,
    /// When the next one came.
    pub to: Time,
}

impl Gap {
    /// How long it was, from frame to frame.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

/// What came of a stream. Memory is bounded, whatever comes.
pub struct Tally {
    stream: u16,
    delays: Histogram<u64>,
    received: u64,
    bytes: u64,
    duplicates: u64,
    reordered: u64,
    too_late: u64,
    foreign: u64,
    /// One above the highest number.
    next: u64,
    /// Whether the last numbers came, a bit each.
    seen: Box<[u64]>,
    first: Option<Time>,
    last: Option<Time>,
    gap: Option<Gap>,
}

impl Tally {
    /// Of a stream, before anything came.
    #[must_use]
    pub fn new(stream: u16) -> Self {
        #[allow(clippy::expect_used, reason = "the bounds are constants that it takes")]
        let delays = Histogram::new_with_bounds(1, LONGEST, DIGITS).expect("good bounds");
        Tally {
            stream,
            delays,
            received: 0,
            bytes: 0,
            duplicates: 0,
            reordered: 0,
            too_late: 0,
            foreign: 0,
            next: 0,
            seen: vec![0; (REMEMBERED / 64) as usize].into(),
            first: None,
            last: None,
            gap: None,
        }
    }

    /// A frame of `len` bytes came; its probe.
    pub fn receive(&mut self, now: Time, probe: &Probe, len: usize) -> Option<Order> {
        if probe.stream != self.stream {
            self.foreign += 1;
            return None;
        }
        let order = self.order_of(u64::from(probe.number));
        match order {
            Order::Duplicate => {
                self.duplicates += 1;
                return Some(order);
            }
            Order::TooLate => {
                self.too_late += 1;
                return Some(order);
            }
            Order::Reordered => self.reordered += 1,
            Order::InOrder => {}
        }
        self.received += 1;
        self.bytes = self.bytes.saturating_add(len as u64);
        self.delays.saturating_record(now.saturating_since(probe.sent).as_nanos() as u64);
        if let Some(last) = self.last {
            let gap = Gap { from: last, to: now };
            if self.gap.is_none_or(|longest| gap.duration() > longest.duration()) {
                self.gap = Some(gap);
            }
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        Some(order)
    }

    fn order_of(&mut self, number: u64) -> Order {
        if number >= self.next {
            self.forget_between(self.next, number);
            self.set(number);
            self.next = number.saturating_add(1);
            return Order::InOrder;
        }
        if self.next - number > REMEMBERED {
            return Order::TooLate;
        }
        if self.is_set(number) {
            return Order::Duplicate;
        }
        self.set(number);
        Order::Reordered
    }

    /// Clears what the numbers from `from` up to `to` take the place of.
    fn forget_between(&mut self, from: u64, to: u64) {
        if to - from >= REMEMBERED {
            self.seen.fill(0);
            return;
        }
        let mut number = from;
        while number <= to {
            let bit = number % 64;
            let count = (to - number + 1).min(64 - bit);
            // A whole word at a time, where there is one.
            let mask = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
            if let Some(word) = self.seen.get_mut(index(number)) {
                *word &= !mask;
            }
            number += count;
        }
    }

    fn set(&mut self, number: u64) {
        if let Some(word) = self.seen.get_mut(index(number)) {
            *word |= 1 << (number % 64);
        }
    }

    fn is_set(&self, number: u64) -> bool {
        self.seen.get(index(number)).is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    /// Frames that came, each counted once.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes of the frames that came, each counted once.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames that did not come, of so many sent. What came too late to be told counts as come.
    #[must_use]
    pub const fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received).saturating_sub(self.too_late)
    }

    /// Frames that came more than once, each further time.
    #[must_use]
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Frames that came after one of a higher number.
    #[must_use]
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    /// Frames of other streams.
    #[must_use]
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }

    /// The longest time without a frame between two that came.
    #[must_use]
    pub const fn longest_gap(&self) -> Option<Gap> {
        self.gap
    }

    /// From the first frame to the last.
    #[must_use]
    pub fn lasted(&self) -> Option<Duration> {
        Some(self.last?.saturating_since(self.first?))
    }

    /// Delays one way; `None` before the first frame.
    #[must_use]
    pub fn delays(&self) -> Option<Delays> {
        if self.delays.is_empty() {
            return None;
        }
        let at = |share| Duration::from_nanos(self.delays.value_at_quantile(share));
        Some(Delays {
            least: Duration::from_nanos(self.delays.min()),
            median: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            longest: Duration::from_nanos(self.delays.max()),
            mean: Duration::from_nanos(self.delays.mean() as u64),
        })
    }
}

fn index(number: u64) -> usize {
    (number % REMEMBERED / 64) as usize
}
