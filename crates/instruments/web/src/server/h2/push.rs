//! PUSH_PROMISE (RFC 9113 §8.4), as the server sends it.

use http::{Method, Request};

use super::{Stage, Stream};
use crate::server::date;
use crate::server::link::Responding;
use crate::server::push::Promised;

impl Stream {
    /// Promises what is to be pushed, before anything that refers to it (RFC 9113 §8.4.1). A client that
    /// takes none has said so in its SETTINGS.
    pub(super) fn promise(&mut self) {
        let Some(respond) = &mut self.respond else { return };
        for promised in std::mem::take(&mut self.promises) {
            let uri = promised.parts.uri.clone();
            let request = Request::from_parts(promised.parts, ());
            let Ok(mut pushed) = respond.push_request(request) else { return };
            let link = &self.responding.link;
            let id = pushed.stream_id().as_u32().into();
            let mut responding =
                Responding::pushed(link, id, Promised::asked(&uri), promised.urgency);
            let body = promised.answer.body(&Method::GET);
            let length = body.remaining();
            let status = promised.answer.status.as_u16();
            let head = promised.answer.head(date::now());
            let Ok(send) = pushed.send_response(head, length == 0) else { return };
            responding.answered(status, length);
            if length > 0 {
                self.pushed.push(Stream {
                    respond: None,
                    stage: Stage::Body(send, body),
                    urgency: promised.urgency,
                    turn: 0,
                    is_shut: false,
                    responding,
                    promises: Vec::new(),
                    pushed: Vec::new(),
                });
            }
        }
    }
}
