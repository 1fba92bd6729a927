//! Which of the time that a body waits for a flow-control window counts as stalled: none in which its link is busy
//! all the same. A large socket buffer, and a long queue, take more than the link carries.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use units::Time;

use crate::{Bottleneck, Stall};

/// How often a transport is asked for unsent bytes while a window is shut.
const UNSENT_STEP: Duration = Duration::from_millis(1);

/// The bodies of a connection that wait for a window, and up to when its link was busy meanwhile.
#[derive(Debug)]
pub(crate) struct Stalls {
    /// Bodies whose window is shut just now.
    open: Cell<usize>,
    began: Notify,
    /// When the transport was last seen with bytes that it had not sent, while a window was shut.
    unsent_at: Cell<Option<Time>>,
    /// Says until when packets wait on their way to the peer, where that is known.
    bottleneck: Option<Bottleneck>,
}

impl Stalls {
    pub(crate) fn new(bottleneck: Option<Bottleneck>) -> Rc<Stalls> {
        let (open, began, unsent_at) = (Cell::new(0), Notify::new(), Cell::new(None));
        Rc::new(Stalls { open, began, unsent_at, bottleneck })
    }

    /// Notes, for as long as windows are shut, up to when the transport had bytes that it had not sent: then it is
    /// not the window that keeps the link idle.
    pub(crate) async fn watch_unsent(&self, unsent_until: impl Fn() -> Option<Time>) -> Infallible {
        loop {
            while self.open.get() == 0 {
                self.began.notified().await;
            }
            self.note_unsent(unsent_until());
            tokio::time::sleep(UNSENT_STEP).await;
        }
    }

    fn note_unsent(&self, until: Option<Time>) {
        self.unsent_at.set(self.unsent_at.get().max(until));
    }

    /// Does `work`, and watches meanwhile.
    pub(crate) async fn watching<T>(
        &self,
        work: impl Future<Output = T>,
        unsent_until: impl Fn() -> Option<Time>,
    ) -> T {
        tokio::select! {
            biased;
            done = work => done,
            never = self.watch_unsent(unsent_until) => match never {},
        }
    }

    /// Up to when the link is known to have been busy.
    fn busy_until(&self) -> Option<Time> {
        self.unsent_at.get().max(self.bottleneck.as_ref().map(Bottleneck::waits_until))
    }
}

/// A body that waits for a window now and then.
#[derive(Debug)]
pub(crate) struct Wait {
    stalls: Rc<Stalls>,
    from: Option<Time>,
}

impl Wait {
    pub(crate) fn new(stalls: &Rc<Stalls>) -> Wait {
        Wait { stalls: Rc::clone(stalls), from: None }
    }

    /// The body has data, its window is shut, and the transport would take more.
    pub(crate) fn begin(&mut self, now: impl FnOnce() -> Time) {
        if self.from.is_none() {
            self.from = Some(now());
            self.stalls.open.set(self.stalls.open.get() + 1);
            self.stalls.began.notify_one();
        }
    }

    /// So no longer. What counts of the wait: from when the transport had sent all that it had taken, and nothing
    /// waited at the bottleneck.
    pub(crate) fn end(&mut self, now: impl FnOnce() -> Time) -> Option<Stall> {
        let from = self.from?;
        self.forget();
        // The time first: nothing counts of a link that is busy until now.
        let to = now();
        let from = self.stalls.busy_until().map_or(from, |busy| busy.max(from));
        (from < to).then_some(Stall { from, to })
    }

    /// [`Wait::begin`] or [`Wait::end`].
    pub(crate) fn set(&mut self, waits: bool, now: impl FnOnce() -> Time) -> Option<Stall> {
        if waits {
            self.begin(now);
            return None;
        }
        self.end(now)
    }

    /// What seemed to be a wait for a window was none.
    pub(crate) fn forget(&mut self) {
        if self.from.take().is_some() {
            self.stalls.open.set(self.stalls.open.get() - 1);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn stall(from: u64, to: u64) -> Option<Stall> {
        Some(Stall { from: at(from), to: at(to) })
    }

    #[test]
    fn a_wait_counts_from_when_the_link_was_idle() {
        let waited = Arc::new(AtomicU64::new(0));
        let queue = Arc::clone(&waited);
        let stalls = Stalls::new(Some(Bottleneck::new(move || at(queue.load(Ordering::Relaxed)))));
        let mut wait = Wait::new(&stalls);
        let mut of = |from, to| {
            assert_eq!(wait.set(true, || at(from)), None);
            // It begins once.
            wait.begin(|| at(from + 1));
            wait.set(false, || at(to))
        };
        assert_eq!(of(10, 50), stall(10, 50));
        // The queue was last busy in the middle of the wait, then up to its end.
        waited.store(80, Ordering::Relaxed);
        assert_eq!(of(60, 100), stall(80, 100));
        waited.store(140, Ordering::Relaxed);
        assert_eq!(of(110, 140), None);
        // The transport had unsent bytes for longer than the queue was busy, then for less.
        for seen in [None, Some(at(165)), Some(at(170)), None] {
            stalls.note_unsent(seen);
        }
        assert_eq!(of(150, 200), stall(170, 200));
        waited.store(230, Ordering::Relaxed);
        assert_eq!(of(210, 240), stall(230, 240));
        assert_eq!(of(250, 250), None);
        assert_eq!(wait.end(|| at(260)), None);
    }

    #[test]
    fn waits_that_are_forgotten_or_dropped_are_open_no_more() {
        let stalls = Stalls::new(None);
        let mut waits = [Wait::new(&stalls), Wait::new(&stalls)];
        waits.iter_mut().for_each(|wait| wait.begin(|| at(1)));
        assert_eq!(stalls.open.get(), 2);
        waits[0].forget();
        waits[0].forget();
        assert_eq!((stalls.open.get(), waits[0].end(|| at(9))), (1, None));
        drop(waits);
        assert_eq!(stalls.open.get(), 0);
    }
}
