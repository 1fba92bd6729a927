//! The hour that a row belongs to.

use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

const NANOS_OF_HOUR: u64 = 3_600_000_000_000;

/// An hour: how many full ones had passed since the Unix epoch when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hour(u64);

impl Hour {
    /// The hour of a time in nanoseconds since the epoch.
    pub(super) const fn of(nanos: u64) -> Hour {
        Hour(nanos / NANOS_OF_HOUR)
    }

    /// Returns the names of its date's folder in that of its table, and of its own in that one.
    pub(super) fn folders(self) -> [String; 2] {
        // At most 584 years after the epoch, which every number here holds.
        let second = i64::try_from(self.0 * 3_600).unwrap_or_default();
        let date = Timestamp::from_second(second).unwrap_or_default().to_zoned(TimeZone::UTC);
        [format!("date={}", date.date()), format!("hour={:02}", date.hour())]
    }

    /// The hour of a file by the folders that it lies in; `None` if they do not say.
    pub(crate) fn of_file(file: &Path) -> Option<Hour> {
        let folder = file.parent()?;
        let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let (hour, date) = (name(folder)?, name(folder.parent()?)?);
        let date: Date = date.strip_prefix("date=")?.parse().ok()?;
        let hour: i8 = hour.strip_prefix("hour=")?.parse().ok()?;
        let begins = date.at(0, 0, 0, 0).with().hour(hour).build().ok()?;
        let second = begins.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        u64::try_from(second).ok().map(|second| Hour(second / 3_600))
    }

    /// When it begins and when it ends, nanoseconds since the epoch.
    pub(crate) const fn nanos(self) -> (u64, u64) {
        let begins = self.0.saturating_mul(NANOS_OF_HOUR);
        (begins, begins.saturating_add(NANOS_OF_HOUR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_a_folder_in_that_of_its_date() {
        for (nanos, folder) in [
            (0, "date=1970-01-01/hour=00"),
            (NANOS_OF_HOUR - 1, "date=1970-01-01/hour=00"),
            (NANOS_OF_HOUR, "date=1970-01-01/hour=01"),
            // 2026-11-21T13:59:59.999999999Z
            (1_795_269_599_999_999_999, "date=2026-11-21/hour=13"),
            (1_795_269_600_000_000_000, "date=2026-11-21/hour=14"),
            // 2028-02-29T23:00:00Z
            (1_835_478_000_000_000_000, "date=2028-02-29/hour=23"),
            (u64::MAX, "date=2554-07-21/hour=23"),
        ] {
            assert_eq!(Hour::of(nanos).folders().join("/"), folder);
            let back = Hour::of_file(&Path::new(folder).join("part-0000.parquet"));
            assert_eq!(back, Some(Hour::of(nanos)), "{folder}");
        }
    }
}
