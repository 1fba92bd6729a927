//! An amount of data.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use crate::error::{ParseError, number_and_unit, whole};

const QUANTITY: &str = "number of bytes";
const EXAMPLE: &str = "1500B, 64kB or 2MiB";

/// An amount of data in bytes (octets). Written `1500B`, `64kB` (1000), `2MiB` (1048576).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The amount as a plain number.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text, QUANTITY, EXAMPLE)?;
        let scale = match unit {
            "" | "B" => 1,
            "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => {
                let problem = "its unit is not B, kB, MB, GB, KiB, MiB or GiB";
                let text = text.to_owned();
                return Err(ParseError { text, quantity: QUANTITY, problem, example: EXAMPLE });
            }
        };
        whole(number, scale, text, QUANTITY, EXAMPLE).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0B"),
            n if n % (1 << 20) == 0 => write!(f, "{}MiB", n >> 20),
            n if n % 1_000_000 == 0 => write!(f, "{}MB", n / 1_000_000),
            n if n % (1 << 10) == 0 => write!(f, "{}KiB", n >> 10),
            n if n % 1_000 == 0 => write!(f, "{}kB", n / 1_000),
            n => write!(f, "{n}B"),
        }
    }
}

crate::serde_as_text!(Bytes);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_decimal_and_binary_units() {
        assert_eq!("1500B".parse(), Ok(Bytes(1500)));
        assert_eq!("64kB".parse(), Ok(Bytes(64_000)));
        assert_eq!("2MiB".parse(), Ok(Bytes(2 << 20)));
        assert_eq!("12".parse(), Ok(Bytes(12)));
        assert!("12 buckets".parse::<Bytes>().is_err());
        assert!("kB".parse::<Bytes>().is_err());
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n in 0u64..1 << 63) {
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        }
    }
}
