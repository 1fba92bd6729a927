//! When connections are meant to start, and which of them are to resume a session. Pure: times are
//! nanoseconds since the start of the run, and nothing here looks at a clock.

use std::time::Duration;

/// Which of the connections are to resume: the given share of them, as evenly spread as can be.
#[derive(Debug, Clone, Copy)]
pub struct Mix {
    share: f64,
    owed: f64,
}

impl Mix {
    /// A mix with this share (0 to 1) of resumed handshakes.
    #[must_use]
    pub fn new(share: f64) -> Mix {
        Mix { share: share.clamp(0.0, 1.0), owed: 0.0 }
    }

    /// Whether the next connection is to resume. Of any `n` in a row, `n × share` are, to within one.
    pub fn next_resumes(&mut self) -> bool {
        self.owed += self.share;
        // The sum of many shares is not exact: 10 times 0.1 must be owed as 1.
        let due = self.owed >= 1.0 - 1e-9;
        if due {
            self.owed -= 1.0;
        }
        due
    }
}

/// The starts of an open loop: a constant rate, reached by a linear ramp, of which this worker takes
/// every `of`-th. A start that is late stays due at its own time: nothing is left out (no coordinated
/// omission).
#[derive(Debug, Clone)]
pub struct Arrivals {
    rate: f64,
    ramp: f64,
    next: u64,
    step: u64,
    end: Option<u64>,
}

impl Arrivals {
    /// Starts at `rate` a second after a ramp from 0; this is worker `worker` of `of`. No start at or
    /// after `duration`, nor beyond `count` (both over all workers).
    #[must_use]
    pub fn new(
        rate: f64,
        ramp: Duration,
        duration: Option<Duration>,
        count: Option<u64>,
        worker: usize,
        of: usize,
    ) -> Arrivals {
        let mut arrivals = Arrivals {
            rate,
            ramp: ramp.as_secs_f64(),
            next: worker as u64,
            step: of.max(1) as u64,
            end: None,
        };
        let in_time = duration.map(|duration| arrivals.before(nanos(duration)));
        arrivals.end = match (in_time, count) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        arrivals
    }

    /// When start number `index` (of all workers' starts, from 0) is due.
    ///
    /// In the ramp the rate at time t is `rate × t / ramp`, so that `rate × t² / (2 ramp)` have
    /// started by then.
    fn time_of(&self, index: u64) -> u64 {
        let index = index as f64;
        let in_ramp = self.rate * self.ramp / 2.0;
        let seconds = if index < in_ramp {
            (2.0 * index * self.ramp / self.rate).sqrt()
        } else {
            self.ramp + (index - in_ramp) / self.rate
        };
        (seconds * 1e9).round() as u64
    }

    /// How many starts, of all workers, are due before `time`.
    fn before(&self, time: u64) -> u64 {
        let seconds = time as f64 / 1e9;
        let guess = if seconds < self.ramp {
            self.rate * seconds * seconds / (2.0 * self.ramp)
        } else {
            self.rate * (self.ramp / 2.0 + seconds - self.ramp)
        };
        // `time_of` decides; the inverse may be off by one.
        let mut count = guess.max(0.0) as u64;
        while count > 0 && self.time_of(count - 1) >= time {
            count -= 1;
        }
        while self.time_of(count) < time {
            count += 1;
        }
        count
    }

    /// When the next start of this worker is due, if there is one.
    #[must_use]
    pub fn peek(&self) -> Option<u64> {
        let there = self.end.is_none_or(|end| self.next < end);
        there.then(|| self.time_of(self.next))
    }

    /// Takes the next start.
    pub fn take(&mut self) -> Option<u64> {
        let due = self.peek()?;
        self.next = self.next.saturating_add(self.step);
        Some(due)
    }

    /// How many starts of this worker are due before `time` and not taken.
    #[must_use]
    pub fn behind(&self, time: u64) -> u64 {
        let due = self.before(time);
        let due = self.end.map_or(due, |end| end.min(due));
        due.saturating_sub(self.next).div_ceil(self.step)
    }
}

/// Most times by which [`Arrivals::sample_behind`] stands for all.
const SAMPLES: u64 = 10_000;

impl Arrivals {
    /// When the starts of this worker were due that are due before `time` and not taken, each with how many it
    /// stands for: of very many, evenly spread ones.
    pub fn sample_behind(&self, time: u64) -> impl Iterator<Item = (u64, u64)> {
        let all = self.behind(time);
        let each = all.div_ceil(SAMPLES).max(1);
        let plan = self.clone();
        (0..all.div_ceil(each)).map(move |number| {
            let first = number * each;
            let count = each.min(all - first);
            (plan.time_of(plan.next + (first + count / 2) * plan.step), count)
        })
    }
}

/// The first start of each connection of a closed loop: evenly over the ramp. Slot `slot` of `slots`.
#[must_use]
pub fn closed_start(ramp: Duration, slot: usize, slots: usize) -> u64 {
    let share = slot as f64 / slots.max(1) as f64;
    (nanos(ramp) as f64 * share) as u64
}

/// This worker's part of `total` things: the first workers take one more where it does not divide.
#[must_use]
pub fn part(total: u64, worker: usize, of: usize) -> u64 {
    let (worker, of) = (worker as u64, of.max(1) as u64);
    total / of + u64::from(worker < total % of)
}

