//! A point in time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the origin of the clock that made it, be it virtual or real.
///
/// Times of different clocks must not be mixed; a machine is driven by one clock only.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Time = Time(0);
    /// Later than any other: 584 years after the origin.
    pub const MAX: Time = Time(u64::MAX);

    /// The time `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// The time `micros` microseconds after the origin; at the end of time if past it.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Time(micros.saturating_mul(1_000))
    }

    /// The time `millis` milliseconds after the origin; at the end of time if past it.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin, rounded to what an `f64` holds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// From `earlier` to `self`, or zero if `earlier` is the later one.
    #[must_use]
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// From `earlier` to `self`; `None` if `earlier` is the later one.
    #[must_use]
    pub fn checked_since(self, earlier: Time) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// Nanoseconds from `other` to `self`, negative if `other` is the later one.
    #[must_use]
    pub const fn signed_nanos_since(self, other: Time) -> i64 {
        self.0.wrapping_sub(other.0) as i64
    }
}

/// Nanoseconds of a duration, capped at what a [`Time`] holds.
const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Add<Duration> for Time {
    type Output = Time;
    /// Saturates at [`Time::MAX`].
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    /// Saturates at [`Time::ZERO`].
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(duration)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::from_millis(3) + Duration::from_micros(5), Time::from_nanos(3_005_000));
    }

    #[test]
    fn differences_know_their_sign() {
        let (early, late) = (Time::from_micros(10), Time::from_micros(12));
        assert_eq!(late.signed_nanos_since(early), 2_000);
        assert_eq!(early.signed_nanos_since(late), -2_000);
        assert_eq!(early.checked_since(late), None);
        assert_eq!(early.saturating_since(late), Duration::ZERO);
    }
}
