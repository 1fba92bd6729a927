//! What a thread has counted, and what of it all threads make.

use std::time::Duration;

use crate::DriverError;

/// One thread's count.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) failure: Option<DriverError>,
    pub(crate) resumed: u64,
    pub(crate) misreported: u64,
    pub(crate) bytes: u64,
    pub(crate) server_cpu: Duration,
    pub(crate) client_cpu: Duration,
    pub(crate) wall: Duration,
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

    /// Adds another thread's count; wall time is the longest.
    pub(crate) fn add(&mut self, other: Tally) {
        self.done += other.done;
        self.failed += other.failed;
        self.resumed += other.resumed;
        self.misreported += other.misreported;
        self.bytes += other.bytes;
        self.server_cpu += other.server_cpu;
        self.client_cpu += other.client_cpu;
        self.wall = self.wall.max(other.wall);
        if self.failure.is_none() {
            self.failure = other.failure;
        }
    }
}
