//! A server that runs in a task.

use std::net::SocketAddr;

use tokio::task::JoinHandle;

use crate::ServerLog;

/// A running server; dropping it stops the server and its connections.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    log: ServerLog,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn new(address: SocketAddr, log: ServerLog, task: JoinHandle<()>) -> Self {
        Running { address, log, task }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the server saw of each connection.
    #[must_use]
    pub fn log(&self) -> &ServerLog {
        &self.log
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
