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

    /// The probability.
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
