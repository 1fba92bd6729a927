//! SPDY/3 and 3.1: one task carries the session, exchanges ask it and take what comes for them.

mod push;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use ::spdy::{
    CallError, Event, GoAwayStatus, Headers, Priority, ResetReason, RstStatus, Session, SettingId,
    StreamId,
};
use bytes::Bytes;
use conn::now;
use http::response::Parts;

use super::exchange::{Sink, What};
use super::plan::{ConnectPlan, Request};
use super::push::PushLimits;
use super::state::{Ended, State};
use crate::body::Body;
use crate::socket::Socket;
use crate::spdy::{Carrier, Progress, client_session, failure, head, next_stall, room};
use crate::stalls::{Stalls, Wait};
use crate::stream::Stream;
use crate::task::Task;
use crate::{Failure, Protocol};
use push::{Promise, Pushed};

const DURING: &str = "waiting for the response";

#[derive(Clone)]
pub(super) struct Connection(Rc<Inner>);

struct Inner {
    core: Rc<RefCell<Core>>,
    _driver: Task,
    /// Most time for an exchange.
    limit: Duration,
}

/// What the connection's task and the exchanges share.
struct Core {
    session: Session,
    protocol: Protocol,
    /// What is taken of what is pushed.
    push: Option<PushLimits>,
    asked: BTreeMap<StreamId, Asked>,
    /// Streams that the server allows.
    max_streams: usize,
    stalls: Rc<Stalls>,
    /// Wakes the connection's task.
    driver: Waker,
}

/// A request on its way.
struct Asked {
    /// What came and the exchange has not taken; the windows bound it.
    inbox: VecDeque<Incoming>,
    /// The last word is in the inbox.
    is_over: bool,
    waker: Waker,
    upload: Body,
    /// Bytes of it that were written, and those that the exchange knows of.
    sent: u64,
    said: u64,
    /// The session says that the stream's window, or its own, is shut.
    is_shut: bool,
    wait: Wait,
    sink: Sink,
    /// How many streams were pushed with it.
    pushes: u32,
    /// It is pushed itself.
    pushed: Option<Pushed>,
}

/// What came for an exchange.
enum Incoming {
    /// So many bytes of the request's body were written, in all.
    Uploaded(u64),
    Pushed(Promise),
    Head(Box<Parts>),
    Data(Bytes),
    End,
    Failed(Failure),
}

/// Begins SPDY on a stream: SETTINGS go out with the first turn of the connection's task.
pub(super) fn connect(
    stream: Stream,
    socket: Socket,
    protocol: Protocol,
    plan: &ConnectPlan,
    state: &Rc<State>,
) -> Result<Connection, Failure> {
    let stalls = Stalls::new(plan.bottleneck.clone());
    let core = Rc::new(RefCell::new(Core {
        session: client_session(protocol, &plan.settings, plan.push)?,
        protocol,
        push: plan.push,
        asked: BTreeMap::new(),
        max_streams: usize::MAX,
        stalls: Rc::clone(&stalls),
        driver: Waker::noop().clone(),
    }));
    let (state, shared) = (Rc::clone(state), Rc::clone(&core));
    let mut carrier = Carrier::new(stream);
    let driver = Task::spawn(async move {
        let session = poll_fn(|cx| shared.borrow_mut().poll(cx, &mut carrier, &socket, &state));
        let ended = stalls.watching(session, || socket.unsent_until()).await;
        let failure = match &ended {
            Ended::Failed(failure) => failure.clone(),
            _ => Failure::Broken { during: DURING, detail: "the peer closed it".to_owned() },
        };
        state.end(ended);
        shared.borrow_mut().fail(&failure);
    });
    let limit = plan.timeouts.exchange;
    Ok(Connection(Rc::new(Inner { core, _driver: driver, limit })))
}

impl Connection {
    pub(super) fn max_concurrent(&self) -> usize {
        self.0.core.borrow().max_streams
    }

    pub(super) async fn exchange(
        &self,
        state: &State,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        let (parts, ()) = request.head(true)?.into_parts();
        let headers = head::of_request(&parts, request.priority)?;
        let _place = state.enter(|| self.max_concurrent()).await?;
        let ask = self.open(&headers, request, sink)?;
        sink.say(What::Sent).await;
        loop {
            match ask.next().await {
                Incoming::Uploaded(bytes) => sink.say(What::Uploaded(bytes)).await,
                Incoming::Pushed(promise) => {
                    let push = self.adopt(promise, sink);
                    sink.say(What::Pushed(Box::new(push))).await;
                }
                Incoming::Head(parts) => sink.head(*parts).await,
                Incoming::Data(data) => {
                    sink.data(&data).await;
                    // Windows open again as fast as the caller takes the events.
                    ask.consume(data.len());
                }
                Incoming::End => return Ok(()),
                Incoming::Failed(failure) => return Err(failure),
            }
        }
    }

