//! Which first bytes may go as early data, which an attacker can replay (RFC 8446 §8, RFC 8470).

/// The longest request head that is looked at, in bytes.
pub(crate) const MAX_HEAD: usize = 16 << 10;

/// Methods without an effect on the server, so that a replay does no harm (RFC 9110 §9.2.1).
const SAFE: [&[u8]; 3] = [b"GET", b"HEAD", b"OPTIONS"];

/// What the first bytes of a local program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// These many bytes are one whole HTTP/1 request of a safe method, without a body.
    Safe(usize),
    /// More bytes may make it one.
    Unfinished,
    /// Anything else.
    Unsafe,
}

/// Looks at the bytes that a local program sent first.
pub(crate) fn look(bytes: &[u8]) -> First {
    let line_end = bytes.iter().position(|byte| *byte == b'\n');
    let line = bytes.get(..line_end.unwrap_or(bytes.len())).unwrap_or_default();
    let method = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    if !SAFE.contains(&method) {
        // `GE` may become `GET`.
        let unfinished =
            line.len() == method.len() && SAFE.iter().any(|safe| safe.starts_with(method));
        return if unfinished { First::Unfinished } else { First::Unsafe };
    }
    let Some(line_end) = line_end else { return unfinished(bytes) };
    // RFC 9112 §3: the version ends the line.
    let http = |line: &[u8]| line.ends_with(b" HTTP/1.1\r") || line.ends_with(b" HTTP/1.0\r");
    if !http(line) {
        return First::Unsafe;
    }
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return unfinished(bytes);
    };
    let fields = bytes.get(line_end + 1..end + 2).unwrap_or_default();
    if fields.split(|byte| *byte == b'\n').any(says_body_or_more) {
        return First::Unsafe;
    }
    First::Safe(end + 4)
}

fn unfinished(bytes: &[u8]) -> First {
    if bytes.len() < MAX_HEAD { First::Unfinished } else { First::Unsafe }
}

/// A field by which more than this request follows: a body, or another protocol.
fn says_body_or_more(field: &[u8]) -> bool {
    let name = field.split(|byte| *byte == b':').next().unwrap_or_default();
    let name = name.trim_ascii();
    ["content-length", "transfer-encoding", "upgrade", "expect"]
        .iter()
        .any(|of| name.eq_ignore_ascii_case(of.as_bytes()))
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
