//! A capture that is read as it comes, and kept in a file if asked for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab::{CaptureOptions, Node};
use packet::clock::RealtimeOffset;
use tracker::{Connection, Counters, Limits, LinkType, Tracker};

use crate::Error;

/// A capture at a node's end of a link, whose frames become records of connections.
pub struct Capture {
    tracker: Arc<Mutex<Tracker>>,
    live: lab::Capture,
    file: Option<lab::Capture>,
}

impl Capture {
    /// Begins, at the node's first link unless the options name another. All times are on the nodes'
    /// clock, CLOCK_MONOTONIC. With a file, the frames are kept there too (pcapng).
    ///
    /// # Errors
    /// The lab's own.
    pub fn start(
        node: &Node,
        options: &CaptureOptions,
        file: Option<PathBuf>,
    ) -> Result<Capture, Error> {
        let tracker = Arc::new(Mutex::new(Tracker::new(Limits::default())));
        let filled = Arc::clone(&tracker);
        let offset = RealtimeOffset::measure();
        let live = node.capture_with(options, move |frame| {
            let mut tracker = filled.lock().unwrap_or_else(PoisonError::into_inner);
            let at = offset.to_monotonic(frame.at);
            tracker.handle_packet(at, LinkType::Ethernet, frame.bytes, frame.original_len);
        })?;
        let file = file.map(|file| node.capture_file(file, options)).transpose()?;
        Ok(Capture { tracker, live, file })
    }

    /// Frames of connections that were captured until now.
    #[must_use]
    pub fn followed(&self) -> u64 {
        self.tracker().counters().followed
    }

    /// What was captured until now, by what it is.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.tracker().counters()
    }

    /// The connections seen since they were last asked for, those that go on too: a later record has
    /// the rest of these.
    #[must_use]
    pub fn connections(&self) -> Vec<Connection> {
        let mut tracker = self.tracker();
        tracker.close();
        std::iter::from_fn(|| tracker.poll_connection()).collect()
    }

    /// Ends it when the last frames were read: the connections seen since they were last asked for, and
    /// how many frames the kernel dropped.
    ///
    /// # Errors
    /// The lab's own.
    pub fn stop(self) -> Result<(Vec<Connection>, u64), Error> {
        let Capture { tracker, live, file } = self;
        let dropped = live.stop()?.kernel_drops;
        if let Some(file) = file {
            file.stop()?;
        }
        let mut tracker = tracker.lock().unwrap_or_else(PoisonError::into_inner);
        let tracker = std::mem::replace(&mut *tracker, Tracker::new(Limits::default()));
        Ok((tracker.finish(), dropped))
    }

    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
