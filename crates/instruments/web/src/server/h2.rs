//! HTTP/2 by h2, all streams of a connection in one task.
//!
//! A turn accepts what has come, gives h2 what the windows allow, and h2 writes it all in one go: small
//! responses that were asked for together leave in one TLS record. Bodies are given in order of urgency
//! (RFC 9218 §10), round robin within one, and no more than [`ROUND`] bytes before the next look at the
//! socket, so that an urgent response waits behind little.

mod push;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use ::h2::server::{Builder, Connection, SendResponse};
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::{Method, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::date;
use super::link::{Link, Responding};
use super::push::{Promised, promises};
use crate::body::Body;
use crate::log::Finish;
use crate::site::{Answer, RequestHead};
use crate::socket::Gauge;
use crate::{Failure, Protocol};

/// Bytes of one DATA frame: with its header of 9 bytes it fills a TLS record (RFC 8446 §5.1).
const PIECE: usize = 16_384 - 9;
/// Bytes given to h2 between two looks at the socket.
const ROUND: usize = 4 * PIECE;
/// Streams that the client reset before they were answered, after which the connection is closed.
const MAX_PENDING_RESETS: usize = 100;

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    gauge: &Gauge,
    link: &Rc<Link>,
) -> Result<(), Failure> {
    let settings = &link.server.settings;
    let handshake = Builder::new()
        .initial_window_size(settings.stream_window)
        .initial_connection_window_size(settings.connection_window)
        .max_concurrent_streams(settings.max_concurrent_streams)
        .max_frame_size(settings.max_frame)
        .max_header_list_size(settings.max_header_list)
        .header_table_size(settings.header_table)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .handshake(stream);
    let (during, after) = ("reading HTTP/2's preface", link.server.timeouts.handshake);
    let h2 = match timeout(after, handshake).await {
        Ok(h2) => h2.map_err(|error| Failure::from_h2(&error, during))?,
        Err(_) => return Err(Failure::TimedOut { during, after }),
    };
    let mut driver = Driver { h2, gauge, link, streams: Vec::new(), next_turn: 0 };
    let mut ending = pin!(link.ending());
    let mut is_ending = false;
    poll_fn(|cx| {
        if !is_ending && ending.as_mut().poll(cx).is_ready() {
            is_ending = true;
            driver.h2.graceful_shutdown();
        }
        driver.poll(cx)
    })
    .await
}

/// One connection of HTTP/2.
struct Driver<'a, S> {
    h2: Connection<S, Bytes>,
    gauge: &'a Gauge,
    link: &'a Rc<Link>,
    streams: Vec<Stream>,
    next_turn: u64,
}

/// A request and its response.
struct Stream {
    /// None for what is pushed.
    respond: Option<SendResponse<Bytes>>,
    stage: Stage,
    urgency: u8,
    /// When it last had its turn; the smallest is next.
    turn: u64,
    /// Its window was found shut since the last look at the socket.
    is_shut: bool,
    responding: Responding,
    /// What is to be pushed with it.
    promises: Vec<Promised>,
    /// What was pushed with it, on its way to the connection's streams.
    pushed: Vec<Stream>,
}

enum Stage {
    /// The request's body is being read.
    Upload(RecvStream, Instant, Box<Answer>, Method),
    /// The answer waits on purpose.
    Think(Pin<Box<Sleep>>, Box<Answer>, Method),
    /// The head is due.
    Answer(Box<Answer>, Method),
    /// The body is on its way.
    Body(SendStream<Bytes>, Body),
    Done,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<'_, S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            // Reads and writes all that can be; what was given to h2 before is out, or the socket is full.
            while let Poll::Ready(accepted) = self.h2.poll_accept(cx) {
                match accepted {
                    Some(Ok((request, respond))) => self.begin(request, respond),
                    Some(Err(error)) => {
                        return Poll::Ready(Err(Failure::from_h2(&error, "serving")));
                    }
                    None => return Poll::Ready(Ok(())),
                }
            }
            let mut moved = false;
            for stream in &mut self.streams {
                moved |= stream.prepare(cx);
            }
            self.adopt();
            moved |= self.send();
            self.streams.retain(|stream| !matches!(stream.stage, Stage::Done));
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Takes what was pushed among the streams.
    fn adopt(&mut self) {
        let pushed = self.streams.iter_mut().flat_map(|stream| stream.pushed.drain(..));
        let pushed: Vec<Stream> = pushed.collect();
        for mut stream in pushed {
            stream.turn = self.next_turn;
            self.next_turn += 1;
            self.streams.push(stream);
        }
    }

    fn begin(&mut self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let (parts, body) = request.into_parts();
        let name = self.link.server_name.borrow();
        let head = RequestHead { parts: &parts, protocol: Protocol::Http2, sni: name.as_deref() };
        let id = respond.stream_id().as_u32().into();
        let responding = Responding::new(self.link, id, &head);
        let answer = self.link.server.site.answer(&head).conditional(&head);
        // Where the socket is full a promise would wait behind other data: nothing is gained by it.
        let promises = match self.gauge.is_blocked() {
            true => Vec::new(),
            false => promises(&self.link.server, &head, &answer),
        };
        let (answer, urgency) = (Box::new(answer), head.priority().urgency);
        drop(name);
        let method = parts.method;
        let stage = if body.is_end_stream() {
            after_upload(answer, method)
        } else {
            let deadline = Instant::now() + self.link.server.timeouts.upload;
            Stage::Upload(body, deadline, answer, method)
        };
        let turn = self.next_turn;
        self.next_turn += 1;
        self.streams.push(Stream {
            respond: Some(respond),
            stage,
            urgency,
            turn,
            is_shut: false,
            responding,
            promises,
            pushed: Vec::new(),
        });
    }

