//! Two groups.

use super::interval::{ranks, sign_test};
use super::{ALPHA, Better, Ranking};
use crate::{Estimate, Sample};

/// Comparison of two groups of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// Place of the first group.
    pub a: usize,
    /// Place of the second group.
    pub b: usize,
    /// Pairs in which both were measured.
    pub pairs: usize,
    /// Meaning of [`Compared::estimate`].
    pub scale: Scale,
    /// Median over the pairs of a against b. Its interval has the confidence that the comparison needs among
    /// all of its ranking; with [`Verdict::TooFew`] its ends are the least and the greatest pair and the
    /// confidence is 0. `None` without a pair.
    pub estimate: Option<Estimate>,
    /// Two-sided p-value of the sign test, before the correction.
    pub p_value: f64,
    /// The verdict on a.
    pub verdict: Verdict,
}

/// Meaning of a comparison's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// a / b: 1 where they are equal.
    Ratio,
    /// a - b, as a value is not above 0: 0 where they are equal.
    Difference,
}

/// Verdict on the first group of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// The whole interval lies within the margin of equivalence.
    Equivalent,
    /// The interval holds equality, and more than the margin.
    Undecided,
    /// There are too few pairs for any claim.
    TooFew {
        /// Pairs that the first claim of the ranking would need.
        needed: usize,
    },
}

impl Scale {
    /// Returns the value of two equal groups.
    #[must_use]
    pub fn equality(self) -> f64 {
        match self {
            Scale::Ratio => 1.0,
            Scale::Difference => 0.0,
        }
    }
}

impl Compared {
    /// Returns the better group, if one is.
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        match self.verdict {
            Verdict::Better => Some(self.a),
            Verdict::Worse => Some(self.b),
            _ => None,
        }
    }

    /// Returns the worse group, if one is.
    #[must_use]
    pub fn loser(&self) -> Option<usize> {
        self.winner().map(|winner| if winner == self.a { self.b } else { self.a })
    }

    /// Returns the same comparison of b against a.
    #[must_use]
    pub fn turned(self) -> Compared {
        let turn = |estimate: Estimate| {
            let turned = |value: f64| match self.scale {
                Scale::Ratio => 1.0 / value,
                Scale::Difference => -value,
            };
            Estimate {
                value: turned(estimate.value),
                low: turned(estimate.high),
                high: turned(estimate.low),
                ..estimate
            }
        };
        let verdict = match self.verdict {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        Compared { a: self.b, b: self.a, estimate: self.estimate.map(turn), verdict, ..self }
    }

    /// Returns the smallest relative difference that could have been shown; `None` where there is no interval
    /// of ratios.
    pub(super) fn detectable(&self) -> Option<f64> {
        let Estimate { value, low, high, .. } = self.estimate?;
        (self.scale == Scale::Ratio).then(|| (high / value).max(value / low) - 1.0)
    }
}

/// A pair of groups, before its comparisons are counted.
#[derive(Debug, Clone)]
struct Pairing {
    a: usize,
    b: usize,
    scale: Scale,
    /// Differences of the pairs, of logarithms for ratios, in order.
    sorted: Vec<f64>,
    p_value: f64,
}

/// Compares all pairs of groups, with Holm's correction.
pub(super) fn all(ranking: &Ranking) -> Vec<Compared> {
    let groups = 0..ranking.groups.len();
    let pairs = groups.clone().flat_map(|a| groups.clone().skip(a + 1).map(move |b| (a, b)));
    let values = |group: usize| {
        ranking.groups.get(group).map(|group| group.values.as_slice()).unwrap_or_default()
    };
    let pairings = pairs.map(|(a, b)| {
        let both = values(a).iter().zip(values(b)).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
        pairing((a, b), both.collect())
    });
    judged(pairings.collect(), ranking.better, ranking.margin)
}

/// Some comparisons that are counted together, each of a group with its own reference: not every pair of groups is
/// of interest.
#[derive(Debug, Clone)]
pub struct Comparisons {
    better: Better,
    margin: f64,
    pairings: Vec<Pairing>,
}

impl Comparisons {
    /// No comparison yet; `margin` as for [`Ranking::new`].
    #[must_use]
    pub fn new(better: Better, margin: f64) -> Comparisons {
        Comparisons { better, margin, pairings: Vec::new() }
    }

    /// Adds a comparison: in each pair a group's value, then its reference's. Values that are not finite make no
    /// pair.
    pub fn push(&mut self, pairs: impl IntoIterator<Item = (f64, f64)>) {
        let place = 2 * self.pairings.len();
        let finite = pairs.into_iter().filter(|(a, b)| a.is_finite() && b.is_finite());
        self.pairings.push(pairing((place, place + 1), finite.collect()));
    }

