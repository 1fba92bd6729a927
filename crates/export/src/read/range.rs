//! Ranges of time, as a user writes them.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fault::{Explain, Fault};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::parquet::Hour;

/// From one time until before another; either may be open. Written as `A..B`, in UTC where nothing else
/// is said: `2026-11-21..2026-11-22T13:30`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Nanoseconds since the Unix epoch.
    from: Option<u64>,
    /// Nanoseconds since the Unix epoch: the first that is not within.
    to: Option<u64>,
}

/// Why a text is no [`TimeRange`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// Two points are missing.
    #[error("expected two times joined by `..`")]
    Form,
    /// One of them is no time.
    #[error("`{0}` is not a time")]
    Time(String),
    /// It ends before it begins.
    #[error("it ends before it begins")]
    Empty,
}

impl Explain for RangeError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write 2026-11-21..2026-11-22T13:30, in UTC; either end may be omitted".into())
    }
}

impl TimeRange {
    /// No limit on either side.
    pub const ALL: TimeRange = TimeRange { from: None, to: None };

    /// Whether a time is within, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn has(&self, at: u64) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }

    /// Whether a file may hold such times: one of a data set lies in the folder of its hour.
    pub(super) fn may_have(&self, file: &Path) -> bool {
        let Some((begins, ends)) = Hour::of_file(file).map(Hour::nanos) else { return true };
        self.from.is_none_or(|from| from < ends) && self.to.is_none_or(|to| begins < to)
    }
}

impl FromStr for TimeRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let (from, to) = text.split_once("..").ok_or(RangeError::Form)?;
        let (from, to) = (time(from)?, time(to)?);
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            return Err(RangeError::Empty);
        }
        Ok(TimeRange { from, to })
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |at: Option<u64>| {
            let nanos = at.map(i128::from).and_then(|at| Timestamp::from_nanosecond(at).ok());
            nanos.map(|at| at.to_string()).unwrap_or_default()
        };
        write!(f, "{}..{}", show(self.from), show(self.to))
    }
}

/// A time with its zone, or without one in UTC, or a day's beginning; nothing is an open end.
fn time(text: &str) -> Result<Option<u64>, RangeError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || RangeError::Time(text.to_owned());
    let at = match text.parse::<Timestamp>() {
        Ok(at) => at,
        Err(_) => {
            let civil = text.parse::<DateTime>().map_err(|_| wrong())?;
            civil.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp()
        }
    };
    u64::try_from(at.as_nanosecond()).map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T13:00:00Z.
    const START: u64 = 1_795_266_000_000_000_000;
    const HOUR: u64 = 3_600_000_000_000;

    fn range(text: &str) -> TimeRange {
        text.parse().unwrap()
    }

    #[test]
    fn both_ends_may_be_written_in_several_ways() {
        for text in [
            "2026-11-21T13:00..2026-11-21T14:00",
            "2026-11-21T13:00:00Z..2026-11-21T15:00:00+01:00",
            "2026-11-21 13:00 .. 2026-11-21 14:00",
        ] {
            let range = range(text);
            assert!(range.has(START) && range.has(START + HOUR - 1), "{text}");
            assert!(!range.has(START - 1) && !range.has(START + HOUR), "{text}");
        }
        assert!(range("2026-11-21..").has(u64::MAX) && range("..2026-11-22").has(0));
        assert_eq!(range(".."), TimeRange::ALL);
        let shown = range("2026-11-21T13:00..").to_string();
        assert_eq!(shown, "2026-11-21T13:00:00Z..");
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (text, error) in [
            ("2026-11-21", RangeError::Form),
            ("", RangeError::Form),
            ("yesterday..", RangeError::Time("yesterday".to_owned())),
            ("..2026-13-01", RangeError::Time("2026-13-01".to_owned())),
            ("1969-01-01..", RangeError::Time("1969-01-01".to_owned())),
            ("2026-11-22..2026-11-21", RangeError::Empty),
            ("2026-11-22..2026-11-22", RangeError::Empty),
        ] {
            assert_eq!(text.parse::<TimeRange>(), Err(error), "{text}");
        }
    }

    #[test]
    fn files_of_other_hours_are_not_opened() {
        let range = range("2026-11-21T13:30..2026-11-21T15:00");
        for (file, may) in [
            ("d/date=2026-11-21/hour=12/part-0000.parquet", false),
            ("d/date=2026-11-21/hour=13/part-0000.parquet", true),
            ("d/date=2026-11-21/hour=14/part-0001.parquet", true),
            ("d/date=2026-11-21/hour=15/part-0000.parquet", false),
            ("d/date=2026-11-20/hour=14/part-0000.parquet", false),
            ("d/date=tomorrow/hour=14/part-0000.parquet", true),
            ("own.parquet", true),
        ] {
            assert_eq!(range.may_have(Path::new(file)), may, "{file}");
        }
    }
}
