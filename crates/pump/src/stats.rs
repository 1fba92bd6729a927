//! What a pump has done so far.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// What is known of a set of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSummary {
    /// How many there are.
    pub count: u64,
    /// Mean, in nanoseconds.
    pub mean_ns: u64,
    /// Median, in nanoseconds, right to 1 %.
    pub p50_ns: u64,
    /// 90th percentile, in nanoseconds, right to 1 %.
    pub p90_ns: u64,
    /// 99th percentile, in nanoseconds, right to 1 %.
    pub p99_ns: u64,
    /// 99.9th percentile, in nanoseconds, right to 1 %.
    pub p999_ns: u64,
    /// Greatest, in nanoseconds, right to 1 %.
    pub max_ns: u64,
}

impl From<&Histogram<u64>> for TimeSummary {
    fn from(histogram: &Histogram<u64>) -> Self {
        TimeSummary {
            count: histogram.len(),
            mean_ns: histogram.mean() as u64,
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}

/// Frames that the pump itself lost or let pass unfinished, in one direction. In a sound
/// laboratory all are zero; each says what to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PumpCounters {
    /// Frames taken from the incoming port.
    pub taken: u64,
    /// Frames given to the outgoing port.
    pub given: u64,
    /// Lost before the pump saw them, because the port's ring was full: the pump is overloaded, or
    /// [`crate::Options::ring_frames`] is too small. Not known of TAP devices.
    pub ring_full: u64,
    /// Dropped because they are longer than [`crate::Options::frame_bytes`]: turn segmentation
    /// offload off at the sending interface, or use offload mode.
    pub too_long: u64,
    /// Dropped because all buffers were in use: raise [`crate::Options::buffers`].
    pub no_buffer: u64,
    /// Copies that the link wanted to make and that found no buffer.
    pub no_buffer_for_copy: u64,
    /// Dropped because the kernel refused to send them (the far interface is down, or its queue is
    /// full), or because the link was taken apart while they were under way.
    pub refused: u64,
    /// Passed on with an unfinished checksum, which the receiver will find wrong: turn tx checksum
    /// offload off at the sending interface ([`packet::offload::disable`]), or use offload mode.
    pub unfinished_checksum: u64,
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DirectionStats {
    /// What the link model did.
    pub link: linkmodel::Counters,
    /// Frames in the link model now.
    pub in_flight: usize,
    /// What the pump did besides.
    pub pump: PumpCounters,
    /// How late frames were sent: from the due time to the start of the system call that sends
    /// the frame (in a batch, to the frame's share of that call).
    pub release_error: TimeSummary,
}

/// How a pump in fact waits and is scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// It spins for the last microseconds before a due time; else it blocks.
    pub spins: bool,
    /// It has real-time scheduling.
    pub realtime: bool,
    /// It carries super-segments.
    pub offload: bool,
    /// Processors that it and the nodes may use.
    pub cpus: usize,
}

/// The pump's thread, which serves all links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ThreadStats {
    /// How it runs.
    pub mode: Mode,
    /// Since it started.
    pub wall: Duration,
    /// CPU time that it used, system calls and the receiving stack's softirqs included.
    pub cpu: Duration,
    /// Of it, time in which it did nothing but look at the clock.
    pub spun: Duration,
    /// Time that it gave other threads while overloaded, so that the kernel does not throttle it.
    pub rested: Duration,
    /// Frames sent, all links and directions.
    pub frames: u64,
    /// Turns of its loop.
    pub turns: u64,
    /// System calls to wait.
    pub wait_calls: u64,
    /// System calls to send; on AF_PACKET each takes up to 64 frames.
    pub send_calls: u64,
    /// System calls to receive; none on AF_PACKET, which has a ring.
    pub receive_calls: u64,
}

impl ThreadStats {
    /// CPU time for each frame without spinning, in nanoseconds; `None` before the first frame.
    #[must_use]
    pub fn cpu_ns_per_frame(&self) -> Option<f64> {
        let worked = self.cpu.saturating_sub(self.spun);
        (self.frames > 0).then(|| worked.as_nanos() as f64 / self.frames as f64)
    }
}

/// A link, both directions, and the thread that serves it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// From the first port to the second.
    pub forward: DirectionStats,
    /// From the second port to the first.
    pub backward: DirectionStats,
    /// The pump's thread.
    pub thread: ThreadStats,
}

/// What a pump did in its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FinalStats {
    /// Each link as it was at the end or when it was removed, in the order they were added.
    pub links: Vec<Stats>,
    /// The pump's thread.
    pub thread: ThreadStats,
}
