//! From an error to what is printed: one problem, and on lines of their own what to do about it.
//!
//! Error texts of this project say `problem; remedy`, or `problem; hint: remedy` where the problem
//! needs a semicolon of its own. Here, and nowhere else, the two are told apart.

/// An error as it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// What is wrong, with its causes.
    pub problem: String,
    /// What to do.
    pub hints: Vec<String>,
}

impl Explained {
    /// An error and its causes. A cause that the error's own text states already is not repeated.
    pub fn of(error: &anyhow::Error) -> Explained {
        let mut explained = Explained { problem: String::new(), hints: Vec::new() };
        for cause in error.chain() {
            let (problem, hints) = split(&cause.to_string());
            if !explained.problem.contains(&problem) {
                let joint = if explained.problem.is_empty() { "" } else { ": " };
                explained.problem += &format!("{joint}{problem}");
            }
            for hint in hints {
                if !explained.hints.contains(&hint) {
                    explained.hints.push(hint);
                }
            }
        }
        explained
    }
}

/// The problem and the remedies in one text.
pub fn split(text: &str) -> (String, Vec<String>) {
    let mut parts = text.split("; hint: ");
    let problem = parts.next().unwrap_or_default();
    let mut hints: Vec<String> = parts.map(trimmed).collect();
    match problem.rsplit_once("; ") {
        Some((problem, remedy)) => {
            hints.insert(0, trimmed(remedy));
            (trimmed(problem), hints)
        }
        None => (trimmed(problem), hints),
    }
}

fn trimmed(text: &str) -> String {
    text.trim_end_matches(['\n', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_remedy_behind_a_semicolon_becomes_a_hint() {
        let cases: [(&str, &str, &[&str]); 4] = [
            ("it is broken", "it is broken", &[]),
            ("no unit; write it like 20ms", "no unit", &["write it like 20ms"]),
            ("a and b; hint: c", "a and b", &["c"]),
            ("a; b; use the same\n; hint: see there", "a; b", &["use the same", "see there"]),
        ];
        for (text, problem, hints) in cases {
            let hints = hints.iter().map(|hint| (*hint).to_owned()).collect();
            assert_eq!(split(text), (problem.to_owned(), hints), "{text}");
        }
    }

    #[test]
    fn causes_follow_the_problem_once_and_hints_the_causes() {
        let error = Err::<(), _>(anyhow!("no space; free some")).context("x cannot be written");
        let explained = Explained::of(&error.unwrap_err());
        assert_eq!(explained.problem, "x cannot be written: no space");
        assert_eq!(explained.hints, ["free some"]);

        let error = Err::<(), _>(anyhow!("denied")).context("opening x failed: denied; be root");
        let explained = Explained::of(&error.unwrap_err());
        assert_eq!(explained.problem, "opening x failed: denied");
        assert_eq!(explained.hints, ["be root"]);
    }
}
