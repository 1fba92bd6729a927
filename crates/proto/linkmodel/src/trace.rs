//! Capacity traces in mahimahi's format.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use fault::{Explain, Fault};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use units::Time;

/// A capacity trace: when how many bytes may be sent. Cheap to clone.
///
/// The format is mahimahi's: text, one whole number of milliseconds per line, never decreasing.
/// Each line is one opportunity to deliver [`Trace::OPPORTUNITY`] bytes; a time that occurs n
/// times has n opportunities. After its last timestamp the trace repeats, shifted by that
/// timestamp, which is its period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    millis: Arc<[u64]>,
    /// Where in its period it begins, in milliseconds; less than the period.
    phase: u64,
}

/// A text that is not a capacity trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// A line is not a whole number.
    #[error("line {line} of the trace, `{text}`, is not a whole number of milliseconds")]
    NotANumber {
        /// Line number, from 1.
        line: usize,
        /// The line, cut to 40 characters.
        text: String,
    },
    /// A line is less than the one before.
    #[error("line {line} of the trace is {millis} ms, before the {previous} ms of the line above")]
    Decreasing {
        /// Line number, from 1.
        line: usize,
        /// The line's time, in milliseconds.
        millis: u64,
        /// The time before it.
        previous: u64,
    },
    /// A time is later than [`Trace::MAX_MILLIS`].
    #[error("line {line} of the trace is {millis} ms, which is too late")]
    TooLate {
        /// Line number, from 1.
        line: usize,
        /// The line's time, in milliseconds.
        millis: u64,
    },
    /// No line at all.
    #[error("the trace is empty")]
    Empty,
    /// The last time is 0, so that the trace would repeat without time passing.
    #[error("the trace ends at 0 ms, so it has no period")]
    ZeroPeriod,
    /// More than [`Trace::MAX_LEN`] lines.
    #[error("line {line} of the trace is one too many")]
    TooLong {
        /// Line number, from 1.
        line: usize,
    },
}

impl Explain for TraceError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            TraceError::NotANumber { .. } | TraceError::Empty => {
                "give one delivery time in milliseconds per line"
            }
            TraceError::Decreasing { .. } => "sort the trace",
            TraceError::TooLate { .. } => "cut it to 7 days, 604800000 ms",
            TraceError::ZeroPeriod => "let its last line be 1 or more",
            TraceError::TooLong { .. } => "cut it to 10000000 lines",
        };
        Some(remedy.into())
    }
}

impl Trace {
    /// Bytes of IP packet that one opportunity delivers. mahimahi counts 1504: its tunnel
    /// device puts 4 bytes before each IP packet, which is the same.
    pub const OPPORTUNITY: u64 = 1500;
    /// Most opportunities a trace may have.
    pub const MAX_LEN: usize = 10_000_000;
    /// Latest time in a trace: 7 days.
    pub const MAX_MILLIS: u64 = 7 * 24 * 3600 * 1000;

    /// Reads the text of a trace. Spaces around a number and empty lines at the end are let pass.
    ///
    /// # Errors
    /// Names the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for (at, line) in text.trim_end().lines().enumerate() {
            let number = line.trim();
            let millis = number.parse().map_err(|_| TraceError::NotANumber {
                line: at + 1,
                text: number.chars().take(40).collect(),
            })?;
            builder.push(millis)?;
        }
        builder.finish()
    }

    /// A trace of these times in milliseconds.
    ///
    /// # Errors
    /// As for [`Trace::parse`]; a "line" is an element.
    pub fn from_millis(millis: impl IntoIterator<Item = u64>) -> Result<Self, TraceError> {
        let mut builder = Builder::default();
        for millis in millis {
            builder.push(millis)?;
        }
        builder.finish()
    }

    /// The text of the trace, as [`Trace::parse`] reads it; its phase is not in it.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for millis in self.millis.iter() {
            text += &millis.to_string();
            text.push('\n');
        }
        text
    }

    /// The times of the opportunities of one period, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> &[u64] {
        &self.millis
    }

    /// After how long it repeats.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_millis())
    }

    /// The same trace, begun `phase` after its beginning, in whole milliseconds; beyond its period it begins
    /// anew.
    #[must_use]
    pub fn begun_at(self, phase: Duration) -> Trace {
        let millis = phase.as_millis() % u128::from(self.period_millis());
        Trace { phase: millis as u64, ..self }
    }

    /// Where in its period it begins.
    #[must_use]
    pub fn phase(&self) -> Duration {
        Duration::from_millis(self.phase)
    }

    /// Mean capacity over a period, in bit/s of IP bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let bits = self.millis.len() as f64 * (Trace::OPPORTUNITY * 8) as f64;
        bits / self.period().as_secs_f64()
    }
}

impl Trace {
    /// The time of opportunity `index`, counted over all repetitions from the trace's own beginning, of a
    /// trace begun at `origin`.
    pub(crate) fn time_of(&self, origin: Time, index: u64) -> Time {
        let len = self.millis.len() as u64;
        let within = self.millis.get((index % len.max(1)) as usize).copied().unwrap_or(0);
        let before = (index / len.max(1)).saturating_mul(self.period_millis());
        let since = before.saturating_add(within).saturating_sub(self.phase);
        origin + Duration::from_millis(since)
    }

