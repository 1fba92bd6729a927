//! Whether both directions of a connection are dated by one clock: no answer comes before its question.

use units::Time;

use super::TcpFlow;
use crate::record::ClockOffset;
use crate::side::{Pair, Sender};

/// Difference of both sides' clocks, by their acknowledgments.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The shortest time from bytes of the peer to their acknowledgment, nanoseconds; negative where
    /// that is dated before.
    least: Pair<Option<i64>>,
}

impl Clocks {
    /// A side acknowledged what the peer sent at `sent`.
    fn acknowledged(&mut self, side: Sender, at: Time, sent: Time) {
        let took = i128::from(at.as_nanos()) - i128::from(sent.as_nanos());
        let took = i64::try_from(took).unwrap_or(if took < 0 { i64::MIN } else { i64::MAX });
        let least = &mut self.least[side];
        *least = Some(least.map_or(took, |least| least.min(took)));
    }

    /// By how much the clocks differ; `None` if they need not, or if what is known contradicts itself, as
    /// it does where the capture lost frames.
    pub(super) fn offset(&self) -> Option<ClockOffset> {
        let at_least = self.least.server.map(i64::saturating_neg)?;
        let at_most = self.least.client?;
        let differs = at_least > 0 || at_most < 0;
        (differs && at_least <= at_most).then_some(ClockOffset { at_least, at_most })
    }
}

impl TcpFlow {
    /// Notes when a side acknowledged the last of the peer's bytes that were taken.
    pub(super) fn compare_clocks(&mut self, side: Sender, at: Time, acked: u64) {
        let peer = &self.sides[side.peer()];
        if let Some(sent) = peer.advanced_at
            && acked >= peer.highest
        {
            self.clocks.acknowledged(side, at, sent);
        }
    }
}
