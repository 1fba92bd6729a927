//! One set of samples, sorted.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::error::finite;
use crate::{BoundedEstimate, Confidence, Error, Estimate};

/// Finite numbers in ascending order, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

impl Sample {
    /// Sorts `values`.
    ///
    /// # Errors
    /// [`Error::TooFew`] without any, [`Error::NotFinite`] for NaN and infinities.
    pub fn new(values: &[f64]) -> Result<Self, Error> {
        Self::from_vec(values.to_vec())
    }

    /// As [`Sample::new`], without a copy.
    ///
    /// # Errors
    /// As [`Sample::new`].
    pub fn from_vec(mut values: Vec<f64>) -> Result<Self, Error> {
        if values.is_empty() {
            return Err(Error::TooFew { what: "a quantile", needed: 1, have: 0 });
        }
        finite(&values)?;
        values.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted: values })
    }

    /// The values in ascending order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// How many there are: at least one.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The least value.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    /// The greatest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        // Of parts, so that the sum of large values does not overflow.
        let count = self.sorted.len() as f64;
        self.sorted.iter().map(|value| value / count).sum()
    }

    /// The quantile at `p`, by definition 7 of Hyndman and Fan (1996), the default of R and NumPy:
    /// linear between order statistics, with h = (n - 1) p.
    ///
    /// # Errors
    /// [`Error::Probability`] unless 0 ≤ p ≤ 1.
    pub fn quantile(&self, p: f64) -> Result<f64, Error> {
        if (0.0..=1.0).contains(&p) {
            Ok(quantile_of_sorted(&self.sorted, p))
        } else {
            Err(Error::Probability(p))
        }
    }

    /// The median: the middle value, or the mean of the middle two.
    #[must_use]
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.sorted)
    }

    /// The median absolute deviation from the median, unscaled. Times 1.4826 it estimates the
    /// standard deviation of normal samples.
    #[must_use]
    pub fn mad(&self) -> f64 {
        let median = self.median();
        let mut deviations: Vec<f64> = self.sorted.iter().map(|v| (v - median).abs()).collect();
        deviations.sort_unstable_by(f64::total_cmp);
        median_of_sorted(&deviations)
    }

    /// The median with the exact interval between two order statistics, symmetric in rank. Its
    /// true confidence is at least what is asked for any continuous distribution; where n is too
    /// small for that, the interval is the whole range and [`Estimate::confidence`] its true
    /// coverage, 1 - 2^(1 - n).
    #[must_use]
    pub fn median_estimate(&self, confidence: Confidence) -> Estimate {
        let count = self.sorted.len();
        let (rank, reached) = median_rank(count, confidence);
        Estimate {
            value: self.median(),
            low: self.sorted[rank],
            high: self.sorted[count - 1 - rank],
            confidence: reached,
        }
    }

    /// The quantile at `p` with the exact interval between order statistics, each tail holding at
    /// most half of what lies outside. An end that so few samples cannot give is `None`: 20
    /// samples do not bound a 99th percentile from above.
    ///
    /// # Errors
    /// [`Error::Probability`] unless 0 < p < 1.
    pub fn quantile_estimate(
        &self,
        p: f64,
        confidence: Confidence,
    ) -> Result<BoundedEstimate, Error> {
        let value = self.quantile(p)?;
        let (low, high) = quantile_ranks(self.sorted.len(), p, confidence)?;
        Ok(BoundedEstimate {
            value: Some(value),
            low: low.map(|rank| self.sorted[rank]).filter(|low| *low <= value),
            high: high.map(|rank| self.sorted[rank]).map(|high| high.max(value)),
            horizon: self.max(),
            confidence: confidence.level(),
        })
    }
}

/// The median of some numbers; `None` without any, or where one is not finite.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    Some(Sample::new(values).ok()?.median())
}

/// The median of some numbers with its exact interval ([`Sample::median_estimate`]) at 95 %; `None` as of [`median`].
#[must_use]
pub fn median_estimate(values: &[f64]) -> Option<Estimate> {
    Some(Sample::new(values).ok()?.median_estimate(Confidence::C95))
}

