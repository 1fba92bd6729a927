//! A against B, measured in turn: A B A B. What drifts during the run drifts for both, and the
//! difference of neighbours does not see it.

use serde::{Deserialize, Serialize};

use crate::error::finite;
use crate::ranks::{doubled_midranks, exact_two_sided, two_sided};
use crate::{Confidence, Error, Estimate, Sample};

/// What pairs say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// How many pairs there are.
    pub pairs: usize,
    /// The median of B - A over the pairs, with the exact order-statistic interval.
    pub difference: Estimate,
    /// The median of B / A over the pairs, taken on the logarithm so that a half and a double
    /// weigh the same, with the exact interval; `None` where a value is not above 0.
    pub ratio: Option<Estimate>,
    /// Two-sided p-value of the Wilcoxon signed-rank test that B - A is symmetric about 0.
    pub p_value: f64,
    /// Two-sided p-value of the sign test, which does not assume symmetry and sees less.
    pub sign_p_value: f64,
}

/// Compares pair by pair: `b[i]` was measured next to `a[i]`.
///
/// # Errors
/// [`Error::Unpaired`] for unequal numbers, [`Error::TooFew`] without pairs,
/// [`Error::NotFinite`], also for a difference that overflows.
pub fn compare_paired(
    a: &[f64],
    b: &[f64],
    confidence: Confidence,
) -> Result<PairedComparison, Error> {
    if a.len() != b.len() {
        return Err(Error::Unpaired { a: a.len(), b: b.len() });
    }
    finite(a)?;
    finite(b)?;
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let difference = Sample::new(&differences)?.median_estimate(confidence);
    let positive = a.iter().chain(b).all(|value| *value > 0.0);
    let ratio = if positive {
        let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
        Some(Sample::from_vec(logs)?.median_estimate(confidence).map(f64::exp))
    } else {
        None
    };
    Ok(PairedComparison {
        pairs: a.len(),
        difference,
        ratio,
        p_value: wilcoxon_signed_rank(&differences)?,
        sign_p_value: sign_test(&differences),
    })
}

/// Up to here the distribution of the rank sum is counted out, ties included.
const EXACT: usize = 60;

/// Two-sided p-value of the Wilcoxon signed-rank test. Zeros are dropped (Wilcoxon's own rule). Up
/// to 60 differences it is exact, conditional on ties; above, normal with the correction for ties
/// and for continuity. Without a difference other than 0 it is 1.
///
/// # Errors
/// [`Error::NotFinite`].
pub fn wilcoxon_signed_rank(differences: &[f64]) -> Result<f64, Error> {
    finite(differences)?;
    let nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if nonzero.is_empty() {
        return Ok(1.0);
    }
    let sizes: Vec<f64> = nonzero.iter().map(|d| d.abs()).collect();
    let (ranks, ties) = doubled_midranks(&sizes);
    let positive: usize =
        ranks.iter().zip(&nonzero).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let total: usize = ranks.iter().sum();
    let mean = total as f64 / 2.0;
    if nonzero.len() <= EXACT {
        // Each rank is in the sum or not, with equal chance.
        let mut ways = vec![0.0; total + 1];
        ways[0] = 1.0;
        let mut reached = 0;
        for rank in ranks {
            for sum in (0..=reached).rev() {
                ways[sum + rank] += ways[sum];
            }
            reached += rank;
        }
        return Ok(exact_two_sided(&ways, positive, mean));
    }
    let n = nonzero.len() as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    // Ranks are doubled here; the correction of 1/2 is for the plain ones.
    let distance = (positive as f64 - mean).abs() / 2.0 - 0.5;
    Ok(two_sided(distance / variance.sqrt()))
}

