//! Times of which some are only known to be longer than was waited.
//!
//! A connection that was given up after 1 s took longer than 1 s. It stays in as a censored time (Kaplan and
//! Meier 1958): left out, a server that answers no one would look fast.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The longest latency told apart: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

fn histogram() -> Result<Histogram<u64>, Error> {
    // Below a microsecond the steps are one nanosecond.
    Histogram::new_with_bounds(1, LONGEST, 3)
        .map_err(|cause| Error::System(format!("a histogram cannot be made: {cause}")))
}

/// Times in nanoseconds, three digits exact.
#[derive(Debug)]
pub(crate) struct Latency {
    finished: Histogram<u64>,
    /// Made when it is needed, which is seldom.
    censored: Option<Box<Histogram<u64>>>,
    /// The longest time that was watched, exactly.
    horizon: u64,
}

impl Latency {
    pub(crate) fn new() -> Result<Latency, Error> {
        Ok(Latency { finished: histogram()?, censored: None, horizon: 0 })
    }

    /// Something took this long.
    pub(crate) fn record(&mut self, nanos: u64) {
        self.finished.saturating_record(nanos);
    }

    /// Something was watched this long and had not finished.
    pub(crate) fn censor(&mut self, nanos: u64) {
        self.censor_many(nanos, 1);
    }

    /// As [`Latency::censor`], of several.
    pub(crate) fn censor_many(&mut self, nanos: u64, count: u64) {
        if self.censored.is_none() {
            // It was made once with these bounds, so that it can be made again.
            self.censored = histogram().ok().map(Box::new);
        }
        if let Some(censored) = &mut self.censored {
            censored.saturating_record_n(nanos, count);
        }
        self.horizon = self.horizon.max(nanos);
    }

    /// Takes in what another counted.
    pub(crate) fn merge(&mut self, other: &Latency) {
        // Both have the same bounds, so that nothing can be out of range.
        let _ = self.finished.add(&other.finished);
        if let Some(theirs) = &other.censored {
            match &mut self.censored {
                Some(ours) => drop(ours.add(theirs.as_ref())),
                None => self.censored = Some(theirs.clone()),
            }
        }
        self.horizon = self.horizon.max(other.horizon);
    }

    /// This share of all times was watched no longer than this.
    fn watched(&self, share: f64) -> u64 {
        let Some(censored) = &self.censored else { return self.finished.value_at_quantile(share) };
        let mut all = self.finished.clone();
        // Both have the same bounds, so that nothing can be out of range.
        let _ = all.add(censored.as_ref());
        all.value_at_quantile(share).min(self.horizon)
    }

    fn censored_count(&self) -> u64 {
        self.censored.as_ref().map_or(0, |censored| censored.len())
    }

    /// The Kaplan-Meier quantiles of these shares, in nanoseconds; `None` where too many were given up to
    /// know. The shares ascend.
    fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Option<u64>; N] {
        let mut found = [None; N];
        let Some(censored) = &self.censored else {
            let any = !self.finished.is_empty();
            return shares.map(|share| any.then(|| self.finished.value_at_quantile(share)));
        };
        let mut given_up = censored.iter_recorded().peekable();
        let mut at_risk = (self.finished.len() + censored.len()) as f64;
        let mut survival = 1.0;
        let mut next = 0;
        for step in self.finished.iter_recorded() {
            let time = step.value_iterated_to();
            while let Some(gone) = given_up.next_if(|gone| gone.value_iterated_to() < time) {
                at_risk -= gone.count_at_value() as f64;
            }
            let ended = step.count_at_value() as f64;
            survival *= (at_risk - ended).max(0.0) / at_risk;
            at_risk -= ended;
            // 1e-9: a product of fractions that should be exactly 1 - share may miss it by rounding.
            while let Some(share) = shares.get(next)
                && survival <= 1.0 - share + 1e-9
            {
                if let Some(found) = found.get_mut(next) {
                    *found = Some(self.finished.highest_equivalent(time));
                }
                next += 1;
            }
        }
        found
    }
}

/// A distribution of times, by a histogram of three digits. What was given up counts as longer than it was
/// waited for: a quantile is null where it lies there, and above `longer_than_us`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many times were measured to their end.
    pub count: u64,
    /// How many were given up: they took longer than they were waited for.
    pub censored: u64,
    /// The quantiles that are null, and the maximum if it is, are longer than this, in microseconds; null if none
    /// is.
    pub longer_than_us: Option<f64>,
    /// Mean, in microseconds; null if any was given up.
    pub mean_us: Option<f64>,
    /// Minimum of those measured, in microseconds.
    pub min_us: f64,
    /// Median, in microseconds.
    pub p50_us: Option<f64>,
    /// 90 % are not above it.
    pub p90_us: Option<f64>,
    /// 99 % are not above it.
    pub p99_us: Option<f64>,
    /// 99.9 % are not above it.
    pub p999_us: Option<f64>,
    /// 99.99 % are not above it.
    pub p9999_us: Option<f64>,
    /// Maximum, in microseconds; null if one that was given up was waited for longer.
    pub max_us: Option<f64>,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary {
            count: 0,
            censored: 0,
            longer_than_us: None,
            mean_us: Some(0.0),
            min_us: 0.0,
            p50_us: Some(0.0),
            p90_us: Some(0.0),
            p99_us: Some(0.0),
            p999_us: Some(0.0),
            p9999_us: Some(0.0),
            max_us: Some(0.0),
        }
    }
}

