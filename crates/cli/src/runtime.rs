//! The runtime of commands that wait for the network.

use std::io;
use std::os::unix::net::UnixStream;

use fault::{Fault, OrProblem, Problem};
use tokio::runtime::{Builder, Runtime};

/// Returns a runtime on the calling thread.
///
/// # Errors
/// The system grants too few descriptors. The machine's fault.
pub fn runtime() -> Result<Runtime, Problem> {
    // tokio panics where it gets no sockets for signals: as many descriptors are tried before.
    let tried: io::Result<Vec<_>> = (0..2).map(|_| UnixStream::pair()).collect();
    tried
        .map(drop)
        .and_then(|()| Builder::new_current_thread().enable_all().build())
        .blame(Fault::Machine)
}
