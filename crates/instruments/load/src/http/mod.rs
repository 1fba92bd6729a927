//! The end of an HTTP/1.1 response, found without keeping it (RFC 9112 §6), as clients read one. Hostile
//! input costs bounded memory: the head is kept up to [`MAX_HEAD`] bytes, the body never.

use std::mem::MaybeUninit;

use fault::{Explain, Fault};

/// The longest response head that is read.
pub const MAX_HEAD: usize = 256 * 1024;
/// Fields of a head that cost no allocation.
const USUAL_FIELDS: usize = 128;
/// Most fields of a head.
const MAX_FIELDS: usize = 4096;

/// What is wrong with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No status line of HTTP/1.x.
    #[error("the response begins with no HTTP/1.x status line")]
    StatusLine,
    /// The head does not end.
    #[error("the response's head is longer than {MAX_HEAD} bytes or {MAX_FIELDS} fields")]
    HeadTooLong,
    /// Content-Length is no number, or several that differ (RFC 9112 §6.3).
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
    /// In a chunk's size line: the size so far, whether it has a digit, and which part of the line.
    ChunkSize {
        size: u64,
        digit: bool,
        part: SizePart,
    },
    /// So many bytes of the chunk to come.
    Chunk(u64),
    /// In the line end after a chunk's data.
    ChunkEnd,
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
    answers_head: bool,
    begun: bool,
}

impl Default for Response {
    fn default() -> Response {
        Response {
            state: State::Head,
            head: Vec::new(),
            status: 0,
            keep_alive: false,
            answers_head: false,
            begun: false,
        }
    }
}

impl Response {
    /// Forgets all, for the next response.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.status = 0;
        self.keep_alive = false;
        self.begun = false;
    }

    /// Says whether the requests are HEAD, whose responses have no body (RFC 9110 §9.3.2). It holds for all
    /// responses to come.
    pub fn set_answers_head(&mut self, head: bool) {
        self.answers_head = head;
    }

    /// The status code; 0 before the head is whole.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether a byte of it came.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
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
        self.begun |= !data.is_empty();
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
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    rest
                }
                State::ChunkSize { .. } | State::ChunkEnd | State::Trailer { .. } => {
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
        let Some(end) = end_of_head(&self.head, had.saturating_sub(2)) else {
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
        let mut fields = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
        match self.read_fields(head, &mut fields) {
            Err(Malformed::HeadTooLong) => {
                let mut fields: Vec<_> =
                    std::iter::repeat_with(MaybeUninit::uninit).take(MAX_FIELDS).collect();
                self.read_fields(head, &mut fields)
            }
            read => read,
        }
    }

    fn read_fields<'a>(
        &mut self,
        head: &'a [u8],
        fields: &mut [MaybeUninit<httparse::Header<'a>>],
    ) -> Result<(), Malformed> {
        let mut response = httparse::Response::new(&mut []);
        // What clients let pass: a field that is none, an old folded one, a space before the colon.
        let parsed = httparse::ParserConfig::default()
            .ignore_invalid_headers_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .allow_multiple_spaces_in_response_status_delimiters(true)
            .parse_response_with_uninit_headers(&mut response, head, fields);
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
        let mut length = Length::Absent;
        let mut coding = None;
        for field in response.headers.iter() {
            let (name, value) = (field.name, field.value);
            if name.eq_ignore_ascii_case("content-length") {
                tokens(value).for_each(|text| length.add(text));
                // An empty value is no number either.
                if value.trim_ascii().is_empty() {
                    length = Length::Wrong;
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                coding = tokens(value).last().or(coding);
            } else if name.eq_ignore_ascii_case("connection") {
                for option in tokens(value) {
                    if option.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if minor == 0 && option.eq_ignore_ascii_case(b"keep-alive") {
                        keep_alive = true;
                    }
                }
            }
        }
        let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case(b"identity"));
        // RFC 9112 §6.3, in its order.
        self.state = match (status, coding, length) {
            (204 | 304, ..) => State::Done,
            _ if self.answers_head => State::Done,
            (_, Some(coding), _) if coding.eq_ignore_ascii_case(b"chunked") => CHUNK_SIZE,
            (_, Some(_), _) | (_, None, Length::Absent) => State::UntilClose,
            (_, None, Length::Wrong) => return Err(Malformed::ContentLength),
            (_, None, Length::Is(0)) => State::Done,
            (_, None, Length::Is(length)) => State::Length(length),
        };
        self.keep_alive = keep_alive && self.state != State::UntilClose;
        Ok(())
    }

    fn receive_byte(&mut self, byte: u8) -> Result<(), Malformed> {
        self.state = match self.state {
            State::ChunkSize { size, digit, part } => match (byte, part) {
                (b'\n', _) if !digit => return Err(Malformed::Chunk),
                (b'\n', _) if size == 0 => State::Trailer { line: 0, total: 0 },
                (b'\n', _) => State::Chunk(size),
                (b'\r', _) => State::ChunkSize { size, digit, part: SizePart::Extension },
                (_, SizePart::Extension) => self.state,
                (b';' | b' ' | b'\t', SizePart::Digits) if digit => {
                    State::ChunkSize { size, digit, part: SizePart::Extension }
                }
                (byte, SizePart::Digits) => {
                    let value = (byte as char).to_digit(16).ok_or(Malformed::Chunk)?;
                    let size = size.checked_mul(16).ok_or(Malformed::Chunk)? + u64::from(value);
                    State::ChunkSize { size, digit: true, part }
                }
            },
            State::ChunkEnd => match byte {
                b'\n' => CHUNK_SIZE,
                b'\r' => State::ChunkEnd,
                _ => return Err(Malformed::Chunk),
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

const CHUNK_SIZE: State = State::ChunkSize { size: 0, digit: false, part: SizePart::Digits };

/// Content-Length, over all its fields and their lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Absent,
    Is(u64),
    Wrong,
}

impl Length {
    /// Takes another value in. RFC 9112 §6.3: repeated values count as one if they are equal.
    fn add(&mut self, text: &[u8]) {
        *self = match (*self, number(text)) {
            (Length::Absent, Some(number)) => Length::Is(number),
            (Length::Is(before), Some(number)) if before == number => Length::Is(number),
            _ => Length::Wrong,
        };
    }
}

/// The elements of a list (RFC 9110 §5.6.1), empty ones passed over.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// How many of `data` to take, at most `most`, and the rest.
fn split_at_most(data: &[u8], most: u64) -> (u64, &[u8]) {
    let taken = usize::try_from(most).unwrap_or(usize::MAX).min(data.len());
    (taken as u64, data.get(taken..).unwrap_or_default())
}

/// Where the head ends, the empty line included, looking from `from` on. A line may end with a line feed
/// alone (RFC 9112 §2.2).
fn end_of_head(data: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let tail = data.get(at..)?;
        at += tail.iter().position(|byte| *byte == b'\n')? + 1;
        match data.get(at..)? {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    // 18 digits cannot overflow.
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
