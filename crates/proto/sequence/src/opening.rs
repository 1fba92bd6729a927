//! The bytes of a connection until they show which protocol it speaks: a client's preface, a server that
//! speaks first (RFC 9113 §3.4), or an upgrade from HTTP/1.1 (RFC 7540 §3.2).

use units::Time;
use wire::http2::{self, Frame, FrameType, Header, Setting};

use crate::protocol::Protocol;

/// Bytes of each side that are held. The heads of HTTP/1.1 servers are below it, and so is all that an HTTP/2
/// server may send before the client's preface.
const ROOM: usize = 32 << 10;

/// Bytes of one packet, held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: Time,
    pub(crate) from_client: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A connection whose protocol is not known yet.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    held: Vec<Piece>,
    /// Bytes of the client and of the server.
    client: Vec<u8>,
    server: Vec<u8>,
}

/// Why a connection has no protocol yet, or which it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// More bytes decide.
    NotYet,
    /// A protocol that is not read.
    Other,
    /// A protocol that is read, and all its bytes so far.
    Ours {
        protocol: Protocol,
        /// The client's settings of an upgrade, and when it asked for it.
        settings: Option<(Time, Vec<(u32, u32)>)>,
        bytes: Vec<Piece>,
    },
}

impl Opening {
    /// Takes a side's next bytes.
    pub(crate) fn bytes(&mut self, at: Time, from_client: bool, bytes: &[u8]) -> Found {
        let all = if from_client { &mut self.client } else { &mut self.server };
        if all.len().saturating_add(bytes.len()) > ROOM {
            return Found::Other;
        }
        all.extend_from_slice(bytes);
        self.held.push(Piece { at, from_client, bytes: bytes.to_vec() });
        match Protocol::of_bytes(&self.client) {
            Err(()) => Found::NotYet,
            Ok(Some(protocol)) => {
                Found::Ours { protocol, settings: None, bytes: std::mem::take(&mut self.held) }
            }
            Ok(None) => self.upgrade(),
        }
    }

    /// Looks for an upgrade to HTTP/2. A client waits for the 101, so that its preface follows its request.
    fn upgrade(&mut self) -> Found {
        let Some(request) = Head::of(&self.client) else {
            return if may_be_request(&self.client) { Found::NotYet } else { Found::Other };
        };
        if !request.has_token("upgrade", "h2c") {
            return Found::Other;
        }
        let Some((answer, skipped)) = final_answer(&self.server) else { return Found::NotYet };
        if !answer.is_upgrade() {
            return Found::Other;
        }
        let answer_len = skipped.saturating_add(answer.len);
        // A request may have a body, in chunks too: the preface ends it.
        let preface = request.len.saturating_add(find(&self.client, request.len).unwrap_or_else(
            // It is still to come: of what is there nothing is HTTP/2's.
            || self.client.len().saturating_sub(request.len),
        ));
        let asked = self.held.iter().find(|piece| piece.from_client).map(|piece| piece.at);
        let settings = asked.zip(request.value("http2-settings").and_then(settings));
        let mut bytes = std::mem::take(&mut self.held);
        cut(&mut bytes, true, preface);
        cut(&mut bytes, false, answer_len);
        Found::Ours { protocol: Protocol::Http2, settings, bytes }
    }
}

/// Where the preface begins behind `from`, counted from there.
fn find(bytes: &[u8], from: usize) -> Option<usize> {
    let bytes = bytes.get(from..)?;
    bytes.windows(http2::PREFACE.len()).position(|window| window == http2::PREFACE)
}

/// Takes the first bytes of a side away.
fn cut(pieces: &mut Vec<Piece>, from_client: bool, mut count: usize) {
    for piece in pieces.iter_mut().filter(|piece| piece.from_client == from_client) {
        let here = count.min(piece.bytes.len());
        piece.bytes.drain(..here);
        count -= here;
    }
    pieces.retain(|piece| !piece.bytes.is_empty());
}

