//! Times of which some are only known to be longer than what was waited.
//!
//! A handshake that timed out after 10 s took more than 10 s: leaving it out would make a lossy
//! link look fast. It stays in as a censored sample (Kaplan and Meier 1958).

use statrs::distribution::{ContinuousCDF, Normal};

use crate::error::finite;
use crate::sample::quantile_ranks;
use crate::{BoundedEstimate, Confidence, Error};

/// A time, finished or given up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observation {
    /// It finished at this time.
    Finished(f64),
    /// It was watched until this time and had not finished.
    Censored(f64),
}

impl Observation {
    /// The time that was watched.
    #[must_use]
    pub fn time(self) -> f64 {
        match self {
            Self::Finished(time) | Self::Censored(time) => time,
        }
    }
}

/// A step of the curve: from `time` on, `survival` of the attempts are unfinished.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    time: f64,
    survival: f64,
    /// Greenwood's sum, Σ d / (n (n - d)); infinite once nobody is left.
    greenwood: f64,
}

/// The Kaplan-Meier estimate of how many are unfinished at each time.
#[derive(Debug, Clone, PartialEq)]
pub struct Survival {
    steps: Vec<Step>,
    /// Finished times, ascending.
    finished: Vec<f64>,
    count: usize,
    horizon: f64,
    /// Every censored time is at or past the last finish, as when one time limit censors.
    censored_last: bool,
}

impl Survival {
    /// Estimates the curve. At equal times the finished come before the censored, as is usual.
    ///
    /// # Errors
    /// [`Error::TooFew`] without observations, [`Error::NotFinite`].
    pub fn new(observations: &[Observation]) -> Result<Self, Error> {
        if observations.is_empty() {
            return Err(Error::TooFew { what: "a Kaplan-Meier curve", needed: 1, have: 0 });
        }
        let times: Vec<f64> = observations.iter().map(|o| o.time()).collect();
        finite(&times)?;
        let (mut finished, mut censored) = (Vec::new(), Vec::new());
        for observation in observations {
            match observation {
                Observation::Finished(time) => finished.push(*time),
                Observation::Censored(time) => censored.push(*time),
            }
        }
        finished.sort_unstable_by(f64::total_cmp);
        censored.sort_unstable_by(f64::total_cmp);
        let last = |times: &[f64]| times.last().copied();
        let horizon = last(&finished).into_iter().chain(last(&censored)).fold(f64::MIN, f64::max);
        let censored_last = match (last(&finished), censored.first()) {
            (Some(finish), Some(censor)) => *censor >= finish,
            _ => true,
        };
        let steps = steps(&finished, &censored);
        Ok(Self { steps, finished, count: observations.len(), horizon, censored_last })
    }

    /// How many observations there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many of them are censored.
    #[must_use]
    pub fn censored(&self) -> usize {
        self.count - self.finished.len()
    }

    /// The fraction unfinished just after `time`.
    #[must_use]
    pub fn at(&self, time: f64) -> f64 {
        let after = self.steps.partition_point(|step| step.time <= time);
        after.checked_sub(1).map_or(1.0, |last| self.steps[last].survival)
    }

    /// The curve's corners, (time, fraction unfinished from there on), for a plot.
    pub fn corners(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.steps.iter().map(|step| (step.time, step.survival))
    }

    /// The least time at which at least a fraction `p` has finished, or "not reached".
    ///
    /// Where every censored time is at or past the last finish (one time limit for all, the usual
    /// case) the interval is the exact one between order statistics, the censored counting as
    /// above all others. Where attempts were given up earlier, it is Brookmeyer and Crowley's on
    /// the log(-log) scale, which keeps its coverage for small samples better than the plain one.
    ///
    /// # Errors
    /// [`Error::Probability`] unless 0 < p < 1.
    pub fn quantile(&self, p: f64, confidence: Confidence) -> Result<BoundedEstimate, Error> {
        let (low_rank, high_rank) = quantile_ranks(self.count, p, confidence)?;
        // 1e-9: a product of fractions that should be exactly 1 - p may miss it by rounding.
        let value =
            self.steps.iter().find(|step| step.survival <= 1.0 - p + 1e-9).map(|step| step.time);
        let (low, high) = if self.censored_last {
            let ranked = |rank: Option<usize>| rank.and_then(|r| self.finished.get(r).copied());
            // No rank below: the least time is the most that can be said, and it holds trivially.
            (ranked(Some(low_rank.unwrap_or(0))), ranked(high_rank))
        } else {
            self.log_log_interval(p, confidence)
        };
        let low = match (low, value) {
            (Some(low), Some(value)) => Some(low.min(value)),
            (low, _) => low,
        };
        let high = match (high, value) {
            (Some(high), Some(value)) => Some(high.max(value)),
            _ => None,
        };
        let (horizon, confidence) = (self.horizon, confidence.level());
        Ok(BoundedEstimate { value, low, high, horizon, confidence })
    }

    /// The times whose survival does not differ from 1 - p at the confidence.
    fn log_log_interval(&self, p: f64, confidence: Confidence) -> (Option<f64>, Option<f64>) {
        let z = Normal::standard().inverse_cdf(1.0 - confidence.alpha() / 2.0);
        let target = (-(1.0 - p).ln()).ln();
        // (log(-log S) - target) / its standard error; rises with time. At S = 1 and 0 it is
        // not defined: there the curve says "before" and "after".
        let score = |step: &Step| {
            if step.survival >= 1.0 {
                f64::NEG_INFINITY
            } else if step.survival <= 0.0 {
                f64::INFINITY
            } else {
                let log = step.survival.ln();
                ((-log).ln() - target) / (step.greenwood.sqrt() / log.abs())
            }
        };
        let first = |holds: &dyn Fn(f64) -> bool| {
            self.steps.iter().find(|step| holds(score(step))).map(|step| step.time)
        };
        (first(&|score| score >= -z), first(&|score| score > z))
    }
}

