//! What "The State of SSL Stacks" (HAProxy Technologies, 2025) states: connections per second of HAProxy
//! 3.1-dev1 on a server with 64 aarch64 cores. Its figures are set beside ours as ratios to OpenSSL 1.1.1w.

use std::sync::LazyLock;

use haproxy::Locks;
use study::{Counterpart, Figure};

use crate::point::Scenario;
use crate::summary::{Row, Summary};

/// HAProxy 2025's figures.
pub(crate) const FIGURES: &str = include_str!("../published.csv");

/// HAProxy 2025's threads at which it states most figures.
const THREADS: usize = 64;
const REFERENCE: &str = "OpenSSL 1.1.1w";

/// A figure of HAProxy 2025, taken apart.
struct Published {
    figure: Figure,
    scenario: Scenario,
    library: String,
    locks: Locks,
    threads: usize,
}

static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
    let figures = study::figures(FIGURES).unwrap_or_default();
    figures.into_iter().filter_map(read).collect()
});

fn read(figure: Figure) -> Option<Published> {
    let scenario = match figure.item.as_str() {
        "full" => Scenario::Full,
        "resume-chain" => Scenario::Chain,
        _ => return None,
    };
    let mut parts = figure.row.rsplitn(3, ", ");
    let threads = parts.next()?.strip_suffix(" threads")?.parse().ok()?;
    let (locks, library) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
    Some(Published { scenario, library, locks, threads, figure })
}

/// Which of HAProxy 2025's libraries a driver's stands for: the same version, or its series.
const STANDS_FOR: &[(&str, &[&str])] = &[
    ("openssl-1.1.1", &[REFERENCE]),
    ("openssl-3.0.2", &["OpenSSL 3.0.2"]),
    ("openssl-3.0.20", &["OpenSSL 3.0.14"]),
    ("openssl-3.1.", &["OpenSSL 3.1 to 3.4-dev"]),
    ("openssl-3.2.", &["OpenSSL 3.1 to 3.4-dev"]),
    ("openssl-3.3.", &["OpenSSL 3.1 to 3.4-dev"]),
    ("openssl-3.4.", &["OpenSSL 3.1 to 3.4-dev"]),
    ("awslc-1.29.0-c99", &["AWS-LC 1.29.0", "AWS-LC 1.29.0 (C99 refcounts)"]),
    ("awslc-1.29.0-c11", &["AWS-LC 1.29.0 (C11 atomics)"]),
    ("awslc-1.32.0", &["AWS-LC (after 1.32.0)"]),
    ("wolfssl-5.7.", &["WolfSSL 5.7.0"]),
];

/// A driver of each, for the command that measures what is missing.
const DRIVERS: &[&str] = &[
    "openssl-1.1.1w",
    "openssl-3.0.2",
    "openssl-3.0.20",
    "openssl-3.4.1",
    "awslc-1.29.0-c99",
    "awslc-1.29.0-c11",
    "awslc-1.32.0-c11",
    "wolfssl-5.7.2",
];

fn names(driver: &str) -> &'static [&'static str] {
    // The longest name that fits: `openssl-3.0.20` is not 3.0.2.
    let fits = STANDS_FOR.iter().filter(|(start, _)| driver.starts_with(start));
    fits.max_by_key(|(start, _)| start.len()).map_or(&[], |(_, names)| names)
}

fn reference(scenario: Scenario, threads: usize) -> Option<f64> {
    let same = |one: &&Published| {
        (one.scenario, one.locks, one.threads) == (scenario, Locks::Pthread, threads)
            && one.library == REFERENCE
    };
    PUBLISHED.iter().find(same)?.figure.value
}

/// HAProxy 2025's library that a driver's stands for, and its ratio to OpenSSL 1.1.1w with the C library's
/// locks, at 64 threads. None where HAProxy 2025 has no such library.
#[must_use]
pub(crate) fn ratio(scenario: Scenario, driver: &str, locks: Locks) -> Option<(&'static str, f64)> {
    let names = names(driver);
    let same = |one: &&Published| {
        (one.scenario, one.locks, one.threads) == (scenario, locks, THREADS)
            && names.contains(&one.library.as_str())
    };
    let found = PUBLISHED.iter().find(same)?;
    Some((&found.library, found.figure.value? / reference(scenario, THREADS)?))
}

/// A figure of HAProxy 2025.
pub(crate) struct Bar<'a> {
    /// The scenario, as its figures name it.
    pub(crate) item: &'a str,
    pub(crate) scenario: Scenario,
    pub(crate) library: &'a str,
    pub(crate) locks: Locks,
    pub(crate) threads: usize,
    pub(crate) per_second: Option<f64>,
    /// To OpenSSL 1.1.1w with the C library's locks at as many threads.
    pub(crate) ratio: Option<f64>,
    pub(crate) note: &'a str,
}

impl Bar<'_> {
    /// Whether a row is of the library that stands for the published one, in the same scenario with the same
    /// locks.
    pub(crate) fn is_of(&self, row: &Row) -> bool {
        (row.cell.scenario, row.cell.locks) == (self.scenario, self.locks)
            && names(&row.cell.library).contains(&self.library)
    }
}

