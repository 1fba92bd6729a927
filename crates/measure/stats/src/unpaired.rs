//! Two independent sets of samples: is B shifted against A, and by how much?

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::ranks::{doubled_midranks, exact_two_sided, two_sided};
use crate::{Confidence, Error, Estimate, Sample};

/// How far B lies from A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The Hodges-Lehmann shift: the median of all differences b - a, with the interval that
    /// belongs to the Mann-Whitney test.
    pub shift: Estimate,
    /// Two-sided p-value of the Mann-Whitney test.
    pub p_value: f64,
}

/// Up to so many samples in all the distribution of the rank sum is counted out.
const EXACT: usize = 40;

/// Two-sided p-value of the Mann-Whitney (Wilcoxon rank-sum) test. Up to 40 samples in all it is
/// exact, conditional on ties; above, normal with the corrections for ties and continuity.
#[must_use]
pub fn mann_whitney(a: &Sample, b: &Sample) -> f64 {
    let (na, nb) = (a.len(), b.len());
    let all: Vec<f64> = a.values().iter().chain(b.values()).copied().collect();
    let (ranks, ties) = doubled_midranks(&all);
    let observed: usize = ranks.iter().take(na).sum();
    let n = (na + nb) as f64;
    // Of doubled ranks: twice na (n + 1) / 2.
    let mean = na as f64 * (n + 1.0);
    if na + nb <= EXACT {
        return exact_two_sided(&subset_sums(&ranks, na), observed, mean);
    }
    let variance = na as f64 * nb as f64 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    if variance <= 0.0 {
        return 1.0; // All values are the same.
    }
    let distance = (observed as f64 - mean).abs() / 2.0 - 0.5;
    two_sided(distance / variance.sqrt())
}

/// For each sum, how many ways there are to choose `take` of `ranks` with that sum.
fn subset_sums(ranks: &[usize], take: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; total + 1]; take + 1];
    ways[0][0] = 1.0;
    let mut reached = 0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (0..take.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(chosen + 1);
            for sum in 0..=reached {
                more[0][sum + rank] += fewer[chosen][sum];
            }
        }
        reached += rank;
    }
    ways.swap_remove(take)
}

/// The Hodges-Lehmann shift of B against A with its interval, and the Mann-Whitney p-value. Time
/// grows with the numbers of samples, not with their product, and nothing is stored of the pairs.
///
/// # Errors
/// [`Error::NotFinite`] when a difference overflows.
pub fn hodges_lehmann(a: &Sample, b: &Sample, confidence: Confidence) -> Result<Shift, Error> {
    let widest = (b.max() - a.min()).abs().max((b.min() - a.max()).abs());
    if !widest.is_finite() {
        return Err(Error::NotFinite { index: 0, value: widest });
    }
    let pairs = a.len() as u64 * b.len() as u64;
    let nth = |rank: u64| nth_difference(a.values(), b.values(), rank);
    let middle = nth(pairs / 2);
    let value = if pairs % 2 == 1 { middle } else { f64::midpoint(nth(pairs / 2 - 1), middle) };
    let (rank, reached) = shift_rank(a.len(), b.len(), confidence);
    let (low, high) = (nth(rank), nth(pairs - 1 - rank));
    Ok(Shift {
        shift: Estimate { value, low, high, confidence: reached },
        p_value: mann_whitney(a, b),
    })
}

/// The rank (from 0, from either end) of the differences that bound the shift, and the confidence
/// to state, as for a median (Hollander and Wolfe §4.3).
fn shift_rank(na: usize, nb: usize, confidence: Confidence) -> (u64, f64) {
    let alpha = confidence.alpha();
    if na + nb <= EXACT {
        // U without ties: plain ranks 1..=n, their sum less its least value.
        let plain: Vec<usize> = (1..=na + nb).collect();
        let least = na * (na + 1) / 2;
        let ways = subset_sums(&plain, na);
        let all: f64 = ways.iter().sum();
        let mut outside = 0.0;
        let mut rank = None;
        for (at, way) in ways.iter().skip(least).enumerate() {
            outside += 2.0 * way / all;
            if outside > alpha {
                break;
            }
            rank = Some(at as u64);
        }
        return match rank {
            Some(rank) => (rank, confidence.level()),
            None => (0, (1.0 - 2.0 / all).max(0.0)),
        };
    }
    let (na, nb) = (na as f64, nb as f64);
    let z = Normal::standard().inverse_cdf(1.0 - alpha / 2.0);
    let rank = na * nb / 2.0 - z * (na * nb * (na + nb + 1.0) / 12.0).sqrt() - 0.5;
    (rank.floor().max(0.0) as u64, confidence.level())
}

