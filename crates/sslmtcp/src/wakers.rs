//! Both tasks of a stream, woken together.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Who waits on a stream: one task that reads, one that writes, which may be the same.
///
/// TCP is given a waker that wakes both, since a read may have to write (TLS answers by itself) and
/// a write may have to read (the handshake), and TCP keeps one waker for each direction.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    reader: Mutex<Option<Waker>>,
    writer: Mutex<Option<Waker>>,
}

/// Which task polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

impl Wakers {
    /// `waker` waits as `role` from now on.
    pub(crate) fn register(&self, role: Role, waker: &Waker) {
        let place = match role {
            Role::Reader => &self.reader,
            Role::Writer => &self.writer,
        };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *place {
            Some(known) => known.clone_from(waker),
            None => *place = Some(waker.clone()),
        }
    }

    fn wake_both(&self) {
        for place in [&self.reader, &self.writer] {
            let waker = place.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_both();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_both();
    }
}
