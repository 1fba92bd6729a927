//! The hour that a row belongs to.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

const NANOS_OF_HOUR: u64 = 3_600_000_000_000;

/// An hour: how many full ones had passed since the Unix epoch when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Hour(u64);

impl Hour {
    /// The hour of a time in nanoseconds since the epoch.
    pub(super) const fn of(nanos: u64) -> Hour {
        Hour(nanos / NANOS_OF_HOUR)
    }

    /// Its folder in that of its table.
    pub(super) fn folder(self, table: &Path) -> PathBuf {
        // At most 584 years after the epoch, which every number here holds.
        let second = i64::try_from(self.0 * 3_600).unwrap_or_default();
        let date = Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::UTC);
        table.join(format!("date={}", date.date())).join(format!("hour={:02}", date.hour()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_a_folder_in_that_of_its_date() {
        for (nanos, folder) in [
            (0, "t/date=1970-01-01/hour=00"),
            (NANOS_OF_HOUR - 1, "t/date=1970-01-01/hour=00"),
            (NANOS_OF_HOUR, "t/date=1970-01-01/hour=01"),
            // 2026-11-21T13:59:59.999999999Z
            (1_795_269_599_999_999_999, "t/date=2026-11-21/hour=13"),
            (1_795_269_600_000_000_000, "t/date=2026-11-21/hour=14"),
            // 2028-02-29T23:00:00Z
            (1_835_478_000_000_000_000, "t/date=2028-02-29/hour=23"),
            (u64::MAX, "t/date=2554-07-21/hour=23"),
        ] {
            assert_eq!(Hour::of(nanos).folder(Path::new("t")), Path::new(folder));
        }
    }
}
