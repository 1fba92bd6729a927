//! SPDY/3 and 3.1, all streams of a connection in one task.
//!
//! A turn reads once, answers what has come, and gives the transport one round of frames, for which the
//! session takes the streams strictly by priority, round robin within one. DATA frames are cut then, so
//! that an urgent response waits behind one round at most.

mod push;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ::spdy::{
    Event, GoAwayStatus, Headers, Priority, ResetReason, Role, RstStatus, Session, SessionError,
    StreamId,
};
use conn::now;
use http::Method;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep};

use super::date;
use super::link::{Link, Responding};
use super::push::{Promised, promises};
use crate::body::Body;
use crate::log::Finish;
use crate::site::{Answer, RequestHead};
use crate::socket::Gauge;
use crate::spdy::{Carrier, Progress, failure, head, next_stall, room, session};
use crate::{Failure, Protocol};

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    protocol: Protocol,
    gauge: &Gauge,
    link: &Rc<Link>,
) -> Result<(), Failure> {
    let mut driver = Driver {
        carrier: Carrier::new(stream),
        session: session(Role::Server, protocol, &link.server.settings)?,
        protocol,
        gauge,
        link,
        streams: BTreeMap::new(),
        failed: None,
    };
    let mut ending = pin!(link.ending());
    let mut is_ending = false;
    poll_fn(|cx| {
        if !is_ending && ending.as_mut().poll(cx).is_ready() {
            is_ending = true;
            driver.session.go_away(GoAwayStatus::OK);
        }
        driver.poll(cx)
    })
    .await
}

/// One connection of SPDY.
struct Driver<'a, S> {
    carrier: Carrier<S>,
    session: Session,
    protocol: Protocol,
    gauge: &'a Gauge,
    link: &'a Rc<Link>,
    streams: BTreeMap<StreamId, Stream>,
    /// What ended the session; its GOAWAY may be on its way yet.
    failed: Option<SessionError>,
}

/// A request and its response.
struct Stream {
    stage: Stage,
    /// The session says that its window, or its own, is shut.
    is_shut: bool,
    responding: Responding,
    /// What is to be pushed with it.
    promises: Vec<Promised>,
}

enum Stage {
    /// The request's body is being read.
    Upload(Instant, Box<Answer>, Method),
    /// The answer waits on purpose.
    Think(Pin<Box<Sleep>>, Box<Answer>, Method),
    /// The head is due.
    Answer(Box<Answer>, Method),
    /// The body is on its way: what was queued of it, and the bytes that were written.
    Body(Body, u64),
    Done,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            let mut moved = false;
            match self.carrier.poll_read(cx, &mut self.session) {
                Poll::Ready(Ok(Progress::Moved)) => moved = true,
                Poll::Ready(Ok(Progress::Nothing)) => return Poll::Ready(self.left(None)),
                Poll::Ready(Err(error)) => return Poll::Ready(self.left(Some(&error))),
                Poll::Pending => {}
            }
            self.take_events();
            let mut pushed = Vec::new();
            for (id, stream) in &mut self.streams {
                pushed.extend(stream.prepare(*id, &mut self.session, cx));
            }
            for (id, mut stream) in pushed {
                stream.queue(id, &mut self.session);
                self.streams.insert(id, stream);
            }
            match self.carrier.poll_write(cx, &mut self.session) {
                Poll::Ready(Ok(wrote)) => moved |= wrote == Progress::Moved,
                Poll::Ready(Err(error)) => return Poll::Ready(self.left(Some(&error))),
                Poll::Pending => {}
            }
            self.account();
            if self.session.is_over() {
                // A peer that closed first has no use for our close.
                let _ = ready!(self.carrier.poll_close(cx));
                return Poll::Ready(self.end());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        match self.failed.take() {
            Some(error) => Err(failure(self.protocol, error)),
            None => Ok(()),
        }
    }

