//! The round-trip time and the retransmission timeout (RFC 6298).
//!
//! Who calls [`RttEstimator::sample`] obeys Karn's rule: no sample from a segment that was sent
//! twice, unless a timestamp (RFC 7323) tells the transmissions apart.

use std::time::Duration;

/// RFC 6298 §5.7: the timeout for data when the SYN's own timer expired.
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// Smoothed round-trip time, its variation, and the timeout that follows from them.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    initial: Duration,
    min: Duration,
    max: Duration,
    /// SRTT and RTTVAR in nanoseconds; `None` before the first sample.
    estimate: Option<Estimate>,
    back_off: u32,
}

#[derive(Debug, Clone, Copy)]
struct Estimate {
    smoothed: i64,
    variation: i64,
}

impl RttEstimator {
    /// An estimator that says `initial` until the first sample. Later timeouts lie between `min`
    /// and `max`.
    #[must_use]
    pub fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        Self { initial, min, max: max.max(min), estimate: None, back_off: 0 }
    }

    /// Takes one measured round trip.
    pub fn sample(&mut self, rtt: Duration) {
        self.sample_of(rtt, 1);
    }

    /// Takes one of about `per_round` samples that this round trip gives. The gains are divided by
    /// it, so that the memory spans round trips and not segments (RFC 7323 appendix G).
    pub fn sample_of(&mut self, rtt: Duration, per_round: u32) {
        let rtt = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX / 16);
        let parts = i64::from(per_round.max(1));
        match &mut self.estimate {
            // RFC 6298 §2.2
            None => {
                self.estimate = Some(Estimate { smoothed: rtt, variation: rtt / 2 });
            }
            // RFC 6298 §2.3: the variation first, with the old SRTT
            Some(estimate) => {
                let error = rtt - estimate.smoothed;
                estimate.variation += (error.abs() - estimate.variation) / (4 * parts);
                estimate.smoothed += error / (8 * parts);
            }
        }
    }

    /// The retransmission timeout, backed off.
    ///
    /// The lower bound applies to the variation's share and not to the sum: otherwise, on a steady
    /// path as long as the bound, the least extra delay would be taken for a loss.
    #[must_use]
    pub fn rto(&self) -> Duration {
        let base = match self.estimate {
            None => self.initial,
            Some(Estimate { smoothed, variation }) => {
                nanos(smoothed).saturating_add(self.min.max(nanos(variation.saturating_mul(4))))
            }
        };
        // RFC 6298 §5.5
        base.saturating_mul(1 << self.back_off.min(16)).clamp(self.min, self.max)
    }

    /// Doubles the timeout, up to the upper bound (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        if self.rto() < self.max {
            self.back_off = (self.back_off + 1).min(16);
        }
    }

    /// Ends the doubling: new data were acknowledged.
    pub fn reset_back_off(&mut self) {
        self.back_off = 0;
    }

    /// The SYN's timer had expired: without a sample, data start with three seconds
    /// (RFC 6298 §5.7).
    pub fn handshake_timed_out(&mut self) {
        self.initial = self.initial.max(AFTER_LOST_SYN);
    }

    /// SRTT, the smoothed round-trip time; none before the first sample (RFC 6298 §2).
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimate.map(|estimate| nanos(estimate.smoothed))
    }
}

fn nanos(value: i64) -> Duration {
    Duration::from_nanos(u64::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn estimator() -> RttEstimator {
        RttEstimator::new(1000 * MS, 200 * MS, 60_000 * MS)
    }

    #[test]
    fn the_first_sample_sets_both_estimates() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto(), 1000 * MS);
        rtt.sample(100 * MS);
        assert_eq!(rtt.smoothed(), Some(100 * MS));
        assert_eq!(rtt.rto(), 300 * MS); // RFC 6298 §2.2: 100 + max(200, 4 * 50)
    }

    #[test]
    fn later_samples_move_them_by_an_eighth_and_a_quarter() {
        let mut rtt = estimator();
        rtt.sample(800 * MS);
        rtt.sample(1600 * MS);
        assert_eq!(rtt.smoothed(), Some(900 * MS));
        assert_eq!(rtt.rto(), 900 * MS + 4 * 500 * MS); // RTTVAR = 3/4 * 400 + 1/4 * 800
    }

    #[test]
    fn the_gains_are_shared_among_the_samples_of_a_round() {
        let mut rtt = estimator();
        rtt.sample(800 * MS);
        rtt.sample_of(1600 * MS, 4);
        assert_eq!(rtt.smoothed(), Some(825 * MS));
    }

    #[test]
    fn back_off_doubles_to_the_bound_and_ends() {
        let mut rtt = estimator();
        rtt.sample(100 * MS);
        rtt.back_off();
        assert_eq!(rtt.rto(), 600 * MS);
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), 60_000 * MS);
        rtt.reset_back_off();
        assert_eq!(rtt.rto(), 300 * MS);
    }

    #[test]
    fn a_lost_syn_makes_the_first_timeout_three_seconds() {
        let mut rtt = estimator();
        rtt.handshake_timed_out();
        assert_eq!(rtt.rto(), 3000 * MS);
        rtt.sample(100 * MS);
        assert_eq!(rtt.rto(), 300 * MS);
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut rtt = estimator();
        rtt.sample(Duration::MAX);
        rtt.sample(Duration::ZERO);
        rtt.sample(Duration::MAX);
        assert_eq!(rtt.rto(), 60_000 * MS);
    }
}
