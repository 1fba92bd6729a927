//! The end of an HTTP/1.1 response, found without keeping it (RFC 9112 §6). Hostile input costs
//! bounded memory: the head is kept up to [`MAX_HEAD`] bytes, the body never.

use std::mem::MaybeUninit;

use fault::{Explain, Fault};

/// The longest response head that is read.
pub const MAX_HEAD: usize = 16 * 1024;
/// Most fields of a head.
const MAX_FIELDS: usize = 128;

/// What is wrong with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No status line of HTTP/1.x.
    #[error("the response begins with no HTTP/1.x status line")]
    StatusLine,
    /// The head does not end.
    #[error("the response's head is longer than {MAX_HEAD} bytes or {MAX_FIELDS} fields")]
    HeadTooLong,
    /// Content-Length is no number, or two that differ (RFC 9112 §6.3).
    #[error("the response's Content-Length is not one number")]
    ContentLength,
    /// A chunk does not begin with its size (RFC 9112 §7.1).
    #[error("the response's chunked body is malformed")]
    Chunk,
    /// More came than the response.
    #[error("bytes came after the end of the response")]
    Excess,
}

impl Explain for Malformed {
    fn fault(&self) -> Fault {
        Fault::Peer
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes of body to come.
    Length(u64),
    /// The body ends with the connection.
    UntilClose,
    /// In a chunk's size line: the size so far, and what part of the line.
    ChunkSize {
        size: u64,
        digits: u8,
        part: SizePart,
    },
    /// So many bytes of the chunk to come, its line end included.
    Chunk(u64),
    /// In the trailer: how long the present line is, and the whole trailer.
    Trailer {
        line: u32,
        total: u32,
    },
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SizePart {
    Digits,
    Extension,
}

/// A response as far as it came. Made once, and used again for each response.
#[derive(Debug)]
pub struct Response {
    state: State,
    head: Vec<u8>,
    status: u16,
    keep_alive: bool,
}

impl Default for Response {
    fn default() -> Response {
        Response { state: State::Head, head: Vec::new(), status: 0, keep_alive: false }
    }
}

impl Response {
    /// Forgets all, for the next response.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.status = 0;
        self.keep_alive = false;
    }

    /// The status code; 0 before the head is whole.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the response is whole.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the server keeps the connection open after it (RFC 9112 §9.3).
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Takes what came.
    ///
    /// # Errors
    /// [`Malformed`]: the server's fault.
    pub fn receive(&mut self, mut data: &[u8]) -> Result<(), Malformed> {
        while !data.is_empty() {
            data = match self.state {
                State::Head => self.receive_head(data)?,
                State::Length(left) => {
                    let (taken, rest) = split_at_most(data, left);
                    let left = left - taken;
                    self.state = if left == 0 { State::Done } else { State::Length(left) };
                    rest
                }
                State::UntilClose => return Ok(()),
                State::Chunk(left) => {
                    let (taken, rest) = split_at_most(data, left);
                    let left = left - taken;
                    self.state = if left == 0 { CHUNK_SIZE } else { State::Chunk(left) };
                    rest
                }
                State::ChunkSize { .. } | State::Trailer { .. } => {
                    let (byte, rest) = data.split_first().unwrap_or((&0, &[]));
                    self.receive_byte(*byte)?;
                    rest
                }
                State::Done => return Err(Malformed::Excess),
            };
        }
        Ok(())
    }

    /// The connection has ended: whether the response is whole by that.
    #[must_use]
    pub fn ends(&mut self) -> bool {
        if self.state == State::UntilClose {
            self.state = State::Done;
        }
        self.is_done()
    }

    fn receive_head<'a>(&mut self, data: &'a [u8]) -> Result<&'a [u8], Malformed> {
        // The usual head comes in one piece, and is not copied.
        if self.head.is_empty()
            && let Some(end) = end_of_head(data, 0)
        {
            let (head, rest) = data.split_at_checked(end).unwrap_or((data, &[]));
            if head.len() > MAX_HEAD {
                return Err(Malformed::HeadTooLong);
            }
            self.read_head(head)?;
            return Ok(rest);
        }
        let had = self.head.len();
        let room = MAX_HEAD - had.min(MAX_HEAD);
        let (taken, _) = split_at_most(data, room as u64);
        let taken = taken as usize;
        self.head.extend_from_slice(data.get(..taken).unwrap_or_default());
        let Some(end) = end_of_head(&self.head, had.saturating_sub(3)) else {
            return if self.head.len() >= MAX_HEAD { Err(Malformed::HeadTooLong) } else { Ok(&[]) };
        };
        let head = std::mem::take(&mut self.head);
        let read = self.read_head(head.get(..end).unwrap_or_default());
        self.head = head;
        self.head.clear();
        read?;
        Ok(data.get(end.saturating_sub(had)..).unwrap_or_default())
    }

    fn read_head(&mut self, head: &[u8]) -> Result<(), Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut []);
        // A field that is none is the server's own affair.
        let parsed = httparse::ParserConfig::default()
            .ignore_invalid_headers_in_responses(true)
            .parse_response_with_uninit_headers(&mut response, head, &mut fields);
        match parsed {
            Ok(httparse::Status::Complete(len)) if len == head.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed::HeadTooLong),
            _ => return Err(Malformed::StatusLine),
        }
        let (Some(status @ 100..), Some(minor)) = (response.code, response.version) else {
            return Err(Malformed::StatusLine);
        };
        // RFC 9110 §15.2: interim responses come before the real one.
        if (100..200).contains(&status) && status != 101 {
            self.state = State::Head;
            return Ok(());
        }
        self.status = status;
        let mut keep_alive = minor >= 1;
        let mut length = None;
        let mut chunked = false;
        for field in response.headers.iter() {
            let (name, value) = (field.name, field.value.trim_ascii());
            if name.eq_ignore_ascii_case("content-length") {
                let number = number(value).ok_or(Malformed::ContentLength)?;
                if length.is_some_and(|before| before != number) {
                    return Err(Malformed::ContentLength);
                }
                length = Some(number);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = ends_ignoring_case(value, b"chunked");
            } else if name.eq_ignore_ascii_case("connection") {
                if value.eq_ignore_ascii_case(b"close") {
                    keep_alive = false;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    keep_alive = true;
                }
            }
        }
        // RFC 9112 §6.3, in its order.
        self.state = match (status, chunked, length) {
            (204 | 304, ..) => State::Done,
            (_, true, _) => CHUNK_SIZE,
            (_, false, Some(0)) => State::Done,
            (_, false, Some(length)) => State::Length(length),
            (_, false, None) => State::UntilClose,
        };
        self.keep_alive = keep_alive && self.state != State::UntilClose;
        Ok(())
    }

    fn receive_byte(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match self.state {
            State::ChunkSize { size, digits, part } => match (byte, part) {
                (b'\n', _) if digits == 0 => return Err(Malformed::Chunk),
                (b'\n', _) if size == 0 => State::Trailer { line: 0, total: 0 },
                // The line end after the chunk's data.
                (b'\n', _) => State::Chunk(size.checked_add(2).ok_or(Malformed::Chunk)?),
                (b'\r', _) => State::ChunkSize { size, digits, part: SizePart::Extension },
                (_, SizePart::Extension) => self.state,
                (b';' | b' ' | b'\t', SizePart::Digits) if digits > 0 => {
                    State::ChunkSize { size, digits, part: SizePart::Extension }
                }
                (digit, SizePart::Digits) => {
                    let value = (digit as char).to_digit(16).ok_or(Malformed::Chunk)?;
                    // 15 digits of 4 bits each cannot overflow.
                    if digits >= 15 {
                        return Err(Malformed::Chunk);
                    }
                    let size = size * 16 + u64::from(value);
                    State::ChunkSize { size, digits: digits + 1, part }
                }
            },
            State::Trailer { line: 0, .. } if byte == b'\n' => State::Done,
            State::Trailer { total, .. } if total as usize >= MAX_HEAD => {
                return Err(Malformed::HeadTooLong);
            }
            State::Trailer { total, .. } if byte == b'\n' => {
                State::Trailer { line: 0, total: total + 1 }
            }
            State::Trailer { line, total } if byte == b'\r' => {
                State::Trailer { line, total: total + 1 }
            }
            State::Trailer { line, total } => State::Trailer { line: line + 1, total: total + 1 },
            other => other,
        };
        Ok(())
    }
}

