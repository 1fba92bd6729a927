//! One connection of the server, as all protocols keep it: who it is, what it does, when to give it up.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use conn::now;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use units::Time;

use super::Shared;
use crate::counters::Held;
use crate::log::{Finish, StreamRecord};
use crate::site::RequestHead;
use crate::socket::Gauge;
use crate::stalls::{Stalls, Wait};
use crate::{Failure, Protocol};

/// One connection, as all protocols have it.
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) server: Rc<Shared>,
    pub(super) server_name: RefCell<Option<String>>,
    pub(super) requests: Cell<u64>,
    /// Bytes of bodies that were given to the library.
    pub(super) given: Cell<u64>,
    pub(super) stalled: Cell<Duration>,
    /// Responses that wait for a window.
    pub(super) stalls: Rc<Stalls>,
    /// Requests under way.
    active: Cell<usize>,
    /// Of them, those whose answer waits on purpose.
    thinking: Cell<usize>,
    /// Whether something moved for a request since the watch last looked: a clock is not read each time.
    moved: Cell<bool>,
    /// When something last moved for a request, as far as the watch knows.
    last_event: Cell<Instant>,
    ending: Cell<bool>,
    ended: Notify,
}

impl Link {
    pub(super) fn new(id: u64, server: Rc<Shared>) -> Self {
        let stalls = Stalls::new(server.bottleneck.clone());
        Link {
            id,
            server,
            server_name: RefCell::default(),
            requests: Cell::new(0),
            given: Cell::new(0),
            stalled: Cell::new(Duration::ZERO),
            stalls,
            active: Cell::new(0),
            thinking: Cell::new(0),
            moved: Cell::new(false),
            last_event: Cell::new(Instant::now()),
            ending: Cell::new(false),
            ended: Notify::new(),
        }
    }

    /// Something moved for a request.
    pub(super) fn touch(&self) {
        self.moved.set(true);
    }

    /// Resolves when the connection is to end in good order: the server stops, or it was idle.
    pub(super) async fn ending(&self) {
        let local = async {
            while !self.ending.get() {
                self.ended.notified().await;
            }
        };
        tokio::select! {
            () = local => {}
            () = self.server.stopping() => {}
        }
    }

    /// Watches over time; resolves when the connection is to be given up, at most [`ServerTimeouts::head`]
    /// late. `head` says when the first byte of an unfinished head came.
    ///
    /// [`ServerTimeouts::head`]: crate::ServerTimeouts::head
    pub(super) async fn watch(&self, head: impl Fn() -> Option<Instant>) -> Failure {
        let timeouts = &self.server.timeouts;
        loop {
            if self.moved.take() || self.thinking.get() > 0 {
                self.last_event.set(Instant::now());
            }
            let last = self.last_event.get();
            let timed_out = |during, after| Failure::TimedOut { during, after };
            let (deadline, failure) = match (self.active.get(), head()) {
                (0, Some(first)) => {
                    (first + timeouts.head, timed_out("reading a request's head", timeouts.head))
                }
                (0, None) if self.ending.get() => {
                    (last + timeouts.idle + LINGER, timed_out("ending the connection", LINGER))
                }
                (0, None) => {
                    if Instant::now() >= last + timeouts.idle {
                        self.ending.set(true);
                        self.ended.notify_waiters();
                        continue;
                    }
                    // A first byte makes the deadline an earlier one.
                    sleep_until((last + timeouts.idle).min(Instant::now() + timeouts.head)).await;
                    continue;
                }
                _ if self.thinking.get() > 0 => {
                    sleep_until(last + timeouts.stall).await;
                    continue;
                }
                _ => (last + timeouts.stall, timed_out("serving a request", timeouts.stall)),
            };
            if Instant::now() >= deadline {
                return failure;
            }
            sleep_until(deadline.min(Instant::now() + timeouts.head)).await;
        }
    }

    /// When the first byte of a head came, where a head is all that can come.
    pub(super) fn head_began(&self, gauge: &Gauge) -> Option<Instant> {
        if self.active.get() == 0 { gauge.first_read() } else { None }
    }
}

/// How long an idle connection may take to end.
const LINGER: Duration = Duration::from_secs(5);

/// A request under way: its record, its place in the counters. Dropped, it is over.
pub(super) struct Responding {
    pub(super) link: Rc<Link>,
    record: Option<Box<StreamRecord>>,
    _held: Held,
    pushed: bool,
    thinking: bool,
    wait: Wait,
    blocked_from: Option<Time>,
}

impl Responding {
    /// Begins with a request whose head is there.
    pub(super) fn new(link: &Rc<Link>, stream: u64, request: &RequestHead<'_>) -> Self {
        let record = link.server.log.is_on().then(|| {
            let (asked, urgency) =
                ((request.authority(), request.path()), request.priority().urgency);
            Box::new(StreamRecord::new(link.id, stream, asked, urgency, now()))
        });
        link.requests.set(link.requests.get() + 1);
        Responding::begin(link, record, link.server.counters.request())
    }

