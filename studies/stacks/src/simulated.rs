//! Threads and the locks between them, simulated: what a curve that was fitted to few cores is held against.
//!
//! Each core works, takes a lock, works on. A lock's cache line is with one core at a time: who takes it
//! after another core waits until it is handed over, in the order of asking; who had it last takes it again
//! at once. Virtual time in nanoseconds; the lengths of work are drawn from a seed. Pure, and exact: the
//! same arguments give the same counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a handshake asks of its core and of the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Work beside the hand-overs, in nanoseconds.
    pub work_ns: u64,
    /// Locks taken, counted.
    pub acquisitions: u32,
    /// What it takes to hand a lock from core to core, in nanoseconds.
    pub handed_ns: u64,
    /// Locks that the acquisitions fall on, by chance; 0 counts as 1.
    pub locks: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulated {
    /// Locks taken by all cores.
    pub taken: u64,
    /// Of these, handed over from another core.
    pub handed: u64,
    /// Time that cores waited for others to have their turn, in nanoseconds, all together.
    pub waited_ns: u64,
    /// Handshakes a second, in thousandths.
    pub millihandshakes_per_s: u64,
}

/// A lock: when it is free again, and who had it last.
#[derive(Debug, Clone, Copy, Default)]
struct Lock {
    free_ns: u64,
    last: Option<u32>,
}

/// So many cores for a virtual time of `until_ns`; the first tenth, in which they start, is in no count.
#[must_use]
pub fn simulate(demand: Demand, cores: u32, until_ns: u64, seed: u64) -> Simulated {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let acquisitions = u64::from(demand.acquisitions.max(1));
    let mean = demand.work_ns / acquisitions;
    let mut locks = vec![Lock::default(); demand.locks.max(1) as usize];
    let mut next: BinaryHeap<Reverse<(u64, u32)>> =
        (0..cores).map(|core| Reverse((rng.random_range(0..=2 * mean), core))).collect();
    let from = until_ns / 10;
    let (mut taken, mut handed, mut waited_ns) = (0_u64, 0_u64, 0_u64);
    while let Some(Reverse((now, core))) = next.pop() {
        if now >= until_ns {
            break;
        }
        let at = rng.random_range(0..locks.len());
        let Some(lock) = locks.get_mut(at) else { break };
        let start = now.max(lock.free_ns);
        let other = lock.last.is_some_and(|last| last != core);
        lock.free_ns = start + if other { demand.handed_ns } else { 0 };
        lock.last = Some(core);
        if now >= from {
            taken += 1;
            handed += u64::from(other);
            waited_ns += start - now;
        }
        next.push(Reverse((lock.free_ns + rng.random_range(0..=2 * mean), core)));
    }
    let measured = u128::from(until_ns - from);
    let rate = u128::from(taken) * 1_000_000_000_000 / (u128::from(acquisitions) * measured.max(1));
    let millihandshakes_per_s = u64::try_from(rate).unwrap_or(u64::MAX);
    Simulated { taken, handed, waited_ns, millihandshakes_per_s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;

    const SECOND: u64 = 1_000_000_000;

    /// A handshake of 500 us whose 100 locks take 30 us when each is handed over.
    const HEAVY: Demand = Demand { work_ns: 500_000, acquisitions: 100, handed_ns: 300, locks: 1 };

    fn rate(demand: Demand, cores: u32) -> f64 {
        // Few cores lose little to each other: it takes more of their handshakes to see it.
        let until = if cores <= 8 { SECOND / 4 } else { SECOND / 20 };
        simulate(demand, cores, until, 7).millihandshakes_per_s as f64 / 1e3
    }

    fn curve(demand: Demand, counts: &[u32]) -> Vec<(u32, f64)> {
        counts.iter().map(|cores| (*cores, rate(demand, *cores))).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_counts() {
        let run = |seed| simulate(HEAVY, 8, SECOND / 100, seed);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let none = simulate(HEAVY, 0, SECOND, 1);
        assert_eq!((none.taken, none.millihandshakes_per_s), (0, 0));
    }

    #[test]
    fn one_core_takes_its_own_locks_again() {
        let one = simulate(HEAVY, 1, SECOND, 1);
        assert_eq!((one.handed, one.waited_ns), (0, 0));
        assert!((one.millihandshakes_per_s as f64 / 2e6 - 1.0).abs() < 0.01, "{one:?}");
    }

    /// Few cores predict many: fitted to at most six, held against 64.
    #[test]
    fn a_curve_of_few_cores_predicts_many() {
        for (demand, most) in [
            (HEAVY, 0.08),
            // OpenSSL 3.0.2 as it was counted: 663 locks.
            (Demand { work_ns: 390_000, acquisitions: 663, handed_ns: 50, locks: 1 }, 0.08),
            // OpenSSL 3.5: 114.
            (Demand { work_ns: 370_000, acquisitions: 114, handed_ns: 50, locks: 1 }, 0.08),
        ] {
            let fit = Queue::fit(&curve(demand, &[1, 2, 3, 4, 6])).unwrap();
            for (cores, simulated) in curve(demand, &[8, 16, 24, 32, 64]) {
                let error = fit.at(cores) / simulated - 1.0;
                assert!(error.abs() < most, "{demand:?}, {cores} cores: {error:+.3}, {fit:?}");
            }
        }
    }

    /// Counts alone predict the simulation of what was counted.
    #[test]
    fn counts_predict_the_curve() {
        let cpu_us = HEAVY.work_ns as f64 / 1e3;
        let handed_us = f64::from(HEAVY.acquisitions) * HEAVY.handed_ns as f64 / 1e3;
        let queue = Queue::of_counts(cpu_us, handed_us).unwrap();
        for (cores, simulated) in curve(HEAVY, &[1, 2, 4, 8, 16, 32, 64]) {
            let error = queue.at(cores) / simulated - 1.0;
            assert!(error.abs() < 0.03, "{cores} cores: {error:+.3}");
        }
    }

    /// Where the locks are many, what is counted bounds nothing: the estimate of one lock is too low.
    #[test]
    fn many_locks_scale_further_than_one() {
        let spread = Demand { locks: 64, ..HEAVY };
        assert!(rate(spread, 64) > 2.0 * rate(HEAVY, 64));
    }
}
