//! What counts of locks suggest where no curve can be fitted: an estimate of contention on this machine,
//! and no bound.
//!
//! What is certain is the count. The estimate multiplies it by the time that one core takes to hand a lock
//! to another here, as if all of a handshake's acquisitions were of one lock and each came from another core
//! than the last. Neither holds in general. A library may spread its locks, or lock what belongs to one
//! connection; and a core that takes a lock several times in a row finds it in its own cache, so that even
//! with one lock there is less than one hand-over for each acquisition. The rates that HAProxy 2025 measured
//! with OpenSSL 3.0 and 3.1 to 3.4 are above the estimate. With more cores a hand-over takes longer, and
//! between two machines it differs four times: the estimate is of this machine. Pure.

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

/// What counts come to with one hand-over for each acquisition, all of one lock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Contention {
    /// Time that the locks of one handshake then take one after another, in microseconds.
    pub locks_us: f64,
    /// Handshakes per second at that pace; `None` without locks. A library can be faster and slower.
    pub locks_per_s: Option<f64>,
    /// Handshakes per second if all atomic operations are on one word.
    pub atomics_per_s: Option<f64>,
    /// Cores at which the locks would take as long as the rest.
    pub cores: Option<f64>,
}

/// The estimate from counts (counted), the time of handing a lock from core to core (measured) and the CPU
/// time of one handshake in microseconds (measured).
#[must_use]
pub fn contention(counts: Counts, contended: Contended, cpu_us: Option<f64>) -> Contention {
    let Counts { read, write, mutex, atomics } = counts;
    let ns = read * contended.read_ns + write * contended.write_ns + mutex * contended.mutex_ns;
    let rate = |ns: f64| (ns > 0.0 && ns.is_finite()).then(|| 1e9 / ns);
    let locks_per_s = rate(ns);
    Contention {
        locks_us: ns / 1e3,
        locks_per_s,
        atomics_per_s: atomics.and_then(|atomics| rate(atomics * contended.atomic_ns)),
        // N cores make N / cpu, hand-overs one after another 1 / ns.
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
        let estimate = contention(counts, CONTENDED, Some(500.0));
        assert!((estimate.locks_us - 71.0).abs() < 1e-9);
        assert!((estimate.locks_per_s.unwrap() - 1e6 / 71.0).abs() < 1e-6);
        assert!((estimate.atomics_per_s.unwrap() - 10_000.0).abs() < 1e-6);
        assert!((estimate.cores.unwrap() - 500.0 / 71.0).abs() < 1e-9);
    }

    #[test]
    fn without_locks_there_is_no_estimate() {
        let estimate = contention(Counts::default(), CONTENDED, Some(500.0));
        assert_eq!(
            (estimate.locks_per_s, estimate.cores, estimate.atomics_per_s),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn more_locks_never_come_to_more_handshakes(read in 0.0f64..1e4, write in 0.0f64..1e4, more in 0.1f64..100.0) {
            let of = |read| contention(Counts { read, write, ..Counts::default() }, CONTENDED, None);
            let (fewer, more) = (of(read), of(read + more));
            prop_assert!(more.locks_per_s.unwrap() <= fewer.locks_per_s.unwrap_or(f64::INFINITY));
        }
    }
}
