//! Heads of requests and responses as SPDY's header blocks (draft 3.1 §3.2).

use std::str::FromStr as _;

use ::spdy::{Headers, values};
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, request, response};

use crate::{Failure, Priority};

/// What requests and responses say in `:version`.
const VERSION: &[u8] = b"HTTP/1.1";

/// A request's block. With a `priority`, which the frame has a field for, no header says it.
pub(crate) fn of_request(
    parts: &request::Parts,
    priority: Option<Priority>,
) -> Result<Headers, Failure> {
    let uri = &parts.uri;
    let mut block = Headers::new();
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let host = uri.authority().map_or("", Authority::as_str);
    let pairs = [
        (":method", parts.method.as_str().as_bytes()),
        (":path", path.as_bytes()),
        (":version", VERSION),
        (":host", host.as_bytes()),
        (":scheme", uri.scheme_str().unwrap_or("https").as_bytes()),
    ];
    pairs
        .into_iter()
        .try_for_each(|(name, value)| block.push(name, value).ok())
        .and_then(|()| push_fields(&mut block, &parts.headers, priority.is_some()))
        .map(|()| block)
        .ok_or_else(|| Failure::Plan("the request has a field that SPDY cannot say".to_owned()))
}

/// A response's block; `None` for one that no block can say.
pub(crate) fn of_response(response: &http::Response<()>) -> Option<Headers> {
    let mut block = Headers::new();
    block.push(":status", response.status().as_str().as_bytes()).ok()?;
    block.push(":version", VERSION).ok()?;
    push_fields(&mut block, response.headers(), false)?;
    Some(block)
}

/// A pushed response's block, with the request that it answers (§3.3.1). §3.3.1 does not ask for the
/// method, which is always GET; npm's client does.
pub(crate) fn of_push(request: &request::Parts, response: &http::Response<()>) -> Option<Headers> {
    let mut block = Headers::new();
    let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let host = request.uri.authority()?.as_str();
    block.push(":method", request.method.as_str().as_bytes()).ok()?;
    block.push(":scheme", request.uri.scheme_str()?.as_bytes()).ok()?;
    block.push(":host", host.as_bytes()).ok()?;
    block.push(":path", path.as_bytes()).ok()?;
    block.push(":status", response.status().as_str().as_bytes()).ok()?;
    block.push(":version", VERSION).ok()?;
    push_fields(&mut block, response.headers(), false)?;
    Some(block)
}

/// The host and path of what is pushed (§3.3.1); `None` if they are none.
pub(crate) fn promised(block: &Headers) -> Option<(String, String)> {
    let host = Authority::try_from(block.get(":host")?).ok()?;
    let path = PathAndQuery::try_from(block.get(":path")?).ok()?;
    Some((host.as_str().to_owned(), path.as_str().to_owned()))
}

fn push_fields(block: &mut Headers, fields: &HeaderMap, has_priority: bool) -> Option<()> {
    for name in fields.keys() {
        // §3.2.1, §3.2.2: not sent; `host` is `:host`.
        let is_left_out = [CONNECTION, HOST, TRANSFER_ENCODING].contains(name)
            || ["keep-alive", "proxy-connection"].contains(&name.as_str());
        if is_left_out || (has_priority && name == "priority") {
            continue;
        }
        let mut all = fields.get_all(name).iter();
        match (all.next(), all.next()) {
            (Some(value), None) => block.push(name.as_str(), value.as_bytes()).ok()?,
            _ => {
                // §2.6.10: NUL separates several values, and none of them may be empty.
                let all = fields.get_all(name).iter().map(HeaderValue::as_bytes);
                let all: Vec<&[u8]> = all.filter(|value| !value.is_empty()).collect();
                block.push(name.as_str(), &all.join(&0)).ok()?;
            }
        }
    }
    Some(())
}

