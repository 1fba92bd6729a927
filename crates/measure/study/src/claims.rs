//! The tables, figures and claims of a document, and what was seen of each.
//!
//! One file a study, in CSV: `item,says,command,seen`. What results say stands beside a claim as text that the study
//! makes of them; what a test or the code shows stands in the file.

use std::collections::BTreeSet;

use report::{Cell, Column, Row, Table};
use serde::Deserialize;

use crate::published::{PublishedError, read};

/// A table, a figure or a claim of a paper.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// The table or figure, or the claim in a few words: no two of a paper are alike.
    pub item: String,
    /// What the paper says.
    pub says: String,
    /// The command that measures it, or the test that shows it, in backticks.
    pub command: String,
    /// What was seen where no results say it, by a test or in the code; else empty.
    #[serde(default)]
    pub seen: String,
}

/// What results say of a claim, by its item; `None` where these results do not have it.
pub type Answer = (String, Option<String>);

/// Stands where results could say something and these do not.
const NOT_HERE: &str = "not in these results: the command measures it";

/// Reads a file of claims.
///
/// # Errors
/// [`PublishedError`].
pub fn claims(csv: &str) -> Result<Vec<Claim>, PublishedError> {
    read(csv)
}

/// A fragment for Markdown: where the results come from, and each claim with ours beside it.
#[must_use]
pub fn claims_markdown(provenance: &str, claims: &[Claim], answers: &[Answer]) -> String {
    format!("{provenance}.\n\n{}", table(claims, answers).to_markdown())
}

fn table(claims: &[Claim], answers: &[Answer]) -> Table {
    let columns = ["Item", "the paper says", "measured or shown by", "ours"].map(Column::new);
    let mut table = Table::new("Every table, figure and claim", columns.to_vec());
    for claim in claims {
        let ours = [&claim.item, &claim.says, &claim.command, &ours(claim, answers)];
        table.push(Row::new(ours.map(Cell::text).into()));
    }
    table
}

fn ours(claim: &Claim, answers: &[Answer]) -> String {
    let answer = answers.iter().find(|(item, _)| *item == claim.item);
    match (answer.and_then(|(_, ours)| ours.as_deref()), claim.seen.as_str()) {
        (Some(ours), "") => ours.to_owned(),
        (Some(ours), seen) => format!("{ours}; {seen}"),
        (None, "") => NOT_HERE.to_owned(),
        (None, seen) => seen.to_owned(),
    }
}

/// A number with the ends of its interval in brackets, as tables have it: value, low, high.
#[must_use]
pub fn with_interval((value, low, high): (f64, f64, f64), decimals: usize) -> String {
    // Nothing below zero that rounds to it.
    let shown = |number: f64| {
        let text = format!("{number:.decimals$}");
        let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        if is_zero { text.replace('-', "") } else { text }
    };
    format!("{} [{}, {}]", shown(value), shown(low), shown(high))
}

/// What does not fit together: claims of which neither results nor what was seen say anything, claims without
/// words or command, answers to no claim, and items that are there twice. A test of each study holds that there
/// is none.
#[must_use]
pub fn claims_misfits(claims: &[Claim], answers: &[Answer]) -> Vec<String> {
    let answered = |item: &str| answers.iter().any(|(own, _)| own == item);
    let mut items = BTreeSet::new();
    let mut misfits = Vec::new();
    for Claim { item, says, command, seen } in claims {
        if !items.insert(item.as_str()) {
            misfits.push(format!("{item}: twice"));
        }
        if [item, says, command].into_iter().any(String::is_empty) {
            misfits.push(format!("{item}: a field is empty"));
        }
        if seen.is_empty() && !answered(item) {
            misfits.push(format!("{item}: it has no result"));
        }
    }
    let unknown = answers.iter().filter(|(item, _)| !items.contains(item.as_str()));
    misfits.extend(unknown.map(|(item, _)| format!("{item}: no such claim")));
    misfits
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# A comment\n\
        item,says,command,seen\n\
        Table 1,three functions,`cargo test -p x`,a test shows all three\n\
        Figure 2,\"less, by a third\",`wiretax x`,\n\
        a claim,works,`wiretax y`,by a test too\n\
        Figure 3,more,`wiretax z`,\n";

    fn answers() -> Vec<Answer> {
        let ours = [
            ("Figure 2", Some("30 % [28, 32] less")),
            ("a claim", Some("seen 20 times")),
            ("Figure 3", None),
        ];
        ours.map(|(item, ours)| (item.to_owned(), ours.map(str::to_owned))).into()
    }

    #[test]
    fn each_claim_has_what_was_seen_what_was_measured_or_who_measures_it() {
        let claims = claims(FILE).unwrap();
        let text = claims_markdown("Measured somewhere", &claims, &answers());
        let expected = "Measured somewhere.\n\n\
            | Item | the paper says | measured or shown by | ours |\n\
            | --- | --- | --- | --- |\n\
            | Table 1 | three functions | `cargo test -p x` | a test shows all three |\n\
            | Figure 2 | less, by a third | `wiretax x` | 30 % \\[28, 32\\] less |\n\
            | a claim | works | `wiretax y` | seen 20 times; by a test too |\n\
            | Figure 3 | more | `wiretax z` | not in these results: the command measures it |\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_number_has_its_interval_beside() {
        assert_eq!(with_interval((28.13, 25.6, 30.0), 1), "28.1 [25.6, 30.0]");
        assert_eq!(with_interval((-0.04, -0.06, 0.0), 1), "0.0 [-0.1, 0.0]");
    }

    #[test]
    fn what_does_not_fit_together_is_found() {
        let claims = claims(FILE).unwrap();
        assert_eq!(claims_misfits(&claims, &answers()), Vec::<String>::new());
        let mut twice = claims.clone();
        twice.push(Claim { command: String::new(), ..twice[0].clone() });
        let mut others = answers();
        others.swap_remove(0);
        others.push(("Figure 4".to_owned(), None));
        let expected = [
            "Figure 2: it has no result",
            "Table 1: twice",
            "Table 1: a field is empty",
            "Figure 4: no such claim",
        ];
        assert_eq!(claims_misfits(&twice, &others), expected);
    }
}
