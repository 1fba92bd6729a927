//! Responses that are pushed: sent with another before they are asked for.

use http::request::Parts;
use http::{Method, StatusCode, Uri};

use super::Shared;
use crate::Priority;
use crate::site::{Answer, Promise, RequestHead};

/// A response to push, and the request that it answers.
pub(super) struct Promised {
    pub(super) parts: Parts,
    pub(super) answer: Answer,
    pub(super) urgency: u8,
}

impl Promised {
    /// Authority and path of the request.
    pub(super) fn asked(uri: &Uri) -> (&str, &str) {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        (authority, uri.path_and_query().map_or("/", |path| path.as_str()))
    }
}

/// What is pushed with an answer: with a whole one, since a client that has what refers to it (304) is
/// likely to have it too.
pub(super) fn promises(
    server: &Shared,
    request: &RequestHead<'_>,
    answer: &Answer,
) -> Vec<Promised> {
    if answer.status != StatusCode::OK || *request.method() != Method::GET {
        return Vec::new();
    }
    let promises = answer.promises.iter();
    promises.filter_map(|promise| promised(server, request, promise)).collect()
}

/// The request is one to the same host, for which alone this server speaks (RFC 9113 §8.4).
fn promised(server: &Shared, request: &RequestHead<'_>, promise: &Promise) -> Option<Promised> {
    let uri = Uri::builder().scheme("https").authority(request.authority());
    let uri = uri.path_and_query(promise.path.as_str()).build().ok()?;
    let (mut parts, ()) = http::Request::get(uri).body(()).ok()?.into_parts();
    // Never before what refers to it.
    let urgency = promise.urgency.max(request.priority().urgency);
    parts.extensions.insert(Priority { urgency, incremental: false });
    let head = RequestHead { parts: &parts, protocol: request.protocol, sni: request.sni };
    let answer = server.site.answer(&head);
    (answer.status == StatusCode::OK).then_some(Promised { parts, answer, urgency })
}
