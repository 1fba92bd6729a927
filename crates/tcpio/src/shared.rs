//! The lock around the [`Engine`], and who still uses the stack.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tcp::{CloseReason, ConnectionId, IcmpKind, StreamError};
use tokio::sync::Notify;
use units::Time;

use crate::engine::Engine;
use crate::waiters::Afterwards;

/// The clock of everything here.
pub(crate) fn now() -> Time {
    packet::clock::monotonic()
}

/// What the driver, the streams and the listeners of a stack share.
#[derive(Debug)]
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    /// Stacks, streams and listeners that there are.
    users: AtomicUsize,
    /// Told when nobody drives the stack any more.
    pub(crate) ended: Notify,
    linger: Duration,
}

impl Shared {
    pub(crate) fn new(engine: Engine, linger: Duration) -> Arc<Self> {
        let users = AtomicUsize::new(0);
        Arc::new(Shared { engine: Mutex::new(engine), users, ended: Notify::new(), linger })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Engine> {
        // A panic under the lock leaves a machine that is still safe to use.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the engine, sends what comes of it, and wakes who is concerned.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut Engine, Time) -> R) -> R {
        let mut afterwards = Afterwards::default();
        let at = now();
        let mut engine = self.lock();
        let result = act(&mut engine, at);
        engine.settle(at);
        engine.take_afterwards(&mut afterwards);
        drop(engine);
        afterwards.run();
        result
    }

    /// Ends all connections in order, and the stack with the last of them, or after the time that
    /// it may linger.
    pub(crate) fn close(&self) {
        self.act(|engine, at| {
            engine.begin_closing(at, at + self.linger);
            if let Some(driver) = engine.driver.take() {
                engine.wake(driver);
            }
        });
    }

    /// Whether the driver's work is done.
    pub(crate) fn try_end(&self, engine: &mut Engine, at: Time) -> bool {
        if self.users.load(Ordering::Acquire) == 0 {
            engine.begin_closing(at, at + self.linger);
        }
        engine.try_end(at)
    }

    /// Nobody drives the stack any more.
    pub(crate) fn end(&self) {
        let mut afterwards = Afterwards::default();
        let mut engine = self.lock();
        engine.end();
        engine.take_afterwards(&mut afterwards);
        drop(engine);
        afterwards.run();
        self.ended.notify_waiters();
    }
}

/// A share in the stack: it is driven as long as there is one.
#[derive(Debug)]
pub(crate) struct User(Arc<Shared>);

impl User {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.users.fetch_add(1, Ordering::Relaxed);
        User(shared)
    }
}

impl Clone for User {
    fn clone(&self) -> Self {
        User::new(Arc::clone(&self.0))
    }
}

impl std::ops::Deref for User {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if self.0.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            let driver = self.0.lock().driver.take();
            if let Some(driver) = driver {
                driver.wake();
            }
        }
    }
}

/// Why nothing comes from, or goes to, a connection any more.
pub(crate) fn closed(engine: &Engine, id: ConnectionId) -> io::Error {
    match engine.streams.get(&id).and_then(|waiters| waiters.closed) {
        Some(reason) => failure(StreamError::Closed(reason)),
        None if engine.ended => crate::Error::Closed.into(),
        None => failure(StreamError::Unknown),
    }
}

/// An endpoint's error as tokio's streams have it.
pub(crate) fn failure(error: StreamError) -> io::Error {
    let kind = match error {
        StreamError::WouldBlock => return io::ErrorKind::WouldBlock.into(),
        StreamError::Shutdown => io::ErrorKind::BrokenPipe,
        StreamError::Closed(CloseReason::Reset) => io::ErrorKind::ConnectionReset,
        StreamError::Closed(CloseReason::Refused) => io::ErrorKind::ConnectionRefused,
        StreamError::Closed(CloseReason::TimedOut) => io::ErrorKind::TimedOut,
        StreamError::Closed(CloseReason::Aborted) => io::ErrorKind::ConnectionAborted,
        StreamError::Closed(CloseReason::Unreachable(kind)) => match kind {
            IcmpKind::PortUnreachable | IcmpKind::ProtocolUnreachable => {
                io::ErrorKind::ConnectionRefused
            }
            IcmpKind::NetworkUnreachable => io::ErrorKind::NetworkUnreachable,
            _ => io::ErrorKind::HostUnreachable,
        },
        StreamError::Closed(CloseReason::Finished) | StreamError::Unknown => {
            io::ErrorKind::NotConnected
        }
    };
    io::Error::new(kind, error)
}
