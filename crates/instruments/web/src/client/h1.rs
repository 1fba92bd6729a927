//! HTTP/1.1 by hyper.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;

use http_body::Body as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;

use super::exchange::{Sink, What};
use super::plan::Request;
use super::state::{Ended, State};
use crate::body::{Body, Given, Pieces};
use crate::stream::Stream;
use crate::task::Task;
use crate::{Failure, Protocol, Settings};

/// Bytes of a request's body given to hyper at once.
const PIECE: usize = 16 * 1024;

#[derive(Clone)]
pub(super) struct Connection(Rc<Inner>);

struct Inner {
    sender: RefCell<Option<http1::SendRequest<Pieces<Rc<Progress>>>>>,
    protocol: Protocol,
    _driver: Task,
}

/// Begins HTTP/1.1 on a stream.
pub(super) async fn connect(
    stream: Stream,
    protocol: Protocol,
    settings: &Settings,
    state: &Rc<State>,
) -> Result<Connection, Failure> {
    let failed = move |error: &hyper::Error| Failure::from_hyper(error, protocol, "asking");
    let mut builder = http1::Builder::new();
    builder.max_header_size(settings.max_header_list as usize);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (sender, connection) = handshake.map_err(|error| failed(&error))?;
    let state = Rc::clone(state);
    let driver = Task::spawn(async move {
        state.end(match connection.await {
            Ok(()) => Ended::Closed,
            Err(error) => Ended::Failed(failed(&error)),
        });
    });
    let sender = RefCell::new(Some(sender));
    Ok(Connection(Rc::new(Inner { sender, protocol, _driver: driver })))
}

impl Connection {
    pub(super) async fn exchange(
        &self,
        state: &State,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        if let Some(ended) = state.ended() {
            return Err(ended.into());
        }
        let _place = state.enter(|| if state.active() == 0 { 1 } else { usize::MAX }).await?;
        // The sender is here while nothing is under way.
        let mut sender = self.0.sender.borrow_mut().take().ok_or(Failure::Busy)?;
        let result = self.run(&mut sender, request, sink).await;
        if result.is_ok() {
            self.0.sender.borrow_mut().replace(sender);
        }
        result
    }

    async fn run(
        &self,
        sender: &mut http1::SendRequest<Pieces<Rc<Progress>>>,
        request: &Request,
        sink: &Sink,
    ) -> Result<(), Failure> {
        let protocol = self.0.protocol;
        let failed = |error: hyper::Error| Failure::from_hyper(&error, protocol, "asking");
        let (head, ()) = request.head(false)?.into_parts();
        sender.ready().await.map_err(failed)?;
        let progress = Rc::new(Progress::default());
        let upload = Pieces::new(Body::new(request.upload), PIECE, Rc::clone(&progress));
        let mut response = pin!(sender.send_request(http::Request::from_parts(head, upload)));
        sink.say(What::Sent).await;
        let response = loop {
            tokio::select! {
                biased;
                () = progress.changed.notified() => {
                    sink.say(What::Uploaded(progress.sent.get())).await;
                }
                response = &mut response => break response.map_err(failed)?,
            }
        };
        let (parts, mut body) = response.into_parts();
        sink.head(parts).await;
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(|error| {
                Failure::from_hyper(&error, protocol, "reading the response's body")
            })?;
            if let Some(data) = frame.data_ref() {
                sink.data(data).await;
            }
        }
        Ok(())
    }
}

/// How much of a request's body hyper has.
#[derive(Default)]
struct Progress {
    sent: Cell<u64>,
    changed: Notify,
}

impl Given for Rc<Progress> {
    fn given(&mut self, bytes: usize, _: bool) {
        self.sent.set(self.sent.get() + bytes as u64);
        self.changed.notify_one();
    }
}
