//! Waiting for a task on a node, from threads and from async code alike.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::Error;

/// The state that a task and its [`JoinHandle`] share.
struct Slot<T> {
    result: Option<Result<T, Error>>,
    /// Set when the result is in, and stays so after it was taken.
    done: bool,
    waker: Option<Waker>,
}

struct Shared<T> {
    slot: Mutex<Slot<T>>,
    done: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        // Nothing that can panic runs while it is locked.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task on a node. Await it, or block on it with [`JoinHandle::join`]. Dropping it lets the
/// task run on.
#[must_use = "the task's result, and that it panicked, is only known here"]
pub struct JoinHandle<T> {
    shared: Arc<Shared<T>>,
    node: Arc<str>,
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinHandle").field("node", &self.node).finish_non_exhaustive()
    }
}

/// The task's end: it puts the result in. Dropped without one, the node was stopped.
pub(crate) struct Completer<T> {
    shared: Arc<Shared<T>>,
    node: Arc<str>,
}

pub(crate) fn pair<T>(node: &Arc<str>) -> (Completer<T>, JoinHandle<T>) {
    let slot = Mutex::new(Slot { result: None, done: false, waker: None });
    let shared = Arc::new(Shared { slot, done: Condvar::new() });
    let (node_too, shared_too) = (Arc::clone(node), Arc::clone(&shared));
    (
        Completer { shared: shared_too, node: node_too },
        JoinHandle { shared, node: Arc::clone(node) },
    )
}

impl<T> Completer<T> {
    /// Ends the task with what it returned, or with what it panicked with.
    pub(crate) fn complete(self, result: std::thread::Result<T>) {
        let result = result.map_err(|panic| Error::Panicked {
            node: self.node.to_string(),
            message: panic_message(panic.as_ref()),
        });
        self.finish(result);
    }

    fn finish(&self, result: Result<T, Error>) {
        let mut slot = self.shared.lock();
        if slot.done {
            return;
        }
        slot.result = Some(result);
        slot.done = true;
        let waker = slot.waker.take();
        drop(slot);
        self.shared.done.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.finish(Err(Error::NodeStopped { node: self.node.to_string() }));
    }
}

impl<T> JoinHandle<T> {
    /// Blocks the calling thread until the task has ended, however long that takes.
    ///
    /// # Errors
    /// [`Error::Panicked`], [`Error::NodeStopped`].
    pub fn join(self) -> Result<T, Error> {
        let slot = self.shared.lock();
        let mut slot = self
            .shared
            .done
            .wait_while(slot, |slot| !slot.done)
            .unwrap_or_else(PoisonError::into_inner);
        slot.result.take().unwrap_or_else(|| Err(self.stopped()))
    }

    /// As [`JoinHandle::join`], but for no longer than `limit`. The task is not stopped by it.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Panicked`], [`Error::NodeStopped`].
    pub fn join_within(self, limit: Duration) -> Result<T, Error> {
        let deadline = Instant::now() + limit;
        let mut slot = self.shared.lock();
        while !slot.done {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::TimedOut { node: self.node.to_string(), limit });
            }
            let waited = self.shared.done.wait_timeout(slot, left);
            slot = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        slot.result.take().unwrap_or_else(|| Err(self.stopped()))
    }

    /// Whether the task has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.shared.lock().done
    }

    fn stopped(&self) -> Error {
        Error::NodeStopped { node: self.node.to_string() }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.shared.lock();
        match slot.result.take() {
            Some(result) => Poll::Ready(result),
            None if slot.done => Poll::Ready(Err(self.stopped())),
            None => {
                slot.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> (Completer<u32>, JoinHandle<u32>) {
        pair(&Arc::from("client"))
    }

    #[test]
    fn a_result_reaches_a_blocked_thread() {
        let (completer, handle) = handle();
        assert!(!handle.is_finished());
        let thread = std::thread::spawn(move || handle.join());
        completer.complete(Ok(7));
        assert_eq!(thread.join().unwrap().unwrap(), 7);
    }

    #[test]
    fn a_panic_and_a_stopped_node_are_told_apart() {
        let (completer, joined) = handle();
        completer.complete(Err(Box::new("out of cheese")));
        let error = joined.join().unwrap_err();
        assert!(matches!(&error, Error::Panicked { message, .. } if message == "out of cheese"));
        let (completer, joined) = handle();
        drop(completer);
        assert!(matches!(joined.join(), Err(Error::NodeStopped { .. })));
    }

    #[test]
    fn waiting_is_bounded() {
        let (_completer, handle) = handle();
        let error = handle.join_within(Duration::from_millis(1)).unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }));
    }
}