    /// Begins with a promise, of the request for this authority and path.
    pub(super) fn pushed(link: &Rc<Link>, stream: u64, asked: (&str, &str), urgency: u8) -> Self {
        let record = link.server.log.is_on().then(|| {
            let record = StreamRecord::new(link.id, stream, asked, urgency, now());
            Box::new(StreamRecord { pushed: true, ..record })
        });
        let mut responding = Responding::begin(link, record, link.server.counters.promise());
        responding.pushed = true;
        responding
    }

    fn begin(link: &Rc<Link>, record: Option<Box<StreamRecord>>, held: Held) -> Self {
        link.active.set(link.active.get() + 1);
        link.touch();
        Responding {
            link: Rc::clone(link),
            record,
            _held: held,
            pushed: false,
            thinking: false,
            wait: Wait::new(&link.stalls),
            blocked_from: None,
        }
    }

    /// A piece of the request's body was read.
    pub(super) fn received(&mut self, bytes: usize) {
        self.link.touch();
        self.link.server.counters.received(bytes as u64);
        if let Some(record) = &mut self.record {
            record.received += bytes as u64;
        }
    }

    /// The request's body was read to its end.
    pub(super) fn uploaded(&mut self) {
        if let Some(record) = &mut self.record {
            record.uploaded = Some(now());
        }
    }

    /// The answer waits, or no longer.
    pub(super) fn think(&mut self, thinking: bool) {
        if self.thinking != thinking {
            self.thinking = thinking;
            let count = self.link.thinking.get();
            self.link.thinking.set(if thinking { count + 1 } else { count - 1 });
            self.link.touch();
        }
    }

    /// The response's head was given to the library.
    pub(super) fn answered(&mut self, status: u16, length: u64) {
        self.link.touch();
        if let Some(record) = &mut self.record {
            record.status = status;
            record.length = length;
            record.answered = Some(now());
        }
        if length == 0 {
            self.finish(Finish::Complete);
        }
    }

    /// A piece of the body was given to the library, `last` or not.
    pub(super) fn gave(&mut self, bytes: usize, last: bool) {
        self.link.touch();
        self.link.given.set(self.link.given.get() + bytes as u64);
        self.link.server.counters.sent(bytes as u64);
        if self.pushed {
            self.link.server.counters.pushed(bytes as u64);
        }
        if let Some(record) = &mut self.record {
            record.sent += bytes as u64;
            if record.first_data.is_none() {
                record.first_data = Some(now());
            }
        }
        if last {
            self.finish(Finish::Complete);
        }
    }

    /// The stream has data, its window is shut, and the transport would take more; or no longer.
    pub(super) fn stalled(&mut self, is_stalled: bool) {
        let Some(stall) = self.wait.set(is_stalled, now) else { return };
        let stalled = &self.link.stalled;
        stalled.set(stalled.get() + stall.to.saturating_since(stall.from));
        if let Some(record) = &mut self.record {
            record.stalled.note(stall);
        }
    }

    /// The stream has data, and the transport takes nothing; or no longer.
    pub(super) fn blocked(&mut self, is_blocked: bool) {
        if is_blocked == self.blocked_from.is_some() {
            return;
        }
        let time = now();
        match self.blocked_from.take() {
            None => self.blocked_from = Some(time),
            Some(from) => {
                if let Some(record) = &mut self.record {
                    record.transport_blocked += time.saturating_since(from);
                }
            }
        }
    }

    /// What seemed to be a stall was none.
    pub(super) fn forget_stall(&mut self) {
        self.wait.forget();
    }

    /// What seemed to be blocked by the transport was not.
    pub(super) fn forget_block(&mut self) {
        self.blocked_from = None;
    }

    /// How it ended. The last word counts.
    pub(super) fn finish(&mut self, finish: Finish) {
        if let Some(record) = &mut self.record {
            record.finished = (finish == Finish::Complete).then(now);
            record.finish = finish;
        }
    }
}

impl Drop for Responding {
    fn drop(&mut self) {
        self.stalled(false);
        self.blocked(false);
        self.think(false);
        self.link.active.set(self.link.active.get() - 1);
        self.link.touch();
        if let Some(record) = self.record.take() {
            self.link.server.log.push_stream(*record);
        }
    }
}

/// A request's body that takes longer than the plan allows.
pub(super) fn too_slow(after: Duration) -> Failure {
    Failure::TimedOut { during: "reading a request's body", after }
}

/// An error of hyper on a server's connection.
pub(super) fn hyper_failure(error: &hyper::Error, protocol: Protocol) -> Failure {
    Failure::from_hyper(error, protocol, "serving")
}
