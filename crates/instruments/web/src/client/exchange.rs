//! A request and its response, as events with times.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use conn::now;
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::timeout;
use units::Time;

use super::plan::Request;
use super::push::Push;
use crate::task::Task;
use crate::tcp_stalls::TcpStalls;
use crate::{Failure, Protocol, Stall, Stalled, TcpStall};

/// Events that wait for the caller; with more, the exchange itself waits, and its windows shut.
const WAITING_EVENTS: usize = 16;

/// What happened, and when by CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Event {
    /// The time of it, by the clock of who saw it.
    pub at: Time,
    /// The step of the exchange.
    pub what: What,
}

/// What can happen to an exchange: `Sent` first, `End` or `Failed` last.
#[derive(Debug)]
pub enum What {
    /// The request's head was given to the connection. Until then it waited for a free stream.
    Sent,
    /// So many bytes of the request's body are with the connection, in all.
    Uploaded(u64),
    /// The server pushes another response with this one; what refers to it comes later. Dropped, it is
    /// cancelled.
    Pushed(Box<Push>),
    /// The response's head came.
    Head(Head),
    /// So many bytes of its body came, and were dropped.
    Data(u64),
    /// The response is whole.
    End,
    /// There is no more to come.
    Failed(Failure),
}

/// A response's head.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status code (RFC 9110 §15).
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
}

/// A request under way. Dropped, it is cancelled. A caller that does not take its events stops it: that
/// is what a client that does not read looks like.
#[derive(Debug)]
pub struct Exchange {
    events: mpsc::Receiver<Event>,
    _task: Task,
    digest: Rc<RefCell<Option<[u8; 32]>>>,
    stalled: Rc<RefCell<Stalled>>,
    tcp_stalls: Rc<TcpStalls>,
}

/// An exchange that is over, by CLOCK_MONOTONIC. A step that did not happen is `None`.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The request's head was given to the connection.
    pub sent: Option<Time>,
    /// The last byte of the request's body was.
    pub uploaded: Option<Time>,
    /// The response's head.
    pub head: Option<Head>,
    /// When it came.
    pub answered: Option<Time>,
    /// The first bytes of the body came.
    pub first_data: Option<Time>,
    /// The last event.
    pub ended: Option<Time>,
    /// Bytes of the body.
    pub body: u64,
    /// Time for which the request's body waited for a flow-control window, with a transport that would have
    /// taken it. HTTP/1.1 has none.
    pub stalled: Stalled,
    /// [`Exchange::tcp_stalls`].
    pub tcp_stalls: Option<Vec<TcpStall>>,
    /// SHA-256 of the body, if the request asks for it and the body is whole.
    pub digest: Option<[u8; 32]>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

impl Outcome {
    /// The response's status, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status.as_u16())
    }
}

