//! Two shares: is B's another than A's, and by how much?

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::ranks::two_sided;
use crate::{Confidence, Error, Estimate, fisher_exact};

/// How far the share of B lies from that of A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShareShift {
    /// B's share less A's: fractions, not percent.
    pub shift: Estimate,
    /// Two-sided p-value that both are the same.
    pub p_value: f64,
}

/// Up to so many attempts in all Fisher's sum is worked through.
const EXACT: u64 = 100_000;

/// Compares two shares, each given as how many there were of how many. The interval is Newcombe's of
/// Wilson's scores (1998, method 10), which holds for shares near 0 and 1 too. The p-value is Fisher's,
/// above 100 000 attempts in all that of the normal approximation.
///
/// # Errors
/// [`Error::TooFew`] where a side has no attempt, [`Error::Failures`] where there is more of something
/// than there were attempts.
pub fn compare_shares(
    a: (u64, u64),
    b: (u64, u64),
    confidence: Confidence,
) -> Result<ShareShift, Error> {
    for (failed, attempts) in [a, b] {
        if attempts == 0 {
            return Err(Error::TooFew { what: "a share", needed: 1, have: 0 });
        }
        if failed > attempts {
            return Err(Error::Failures { failed, attempts });
        }
    }
    let z = Normal::standard().inverse_cdf(1.0 - confidence.alpha() / 2.0);
    let ((share_a, low_a, high_a), (share_b, low_b, high_b)) = (wilson(a, z), wilson(b, z));
    let value = share_b - share_a;
    let shift = Estimate {
        value,
        low: value - (share_b - low_b).hypot(high_a - share_a),
        high: value + (high_b - share_b).hypot(share_a - low_a),
        confidence: confidence.level(),
    };
    let p_value = if a.1.saturating_add(b.1) <= EXACT { fisher_exact(a, b)? } else { pooled(a, b) };
    Ok(ShareShift { shift, p_value })
}

/// A share and Wilson's interval.
fn wilson((hits, attempts): (u64, u64), z: f64) -> (f64, f64, f64) {
    let n = attempts as f64;
    let share = hits as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    (share, (middle - half).max(0.0), (middle + half).min(1.0))
}

/// The two-sided p-value by the share of both together.
fn pooled(a: (u64, u64), b: (u64, u64)) -> f64 {
    let (of_a, of_b) = (a.1 as f64, b.1 as f64);
    let share = (a.0 as f64 + b.0 as f64) / (of_a + of_b);
    let deviation = (share * (1.0 - share) * (1.0 / of_a + 1.0 / of_b)).sqrt();
    if deviation <= 0.0 {
        return 1.0; // All or none on both sides.
    }
    two_sided((a.0 as f64 / of_a - b.0 as f64 / of_b).abs() / deviation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_newcombes_published_ones() {
        // Newcombe 1998, Table II, method 10; the difference there is the first less the second.
        for (first, second, low, high) in [
            ((56, 70), (48, 80), 0.0524, 0.3339),
            ((9, 10), (3, 10), 0.1705, 0.8090),
            ((5, 56), (0, 29), -0.0381, 0.1926),
            ((0, 10), (0, 10), -0.2775, 0.2775),
            ((10, 10), (0, 10), 0.6075, 1.0),
        ] {
            let shift = compare_shares(second, first, Confidence::C95).unwrap().shift;
            assert!((shift.low - low).abs() < 6e-5, "{first:?} {second:?}: {shift:?}");
            assert!((shift.high - high).abs() < 6e-5, "{first:?} {second:?}: {shift:?}");
        }
    }

    #[test]
    fn many_attempts_are_judged_by_the_normal_approximation() {
        let few = compare_shares((480, 49_000), (560, 50_000), Confidence::C95).unwrap();
        let many = compare_shares((490, 50_001), (560, 50_000), Confidence::C95).unwrap();
        assert!(few.p_value > 0.02 && few.p_value < 0.05, "{few:?}");
        assert!(many.p_value > 0.02 && many.p_value < 0.05, "{many:?}");
        let all = compare_shares((60_000, 60_000), (60_000, 60_000), Confidence::C95).unwrap();
        assert_eq!(all.p_value, 1.0);
    }

    #[test]
    fn nothing_has_no_share() {
        let confidence = Confidence::C95;
        let nothing = compare_shares((0, 0), (1, 2), confidence);
        assert!(matches!(nothing, Err(Error::TooFew { .. })));
        let more = compare_shares((1, 2), (3, 2), confidence);
        assert_eq!(more, Err(Error::Failures { failed: 3, attempts: 2 }));
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_shift(a in 0u64..60, b in 0u64..60, more_a in 1u64..60, more_b in 1u64..60) {
            let found = compare_shares((a, a + more_a), (b, b + more_b), Confidence::C95).unwrap();
            prop_assert!(found.shift.contains(found.shift.value), "{found:?}");
            prop_assert!((-1.0..=1.0).contains(&found.shift.low) && found.shift.high <= 1.0 + 1e-12);
            prop_assert!((0.0..=1.0).contains(&found.p_value));
        }
    }
}
