//! What "The State of SSL Stacks" (HAProxy Technologies, 2025) states: connections a second of HAProxy
//! 3.1-dev1 on a server with 64 aarch64 cores. Single figures from its text, set beside ours as ratios
//! to OpenSSL 1.1.1w.

use crate::{Locks, Scenario};

/// A figure of the document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The scenario.
    pub scenario: Scenario,
    /// The library as the document names it.
    pub library: &'static str,
    /// The locks.
    pub locks: Locks,
    /// HAProxy's threads.
    pub threads: usize,
    /// Connections a second.
    pub per_second: f64,
}

const fn figure(
    scenario: Scenario,
    library: &'static str,
    locks: Locks,
    threads: usize,
    per_second: f64,
) -> Published {
    Published { scenario, library, locks, threads, per_second }
}

const REFERENCE: &str = "OpenSSL 1.1.1w";
const OPENSSL_3_0_14: &str = "OpenSSL 3.0.14";
const OPENSSL_3_1: &str = "OpenSSL 3.1 to 3.4-dev";
const AWSLC_NEW: &str = "AWS-LC (after 1.32.0)";
const AWSLC_C99: &str = "AWS-LC 1.29.0 (C99)";
const AWSLC_C11: &str = "AWS-LC 1.29.0 (C11)";
const WOLFSSL: &str = "WolfSSL 5.7.0";

/// Those at the document's 64 threads; WolfSSL's full handshakes it gives no figure for.
const FIGURES: &[Published] = &[
    figure(Scenario::Full, REFERENCE, Locks::Pthread, 64, 48_000.0),
    figure(Scenario::Full, AWSLC_NEW, Locks::Pthread, 64, 63_000.0),
    figure(Scenario::Full, AWSLC_C99, Locks::Pthread, 64, 45_000.0),
    figure(Scenario::Full, OPENSSL_3_1, Locks::Pthread, 64, 42_500.0),
    figure(Scenario::Full, "OpenSSL 3.0.2", Locks::Pthread, 64, 21_000.0),
    figure(Scenario::Full, OPENSSL_3_0_14, Locks::Pthread, 64, 21_000.0),
    figure(Scenario::Full, OPENSSL_3_0_14, Locks::Light, 64, 36_000.0),
    figure(Scenario::Chain, REFERENCE, Locks::Pthread, 64, 17_800.0),
    figure(Scenario::Chain, REFERENCE, Locks::Light, 64, 124_000.0),
    figure(Scenario::Chain, WOLFSSL, Locks::Pthread, 64, 150_000.0),
    figure(Scenario::Chain, "OpenSSL 3.0.2", Locks::Pthread, 64, 1_550.0),
    figure(Scenario::Chain, OPENSSL_3_0_14, Locks::Pthread, 64, 3_700.0),
    figure(Scenario::Chain, OPENSSL_3_0_14, Locks::Light, 64, 8_000.0),
    figure(Scenario::Chain, AWSLC_C11, Locks::Pthread, 64, 183_000.0),
];

/// Which of the document's libraries stands closest to a driver's: the same version, or its series.
const STANDS_FOR: &[(&str, &str)] = &[
    ("openssl-1.1.1", REFERENCE),
    ("openssl-3.0.2", "OpenSSL 3.0.2"),
    ("openssl-3.0.20", OPENSSL_3_0_14),
    ("openssl-3.1.", OPENSSL_3_1),
    ("openssl-3.2.", OPENSSL_3_1),
    ("openssl-3.3.", OPENSSL_3_1),
    ("openssl-3.4.", OPENSSL_3_1),
    ("awslc-1.29.0-c99", AWSLC_C99),
    ("awslc-1.29.0-c11", AWSLC_C11),
    ("awslc-1.32.0", AWSLC_NEW),
    ("wolfssl-5.7.", WOLFSSL),
];

/// The document's figure for a driver's library, and its ratio to OpenSSL 1.1.1w with the C library's
/// locks at as many threads. None where the document has no such library.
#[must_use]
pub fn published(
    scenario: Scenario,
    library: &str,
    locks: Locks,
) -> Option<(&'static Published, f64)> {
    // The longest name that fits: `openssl-3.0.20` is not 3.0.2.
    let fits = STANDS_FOR.iter().filter(|(driver, _)| library.starts_with(driver));
    let (_, name) = fits.max_by_key(|(driver, _)| driver.len())?;
    let of = |name: &str, locks: Locks| {
        let same = |one: &&Published| {
            one.scenario == scenario && one.library == name && one.locks == locks
        };
        FIGURES.iter().find(same)
    };
    let (figure, reference) = (of(name, locks)?, of(REFERENCE, Locks::Pthread)?);
    Some((figure, figure.per_second / reference.per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_stands_for_its_own_version() {
        let ratio = |scenario, library, locks| published(scenario, library, locks).map(|(_, r)| r);
        assert_eq!(ratio(Scenario::Full, "openssl-1.1.1w", Locks::Pthread), Some(1.0));
        let (old, _) = published(Scenario::Chain, "openssl-3.0.2", Locks::Pthread).unwrap();
        assert_eq!(old.per_second, 1550.0);
        let (other, ratio_3_0) =
            published(Scenario::Chain, "openssl-3.0.20", Locks::Pthread).unwrap();
        assert_eq!(other.library, OPENSSL_3_0_14);
        assert!((ratio_3_0 - 3700.0 / 17800.0).abs() < 1e-12);
        assert_eq!(ratio(Scenario::Full, "openssl-3.5.5", Locks::Pthread), None);
        assert_eq!(ratio(Scenario::Full, "awslc-1.32.0-c11", Locks::Pthread), Some(63.0 / 48.0));
        assert!(FIGURES.iter().all(|one| one.threads == 64));
    }
}