/// Definition 7 over a slice that is sorted and not empty, with 0 ≤ p ≤ 1.
pub(crate) fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let h = p * last as f64;
    let below = (h.floor() as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    between(low, high, h - below as f64)
}

/// The median of a slice that is sorted and not empty.
pub(crate) fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        between(sorted[middle - 1], sorted[middle], 0.5)
    }
}

/// The value a fraction of the way from `low` to `high`, never outside them, without overflow.
fn between(low: f64, high: f64, fraction: f64) -> f64 {
    if low == high {
        return low;
    }
    (low * (1.0 - fraction) + high * fraction).clamp(low, high)
}

/// The rank (from 0, counted from either end) whose order statistics bound the median with the
/// asked confidence, and the confidence to state: the asked one, or the true one of the whole
/// range when that is less.
fn median_rank(count: usize, confidence: Confidence) -> (usize, f64) {
    // P(the median lies outside the ranks r .. n-1-r) = 2 P(B <= r), B ~ binomial(n, 1/2).
    let outside = |rank: usize| 2.0 * binomial_cdf(rank as u64, count, 0.5);
    let alpha = confidence.alpha();
    if outside(0) > alpha {
        // Exactly 0 for one sample, where the sum of probabilities has a rounding error.
        return (0, 1.0 - 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX) - 1));
    }
    // `outside` grows with the rank: the largest rank that still holds, by bisection.
    let (mut holds, mut fails) = (0, count.div_ceil(2));
    while fails - holds > 1 {
        let middle = holds + (fails - holds) / 2;
        if outside(middle) <= alpha { holds = middle } else { fails = middle }
    }
    (holds, confidence.level())
}

/// The ranks (from 0) whose order statistics bound the quantile at `p`, each where it exists.
///
/// # Errors
/// [`Error::Probability`] unless 0 < p < 1.
pub(crate) fn quantile_ranks(
    count: usize,
    p: f64,
    confidence: Confidence,
) -> Result<(Option<usize>, Option<usize>), Error> {
    if !(p > 0.0 && p < 1.0) {
        return Err(Error::Probability(p));
    }
    let tail = confidence.alpha() / 2.0;
    // B ~ binomial(n, p) counts the samples below the quantile. The order statistic of rank r
    // (from 0) is above the quantile exactly when B <= r.
    let below = |rank: usize| binomial_cdf(rank as u64, count, p);
    let first_where = |holds: &dyn Fn(usize) -> bool| {
        let (mut from, mut to) = (0, count);
        while from < to {
            let middle = from + (to - from) / 2;
            if holds(middle) { to = middle } else { from = middle + 1 }
        }
        from
    };
    // Low: the largest rank with P(B <= rank) <= tail. High: the least with P(B > rank) <= tail.
    let low = first_where(&|rank| below(rank) > tail).checked_sub(1);
    let high = Some(first_where(&|rank| 1.0 - below(rank) <= tail)).filter(|rank| *rank < count);
    Ok((low, high))
}

