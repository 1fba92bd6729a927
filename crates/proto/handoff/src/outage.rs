//! How long one direction of the traffic was cut off.

use std::time::Duration;

use units::{Time, named};

use crate::{Received, Run, Stream, What};

named! {
    /// A direction of the traffic.
    pub enum Direction: "direction" {
        /// From the host.
        Up = "up",
        /// To the host.
        Down = "down",
    }
}

/// Frames at the end that may be missing without the traffic being cut off still: those on their way.
const ON_THEIR_WAY: Duration = Duration::from_millis(100);

/// Frames between two that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last one before.
    pub before: Received,
    /// The first one after.
    pub after: Received,
}

impl Gap {
    /// From the arrival of the one to that of the other.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.after.at.saturating_since(self.before.at)
    }

    /// Numbers in between.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.after.number.saturating_sub(self.before.number).saturating_sub(1)
    }
}

/// How long one direction was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Frames that never came.
    pub lost: u64,
    /// Frames lost by the rate: the paper's outage.
    pub by_loss: Duration,
    /// The longest gap less the time between two frames: the outage of a TCP stream, which loses none. What had not come
    /// at the end counts too.
    pub by_gap: Duration,
    /// The longest gap between arrivals since the trigger; none where nothing came before and after.
    pub gap: Option<Gap>,
    /// Frames that somebody kept and delivered late.
    pub late: u64,
    /// Whether frames came again before the trial ended.
    pub is_over: bool,
}

impl Outage {
    /// Of one direction of a run.
    #[must_use]
    pub fn of(run: &Run, direction: Direction) -> Outage {
        let stream = run.stream(direction);
        let lost = stream.sent.saturating_sub(stream.received);
        let by_loss = duration_of(lost, run.frames_per_second);
        let gap = longest_gap(stream, run.triggered());
        let between = duration_of(1, run.frames_per_second);
        let longest = gap.map(|gap| gap.duration().saturating_sub(between)).unwrap_or_default();
        let is_over = is_over(stream, run.frames_per_second);
        Outage {
            lost,
            by_loss,
            by_gap: if is_over { longest } else { longest.max(by_loss) },
            gap,
            late: stream.late,
            is_over,
        }
    }
}

impl Run {
    /// One direction of the traffic.
    #[must_use]
    pub const fn stream(&self, direction: Direction) -> &Stream {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// When the trigger was pulled, if it was.
    #[must_use]
    pub fn triggered(&self) -> Option<Time> {
        self.events.iter().find(|event| event.what == What::Triggered).map(|event| event.at)
    }
}

/// The time that so many frames take.
fn duration_of(frames: u64, per_second: u32) -> Duration {
    let nanos = u128::from(frames) * 1_000_000_000 / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The longest gap that was not over before the trigger: what comes before it is not of the handoff.
fn longest_gap(stream: &Stream, triggered: Option<Time>) -> Option<Gap> {
    let gaps = stream.gaps.iter().map(|(before, after)| Gap { before: *before, after: *after });
    gaps.filter(|gap| gap.after.at > gap.before.at)
        .filter(|gap| triggered.is_none_or(|trigger| gap.after.at >= trigger))
        .max_by_key(Gap::duration)
}

/// Whether the last frames came.
fn is_over(stream: &Stream, per_second: u32) -> bool {
    let Some(last) = stream.last else { return false };
    let at_the_end = match stream.lost.last() {
        Some((first, end)) if end.saturating_add(1) >= stream.sent && last.number < *first => {
            end.saturating_sub(*first).saturating_add(1)
        }
        _ => 0,
    };
    duration_of(at_the_end, per_second) <= ON_THEIR_WAY
}