/// A duration in nanoseconds.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn arrivals(rate: f64, ramp_ms: u64, duration_ms: u64) -> Arrivals {
        let (ramp, duration) = (Duration::from_millis(ramp_ms), Duration::from_millis(duration_ms));
        Arrivals::new(rate, ramp, Some(duration), None, 0, 1)
    }

    #[test]
    fn a_constant_rate_starts_at_even_times() {
        let mut plan = arrivals(1000.0, 0, 5);
        let starts: Vec<u64> = std::iter::from_fn(|| plan.take()).collect();
        assert_eq!(starts, [0, MS, 2 * MS, 3 * MS, 4 * MS]);
        assert_eq!(plan.peek(), None);
    }

    #[test]
    fn the_ramp_starts_half_as_many() {
        // 100/s after a ramp of 2 s: 100 in the ramp, the first after it at 2 s sharp.
        let mut plan = arrivals(100.0, 2_000, 3_000);
        let starts: Vec<u64> = std::iter::from_fn(|| plan.take()).collect();
        assert_eq!(starts.iter().filter(|start| **start < 2_000 * MS).count(), 100);
        assert_eq!(starts[25], 1_000 * MS); // a quarter of them by half the time
        assert_eq!(starts[100], 2_000 * MS);
        assert_eq!(starts[101], 2_010 * MS);
        assert_eq!(starts.len(), 200);
    }

    #[test]
    fn late_starts_stay_due_at_their_own_time() {
        let mut plan = arrivals(1000.0, 0, 1_000);
        assert_eq!(plan.take(), Some(0));
        // The server stalls until 100 ms: what was due in between is still to come, in order.
        assert_eq!(plan.behind(100 * MS), 99);
        assert_eq!(plan.take(), Some(MS));
        assert_eq!(plan.take(), Some(2 * MS));
        assert_eq!(plan.behind(100 * MS), 97);
        assert_eq!(plan.behind(u64::MAX / 2), 997, "none beyond the end");
    }

    #[test]
    fn all_that_is_behind_is_sampled() {
        let mut plan = arrivals(1000.0, 0, 1_000);
        plan.take();
        let behind: Vec<_> = plan.sample_behind(4 * MS).collect();
        assert_eq!(behind, [(MS, 1), (2 * MS, 1), (3 * MS, 1)]);
        let plan = arrivals(1e6, 0, 1_000);
        let behind: Vec<_> = plan.sample_behind(1_000 * MS).collect();
        assert_eq!(behind.len(), 10_000);
        assert_eq!(behind.iter().map(|(_, count)| count).sum::<u64>(), 1_000_000);
        assert!(behind.iter().all(|(due, _)| *due < 1_000 * MS));
    }

    #[test]
    fn a_count_bounds_it_too() {
        let plan = |count| {
            let second = Some(Duration::from_secs(1));
            let plan = Arrivals::new(100.0, Duration::ZERO, second, Some(count), 0, 1);
            std::iter::successors(Some(plan), |plan| {
                let mut plan = plan.clone();
                plan.take().map(|_| plan)
            })
            .count()
                - 1
        };
        assert_eq!((plan(7), plan(100), plan(1000)), (7, 100, 100));
    }

    #[test]
    fn the_mix_is_exact() {
        for (share, of, want) in
            [(0.8, 10, 8), (0.1, 10, 1), (0.0, 10, 0), (1.0, 10, 10), (1.0 / 3.0, 999, 333)]
        {
            let mut mix = Mix::new(share);
            let resumed = (0..of).filter(|_| mix.next_resumes()).count();
            assert_eq!(resumed, want, "{share} of {of}");
        }
    }

    #[test]
    fn closed_starts_fill_the_ramp() {
        let starts: Vec<u64> =
            (0..4).map(|slot| closed_start(Duration::from_millis(8), slot, 4)).collect();
        assert_eq!(starts, [0, 2 * MS, 4 * MS, 6 * MS]);
        assert_eq!(closed_start(Duration::ZERO, 3, 4), 0);
    }

    proptest! {
        #[test]
        fn workers_share_the_starts(rate in 0.5f64..50_000.0, ramp in 0u64..500, workers in 1usize..9) {
            let (ramp, end) = (Duration::from_millis(ramp), Some(Duration::from_millis(700)));
            let whole = Arrivals::new(rate, ramp, end, None, 0, 1);
            let mut one: Vec<u64> = { let mut plan = whole.clone(); std::iter::from_fn(move || plan.take()).collect() };
            let mut all = Vec::new();
            for worker in 0..workers {
                let mut plan = Arrivals::new(rate, ramp, end, None, worker, workers);
                prop_assert_eq!(plan.behind(nanos(Duration::from_millis(700))), {
                    let mut copy = plan.clone();
                    std::iter::from_fn(move || copy.take()).count() as u64
                });
                while let Some(start) = plan.take() { all.push(start); }
            }
            all.sort_unstable();
            one.sort_unstable();
            prop_assert!(one.iter().all(|start| *start < 700 * MS));
            prop_assert_eq!(all, one);
        }

        #[test]
        fn parts_add_up(total in 0u64..10_000, of in 1usize..20) {
            let parts: Vec<u64> = (0..of).map(|worker| part(total, worker, of)).collect();
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }

        #[test]
        fn the_mix_is_within_one(share in 0f64..=1.0, of in 1usize..2_000) {
            let mut mix = Mix::new(share);
            let mut resumed = 0f64;
            for done in 1..=of {
                resumed += f64::from(u8::from(mix.next_resumes()));
                prop_assert!((resumed - share * done as f64).abs() < 1.0 + 1e-6);
            }
        }
    }
}
