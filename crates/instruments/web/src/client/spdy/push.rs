//! Streams that the server pushes with a response (draft 3.1 §3.3.2).

use std::rc::Rc;

use ::spdy::{Headers, RstStatus, StreamId};

use super::{Ask, Asked, Connection, Core, Incoming};
use crate::Failure;
use crate::client::exchange::Sink;
use crate::client::push::{About, Push, too_large};
use crate::spdy::head;

/// A stream that the server opened with a response.
pub(super) struct Promise {
    pub(super) stream: StreamId,
    authority: String,
    path: String,
}

/// What is left to a pushed body.
pub(super) struct Pushed {
    /// Its head is to come yet, in a HEADERS frame.
    awaits_head: bool,
    /// Bytes that are taken yet.
    left: u64,
}

impl Core {
    /// The server opened a stream: it is taken for the exchange that it belongs to, or reset.
    pub(super) fn promised(
        &mut self,
        stream: StreamId,
        associated: Option<StreamId>,
        headers: &Headers,
        fin: bool,
    ) {
        if let Err(status) = self.promise(stream, associated, headers, fin) {
            let _ = self.session.reset(stream, status);
        }
    }

    fn promise(
        &mut self,
        stream: StreamId,
        associated: Option<StreamId>,
        headers: &Headers,
        fin: bool,
    ) -> Result<(), RstStatus> {
        let limits = self.push.ok_or(RstStatus::REFUSED_STREAM)?;
        let (authority, path) = head::promised(headers).ok_or(RstStatus::PROTOCOL_ERROR)?;
        // §3.3.1: response headers may come with the promise, or later.
        let response = match headers.get(":status") {
            Some(_) => Some(head::response(headers).ok_or(RstStatus::PROTOCOL_ERROR)?),
            None => None,
        };
        let parent = associated.and_then(|id| self.asked.get_mut(&id));
        let parent = parent.filter(|parent| !parent.is_over && parent.pushes < limits.streams);
        let parent = parent.ok_or(RstStatus::REFUSED_STREAM)?;
        parent.pushes += 1;
        let mut asked = Asked::new(0, &parent.sink, &self.stalls);
        asked.pushed = Some(Pushed { awaits_head: response.is_none(), left: limits.bytes });
        parent.push(Incoming::Pushed(Promise { stream, authority, path }));
        if let Some(parts) = response {
            asked.push(Incoming::Head(Box::new(parts)));
        }
        if fin {
            asked.push(Incoming::End);
        }
        self.asked.insert(stream, asked);
        Ok(())
    }

    /// Forgets an exchange, and what was pushed with it and nobody took.
    pub(super) fn forget(&mut self, stream: StreamId) {
        let Some(mut asked) = self.asked.remove(&stream) else { return };
        asked.stalled(false);
        for incoming in asked.inbox {
            if let Incoming::Pushed(Promise { stream, .. }) = incoming {
                self.asked.remove(&stream);
                let _ = self.session.reset(stream, RstStatus::CANCEL);
            }
        }
    }
}

impl Asked {
    /// More headers: the head of a pushed response, if that has not come yet.
    pub(super) fn more_headers(&mut self, headers: &Headers) {
        let Some(pushed) = self.pushed.as_mut().filter(|pushed| pushed.awaits_head) else { return };
        if let Some(parts) = head::response(headers) {
            pushed.awaits_head = false;
            self.push(Incoming::Head(Box::new(parts)));
        }
    }

    /// Whether so many bytes more are taken.
    pub(super) fn admits(&mut self, bytes: usize) -> bool {
        let Some(pushed) = &mut self.pushed else { return true };
        let left = pushed.left.checked_sub(bytes as u64);
        pushed.left = left.unwrap_or(0);
        left.is_some()
    }

    /// More came than is taken.
    pub(super) fn is_too_large(&mut self) {
        self.push(Incoming::Failed(too_large()));
    }
}

impl Connection {
    /// Takes what is pushed.
    pub(super) fn adopt(&self, promise: Promise, sink: &Sink) -> Push {
        let connection = self.clone();
        let ask = Ask { core: Rc::clone(&self.0.core), stream: promise.stream };
        let protocol = self.0.core.borrow().protocol;
        let about = About { protocol, limit: self.0.limit, digest: sink.is_digesting() };
        Push::start((promise.authority, promise.path), &about, move |sink| async move {
            let result = receive(&ask, &sink).await;
            drop(ask);
            // The connection lives as long as what is pushed on it.
            drop(connection);
            result
        })
    }
}

async fn receive(ask: &Ask, sink: &Sink) -> Result<(), Failure> {
    loop {
        match ask.next().await {
            Incoming::Head(parts) => sink.head(*parts).await,
            Incoming::Data(data) => {
                sink.data(&data).await;
                ask.consume(data.len());
            }
            Incoming::End => return Ok(()),
            Incoming::Failed(failure) => return Err(failure),
            // Nothing is sent on such a stream, or pushed with it.
            Incoming::Uploaded(_) | Incoming::Pushed(_) => {}
        }
    }
}
