//! `wiretax explain`: what a term of a report means. The text is docs/terms.md, its only source.

mod args;

use fault::{Fault, Problem};
use report::Inline;

pub use self::args::ExplainArgs;
use crate::exit::{Exit, Outcome};
use crate::output::{say, terminal_width};

/// A heading of second level for each term, with its other names behind commas; a paragraph beneath.
const TERMS: &str = include_str!("../../../../docs/terms.md");
/// Columns of prose.
const READABLE: usize = 80;

/// A term and what it means.
#[derive(Debug, PartialEq, Eq)]
struct Term<'a> {
    names: Vec<&'a str>,
    text: String,
}

impl Term<'_> {
    fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether a word of its names is this.
    fn has_word(&self, word: &str) -> bool {
        self.names.iter().any(|own| own.to_lowercase().contains(&word.to_lowercase()))
    }
}

fn terms() -> Vec<Term<'static>> {
    let parts = TERMS.split("\n## ").skip(1);
    let term = |part: &'static str| {
        let (names, text) = part.split_once('\n').unwrap_or((part, ""));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Term { names: names.split(", ").map(str::trim).collect(), text }
    };
    parts.map(term).collect()
}

/// Prints what a term means, or which terms there are.
pub fn explain(args: &ExplainArgs) -> Outcome {
    let terms = terms();
    let wanted = args.term.join(" ");
    let found = terms.iter().find(|term| term.is_called(&wanted));
    match found {
        _ if wanted.is_empty() => {
            let names: Vec<String> = terms.iter().map(|term| term.names.join(", ")).collect();
            say(&(names.join("\n") + "\n"))?;
        }
        Some(term) => {
            let text = Inline::marked(&term.text).to_text(terminal_width().min(READABLE));
            say(&format!("{}\n\n{text}", term.names.join(", ")))?;
        }
        None => return Err(unknown(&terms, &wanted)),
    }
    Ok(Exit::Done)
}

fn unknown(terms: &[Term<'_>], wanted: &str) -> Problem {
    let alike = terms.iter().filter(|term| wanted.split(' ').any(|word| term.has_word(word)));
    let alike: Vec<&str> = alike.filter_map(|term| term.names.first().copied()).collect();
    let remedy = match alike.is_empty() {
        true => "`wiretax explain` lists the terms".to_owned(),
        false => format!("did you mean {}? `wiretax explain` lists all", alike.join(", ")),
    };
    Problem::new(Fault::Caller, format!("no term is called `{wanted}`")).with_remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_term_has_a_text_and_names_of_its_own() {
        let terms = terms();
        assert!(terms.len() > 20, "{}", terms.len());
        let mut names = BTreeSet::new();
        for term in &terms {
            assert!(term.text.len() > 40 && term.text.ends_with('.'), "{term:?}");
            for name in &term.names {
                assert!(!name.is_empty() && names.insert(name.to_lowercase()), "{name} twice");
            }
        }
        for asked in ["c", "n", "HRR", "window stall", "rtt", "0-RTT", "built in"] {
            assert!(terms.iter().any(|term| term.is_called(asked)), "{asked}");
        }
    }

    #[test]
    fn what_is_unknown_is_answered_by_what_is_alike() {
        let problem = unknown(&terms(), "stall");
        assert!(problem.remedy().is_some_and(|remedy| remedy.contains("window stall")));
        assert_eq!(unknown(&terms(), "zzz").fault(), Fault::Caller);
    }
}