    /// The client closed the connection, or it broke.
    fn left(&mut self, error: Option<&io::Error>) -> Result<(), Failure> {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        let gone = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
        self.end()?;
        let during = "serving";
        match error {
            Some(error) if !gone.contains(&error.kind()) || !self.streams.is_empty() => {
                Err(Failure::under_way("spdy", during, error))
            }
            None if !self.streams.is_empty() => {
                Err(Failure::Broken { during, detail: "the peer closed it".to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.poll_event(now()) {
            match event {
                Event::Opened { stream, priority, headers, fin, .. } => {
                    self.begin(stream, priority, &headers, fin);
                }
                Event::Data { stream, data, fin } => {
                    self.session.consume(stream, data.len());
                    self.upload(stream, data.len(), fin);
                }
                Event::Headers { stream, fin, .. } => self.upload(stream, 0, fin),
                Event::Reset { stream, reason } => {
                    if let Some(mut stream) = self.streams.remove(&stream) {
                        stream.responding.finish(was_reset(reason));
                    }
                }
                Event::Failed(error) => {
                    self.failed = Some(error);
                    self.streams.clear();
                }
                // A client that goes away opens no more streams, and the session is over after the last.
                Event::GoAway { .. }
                | Event::Reply { .. }
                | Event::Writable { .. }
                | Event::Settings { .. }
                | Event::Pong { .. } => {}
            }
        }
        self.take_changes();
    }

    fn begin(&mut self, id: StreamId, priority: Priority, headers: &Headers, fin: bool) {
        let Some(parts) = head::request(headers, priority.value()) else {
            self.refuse(id, fin);
            return;
        };
        let (responding, answer, promises) = {
            let name = self.link.server_name.borrow();
            let head = RequestHead { parts: &parts, protocol: self.protocol, sni: name.as_deref() };
            let responding = Responding::new(self.link, id.value().into(), &head);
            let answer = self.link.server.site.answer(&head).conditional(&head);
            let promises = promises(&self.link.server, &head, &answer);
            (responding, Box::new(answer), promises)
        };
        let stage = if fin {
            after_upload(answer, parts.method)
        } else {
            let deadline = Instant::now() + self.link.server.timeouts.upload;
            Stage::Upload(deadline, answer, parts.method)
        };
        self.streams.insert(id, Stream { stage, is_shut: false, responding, promises });
    }

    /// Draft 3.1 §3.2.1: a request without all of its headers is answered by 400.
    fn refuse(&mut self, id: StreamId, fin: bool) {
        let reply = Headers::from_pairs([(":status", "400"), (":version", "HTTP/1.1")]);
        // Whatever cannot be answered is reset.
        let replied = reply.is_ok_and(|reply| self.session.reply(id, &reply, true).is_ok());
        if !replied || !fin {
            let _ = self.session.reset(id, RstStatus::CANCEL);
        }
    }

    /// A piece of a request's body came.
    fn upload(&mut self, id: StreamId, bytes: usize, fin: bool) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Stage::Upload(deadline, ..) = stream.stage else { return };
        if bytes > 0 {
            stream.responding.received(bytes);
        }
        if Instant::now() >= deadline {
            stream.reset(id, &mut self.session, RstStatus::CANCEL);
        } else if fin {
            stream.responding.uploaded();
            stream.stage = match std::mem::replace(&mut stream.stage, Stage::Done) {
                Stage::Upload(_, answer, method) => after_upload(answer, method),
                other => other,
            };
        }
    }

    /// Says of each body how much of it went out, and what it waits for.
    fn account(&mut self) {
        self.take_changes();
        if self.session.failed().is_some() {
            // Its queues are gone, though nothing of them was written.
            return;
        }
        let is_blocked = self.gauge.is_blocked();
        self.streams.retain(|id, stream| {
            stream.account(*id, &self.session, is_blocked);
            !matches!(stream.stage, Stage::Done)
        });
    }

    fn take_changes(&mut self) {
        while let Some((id, is_shut)) = next_stall(&mut self.session) {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.is_shut = is_shut;
                if !is_shut {
                    stream.responding.stalled(false);
                }
            }
        }
    }
}

fn was_reset(reason: ResetReason) -> Finish {
    match reason {
        ResetReason::Peer(status) | ResetReason::Misused(status) => {
            Finish::Reset(status.to_string())
        }
        ResetReason::Unprocessed | ResetReason::WithAssociated => Finish::Broken,
    }
}

/// What comes when the request is whole.
fn after_upload(answer: Box<Answer>, method: Method) -> Stage {
    if answer.think.is_zero() {
        Stage::Answer(answer, method)
    } else {
        Stage::Think(Box::pin(sleep(answer.think)), answer, method)
    }
}

impl Stream {
    /// Takes it as far as the body, and queues what there is room for. Returns what it pushes.
    fn prepare(
        &mut self,
        id: StreamId,
        session: &mut Session,
        cx: &mut Context<'_>,
    ) -> Vec<(StreamId, Stream)> {
        let mut pushed = Vec::new();
        if let Stage::Think(sleep, ..) = &mut self.stage {
            self.responding.think(true);
            if sleep.as_mut().poll(cx).is_pending() {
                return pushed;
            }
            self.responding.think(false);
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Think(_, answer, method) | Stage::Answer(answer, method) => {
                pushed = self.push(id, session);
                self.answer(id, session, *answer, &method);
            }
            stage => self.stage = stage,
        }
        self.queue(id, session);
        pushed
    }

    fn answer(&mut self, id: StreamId, session: &mut Session, answer: Answer, method: &Method) {
        let body = answer.body(method);
        let length = body.remaining();
        let status = answer.status.as_u16();
        let reply = head::of_response(&answer.head(date::now()));
        if reply.is_some_and(|reply| session.reply(id, &reply, length == 0).is_ok()) {
            self.responding.answered(status, length);
            if length > 0 {
                self.stage = Stage::Body(body, 0);
            }
        } else {
            self.reset(id, session, RstStatus::INTERNAL_ERROR);
        }
    }

    fn queue(&mut self, id: StreamId, session: &mut Session) {
        let Stage::Body(body, _) = &mut self.stage else { return };
        let mut room = room(session, id);
        while room > 0 && body.remaining() > 0 {
            let mut piece = body.next(room);
            room -= piece.len();
            // All of it is taken, since there is room; a stream that is gone says so by its event.
            let _ = session.write(id, &mut piece, body.remaining() == 0);
        }
    }

    fn account(&mut self, id: StreamId, session: &Session, is_blocked: bool) {
        let Stage::Body(body, sent) = &mut self.stage else { return };
        let written = body.given().saturating_sub(session.queued(id) as u64);
        let more = usize::try_from(written.saturating_sub(*sent)).unwrap_or(usize::MAX);
        *sent = written;
        let is_last = body.remaining() == 0 && written == body.given();
        if more > 0 {
            self.responding.gave(more, is_last);
        }
        if is_last {
            self.stage = Stage::Done;
            return;
        }
        self.responding.blocked(is_blocked);
        self.responding.stalled(self.is_shut && !is_blocked);
    }

    fn reset(&mut self, id: StreamId, session: &mut Session, status: RstStatus) {
        let _ = session.reset(id, status);
        self.responding.finish(Finish::Reset(status.to_string()));
        self.stage = Stage::Done;
    }
}
