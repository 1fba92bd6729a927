//! Counters that the engine's thread writes and others read, without locks.

use std::sync::atomic::{AtomicU64, Ordering};

use packet::{PortCounters, Sent};
use seclink::plane::{HopCounters, Reason, Way};

use crate::chain::Part;
use crate::stats::{NodeStats, Passed, SegmentStats, Stats};

/// A number that one thread writes. It says nothing of other memory, so that no order is asked for.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a node has done in one direction.
#[derive(Debug)]
struct HopBoard {
    node: usize,
    taken: Count,
    given: Count,
    given_bytes: Count,
    drops: [Count; Reason::COUNT],
}

/// What a part has done.
#[derive(Debug)]
pub(crate) struct PartBoard {
    way: Way,
    hops: Vec<HopBoard>,
    taken: Count,
    too_long: Count,
    no_buffer: Count,
    unfinished_checksum: Count,
    given: Count,
    refused: Count,
    send_calls: Count,
    ring_full: Count,
}

/// What a thread has done.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) parts: Vec<PartBoard>,
    spun_nanos: Count,
    turns: Count,
}

impl PartBoard {
    fn new(part: &Part) -> PartBoard {
        let hop = |at| HopBoard {
            node: part.node(at),
            taken: Count::default(),
            given: Count::default(),
            given_bytes: Count::default(),
            drops: std::array::from_fn(|_| Count::default()),
        };
        PartBoard {
            way: part.way,
            hops: (0..part.hops.len()).map(hop).collect(),
            taken: Count::default(),
            too_long: Count::default(),
            no_buffer: Count::default(),
            unfinished_checksum: Count::default(),
            given: Count::default(),
            refused: Count::default(),
            send_calls: Count::default(),
            ring_full: Count::default(),
        }
    }

    /// Writes what a hop, by its place in the part, has done.
    pub(crate) fn hop(&self, at: usize, counters: &HopCounters) {
        let Some(hop) = self.hops.get(at) else { return };
        let dropped = hop.taken.get().wrapping_sub(hop.given.get());
        hop.taken.set(counters.taken);
        hop.given.set(counters.given);
        hop.given_bytes.set(counters.given_bytes);
        if counters.taken - counters.given != dropped {
            for (count, reason) in hop.drops.iter().zip(Reason::ALL) {
                count.set(counters.dropped(*reason));
            }
        }
    }

    /// Writes what the part's ports have done.
    pub(crate) fn ports(&self, came: &PortCounters, sent: &Sent) {
        self.taken.set(came.taken);
        self.too_long.set(came.too_long);
        self.no_buffer.set(came.no_buffer);
        self.unfinished_checksum.set(came.unfinished_checksum);
        self.given.set(sent.given);
        self.refused.set(sent.refused);
        self.send_calls.set(sent.calls);
    }

    /// Writes what the kernel says of the ring.
    pub(crate) fn ring_full(&self, drops: u64) {
        self.ring_full.set(drops);
    }

    fn read_into(&self, stats: &mut Stats) {
        for hop in &self.hops {
            let drops = hop.drops.iter().zip(Reason::ALL);
            let passed = Passed {
                taken: hop.taken.get(),
                given: hop.given.get(),
                given_bytes: hop.given_bytes.get(),
                drops: drops
                    .map(|(count, reason)| (*reason, count.get()))
                    .filter(|(_, count)| *count > 0)
                    .collect(),
            };
            if stats.nodes.len() <= hop.node {
                stats.nodes.resize(hop.node + 1, NodeStats::default());
            }
            let node = &mut stats.nodes[hop.node];
            match self.way {
                Way::Forward => node.forward = passed,
                Way::Backward => node.backward = passed,
            }
        }
        stats.segments.push(SegmentStats {
            way: self.way,
            first: self.hops.first().map_or(0, |hop| hop.node),
            last: self.hops.last().map_or(0, |hop| hop.node),
            taken: self.taken.get(),
            given: self.given.get(),
            ring_full: self.ring_full.get(),
            too_long: self.too_long.get(),
            no_buffer: self.no_buffer.get(),
            refused: self.refused.get(),
            unfinished_checksum: self.unfinished_checksum.get(),
            send_calls: self.send_calls.get(),
        });
    }
}

impl Board {
    pub(crate) fn new(parts: &[Part]) -> Board {
        let parts = parts.iter().map(PartBoard::new).collect();
        Board { parts, spun_nanos: Count::default(), turns: Count::default() }
    }

    /// Writes what the thread's loop has done.
    pub(crate) fn thread(&self, spun_nanos: u64, turns: u64) {
        self.spun_nanos.set(spun_nanos);
        self.turns.set(turns);
    }

    /// Adds what is written here, but for CPU time.
    pub(crate) fn read_into(&self, stats: &mut Stats) {
        self.parts.iter().for_each(|part| part.read_into(stats));
        stats.spun += std::time::Duration::from_nanos(self.spun_nanos.get());
        stats.turns += self.turns.get();
    }
}