    fn open(&self, headers: &Headers, request: &Request, sink: &Sink) -> Result<Ask, Failure> {
        let core = &mut *self.0.core.borrow_mut();
        let urgency = request.priority.unwrap_or_default().urgency;
        let priority = Priority::new(urgency).unwrap_or(Priority::LOWEST);
        let stream = core.session.open(headers, priority, request.upload == 0);
        let stream = stream.map_err(|error| match error {
            CallError::TooManyStreams(_) | CallError::Full => Failure::Busy,
            CallError::GoingAway | CallError::Over => {
                Failure::Broken { during: "asking", detail: error.to_string() }
            }
            error => Failure::Plan(format!("the request: {error}")),
        })?;
        core.asked.insert(stream, Asked::new(request.upload, sink, &core.stalls));
        core.driver.wake_by_ref();
        Ok(Ask { core: Rc::clone(&self.0.core), stream })
    }
}

/// A stream of an exchange. Dropped before its end, it is reset.
struct Ask {
    core: Rc<RefCell<Core>>,
    stream: StreamId,
}

impl Ask {
    async fn next(&self) -> Incoming {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Incoming> {
        let Core { session, asked, driver, .. } = &mut *self.core.borrow_mut();
        let Some(asked) = asked.get_mut(&self.stream) else { return Poll::Pending };
        if asked.sent > asked.said {
            asked.said = asked.sent;
            return Poll::Ready(Incoming::Uploaded(asked.sent));
        }
        if let Some(incoming) = asked.inbox.pop_front() {
            return Poll::Ready(incoming);
        }
        if asked.queue(self.stream, session) {
            driver.wake_by_ref();
        }
        asked.waker.clone_from(cx.waker());
        Poll::Pending
    }

    fn consume(&self, bytes: usize) {
        let core = &mut *self.core.borrow_mut();
        core.session.consume(self.stream, bytes);
        if core.session.wants_write() {
            core.driver.wake_by_ref();
        }
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        let core = &mut *self.core.borrow_mut();
        core.forget(self.stream);
        let _ = core.session.reset(self.stream, RstStatus::CANCEL);
        if core.session.wants_write() {
            core.driver.wake_by_ref();
        }
    }
}

impl Asked {
    fn new(upload: u64, sink: &Sink, stalls: &Rc<Stalls>) -> Asked {
        Asked {
            inbox: VecDeque::new(),
            is_over: false,
            waker: Waker::noop().clone(),
            upload: Body::new(upload),
            sent: 0,
            said: 0,
            is_shut: false,
            wait: Wait::new(stalls),
            sink: sink.clone(),
            pushes: 0,
            pushed: None,
        }
    }

    /// Queues what there is room for. Whether it did.
    fn queue(&mut self, stream: StreamId, session: &mut Session) -> bool {
        let mut room = if self.upload.remaining() > 0 { room(session, stream) } else { 0 };
        let has_room = room > 0;
        while room > 0 && self.upload.remaining() > 0 {
            let mut piece = self.upload.next(room);
            room -= piece.len();
            // All of it is taken, since there is room; a stream that is gone says so by its event.
            let _ = session.write(stream, &mut piece, self.upload.remaining() == 0);
        }
        has_room
    }

    fn push(&mut self, incoming: Incoming) {
        if !self.is_over {
            self.is_over = matches!(incoming, Incoming::End | Incoming::Failed(_));
            self.inbox.push_back(incoming);
            self.waker.wake_by_ref();
        }
    }

