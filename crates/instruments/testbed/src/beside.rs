//! A download beside what is measured: it keeps the queue of the link to a client full.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lab::Offer;

use crate::{Error, Testbed};

/// How long the download may take to fill the queue.
const FILLING: Duration = Duration::from_secs(30);
/// How long the connections have after the first loss, to share the link as they will: what slow start sent
/// too much has left the queue then.
const SETTLING: Duration = Duration::from_secs(3);
/// How often the link is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// Connections of a download: one alone leaves slow start when it sees a queue grow, and fills it slowly.
const FLOWS: usize = 4;

/// A download under way. It ends when this is dropped.
pub struct Download {
    flows: lab::Download,
    steady: bool,
}

impl<V: Copy + Ord + Display> Testbed<V> {
    /// Begins a download to a client's node and waits, for a bounded time, until it has filled the queue of
    /// the client's link: until a frame on the way to the client was dropped.
    ///
    /// # Errors
    /// The lab's own; [`Error::Beside`].
    pub fn download(&self, client: usize) -> Result<Download, Error> {
        let dropped = || -> Result<u64, Error> {
            Ok(self.link_stats(client)?.backward.link.dropped_in_all().frames)
        };
        let before = dropped()?;
        let address = SocketAddr::from((self.server_address(client)?, 0));
        let offer = Offer::at(self.server(), address).join()?;
        let offer = offer.map_err(|source| Error::Beside { source })?;
        let flows = offer.download(self.server(), self.client(client)?, FLOWS);
        let until = Instant::now() + FILLING;
        let mut steady = false;
        while !steady && Instant::now() < until {
            std::thread::sleep(LOOK);
            steady = dropped()? > before;
        }
        if steady {
            std::thread::sleep(SETTLING);
        }
        Ok(Download { flows, steady })
    }
}

impl Download {
    /// Whether it had filled the queue when it was waited for.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.steady
    }

    /// Ends it; what is left of it on the link may still come.
    ///
    /// # Errors
    /// [`Error::Beside`]: it broke before its end.
    pub fn end(self) -> Result<(), Error> {
        for side in self.flows.end() {
            side.join()?.map_err(|source| Error::Beside { source })?;
        }
        Ok(())
    }
}
