//! The lab's own delay: what its link adds to each round trip, by the lab's measurement of itself.

use pump::Calibration;
use serde::Serialize;
use stats::{Confidence, Estimate};

/// How much later than asked the lab's link hands a frame over, one way, in milliseconds. It is part
/// of every measured time, and so of every fitted c.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LabDelay {
    /// The median of the medians at each delay that was calibrated.
    pub one_way_ms: f64,
    /// The least of these medians.
    pub least_ms: f64,
    /// The greatest of these medians.
    pub greatest_ms: f64,
}

impl LabDelay {
    /// What a calibration found; `None` if it tried no delay.
    #[must_use]
    pub fn of(calibration: &Calibration) -> Option<LabDelay> {
        let checks = calibration.delays.iter();
        let errors: Vec<f64> =
            checks.map(|check| check.one_way_error.p50_ns as f64 / 1e6).collect();
        let errors = stats::Sample::new(&errors).ok()?;
        let (one_way_ms, least_ms, greatest_ms) = (errors.median(), errors.min(), errors.max());
        Some(LabDelay { one_way_ms, least_ms, greatest_ms })
    }

    /// What it adds to this many round trips, two ways each, in milliseconds. The ends are those of
    /// the medians at the delays calibrated: how it varies with the delay is more than chance in
    /// either.
    #[must_use]
    pub fn over(self, round_trips: u32) -> Estimate {
        let ways = 2.0 * f64::from(round_trips);
        let LabDelay { one_way_ms, least_ms, greatest_ms } = self;
        Estimate {
            value: ways * one_way_ms,
            low: ways * least_ms,
            high: ways * greatest_ms,
            confidence: Confidence::C95.level(),
        }
    }

    /// What is left of a c of this many round trips without it, in milliseconds. The ends lie as far
    /// apart as those of both together, which is at least as far as they need to.
    #[must_use]
    pub fn taken_off(self, c: &Estimate, round_trips: u32) -> Estimate {
        let own = self.over(round_trips);
        Estimate {
            value: c.value - own.value,
            low: c.low - own.high,
            high: c.high - own.low,
            confidence: c.confidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_trip_has_it_twice() {
        let lab = LabDelay { one_way_ms: 0.07, least_ms: 0.06, greatest_ms: 0.08 };
        let c = Estimate { value: 2.55, low: 2.5, high: 2.6, confidence: 0.95 };
        let left = lab.taken_off(&c, 2);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(left.value, 2.27) && close(left.low, 2.18) && close(left.high, 2.36));
        assert_eq!(lab.taken_off(&c, 0), c);
    }
}