    /// The first opportunity later than `at`; at `origin` or later where `at` is before it.
    pub(crate) fn first_after(&self, origin: Time, at: Time) -> u64 {
        let Some(elapsed) = at.checked_since(origin) else { return self.first() };
        // Whole milliseconds are enough: an opportunity is later than `at` exactly if it is later
        // than `at` rounded down.
        let millis = (elapsed.as_millis() as u64).saturating_add(self.phase);
        let (repetition, within) = (millis / self.period_millis(), millis % self.period_millis());
        let passed = self.millis.partition_point(|time| *time <= within) as u64;
        repetition.saturating_mul(self.millis.len() as u64).saturating_add(passed)
    }

    /// The first opportunity at `at` or later.
    pub(crate) fn first_at(&self, origin: Time, at: Time) -> u64 {
        if at <= origin {
            return self.first();
        }
        self.first_after(origin, at - Duration::from_nanos(1))
    }

    /// The first opportunity from its phase on.
    fn first(&self) -> u64 {
        self.millis.partition_point(|time| *time < self.phase) as u64
    }

    fn period_millis(&self) -> u64 {
        // Never zero: `Builder::finish` sees to it.
        self.millis.last().copied().unwrap_or(1).max(1)
    }
}

#[derive(Default)]
struct Builder {
    millis: Vec<u64>,
    last: u64,
}

impl Builder {
    fn push(&mut self, millis: u64) -> Result<(), TraceError> {
        let line = self.millis.len() + 1;
        if line > Trace::MAX_LEN {
            return Err(TraceError::TooLong { line });
        }
        if millis < self.last {
            return Err(TraceError::Decreasing { line, millis, previous: self.last });
        }
        if millis > Trace::MAX_MILLIS {
            return Err(TraceError::TooLate { line, millis });
        }
        self.last = millis;
        self.millis.push(millis);
        Ok(())
    }

    fn finish(self) -> Result<Trace, TraceError> {
        match self.millis.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::ZeroPeriod),
            Some(_) => Ok(Trace { millis: self.millis.into(), phase: 0 }),
        }
    }
}

impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.millis.iter())
    }
}

impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = Vec::<u64>::deserialize(deserializer)?;
        Trace::from_millis(millis).map_err(|error| serde::de::Error::custom(error.in_one_text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(millis: &[u64]) -> Trace {
        Trace::from_millis(millis.iter().copied()).unwrap()
    }

    #[test]
    fn reads_mahimahi_files() {
        assert_eq!(Trace::parse("0\n5\n5\n12\n").unwrap().millis(), [0, 5, 5, 12]);
        assert_eq!(Trace::parse("3\r\n 9 \r\n\r\n\n").unwrap().millis(), [3, 9]);
        assert_eq!(trace(&[0, 5, 5, 12]).to_text(), "0\n5\n5\n12\n");
    }

    #[test]
    fn says_which_line_is_wrong() {
        use TraceError::*;
        let long = "x".repeat(100);
        for (text, error) in [
            ("", Empty),
            ("\n\n", Empty),
            ("0\n0\n", ZeroPeriod),
            ("5\n4\n", Decreasing { line: 2, millis: 4, previous: 5 }),
            ("1\n\n2\n", NotANumber { line: 2, text: String::new() }),
            ("1\n2.5\n", NotANumber { line: 2, text: "2.5".to_owned() }),
            ("-1\n", NotANumber { line: 1, text: "-1".to_owned() }),
            (&long, NotANumber { line: 1, text: "x".repeat(40) }),
            ("1\n604800001\n", TooLate { line: 2, millis: 604_800_001 }),
        ] {
            assert_eq!(Trace::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_trace_too_long_is_refused() {
        let lines = std::iter::repeat_n(1, Trace::MAX_LEN + 1);
        assert_eq!(Trace::from_millis(lines), Err(TraceError::TooLong { line: 10_000_001 }));
    }

    #[test]
    fn repeats_after_its_last_time() {
        let (trace, origin) = (trace(&[0, 2, 2, 5]), Time::from_millis(100));
        let times: Vec<u64> =
            (0..9).map(|n| trace.time_of(origin, n).as_nanos() / 1_000_000).collect();
        assert_eq!(times, [100, 102, 102, 105, 105, 107, 107, 110, 110]);
    }

    #[test]
    fn finds_the_first_opportunity_after_and_at_a_time() {
        let (trace, origin) = (trace(&[0, 2, 2, 5]), Time::from_millis(100));
        for micros in (90_000..125_000).step_by(250) {
            let at = Time::from_micros(micros);
            let after = (0..).find(|n| trace.time_of(origin, *n) > at).unwrap();
            assert_eq!(trace.first_after(origin, at), after, "{at}");
            let from = (0..).find(|n| trace.time_of(origin, *n) >= at).unwrap();
            assert_eq!(trace.first_at(origin, at), from, "{at}");
        }
    }

    #[test]
    fn a_trace_begun_in_its_midst_goes_on_from_there() {
        let (whole, origin) = (trace(&[0, 2, 2, 5]), Time::from_millis(100));
        for phase in 0..12 {
            let begun = whole.clone().begun_at(Duration::from_millis(phase));
            assert_eq!(begun.phase(), Duration::from_millis(phase % 5));
            // As if it had begun so much earlier.
            let earlier = origin - begun.phase();
            for micros in (100_000..125_000).step_by(250) {
                let at = Time::from_micros(micros);
                assert_eq!(begun.first_at(origin, at), whole.first_at(earlier, at), "{at}");
                let next = begun.first_after(origin, at);
                assert_eq!(next, whole.first_after(earlier, at), "{at}");
                assert_eq!(begun.time_of(origin, next), whole.time_of(earlier, next), "{at}");
            }
            let before = begun.first_after(origin, Time::from_millis(90));
            assert_eq!(before, whole.first_at(earlier, origin));
        }
    }
}