/// The difference b - a of rank `rank` (from 0) among all, found by bisection over the floating
/// point numbers themselves: at most 64 counts, each one walk through both sorted slices.
fn nth_difference(a: &[f64], b: &[f64], rank: u64) -> f64 {
    let (mut from, mut to) = (ordered(b[0] - a[a.len() - 1]), ordered(b[b.len() - 1] - a[0]));
    while from < to {
        let middle = from + (to - from) / 2;
        if count_up_to(a, b, unordered(middle)) > rank { to = middle } else { from = middle + 1 }
    }
    unordered(from)
}

/// How many differences b - a are at most `limit`.
fn count_up_to(a: &[f64], b: &[f64], limit: f64) -> u64 {
    // As b rises, so does the first a that is large enough.
    let mut first = 0;
    let mut count = 0;
    for &b in b {
        while first < a.len() && b - a[first] > limit {
            first += 1;
        }
        count += (a.len() - first) as u64;
    }
    count
}

/// A whole number that orders as the float does.
fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits(); // + 0.0 makes of -0.0 the other zero
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

fn unordered(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap()
    }

    #[test]
    fn permeability_of_membranes() {
        // Hollander and Wolfe, example 4.1; scipy.stats.mannwhitneyu(method="exact") and
        // R: wilcox.test(b, a, conf.int = TRUE): shift -0.305, interval [-0.76, 0.15].
        let a = sample(&[0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]);
        let b = sample(&[1.15, 0.88, 0.90, 0.74, 1.21]);
        assert!((mann_whitney(&a, &b) - 0.254_412_254_412_254_4).abs() < 1e-12);
        let shift = hodges_lehmann(&a, &b, Confidence::C95).unwrap().shift;
        assert!((shift.value + 0.305).abs() < 1e-12, "{shift:?}");
        assert!((shift.low + 0.76).abs() < 1e-9 && (shift.high - 0.15).abs() < 1e-9, "{shift:?}");
    }

    #[test]
    fn many_samples_use_the_normal_tail_with_ties() {
        // scipy.stats.mannwhitneyu(method="asymptotic", use_continuity=True)
        let a: Vec<f64> = (0..60).map(|i| f64::from((i * 29) % 31)).collect();
        let b: Vec<f64> = (0..50).map(|i| f64::from((i * 17) % 31 + 3)).collect();
        let p = mann_whitney(&sample(&a), &sample(&b));
        assert!((p - 0.197_650_498_832_494_86).abs() < 1e-9, "{p}");
        let same = sample(&[1.0; 50]);
        assert_eq!(mann_whitney(&same, &same), 1.0);
    }

    #[test]
    fn three_against_three_cannot_reach_95_percent() {
        let shift = hodges_lehmann(
            &sample(&[1.0, 2.0, 3.0]),
            &sample(&[11.0, 12.0, 13.0]),
            Confidence::C95,
        )
        .unwrap();
        assert!((shift.p_value - 0.1).abs() < 1e-12);
        assert!((shift.shift.confidence - 0.9).abs() < 1e-12);
        assert_eq!((shift.shift.low, shift.shift.value, shift.shift.high), (8.0, 10.0, 12.0));
    }

    #[test]
    fn an_overflow_is_an_error() {
        let (a, b) = (sample(&[f64::MIN]), sample(&[f64::MAX]));
        assert!(matches!(hodges_lehmann(&a, &b, Confidence::C95), Err(Error::NotFinite { .. })));
    }

    proptest! {
        #[test]
        fn the_nth_difference_is_the_nth(
            a in prop::collection::vec(-1e3f64..1e3, 1..12),
            b in prop::collection::vec(-1e3f64..1e3, 1..12),
        ) {
            let (a, b) = (sample(&a), sample(&b));
            let mut all: Vec<f64> =
                b.values().iter().flat_map(|b| a.values().iter().map(move |a| b - a)).collect();
            all.sort_by(f64::total_cmp);
            for (rank, expected) in all.iter().enumerate() {
                prop_assert_eq!(nth_difference(a.values(), b.values(), rank as u64), *expected);
            }
            let shift = hodges_lehmann(&a, &b, Confidence::C95).unwrap().shift;
            prop_assert!(shift.contains(shift.value));
        }

        #[test]
        fn swapping_changes_the_sign_only(
            a in prop::collection::vec(-9i32..9, 1..30), b in prop::collection::vec(-9i32..9, 1..30),
        ) {
            let of = |v: &[i32]| sample(&v.iter().map(|v| f64::from(*v)).collect::<Vec<_>>());
            let (a, b) = (of(&a), of(&b));
            let there = hodges_lehmann(&a, &b, Confidence::C95).unwrap();
            let back = hodges_lehmann(&b, &a, Confidence::C95).unwrap();
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
            prop_assert!((there.shift.value + back.shift.value).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&there.p_value));
        }

        #[test]
        fn floats_order_as_their_keys(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(a.is_finite() && b.is_finite());
            prop_assert_eq!(a < b, ordered(a) < ordered(b));
            prop_assert_eq!(unordered(ordered(a)), a);
        }
    }
}
