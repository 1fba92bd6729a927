//! What came of one direction of the traffic.

use handoff::{Departures, Received, Stream, Tally};
use units::Time;

/// Frames that came, in the order in which they did. They are counted when the trial is over: in a guest each
/// instruction takes its time.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    frames: Vec<Received>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, frame: Received) {
        self.frames.push(frame);
    }

    /// What came of `sent` frames, of which the first and the last left at these times.
    pub(crate) fn stream(&self, sent: u64, span: (Time, Time)) -> Stream {
        let mut tally = Tally::new();
        // A number that was never sent is nobody's.
        self.frames.iter().filter(|frame| frame.number < sent).for_each(|frame| tally.note(*frame));
        tally.stream(&Departures::of(sent, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(numbers_and_millis: &[(u64, u64)]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (number, at) in numbers_and_millis {
            let sent = Time::from_millis(*number);
            arrivals.add(Received { number: *number, sent, at: Time::from_millis(*at) });
        }
        arrivals
    }

    #[test]
    fn losses_are_runs_and_gaps_are_the_longest_first() {
        let arrivals = came(&[(0, 1), (1, 2), (5, 6), (4, 7), (4, 8), (9, 20), (77, 21)]);
        let stream = arrivals.stream(12, (Time::ZERO, Time::from_millis(11)));
        assert_eq!((stream.received, stream.duplicates, stream.reordered), (5, 1, 1));
        assert_eq!(stream.lost, [(2, 3), (6, 8), (10, 11)]);
        let (from, to) = stream.gaps[0];
        assert_eq!((from.number, to.number), (4, 9));
        assert_eq!(stream.gaps.len(), 4);
    }

    #[test]
    fn nothing_that_came_is_all_lost() {
        let stream = came(&[]).stream(3, (Time::ZERO, Time::ZERO));
        assert_eq!((stream.received, stream.lost, stream.gaps), (0, vec![(0, 2)], Vec::new()));
    }
}
