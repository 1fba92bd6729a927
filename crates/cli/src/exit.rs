//! How the program ends: the exit status of each fault, stated here and nowhere else. The tables in
//! `--help` are made from it.

use std::fmt::Write as _;
use std::process::ExitCode;

use fault::{Fault, Problem};

/// Exit status: how a command ended, and whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is done.
    Done = 0,
    /// Done, and the answer is a bad one: a regression, a server that cannot be reached.
    Found = 1,
    /// The command line or an input file is wrong.
    Usage = 2,
    /// This machine cannot do it.
    Machine = 3,
    /// Results could not be written or read.
    Results = 4,
    /// The measurement failed, or nothing was measured.
    Measurement = 5,
    /// Interrupted by the user.
    Interrupted = 130,
}

/// What each status means, for the help of commands that say nothing more exact.
pub const MEANINGS: [(Exit, &str); 7] = [
    (Exit::Done, "done"),
    (Exit::Found, "`compare` found a regression; `probe` no handshake or no trusted certificate"),
    (Exit::Usage, "the command line or an input file is wrong"),
    (Exit::Machine, "this machine cannot do it (`wiretax doctor` says what is missing)"),
    (Exit::Results, "the results could not be written or read"),
    (Exit::Measurement, "the measurement failed, or nothing was measured"),
    (Exit::Interrupted, "interrupted: what was measured is kept"),
];

impl Exit {
    /// The status for a fault.
    pub const fn of(fault: Fault) -> Exit {
        match fault {
            Fault::Caller => Exit::Usage,
            Fault::Machine => Exit::Machine,
            Fault::Results => Exit::Results,
            Fault::Peer => Exit::Found,
            Fault::Measurement => Exit::Measurement,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// What stands at the end of a command's help: `text`, and what its exit status means.
pub fn epilogue(text: &str, meanings: &[(Exit, &str)]) -> String {
    let mut text = format!("{text}\n\nExit codes:");
    for (exit, meaning) in meanings {
        let _ = write!(text, "\n  {:<4} {meaning}", *exit as u8);
    }
    text
}

/// What stands at the end of the help of a command that ends as most do.
pub fn usual_epilogue(text: &str) -> String {
    epilogue(text.trim_end(), &MEANINGS)
}

/// What a command comes to.
pub type Outcome = Result<Exit, Problem>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_its_exit_status() {
        for (fault, code) in [
            (Fault::Peer, 1),
            (Fault::Caller, 2),
            (Fault::Machine, 3),
            (Fault::Results, 4),
            (Fault::Measurement, 5),
        ] {
            assert_eq!(Exit::of(fault) as u8, code, "{fault:?}");
            assert!(MEANINGS.iter().any(|(exit, _)| *exit as u8 == code), "{fault:?}");
        }
    }

    #[test]
    fn the_page_on_output_has_these_meanings() {
        let page = include_str!("../../../docs/output.md");
        for (exit, meaning) in MEANINGS {
            let row = format!("| {} | {meaning} |\n", exit as u8);
            assert!(page.contains(&row), "docs/output.md lacks {row}");
        }
    }
}
