//! Who waits for what on a connection, and what is done once the lock is given back.

use std::any::Any;
use std::task::Waker;

use tcp::CloseReason;

/// What is kept until a connection is over, and dropped then.
pub(crate) type Kept = Box<dyn Any + Send>;

/// What is done once the lock is given back: a waker may run, or drop, anything, and so may what
/// was kept.
#[derive(Debug, Default)]
pub(crate) struct Afterwards {
    pub(crate) wakes: Vec<Waker>,
    pub(crate) kept: Vec<Kept>,
}

impl Afterwards {
    /// Wakes and drops.
    pub(crate) fn run(&mut self) {
        for waker in self.wakes.drain(..) {
            waker.wake();
        }
        self.kept.clear();
    }
}

/// Who waits for what on a connection.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    pub(crate) read: Option<Waker>,
    pub(crate) write: Option<Waker>,
    /// For a step of the handshake.
    pub(crate) step: Vec<Waker>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) kept: Option<Kept>,
}

impl Waiters {
    pub(crate) fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(self.read.take());
        wakes.extend(self.write.take());
        wakes.append(&mut self.step);
    }
}
