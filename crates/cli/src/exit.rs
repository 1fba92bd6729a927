//! How the program ends: what is printed, and the exit status that goes with it.

use std::process::ExitCode;

/// Exit status, as `--help` states them.
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
    /// The measurement failed.
    Measurement = 5,
    /// Interrupted by the user.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failed {
    /// The status to end with.
    pub exit: Exit,
    /// What to say. Hints follow `; hint: `.
    pub error: anyhow::Error,
}

/// What a command comes to.
pub type Outcome = Result<Exit, Failed>;

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
