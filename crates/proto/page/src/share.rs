//! A part of a whole.

use std::fmt;
use std::str::FromStr;

use units::{ParseError, Probability};

/// A part of an object's bytes, from 0 to 100 %, in millionths. Written `12.5%` or `0.125`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// None of it.
    pub const ZERO: Share = Share(0);
    /// All of it.
    pub const ALL: Share = Share(1_000_000);

    /// `value` as a share, rounded to a millionth; `None` unless it lies within 0 and 1.
    #[must_use]
    pub fn new(value: f64) -> Option<Share> {
        (0.0..=1.0).contains(&value).then(|| Share((value * 1e6).round() as u32))
    }

    /// How many of `bytes` bytes it is, rounded up: all of them only for 100 %, or where so few are.
    #[must_use]
    pub const fn of(self, bytes: u64) -> u64 {
        let product = bytes as u128 * self.0 as u128;
        product.div_ceil(1_000_000) as u64
    }
}

impl FromStr for Share {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Share, ParseError> {
        let share: Probability =
            text.parse().map_err(|error| ParseError { quantity: "share", ..error })?;
        Ok(Share((share.value() * 1e6).round() as u32))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / 10_000)?;
        if !self.0.is_multiple_of(10_000) {
            let fraction = format!("{:04}", self.0 % 10_000);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("%")
    }
}

units::serde_as_text!(Share);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_of_bytes_is_rounded_up() {
        let half = Share::new(0.5).unwrap();
        assert_eq!([0, 1, 2, 3].map(|bytes| half.of(bytes)), [0, 1, 1, 2]);
        assert_eq!(Share::ALL.of(u64::MAX), u64::MAX);
        assert_eq!(Share::ZERO.of(7), 0);
        assert_eq!(Share::new(1.5), None);
        assert_eq!(Share::new(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(millionths in 0u32..=1_000_000) {
            let share = Share(millionths);
            prop_assert_eq!(share.to_string().parse(), Ok(share));
        }
    }
}
