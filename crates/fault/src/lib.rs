//! Whose fault an error is, and what to do about it.
//!
//! Each error type of the project implements [`Explain`]. What it prints says what went wrong; the
//! remedy stands apart, so that nobody has to look for it in the text. A [`Problem`] carries an error of
//! any type to the user, with what was being done added on the way; the program makes its exit status
//! of the [`Fault`], in one place.
//!
//! Errors often quote a stranger's text: [`plain`], [`one_line`] and [`excerpt`] make it harmless.
#![forbid(unsafe_code)]

mod text;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

pub use text::{cell, excerpt, one_line, plain, steers};

/// Whose fault an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The command line or an input file is wrong.
    Caller,
    /// This machine cannot do it: a feature, a program or a permission is missing.
    Machine,
    /// Results could not be written or read.
    Results,
    /// The other end did not do what its protocol asks of it, or could not be reached.
    Peer,
    /// The measurement failed, or nothing was measured.
    Measurement,
}

/// An error that says whose fault it is, and what to do about it.
pub trait Explain: Error {
    /// Whose fault it is.
    fn fault(&self) -> Fault;

    /// What to do about it, as an imperative without a full stop; `None` where nothing helps.
    fn remedy(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Both in one text, for what carries no more than that: the error of a parser of another library.
    fn in_one_text(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self} ({remedy})"),
            None => self.to_string(),
        }
    }
}

impl Explain for std::num::ParseIntError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write a whole number".into())
    }
}

impl Explain for std::num::ParseFloatError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write a number".into())
    }
}

impl Explain for std::convert::Infallible {
    fn fault(&self) -> Fault {
        match *self {}
    }
}

/// An error on its way to the user.
pub struct Problem {
    fault: Fault,
    /// What was being done, the innermost first, then said before the error.
    context: Vec<String>,
    remedy: Option<Cow<'static, str>>,
    error: Box<dyn Error + Send + Sync>,
}

impl Problem {
    /// A problem that no error type stands for.
    #[must_use]
    pub fn new(fault: Fault, what: impl fmt::Display) -> Problem {
        Problem { fault, context: Vec::new(), remedy: None, error: what.to_string().into() }
    }

    /// A problem of an error that does not say whose fault it is: one of another library.
    pub fn of(fault: Fault, error: impl Into<Box<dyn Error + Send + Sync>>) -> Problem {
        Problem { fault, context: Vec::new(), remedy: None, error: error.into() }
    }

    /// The same with what to do about it, in place of what the error says.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Problem {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same with what was being done: said first, before what was said until now.
    #[must_use]
    pub fn while_doing(mut self, what: impl fmt::Display) -> Problem {
        self.context.push(what.to_string());
        self
    }

    /// The same with another fault: what is a wrong file to a reader of files may be damaged results
    /// to its caller.
    #[must_use]
    pub fn blaming(mut self, fault: Fault) -> Problem {
        self.fault = fault;
        self
    }

    /// Whose fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// The error that it began with, for a caller that treats some of them differently.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }
}

impl<E: Explain + Send + Sync + 'static> From<E> for Problem {
    fn from(error: E) -> Problem {
        let (fault, remedy) = (error.fault(), error.remedy());
        Problem { fault, context: Vec::new(), remedy, error: Box::new(error) }
    }
}

/// What went wrong in one line: what was being done, the error, and its causes unless the error's own
/// text has them already.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for what in self.context.iter().rev() {
            write!(f, "{what}: ")?;
        }
        let mut said = self.error.to_string();
        write!(f, "{said}")?;
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said.push_str(&text);
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?}", self.fault)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; remedy: {remedy})"),
            None => write!(f, ")"),
        }
    }
}

/// Adds to the error of a result.
pub trait OrProblem<T> {
    /// The value, or a problem with this fault, of an error that does not say whose it is.
    ///
    /// # Errors
    /// The same, as a [`Problem`].
    fn blame(self, fault: Fault) -> Result<T, Problem>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> OrProblem<T> for Result<T, E> {
    fn blame(self, fault: Fault) -> Result<T, Problem> {
        self.map_err(|error| Problem::of(fault, error))
    }
}

/// Adds what was being done to the problem of a result.
pub trait WhileDoing<T> {
    /// The value, or the problem with what was being done.
    ///
    /// # Errors
    /// The same, with what was being done said first.
    fn while_doing<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T, Problem>;
}

impl<T, E: Into<Problem>> WhileDoing<T> for Result<T, E> {
    fn while_doing<D: fmt::Display>(self, what: impl FnOnce() -> D) -> Result<T, Problem> {
        self.map_err(|error| error.into().while_doing(what()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Refused(std::io::Error);

    impl fmt::Display for Refused {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the device was refused")
        }
    }

    impl Error for Refused {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    impl Explain for Refused {
        fn fault(&self) -> Fault {
            Fault::Machine
        }

        fn remedy(&self) -> Option<Cow<'static, str>> {
            Some("run it as root; or add a rule".into())
        }
    }

    fn refused() -> Refused {
        Refused(std::io::Error::other("EPERM"))
    }

    #[test]
    fn a_problem_says_what_was_done_the_error_and_its_causes() {
        let problem = Problem::from(refused()).while_doing("opening tap0").while_doing("the lab");
        assert_eq!(problem.to_string(), "the lab: opening tap0: the device was refused: EPERM");
        assert_eq!(problem.fault(), Fault::Machine);
        assert_eq!(problem.remedy(), Some("run it as root; or add a rule"));
    }

    #[test]
    fn a_cause_that_the_text_has_already_is_not_said_twice() {
        let inner = Refused(std::io::Error::other("device"));
        assert_eq!(Problem::from(inner).to_string(), "the device was refused");
    }

    #[test]
    fn results_carry_problems_with_a_question_mark() {
        fn open() -> Result<(), Problem> {
            Err(refused())?;
            Ok(())
        }
        fn read() -> Result<(), Problem> {
            std::fs::read("/does/not/exist").blame(Fault::Results)?;
            Ok(())
        }
        let opened = open().while_doing(|| "a node").unwrap_err();
        assert_eq!(opened.to_string(), "a node: the device was refused: EPERM");
        assert!(opened.downcast_ref::<Refused>().is_some());
        assert_eq!(read().unwrap_err().fault(), Fault::Results);
        let other = Problem::new(Fault::Caller, "no").with_remedy("say yes").blaming(Fault::Peer);
        assert_eq!(format!("{other:?}"), "no (Peer; remedy: say yes)");
    }
}
