//! Faults in the head of an HTTP/1.1 request that hyper lets pass.

use std::net::Ipv6Addr;

use http::header::{HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Version};

/// The status that refuses a request by its head; `None` for a valid one.
pub(super) fn refusal(parts: &Parts) -> Option<StatusCode> {
    if !has_target(parts) || !has_host(parts) {
        return Some(StatusCode::BAD_REQUEST);
    }
    coding_refusal(&parts.headers)
}

/// Whether the target has the form that its method takes (RFC 9112 §3.2).
fn has_target(parts: &Parts) -> bool {
    let uri = &parts.uri;
    match (uri.scheme(), uri.authority()) {
        // Absolute form.
        (Some(_), _) => true,
        // Authority form.
        (None, Some(_)) => parts.method == Method::CONNECT,
        // Origin form, or asterisk form.
        (None, None) => {
            uri.path().starts_with('/') || (uri.path() == "*" && parts.method == Method::OPTIONS)
        }
    }
}

/// Whether there is one valid `Host`; HTTP/1.0 may do without (RFC 9112 §3.2).
fn has_host(parts: &Parts) -> bool {
    let mut hosts = parts.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => parts.version < Version::HTTP_11,
        (Some(host), None) => host.to_str().is_ok_and(is_host),
        (Some(_), Some(_)) => false,
    }
}

/// Whether a text is `uri-host [ ":" port ]` (RFC 9110 §7.2, RFC 3986 §3.2). It may be empty.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => ("", port),
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=%".contains(c);
    let digits = port.strip_prefix(':').unwrap_or_default();
    host.chars().all(is_name)
        && (port.is_empty() || port.starts_with(':'))
        && digits.chars().all(|c| c.is_ascii_digit())
}

/// The status that refuses the transfer codings: `chunked` twice is an error, another coding is not
/// implemented (RFC 9112 §6.1).
fn coding_refusal(headers: &HeaderMap) -> Option<StatusCode> {
    let mut chunked = false;
    for value in headers.get_all(TRANSFER_ENCODING) {
        let Ok(value) = value.to_str() else { return Some(StatusCode::BAD_REQUEST) };
        for coding in value.split(',').map(str::trim).filter(|coding| !coding.is_empty()) {
            if chunked {
                return Some(StatusCode::BAD_REQUEST);
            }
            if !coding.eq_ignore_ascii_case("chunked") {
                return Some(StatusCode::NOT_IMPLEMENTED);
            }
            chunked = true;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, target: &str, fields: &[(&str, &str)]) -> Option<u16> {
        let mut request = http::Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        refusal(&parts).map(|status| status.as_u16())
    }

    #[test]
    fn a_request_has_one_valid_host() {
        for host in ["a", "a.example:8443", "a:", "", "[::1]", "[::1]:443", "127.0.0.1", "a%20b"] {
            assert_eq!(status("GET", "/5", &[("host", host)]), None, "{host}");
        }
        for host in ["a b", "a/b", "a@b", "a:b", "a:1:2", "[::1", "[a]", "[::1]x", "a?", "[]"] {
            assert_eq!(status("GET", "/5", &[("host", host)]), Some(400), "{host}");
        }
        assert_eq!(status("GET", "/5", &[]), Some(400));
        assert_eq!(status("GET", "/5", &[("host", "a"), ("host", "a")]), Some(400));
        let old = http::Request::builder().version(Version::HTTP_10).uri("/5").body(()).unwrap();
        assert_eq!(refusal(&old.into_parts().0), None);
    }

    #[test]
    fn a_target_has_its_methods_form() {
        let host = [("host", "a")];
        for (method, target) in
            [("GET", "/"), ("GET", "http://a"), ("OPTIONS", "*"), ("CONNECT", "a:443")]
        {
            assert_eq!(status(method, target, &host), None, "{method} {target}");
        }
        for (method, target) in [("GET", "a"), ("GET", "*"), ("POST", "a:443")] {
            assert_eq!(status(method, target, &host), Some(400), "{method} {target}");
        }
    }

    #[test]
    fn chunked_is_the_one_coding() {
        let status = |values: &[&str]| {
            let mut fields = vec![("host", "a")];
            fields.extend(values.iter().map(|value| ("transfer-encoding", *value)));
            status("POST", "/5", &fields)
        };
        assert_eq!(status(&["chunked"]), None);
        assert_eq!(status(&["Chunked,"]), None);
        assert_eq!(status(&["chunked, chunked"]), Some(400));
        assert_eq!(status(&["chunked", "chunked"]), Some(400));
        assert_eq!(status(&["chunked, gzip"]), Some(400));
        assert_eq!(status(&["gzip, chunked"]), Some(501));
    }
}
