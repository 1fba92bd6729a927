//! How throughput grows with cores that share one lock: a queue with few customers.
//!
//! Each core works for a time, then takes its turn at what only one core can have at once: the cache lines
//! of a library's locks, as if they were one. A turn takes the time of handing the lines over from another
//! core, and none where the same core had them last; of N cores another one had them in (N - 1) of N cases.
//! The waiting is that of a closed queue of one server by mean value analysis (Reiser and Lavenberg, *Mean-Value
//! Analysis of Closed Multichain Queuing Networks*, 1980), with half a turn left of the one that is being
//! served, since all turns last alike. Pure. [`crate::simulated`] holds it against a simulation.

use serde::Serialize;

/// Core counts that a fit needs beside the first: the queue has one coefficient beside its scale.
const LEAST_BESIDE: usize = 2;

/// Cores that share one lock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Queue {
    /// Handshakes per second of one core.
    pub alone: f64,
    /// The time of a handshake's turns, when each is handed over, as a share of one core's time for the whole
    /// handshake.
    pub serial: f64,
}

impl Queue {
    /// From counts: one core's time for a handshake, and that of its hand-overs one after another, both in
    /// microseconds. None where they are no times.
    #[must_use]
    pub fn of_counts(cpu_us: f64, handed_over_us: f64) -> Option<Queue> {
        let times = cpu_us > 0.0 && cpu_us.is_finite() && handed_over_us >= 0.0;
        (times && handed_over_us.is_finite())
            .then(|| Queue { alone: 1e6 / cpu_us, serial: handed_over_us / cpu_us })
    }

    /// Through rates per second at different core counts, by least squares of relative errors. None for fewer
    /// than three counts, or rates that are none.
    #[must_use]
    pub fn fit(points: &[(u32, f64)]) -> Option<Queue> {
        let good = |&(cores, rate): &(u32, f64)| cores > 0 && rate > 0.0 && rate.is_finite();
        let beside = points.iter().filter(|(cores, _)| *cores > 1).count();
        if beside < LEAST_BESIDE || points.len() <= LEAST_BESIDE || !points.iter().all(good) {
            return None;
        }
        let of = |serial: f64| {
            let shapes: Vec<f64> = points
                .iter()
                .map(|&(cores, rate)| Queue { alone: 1.0, serial }.at(cores) / rate)
                .collect();
            // The scale that makes the squares least is in closed form.
            let alone =
                shapes.iter().sum::<f64>() / shapes.iter().map(|one| one * one).sum::<f64>();
            let error: f64 = shapes.iter().map(|shape| (alone * shape - 1.0).powi(2)).sum();
            (alone, error)
        };
        let serial = least(|serial| of(serial).1);
        Some(Queue { alone: of(serial).0, serial }).filter(|queue| queue.alone.is_finite())
    }

    /// Handshakes per second of so many cores.
    #[must_use]
    pub fn at(&self, cores: u32) -> f64 {
        // Who finds nobody before him: another core had the lines last in so many cases.
        let other = f64::from(cores.saturating_sub(1)) / f64::from(cores.max(1));
        // In units of one core's time for a handshake.
        let (mut present, mut busy, mut rate) = (0.0, 0.0, 0.0);
        for customers in 1..=cores {
            // Who waits for others is handed the lines in any case.
            let turn = self.serial * ((1.0 - busy) * other + busy);
            let passing = turn + self.serial * (present - busy / 2.0);
            rate = f64::from(customers) / (1.0 + passing);
            if cores > 1 && self.serial > 0.0 {
                rate = f64::min(rate, 1.0 / self.serial);
            }
            present = rate * passing;
            busy = f64::min(rate * turn, 1.0);
        }
        self.alone * rate
    }

    /// The rate that no number of cores comes beyond; none where nothing is shared.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        (self.serial > 0.0).then(|| self.alone / self.serial)
    }
}

/// Where a function of a share has its least value: coarsely over all magnitudes, then between the
/// neighbours of the best.
fn least(of: impl Fn(f64) -> f64) -> f64 {
    const STEPS: i32 = 120;
    let share = |step: i32| match step {
        0 => 0.0,
        // From a millionth to ten times the work itself.
        step => 10f64.powf(-6.0 + 7.0 * f64::from(step) / f64::from(STEPS)),
    };
    let best = (0..=STEPS).min_by(|a, b| of(share(*a)).total_cmp(&of(share(*b)))).unwrap_or(0);
    let (mut low, mut high) = (share((best - 1).max(0)), share((best + 1).min(STEPS)));
    for _ in 0..60 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if of(left) <= of(right) {
            high = right;
        } else {
            low = left;
        }
    }
    if of(0.0) <= of(low) { 0.0 } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_locks_every_core_adds_as_much() {
        let queue = Queue::of_counts(500.0, 0.0).unwrap();
        assert_eq!(queue.at(1), 2000.0);
        assert_eq!(queue.at(64), 128_000.0);
        assert_eq!(queue.limit(), None);
        assert_eq!(Queue::of_counts(0.0, 1.0), None);
        assert_eq!(Queue::of_counts(1.0, f64::NAN), None);
    }

    #[test]
    fn one_core_never_waits_and_many_come_to_the_limit() {
        let queue = Queue::of_counts(400.0, 40.0).unwrap();
        assert_eq!(queue.at(1), 2500.0);
        let limit = queue.limit().unwrap();
        assert_eq!(limit, 25_000.0);
        assert!((queue.at(64) / limit - 1.0).abs() < 0.01, "{}", queue.at(64));
        assert_eq!(queue.at(0), 0.0);
    }

    #[test]
    fn a_fit_takes_three_counts_and_rates() {
        let queue = Queue { alone: 1000.0, serial: 0.05 };
        let points = |counts: &[u32]| -> Vec<(u32, f64)> {
            counts.iter().map(|cores| (*cores, queue.at(*cores))).collect()
        };
        let fit = Queue::fit(&points(&[1, 2, 4, 8])).unwrap();
        assert!((fit.alone / 1000.0 - 1.0).abs() < 1e-6 && (fit.serial / 0.05 - 1.0).abs() < 1e-4);
        assert_eq!(Queue::fit(&points(&[1, 2])), None);
        assert_eq!(Queue::fit(&[(1, 1.0), (2, 2.0), (4, f64::NAN)]), None);
        assert_eq!(Queue::fit(&[(1, 1.0), (2, 2.0), (0, 3.0)]), None);
        let free = Queue::fit(&[(1, 10.0), (2, 20.0), (4, 40.0)]).unwrap();
        assert!(free.serial < 1e-5 && (free.at(64) / 640.0 - 1.0).abs() < 1e-3, "{free:?}");
    }

    proptest! {
        #[test]
        fn more_cores_never_do_much_less_and_never_more_than_their_number(
            cpu in 10.0f64..5000.0, handed in 0.0f64..500.0
        ) {
            let queue = Queue::of_counts(cpu, handed).unwrap();
            for cores in 1..100 {
                let rate = queue.at(cores);
                prop_assert!(rate <= queue.alone * f64::from(cores) * (1.0 + 1e-9));
            }
        }
    }
}