    /// Gives h2 up to a round's bytes. Returns whether it gave any.
    fn send(&mut self) -> bool {
        let is_blocked = self.gauge.is_blocked();
        for stream in &mut self.streams {
            stream.is_shut = false;
            if matches!(stream.stage, Stage::Body(..)) {
                stream.responding.blocked(is_blocked);
                if is_blocked {
                    stream.responding.stalled(false);
                }
            }
        }
        if is_blocked {
            return false;
        }
        let mut room = ROUND;
        while room > 0 {
            let bodies = self.streams.iter_mut();
            let bodies =
                bodies.filter(|stream| !stream.is_shut && matches!(stream.stage, Stage::Body(..)));
            let Some(next) = bodies.min_by_key(|stream| (stream.urgency, stream.turn)) else {
                break;
            };
            room = room.saturating_sub(next.give(room.min(PIECE)));
            next.turn = self.next_turn;
            self.next_turn += 1;
        }
        room < ROUND
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
    /// Takes it as far as the body. Returns whether h2 has something to write by it.
    fn prepare(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        loop {
            match self.step(cx) {
                Poll::Ready(true) => moved = true,
                Poll::Ready(false) | Poll::Pending => return moved,
            }
        }
    }

    /// One step: `true` if another may follow.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match &mut self.stage {
            Stage::Upload(body, deadline, ..) => {
                let (polled, is_late) = (body.poll_data(cx), Instant::now() >= *deadline);
                if is_late {
                    self.reset(Reason::CANCEL);
                    return Poll::Ready(true);
                }
                match ready!(polled) {
                    Some(Ok(data)) => {
                        // It fails only for more than was received.
                        let _ = body.flow_control().release_capacity(data.len());
                        self.responding.received(data.len());
                    }
                    Some(Err(error)) => self.broke(&error),
                    None => {
                        self.responding.uploaded();
                        self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
                            Stage::Upload(_, _, answer, method) => after_upload(answer, method),
                            other => other,
                        };
                    }
                }
                Poll::Ready(true)
            }
            Stage::Think(sleep, ..) => {
                self.responding.think(true);
                let reset = self.respond.as_mut().map(|respond| respond.poll_reset(cx));
                if let Some(Poll::Ready(reset)) = reset {
                    self.was_reset(reset);
                    return Poll::Ready(true);
                }
                ready!(sleep.as_mut().poll(cx));
                self.responding.think(false);
                self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
                    Stage::Think(_, answer, method) => Stage::Answer(answer, method),
                    other => other,
                };
                Poll::Ready(true)
            }
            Stage::Answer(..) => {
                if let Stage::Answer(answer, method) =
                    std::mem::replace(&mut self.stage, Stage::Done)
                {
                    self.answer(*answer, &method);
                }
                Poll::Ready(true)
            }
            Stage::Body(..) | Stage::Done => Poll::Ready(false),
        }
        // A body that is reset by the client is found out in `give`.
    }

    fn answer(&mut self, answer: Answer, method: &Method) {
        self.promise();
        let Some(respond) = &mut self.respond else { return };
        let body = answer.body(method);
        let length = body.remaining();
        let status = answer.status.as_u16();
        match respond.send_response(answer.head(date::now()), length == 0) {
            Ok(send) => {
                self.responding.answered(status, length);
                if length > 0 {
                    self.stage = Stage::Body(send, body);
                }
            }
            Err(error) => self.broke(&error),
        }
    }

    /// Gives h2 up to `limit` bytes of the body, as far as the windows allow, and returns how many.
    fn give(&mut self, limit: usize) -> usize {
        let Stage::Body(send, body) = &mut self.stage else { return 0 };
        let wanted = usize::try_from(body.remaining()).unwrap_or(usize::MAX).min(limit);
        send.reserve_capacity(wanted);
        let window = send.capacity().min(wanted);
        if window == 0 {
            // What one stream has reserved no other can use: the connection's window is not hoarded.
            send.reserve_capacity(0);
            self.is_shut = true;
            let mut nobody = Context::from_waker(std::task::Waker::noop());
            // Frames of the client wake the connection's task, so that nobody has to be told apart.
            match send.poll_reset(&mut nobody) {
                Poll::Ready(reset) => self.was_reset(reset),
                Poll::Pending => self.responding.stalled(true),
            }
            return 0;
        }
        self.responding.stalled(false);
        let piece = body.next(window);
        let (bytes, last) = (piece.len(), body.remaining() == 0);
        match send.send_data(piece, last) {
            Ok(()) => {
                self.responding.gave(bytes, last);
                if last {
                    self.stage = Stage::Done;
                }
            }
            Err(error) => self.broke(&error),
        }
        bytes
    }

    fn broke(&mut self, error: &::h2::Error) {
        match error.reason().filter(|_| error.is_reset()) {
            Some(reason) => self.responding.finish(Finish::Reset(format!("{reason:?}"))),
            None => self.responding.finish(Finish::Broken),
        }
        self.stage = Stage::Done;
    }

    fn was_reset(&mut self, reset: Result<Reason, ::h2::Error>) {
        match reset {
            Ok(reason) => {
                self.responding.finish(Finish::Reset(format!("{reason:?}")));
                self.stage = Stage::Done;
            }
            Err(error) => self.broke(&error),
        }
    }

    fn reset(&mut self, reason: Reason) {
        if let Some(respond) = &mut self.respond {
            respond.send_reset(reason);
        }
        self.responding.finish(Finish::Reset(format!("{reason:?}")));
        self.stage = Stage::Done;
    }
}
