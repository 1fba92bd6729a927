//! What a thread has counted, and what of it all threads make.

use std::time::{Duration, Instant};

use super::clock::thread_cpu;
use crate::DriverError;

/// One thread's count.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) failure: Option<DriverError>,
    pub(crate) resumed: u64,
    /// Legs behind a proxy that were full handshakes.
    pub(crate) full_legs: u64,
    pub(crate) misreported: u64,
    pub(crate) bytes: u64,
    pub(crate) server_cpu: Duration,
    pub(crate) client_cpu: Duration,
    pub(crate) wall: Duration,
    /// Wall time in which the thread did not run, of one that never waits for anything.
    pub(crate) waited: Option<Duration>,
}

impl Tally {
    /// A connection has failed; the first reason is kept.
    pub(crate) fn fail(&mut self, error: DriverError) {
        self.failed += 1;
        self.failure.get_or_insert(error);
    }

    /// Whether going on is of no use: nothing but failures, and many.
    pub(crate) fn hopeless(&self) -> bool {
        self.done == 0 && self.failed >= 32
    }

    /// Ends the measured time of a thread that had work all the time: `began` on the clock, after so much
    /// CPU time. What is between the two was not its own.
    pub(crate) fn end(&mut self, began: Instant, cpu: Duration) {
        self.wall = began.elapsed();
        self.waited = Some(self.wall.saturating_sub(thread_cpu().saturating_sub(cpu)));
    }

    /// Adds another thread's count; wall time is the longest.
    pub(crate) fn add(&mut self, other: Tally) {
        self.done += other.done;
        self.failed += other.failed;
        self.resumed += other.resumed;
        self.full_legs += other.full_legs;
        self.misreported += other.misreported;
        self.bytes += other.bytes;
        self.server_cpu += other.server_cpu;
        self.client_cpu += other.client_cpu;
        self.wall = self.wall.max(other.wall);
        self.waited = match (self.waited, other.waited) {
            (Some(own), Some(others)) => Some(own + others),
            (own, others) => own.or(others),
        };
        if self.failure.is_none() {
            self.failure = other.failure;
        }
    }
}
