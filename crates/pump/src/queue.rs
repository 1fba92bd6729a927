//! Until when a link's queue holds frames, seen from other threads without asking the pump.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use units::Time;

/// Says of one direction of a link until when frames wait in its queue. Clones say the same.
#[derive(Debug, Clone, Default)]
pub struct QueueWatch(Arc<AtomicU64>);

impl QueueWatch {
    /// Until when frames waited for the rate, or will, on the monotonic clock; zero if none ever has
    /// ([`linkmodel::Link::waits_until`]). As of the pump's last turn: it has one as soon as a frame comes.
    #[must_use]
    pub fn waits_until(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    /// Frames wait until then.
    #[inline]
    pub(crate) fn note(&self, until: Time) {
        self.0.store(until.as_nanos(), Ordering::Relaxed);
    }
}