/// P(B ≤ `at`) for B ~ binomial(`count`, `p`).
fn binomial_cdf(at: u64, count: usize, p: f64) -> f64 {
    match Binomial::new(p, count as u64) {
        Ok(binomial) => binomial.cdf(at),
        // `p` is checked by the callers; 0 makes no interval where there should be none.
        Err(_) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn quantiles_are_type_7() {
        // numpy.quantile([15, 20, 35, 40, 50], [0.05, 0.3, 0.4, 0.5, 0.95])
        let s = sample(&[35.0, 20.0, 15.0, 50.0, 40.0]);
        for (p, expected) in [(0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.5, 35.0), (0.95, 48.0)] {
            assert!((s.quantile(p).unwrap() - expected).abs() < 1e-12, "p = {p}");
        }
        assert_eq!((s.quantile(0.0), s.quantile(1.0)), (Ok(15.0), Ok(50.0)));
        assert_eq!((s.median(), s.mad(), s.mean()), (35.0, 15.0, 32.0));
        assert_eq!(s.quantile(1.1), Err(Error::Probability(1.1)));
        assert!(matches!(s.quantile(f64::NAN), Err(Error::Probability(p)) if p.is_nan()));
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        assert!(matches!(Sample::new(&[]), Err(Error::TooFew { needed: 1, have: 0, .. })));
        assert!(matches!(
            Sample::new(&[1.0, f64::NAN]),
            Err(Error::NotFinite { index: 1, value }) if value.is_nan()
        ));
    }

    #[test]
    fn median_intervals_use_the_tabled_ranks() {
        // Hahn and Meeker, Table A.12 / scipy.stats.binom: ranks from 1, 95 %.
        for (count, low, high) in
            [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15), (100, 40, 61)]
        {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let estimate = sample(&values).median_estimate(Confidence::C95);
            assert_eq!(
                (estimate.low, estimate.high),
                (f64::from(low), f64::from(high)),
                "n = {count}"
            );
            assert_eq!(estimate.confidence, 0.95);
        }
    }

    #[test]
    fn five_samples_do_not_pretend_to_95_percent() {
        let estimate = sample(&[1.0, 2.0, 3.0, 4.0, 5.0]).median_estimate(Confidence::C95);
        assert_eq!((estimate.low, estimate.high), (1.0, 5.0));
        assert!((estimate.confidence - 0.9375).abs() < 1e-12);
        let one = sample(&[7.0]).median_estimate(Confidence::C95);
        assert_eq!((one.low, one.value, one.high, one.confidence), (7.0, 7.0, 7.0, 0.0));
    }

    #[test]
    fn a_tail_is_bounded_only_by_enough_samples() {
        let of = |count: u32| sample(&(1..=count).map(f64::from).collect::<Vec<_>>());
        let p95 = |count| of(count).quantile_estimate(0.95, Confidence::C95).unwrap();
        assert_eq!(p95(20).high, None);
        // 0.95^73 < 0.025 < 0.95^72 - ish: the first n whose greatest value bounds p95.
        assert_eq!(p95(71).high, None);
        assert_eq!(p95(72).high, Some(72.0));
        // scipy: binom.ppf bounds for n = 1000, p = 0.95.
        let thousand = p95(1000);
        assert_eq!((thousand.low, thousand.high), (Some(936.0), Some(964.0)));
    }

    proptest! {
        #[test]
        fn quantiles_are_monotone_inside_and_blind_to_order(
            mut values in prop::collection::vec(-1e300f64..1e300, 1..60),
            a in 0.0f64..=1.0, b in 0.0f64..=1.0, turn in 0usize..60,
        ) {
            let s = sample(&values);
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(s.quantile(low).unwrap() <= s.quantile(high).unwrap());
            prop_assert!(s.min() <= s.quantile(a).unwrap() && s.quantile(a).unwrap() <= s.max());
            let turn = turn % values.len();
            values.rotate_left(turn);
            values.reverse();
            prop_assert_eq!(sample(&values), s);
        }

        #[test]
        fn nothing_panics(values in prop::collection::vec(any::<f64>(), 0..20), p in any::<f64>()) {
            if let Ok(s) = Sample::new(&values) {
                let _ = (s.quantile(p), s.mad(), s.mean(), s.median_estimate(Confidence::C95));
                let _ = s.quantile_estimate(p, Confidence::C95);
            }
        }

        #[test]
        fn an_interval_holds_its_value(values in prop::collection::vec(-1e6f64..1e6, 1..60), p in 0.01f64..0.99) {
            let s = sample(&values);
            let estimate = s.median_estimate(Confidence::C95);
            prop_assert!(estimate.contains(estimate.value));
            let tail = s.quantile_estimate(p, Confidence::C95).unwrap();
            prop_assert!(tail.low.is_none_or(|low| low <= tail.value.unwrap()));
            prop_assert!(tail.high.is_none_or(|high| high >= tail.value.unwrap()));
        }
    }
}
