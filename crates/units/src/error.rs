//! What is said of a quantity that cannot be read.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// A text that is not the quantity it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}` is not a {quantity}: {problem}", fault::excerpt(text, 60))]
pub struct ParseError {
    /// The text as it was given.
    pub text: String,
    /// What it should have been: "delay", "rate".
    pub quantity: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
    /// Forms that are understood.
    pub example: &'static str,
}

impl Explain for ParseError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("write it like {}", self.example).into())
    }
}

/// A decimal number as it is written, exactly: `mantissa` / 10^`decimals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: u128,
    decimals: u32,
}

/// Digits that a number may have: far more than any quantity needs, and a product with any unit
/// still fits 128 bits.
const MOST_DIGITS: usize = 24;

impl Decimal {
    /// Digits with at most one point among them.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let fraction = fraction.trim_end_matches('0');
        let digits = || whole.bytes().chain(fraction.bytes());
        if (whole.is_empty() && fraction.is_empty()) || !digits().all(|byte| byte.is_ascii_digit())
        {
            return Err("its number cannot be read");
        }
        if whole.trim_start_matches('0').len() + fraction.len() > MOST_DIGITS {
            return Err("its number has too many digits");
        }
        let mantissa = digits().fold(0, |sum, byte| sum * 10 + u128::from(byte - b'0'));
        // At most 24.
        Ok(Decimal { mantissa, decimals: fraction.len() as u32 })
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The number times `unit`, rounded to a whole number (half up), if that fits 63 bits.
    pub(crate) fn times(self, unit: u64) -> Option<u64> {
        let product = self.mantissa.checked_mul(u128::from(unit))?;
        let divisor = 10u128.pow(self.decimals);
        let rounded = (product + divisor / 2) / divisor;
        (rounded < 1 << 63).then_some(rounded as u64)
    }
}

/// Splits `11.6ms` into 11.6 and `ms`.
pub(crate) fn number_and_unit<'t>(
    text: &'t str,
    quantity: &'static str,
    example: &'static str,
) -> Result<(Decimal, &'t str), ParseError> {
    let (number, unit) = split(text, quantity, example)?;
    let error = |problem| ParseError { text: text.to_owned(), quantity, problem, example };
    Ok((Decimal::parse(number).map_err(error)?, unit))
}

/// Splits `11.6ms` into `11.6` and `ms`; the number is digits and points, and not empty.
pub(crate) fn split<'t>(
    text: &'t str,
    quantity: &'static str,
    example: &'static str,
) -> Result<(&'t str, &'t str), ParseError> {
    let trimmed = text.trim();
    let split = trimmed
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_digit() || *c == '.'))
        .map_or(trimmed.len(), |(at, _)| at);
    let (number, unit) = trimmed.split_at(split);
    if number.is_empty() {
        let problem = "it does not begin with a number";
        return Err(ParseError { text: text.to_owned(), quantity, problem, example });
    }
    Ok((number, unit.trim()))
}

/// `number` in units of `unit` each, as a whole number of the smallest unit.
pub(crate) fn whole(
    number: Decimal,
    unit: u64,
    text: &str,
    quantity: &'static str,
    example: &'static str,
) -> Result<u64, ParseError> {
    number.times(unit).ok_or_else(|| ParseError {
        text: text.to_owned(),
        quantity,
        problem: "it is too large",
        example,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let times = |text: &str, unit| Decimal::parse(text).unwrap().times(unit);
        assert_eq!(times("555554666666665", 1_000), Some(555_554_666_666_665_000));
        assert_eq!(times("11.6", 1_000_000), Some(11_600_000));
        assert_eq!(times("0.0000005", 1_000_000), Some(1));
        assert_eq!(times("0.0000004", 1_000_000), Some(0));
        assert_eq!(times("9223372036854775807", 1), Some(i64::MAX as u64));
        assert_eq!(times("9223372036854775808", 1), None);
        assert_eq!(times(".5", 2), Some(1));
        assert_eq!(times("5.", 2), Some(10));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for wrong in ["", ".", "1.2.3", "1111111111111111111111111", "١"] {
            assert!(Decimal::parse(wrong).is_err(), "{wrong}");
        }
    }
}