/// A head of HTTP/1.1: its first line and its fields.
struct Head<'a> {
    /// With the empty line that ends it.
    len: usize,
    first: &'a str,
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Head<'a> {
    /// The head at the front; `None` if it is not whole, or is none.
    fn of(bytes: &'a [u8]) -> Option<Head<'a>> {
        let (len, text) = whole(bytes)?;
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        let first = lines.next()?;
        let field = |line: &'a str| line.split_once(':').map(|(name, value)| (name, value.trim()));
        Some(Head { len, first, fields: lines.filter_map(field).collect() })
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        let field = self.fields.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        field.map(|(_, value)| *value)
    }

    /// Whether a field's list has a token, in any of the field's lines (RFC 9110 §5.3).
    fn has_token(&self, name: &str, token: &str) -> bool {
        let lists = self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut tokens = lists.flat_map(|(_, list)| list.split(','));
        tokens.any(|other| other.trim().eq_ignore_ascii_case(token))
    }

    fn status(&self) -> Option<u16> {
        self.first.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
    }

    fn is_upgrade(&self) -> bool {
        self.status() == Some(101) && self.has_token("upgrade", "h2c")
    }
}

/// A head up to its empty line, and its length with it. Lines may end without CR (RFC 9112 §2.2).
fn whole(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut begin = 0;
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if matches!(bytes.get(begin..at)?, [] | [b'\r']) {
            return Some((at.saturating_add(1), bytes.get(..begin)?));
        }
        begin = at.saturating_add(1);
    }
    None
}

/// The first answer that is not interim (RFC 9110 §15.2), and the bytes before it; `None` if it is not there.
fn final_answer(bytes: &[u8]) -> Option<(Head<'_>, usize)> {
    let mut skipped = 0usize;
    loop {
        let head = Head::of(bytes.get(skipped..)?)?;
        if !matches!(head.status(), Some(100 | 102..=199)) {
            return Some((head, skipped));
        }
        skipped = skipped.saturating_add(head.len);
    }
}

/// Whether bytes may be the beginning of a request: a method's token (RFC 9110 §5.6.2), then printable text.
fn may_be_request(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let method = line.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    let rest = line.get(method..).unwrap_or_default();
    let is_text = rest.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic());
    is_text && method < 20 && (rest.is_empty() || method > 0 && rest.starts_with(b" "))
}

/// The entries of HTTP2-Settings: the payload of a SETTINGS frame in base64url without padding (RFC 7540
/// §3.2.1).
fn settings(text: &str) -> Option<Vec<(u32, u32)>> {
    let mut payload = Vec::new();
    let (mut bits, mut have) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        (bits, have) = (bits << 6 | u32::from(value), have + 6);
        if have >= 8 {
            have -= 8;
            payload.push((bits >> have & 0xff) as u8);
        }
    }
    let length = u32::try_from(payload.len()).ok()?;
    let header = Header { length, kind: FrameType::SETTINGS, flags: 0, stream: 0 };
    let Ok(Frame::Settings { entries, .. }) = Frame::parse(header, &payload) else { return None };
    Some(entries.iter().map(|Setting { id, value }| (u32::from(id.0), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_an_upgrade_are_read() {
        // RFC 7540 has no vector: that of nghttp2's documentation.
        assert_eq!(settings("AAMAAABkAAQAAP__"), Some(vec![(3, 100), (4, 65_535)]));
        assert_eq!(
            settings("AAMAAABkAAQCAAAAAAIAAAAA"),
            Some(vec![(3, 100), (4, 1 << 25), (2, 0)])
        );
        assert_eq!(settings(""), Some(vec![]));
        assert_eq!(settings("AAM*"), None);
        assert_eq!(settings("AAMA"), None);
    }

    #[test]
    fn heads_end_at_an_empty_line() {
        let head =
            Head::of(b"GET / HTTP/1.1\r\nUpgrade: a\r\nupgrade: b, H2C\r\n\r\nmore").unwrap();
        assert_eq!((head.len, head.first), (47, "GET / HTTP/1.1"));
        assert!(head.has_token("Upgrade", "h2c") && !head.has_token("Upgrade", "c"));
        assert!(Head::of(b"GET / HTTP/1.1\nA: b\n\n").is_some());
        assert!(Head::of(b"GET / HTTP/1.1\r\nA: b\r\n").is_none());
    }

    #[test]
    fn only_a_request_may_be_an_upgrade() {
        for bytes in [&b""[..], b"G", b"GET", b"GET /a HT", b"OPTIONS * HTTP/1.1\r\nHost"] {
            assert!(may_be_request(bytes), "{bytes:?}");
        }
        for bytes in
            [&b"SSH-2.0-x\r\n"[..], b"\x16\x03\x01", b" GET", b"EHLO\x00", b"get / HTTP/1.1\r\n"]
        {
            assert!(!may_be_request(bytes), "{bytes:?}");
        }
    }
}
