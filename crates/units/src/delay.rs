//! A span of time as a person writes it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{ParseError, number_and_unit, whole};

const QUANTITY: &str = "delay";
const EXAMPLE: &str = "0.4ms, 20ms, 150us or 1.5s";

/// A span of time as a person writes it: `0.4ms`, `20ms`, `150us`, `1.5s`, `0`. Exact to 1 ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delay(Duration);

impl Delay {
    /// No time at all.
    pub const ZERO: Delay = Delay(Duration::ZERO);

    /// The delay as a [`Duration`].
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Milliseconds, with fractions.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0.as_nanos() as f64 / 1e6
    }

    /// The two one-way parts of a round trip: equal, but for an odd nanosecond that goes to the
    /// second.
    #[must_use]
    pub fn split_round_trip(self) -> (Delay, Delay) {
        let half = self.0 / 2;
        (Delay(half), Delay(self.0 - half))
    }
}

impl From<Duration> for Delay {
    fn from(duration: Duration) -> Self {
        Delay(duration)
    }
}

impl From<Delay> for Duration {
    fn from(delay: Delay) -> Self {
        delay.0
    }
}

impl FromStr for Delay {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = number_and_unit(text, QUANTITY, EXAMPLE)?;
        let nanos_per_unit = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if number.is_zero() => 1,
            "" => return Err(error(text, "it has no unit")),
            _ => return Err(error(text, "its unit is not ns, us, ms, s, min or h")),
        };
        let nanos = whole(number, nanos_per_unit, text, QUANTITY, EXAMPLE)?;
        Ok(Delay(Duration::from_nanos(nanos)))
    }
}

fn error(text: &str, problem: &'static str) -> ParseError {
    ParseError { text: text.to_owned(), quantity: QUANTITY, problem, example: EXAMPLE }
}

impl fmt::Display for Delay {
    /// In the unit that people use for such a delay, exact to the nanosecond: `7us`, `0.4ms`, `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let (per_unit, digits, unit) = match nanos {
            0..1_000 => (1, 0, "ns"),
            1_000..100_000 => (1_000, 3, "us"),
            100_000..1_000_000_000 => (1_000_000, 6, "ms"),
            _ => (1_000_000_000, 9, "s"),
        };
        write!(f, "{}", nanos / per_unit)?;
        let fraction = nanos % per_unit;
        if fraction > 0 {
            let padded = format!("{fraction:0digits$}");
            write!(f, ".{}", padded.trim_end_matches('0'))?;
        }
        f.write_str(unit)
    }
}

crate::serde_as_text!(Delay);

#[cfg(test)]
mod tests {
    use fault::Explain;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, nanos) in [
            ("0.4ms", 400_000),
            ("11.6ms", 11_600_000),
            ("85.5 ms", 85_500_000),
            ("150us", 150_000),
            ("1.5s", 1_500_000_000),
            ("0", 0),
            ("7ns", 7),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Delay(Duration::from_nanos(nanos))), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_what_works() {
        for (text, problem) in [
            ("20", "no unit"),
            ("ms", "begin with a number"),
            ("-3ms", "begin with a number"),
            ("20 parsecs", "unit is not"),
            ("1.2.3ms", "number cannot be read"),
            ("99999999999999999999s", "too large"),
            ("", "begin with a number"),
        ] {
            let error = text.parse::<Delay>().unwrap_err();
            assert!(error.to_string().contains(problem), "{text}: {error}");
            assert!(error.remedy().is_some_and(|remedy| remedy.contains(EXAMPLE)), "{error:?}");
        }
    }

    #[test]
    fn halves_of_a_round_trip_add_up() {
        let (there, back) = Delay(Duration::from_nanos(7)).split_round_trip();
        assert_eq!((there.0.as_nanos(), back.0.as_nanos()), (3, 4));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(nanos in 0u64..1 << 63) {
            let delay = Delay(Duration::from_nanos(nanos));
            let read: Delay = delay.to_string().parse().unwrap();
            prop_assert_eq!(read, delay);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Delay>();
        }
    }
}
