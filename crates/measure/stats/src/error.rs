//! What is wrong with numbers that were given.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Input from which the asked statistic cannot be computed. Always the caller's: the numbers came
/// from the caller.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// Fewer samples than the statistic needs.
    #[error("{what} needs at least {needed} samples and got {have}")]
    TooFew {
        /// The statistic that was asked for.
        what: &'static str,
        /// How many it needs.
        needed: usize,
        /// How many there were.
        have: usize,
    },
    /// A value is NaN or infinite.
    #[error("sample {index} is {value}, not a finite number")]
    NotFinite {
        /// Its place in the input, from 0.
        index: usize,
        /// The value: infinite or not a number.
        value: f64,
    },
    /// A probability outside its range.
    #[error("the probability {0} is not between 0 and 1")]
    Probability(f64),
    /// A confidence outside its range.
    #[error("the confidence {0} is not between 0.5 and 0.9999")]
    Confidence(f64),
    /// A practical threshold that is not a fraction.
    #[error("the threshold {0} is not a fraction between 0 and 1")]
    Threshold(f64),
    /// A line needs two places to stand on.
    #[error("a line needs samples at 2 or more different x, and got {distinct}")]
    OneX {
        /// How many different x there were.
        distinct: usize,
    },
    /// Pairs need partners.
    #[error("pairs need as many of each: {a} of A and {b} of B")]
    Unpaired {
        /// Samples of A.
        a: usize,
        /// Samples of B.
        b: usize,
    },
    /// More resamples, cells or points than the crate works through.
    #[error("{what} is {have}, and at most {limit} are supported")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there were.
        have: usize,
        /// The most that is supported.
        limit: usize,
    },
    /// More failures than attempts.
    #[error("{failed} of {attempts} attempts failed")]
    Failures {
        /// Attempts that failed: more than `attempts`.
        failed: u64,
        /// All attempts, failed ones included.
        attempts: u64,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::TooFew { .. } => "measure more repeats",
            Error::NotFinite { .. } => "look at how it was recorded",
            Error::Confidence(_) => "write 0.95 for 95 %",
            Error::Threshold(_) => "write 0.05 for 5 %",
            Error::OneX { .. } => "measure at another RTT",
            Error::Unpaired { .. } => "drop the samples without a partner",
            Error::Probability(_) | Error::TooMany { .. } | Error::Failures { .. } => return None,
        };
        Some(remedy.into())
    }
}

/// Refuses values that are not finite.
pub(crate) fn finite(values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Error::NotFinite { index, value: values[index] }),
        None => Ok(()),
    }
}
