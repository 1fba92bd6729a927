//! The system's clocks as [`Time`].

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use units::Time;

fn time(spec: Timespec) -> Time {
    let seconds = u64::try_from(spec.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(spec.tv_nsec).unwrap_or(0);
    Time::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// CLOCK_MONOTONIC: nanoseconds since some point at or before boot. No system call on most
/// machines.
#[must_use]
pub fn monotonic() -> Time {
    time(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_REALTIME: nanoseconds since 1970, which may be set at any moment.
#[must_use]
pub fn realtime() -> Time {
    time(clock_gettime(ClockId::Realtime))
}

/// CPU time that the calling thread has used, user and system.
#[must_use]
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(time(clock_gettime(ClockId::ThreadCPUTime)).as_nanos())
}

/// Converts CLOCK_REALTIME to CLOCK_MONOTONIC.
///
/// Both advance at the same pace, so the offset changes only when the clock is set. One that is
/// used for long is renewed now and then by [`RealtimeOffset::measure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealtimeOffset {
    nanos: i64,
}

impl RealtimeOffset {
    /// Measures the offset: the best of four readings, right to some tens of nanoseconds if the
    /// thread is not interrupted in all four.
    #[must_use]
    pub fn measure() -> Self {
        let mut best = (u64::MAX, 0);
        for _ in 0..4 {
            let (before, real, after) = (monotonic(), realtime(), monotonic());
            let width = after.as_nanos().saturating_sub(before.as_nanos());
            if width < best.0 {
                let middle = Time::from_nanos(before.as_nanos() + width / 2);
                best = (width, real.signed_nanos_since(middle));
            }
        }
        RealtimeOffset { nanos: best.1 }
    }

    /// An offset of `nanos` nanoseconds: real time less monotonic time.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        RealtimeOffset { nanos }
    }

    /// `real`, a CLOCK_REALTIME, as CLOCK_MONOTONIC; the origin if it lies before it.
    #[must_use]
    pub const fn to_monotonic(self, real: Time) -> Time {
        let nanos = (real.as_nanos() as i128) - (self.nanos as i128);
        Time::from_nanos(if nanos < 0 { 0 } else { nanos as u64 })
    }

    /// `monotonic` as CLOCK_REALTIME; the origin if it lies before it.
    #[must_use]
    pub const fn to_realtime(self, monotonic: Time) -> Time {
        let nanos = (monotonic.as_nanos() as i128) + (self.nanos as i128);
        Time::from_nanos(if nanos < 0 { 0 } else { nanos as u64 })
    }
}

/// The CPU clock of one thread, which any thread of the process may read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCpuClock {
    id: libc::clockid_t,
}

impl ThreadCpuClock {
    /// The clock of the calling thread; `None` if the system has none.
    #[must_use]
    pub fn of_current_thread() -> Option<Self> {
        let mut id = 0;
        // SAFETY: `pthread_self` is always valid for the calling thread, and `id` outlives the
        // call.
        let result = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut id) };
        (result == 0).then_some(ThreadCpuClock { id })
    }

    /// CPU time that the thread has used; `None` once it has ended.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `spec` outlives the call; a clock that is gone gives an error.
        if unsafe { libc::clock_gettime(self.id, &raw mut spec) } != 0 {
            return None;
        }
        Some(Duration::new(u64::try_from(spec.tv_sec).ok()?, u32::try_from(spec.tv_nsec).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_do_not_go_back() {
        let (first, second) = (monotonic(), monotonic());
        assert!(second >= first);
        assert!(realtime() > Time::from_millis(1_000_000_000_000 / 1_000));
    }

    #[test]
    fn conversion_there_and_back_is_exact() {
        for nanos in [-5, 0, 1_700_000_000_000_000_000] {
            let offset = RealtimeOffset::from_nanos(nanos);
            let at = Time::from_millis(77);
            assert_eq!(offset.to_monotonic(offset.to_realtime(at)), at);
        }
        assert_eq!(RealtimeOffset::from_nanos(10).to_monotonic(Time::ZERO), Time::ZERO);
    }

    #[test]
    fn the_measured_offset_brackets_now() {
        let before = monotonic();
        let now = RealtimeOffset::measure().to_monotonic(realtime());
        let after = monotonic();
        // The reading itself may be interrupted; a millisecond is far beyond any honest error.
        let slack = Duration::from_millis(1);
        assert!(now + slack >= before && now <= after + slack, "{before} {now} {after}");
    }

    #[test]
    fn another_thread_reads_this_threads_clock() {
        let clock = ThreadCpuClock::of_current_thread().expect("a CPU clock");
        let before = thread_cpu();
        let read = std::thread::spawn(move || clock.read()).join().unwrap().unwrap();
        assert!(read >= before, "{read:?} {before:?}");
    }
}
