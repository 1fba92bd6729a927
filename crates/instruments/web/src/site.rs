//! What a server answers.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, IF_NONE_MATCH,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::body::Body;
use crate::{Priority, Protocol};

/// What decides on answers. Called once for each request, when its head is there; a body that the client
/// sends is read and counted after that, before the answer goes out.
pub trait Site: Send + Sync {
    /// The answer to `request`.
    fn answer(&self, request: &RequestHead<'_>) -> Answer;
}

impl<F: Fn(&RequestHead<'_>) -> Answer + Send + Sync> Site for F {
    fn answer(&self, request: &RequestHead<'_>) -> Answer {
        self(request)
    }
}

/// A request's head.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) protocol: Protocol,
    pub(crate) sni: Option<&'a str>,
}

impl<'a> RequestHead<'a> {
    /// The protocol that it came by.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The request's method (RFC 9110 §9).
    #[must_use]
    pub fn method(&self) -> &'a Method {
        &self.parts.method
    }

    /// The host that it asks for, with the port if one was said: `:authority`, `:host` or `Host`.
    #[must_use]
    pub fn authority(&self) -> &'a str {
        match self.parts.uri.authority() {
            Some(authority) => authority.as_str(),
            None => self.header("host").unwrap_or_default(),
        }
    }

    /// The path with its query.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.parts.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    /// The name in the TLS handshake (SNI, RFC 6066 §3).
    #[must_use]
    pub fn server_name(&self) -> Option<&'a str> {
        self.sni
    }

    /// All header fields.
    #[must_use]
    pub fn headers(&self) -> &'a HeaderMap {
        &self.parts.headers
    }

    /// The first value of a header field, if it is visible ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Bytes that the client is going to send, if it says so.
    #[must_use]
    pub fn upload(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }

    /// The `priority` field (RFC 9218 §5); SPDY has its own in the frame.
    #[must_use]
    pub fn priority(&self) -> Priority {
        if let Some(priority) = self.parts.extensions.get::<Priority>() {
            return *priority;
        }
        self.parts
            .headers
            .get("priority")
            .map_or_else(Priority::default, |value| Priority::parse(value.as_bytes()))
    }
}

/// A response to push with another, where the protocol has that and the client takes it: SPDY (draft 3.1
/// §3.3), HTTP/2 (RFC 9113 §8.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// Its path and query, on the host that was asked.
    pub path: String,
    /// How urgent it is (RFC 9218), 0 to 7; never more than what it is pushed with.
    pub urgency: u8,
}

/// A response. Its body is made of a shared block, but for what it begins with.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code (RFC 9110 §15).
    pub status: StatusCode,
    /// Bytes of the body.
    pub length: u64,
    /// What the body begins with, at most `length` bytes of it; the rest means nothing.
    pub start: Bytes,
    /// The field `content-type`; `None` sends none.
    pub content_type: Option<HeaderValue>,
    /// `etag`. The server then answers a matching `if-none-match` by 304 (RFC 9110 §13.1.2).
    pub etag: Option<HeaderValue>,
    /// The field `cache-control`; `None` sends none.
    pub cache_control: Option<HeaderValue>,
    /// Further header fields.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long the server waits before it answers. The timer's grain is 1 ms.
    pub think: Duration,
    /// What is pushed with it, in this order, if it is a whole answer to GET. The site is asked for each.
    pub promises: Vec<Promise>,
}

impl Answer {
    /// 200 with a body of `length` bytes, at once, without cache headers.
    #[must_use]
    pub fn new(length: u64) -> Self {
        Answer {
            status: StatusCode::OK,
            length,
            start: Bytes::new(),
            content_type: None,
            etag: None,
            cache_control: None,
            headers: Vec::new(),
            think: Duration::ZERO,
            promises: Vec::new(),
        }
    }

    /// 404 without a body.
    #[must_use]
    pub fn not_found() -> Self {
        Answer { status: StatusCode::NOT_FOUND, ..Answer::new(0) }
    }

