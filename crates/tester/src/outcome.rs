//! What came of a trial.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use traffic::Tally;

/// One direction of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Frames that the schedule has.
    pub scheduled: u64,
    /// Frames that the kernel took to be sent.
    pub sent: u64,
    /// Their bytes, without check sequence.
    pub sent_bytes: u64,
    /// Frames that the kernel refused at once.
    pub refused: u64,
    /// From the first frame sent to the last.
    pub sending: Duration,
    /// How late the latest frame was sent.
    pub latest: Duration,
    /// Frames that came, each counted once.
    pub received: u64,
    /// Frames that were sent and did not come.
    pub lost: u64,
    /// Frames that came more than once.
    pub duplicates: u64,
    /// Frames that came after one of a higher number.
    pub reordered: u64,
    /// Frames that came and belong to no such stream.
    pub foreign: u64,
    /// Frames that the tester's own ring had no room for: then what is lost is the tester's fault.
    pub ring_drops: u64,
    /// From the first frame that came to the last.
    pub receiving: Duration,
    /// Delays one way; `None` if no frame came.
    pub delays: Option<Delays>,
    /// The longest time without a frame between two that came.
    pub longest_gap: Option<Duration>,
}

/// Delays one way: see [`traffic::Delays`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// What came of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// From the first port to the second, then back if it was both ways.
    pub flows: Vec<Flow>,
    /// CPU time of the tester's thread, the kernel's work in its context included.
    pub cpu: Duration,
    /// How long the trial took.
    pub lasted: Duration,
    /// Whether it was ended before its time.
    pub stopped: bool,
}

impl Outcome {
    /// Frames lost both ways.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.flows.iter().map(|flow| flow.lost).sum()
    }

    /// Frames that the schedules had and that were not sent.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.flows.iter().map(|flow| flow.scheduled.saturating_sub(flow.sent)).sum()
    }

    /// Whether every frame of the schedule was sent and came.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.stopped && self.lost() == 0 && self.unsent() == 0
    }
}

impl Flow {
    /// The share of frames sent that did not come.
    #[must_use]
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 / self.sent as f64 }
    }

    /// Puts what was received into it.
    pub(crate) fn take(&mut self, tally: &Tally, ring_drops: u64) {
        self.received = tally.received();
        self.lost = tally.lost(self.sent);
        self.duplicates = tally.duplicates();
        self.reordered = tally.reordered();
        self.foreign = tally.foreign();
        self.ring_drops = ring_drops;
        self.receiving = tally.lasted().unwrap_or_default();
        self.longest_gap = tally.longest_gap().map(|gap| gap.duration());
        self.delays = tally.delays().map(|delays| Delays {
            least: delays.least,
            median: delays.median,
            p99: delays.p99,
            p999: delays.p999,
            longest: delays.longest,
            mean: delays.mean,
        });
    }
}
