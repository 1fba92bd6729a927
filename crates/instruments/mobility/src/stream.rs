//! What came of one direction of the traffic.

use handoff::{LATE, Received, Stream};
use units::Time;

/// Gaps that are kept.
const GAPS: usize = 8;

/// Frames that came, in the order in which they did.
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
        let mut came = vec![false; usize::try_from(sent).unwrap_or(usize::MAX)];
        let (mut duplicates, mut reordered, mut next) = (0, 0, 0);
        let mut once: Vec<Received> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            let place = usize::try_from(frame.number).ok().and_then(|number| came.get_mut(number));
            // A number that was never sent is nobody's.
            let Some(place) = place else { continue };
            if std::mem::replace(place, true) {
                duplicates += 1;
                continue;
            }
            reordered += u64::from(frame.number < next);
            next = next.max(frame.number.saturating_add(1));
            once.push(*frame);
        }
        let received = once.len() as u64;
        let is_late = |frame: &&Received| frame.at.saturating_since(frame.sent) > LATE;
        let late = once.iter().filter(is_late).count() as u64;
        let (lost, gaps, last) = (lost(&came), gaps(&once), once.last().copied());
        Stream { sent, received, duplicates, reordered, late, lost, gaps, last, span }
    }
}

/// Runs of numbers that did not come.
fn lost(came: &[bool]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (number, _) in (0u64..).zip(came).filter(|(_, came)| !**came) {
        match runs.last_mut() {
            Some((_, last)) if last.saturating_add(1) == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

/// The longest times between arrivals, the longest first.
fn gaps(frames: &[Received]) -> Vec<(Received, Received)> {
    let mut gaps: Vec<(Received, Received)> =
        frames.iter().copied().zip(frames.iter().copied().skip(1)).collect();
    gaps.sort_by_key(|(from, to)| std::cmp::Reverse(to.at.saturating_since(from.at)));
    gaps.truncate(GAPS);
    gaps
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