fn steps(finished: &[f64], censored: &[f64]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut survival, mut greenwood) = (1.0, 0.0);
    let (mut at, mut gone) = (0, 0);
    let total = finished.len() + censored.len();
    while let Some(&time) = finished.get(at) {
        gone += censored[gone..].partition_point(|censor| *censor < time);
        let deaths = finished[at..].partition_point(|finish| *finish <= time);
        let risk = (total - at - gone) as f64;
        let left = risk - deaths as f64;
        survival *= left / risk;
        greenwood += deaths as f64 / (risk * left);
        at += deaths;
        steps.push(Step { time, survival, greenwood });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use Observation::{Censored, Finished};
    use proptest::prelude::*;

    /// Freireich et al. 1963, the 6-MP arm, as in every textbook.
    fn leukaemia() -> Survival {
        let finished = [6, 6, 6, 7, 10, 13, 16, 22, 23].map(|t| Finished(f64::from(t)));
        let censored =
            [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35].map(|t| Censored(f64::from(t)));
        Survival::new(&[finished.as_slice(), censored.as_slice()].concat()).unwrap()
    }

    #[test]
    fn the_textbook_curve() {
        let curve = leukaemia();
        assert_eq!((curve.count(), curve.censored()), (21, 12));
        for (time, survival) in [
            (5.9, 1.0),
            (6.0, 0.8571),
            (7.0, 0.8067),
            (10.0, 0.7529),
            (13.0, 0.6902),
            (16.0, 0.6275),
            (22.0, 0.5378),
            (23.0, 0.4482),
            (99.0, 0.4482),
        ] {
            assert!((curve.at(time) - survival).abs() < 5e-5, "S({time}) = {}", curve.at(time));
        }
        // R: survfit(..., conf.type = "log-log"): median 23, 0.95 limits 13 and NA.
        let median = curve.quantile(0.5, Confidence::C95).unwrap();
        assert_eq!((median.value, median.low, median.high), (Some(23.0), Some(13.0), None));
        let p99 = curve.quantile(0.99, Confidence::C95).unwrap();
        assert_eq!((p99.value, p99.high, p99.horizon), (None, None, 35.0));
        assert_eq!(p99.to_string(), "not reached (> 35)");
    }

    #[test]
    fn one_time_limit_gives_exact_ranks() {
        let mut all: Vec<Observation> = (1..=18).map(|t| Finished(f64::from(t))).collect();
        all.extend([Censored(30.0), Censored(30.0)]);
        let curve = Survival::new(&all).unwrap();
        let median = curve.quantile(0.5, Confidence::C95).unwrap();
        assert_eq!((median.value, median.low, median.high), (Some(10.0), Some(6.0), Some(15.0)));
        let p95 = curve.quantile(0.95, Confidence::C95).unwrap();
        assert_eq!((p95.value, p95.high), (None, None));
        assert_eq!(p95.low, Some(17.0));
    }

    #[test]
    fn all_censored_reaches_nothing() {
        let curve = Survival::new(&[Censored(3.0), Censored(5.0)]).unwrap();
        let median = curve.quantile(0.5, Confidence::C95).unwrap();
        assert_eq!(
            (median.value, median.low, median.high, median.horizon),
            (None, None, None, 5.0)
        );
        assert!(matches!(Survival::new(&[]), Err(Error::TooFew { .. })));
        assert!(matches!(Survival::new(&[Censored(f64::NAN)]), Err(Error::NotFinite { .. })));
        assert!(matches!(curve.quantile(1.0, Confidence::C95), Err(Error::Probability(_))));
    }

    proptest! {
        #[test]
        fn without_censoring_it_is_the_empirical_curve(times in prop::collection::vec(0u32..50, 1..40)) {
            let all: Vec<_> = times.iter().map(|t| Finished(f64::from(*t))).collect();
            let curve = Survival::new(&all).unwrap();
            for t in 0..50 {
                let later = times.iter().filter(|time| **time > t).count() as f64;
                prop_assert!((curve.at(f64::from(t)) - later / times.len() as f64).abs() < 1e-9);
            }
        }

        #[test]
        fn quantiles_rise_and_lie_in_their_intervals(
            times in prop::collection::vec((0u32..50, any::<bool>()), 1..40), p in 0.05f64..0.9,
        ) {
            let all: Vec<_> = times
                .iter()
                .map(|(t, done)| if *done { Finished(f64::from(*t)) } else { Censored(f64::from(*t)) })
                .collect();
            let curve = Survival::new(&all).unwrap();
            let at = |p| curve.quantile(p, Confidence::C95).unwrap();
            let (here, later) = (at(p), at(p + 0.05));
            match (here.value, later.value) {
                (Some(a), Some(b)) => prop_assert!(a <= b),
                (None, later) => prop_assert!(later.is_none()),
                _ => {}
            }
            if let Some(value) = here.value {
                prop_assert!(here.low.is_none_or(|low| low <= value));
                prop_assert!(here.high.is_none_or(|high| high >= value));
            }
        }
    }
}
