//! Ranks and the normal tail that tests on them share.

use statrs::distribution::{ContinuousCDF, Normal};

/// Twice the midrank of each value (so that ties stay whole numbers) and Σ (t³ - t) over ties.
pub(crate) fn doubled_midranks(values: &[f64]) -> (Vec<usize>, f64) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut ties = 0.0;
    let mut from = 0;
    while from < order.len() {
        let mut to = from + 1;
        while to < order.len() && values[order[to]] == values[order[from]] {
            to += 1;
        }
        for &index in &order[from..to] {
            // Ranks from + 1 ..= to; their mean doubled.
            ranks[index] = from + 1 + to;
        }
        let size = (to - from) as f64;
        ties += size * size * size - size;
        from = to;
    }
    (ranks, ties)
}

/// P(|Z| ≥ z) for a standard normal Z, with the continuity correction already in `z`.
pub(crate) fn two_sided(z: f64) -> f64 {
    (2.0 * Normal::standard().sf(z.max(0.0))).min(1.0)
}

/// P(a statistic lies as far from `mean` as `observed`, or farther) where `ways[s]` is the weight
/// of the value `s`.
pub(crate) fn exact_two_sided(ways: &[f64], observed: usize, mean: f64) -> f64 {
    let distance = (observed as f64 - mean).abs();
    let (mut far, mut all) = (0.0, 0.0);
    for (value, weight) in ways.iter().enumerate() {
        all += weight;
        // Doubled ranks make values and mean multiples of 1/2: 1e-9 is rounding only.
        if (value as f64 - mean).abs() >= distance - 1e-9 {
            far += weight;
        }
    }
    if all > 0.0 { (far / all).min(1.0) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_share_their_ranks() {
        let (ranks, ties) = doubled_midranks(&[3.0, 1.0, 3.0, 2.0, 3.0]);
        assert_eq!(ranks, [8, 2, 8, 4, 8]);
        assert_eq!(ties, 24.0);
    }

    #[test]
    fn normal_tail() {
        assert!((two_sided(1.959_963_984_540_054) - 0.05).abs() < 1e-9);
        assert_eq!(two_sided(-3.0), 1.0);
    }
}
