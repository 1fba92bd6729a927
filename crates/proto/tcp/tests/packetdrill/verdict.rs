//! What came of a script.

use std::collections::BTreeSet;
use std::fmt;

/// Why a script does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The endpoint does something else.
    Wrong(String),
    /// The player does not know it, or the endpoint has nothing that it maps to.
    Unread(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong(text) | Failure::Unread(text) => f.write_str(text),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every packet, time and result is the script's, but for these.
    Pass(BTreeSet<&'static str>),
    Fail {
        line: usize,
        reason: String,
    },
    NotApplicable {
        line: usize,
        reason: String,
    },
}

impl Verdict {
    pub fn of(line: usize, failure: Failure) -> Self {
        match failure {
            Failure::Wrong(reason) => Verdict::Fail { line, reason },
            Failure::Unread(reason) => Verdict::NotApplicable { line, reason },
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Pass(but) if but.is_empty() => f.write_str("pass"),
            Verdict::Pass(but) => {
                let but: Vec<_> = but.iter().copied().collect();
                write!(f, "pass but for {}", but.join(" and "))
            }
            Verdict::Fail { line, reason } => write!(f, "fail: line {line}: {reason}"),
            Verdict::NotApplicable { line, reason } => {
                write!(f, "not applicable: line {line}: {reason}")
            }
        }
    }
}
