//! Sentences of verdicts.

use super::{Better, Compared, Leaders, Ranked, Scale, Verdict};

/// Most groups that a sentence names.
const NAMED: usize = 4;

/// The words of one kind of ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// Verb of the winner, as "is fastest".
    pub wins: &'static str,
    /// Word for the others, as "slower".
    pub behind: &'static str,
    /// Unit of repetition in the plural, as "loads".
    pub pairs: &'static str,
}

impl Words {
    /// Returns the sentence on who is in front, without a full stop; `value` gives a group's value with its unit.
    #[must_use]
    pub fn sentence(&self, ranked: &Ranked<'_>, value: impl Fn(usize) -> String) -> String {
        let named = |group: usize| format!("{} {}", ranked.ranking().name(group), value(group));
        let all: Vec<usize> = (0..ranked.ranking().len()).collect();
        match &ranked.leaders {
            Leaders::Winner(winner) => {
                let name = ranked.ranking().name(*winner);
                let margin =
                    margin(ranked, *winner).map_or(String::new(), |text| format!(", {text}"));
                format!("{name} {}: {}{margin}", self.wins, value(*winner))
            }
            Leaders::Alone => format!("{}: {}", ranked.ranking().name(0), value(0)),
            Leaders::TooFew { pairs, needed } => format!(
                "{}; too few {} to rank them ({pairs}, and {needed} are needed)",
                list(&all, named),
                self.pairs
            ),
            Leaders::Tied(tied) if tied.len() == all.len() => {
                format!("no measurable difference: {}{}", list(tied, named), power(ranked))
            }
            Leaders::Tied(tied) => {
                let rest: Vec<usize> =
                    all.into_iter().filter(|group| !tied.contains(group)).collect();
                let front = match tied.as_slice() {
                    [one] => format!("{} leads, not certainly before all others", named(*one)),
                    _ => format!("no measurable difference among the best: {}", list(tied, named)),
                };
                format!("{front}; {}: {}", self.behind, list(&rest, named))
            }
        }
    }
}

/// Says by how much the winner beats the nearest of the others at least.
fn margin(ranked: &Ranked<'_>, winner: usize) -> Option<String> {
    let others = (0..ranked.ranking().len()).filter(|other| *other != winner);
    let claims = others
        .filter_map(|other| ranked.between(winner, other))
        .filter_map(|one| Some((one.at_least()?, one)));
    let (share, next) = claims.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let than = match ranked.ranking().better {
        Better::Less => "less",
        Better::More => "more",
    };
    Some(format!("at least {} {than} than {}", percent(share), ranked.ranking().name(next.b)))
}

impl Compared {
    /// Returns the smallest relative difference that the claim carries, 0.1 for 10 %; `None` without a claim, or
    /// where the scale has no ratios.
    #[must_use]
    pub fn at_least(&self) -> Option<f64> {
        let estimate = self.estimate.filter(|_| self.scale == Scale::Ratio)?;
        match self.verdict {
            Verdict::Better | Verdict::Worse if estimate.high < 1.0 => Some(1.0 - estimate.high),
            Verdict::Better | Verdict::Worse => Some(estimate.low - 1.0),
            Verdict::Equivalent | Verdict::Undecided | Verdict::TooFew { .. } => None,
        }
    }
}

fn power(ranked: &Ranked<'_>) -> String {
    let margin = ranked.ranking().margin;
    match ranked.detectable() {
        Some(least) if least > margin => {
            format!(" (less than {} could not have been seen)", percent(least))
        }
        _ => String::new(),
    }
}

/// Returns a share in percent with two significant digits.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size < 0.95 => format!("{percent:.2} %"),
        size if size < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Returns `a, b and c`, or `a, b, c, d and 3 more`.
fn list(groups: &[usize], named: impl Fn(usize) -> String) -> String {
    let mut names: Vec<String> = groups.iter().take(NAMED).map(|group| named(*group)).collect();
    if groups.len() > NAMED {
        names.push(format!("{} more", groups.len() - NAMED));
    }
    match names.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
