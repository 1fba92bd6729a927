//! Tasks that end with their owner.

use std::future::Future;

use tokio::task::{AbortHandle, spawn_local};

/// A task of the current [`tokio::task::LocalSet`]. Dropped, it is cancelled.
#[derive(Debug)]
pub(crate) struct Task(AbortHandle);

impl Task {
    pub(crate) fn spawn(work: impl Future<Output = ()> + 'static) -> Task {
        Task(spawn_local(work).abort_handle())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
