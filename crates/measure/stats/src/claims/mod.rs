//! The only place where a group of samples is called better than another.
//!
//! A [`Ranking`] has the paired samples of its groups. [`Ranking::verdict`] compares all pairs of groups, counts
//! the comparisons (Holm 1979), and says which group beats every other, if one does. The test of two groups is
//! the exact sign test on the pairs; its interval for the median ratio or difference lies between order
//! statistics. Both hold for any distribution: two modes, heavy tails, ties. [`Words`] make a sentence of a
//! verdict, [`placebo()`] measures how often a ranking without any difference names a winner.
//!
//! | pairs | verdict of two groups |
//! |---|---|
//! | fewer than any claim would need | [`Verdict::TooFew`]: the interval is a range |
//! | the interval excludes equality | [`Verdict::Better`], [`Verdict::Worse`] |
//! | the interval lies within the margin | [`Verdict::Equivalent`] |
//! | else | [`Verdict::Undecided`] |

use std::collections::BTreeMap;

mod compared;
mod interval;
mod placebo;
mod words;

pub use compared::{Compared, Comparisons, Scale, Verdict};
pub use interval::pairs_needed;
pub use placebo::{Placebo, placebo};
pub use words::{Words, percent};

/// Chance of a false claim in a whole ranking.
pub const ALPHA: f64 = 0.05;
/// Margin of equivalence where a plan names none: 5 %.
pub const MARGIN: f64 = 0.05;

/// Most turns that are compared: results of strangers may claim any number.
const MOST_TURNS: u32 = 100_000;

/// Whether less or more of a value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// As of times and costs.
    Less,
    /// As of throughput.
    More,
}

/// Groups that are compared with one another, pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    better: Better,
    margin: f64,
    groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq)]
struct Group {
    name: String,
    /// By pair: values of one place belong together, as those of one round of a study. `None`: not measured.
    values: Vec<Option<f64>>,
}

impl Ranking {
    /// A ranking without groups; `margin` is the largest relative difference that does not matter, 0.05 for 5 %.
    #[must_use]
    pub fn new(better: Better, margin: f64) -> Ranking {
        Ranking { better, margin, groups: Vec::new() }
    }

    /// Adds a group. Values that are not finite count as not measured.
    pub fn push(&mut self, name: impl Into<String>, values: impl IntoIterator<Item = Option<f64>>) {
        let values = values.into_iter().map(|value| value.filter(|value| value.is_finite()));
        self.groups.push(Group { name: name.into(), values: values.collect() });
    }

    /// Adds a group of values by turn: values of one turn make a pair.
    pub fn push_turns(&mut self, name: impl Into<String>, turns: &BTreeMap<u32, f64>) {
        let all = turns.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        let values = (0..all.min(MOST_TURNS)).map(|turn| turns.get(&turn).copied());
        self.push(name, values);
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether it has no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the name of a group.
    #[must_use]
    pub fn name(&self, group: usize) -> &str {
        self.groups.get(group).map_or("", |group| &group.name)
    }

    /// Returns the number of comparisons that a verdict counts.
    #[must_use]
    pub fn comparisons(&self) -> usize {
        self.len() * self.len().saturating_sub(1) / 2
    }

    /// Compares all groups.
    #[must_use]
    pub fn verdict(&self) -> Ranked<'_> {
        let compared = compared::all(self);
        let leaders = self.leaders(&compared);
        Ranked { ranking: self, compared, leaders }
    }

    /// Finds the groups that no other beats.
    fn leaders(&self, compared: &[Compared]) -> Leaders {
        let all = 0..self.len();
        if compared.iter().all(|one| matches!(one.verdict, Verdict::TooFew { .. })) {
            let pairs = compared.iter().map(|one| one.pairs).max().unwrap_or(0);
            return match self.len() {
                0 => Leaders::Tied(Vec::new()),
                1 => Leaders::Alone,
                _ => Leaders::TooFew { pairs, needed: pairs_needed(self.comparisons()) },
            };
        }
        let beaten = |group: usize| compared.iter().any(|one| one.loser() == Some(group));
        let beats_all = |group: usize| {
            let wins = compared.iter().filter(|one| one.winner() == Some(group)).count();
            wins + 1 == self.len()
        };
        match all.clone().find(|group| beats_all(*group)) {
            Some(winner) => Leaders::Winner(winner),
            None => Leaders::Tied(all.filter(|group| !beaten(*group)).collect()),
        }
    }
}

/// Outcome of a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked<'a> {
    ranking: &'a Ranking,
    /// Every pair of groups, the earlier one first.
    pub compared: Vec<Compared>,
    /// Groups in front.
    pub leaders: Leaders,
}

/// Groups in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaders {
    /// It beats every other group.
    Winner(usize),
    /// No group beats one of these. No difference among them was found, or not for all of them.
    Tied(Vec<usize>),
    /// There is no other group.
    Alone,
    /// No two groups have enough pairs for any claim.
    TooFew {
        /// Most pairs that two groups have.
        pairs: usize,
        /// Pairs that the first claim would need.
        needed: usize,
    },
}

impl Ranked<'_> {
    /// Returns the ranking.
    #[must_use]
    pub fn ranking(&self) -> &Ranking {
        self.ranking
    }

    /// Returns the comparison of two groups, as `of` against `to`: below 1, or below 0, `of` has less.
    #[must_use]
    pub fn between(&self, of: usize, to: usize) -> Option<Compared> {
        let found = |a, b| self.compared.iter().find(move |one| (one.a, one.b) == (a, b));
        found(of, to).copied().or_else(|| found(to, of).map(|one| one.turned()))
    }

    /// Returns the smallest relative difference that these samples could have shown: the distance from the
    /// median to the farther end of its interval, in the comparison where that is largest. `None` without an
    /// interval.
    #[must_use]
    pub fn detectable(&self) -> Option<f64> {
        let known =
            self.compared.iter().filter(|one| !matches!(one.verdict, Verdict::TooFew { .. }));
        known.filter_map(Compared::detectable).max_by(f64::total_cmp)
    }

    /// Returns the number of pairs that would show a difference as small as the margin, if the values keep
    /// their spread: intervals shrink with the square root of the number of pairs.
    #[must_use]
    pub fn pairs_for_margin(&self) -> Option<usize> {
        let least = pairs_needed(self.ranking.comparisons());
        let known = self.compared.iter().filter_map(|one| {
            let ratio = one.detectable()? / self.ranking.margin;
            Some((one.pairs as f64 * ratio * ratio).ceil() as usize)
        });
        known.max().map(|pairs| pairs.max(least))
    }
}

#[cfg(test)]
mod tests;