/// The head of a request; `None` if it lacks what §3.2.1 asks for, or is no HTTP.
pub(crate) fn request(block: &Headers, urgency: u8) -> Option<request::Parts> {
    let mut uri = http::uri::Parts::default();
    let get = |name| block.get(name).filter(|value| !value.is_empty());
    uri.scheme = Some(Scheme::try_from(get(":scheme")?).ok()?);
    uri.authority = Some(Authority::try_from(get(":host")?).ok()?);
    uri.path_and_query = Some(PathAndQuery::try_from(get(":path")?).ok()?);
    get(":version")?;
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = Method::from_bytes(get(":method")?).ok()?;
    parts.uri = Uri::from_parts(uri).ok()?;
    parts.headers = fields(block)?;
    parts.extensions.insert(Priority { urgency, incremental: false });
    Some(parts)
}

/// The head of a response; `None` if it has no status, or is no HTTP.
pub(crate) fn response(block: &Headers) -> Option<response::Parts> {
    let (mut parts, ()) = http::Response::new(()).into_parts();
    // §3.2.2: "200" or "200 OK".
    let status = block.get(":status")?.split(|byte| *byte == b' ').next()?;
    parts.status = StatusCode::from_str(str::from_utf8(status).ok()?).ok()?;
    parts.headers = fields(block)?;
    Some(parts)
}

fn fields(block: &Headers) -> Option<HeaderMap> {
    let mut fields = HeaderMap::try_with_capacity(block.len()).ok()?;
    for (name, value) in block.iter().filter(|(name, _)| !name.starts_with(':')) {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        for value in values(value) {
            fields.try_append(name.clone(), HeaderValue::from_bytes(value).ok()?).ok()?;
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(change: (&str, Option<&str>)) -> Headers {
        let pairs = [
            (":method", "GET"),
            (":path", "/a?b"),
            (":version", "HTTP/1.1"),
            (":host", "a.test:1"),
            (":scheme", "https"),
            ("accept", "x\0y"),
        ];
        let (name, value) = change;
        let pairs = pairs.into_iter().filter(|(other, _)| *other != name);
        Headers::from_pairs(pairs.chain(value.map(|value| (name, value)))).unwrap()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let parts = request(&block(("x", None)), 5).unwrap();
        assert_eq!(
            (&parts.method, parts.uri.to_string()),
            (&Method::GET, "https://a.test:1/a?b".into())
        );
        let accepts: Vec<_> = parts.headers.get_all("accept").iter().collect();
        assert_eq!(accepts, ["x", "y"]);
        assert_eq!(parts.extensions.get::<Priority>().unwrap().urgency, 5);
        assert_eq!(of_request(&parts, None).unwrap(), block(("x", None)));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for name in [":method", ":path", ":version", ":host", ":scheme"] {
            for value in [None, Some("")] {
                assert!(request(&block((name, value)), 3).is_none(), "{name} {value:?}");
            }
        }
        for change in
            [(":method", "G T"), (":path", "a b"), (":host", "a/b"), ("x y", "z"), ("x", "\n")]
        {
            assert!(request(&block((change.0, Some(change.1))), 3).is_none(), "{change:?}");
        }
    }

    #[test]
    fn fields_of_the_connection_and_of_the_frame_are_left_out() {
        let request = http::Request::get("https://a.test/")
            .header("connection", "close")
            .header("host", "b.test")
            .header("priority", "u=1")
            .header("x", "");
        let parts = request.body(()).unwrap().into_parts().0;
        let names = |priority| -> Vec<String> {
            let block = of_request(&parts, priority).unwrap();
            block
                .iter()
                .map(|(name, _)| name.to_owned())
                .filter(|name| !name.starts_with(':'))
                .collect()
        };
        assert_eq!(names(Some(Priority::default())), ["x"]);
        assert_eq!(names(None), ["priority", "x"]);
    }

    #[test]
    fn a_response_has_a_status_with_or_without_its_phrase() {
        for text in ["404", "404 Not Found"] {
            let block = Headers::from_pairs([(":status", text), ("etag", "\"1\"")]).unwrap();
            let parts = response(&block).unwrap();
            assert_eq!((parts.status.as_u16(), parts.headers.len()), (404, 1));
        }
        for text in ["", "20", "2000", "abc"] {
            let block = Headers::from_pairs([(":status", text)]).unwrap();
            assert!(response(&block).is_none(), "{text}");
        }
    }
}
