//! HTTP/2 by h2.

mod push;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use ::h2::client::{Builder, ResponseFuture, SendRequest};
use ::h2::{Reason, SendStream};
use bytes::Bytes;
use conn::now;

use super::exchange::{Sink, What};
use super::plan::{ConnectPlan, Request};
use super::push::PushLimits;
use super::state::{Ended, State};
use crate::Failure;
use crate::body::Body;
use crate::socket::{Gauge, Socket};
use crate::stalls::{Stalls, Wait};
use crate::stream::Stream;
use crate::task::Task;
use push::Promises;

/// Bytes of one DATA frame: with its header it fills a TLS record.
const PIECE: usize = 16_384 - 9;

#[derive(Clone)]
pub(super) struct Connection(Rc<Inner>);

struct Inner {
    sender: RefCell<SendRequest<Bytes>>,
    _driver: Task,
    socket: Socket,
    stalls: Rc<Stalls>,
    /// What is taken of what is pushed.
    push: Option<PushLimits>,
    /// Most time for an exchange.
    limit: Duration,
}

/// Begins HTTP/2 on a stream: the preface and SETTINGS go out.
pub(super) async fn connect(
    stream: Stream,
    socket: Socket,
    plan: &ConnectPlan,
    state: &Rc<State>,
) -> Result<Connection, Failure> {
    let (settings, push) = (&plan.settings, plan.push);
    // A server's streams are those that it pushes.
    let streams = push.map_or(settings.max_concurrent_streams, |limits| limits.streams);
    let handshake = Builder::new()
        .initial_window_size(settings.stream_window)
        .initial_connection_window_size(settings.connection_window)
        .max_concurrent_streams(streams)
        .max_frame_size(settings.max_frame)
        .max_header_list_size(settings.max_header_list)
        .header_table_size(settings.header_table)
        .enable_push(push.is_some())
        .handshake(stream);
    let (sender, connection) =
        handshake.await.map_err(|error| Failure::from_h2(&error, "beginning HTTP/2"))?;
    let stalls = Stalls::new(plan.bottleneck.clone());
    let (state, watched, watching) = (Rc::clone(state), socket.clone(), Rc::clone(&stalls));
    let driver = Task::spawn(async move {
        let ended = watching.watching(connection, || watched.unsent_until()).await;
        state.end(match ended {
            Ok(()) => Ended::Closed,
            Err(error) if error.is_go_away() && error.reason() == Some(Reason::NO_ERROR) => {
                Ended::GoAway
            }
            Err(error) => Ended::Failed(Failure::from_h2(&error, "asking")),
        });
    });
    let sender = RefCell::new(sender);
    let limit = plan.timeouts.exchange;
    Ok(Connection(Rc::new(Inner { sender, _driver: driver, socket, stalls, push, limit })))
}

impl Connection {
    pub(super) fn max_concurrent(&self) -> usize {
        self.0.sender.borrow().current_max_send_streams()
    }

    pub(super) async fn exchange(
        &self,
        state: &State,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        let head = request.head(true)?;
        let _place = state.enter(|| self.max_concurrent()).await?;
        let is_bare = request.upload == 0;
        let (mut response, stream) = {
            let mut sender = self.0.sender.borrow_mut();
            // A GOAWAY that came is found here.
            if let Some(Err(error)) = poll_once(&mut sender) {
                return Err(refused(&error));
            }
            sender.send_request(head, is_bare).map_err(|error| refused(&error))?
        };
        sink.say(What::Sent).await;
        let promises = Promises::new(self, &mut response, sink);
        let mut reading = pin!(read(response, promises, sink));
        if is_bare {
            return reading.await;
        }
        let wait = Wait::new(&self.0.stalls);
        let mut upload = pin!(send(stream, request.upload, self.0.socket.gauge(), wait, sink));
        tokio::select! {
            biased;
            result = &mut reading => return result,
            result = &mut upload => {
                // What made the upload fail is the response's to say.
                drop(result);
            }
        }
        reading.await
    }
}

fn refused(error: &::h2::Error) -> Failure {
    Failure::from_h2(error, "asking")
}

fn poll_once(sender: &mut SendRequest<Bytes>) -> Option<Result<(), ::h2::Error>> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match sender.poll_ready(&mut context) {
        std::task::Poll::Ready(result) => Some(result),
        std::task::Poll::Pending => None,
    }
}

/// Sends the request's body as the windows allow.
async fn send(
    mut stream: SendStream<Bytes>,
    length: u64,
    gauge: &Gauge,
    mut wait: Wait,
    sink: &Sink,
) -> Result<(), ::h2::Error> {
    let mut body = Body::new(length);
    while body.remaining() > 0 {
        let wanted = usize::try_from(body.remaining()).unwrap_or(usize::MAX).min(PIECE);
        stream.reserve_capacity(wanted);
        if stream.capacity() == 0 {
            // h2 writes what it has before the window counts as shut.
            tokio::task::yield_now().await;
            if stream.capacity() == 0 && !gauge.is_blocked() {
                wait.begin(now);
            }
        }
        let window = poll_fn(|cx| stream.poll_capacity(cx)).await;
        if gauge.is_blocked() {
            wait.forget();
        }
        if let Some(stall) = wait.end(now) {
            sink.stalled(stall);
        }
        let window = match window {
            Some(window) => window?.min(wanted),
            None => break,
        };
        stream.send_data(body.next(window), body.remaining() == 0)?;
        sink.say(What::Uploaded(length - body.remaining())).await;
    }
    Ok(())
}

/// Reads the response. Windows open again as fast as the caller takes the events.
async fn read(
    mut response: ResponseFuture,
    mut promises: Promises,
    sink: &Sink,
) -> Result<(), Failure> {
    let during = "waiting for the response";
    // Promises come before what refers to them, and are said before it.
    let response = loop {
        tokio::select! {
            biased;
            push = promises.next() => sink.say(What::Pushed(Box::new(push))).await,
            response = &mut response => break response,
        }
    };
    let response = response.map_err(|error| Failure::from_h2(&error, during))?;
    let (parts, mut body) = response.into_parts();
    sink.head(parts).await;
    loop {
        let data = tokio::select! {
            biased;
            push = promises.next() => {
                sink.say(What::Pushed(Box::new(push))).await;
                continue;
            }
            data = body.data() => data,
        };
        let Some(data) = data else { return Ok(()) };
        let data = data.map_err(|error| Failure::from_h2(&error, "reading the response's body"))?;
        sink.data(&data).await;
        // It fails only for more than was received.
        let _ = body.flow_control().release_capacity(data.len());
    }
}
