//! A probability.

use std::fmt;
use std::str::FromStr;

use crate::error::{ParseError, split};

const QUANTITY: &str = "probability";
const EXAMPLE: &str = "1%, 0.5% or 0.01";

/// A probability from 0 to 1. Written `1%` or `0.01`.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Probability 0: never.
    pub const ZERO: Probability = Probability(0.0);
    /// Probability 1: always.
    pub const ONE: Probability = Probability(1.0);

    /// `value` as a probability; `None` unless it lies within 0 and 1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Probability(value))
    }

    /// The probability as a number from 0 to 1.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// Whether it is exactly zero, so that no draw is needed.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = |problem| ParseError {
            text: text.to_owned(),
            quantity: QUANTITY,
            problem,
            example: EXAMPLE,
        };
        let (number, unit) = split(text, QUANTITY, EXAMPLE)?;
        let number: f64 = number.parse().map_err(|_| error("its number cannot be read"))?;
        let value = match unit {
            "%" => number / 100.0,
            "" => number,
            _ => return Err(error("its unit is not %")),
        };
        Probability::new(value).ok_or_else(|| error("it is more than 100%"))
    }
}

impl fmt::Display for Probability {
    /// As a fraction, which reads back to the very same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

crate::serde_as_text!(Probability);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_percent_and_fraction() {
        assert_eq!("1%".parse(), Ok(Probability(0.01)));
        assert_eq!("0.5".parse(), Ok(Probability(0.5)));
        assert_eq!("100%".parse(), Ok(Probability::ONE));
        for wrong in ["101%", "1.5", "-1%", "1 in 3", "nan"] {
            assert!(wrong.parse::<Probability>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(p in 0.0f64..=1.0) {
            prop_assert_eq!(Probability(p).to_string().parse(), Ok(Probability(p)));
        }
    }
}