const CHUNK_SIZE: State = State::ChunkSize { size: 0, digits: 0, part: SizePart::Digits };

/// How many of `data` to take, at most `most`, and the rest.
fn split_at_most(data: &[u8], most: u64) -> (u64, &[u8]) {
    let taken = usize::try_from(most).unwrap_or(usize::MAX).min(data.len());
    (taken as u64, data.get(taken..).unwrap_or_default())
}

/// Where the head ends, the empty line included, looking from `from` on.
fn end_of_head(data: &[u8], from: usize) -> Option<usize> {
    let tail = data.get(from..)?;
    let at = tail.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(from + at + 4)
}

fn number(digits: &[u8]) -> Option<u64> {
    // 18 digits cannot overflow.
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

fn ends_ignoring_case(value: &[u8], end: &[u8]) -> bool {
    let at = value.len().checked_sub(end.len());
    at.and_then(|at| value.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(text: &str) -> Result<Response, Malformed> {
        let mut response = Response::default();
        response.receive(text.as_bytes())?;
        Ok(response)
    }

    #[test]
    fn each_framing_finds_its_end() {
        for (text, done, keeps) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true, true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", false, true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", true, false),
            ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", true, true),
            ("HTTP/1.1 204 No Content\r\n\r\n", true, true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", true, false),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", true, true),
            ("HTTP/1.1 200 OK\r\n\r\nuntil the end", false, false),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n",
                true,
                true,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false, true),
        ] {
            let mut response = whole(text).unwrap();
            assert_eq!((response.is_done(), response.keeps_alive()), (done, keeps), "{text}");
            if text.contains("until") {
                assert!(response.ends() && response.is_done());
            } else {
                assert_eq!(response.ends(), done, "{text}");
            }
        }
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for (text, wrong) in [
            ("SSH-2.0\r\n\r\n", Malformed::StatusLine),
            ("HTTP/2 200\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 20\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 2000 x\r\n\r\n", Malformed::StatusLine),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Malformed::ContentLength),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Malformed::ContentLength,
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Malformed::ContentLength,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", Malformed::Chunk),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", Malformed::Chunk),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
                Malformed::Chunk,
            ),
            ("HTTP/1.1 204 x\r\n\r\nmore", Malformed::Excess),
        ] {
            assert_eq!(whole(text).err(), Some(wrong), "{text}");
        }
    }

    #[test]
    fn a_head_without_end_is_given_up() {
        let mut response = Response::default();
        response.receive(b"HTTP/1.1 200 OK\r\n").unwrap();
        let line = [b'a'; 1000];
        let refused = (0..100).find_map(|_| response.receive(&line).err());
        assert_eq!(refused, Some(Malformed::HeadTooLong));
        assert!(response.head.len() <= MAX_HEAD);
        let mut response = Response::default();
        response.receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n").unwrap();
        let refused = (0..100).find_map(|_| response.receive(&line).err());
        assert_eq!(refused, Some(Malformed::HeadTooLong));
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(cuts in proptest::collection::vec(1usize..20, 0..40)) {
            let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
            let mut response = Response::default();
            let mut rest = &text[..];
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                response.receive(piece).unwrap();
                rest = after;
            }
            response.receive(rest).unwrap();
            prop_assert!(response.is_done());
            prop_assert_eq!(response.status(), 200);
        }

        #[test]
        fn rubbish_never_panics_nor_grows(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..50)) {
            let mut response = Response::default();
            for piece in [&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]].into_iter().chain(pieces.iter().map(Vec::as_slice)) {
                if response.receive(piece).is_err() { break; }
            }
            prop_assert!(response.head.len() <= MAX_HEAD);
            let mut response = Response::default();
            for piece in &pieces {
                if response.receive(piece).is_err() { break; }
            }
            prop_assert!(response.head.len() <= MAX_HEAD);
        }
    }
}
