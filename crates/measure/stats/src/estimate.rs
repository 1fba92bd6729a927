//! A number with its interval.

use serde::{Deserialize, Serialize};

use crate::Error;

/// How sure an interval is to hold the true value: a probability from 0.5 to 0.9999.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %, the default.
    pub const C95: Confidence = Confidence(0.95);

    /// A confidence, 0.95 for 95 %.
    ///
    /// # Errors
    /// [`Error::Confidence`] outside 0.5 to 0.9999, where an interval says nothing or everything.
    pub fn new(level: f64) -> Result<Self, Error> {
        if (0.5..=0.9999).contains(&level) {
            Ok(Self(level))
        } else {
            Err(Error::Confidence(level))
        }
    }

    /// The confidence as a probability, 0.5 to 0.9999.
    #[must_use]
    pub fn level(self) -> f64 {
        self.0
    }

    /// What lies outside, both tails together.
    pub(crate) fn alpha(self) -> f64 {
        1.0 - self.0
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::C95
    }
}

/// A value and the interval that holds the true one with the stated confidence. The unit is that
/// of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best single value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The probability that such an interval holds the true value: what was asked for, or less
    /// where so few samples cannot give it.
    pub confidence: f64,
}

impl Estimate {
    /// Applies an increasing function to value and ends.
    #[must_use]
    pub fn map(self, increasing: impl Fn(f64) -> f64) -> Self {
        Self {
            value: increasing(self.value),
            low: increasing(self.low),
            high: increasing(self.high),
            confidence: self.confidence,
        }
    }

    /// Whether the interval holds `value`.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the true value is within `tolerance` of `value`, as an equivalence test has it: yes
    /// where all of the interval is, no where none of it is (Schuirmann 1987).
    #[must_use]
    pub fn is_within(&self, tolerance: f64, value: f64) -> Holds {
        let (from, to) = (value - tolerance, value + tolerance);
        if from <= self.low && self.high <= to {
            Holds::Yes
        } else if self.high < from || to < self.low {
            Holds::No
        } else {
            // An interval that is not finite, too.
            Holds::CannotTell
        }
    }
}

/// Whether something holds, as far as samples can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It holds, at the interval's confidence.
    Yes,
    /// It does not hold, at the interval's confidence.
    No,
    /// The interval has both what holds and what does not.
    CannotTell,
}

impl Holds {
    /// Whether both hold: one that does not decides, then one that is undecided.
    #[must_use]
    pub fn and(self, other: Holds) -> Holds {
        match (self, other) {
            (Holds::No, _) | (_, Holds::No) => Holds::No,
            (Holds::Yes, Holds::Yes) => Holds::Yes,
            _ => Holds::CannotTell,
        }
    }
}

/// A quantile of which the value or an end may lie beyond what was observed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundedEstimate {
    /// The quantile; `None` when it was not reached, that is when it is above [`Self::horizon`].
    pub value: Option<f64>,
    /// The interval's lower end; `None` when it too is above the horizon.
    pub low: Option<f64>,
    /// The interval's upper end; `None` when the samples do not bound it from above.
    pub high: Option<f64>,
    /// The largest time that was observed, finished or not.
    pub horizon: f64,
    /// The confidence of the interval.
    pub confidence: f64,
}

impl std::fmt::Display for BoundedEstimate {
    /// The value and its interval, or "not reached (> horizon)".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let horizon = self.horizon;
        match self.value {
            Some(value) => write!(f, "{value}")?,
            None => write!(f, "not reached (> {horizon})")?,
        }
        match (self.low, self.high) {
            (Some(low), Some(high)) => write!(f, " [{low}, {high}]"),
            (Some(low), None) => write!(f, " [{low}, > {horizon}]"),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_tells_yes_or_no_only_where_it_has_one_of_them() {
        let within = |low, high| {
            let value = (low + high) / 2.0;
            Estimate { value, low, high, confidence: 0.95 }.is_within(0.05, 1.0)
        };
        assert_eq!(within(0.98, 1.03), Holds::Yes);
        assert_eq!(within(0.95, 1.05), Holds::Yes);
        assert_eq!(within(1.1, 1.2), Holds::No);
        assert_eq!(within(-1.2, 0.9), Holds::No);
        assert_eq!(within(-1.2, 2.4), Holds::CannotTell);
        assert_eq!(within(0.98, 1.08), Holds::CannotTell);
        assert_eq!(within(f64::NAN, f64::NAN), Holds::CannotTell);
    }

    #[test]
    fn of_two_answers_the_worse_stands() {
        use Holds::{CannotTell, No, Yes};
        assert_eq!([Yes.and(Yes), Yes.and(CannotTell), CannotTell.and(No)], [Yes, CannotTell, No]);
    }
}
