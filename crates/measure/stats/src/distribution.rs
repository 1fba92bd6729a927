//! A distribution that a user brings: the RTTs of their clients.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Error as StatsError;

/// What a file of round-trip times can be wrong in: the author of the file's to mend.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DistributionError {
    /// A line that is no number.
    #[error("line {line}: `{text}` {problem}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The part that is wrong, shortened.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No line with a number.
    #[error("there is no number in it")]
    Empty,
    /// More text than is read.
    #[error("it is {bytes} bytes long, and at most {limit} are read")]
    TooLong {
        /// Length of the text in bytes.
        bytes: usize,
        /// The most bytes that are read.
        limit: usize,
    },
    /// Weights that add up to nothing or to infinity.
    #[error("the weights add up to {0}")]
    Weight(f64),
}

impl Explain for DistributionError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            DistributionError::Line { .. } | DistributionError::Empty => {
                "write one round-trip time per line, like `23.5` (ms), `23.5ms` or `23.5ms 120` with \
                 a weight"
            }
            DistributionError::TooLong { .. } => {
                "use a sample of it, or give each value once with its weight"
            }
            DistributionError::Weight(_) => "give at least one above 0, and none that is huge",
        };
        Some(remedy.into())
    }
}

/// Values with weights: at least one, the weights adding up to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// (value, weight), by value.
    points: Vec<(f64, f64)>,
}

impl Distribution {
    /// The longest text that is read.
    pub const MAX_BYTES: usize = 64 << 20;

    /// Reads one value a line: a time in ms, or with its unit (`400us`, `23.5ms`, `1.2s`), then
    /// optionally a weight after a space, tab, comma or semicolon. `#` begins a comment; empty
    /// lines do nothing. Values come out in ms.
    ///
    /// # Errors
    /// [`DistributionError`], with the number of the line.
    ///
    /// ```
    /// let rtts = stats::Distribution::parse("# office\n0.4ms 80\n23.5,20\n")?;
    /// assert!((rtts.expect(|rtt| 2.0 * rtt) - 10.04).abs() < 1e-9);
    /// # Ok::<(), stats::DistributionError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, DistributionError> {
        if text.len() > Self::MAX_BYTES {
            return Err(DistributionError::TooLong { bytes: text.len(), limit: Self::MAX_BYTES });
        }
        // A byte order mark is what spreadsheets put in front.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let mut points = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split_once('#').map_or(line, |(before, _)| before).trim();
            if !content.is_empty() {
                points.push(point(content, index + 1)?);
            }
        }
        if points.is_empty() {
            return Err(DistributionError::Empty);
        }
        Self::weighted(points)
    }

    /// A distribution of values that count the same.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] without values, [`StatsError::NotFinite`].
    pub fn from_values(values: &[f64]) -> Result<Self, StatsError> {
        crate::error::finite(values)?;
        let points = values.iter().map(|value| (*value, 1.0)).collect();
        Self::weighted(points).map_err(|_| StatsError::TooFew {
            what: "a distribution",
            needed: 1,
            have: values.len(),
        })
    }

    fn weighted(mut points: Vec<(f64, f64)>) -> Result<Self, DistributionError> {
        let total: f64 = points.iter().map(|(_, weight)| weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err(DistributionError::Weight(total));
        }
        points.retain(|(_, weight)| *weight > 0.0);
        points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Equal values become one, so that a long file of few values is short to work with.
        points.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        for (_, weight) in &mut points {
            *weight /= total;
        }
        Ok(Self { points })
    }

    /// The mean of `value` over the distribution: what a client saves on average when one at this
    /// RTT saves `value(rtt)`.
    #[must_use]
    pub fn expect(&self, value: impl Fn(f64) -> f64) -> f64 {
        self.points.iter().map(|(x, weight)| weight * value(*x)).sum()
    }

    /// The least value at or below which at least a fraction `p` lies.
    ///
    /// # Errors
    /// [`StatsError::Probability`] unless 0 ≤ p ≤ 1.
    pub fn quantile(&self, p: f64) -> Result<f64, StatsError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(StatsError::Probability(p));
        }
        let mut below = 0.0;
        for (value, weight) in &self.points {
            below += weight;
            // The sum of all weights may miss 1 by rounding.
            if below >= p - 1e-12 {
                return Ok(*value);
            }
        }
        // Never empty, and the last weight closes the sum; the greatest value is the limit.
        Ok(self.points.last().map_or(f64::NAN, |(value, _)| *value))
    }

    /// The different values and their weights, by value; the weights add up to 1.
    #[must_use]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}