    /// A status without a body, after which HTTP/1.1's connection ends (RFC 9112 §9.6).
    pub(crate) fn closing(status: StatusCode) -> Self {
        let headers = vec![(CONNECTION, HeaderValue::from_static("close"))];
        Answer { status, headers, ..Answer::new(0) }
    }

    /// What the request's condition makes of it: 304 if the client has this version.
    pub(crate) fn conditional(mut self, request: &RequestHead<'_>) -> Self {
        let safe = matches!(*request.method(), Method::GET | Method::HEAD);
        if let Some(etag) = &self.etag
            && safe
            && self.status.is_success()
            && none_match(request.headers(), etag)
        {
            self.status = StatusCode::NOT_MODIFIED;
        }
        self
    }

    /// Bytes of the body that go out: none for HEAD, 304, 204 and 1xx (RFC 9110 §6.4.1).
    pub(crate) fn body_len(&self, method: &Method) -> u64 {
        let bare = matches!(self.status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT)
            || self.status.is_informational()
            || *method == Method::HEAD;
        if bare { 0 } else { self.length }
    }

    /// The body that goes out.
    pub(crate) fn body(&self, method: &Method) -> Body {
        Body::starting(self.start.clone(), self.body_len(method))
    }

    /// The response's head. `date` where the library adds none.
    pub(crate) fn head(self, date: Option<HeaderValue>) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.reserve(4 + self.headers.len());
        if let Some(date) = date {
            headers.insert(DATE, date);
        }
        // RFC 9110 §8.6: 204 and 1xx carry none; 304 may, and none is shorter.
        let counted = !matches!(self.status, StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT)
            && !self.status.is_informational();
        if counted {
            headers.insert(CONTENT_LENGTH, self.length.into());
            if let Some(value) = self.content_type {
                headers.insert(CONTENT_TYPE, value);
            }
        }
        if let Some(value) = self.etag {
            headers.insert(ETAG, value);
        }
        if let Some(value) = self.cache_control {
            headers.insert(CACHE_CONTROL, value);
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        response
    }
}

/// Whether `if-none-match` has this entity tag, by weak comparison (RFC 9110 §8.8.3.2).
fn none_match(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let bare = |tag: &[u8]| -> Vec<u8> {
        let tag = tag.trim_ascii();
        tag.strip_prefix(b"W/").unwrap_or(tag).to_vec()
    };
    let wanted = bare(etag.as_bytes());
    headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|tag| tag.trim_ascii() == b"*" || bare(tag) == wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(method: &str, tags: &str) -> Parts {
        let request = http::Request::builder().method(method).header(IF_NONE_MATCH, tags);
        request.body(()).unwrap().into_parts().0
    }

    fn status(method: &str, tags: &str) -> u16 {
        let parts = parts(method, tags);
        let request = RequestHead { parts: &parts, protocol: Protocol::Http2, sni: None };
        let etag = Some(HeaderValue::from_static("\"v1\""));
        Answer { etag, ..Answer::new(5) }.conditional(&request).status.as_u16()
    }

    #[test]
    fn a_version_that_the_client_has_is_not_sent_again() {
        for tags in ["\"v1\"", "W/\"v1\"", "\"v0\", \"v1\"", "*"] {
            assert_eq!(status("GET", tags), 304, "{tags}");
        }
        assert_eq!(status("GET", "\"v2\""), 200);
        assert_eq!(status("GET", "v1"), 200);
        assert_eq!(status("POST", "\"v1\""), 200);
    }

    #[test]
    fn heads_say_the_length_where_there_is_one() {
        let head = Answer::new(7).head(None);
        assert_eq!(head.headers()[CONTENT_LENGTH], "7");
        let unchanged = Answer { status: StatusCode::NOT_MODIFIED, ..Answer::new(7) };
        assert_eq!(unchanged.body_len(&Method::GET), 0);
        assert!(!unchanged.head(None).headers().contains_key(CONTENT_LENGTH));
        assert_eq!(Answer::new(7).body_len(&Method::HEAD), 0);
    }
}
