//! The client's end of an HTTP/2 connection (RFC 9113): requests out, what became of them in. Pure: bytes and
//! times are arguments. Once a connection has had its streams, a request allocates nothing.

use wire::http2::{
    DEFAULT_WINDOW, FLAG_ACK, FLAG_END_STREAM, FrameType, Header, MAX_WINDOW, PREFACE, Setting,
    SettingId, Settings,
};

use super::hpack::Block;
use super::reader::{Event, Reader, Violation, code};

/// Streams open at once before the server has said how many it takes (§6.5.2 recommends at least 100).
const UNTOLD_STREAMS: usize = 100;
/// Most bytes that wait to be sent: a server that asks and does not read has no more.
const MAX_OUT: usize = 1 << 20;
/// Bytes of a header block in one frame: what every peer takes.
const MAX_FRAGMENT: usize = 16_384;
/// Part of a window after which it is opened again.
const USED: u32 = MAX_WINDOW / 2;

/// A request under way, or a free place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    /// 0 if the place is free.
    id: u32,
    /// When it was due, in the clock of the run.
    pub(crate) due: u64,
    /// When it was handed over.
    pub(crate) started: u64,
    /// 0 before the response's head is there.
    pub(crate) status: u16,
    received: u32,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The head of its response is there.
    Begun(Stream),
    /// Its response is whole.
    Answered(Stream),
    /// The server has reset its stream, by this code.
    Reset(Stream, u32),
    /// Its response breaks HTTP/2.
    Malformed(Stream, &'static str),
    /// It took longer than the limit.
    TimedOut(Stream),
    /// The server has not looked at it (§8.7): it can be sent again.
    Unprocessed(Stream),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Session {
    reader: Reader,
    /// A stream's place is its number in turn: places are free or hold a slow one, whose numbers are left out.
    streams: Vec<Stream>,
    open: usize,
    /// Streams at once: ours, and the server's limit.
    most: usize,
    limit: usize,
    next: u32,
    /// Streams below it were opened before the server's settings were known.
    untold: Option<u32>,
    received: u32,
    /// No start is before it.
    oldest: u64,
    last_heard: u64,
    going: Option<u32>,
    acknowledged: bool,
    shrink_table: bool,
    answered: u64,
    left: Option<u64>,
    /// Bytes to be sent.
    pub(crate) out: Vec<u8>,
}

impl Session {
    /// A connection for so many streams at once, and so many requests in all if that is bounded. The preface
    /// waits to be sent.
    pub(crate) fn new(streams: usize, requests: Option<u64>) -> Session {
        let streams = streams.max(1);
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(PREFACE);
        let settings = [(SettingId::ENABLE_PUSH, 0), (SettingId::INITIAL_WINDOW_SIZE, MAX_WINDOW)];
        let length = (settings.len() * Setting::LEN) as u32;
        push_header(&mut out, length, FrameType::SETTINGS, 0, 0);
        for (id, value) in settings {
            out.extend_from_slice(&id.0.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        push_u32(&mut out, FrameType::WINDOW_UPDATE, 0, MAX_WINDOW - DEFAULT_WINDOW);
        Session {
            reader: Reader::default(),
            // Twice as many places as streams: a slow one seldom costs a number.
            streams: vec![Stream::default(); (2 * streams).next_power_of_two()],
            open: 0,
            most: streams,
            limit: UNTOLD_STREAMS,
            next: 1,
            untold: None,
            received: 0,
            oldest: u64::MAX,
            last_heard: 0,
            going: None,
            acknowledged: false,
            shrink_table: false,
            answered: 0,
            left: requests,
            out,
        }
    }

    /// Whether another request can be sent now.
    pub(crate) fn has_room(&self) -> bool {
        self.open < self.most.min(self.limit) && self.may_go_on()
    }

    /// Whether requests will be sent on it at all.
    pub(crate) fn may_go_on(&self) -> bool {
        self.going.is_none() && self.left != Some(0) && self.next <= MAX_WINDOW
    }

    /// Requests under way.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Responses that came.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether the server has answered something of ours.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// The code of the server's GOAWAY, if it has sent one.
    pub(crate) fn going(&self) -> Option<u32> {
        self.going
    }

    /// Whether all requests that were to be sent have been.
    pub(crate) fn is_complete(&self) -> bool {
        self.left == Some(0)
    }

    /// Sends a request, which is a header block alone. Call it where [`Session::has_room`].
    pub(crate) fn request(&mut self, block: &[u8], due: u64, started: u64) {
        // Twice as many places as streams: one is free.
        let Some(place) = (0..self.streams.len()).find_map(|_| {
            let at = self.place(self.next);
            let free = self.streams.get(at).is_some_and(|stream| stream.id == 0);
            if !free {
                self.next = self.next.saturating_add(2);
            }
            free.then_some(at)
        }) else {
            return;
        };
        let id = self.next;
        self.next = self.next.saturating_add(2);
        if let Some(stream) = self.streams.get_mut(place) {
            *stream = Stream { id, due, started, status: 0, received: 0 };
        }
        self.open += 1;
        self.oldest = self.oldest.min(started);
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.push_block(id, block);
    }

    fn push_block(&mut self, id: u32, block: &[u8]) {
        let shrink: &[u8] = if std::mem::take(&mut self.shrink_table) { &[0x20] } else { &[] };
        let first = block.len().min(MAX_FRAGMENT - shrink.len());
        let (mut piece, mut rest) = block.split_at_checked(first).unwrap_or((block, &[]));
        let ends = |rest: &[u8]| if rest.is_empty() { 0x04 } else { 0 };
        let length = (shrink.len() + piece.len()) as u32;
        let flags = FLAG_END_STREAM | ends(rest);
        push_header(&mut self.out, length, FrameType::HEADERS, flags, id);
        self.out.extend_from_slice(shrink);
        self.out.extend_from_slice(piece);
        while !rest.is_empty() {
            (piece, rest) =
                rest.split_at_checked(rest.len().min(MAX_FRAGMENT)).unwrap_or((rest, &[]));
            let length = piece.len() as u32;
            push_header(&mut self.out, length, FrameType::CONTINUATION, ends(rest), id);
            self.out.extend_from_slice(piece);
        }
    }

    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.streams.len() - 1)
    }

    /// Takes what came at `now`.
    ///
    /// # Errors
    /// [`Violation`]: the connection is over; GOAWAY waits to be sent.
    pub(crate) fn receive(
        &mut self,
        data: &[u8],
        now: u64,
        on: &mut impl FnMut(Outcome),
    ) -> Result<(), Violation> {
        self.last_heard = now;
        let mut reader = std::mem::take(&mut self.reader);
        let done = reader.receive(data, &mut |event| self.event(event, on));
        self.reader = reader;
        if let Err(violation) = done {
            push_header(&mut self.out, 8, FrameType::GOAWAY, 0, 0);
            self.out.extend_from_slice(&0u32.to_be_bytes());
            self.out.extend_from_slice(&violation.code.to_be_bytes());
        }
        done
    }

    fn event(&mut self, event: Event<'_>, on: &mut impl FnMut(Outcome)) -> Result<(), Violation> {
        match event {
            Event::Settings(entries) => self.settings(entries)?,
            Event::SettingsAck => self.acknowledged = true,
            Event::Ping(data) => {
                push_header(&mut self.out, 8, FrameType::PING, FLAG_ACK, 0);
                self.out.extend_from_slice(&data);
            }
            Event::GoAway { last, error } => self.go_away(last, error, on),
            Event::Reset { stream, error } => self.reset(stream, error, on)?,
            // Requests have no bodies: the server's windows do not matter.
            Event::Window { increment: 0, stream: 0 } => {
                return Err(Violation::protocol("WINDOW_UPDATE by nothing"));
            }
            Event::Window { increment: 0, stream } => {
                self.refuse(stream, "WINDOW_UPDATE by nothing", on)?;
            }
            Event::Window { .. } => {}
            Event::Headers { stream, block, end } => self.headers(stream, block, end, on)?,
            Event::Data { stream, len, end } => self.data(stream, len, end, on)?,
        }
        if self.out.len() > MAX_OUT {
            let text = "it asks for more than it reads";
            return Err(Violation { code: code::ENHANCE_YOUR_CALM, text });
        }
        Ok(())
    }

    fn settings(&mut self, entries: Settings<'_>) -> Result<(), Violation> {
        if self.untold.is_none() {
            self.untold = Some(self.next);
            self.limit = usize::MAX;
        }
        for Setting { id, value } in entries.iter() {
            match id {
                SettingId::MAX_CONCURRENT_STREAMS => {
                    self.limit = usize::try_from(value).unwrap_or(usize::MAX);
                }
                SettingId::ENABLE_PUSH if value != 0 => {
                    return Err(Violation::protocol("a server cannot turn push on"));
                }
                SettingId::INITIAL_WINDOW_SIZE if value > MAX_WINDOW => {
                    let text = "a window above 2^31 - 1 bytes";
                    return Err(Violation { code: code::FLOW_CONTROL_ERROR, text });
                }
                SettingId::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Violation::protocol("a frame size out of range"));
                }
                // RFC 7541 §4.2: a table that was made smaller is acknowledged in the next block.
                SettingId::HEADER_TABLE_SIZE if value < 4096 => self.shrink_table = true,
                _ => {}
            }
        }
        push_header(&mut self.out, 0, FrameType::SETTINGS, FLAG_ACK, 0);
        Ok(())
    }

    fn go_away(&mut self, last: u32, error: u32, on: &mut impl FnMut(Outcome)) {
        self.going = Some(self.going.filter(|code| *code != code::NO_ERROR).unwrap_or(error));
        for stream in &mut self.streams {
            if stream.id > last {
                self.open -= 1;
                on(Outcome::Unprocessed(std::mem::take(stream)));
            }
        }
    }

    /// The open stream of this number; `None` of one that is closed.
    fn find(&mut self, id: u32) -> Result<Option<&mut Stream>, Violation> {
        // §5.1: streams that nobody has opened.
        if id == 0 || id.is_multiple_of(2) || id >= self.next {
            return Err(Violation::protocol("a frame on a stream that is idle"));
        }
        let at = self.place(id);
        Ok(self.streams.get_mut(at).filter(|stream| stream.id == id))
    }

    fn close(&mut self, id: u32) -> Option<Stream> {
        let at = self.place(id);
        let stream = self.streams.get_mut(at).filter(|stream| stream.id == id && id != 0)?;
        self.open -= 1;
        Some(std::mem::take(stream))
    }

    fn reset(
        &mut self,
        id: u32,
        error: u32,
        on: &mut impl FnMut(Outcome),
    ) -> Result<(), Violation> {
        if self.find(id)?.is_none() {
            return Ok(());
        }
        let Some(stream) = self.close(id) else { return Ok(()) };
        // More streams were opened than the server takes, before it could say so.
        let untold = self.untold.is_none_or(|untold| id < untold);
        on(if error == code::REFUSED_STREAM && untold {
            Outcome::Unprocessed(stream)
        } else {
            Outcome::Reset(stream, error)
        });
        Ok(())
    }

    /// A stream error (§5.4.2).
    fn refuse(
        &mut self,
        id: u32,
        text: &'static str,
        on: &mut impl FnMut(Outcome),
    ) -> Result<(), Violation> {
        if self.find(id)?.is_some()
            && let Some(stream) = self.close(id)
        {
            push_u32(&mut self.out, FrameType::RST_STREAM, id, code::PROTOCOL_ERROR);
            on(Outcome::Malformed(stream, text));
        }
        Ok(())
    }

    fn headers(
        &mut self,
        id: u32,
        block: Block,
        end: bool,
        on: &mut impl FnMut(Outcome),
    ) -> Result<(), Violation> {
        let Some(stream) = self.find(id)? else { return Ok(()) };
        let trailers = stream.status != 0;
        let wrong = match block.status {
            _ if block.malformed => Some("the response's pseudo-headers are malformed"),
            // §8.1: trailers end the stream and have no pseudo-headers.
            Some(_) if trailers => Some("the response has two heads"),
            None if trailers && !end => Some("trailers do not end the stream"),
            None if !trailers => Some("the response has no status"),
            Some(100..200) if end || block.status == Some(101) => {
                Some("an interim response that is none")
            }
            _ => None,
        };
        if let Some(text) = wrong {
            return self.refuse(id, text, on);
        }
        match block.status {
            // §8.1: interim responses come before the real one.
            Some(100..200) => return Ok(()),
            Some(status) => {
                stream.status = status;
                let begun = *stream;
                self.acknowledged = true;
                on(Outcome::Begun(begun));
            }
            None => {}
        }
        if end {
            self.answer(id, on);
        }
        Ok(())
    }

    fn data(
        &mut self,
        id: u32,
        len: u32,
        end: bool,
        on: &mut impl FnMut(Outcome),
    ) -> Result<(), Violation> {
        self.received += len;
        if self.received >= USED {
            push_u32(&mut self.out, FrameType::WINDOW_UPDATE, 0, self.received);
            self.received = 0;
        }
        let Some(stream) = self.find(id)? else { return Ok(()) };
        if stream.status == 0 {
            return self.refuse(id, "a body comes before the response's head", on);
        }
        stream.received += len;
        if end {
            self.answer(id, on);
        } else if stream.received >= USED {
            let used = std::mem::take(&mut stream.received);
            push_u32(&mut self.out, FrameType::WINDOW_UPDATE, id, used);
        }
        Ok(())
    }

    fn answer(&mut self, id: u32, on: &mut impl FnMut(Outcome)) {
        if let Some(stream) = self.close(id) {
            self.answered += 1;
            on(Outcome::Answered(stream));
        }
    }

    /// Gives requests up that were started `limit` ago. Returns whether the connection seems dead: nothing came
    /// on it since one of them started.
    pub(crate) fn expire(&mut self, now: u64, limit: u64, on: &mut impl FnMut(Outcome)) -> bool {
        if now.saturating_sub(self.oldest) < limit || self.open == 0 {
            return false;
        }
        let mut dead = false;
        self.oldest = u64::MAX;
        for stream in &mut self.streams {
            if stream.id == 0 {
                continue;
            }
            if now.saturating_sub(stream.started) < limit {
                self.oldest = self.oldest.min(stream.started);
                continue;
            }
            dead |= self.last_heard < stream.started;
            push_u32(&mut self.out, FrameType::RST_STREAM, stream.id, code::CANCEL);
            self.open -= 1;
            on(Outcome::TimedOut(std::mem::take(stream)));
        }
        dead
    }

    /// The requests that are under way, when the connection has ended.
    pub(crate) fn drain(&mut self, mut on: impl FnMut(Stream)) {
        for stream in &mut self.streams {
            if stream.id != 0 {
                self.open -= 1;
                on(std::mem::take(stream));
            }
        }
    }

    /// Says goodbye (§6.8).
    pub(crate) fn finish(&mut self) {
        push_header(&mut self.out, 8, FrameType::GOAWAY, 0, 0);
        self.out.extend_from_slice(&[0; 8]);
    }
}

fn push_header(out: &mut Vec<u8>, length: u32, kind: FrameType, flags: u8, stream: u32) {
    out.extend_from_slice(&Header { length, kind, flags, stream }.to_bytes());
}

/// A frame of four bytes.
fn push_u32(out: &mut Vec<u8>, kind: FrameType, stream: u32, value: u32) {
    push_header(out, 4, kind, 0, stream);
    out.extend_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
