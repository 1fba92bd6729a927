//! Requests before the handshake is over: which may leave with it as early data, and which wait for its end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use tls::EarlyData;
use tokio::sync::Notify;

/// Between the requests of a client's connection and its early data. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    early_data: Cell<EarlyData>,
    /// A request that may be early data is given to the protocol, or soon.
    asked: Cell<bool>,
    /// The first flight leaves with what there is.
    leaving: Cell<bool>,
    /// The task that sends it.
    stream: RefCell<Waker>,
    /// Requests that went before the answer, and are not over.
    early: Cell<usize>,
    changed: Notify,
}

impl Gate {
    /// Of a connection whose early data the server has yet to answer on.
    pub(crate) fn new() -> Gate {
        Gate(Rc::new(Inner {
            early_data: Cell::new(EarlyData::Pending),
            asked: Cell::new(false),
            leaving: Cell::new(false),
            stream: RefCell::new(Waker::noop().clone()),
            early: Cell::new(0),
            changed: Notify::new(),
        }))
    }

    /// Waits until a request may be sent: at once if it may be early data, which may reach the server twice
    /// (RFC 8446 §8), else after the handshake.
    pub(crate) async fn admit(&self, may_be_early: bool) {
        if may_be_early {
            self.0.asked.set(true);
            return;
        }
        self.leave();
        self.wake();
        self.settled().await;
    }

    /// Has the first flight leave with what there is, once its stream is looked at.
    pub(crate) fn leave(&self) {
        self.0.leaving.set(true);
    }

    /// Whether a request is given to the protocol, or soon.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.asked.get()
    }

    /// Whether the first flight is not to wait for a request.
    pub(crate) fn is_leaving(&self) -> bool {
        self.0.leaving.get()
    }

    /// The task that is to be woken when the first flight is to leave.
    pub(crate) fn register(&self, waker: &Waker) {
        self.0.stream.borrow_mut().clone_from(waker);
    }

    /// Wakes that task.
    pub(crate) fn wake(&self) {
        self.0.stream.borrow().wake_by_ref();
    }

    /// The handshake is over, or has failed.
    pub(crate) fn settle(&self, early_data: EarlyData) {
        self.0.early_data.set(early_data);
        self.0.changed.notify_waiters();
    }

    /// What became of early data so far.
    pub(crate) fn early_data(&self) -> EarlyData {
        self.0.early_data.get()
    }

    /// Whether the server has yet to answer on it.
    pub(crate) fn is_pending(&self) -> bool {
        self.early_data() == EarlyData::Pending
    }

    /// Waits for the end of the handshake: what became of early data.
    pub(crate) async fn settled(&self) -> EarlyData {
        while self.is_pending() {
            self.0.changed.notified().await;
        }
        self.early_data()
    }

    /// Resolves when the server has refused it, or the handshake has failed.
    pub(crate) async fn refused(&self) {
        if self.settled().await != EarlyData::Rejected {
            std::future::pending().await
        }
    }

    /// Counts a request that goes before the answer, until the guard is dropped.
    pub(crate) fn enter(&self) -> EarlyRequest<'_> {
        self.0.early.set(self.0.early.get() + 1);
        EarlyRequest(self)
    }

    /// Waits for the end of the handshake and, where early data was refused, for that of all requests that went
    /// as such.
    pub(crate) async fn after_refused(&self) {
        if self.settled().await == EarlyData::Rejected {
            while self.0.early.get() > 0 {
                self.0.changed.notified().await;
            }
        }
    }
}

/// A request that went before the server's answer on early data.
pub(crate) struct EarlyRequest<'a>(&'a Gate);

impl Drop for EarlyRequest<'_> {
    fn drop(&mut self) {
        let Gate(inner) = self.0;
        inner.early.set(inner.early.get() - 1);
        inner.changed.notify_waiters();
    }
}
