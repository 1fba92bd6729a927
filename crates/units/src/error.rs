//! What is said of a quantity that cannot be read.

use thiserror::Error;

/// A text that is not the quantity it should be. The caller's fault: it says which form works.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a {quantity}: {problem}; write it like {example}")]
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

/// Splits `11.6ms` into 11.6 and `ms`. The number must be finite and not negative.
pub(crate) fn number_and_unit<'t>(
    text: &'t str,
    quantity: &'static str,
    example: &'static str,
) -> Result<(f64, &'t str), ParseError> {
    let error = |problem| ParseError { text: text.to_owned(), quantity, problem, example };
    let trimmed = text.trim();
    let split = trimmed
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_digit() || *c == '.'))
        .map_or(trimmed.len(), |(at, _)| at);
    let (number, unit) = trimmed.split_at(split);
    if number.is_empty() {
        return Err(error("it does not begin with a number"));
    }
    let value: f64 = number.parse().map_err(|_| error("its number cannot be read"))?;
    if !value.is_finite() {
        return Err(error("its number is too large"));
    }
    Ok((value, unit.trim()))
}

/// `value` as a whole number of the smallest unit, if it fits.
pub(crate) fn whole(
    value: f64,
    text: &str,
    quantity: &'static str,
    example: &'static str,
) -> Result<u64, ParseError> {
    // 2^63: well inside u64, and exactly representable.
    if value < 9_223_372_036_854_775_808.0 {
        Ok(value.round() as u64)
    } else {
        Err(ParseError { text: text.to_owned(), quantity, problem: "it is too large", example })
    }
}