/// All figures of HAProxy 2025, in its order.
pub(crate) fn bars() -> Vec<Bar<'static>> {
    let bar = |one: &'static Published| {
        let base = reference(one.scenario, one.threads);
        Bar {
            item: &one.figure.item,
            scenario: one.scenario,
            library: &one.library,
            locks: one.locks,
            threads: one.threads,
            per_second: one.figure.value,
            ratio: one.figure.value.zip(base).map(|(own, base)| own / base),
            note: &one.figure.note,
        }
    };
    PUBLISHED.iter().map(bar).collect()
}

/// What stands beside each figure of HAProxy 2025.
pub(crate) fn counterparts(summary: &Summary) -> Vec<(String, Counterpart)> {
    PUBLISHED.iter().map(|one| (one.figure.key(), counterpart(summary, one))).collect()
}

/// The command that measures a figure of one of HAProxy 2025's libraries.
pub(crate) fn command(scenario: Scenario, library: &str) -> String {
    const REFERENCE_DRIVER: &str = "openssl-1.1.1w";
    let driver = DRIVERS.iter().find(|name| names(name).contains(&library));
    let libraries = match driver.copied().unwrap_or(REFERENCE_DRIVER) {
        REFERENCE_DRIVER => REFERENCE_DRIVER.to_owned(),
        other => format!("{REFERENCE_DRIVER},{other}"),
    };
    format!(
        "wiretax stacks haproxy --library {libraries} --scenario {scenario} --locks pthread,light"
    )
}

fn counterpart(summary: &Summary, one: &Published) -> Counterpart {
    let same = |row: &&Row| {
        (row.cell.scenario, row.cell.locks) == (one.scenario, one.locks)
            && names(&row.cell.library).contains(&one.library.as_str())
            && row.per_second.is_some()
    };
    let most = summary.rows.iter().filter(same).max_by_key(|row| row.cell.threads);
    let Some((row, estimate)) = most.and_then(|row| Some((row, row.per_second?))) else {
        return Counterpart::NotMeasured { command: command(one.scenario, &one.library) };
    };
    let base = reference(one.scenario, one.threads);
    let published = one.figure.value.zip(base).map(|(own, base)| own / base);
    let published = published.map_or(String::new(), |ratio| format!("{ratio:.2} published, "));
    let ours = row
        .ratio
        .map_or(String::new(), |ratio| format!("× 1.1.1w: {published}{:.2} here; ", ratio.value));
    let room = match summary.cores {
        Some(cores) if one.threads > cores as usize => {
            format!("; {} threads need as many cores, {cores} are here", one.threads)
        }
        _ => String::new(),
    };
    let difference = format!("{ours}{}, threads: {}{room}", row.cell.library, row.cell.threads);
    let interval = Some((estimate.low, estimate.high));
    Counterpart::Ours { value: estimate.value, interval, difference }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_stands_for_its_own_version() {
        let of = |scenario, library, locks| ratio(scenario, library, locks);
        assert_eq!(of(Scenario::Full, "openssl-1.1.1w", Locks::Pthread), Some((REFERENCE, 1.0)));
        let (name, old) = of(Scenario::Chain, "openssl-3.0.2", Locks::Pthread).unwrap();
        assert_eq!((name, old), ("OpenSSL 3.0.2", 1550.0 / 17800.0));
        let (other, ratio_3_0) = of(Scenario::Chain, "openssl-3.0.20", Locks::Pthread).unwrap();
        assert_eq!(other, "OpenSSL 3.0.14");
        assert!((ratio_3_0 - 3700.0 / 17800.0).abs() < 1e-12);
        assert_eq!(of(Scenario::Full, "openssl-3.5.5", Locks::Pthread), None);
        let (_, new) = of(Scenario::Full, "awslc-1.32.0-c11", Locks::Pthread).unwrap();
        assert_eq!(new, 63.0 / 48.0);
        // Ranked, not stated.
        assert_eq!(of(Scenario::Full, "wolfssl-5.7.2", Locks::Pthread), None);
    }

    #[test]
    fn every_published_figure_has_its_counterpart_or_the_command_that_measures_it() {
        let figures = study::figures(FIGURES).unwrap();
        assert_eq!(PUBLISHED.len(), figures.len());
        let counterparts = counterparts(&Summary::default());
        for figure in &figures {
            let found = counterparts.iter().find(|(key, _)| *key == figure.key());
            let Some((_, Counterpart::NotMeasured { command })) = found else {
                panic!("{}: {found:?}", figure.key());
            };
            assert!(!command.contains("w, --"), "{command}");
        }
        for driver in DRIVERS {
            assert!(!names(driver).is_empty(), "{driver}");
        }
        let covered = |one: &Published| {
            DRIVERS.iter().any(|name| names(name).contains(&one.library.as_str()))
        };
        assert!(PUBLISHED.iter().all(covered));
    }
}
