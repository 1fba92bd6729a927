//! What commands that do not carry a [`Problem`] yet fail with.
//!
//! From an error to what is printed: one problem, and on lines of their own what to do about it.
//!
//! Error texts of this project say `problem; remedy`, or `problem; hint: remedy` where the problem
//! needs a semicolon of its own. Here, and nowhere else, the two are told apart.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use fault::{Explain, Fault, Problem};

use crate::exit::Exit;

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failed {
    /// The status to end with.
    pub exit: Exit,
    /// What to say.
    pub error: anyhow::Error,
}

/// Says which exit status an error stands for.
pub trait OrExit<T> {
    /// The value, or the failure with this exit status.
    fn or_exit(self, exit: Exit) -> Result<T, Failed>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failed> {
        self.map_err(|error| Failed { exit, error: error.into() })
    }
}

/// A problem as an error.
#[derive(Debug)]
struct Carried(Problem);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Error for Carried {}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Failed {
        Failed { exit: Exit::of(problem.fault()), error: Carried(problem).into() }
    }
}

impl From<Failed> for Problem {
    fn from(Failed { exit, error }: Failed) -> Problem {
        let error = match error.downcast::<Carried>() {
            Ok(Carried(problem)) => return problem,
            Err(error) => error,
        };
        let fault = match exit {
            Exit::Machine => Fault::Machine,
            Exit::Results => Fault::Results,
            Exit::Measurement => Fault::Measurement,
            Exit::Found => Fault::Peer,
            Exit::Done | Exit::Usage | Exit::Interrupted => Fault::Caller,
        };
        let Explained { problem, hints } = Explained::of(&error);
        match hints.is_empty() {
            true => Problem::new(fault, problem),
            false => Problem::new(fault, problem).with_remedy(hints.join("; ")),
        }
    }
}

/// What an error itself knows to do.
fn remedy_of(error: &(dyn Error + 'static)) -> Option<Cow<'static, str>> {
    macro_rules! first_of {
        ($($type:ty),+ $(,)?) => {
            $(if let Some(error) = error.downcast_ref::<$type>() {
                return error.remedy();
            })+
        };
    }
    first_of!(
        callgrind::Error,
        capture::Error,
        export::Error,
        lab::EnterError,
        lab::Error,
        linkmodel::ConfigError,
        linkmodel::ProfileError,
        linkmodel::TraceError,
        linkmodel::UnknownProfile,
        locks::ObjectError,
        record::Error,
        report::PlotError,
        report::WriteError,
        stats::DistributionError,
        stats::Error,
        tls::Error,
        tls_drivers::Error,
        units::ParseError,
        units::UnknownName,
    );
    None
}

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
            let (problem, mut hints) = split(&cause.to_string());
            hints.extend(remedy_of(cause).map(Cow::into_owned));
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
