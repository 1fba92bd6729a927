//! The exact interval of a median, and what it needs.

use statrs::distribution::{Binomial, DiscreteCDF};

/// An interval between order statistics, by ranks from either end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranks {
    /// Ranks left out at each end.
    pub(super) outside: usize,
    /// The probability that the interval holds the median.
    pub(super) coverage: f64,
}

/// Returns the narrowest symmetric interval that misses the median of `n` values with a probability of at most
/// `alpha`; `None` if `n` is too small for any.
pub(super) fn ranks(n: usize, alpha: f64) -> Option<Ranks> {
    let misses = |outside: usize| 2.0 * at_most(outside, n);
    if n == 0 || misses(0) > alpha {
        return None;
    }
    // `misses` grows with the ranks left out.
    let (mut holds, mut fails) = (0, n.div_ceil(2));
    while fails - holds > 1 {
        let middle = holds + (fails - holds) / 2;
        if misses(middle) <= alpha { holds = middle } else { fails = middle }
    }
    Some(Ranks { outside: holds, coverage: 1.0 - misses(holds) })
}

/// Returns the two-sided p-value of the sign test: `against` of `n` differences have the rarer sign, or none.
pub(super) fn sign_test(against: usize, n: usize) -> f64 {
    if n == 0 { 1.0 } else { (2.0 * at_most(against, n)).min(1.0) }
}

/// Returns the number of pairs without which no claim of a ranking is possible: all signs alike must have a
/// probability of at most [`super::ALPHA`] divided by the number of comparisons.
#[must_use]
pub fn pairs_needed(comparisons: usize) -> usize {
    let alpha = super::ALPHA / comparisons.max(1) as f64;
    // 2^(1 - n) <= alpha.
    (1.0 - alpha.log2()).ceil() as usize
}

/// P(B ≤ `k`) for B ~ binomial(`n`, 1/2).
fn at_most(k: usize, n: usize) -> f64 {
    Binomial::new(0.5, n as u64).map_or(1.0, |binomial| binomial.cdf(k as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_their_exact_coverage() {
        // Conover, Practical Nonparametric Statistics, table A3: n = 6: 1 - 2/64; n = 10, one left out: 1 - 22/1024.
        let six = ranks(6, 0.05).unwrap();
        assert_eq!(six.outside, 0);
        assert!((six.coverage - (1.0 - 2.0 / 64.0)).abs() < 1e-12);
        let ten = ranks(10, 0.05).unwrap();
        assert_eq!(ten.outside, 1);
        assert!((ten.coverage - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
        assert_eq!(ranks(5, 0.05), None);
        assert_eq!(ranks(0, 0.05), None);
    }

    #[test]
    fn more_comparisons_need_more_pairs() {
        // 2^(1-6) = 0.031, 2^(1-8) = 0.0078 <= 0.05 / 6.
        assert_eq!([1, 6, 10, 45].map(pairs_needed), [6, 8, 9, 11]);
        for comparisons in 1..200 {
            let alpha = super::super::ALPHA / comparisons as f64;
            let needed = pairs_needed(comparisons);
            assert!(ranks(needed, alpha).is_some() && ranks(needed - 1, alpha).is_none());
        }
    }

    #[test]
    fn the_sign_test_is_exact() {
        assert!((sign_test(0, 6) - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(sign_test(3, 6), 1.0);
        assert_eq!(sign_test(0, 0), 1.0);
    }
}
