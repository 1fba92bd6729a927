//! A stream out of sends and arrivals, in bounded memory.

use std::time::Duration;

use units::Time;

use crate::{Received, Sent, Stream};

/// Numbers above this one are not looked at: 16 million, an hour at 4660 frames per second.
const HIGHEST: u64 = (1 << 24) - 1;

/// Gaps that are kept, the longest first.
const MOST_GAPS: usize = 8;

/// Runs of lost numbers that are kept. Frames lost are counted past it all the same.
const MOST_RUNS: usize = 65_536;

/// A frame that took longer than this was held somewhere: the links' own delays are far below.
pub const LATE: Duration = Duration::from_millis(50);

/// What left, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    count: u64,
    span: Option<(Time, Time)>,
}

impl Departures {
    /// Before anything left.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// So many frames have left, the first and the last at these times.
    #[must_use]
    pub const fn of(count: u64, span: (Time, Time)) -> Self {
        Departures { count, span: Some(span) }
    }

    /// A frame left. Numbers are 0, 1, 2 and so on.
    pub fn note(&mut self, sent: Sent) {
        self.count = self.count.max(sent.number.saturating_add(1));
        let first = self.span.map_or(sent.at, |(first, _)| first);
        self.span = Some((first, sent.at));
    }

    /// Frames that left.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

/// What came, in one direction. Memory is bounded, whatever comes.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Whether a number came, a bit each.
    seen: Vec<u64>,
    received: u64,
    duplicates: u64,
    reordered: u64,
    late: u64,
    highest: Option<u64>,
    last: Option<Received>,
    /// The longest first.
    gaps: Vec<(Received, Received)>,
}

impl Tally {
    /// Before anything came.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A frame came. Frames are given in the order in which they came; one whose number no trial reaches is
    /// passed over.
    pub fn note(&mut self, frame: Received) {
        if frame.number > HIGHEST {
            return;
        }
        if self.set(frame.number) {
            self.duplicates += 1;
            return;
        }
        self.received += 1;
        if self.highest.is_some_and(|highest| frame.number < highest) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(frame.number));
        if frame.at.saturating_since(frame.sent) > LATE {
            self.late += 1;
        }
        if let Some(last) = self.last.replace(frame) {
            self.keep(last, frame);
        }
    }

    /// What came of the frames that left.
    #[must_use]
    pub fn stream(&self, departures: &Departures) -> Stream {
        Stream {
            sent: departures.count,
            received: self.received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            late: self.late,
            lost: self.lost_among(departures.count),
            gaps: self.gaps.clone(),
            last: self.last,
            span: departures.span.unwrap_or_default(),
        }
    }

    /// Notes that a number came; whether it had before.
    fn set(&mut self, number: u64) -> bool {
        let (index, bit) = place(number);
        if index >= self.seen.len() {
            self.seen.resize(index + 1, 0);
        }
        let Some(word) = self.seen.get_mut(index) else { return false };
        let was_set = *word & bit != 0;
        *word |= bit;
        was_set
    }

    fn has(&self, number: u64) -> bool {
        let (index, bit) = place(number);
        self.seen.get(index).is_some_and(|word| word & bit != 0)
    }

    /// Runs of numbers below `count` that never came.
    fn lost_among(&self, count: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for number in (0..count.min(HIGHEST + 1)).filter(|number| !self.has(*number)) {
            let is_full = runs.len() == MOST_RUNS;
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ if is_full => break,
                _ => runs.push((number, number)),
            }
        }
        runs
    }

    /// Keeps the time between two arrivals if it is among the longest. Of equal ones the earlier stays.
    fn keep(&mut self, before: Received, after: Received) {
        let length = after.at.saturating_since(before.at);
        let place = self
            .gaps
            .iter()
            .position(|(from, to)| to.at.saturating_since(from.at) < length)
            .unwrap_or(self.gaps.len());
        if place < MOST_GAPS {
            self.gaps.insert(place, (before, after));
            self.gaps.truncate(MOST_GAPS);
        }
    }
}

/// Word and bit of a number.
fn place(number: u64) -> (usize, u64) {
    (usize::try_from(number / 64).unwrap_or(usize::MAX), 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame each millisecond, delivered 1 ms later, but for those that `is_lost` says.
    fn streamed(count: u64, is_lost: impl Fn(u64) -> bool) -> Stream {
        let (mut departures, mut tally) = (Departures::new(), Tally::new());
        for number in 0..count {
            let sent = Time::from_millis(number);
            departures.note(Sent { number, at: sent });
            if !is_lost(number) {
                tally.note(Received { number, sent, at: sent + Duration::from_millis(1) });
            }
        }
        tally.stream(&departures)
    }

    #[test]
    fn a_gap_is_what_lies_between_the_frames_around_the_lost_ones() {
        let stream = streamed(1000, |number| (200..500).contains(&number));
        assert_eq!((stream.sent, stream.received), (1000, 700));
        assert_eq!(stream.lost, [(200, 499)]);
        let (before, after) = stream.gaps[0];
        assert_eq!((before.number, after.number), (199, 500));
        assert_eq!(after.at.saturating_since(before.at), Duration::from_millis(301));
        assert_eq!(stream.gaps.len(), MOST_GAPS);
        assert_eq!(stream.span, (Time::ZERO, Time::from_millis(999)));
    }

    #[test]
    fn nothing_came_is_a_stream_too() {
        let stream = streamed(10, |_| true);
        assert_eq!((stream.received, stream.lost.as_slice()), (0, [(0, 9)].as_slice()));
        assert!(stream.gaps.is_empty() && stream.last.is_none());
        assert_eq!(Tally::new().stream(&Departures::new()).sent, 0);
    }

    #[test]
    fn twice_late_and_out_of_order_are_told_apart() {
        let mut tally = Tally::new();
        let frame = |number, sent, at| Received {
            number,
            sent: Time::from_millis(sent),
            at: Time::from_millis(at),
        };
        for arrival in [frame(0, 0, 1), frame(2, 2, 3), frame(1, 1, 90), frame(2, 2, 91)] {
            tally.note(arrival);
        }
        tally.note(frame(u64::MAX, 3, 92));
        let mut departures = Departures::new();
        (0..3).for_each(|number| departures.note(Sent { number, at: Time::from_millis(number) }));
        let stream = tally.stream(&departures);
        assert_eq!(
            (stream.received, stream.reordered, stream.late, stream.duplicates),
            (3, 1, 1, 1)
        );
    }

    proptest! {
        #[test]
        fn each_frame_is_lost_or_received(lost in proptest::collection::btree_set(0u64..300, 0..200)) {
            let stream = streamed(300, |number| lost.contains(&number));
            let in_runs: u64 = stream.lost.iter().map(|(first, last)| last - first + 1).sum();
            prop_assert_eq!(stream.received + in_runs, stream.sent);
            prop_assert_eq!(in_runs, lost.len() as u64);
            let lengths: Vec<Duration> =
                stream.gaps.iter().map(|(from, to)| to.at.saturating_since(from.at)).collect();
            prop_assert!(lengths.is_sorted_by(|a, b| a >= b) && lengths.len() <= MOST_GAPS);
        }
    }
}