fn point(content: &str, line: usize) -> Result<(f64, f64), DistributionError> {
    let error = |text: &str, problem| DistributionError::Line {
        line,
        text: fault::excerpt(text, 40),
        problem,
    };
    let separators = |c: char| c.is_whitespace() || c == ',' || c == ';';
    let mut fields = content.split(separators).filter(|field| !field.is_empty());
    let first = fields.next().ok_or_else(|| error(content, "is not a number"))?;
    let value = match first.parse::<f64>() {
        Ok(value) => value,
        Err(_) => first
            .parse::<units::Delay>()
            .map_err(|_| error(first, "is not a time"))?
            .as_millis_f64(),
    };
    if !(value.is_finite() && value >= 0.0) {
        return Err(error(first, "is not a time of 0 or more"));
    }
    let weight = match fields.next() {
        None => 1.0,
        Some(field) => match field.parse::<f64>() {
            Ok(weight) if weight.is_finite() && weight >= 0.0 => weight,
            Ok(_) => return Err(error(field, "is not a weight of 0 or more")),
            Err(_) => return Err(error(field, "is not a weight")),
        },
    };
    match fields.next() {
        None => Ok((value, weight)),
        Some(extra) => Err(error(extra, "is one field too many")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        let rtts = Distribution::parse(
            "\u{FEFF}# RTTs\r\n\r\n20ms 3\r\n0.4 # the same room\n20,1\n1.5s;1\n400us\t2\n7 0\n",
        )
        .unwrap();
        assert_eq!(rtts.points(), [(0.4, 3.0 / 8.0), (20.0, 4.0 / 8.0), (1500.0, 1.0 / 8.0)]);
        assert_eq!(rtts.quantile(0.0), Ok(0.4));
        assert_eq!(rtts.quantile(0.5), Ok(20.0));
        assert_eq!(rtts.quantile(0.875), Ok(20.0));
        assert_eq!(rtts.quantile(1.0), Ok(1500.0));
        assert!(matches!(rtts.quantile(2.0), Err(StatsError::Probability(_))));
        assert!((rtts.expect(|rtt| rtt) - 197.65).abs() < 1e-9);
        assert!((rtts.expect(|_| 1.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn says_which_line_and_why() {
        for (text, line, problem) in [
            ("1\nfast\n", 2, "`fast` is not a time"),
            ("1\n\n-3\n", 3, "0 or more"),
            ("nan", 1, "0 or more"),
            ("inf", 1, "0 or more"),
            ("3 parsecs", 1, "not a weight"),
            ("3ms -1", 1, "weight of 0"),
            ("3ms 1 1", 1, "too many"),
            (",", 1, "not a number"),
        ] {
            let error = Distribution::parse(text).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("line {line}: ")) && error.contains(problem),
                "{error}"
            );
        }
        assert_eq!(Distribution::parse("# nothing\n"), Err(DistributionError::Empty));
        assert_eq!(Distribution::parse("3 0\n"), Err(DistributionError::Weight(0.0)));
        assert!(matches!(
            Distribution::parse("1 1e308\n2 1e308"),
            Err(DistributionError::Weight(_))
        ));
        assert!(Distribution::from_values(&[]).is_err());
        assert!(Distribution::from_values(&[f64::NAN]).is_err());
    }

    #[test]
    fn a_text_without_end_is_not_read() {
        let text = " ".repeat(Distribution::MAX_BYTES + 1);
        assert!(matches!(Distribution::parse(&text), Err(DistributionError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z.,;# \n\t+-]{0,60}|.{0,40}") {
            let _ = Distribution::parse(&text);
        }

        #[test]
        fn weights_add_up(points in prop::collection::vec((0.0f64..1e4, 0.001f64..1e3), 1..50)) {
            let text: String = points.iter().map(|(x, w)| format!("{x} {w}\n")).collect();
            let rtts = Distribution::parse(&text).unwrap();
            prop_assert!((rtts.expect(|_| 1.0) - 1.0).abs() < 1e-9);
            prop_assert!(rtts.quantile(0.2).unwrap() <= rtts.quantile(0.7).unwrap());
        }
    }
}
