//! When a link's queue last held a frame, seen from other threads without asking the pump.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use units::Time;

/// Says of one direction of a link when frames last waited in its queue. Clones say the same.
#[derive(Debug, Clone, Default)]
pub struct QueueWatch(Arc<AtomicU64>);

impl QueueWatch {
    /// When frames last waited for the rate, on the monotonic clock; zero if never. Exact as of the pump's last turn.
    #[must_use]
    pub fn last_waiting(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Frames last waited then.
    #[inline]
    pub(crate) fn note(&self, last: Time) {
        self.0.store(last.as_nanos(), Ordering::Relaxed);
    }
}
