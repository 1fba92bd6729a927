//! Streams that the server pushes with a response (draft 3.1 §3.3.1).

use ::spdy::{Priority, Session, StreamId};
use http::Method;

use super::{Stage, Stream};
use crate::server::date;
use crate::server::link::Responding;
use crate::server::push::Promised;
use crate::spdy::head;

impl Stream {
    /// Pushes what is to be pushed, before any content that refers to it (§3.3.1), with the heads of the
    /// responses in the same frames. A client that takes no stream, or no more, has said so in its SETTINGS.
    pub(super) fn push(&mut self, id: StreamId, session: &mut Session) -> Vec<(StreamId, Stream)> {
        let mut streams = Vec::new();
        for promised in std::mem::take(&mut self.promises) {
            let body = promised.answer.body(&Method::GET);
            let length = body.remaining();
            let status = promised.answer.status.as_u16();
            let response = promised.answer.head(date::now());
            let Some(block) = head::of_push(&promised.parts, &response) else { continue };
            let priority = Priority::new(promised.urgency).unwrap_or(Priority::LOWEST);
            let Ok(pushed) = session.push(id, &block, priority, length == 0) else { break };
            let link = &self.responding.link;
            let number = pushed.value().into();
            let asked = Promised::asked(&promised.parts.uri);
            let mut responding = Responding::pushed(link, number, asked, promised.urgency);
            responding.answered(status, length);
            if length > 0 {
                let stage = Stage::Body(body, 0);
                let promises = Vec::new();
                streams.push((pushed, Stream { stage, is_shut: false, responding, promises }));
            }
        }
        streams
    }
}