    /// Judges them, in the order in which they were added: is a group better than its reference?
    #[must_use]
    pub fn verdicts(self) -> Vec<Compared> {
        judged(self.pairings, self.better, self.margin)
    }
}

/// Judges comparisons that are counted together.
fn judged(pairings: Vec<Pairing>, better: Better, margin: f64) -> Vec<Compared> {
    let alphas = holm(&pairings.iter().map(|one| one.p_value).collect::<Vec<_>>());
    let needed = super::pairs_needed(pairings.len());
    let rules = Rules { better, margin, needed };
    pairings.into_iter().zip(alphas).map(|(one, alpha)| one.judged(&rules, alpha)).collect()
}

/// Rules for all comparisons that are counted together.
struct Rules {
    better: Better,
    margin: f64,
    /// Pairs that the first claim would need.
    needed: usize,
}

/// Returns the level at which Holm's procedure tests each p-value: the smallest at ALPHA / m, the next at
/// ALPHA / (m - 1) and so on. Behind the first that fails the level stays.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    let p = |at: usize| p_values.get(at).copied().unwrap_or(1.0);
    order.sort_by(|a, b| p(*a).total_cmp(&p(*b)));
    let mut levels = vec![0.0; p_values.len()];
    let mut left = p_values.len();
    let mut failed = false;
    for at in order {
        let level = ALPHA / left as f64;
        if let Some(own) = levels.get_mut(at) {
            *own = level;
        }
        failed |= p(at) > level;
        if !failed {
            left -= 1;
        }
    }
    levels
}

fn pairing((a, b): (usize, usize), both: Vec<(f64, f64)>) -> Pairing {
    let positive = both.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
    let scale = if positive { Scale::Ratio } else { Scale::Difference };
    let difference = |(a, b): (f64, f64)| match scale {
        Scale::Ratio => a.ln() - b.ln(),
        Scale::Difference => a - b,
    };
    let mut sorted: Vec<f64> = both.into_iter().map(difference).collect();
    sorted.sort_by(f64::total_cmp);
    let below = sorted.iter().filter(|one| **one < 0.0).count();
    let above = sorted.iter().filter(|one| **one > 0.0).count();
    // Ties speak for neither.
    let p_value = sign_test(sorted.len() - below.max(above), sorted.len());
    Pairing { a, b, scale, sorted, p_value }
}

impl Pairing {
    fn judged(self, rules: &Rules, alpha: f64) -> Compared {
        let pairs = self.sorted.len();
        let needed = rules.needed;
        let found = if pairs < needed { None } else { ranks(pairs, alpha) };
        let (outside, confidence) = found.map_or((0, 0.0), |ranks| (ranks.outside, ranks.coverage));
        let end = |at: usize| self.sorted.get(at).copied();
        let scaled = |value: f64| match self.scale {
            Scale::Ratio => value.exp(),
            Scale::Difference => value,
        };
        let raw = Sample::new(&self.sorted).ok().and_then(|sample| {
            let (low, high) = (end(outside)?, end(pairs.checked_sub(outside + 1)?)?);
            Some(Estimate { value: sample.median(), low, high, confidence })
        });
        let verdict = match (raw, found) {
            (Some(estimate), Some(_)) => self.verdict(rules, estimate),
            _ => Verdict::TooFew { needed },
        };
        let Pairing { a, b, scale, p_value, .. } = self;
        Compared { a, b, pairs, scale, estimate: raw.map(|raw| raw.map(scaled)), p_value, verdict }
    }

    fn verdict(&self, rules: &Rules, raw: Estimate) -> Verdict {
        let margin = rules.margin.max(0.0).ln_1p();
        let is_less_better = rules.better == Better::Less;
        if raw.high < 0.0 {
            return if is_less_better { Verdict::Better } else { Verdict::Worse };
        }
        if raw.low > 0.0 {
            return if is_less_better { Verdict::Worse } else { Verdict::Better };
        }
        match self.scale {
            Scale::Ratio if -margin <= raw.low && raw.high <= margin => Verdict::Equivalent,
            // Equal pairs throughout differ by less than any margin.
            Scale::Difference if raw.low == 0.0 && raw.high == 0.0 => Verdict::Equivalent,
            _ => Verdict::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_lowers_its_bar_by_one_comparison_a_claim() {
        // Holm 1979, by hand: 0.01 <= 0.05/3, 0.02 <= 0.05/2, 0.06 > 0.05.
        let close = |a: Vec<f64>, b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(holm(&[0.06, 0.01, 0.02]), [0.05, 0.05 / 3.0, 0.025]));
        // The first fails: all stay where it was tested.
        assert!(close(holm(&[0.02, 0.03, 0.04]), [0.05 / 3.0; 3]));
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }
}
