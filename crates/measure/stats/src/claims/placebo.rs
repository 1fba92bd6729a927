//! How often a ranking without any difference names a winner.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{Beta, ContinuousCDF};

use super::{Leaders, Ranking};

/// Outcome of rankings whose labels were drawn at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Placebo {
    /// Rankings drawn.
    pub drawn: u32,
    /// Rankings that named a winner.
    pub named: u32,
}

impl Placebo {
    /// Returns the share that named a winner.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(self.named) / f64::from(self.drawn.max(1))
    }

    /// Returns the lower 99 % bound of the true rate (Clopper and Pearson 1934): above [`super::ALPHA`] there are
    /// too many false claims, and chance does not explain them.
    #[must_use]
    pub fn at_least(&self) -> f64 {
        if self.named == 0 {
            return 0.0;
        }
        let (k, n) = (f64::from(self.named), f64::from(self.drawn));
        Beta::new(k, n - k + 1.0).map_or(0.0, |beta| beta.inverse_cdf(0.01))
    }

    /// Returns both together.
    #[must_use]
    pub fn and(self, other: Placebo) -> Placebo {
        Placebo { drawn: self.drawn + other.drawn, named: self.named + other.named }
    }
}

/// Draws the labels of a ranking anew, `times` times, and counts the winners that are named.
#[must_use]
pub fn placebo(ranking: &Ranking, times: u32, seed: u64) -> Placebo {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let names = |ranking: Ranking| matches!(ranking.verdict().leaders, Leaders::Winner(_));
    let named = (0..times).filter(|_| names(with_drawn_labels(ranking, &mut random))).count();
    Placebo { drawn: times, named: u32::try_from(named).unwrap_or(u32::MAX) }
}

/// Returns the ranking with the labels within each pair drawn anew: no group can be better.
fn with_drawn_labels(ranking: &Ranking, random: &mut Pcg64Mcg) -> Ranking {
    let mut drawn = ranking.clone();
    let pairs = ranking.groups.iter().map(|group| group.values.len()).max().unwrap_or(0);
    for pair in 0..pairs {
        let mut values: Vec<Option<f64>> =
            ranking.groups.iter().map(|group| group.values.get(pair).copied().flatten()).collect();
        values.shuffle(random);
        for (group, value) in drawn.groups.iter_mut().zip(values) {
            if group.values.len() <= pair {
                group.values.resize(pair + 1, None);
            }
            if let Some(own) = group.values.get_mut(pair) {
                *own = value;
            }
        }
    }
    drawn
}
