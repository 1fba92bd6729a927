//! Counts of failures.

use statrs::distribution::{Discrete, Hypergeometric};

use crate::Error;

/// Attempts beyond which the exact sum would take too long.
const MAX_ATTEMPTS: u64 = 10_000_000;

/// Two-sided p-value of Fisher's exact test that attempts of A and of B fail equally often: the
/// sum over all tables with the same margins that are no likelier than the one seen.
///
/// # Errors
/// [`Error::Failures`] when more failed than were tried, [`Error::TooMany`] above ten million.
pub fn fisher_exact(
    (failed_a, attempts_a): (u64, u64),
    (failed_b, attempts_b): (u64, u64),
) -> Result<f64, Error> {
    for (failed, attempts) in [(failed_a, attempts_a), (failed_b, attempts_b)] {
        if failed > attempts {
            return Err(Error::Failures { failed, attempts });
        }
        if attempts > MAX_ATTEMPTS {
            let have = usize::try_from(attempts).unwrap_or(usize::MAX);
            return Err(Error::TooMany {
                what: "the number of attempts",
                have,
                limit: MAX_ATTEMPTS as usize,
            });
        }
    }
    let (all, failed) = (attempts_a + attempts_b, failed_a + failed_b);
    let Ok(table) = Hypergeometric::new(all, failed, attempts_a) else { return Ok(1.0) };
    let seen = table.ln_pmf(failed_a);
    let least = failed.saturating_sub(attempts_b);
    let sum: f64 = (least..=failed.min(attempts_a))
        .map(|count| table.ln_pmf(count))
        // Equal likelihoods may differ by rounding.
        .filter(|likelihood| *likelihood <= seen + 1e-7)
        .map(f64::exp)
        .sum();
    Ok(sum.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_tables() {
        // scipy.stats.fisher_exact([[1, 9], [11, 3]]) and [[3, 97], [20, 80]].
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-8, "{a} is not {b}");
        close(fisher_exact((1, 10), (11, 14)).unwrap(), 0.002_759_456_185_220_083_6);
        close(fisher_exact((3, 100), (20, 100)).unwrap(), 0.000_223_983_672_429_393_25);
        assert_eq!(fisher_exact((0, 0), (0, 0)), Ok(1.0));
        assert_eq!(fisher_exact((2, 1), (0, 1)), Err(Error::Failures { failed: 2, attempts: 1 }));
        assert!(matches!(fisher_exact((0, u64::MAX), (0, 1)), Err(Error::TooMany { .. })));
    }

    proptest! {
        #[test]
        fn it_is_a_probability(a in 0u64..40, b in 0u64..40, more_a in 0u64..40, more_b in 0u64..40) {
            let p = fisher_exact((a, a + more_a), (b, b + more_b)).unwrap();
            prop_assert!((0.0..=1.0).contains(&p));
        }
    }
}
