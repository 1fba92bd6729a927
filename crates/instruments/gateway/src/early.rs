//! Which first bytes may go as early data, which an attacker can replay (RFC 8446 §8, RFC 8470).

/// The longest request head that is looked at, in bytes.
pub(crate) const MAX_HEAD: usize = 16 << 10;

/// Most fields of a head that is looked at.
const MAX_FIELDS: usize = 64;

/// Methods without an effect on the server, so that a replay does no harm (RFC 9110 §9.2.1).
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// Fields by which more than the request follows: a body, or another protocol.
const MORE: [&str; 4] = ["content-length", "transfer-encoding", "upgrade", "expect"];

/// What the first bytes of a local program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// These many bytes are one whole HTTP/1 request of a safe method, without a body.
    Safe(usize),
    /// More bytes may make it one.
    Unfinished,
    /// Anything else: it is not sent early.
    Unsafe,
}

/// Looks at the bytes that a local program sent first.
pub(crate) fn look(bytes: &[u8]) -> First {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let parsed = request.parse(bytes);
    let safe = match request.method {
        Some(method) => SAFE.contains(&method),
        // `GE` may become `GET`.
        None => SAFE.iter().any(|safe| safe.as_bytes().starts_with(bytes)),
    };
    match parsed {
        Ok(httparse::Status::Complete(end)) if safe => {
            let more = |name: &str| MORE.iter().any(|more| name.eq_ignore_ascii_case(more));
            let more = request.headers.iter().any(|field| more(field.name));
            if more { First::Unsafe } else { First::Safe(end) }
        }
        Ok(httparse::Status::Partial) if safe && bytes.len() < MAX_HEAD => First::Unfinished,
        _ => First::Unsafe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_safe_requests_are_safe() {
        let get = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(look(get), First::Safe(get.len()));
        let two = [&get[..], b"POST / HTTP/1.1\r\n"].concat();
        assert_eq!(look(&two), First::Safe(get.len()), "what follows is not part of it");
        let bare = b"HEAD / HTTP/1.0\r\n\r\n";
        assert_eq!(look(bare), First::Safe(bare.len()));
        for wrong in [
            "POST / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "GET / HTTP/1.1\r\nA: b\r\ntransfer-Encoding : chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            "GET /\r\n\r\n",
            "GETS / HTTP/1.1\r\n\r\n",
            "get / HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "EHLO x\r\n",
            "\x16\x03\x01",
        ] {
            assert_eq!(look(wrong.as_bytes()), First::Unsafe, "{wrong:?}");
        }
    }

    #[test]
    fn what_may_still_become_one_is_waited_for() {
        let get = b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n";
        for end in 0..get.len() {
            assert_eq!(look(&get[..end]), First::Unfinished, "{end}");
        }
        let mut long = b"GET / HTTP/1.1\r\nA: ".to_vec();
        long.resize(MAX_HEAD, b'a');
        assert_eq!(look(&long), First::Unsafe);
    }
}