impl Exchange {
    /// Runs `exchange` in a task of its own.
    pub(super) fn start<F, R>(
        protocol: Protocol,
        request: &Request,
        limit: Duration,
        exchange: F,
    ) -> Exchange
    where
        F: FnOnce(Sink) -> R + 'static,
        R: Future<Output = Result<(), Failure>> + 'static,
    {
        let (sender, events) = mpsc::channel(WAITING_EVENTS);
        let digest = Rc::new(RefCell::new(None));
        let sink = Sink {
            sender: sender.clone(),
            received: Rc::default(),
            stalled: Rc::default(),
            tcp_stalls: Rc::default(),
            hash: Rc::new(RefCell::new(request.digest.then(Sha256::new))),
        };
        let (stalled, tcp_stalls) = (Rc::clone(&sink.stalled), Rc::clone(&sink.tcp_stalls));
        let (body, expected, digested) = (sink.clone(), request.expected, digest.clone());
        let task = Task::spawn(async move {
            let result = match timeout(limit, exchange(sink)).await {
                Ok(result) => result,
                Err(_) => Err(Failure::TimedOut { during: "the exchange", after: limit }),
            };
            let received = body.received.get();
            let wrong = expected.filter(|expected| *expected != received);
            let result = match (result, wrong) {
                (Ok(()), Some(expected)) => Err(Failure::Http {
                    protocol,
                    detail: format!("a body of {received} bytes came instead of {expected}"),
                    peer: true,
                }),
                (result, _) => result,
            };
            let what = match result {
                Ok(()) => {
                    *digested.borrow_mut() = body.hash.take().map(|hash| hash.finalize().into());
                    What::End
                }
                Err(failure) => What::Failed(failure),
            };
            // Nobody may be there to hear it.
            let _ = sender.send(Event { at: now(), what }).await;
        });
        Exchange { events, _task: task, digest, stalled, tcp_stalls }
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// SHA-256 of the body, after [`What::End`], if the request asks for it.
    #[must_use]
    pub fn digest(&self) -> Option<[u8; 32]> {
        *self.digest.borrow()
    }

    /// For how long the request's body has waited for a flow-control window, of waits that are over.
    #[must_use]
    pub fn stalled(&self) -> Stalled {
        self.stalled.borrow().clone()
    }

    /// When the connection's TCP stalled on this side while a request with a body was under way, or QUIC's congestion
    /// control held it back, in order of time: the first 4096 intervals. `None` without a body, or without a
    /// [`Bottleneck`](crate::Bottleneck).
    #[must_use]
    pub fn tcp_stalls(&self) -> Option<Vec<TcpStall>> {
        self.tcp_stalls.stalls()
    }

    /// Takes all events to the end. What is pushed with it is cancelled.
    pub async fn finish(mut self) -> Outcome {
        let mut outcome = Outcome {
            sent: None,
            uploaded: None,
            head: None,
            answered: None,
            first_data: None,
            ended: None,
            body: 0,
            stalled: Stalled::default(),
            tcp_stalls: None,
            digest: None,
            failure: None,
        };
        while let Some(Event { at, what }) = self.next().await {
            outcome.ended = Some(at);
            match what {
                What::Sent => outcome.sent = Some(at),
                What::Uploaded(_) => outcome.uploaded = Some(at),
                What::Head(head) => {
                    outcome.head = Some(head);
                    outcome.answered = Some(at);
                }
                What::Data(bytes) => {
                    outcome.first_data.get_or_insert(at);
                    outcome.body += bytes;
                }
                // Nobody takes it.
                What::Pushed(push) => drop(push),
                What::End => {}
                What::Failed(failure) => outcome.failure = Some(failure),
            }
        }
        outcome.digest = self.digest();
        outcome.stalled = self.stalled();
        outcome.tcp_stalls = self.tcp_stalls();
        outcome
    }
}

/// Where a protocol says what happens.
#[derive(Clone)]
pub(super) struct Sink {
    sender: mpsc::Sender<Event>,
    received: Rc<Cell<u64>>,
    stalled: Rc<RefCell<Stalled>>,
    tcp_stalls: Rc<TcpStalls>,
    hash: Rc<RefCell<Option<Sha256>>>,
}

impl Sink {
    /// Says it, with the time of now.
    pub(super) async fn say(&self, what: What) {
        // A caller that is gone cancels the task.
        let _ = self.sender.send(Event { at: now(), what }).await;
    }

    /// Whether the response's body is hashed.
    pub(super) fn is_digesting(&self) -> bool {
        self.hash.borrow().is_some()
    }

    /// Bytes of the response's body so far.
    pub(super) fn received(&self) -> u64 {
        self.received.get()
    }

    /// The request's body waited for a window.
    pub(super) fn stalled(&self, stall: Stall) {
        self.stalled.borrow_mut().note(stall);
    }

    /// The stalls of what carries the request.
    pub(super) fn tcp_stalls(&self) -> Rc<TcpStalls> {
        Rc::clone(&self.tcp_stalls)
    }

    /// A response's head came.
    pub(super) async fn head(&self, parts: http::response::Parts) {
        let head = Head { status: parts.status, headers: parts.headers };
        self.say(What::Head(head)).await;
    }

    /// Bytes of its body came.
    pub(super) async fn data(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.received.set(self.received.get() + bytes.len() as u64);
        if let Some(hash) = self.hash.borrow_mut().as_mut() {
            hash.update(bytes);
        }
        self.say(What::Data(bytes.len() as u64)).await;
    }
}
