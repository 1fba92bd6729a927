//! What was sent and not yet acknowledged, and the fate of each part.

use std::collections::VecDeque;
use std::ops::Range;
use units::Time;

/// Most ranges kept. At the bound new data join the last range, and a selective acknowledgment
/// that would split one is passed over: both cost speed, never correctness.
const MAX_RANGES: usize = 8192;

/// Capacity that an idle connection may keep, in ranges.
const IDLE_CAPACITY: usize = 4;

/// Bytes sent at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub start: u64,
    pub end: u64,
    /// Of the last transmission.
    pub at: Time,
    pub state: State,
    /// Whether it was ever sent again.
    pub again: bool,
}

/// The fate of a range, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Perhaps still under way.
    InFlight,
    /// Taken for lost and not sent again since.
    Lost,
    /// The peer has it, beyond a gap (RFC 2018).
    Sacked,
}

impl Sent {
    pub(super) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether two ranges may become one without loss of knowledge.
    fn is_like(&self, other: &Sent) -> bool {
        self.state == other.state && self.at == other.at && self.again == other.again
    }
}

/// Ascending ranges that cover all from the first byte not acknowledged to the last one sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    ranges: VecDeque<Sent>,
    acknowledged: u64,
    next: u64,
    sacked: u64,
    lost: u64,
    /// No lost range begins before it.
    lost_from: u64,
}

/// Who wants to know what one acknowledgment delivered.
pub(super) trait Observer {
    /// `part` was delivered and had not been before.
    fn delivered(&mut self, part: &Sent);
}

