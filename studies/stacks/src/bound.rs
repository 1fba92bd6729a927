//! What counts say where no curve can be fitted: the rate that locks and atomic operations allow any
//! number of cores, if they are all of one shared cache line.
//!
//! A lock that is taken and released writes its word, and so does a rwlock that is taken for reading;
//! a cache line is written by one core at a time. If every acquisition of a handshake is of one and
//! the same lock, a handshake occupies that line for the sum of what its acquisitions take between
//! two cores, and no number of cores makes more handshakes than fit one after another. A library
//! whose locks lie apart, or belong to one connection only, can do better; with more than two cores
//! an acquisition takes no less time. Pure.

use serde::Serialize;

use tls_drivers::hosts::Contended;

/// Acquisitions and atomic operations of one handshake on one side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Rwlocks taken for reading.
    pub read: f64,
    /// Rwlocks taken for writing.
    pub write: f64,
    /// Mutexes and spin locks.
    pub mutex: f64,
    /// Atomic read-modify-write instructions.
    pub atomics: Option<f64>,
}

impl Counts {
    /// Locks of all kinds.
    #[must_use]
    pub fn locks(self) -> f64 {
        self.read + self.write + self.mutex
    }
}

/// What counts allow at most, under the assumption above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bound {
    /// Time that the locks of one handshake take one after another, in microseconds.
    pub locks_us: f64,
    /// Handshakes a second that they allow; `None` without locks.
    pub locks_per_s: Option<f64>,
    /// Handshakes a second that the atomic operations allow, if all are on one word.
    pub atomics_per_s: Option<f64>,
    /// Cores beyond which the locks, and not the cores, decide.
    pub cores: Option<f64>,
}

/// The bound from counts (counted), the time of a contended acquisition (measured) and the CPU time
/// of one handshake in microseconds (measured).
#[must_use]
pub fn bound(counts: Counts, contended: Contended, cpu_us: Option<f64>) -> Bound {
    let Counts { read, write, mutex, atomics } = counts;
    let ns = read * contended.read_ns + write * contended.write_ns + mutex * contended.mutex_ns;
    let rate = |ns: f64| (ns > 0.0 && ns.is_finite()).then(|| 1e9 / ns);
    let locks_per_s = rate(ns);
    Bound {
        locks_us: ns / 1e3,
        locks_per_s,
        atomics_per_s: atomics.and_then(|atomics| rate(atomics * contended.atomic_ns)),
        // N cores make N / cpu; the line allows 1 / ns.
        cores: locks_per_s.zip(cpu_us).map(|(rate, cpu_us)| rate * cpu_us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONTENDED: Contended =
        Contended { read_ns: 100.0, write_ns: 80.0, mutex_ns: 50.0, atomic_ns: 20.0 };

    #[test]
    fn the_sum_of_all_acquisitions_is_what_one_line_takes() {
        let counts = Counts { read: 700.0, write: 10.0, mutex: 4.0, atomics: Some(5000.0) };
        let bound = bound(counts, CONTENDED, Some(500.0));
        assert!((bound.locks_us - 71.0).abs() < 1e-9);
        assert!((bound.locks_per_s.unwrap() - 1e6 / 71.0).abs() < 1e-6);
        assert!((bound.atomics_per_s.unwrap() - 10_000.0).abs() < 1e-6);
        assert!((bound.cores.unwrap() - 500.0 / 71.0).abs() < 1e-9);
    }

    #[test]
    fn without_locks_there_is_no_bound() {
        let bound = bound(Counts::default(), CONTENDED, Some(500.0));
        assert_eq!((bound.locks_per_s, bound.cores, bound.atomics_per_s), (None, None, None));
    }

    proptest! {
        #[test]
        fn more_locks_never_allow_more(read in 0.0f64..1e4, write in 0.0f64..1e4, more in 0.1f64..100.0) {
            let of = |read| bound(Counts { read, write, ..Counts::default() }, CONTENDED, None);
            let (fewer, more) = (of(read), of(read + more));
            prop_assert!(more.locks_per_s.unwrap() <= fewer.locks_per_s.unwrap_or(f64::INFINITY));
        }
    }
}
