//! The task that drives a stack: packets in, timers, packets out, until nobody uses it any more.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, Sleep};
use units::Time;

use crate::shared::{Shared, now};
use crate::waiters::Afterwards;

/// Looks for a packet before other tasks get their turn, while spinning.
const LOOKS: usize = 64;
/// How far off a timer is set that is not needed.
const NEVER: Duration = Duration::from_secs(24 * 3600);

/// The task that moves packets between the device and the endpoint.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    readable: Vec<AsyncFd<OwnedFd>>,
    /// Watched only while the device's queue is full: a packet socket tells of room for every
    /// frame that leaves.
    writable: Option<AsyncFd<OwnedFd>>,
    sender: OwnedFd,
    sleep: Pin<Box<Sleep>>,
    spin: Duration,
    /// When the last packet came.
    active: Time,
    afterwards: Afterwards,
}

/// What the driver does next.
enum Next {
    End,
    /// Again, after others had their turn.
    Yield,
    Wait {
        blocked: bool,
    },
}

impl Driver {
    /// A driver, to be spawned on the current runtime. One of the first descriptors becomes readable with
    /// the device, the other one writable.
    pub(crate) fn new(
        shared: Arc<Shared>,
        (device, sender): (Vec<OwnedFd>, OwnedFd),
        spin: Duration,
    ) -> io::Result<Self> {
        let readable = device.into_iter().map(|device| watch(device, Interest::READABLE));
        let readable = readable.collect::<io::Result<_>>()?;
        let sleep = Box::pin(tokio::time::sleep(NEVER));
        let (active, afterwards) = (now(), Afterwards::default());
        Ok(Driver { shared, readable, writable: None, sender, sleep, spin, active, afterwards })
    }

    /// One turn under the lock.
    fn turn(&mut self, cx: &Context<'_>) -> Next {
        let at = now();
        let mut engine = self.shared.lock();
        if !engine.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            engine.driver = Some(cx.waker().clone());
        }
        if engine.is_ready() {
            self.active = at;
        }
        let left = engine.turn(at);
        let ended = self.shared.try_end(&mut engine, at);
        engine.take_afterwards(&mut self.afterwards);
        drop(engine);
        self.afterwards.run();
        match (ended, left.more) {
            (true, _) => Next::End,
            (false, true) => Next::Yield,
            (false, false) => Next::Wait { blocked: left.blocked },
        }
    }

    /// Whether the device has become readable or writable; if not, the task is woken when it does.
    fn poll_device(&mut self, cx: &mut Context<'_>, blocked: bool) -> bool {
        let mut changed = false;
        for readable in &self.readable {
            if let Poll::Ready(Ok(mut guard)) = readable.poll_read_ready(cx) {
                // What comes between the last look and here is found by the look that follows.
                guard.clear_ready();
                changed = true;
            }
        }
        if changed {
            self.shared.lock().set_readable();
        }
        if blocked && self.poll_writable(cx) {
            self.writable = None;
            self.shared.lock().set_writable();
            changed = true;
        }
        changed
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> bool {
        if self.writable.is_none() {
            let another = self.sender.try_clone();
            self.writable = another.and_then(|fd| watch(fd, Interest::WRITABLE)).ok();
        }
        // If it cannot be watched, the next look tries again.
        self.writable.as_ref().is_none_or(|device| device.poll_write_ready(cx).is_ready())
    }

    /// Sets the timer if it would ring too late; whether it has rung.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let mut engine = self.shared.lock();
        let due = engine.next_timeout().unwrap_or(Time::MAX);
        // A timer that rings too early is left as it is: most are put off again and again.
        if due < engine.armed {
            engine.armed = due;
            let wait = due.saturating_since(now()).min(NEVER);
            self.sleep.as_mut().reset(Instant::now() + wait);
        }
        if self.sleep.as_mut().poll(cx).is_pending() {
            return false;
        }
        engine.armed = Time::MAX;
        self.sleep.as_mut().reset(Instant::now() + NEVER);
        true
    }

    /// Looks for packets without sleeping; whether to go on spinning.
    fn spin(&mut self) -> bool {
        if now().saturating_since(self.active) >= self.spin {
            return false;
        }
        for _ in 0..LOOKS {
            let mut engine = self.shared.lock();
            engine.look_again();
            if engine.is_ready() {
                break;
            }
            drop(engine);
            std::hint::spin_loop();
        }
        true
    }
}

/// Has the current runtime watch a descriptor.
fn watch(device: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned by the `AsyncFd` from here on and nobody replaces it.
    Ok(unsafe { AsyncFd::register_with_interest(device, interest) }?)
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            match this.turn(cx) {
                Next::End => return Poll::Ready(()),
                Next::Yield => break,
                Next::Wait { blocked } => {
                    if this.poll_device(cx, blocked) || this.poll_timer(cx) {
                        continue;
                    }
                    if this.spin.is_zero() || !this.spin() {
                        return Poll::Pending;
                    }
                    break;
                }
            }
        }
        // Not `wake_by_ref`: a task that is always ready keeps a runtime of one thread from its
        // reactor, and from the tasks of a `LocalSet`, for some sixty polls.
        let others_first = std::pin::pin!(tokio::task::yield_now());
        others_first.poll(cx)
    }
}

impl Drop for Driver {
    /// At the end, or with the runtime: nobody is left waiting for what cannot come.
    fn drop(&mut self) {
        self.shared.end();
    }
}