impl Scoreboard {
    /// First byte not acknowledged (SND.UNA).
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// First byte never sent (SND.NXT).
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.next - self.acknowledged
    }

    pub(super) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn front(&self) -> Option<&Sent> {
        self.ranges.front()
    }

    pub(super) fn back(&self) -> Option<&Sent> {
        self.ranges.back()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sent> {
        self.ranges.iter()
    }

    /// Panics unless ranges and sums agree.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let (mut at, mut sacked, mut lost) = (self.acknowledged, 0, 0);
        for sent in &self.ranges {
            assert_eq!(sent.start, at);
            assert!(sent.end > sent.start);
            at = sent.end;
            match sent.state {
                State::Sacked => sacked += sent.len(),
                State::Lost => {
                    lost += sent.len();
                    assert!(sent.end > self.lost_from, "the hint is past a lost range");
                }
                State::InFlight => {}
            }
        }
        assert_eq!((at, sacked, lost), (self.next, self.sacked, self.lost));
        assert!(self.ranges.len() <= MAX_RANGES + 2);
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        match self.ranges.capacity() {
            small if small <= IDLE_CAPACITY => 0,
            capacity => capacity * size_of::<Sent>(),
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Notes new data up to `end`.
    pub(super) fn push(&mut self, now: Time, end: u64) {
        if end <= self.next {
            return;
        }
        let sent = Sent { start: self.next, end, at: now, state: State::InFlight, again: false };
        self.next = end;
        let full = self.ranges.len() >= MAX_RANGES;
        match self.ranges.back_mut() {
            Some(last) if last.is_like(&sent) => last.end = end,
            Some(last) if full && last.state == State::InFlight => {
                last.end = end;
                last.at = now;
            }
            _ => self.ranges.push_back(sent),
        }
    }

    /// Notes that what is not known to be delivered of `range` was sent again.
    pub(super) fn resend(&mut self, now: Time, range: Range<u64>) {
        let mut index = self.ranges.partition_point(|sent| sent.end <= range.start);
        while let Some(&sent) = self.ranges.get(index) {
            if sent.start >= range.end {
                break;
            }
            if sent.state != State::Sacked {
                index = self.isolate(index, &range);
                if let Some(sent) = self.ranges.get_mut(index) {
                    if sent.state == State::Lost {
                        self.lost -= sent.len();
                    }
                    *sent = Sent { at: now, state: State::InFlight, again: true, ..*sent };
                }
                index = self.merge(index);
            }
            index += 1;
        }
    }

    /// Lets go of all before `upto`.
    pub(super) fn acknowledge(&mut self, upto: u64, observer: &mut impl Observer) {
        while let Some(front) = self.ranges.front_mut() {
            if front.start >= upto {
                break;
            }
            let part = Sent { end: front.end.min(upto), ..*front };
            match part.state {
                State::Sacked => self.sacked -= part.len(),
                State::Lost => self.lost -= part.len(),
                State::InFlight => {}
            }
            if part.state != State::Sacked {
                observer.delivered(&part);
            }
            if part.end < front.end {
                front.start = part.end;
                break;
            }
            self.ranges.pop_front();
        }
        self.acknowledged = self.acknowledged.max(upto.min(self.next));
        if self.ranges.is_empty() && self.ranges.capacity() > IDLE_CAPACITY {
            self.ranges = VecDeque::new();
        }
    }

    /// Marks what `block` covers as delivered (RFC 2018).
    pub(super) fn sack(&mut self, block: &Range<u64>, observer: &mut impl Observer) {
        let mut index = self.ranges.partition_point(|sent| sent.end <= block.start);
        while let Some(&sent) = self.ranges.get(index) {
            if sent.start >= block.end {
                break;
            }
            if sent.state == State::Sacked || !self.can_isolate(&sent, block) {
                index += 1;
                continue;
            }
            let part =
                Sent { start: sent.start.max(block.start), end: sent.end.min(block.end), ..sent };
            self.sacked += part.len();
            if part.state == State::Lost {
                self.lost -= part.len();
            }
            observer.delivered(&part);
            if self.extend_previous(index, &part) {
                continue;
            }
            index = self.isolate(index, block);
            if let Some(sent) = self.ranges.get_mut(index) {
                sent.state = State::Sacked;
            }
            index = self.merge(index) + 1;
        }
    }

    /// Marks ranges in flight that `is_lost` condemns, from the lowest on; stops where it says
    /// [`Verdict::Stop`]. Returns the bytes newly lost.
    pub(super) fn condemn(&mut self, mut judge: impl FnMut(&Sent) -> Verdict) -> u64 {
        let mut newly = 0;
        for sent in &mut self.ranges {
            if sent.state != State::InFlight {
                continue;
            }
            match judge(sent) {
                Verdict::Keep => {}
                Verdict::Stop => break,
                Verdict::Lost => {
                    sent.state = State::Lost;
                    newly += sent.len();
                    self.lost_from = self.lost_from.min(sent.start);
                }
            }
        }
        self.lost += newly;
        newly
    }

    /// Marks the part of the first range before `end` lost, if it is in flight. Returns the bytes
    /// newly lost.
    pub(super) fn condemn_front(&mut self, end: u64) -> u64 {
        let range = self.acknowledged..end;
        match self.ranges.front() {
            Some(front) if front.state == State::InFlight && end > front.start => {}
            _ => return 0,
        }
        let index = self.isolate(0, &range);
        let Some(front) = self.ranges.get_mut(index) else { return 0 };
        front.state = State::Lost;
        self.lost += front.len();
        self.lost_from = self.lost_from.min(front.start);
        front.len()
    }

    /// The peer forgot what it had selectively acknowledged (RFC 2018 §8): all of it is lost.
    pub(super) fn forget_sacks(&mut self) {
        for sent in &mut self.ranges {
            if sent.state == State::Sacked {
                sent.state = State::Lost;
            }
        }
        self.lost += self.sacked;
        self.sacked = 0;
        self.lost_from = 0;
    }

    /// What was taken for lost is under way after all.
    pub(super) fn absolve(&mut self) {
        for sent in &mut self.ranges {
            if sent.state == State::Lost {
                sent.state = State::InFlight;
            }
        }
        self.lost = 0;
    }

    /// The lowest lost range.
    pub(super) fn first_lost(&mut self) -> Option<Range<u64>> {
        if self.lost == 0 {
            self.lost_from = u64::MAX;
            return None;
        }
        let index = self.ranges.partition_point(|sent| sent.end <= self.lost_from);
        let found = self.ranges.range(index..).find(|sent| sent.state == State::Lost)?;
        self.lost_from = found.start;
        Some(found.start..found.end)
    }

    /// Gives the range at `index` to the selectively acknowledged one before it, as far as `part`
    /// reaches; only if `part` begins the range. Keeps long runs in one entry without a split.
    fn extend_previous(&mut self, index: usize, part: &Sent) -> bool {
        let Some(before) = index.checked_sub(1) else { return false };
        let Some(&sent) = self.ranges.get(index) else { return false };
        let Some(previous) = self.ranges.get_mut(before) else { return false };
        if previous.state != State::Sacked || part.start != sent.start || part.end == sent.end {
            return false;
        }
        previous.end = part.end;
        if let Some(sent) = self.ranges.get_mut(index) {
            sent.start = part.end;
        }
        true
    }

    fn can_isolate(&self, sent: &Sent, range: &Range<u64>) -> bool {
        self.ranges.len() + 2 <= MAX_RANGES || (range.start <= sent.start && sent.end <= range.end)
    }

    /// Splits the range at `index` so that one has exactly what lies in `range`, and says which.
    /// At the bound of memory nothing is split.
    fn isolate(&mut self, index: usize, range: &Range<u64>) -> usize {
        let Some(&sent) = self.ranges.get(index) else { return index };
        if !self.can_isolate(&sent, range) {
            return index;
        }
        if sent.end > range.end {
            self.ranges.insert(index + 1, Sent { start: range.end, ..sent });
            if let Some(sent) = self.ranges.get_mut(index) {
                sent.end = range.end;
            }
        }
        if sent.start < range.start {
            if let Some(sent) = self.ranges.get_mut(index) {
                sent.start = range.start;
            }
            self.ranges.insert(index, Sent { end: range.start, ..sent });
            return index + 1;
        }
        index
    }

    /// Makes one of the range at `index` and its like neighbours, and says where it is.
    fn merge(&mut self, index: usize) -> usize {
        let Some(&sent) = self.ranges.get(index) else { return index };
        let joins = |other: &Sent| {
            other.is_like(&sent) || (other.state == State::Sacked && sent.state == State::Sacked)
        };
        let end = match self.ranges.get(index + 1) {
            Some(next) if joins(next) => {
                let end = next.end;
                self.ranges.remove(index + 1);
                end
            }
            _ => sent.end,
        };
        let before = index.checked_sub(1).filter(|at| self.ranges.get(*at).is_some_and(joins));
        if before.is_some() {
            self.ranges.remove(index);
        }
        let place = before.unwrap_or(index);
        if let Some(kept) = self.ranges.get_mut(place) {
            kept.end = end;
        }
        place
    }
}

/// What a judge says of a range in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Lost,
    /// Keep this and all behind it.
    Stop,
}

#[cfg(test)]
mod tests;