    /// The body waits for a window, and the transport would take more; or no longer.
    fn stalled(&mut self, is_stalled: bool) {
        if let Some(stall) = self.wait.set(is_stalled, now) {
            self.sink.stalled(stall);
        }
    }
}

impl Core {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        carrier: &mut Carrier<Stream>,
        socket: &Socket,
        state: &State,
    ) -> Poll<Ended> {
        self.driver.clone_from(cx.waker());
        loop {
            let mut moved = false;
            match carrier.poll_read(cx, &mut self.session) {
                Poll::Ready(Ok(Progress::Moved)) => moved = true,
                Poll::Ready(Ok(Progress::Nothing)) => return Poll::Ready(self.left(None)),
                Poll::Ready(Err(error)) => return Poll::Ready(self.left(Some(&error))),
                Poll::Pending => {}
            }
            self.take_events(state);
            match carrier.poll_write(cx, &mut self.session) {
                Poll::Ready(Ok(wrote)) => moved |= wrote == Progress::Moved,
                Poll::Ready(Err(error)) => return Poll::Ready(self.left(Some(&error))),
                Poll::Pending => {}
            }
            self.account(socket.gauge().is_blocked());
            if self.session.is_over() {
                // A peer that closed first has no use for our close.
                let _ = ready!(carrier.poll_close(cx));
                return Poll::Ready(self.end().unwrap_or(Ended::GoAway));
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// How the session failed, if it did.
    fn end(&self) -> Option<Ended> {
        let error = self.session.failed()?;
        Some(Ended::Failed(failure(self.protocol, error)))
    }

    /// The server closed the connection, or it broke.
    fn left(&self, error: Option<&io::Error>) -> Ended {
        let is_idle = self.asked.values().all(|asked| asked.is_over);
        let closed = error.is_none_or(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        match (self.end(), error) {
            (Some(ended), _) => ended,
            (None, _) if closed && is_idle => Ended::Closed,
            (None, Some(error)) => Ended::Failed(Failure::under_way("spdy", DURING, error)),
            (None, None) => {
                let detail = "the peer closed it".to_owned();
                Ended::Failed(Failure::Broken { during: DURING, detail })
            }
        }
    }

    fn take_events(&mut self, state: &State) {
        while let Some(event) = self.session.poll_event(now()) {
            match event {
                Event::Reply { stream, headers, fin } => self.reply(stream, &headers, fin),
                Event::Data { stream, data, fin } => match self.asked.get_mut(&stream) {
                    Some(asked) => {
                        if !asked.admits(data.len()) {
                            asked.is_too_large();
                            let _ = self.session.reset(stream, RstStatus::CANCEL);
                            continue;
                        }
                        if !data.is_empty() {
                            asked.push(Incoming::Data(data));
                        }
                        if fin {
                            asked.push(Incoming::End);
                        }
                    }
                    None => self.session.consume(stream, data.len()),
                },
                Event::Headers { stream, headers, fin } => {
                    if let Some(asked) = self.asked.get_mut(&stream) {
                        asked.more_headers(&headers);
                        if fin {
                            asked.push(Incoming::End);
                        }
                    }
                }
                Event::Opened { stream, associated, headers, fin, .. } => {
                    self.promised(stream, associated, &headers, fin);
                }
                Event::Reset { stream, reason } => self.was_reset(stream, reason),
                Event::Settings { settings, .. } => {
                    let limit = SettingId::MAX_CONCURRENT_STREAMS;
                    if let Some(limit) = settings.iter().find(|setting| setting.id == limit) {
                        self.max_streams = usize::try_from(limit.value).unwrap_or(usize::MAX);
                        state.limit_changed();
                    }
                }
                Event::GoAway { status, .. } => state.end(match status {
                    GoAwayStatus::OK => Ended::GoAway,
                    status => {
                        let detail = format!("the peer sent GOAWAY ({status})");
                        Ended::Failed(Failure::Broken { during: DURING, detail })
                    }
                }),
                Event::Failed(error) => {
                    let failure = failure(self.protocol, error);
                    self.fail(&failure);
                    state.end(Ended::Failed(failure));
                }
                Event::Writable { .. } | Event::Pong { .. } => {}
            }
        }
        self.take_changes();
    }

    fn reply(&mut self, stream: StreamId, headers: &Headers, fin: bool) {
        let Some(asked) = self.asked.get_mut(&stream) else { return };
        let Some(parts) = head::response(headers) else {
            let _ = self.session.reset(stream, RstStatus::PROTOCOL_ERROR);
            let detail = "the head of the response is not HTTP".to_owned();
            let protocol = self.protocol;
            asked.push(Incoming::Failed(Failure::Http { protocol, detail, peer: true }));
            return;
        };
        asked.push(Incoming::Head(Box::new(parts)));
        if fin {
            asked.push(Incoming::End);
        }
    }

    fn was_reset(&mut self, stream: StreamId, reason: ResetReason) {
        let Some(asked) = self.asked.get_mut(&stream) else { return };
        let reset =
            |status: RstStatus, peer| Failure::StreamReset { code: status.to_string(), peer };
        asked.push(Incoming::Failed(match reason {
            ResetReason::Peer(status) => reset(status, true),
            ResetReason::Misused(status) => reset(status, false),
            ResetReason::WithAssociated => Failure::Broken {
                during: DURING,
                detail: "the request that it was pushed with was cancelled".to_owned(),
            },
            ResetReason::Unprocessed => Failure::Broken {
                during: DURING,
                detail: "the peer sent GOAWAY before it took the request".to_owned(),
            },
        }));
    }

    /// Nothing more comes.
    fn fail(&mut self, failure: &Failure) {
        for asked in self.asked.values_mut() {
            asked.push(Incoming::Failed(failure.clone()));
        }
    }

    /// Says of each request's body how much of it went out, and whether it waits for a window.
    fn account(&mut self, is_blocked: bool) {
        self.take_changes();
        if self.session.failed().is_some() {
            // Its queues are gone, though nothing of them was written.
            return;
        }
        for (stream, asked) in &mut self.asked {
            // The same of a stream that is over.
            if asked.is_over || asked.sent == asked.upload.given() && !asked.is_shut {
                continue;
            }
            let queued = self.session.queued(*stream) as u64;
            let written = asked.upload.given().saturating_sub(queued);
            if written > asked.sent {
                asked.sent = written;
                asked.waker.wake_by_ref();
            }
            asked.stalled(asked.is_shut && !is_blocked);
        }
    }

    fn take_changes(&mut self) {
        while let Some((id, is_shut)) = next_stall(&mut self.session) {
            if let Some(asked) = self.asked.get_mut(&id) {
                asked.is_shut = is_shut;
                if !is_shut {
                    asked.stalled(false);
                }
            }
        }
    }
}
