//! The two clocks of a measurement.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use units::Time;

/// CLOCK_MONOTONIC, in nanoseconds: one clock for every process and namespace of a machine, so that
/// client, server and capture can be compared.
#[must_use]
pub fn now() -> Time {
    Time::ZERO + duration(clock_gettime(ClockId::Monotonic))
}

/// CPU time that the calling thread has used, in user and kernel mode.
#[must_use]
pub fn thread_cpu() -> Duration {
    duration(clock_gettime(ClockId::ThreadCPUTime))
}

fn duration(time: Timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_only_go_forward() {
        let (time, cpu) = (now(), thread_cpu());
        assert!(now() >= time);
        assert!(thread_cpu() >= cpu);
    }
}