impl Summary {
    pub(crate) fn of(latency: &Latency) -> Summary {
        let finished = &latency.finished;
        let censored = latency.censored_count();
        if finished.is_empty() && censored == 0 {
            return Summary::default();
        }
        let us = |nanos: u64| nanos as f64 / 1e3;
        let all = censored == 0;
        let shares = [0.5, 0.9, 0.99, 0.999, 0.9999];
        let quantiles = latency.quantiles(shares);
        let max = Some(finished.max()).filter(|max| all || *max > latency.horizon);
        // Had each ended when it was given up, a quantile would be this long: it is longer.
        let unknown = shares.iter().zip(quantiles).find(|(_, nanos)| nanos.is_none());
        let longer_than = match (unknown, max) {
            (Some((share, _)), _) => Some(latency.watched(*share)),
            (None, None) => Some(latency.horizon),
            (None, Some(_)) => None,
        };
        let [p50, p90, p99, p999, p9999] = quantiles.map(|nanos| nanos.map(us));
        Summary {
            count: finished.len(),
            censored,
            longer_than_us: longer_than.map(us),
            mean_us: all.then(|| finished.mean() / 1e3),
            min_us: us(finished.min()),
            p50_us: p50,
            p90_us: p90,
            p99_us: p99,
            p999_us: p999,
            p9999_us: p9999,
            max_us: max.map(us),
        }
    }

    /// Whether nothing was measured or given up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.censored == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::{Confidence, Observation, Survival};

    use super::*;

    const MS: u64 = 1_000_000;

    /// The same times, as the package of statistics has them.
    fn judge(finished: &[u64], censored: &[u64], share: f64) -> Option<f64> {
        let of = |times: &[u64], what: fn(f64) -> Observation| -> Vec<Observation> {
            times.iter().map(|time| what(*time as f64)).collect()
        };
        let all =
            [of(finished, Observation::Finished), of(censored, Observation::Censored)].concat();
        Survival::new(&all).unwrap().quantile(share, Confidence::C95).unwrap().value
    }

    fn latency(finished: &[u64], censored: &[u64]) -> Latency {
        let mut latency = Latency::new().unwrap();
        finished.iter().for_each(|time| latency.record(*time));
        censored.iter().for_each(|time| latency.censor(*time));
        latency
    }

    #[test]
    fn those_given_up_count_as_longer() {
        // 203 of 1000 were given up after a second: the 90th percentile lies above it.
        let finished: Vec<u64> = (1..=797).map(|n| n * MS / 4).collect();
        let summary = Summary::of(&latency(&finished, &[1000 * MS; 203]));
        assert_eq!((summary.count, summary.censored), (797, 203));
        assert_eq!((summary.p90_us, summary.p99_us, summary.max_us), (None, None, None));
        assert_eq!((summary.mean_us, summary.longer_than_us), (None, Some(1e6)));
        let p50 = summary.p50_us.unwrap();
        assert!((p50 / 125_000.0 - 1.0).abs() < 2e-3, "{p50}");
        // Without them it is as before.
        let summary = Summary::of(&latency(&finished, &[]));
        assert_eq!((summary.censored, summary.longer_than_us), (0, None));
        assert!(summary.p90_us.is_some() && summary.max_us.is_some() && summary.mean_us.is_some());
    }

    #[test]
    fn nothing_that_finished_has_no_quantile() {
        let summary = Summary::of(&latency(&[], &[5 * MS, 7 * MS]));
        assert_eq!((summary.count, summary.censored, summary.p50_us), (0, 2, None));
        // The median may be little more than 5 ms.
        let longer = summary.longer_than_us.unwrap();
        assert!((longer / 5000.0 - 1.0).abs() < 2e-3, "{longer}");
        assert_eq!(Summary::of(&latency(&[], &[])), Summary::default());
    }

    #[test]
    fn one_that_was_given_up_early_leaves_the_rest_known() {
        let summary = Summary::of(&latency(&[2 * MS, 3 * MS], &[MS]));
        assert_eq!((summary.longer_than_us, summary.mean_us), (None, None));
        assert!(summary.p9999_us.is_some() && summary.max_us.is_some());
        // Only the maximum is longer than what was waited.
        let finished: Vec<u64> = (1..=20_001).map(|_| MS).collect();
        let summary = Summary::of(&latency(&finished, &[9 * MS]));
        assert!(summary.p9999_us.is_some());
        assert_eq!((summary.max_us, summary.longer_than_us), (None, Some(9000.0)));
    }

    #[test]
    fn merged_is_as_measured_together() {
        let (mut one, other) = (latency(&[MS, 2 * MS], &[]), latency(&[3 * MS], &[9 * MS]));
        one.merge(&other);
        let together = Summary::of(&latency(&[MS, 2 * MS, 3 * MS], &[9 * MS]));
        assert_eq!(Summary::of(&one), together);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_kaplan_and_meier(
            finished in proptest::collection::vec(1u64..1000, 1..60),
            censored in proptest::collection::vec(1u64..1200, 1..60),
        ) {
            // Below 2048 ns the histogram is exact.
            let latency = latency(&finished, &censored);
            let found = latency.quantiles([0.5, 0.9]);
            for (share, found) in [0.5, 0.9].into_iter().zip(found) {
                prop_assert_eq!(found.map(|time| time as f64), judge(&finished, &censored, share));
            }
        }
    }
}