/// Two-sided sign test; zeros are dropped.
fn sign_test(differences: &[f64]) -> f64 {
    use statrs::distribution::{Binomial, DiscreteCDF};
    let up = differences.iter().filter(|d| **d > 0.0).count() as u64;
    let down = differences.iter().filter(|d| **d < 0.0).count() as u64;
    match Binomial::new(0.5, up + down) {
        Ok(binomial) => (2.0 * binomial.cdf(up.min(down))).min(1.0),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Darwin's maize: cross- less self-fertilised, in eighths of an inch.
    const DARWIN: [f64; 15] =
        [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1e-3), "{a} is not {b}");
    }

    #[test]
    fn darwins_maize() {
        // scipy.stats.wilcoxon(d, method="exact"), scipy.stats.binomtest(2, 15).
        close(wilcoxon_signed_rank(&DARWIN).unwrap(), 0.041_259_765_625);
        close(sign_test(&DARWIN), 0.007_385_253_906_25);
    }

    #[test]
    fn many_pairs_use_the_normal_tail_with_ties() {
        // scipy.stats.wilcoxon(d, method="approx", correction=True)
        let d: Vec<f64> = (0..100).map(|i| f64::from((i * 37) % 23 - 9)).collect();
        close(wilcoxon_signed_rank(&d).unwrap(), 0.010_737_256_538_724_281);
    }

    #[test]
    fn pairs_cancel_a_drift() {
        let a: Vec<f64> = (0..20).map(|i| 10.0 + f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|a| a + 0.5).collect();
        let paired = compare_paired(&a, &b, Confidence::C95).unwrap();
        assert_eq!(paired.difference.value, 0.5);
        assert!(paired.p_value < 1e-5 && paired.sign_p_value < 1e-5);
        assert!(paired.ratio.unwrap().low > 1.0);
        assert_eq!(paired.pairs, 20);
    }

    #[test]
    fn what_has_no_partner_is_refused() {
        let of = |a: &[f64], b: &[f64]| compare_paired(a, b, Confidence::C95);
        assert!(matches!(of(&[1.0], &[]), Err(Error::Unpaired { a: 1, b: 0 })));
        assert!(matches!(of(&[], &[]), Err(Error::TooFew { .. })));
        assert!(matches!(of(&[1.0], &[f64::NAN]), Err(Error::NotFinite { .. })));
        assert!(matches!(of(&[f64::MIN], &[f64::MAX]), Err(Error::NotFinite { .. })));
        let same = of(&[0.0, 1.0], &[0.0, 1.0]).unwrap();
        assert_eq!((same.p_value, same.sign_p_value, same.ratio), (1.0, 1.0, None));
    }

    proptest! {
        #[test]
        fn a_and_b_swapped_say_the_same(d in prop::collection::vec(-20i32..20, 1..80)) {
            let d: Vec<f64> = d.into_iter().map(f64::from).collect();
            let turned: Vec<f64> = d.iter().map(|d| -d).collect();
            let p = wilcoxon_signed_rank(&d).unwrap();
            prop_assert!((p - wilcoxon_signed_rank(&turned).unwrap()).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&p));
        }

        #[test]
        fn the_exact_count_is_the_count(d in prop::collection::vec(-6i32..6, 1..10)) {
            // Every assignment of signs, by brute force.
            let d: Vec<f64> = d.into_iter().map(f64::from).filter(|d| *d != 0.0).collect();
            prop_assume!(!d.is_empty());
            let sizes: Vec<f64> = d.iter().map(|d| d.abs()).collect();
            let (ranks, _) = doubled_midranks(&sizes);
            let mean = ranks.iter().sum::<usize>() as f64 / 2.0;
            let sum_of = |signs: u32| -> f64 {
                ranks.iter().enumerate().filter(|(i, _)| signs >> i & 1 == 1).map(|(_, r)| *r as f64).sum()
            };
            let mine = d.iter().enumerate().filter(|(_, d)| **d > 0.0).map(|(i, _)| 1 << i).sum();
            let distance = (sum_of(mine) - mean).abs();
            let all = 1u32 << d.len();
            let far = (0..all).filter(|signs| (sum_of(*signs) - mean).abs() >= distance).count();
            let p = wilcoxon_signed_rank(&d).unwrap();
            prop_assert!((p - far as f64 / f64::from(all)).abs() < 1e-12);
        }
    }
}
