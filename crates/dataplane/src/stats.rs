//! What an engine has done so far.

use std::time::Duration;

use seclink::plane::{Reason, Way};
use serde::Serialize;

/// How an engine in fact runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// It spins; else it blocks.
    pub spins: bool,
    /// How many threads it has: 1 or 2.
    pub threads: usize,
    /// Processors that it may use.
    pub cpus: usize,
}

/// What a node has done in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// Frames that came.
    pub taken: u64,
    /// Frames that went on.
    pub given: u64,
    /// Their bytes as they went on, Ethernet's header included, check sequence not.
    pub given_bytes: u64,
    /// Frames dropped, by reason; those that dropped none are left out.
    pub drops: Vec<(Reason, u64)>,
}

/// What a node has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeStats {
    /// With frames from the first node to the last.
    pub forward: Passed,
    /// With the others.
    pub backward: Passed,
}

/// What was lost between a port that frames came in by and the one that they left by, beside what nodes dropped. In
/// a sound laboratory all but the first two are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SegmentStats {
    /// The way of the frames.
    pub way: Way,
    /// The node at which they come in, from 0.
    pub first: usize,
    /// The node at which they leave.
    pub last: usize,
    /// Frames taken from the port.
    pub taken: u64,
    /// Frames given to the other.
    pub given: u64,
    /// Lost because the port's ring was full, as of the last tenth of a second: the engine is overloaded.
    pub ring_full: u64,
    /// Dropped because they are longer than [`crate::Options::frame_bytes`].
    pub too_long: u64,
    /// Dropped because all buffers were in use.
    pub no_buffer: u64,
    /// Dropped because the kernel refused to send them: too long for the link, or its queue is full.
    pub refused: u64,
    /// Passed on with an unfinished checksum: turn tx checksum offload off at the sending interface.
    pub unfinished_checksum: u64,
    /// System calls to send.
    pub send_calls: u64,
}

/// What an engine has done so far. Its parts are read one after the other while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// What each node has done, from the first to the last.
    pub nodes: Vec<NodeStats>,
    /// Where frames come in and leave.
    pub segments: Vec<SegmentStats>,
    /// CPU time of its threads, system calls and the receiving stacks' work included.
    pub cpu: Duration,
    /// Of it, time in which they only looked for frames.
    pub spun: Duration,
    /// Turns of their loops.
    pub turns: u64,
}

impl Stats {
    /// CPU time for each frame that reached an end, without spinning, in nanoseconds; `None` before the first.
    #[must_use]
    pub fn cpu_ns_per_frame(&self) -> Option<f64> {
        let [first, last] = [self.nodes.first()?, self.nodes.last()?];
        let frames = last.forward.given + first.backward.given;
        let worked = self.cpu.saturating_sub(self.spun);
        (frames > 0).then(|| worked.as_nanos() as f64 / frames as f64)
    }

    /// Frames and bytes that were put on a link, both ways; links are counted from 1.
    #[must_use]
    pub fn on_link(&self, link: usize) -> Option<(u64, u64)> {
        let (left, right) = (self.nodes.get(link.checked_sub(1)?)?, self.nodes.get(link)?);
        let frames = left.forward.given + right.backward.given;
        Some((frames, left.forward.given_bytes + right.backward.given_bytes))
    }

    /// What was dropped, by name: MACsec's as the standard's counters; those that dropped none are left out.
    #[must_use]
    pub fn drops(&self) -> Vec<(&'static str, u64)> {
        let mut drops: Vec<(&'static str, u64)> = Vec::new();
        let mut add = |name: &'static str, count: u64| match drops
            .iter_mut()
            .find(|(known, _)| *known == name)
        {
            Some((_, sum)) => *sum += count,
            None if count > 0 => drops.push((name, count)),
            None => {}
        };
        for node in &self.nodes {
            for (reason, count) in node.forward.drops.iter().chain(&node.backward.drops) {
                add(reason.name(), *count);
            }
        }
        for segment in &self.segments {
            add("ring-full", segment.ring_full);
            add("too-long", segment.too_long);
            add("no-buffer", segment.no_buffer);
            add("refused-by-kernel", segment.refused);
        }
        drops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(given: u64, drops: &[(Reason, u64)]) -> Passed {
        Passed { taken: given, given, given_bytes: 100 * given, drops: drops.to_vec() }
    }

    #[test]
    fn links_and_drops_are_summed() {
        let node = |forward, backward| NodeStats { forward, backward };
        let late = (Reason::MacsecLate, 2);
        let segment = SegmentStats {
            way: Way::Forward,
            first: 0,
            last: 1,
            taken: 9,
            given: 5,
            ring_full: 4,
            too_long: 0,
            no_buffer: 0,
            refused: 0,
            unfinished_checksum: 0,
            send_calls: 1,
        };
        let stats = Stats {
            nodes: vec![
                node(passed(7, &[late]), passed(2, &[])),
                node(passed(5, &[late, (Reason::MacsecNoTag, 1)]), passed(3, &[])),
            ],
            segments: vec![segment],
            cpu: Duration::from_nanos(900),
            spun: Duration::from_nanos(200),
            turns: 3,
        };
        assert_eq!(stats.on_link(1), Some((10, 1000)));
        assert_eq!((stats.on_link(0), stats.on_link(2)), (None, None));
        assert_eq!(stats.drops(), [("InPktsLate", 4), ("InPktsNoTag", 1), ("ring-full", 4)]);
        assert_eq!(stats.cpu_ns_per_frame(), Some(100.0));
    }
}
