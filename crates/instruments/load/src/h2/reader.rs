//! What a server sends on an HTTP/2 connection, frame by frame, however it is cut (RFC 9113 §4, §6). Memory is
//! bounded: of a body nothing is kept, of other frames one at a time, of a header block [`MAX_BLOCK`] bytes.

use wire::http2::{FLAG_END_STREAM, FLAG_PADDED, Frame, FrameType, HEADER_LEN, Header, Settings};

use super::hpack::{Block, Broken, Decoder};

/// The largest frame that is taken (§6.5.2, the initial value).
const MAX_FRAME: u32 = 16_384;
/// The longest header block that is taken, in bytes.
const MAX_BLOCK: usize = 256 * 1024;
/// Most frames of a header block: empty ones cost time, and no bytes of it.
const MAX_PIECES: u32 = 1024;
const FLAG_END_HEADERS: u8 = 0x04;
const FLAG_PRIORITY: u8 = 0x20;

/// Error codes (§7).
pub(crate) mod code {
    pub(crate) const NO_ERROR: u32 = 0;
    pub(crate) const PROTOCOL_ERROR: u32 = 1;
    pub(crate) const FLOW_CONTROL_ERROR: u32 = 3;
    pub(crate) const FRAME_SIZE_ERROR: u32 = 6;
    pub(crate) const REFUSED_STREAM: u32 = 7;
    pub(crate) const CANCEL: u32 = 8;
    pub(crate) const COMPRESSION_ERROR: u32 = 9;
    pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

    /// The name of an error code.
    pub(crate) fn name(code: u32) -> Option<&'static str> {
        let names = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        usize::try_from(code).ok().and_then(|code| names.get(code).copied())
    }
}

/// A connection error of the server's (§5.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The code that the server is told.
    pub(crate) code: u32,
    pub(crate) text: &'static str,
}

impl Violation {
    pub(crate) const fn protocol(text: &'static str) -> Violation {
        Violation { code: code::PROTOCOL_ERROR, text }
    }
}

/// Content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Settings(Settings<'a>),
    SettingsAck,
    Ping([u8; 8]),
    GoAway {
        last: u32,
        error: u32,
    },
    Reset {
        stream: u32,
        error: u32,
    },
    Window {
        stream: u32,
        increment: u32,
    },
    Headers {
        stream: u32,
        block: Block,
        end: bool,
    },
    /// A whole DATA frame; `len` is what flow control counts.
    Data {
        stream: u32,
        len: u32,
        end: bool,
    },
}

/// Where in a frame the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    /// The payload is gathered.
    Payload(Header),
    /// The payload is passed over; so many bytes are left.
    Skip(Header, u32),
}

/// A header block whose end is to come.
#[derive(Debug, Clone, Copy)]
struct Open {
    stream: u32,
    end: bool,
    pieces: u32,
}

/// Reads frames.
#[derive(Debug)]
pub(crate) struct Reader {
    state: State,
    header: [u8; HEADER_LEN],
    have: usize,
    payload: Vec<u8>,
    block: Vec<u8>,
    open: Option<Open>,
    begun: bool,
    decoder: Decoder,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            state: State::Header,
            header: [0; HEADER_LEN],
            have: 0,
            payload: Vec::new(),
            block: Vec::new(),
            open: None,
            begun: false,
            decoder: Decoder::default(),
        }
    }
}

impl Reader {
    /// Takes what came.
    ///
    /// # Errors
    /// [`Violation`], of the frames or from `on`: the connection is over.
    pub(crate) fn receive(
        &mut self,
        mut data: &[u8],
        on: &mut impl FnMut(Event<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        loop {
            match self.state {
                State::Header => {
                    let Some(header) = self.take_header(&mut data) else { return Ok(()) };
                    self.begin(header)?;
                }
                State::Payload(header) => {
                    let len = header.length as usize;
                    // The usual payload comes in one piece, and is not copied.
                    if self.payload.is_empty()
                        && let Some((payload, rest)) = data.split_at_checked(len)
                    {
                        data = rest;
                        self.state = State::Header;
                        self.frame(header, payload, on)?;
                        continue;
                    }
                    let missing = len.saturating_sub(self.payload.len()).min(data.len());
                    let (taken, rest) = data.split_at_checked(missing).unwrap_or((data, &[]));
                    self.payload.extend_from_slice(taken);
                    data = rest;
                    if self.payload.len() < len {
                        return Ok(());
                    }
                    self.state = State::Header;
                    let payload = std::mem::take(&mut self.payload);
                    let done = self.frame(header, &payload, on);
                    self.payload = payload;
                    self.payload.clear();
                    done?;
                }
                State::Skip(header, left) => {
                    if left > 0 && data.is_empty() {
                        return Ok(());
                    }
                    // §6.1: padding as long as the payload or longer is an error.
                    if left == header.length
                        && header.kind == FrameType::DATA
                        && header.has(FLAG_PADDED)
                        && data.first().is_none_or(|pad| u32::from(*pad) >= header.length)
                    {
                        return Err(Violation::protocol("padding longer than its frame"));
                    }
                    let taken = (left as usize).min(data.len());
                    data = data.get(taken..).unwrap_or_default();
                    let left = left - taken as u32;
                    if left > 0 {
                        self.state = State::Skip(header, left);
                        return Ok(());
                    }
                    self.state = State::Header;
                    if header.kind == FrameType::DATA {
                        let end = header.has(FLAG_END_STREAM);
                        on(Event::Data { stream: header.stream, len: header.length, end })?;
                    }
                }
            }
        }
    }

    fn take_header(&mut self, data: &mut &[u8]) -> Option<Header> {
        if self.have == 0
            && let Some((header, rest)) = data.split_first_chunk()
        {
            *data = rest;
            return Some(Header::parse(header));
        }
        let room = self.header.get_mut(self.have..)?;
        let taken = room.len().min(data.len());
        let (bytes, rest) = data.split_at_checked(taken)?;
        room.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        *data = rest;
        self.have += taken;
        if self.have < HEADER_LEN {
            return None;
        }
        self.have = 0;
        Some(Header::parse(&self.header))
    }

    /// Begins a frame.
    fn begin(&mut self, header: Header) -> Result<(), Violation> {
        // §3.4: SETTINGS comes first.
        if !self.begun {
            if header.to_bytes().starts_with(b"HTTP/1.") {
                return Err(Violation::protocol("it answered in HTTP/1.1"));
            }
            if header.kind != FrameType::SETTINGS || header.has(0x01) {
                return Err(Violation::protocol("it does not begin with SETTINGS"));
            }
            self.begun = true;
        }
        if header.length > MAX_FRAME {
            let text = "a frame is longer than 16384 bytes";
            return Err(Violation { code: code::FRAME_SIZE_ERROR, text });
        }
        // §6.10: nothing comes between the pieces of a header block.
        let continues = header.kind == FrameType::CONTINUATION;
        let expected = self.open.map(|open| open.stream);
        if continues != expected.is_some() || (continues && expected != Some(header.stream)) {
            return Err(Violation::protocol("CONTINUATION is missing or out of place"));
        }
        if header.kind == FrameType::DATA && header.stream == 0 {
            return Err(Violation::protocol("DATA on the connection"));
        }
        if header.kind == FrameType::DATA && header.length == 0 && header.has(FLAG_PADDED) {
            return Err(Violation::protocol("padding longer than its frame"));
        }
        self.state = match header.kind {
            FrameType::HEADERS
            | FrameType::CONTINUATION
            | FrameType::RST_STREAM
            | FrameType::SETTINGS
            | FrameType::PUSH_PROMISE
            | FrameType::PING
            | FrameType::GOAWAY
            | FrameType::WINDOW_UPDATE => State::Payload(header),
            // §5.5: unknown ones are passed over.
            _ => State::Skip(header, header.length),
        };
        Ok(())
    }

    fn frame(
        &mut self,
        header: Header,
        payload: &[u8],
        on: &mut impl FnMut(Event<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let stream = header.stream;
        match Frame::parse(header, payload) {
            Err(_) => {
                let text = "a frame has a length or a stream that it cannot have";
                Err(Violation { code: code::FRAME_SIZE_ERROR, text })
            }
            Ok(Frame::Settings { ack: true, .. }) => on(Event::SettingsAck),
            Ok(Frame::Settings { entries, .. }) => on(Event::Settings(entries)),
            Ok(Frame::GoAway { last, error }) => on(Event::GoAway { last, error }),
            Ok(Frame::RstStream { error }) => on(Event::Reset { stream, error }),
            Ok(Frame::WindowUpdate { increment }) => on(Event::Window { stream, increment }),
            Ok(Frame::Data { .. }) => Ok(()),
            Ok(Frame::Other(payload)) => match header.kind {
                FrameType::HEADERS => self.headers(header, payload, on),
                FrameType::CONTINUATION => {
                    let Some(open) = &mut self.open else { return Ok(()) };
                    open.pieces += 1;
                    let open = *open;
                    self.gather(open, payload)?;
                    if header.has(FLAG_END_HEADERS) {
                        self.open = None;
                        let gathered = std::mem::take(&mut self.block);
                        let done = self.block(open.stream, &gathered, open.end, on);
                        self.block = gathered;
                        self.block.clear();
                        done?;
                    }
                    Ok(())
                }
                FrameType::PING => {
                    let text = "PING is not of 8 bytes";
                    let data = payload
                        .try_into()
                        .map_err(|_| Violation { code: code::FRAME_SIZE_ERROR, text })?;
                    if header.has(0x01) { Ok(()) } else { on(Event::Ping(data)) }
                }
                // It was told that push is off.
                FrameType::PUSH_PROMISE => Err(Violation::protocol("PUSH_PROMISE, with push off")),
                _ => Ok(()),
            },
        }
    }

    fn headers(
        &mut self,
        header: Header,
        payload: &[u8],
        on: &mut impl FnMut(Event<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let fragment = fragment(header, payload)
            .ok_or(Violation::protocol("HEADERS are shorter than their padding and priority"))?;
        let (stream, end) = (header.stream, header.has(FLAG_END_STREAM));
        if header.has(FLAG_END_HEADERS) {
            return self.block(stream, fragment, end, on);
        }
        let open = Open { stream, end, pieces: 1 };
        self.open = Some(open);
        self.gather(open, fragment)
    }

    fn gather(&mut self, open: Open, fragment: &[u8]) -> Result<(), Violation> {
        self.block.extend_from_slice(fragment);
        if self.block.len() > MAX_BLOCK || open.pieces > MAX_PIECES {
            let text = "the response's header block is longer than 256 KB or 1024 frames";
            return Err(Violation { code: code::ENHANCE_YOUR_CALM, text });
        }
        Ok(())
    }

    fn block(
        &mut self,
        stream: u32,
        block: &[u8],
        end: bool,
        on: &mut impl FnMut(Event<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let block = self.decoder.decode(block).map_err(|Broken| Violation {
            code: code::COMPRESSION_ERROR,
            text: "a header block that is not HPACK",
        })?;
        on(Event::Headers { stream, block, end })
    }
}

/// A header block without padding and priority (§6.2).
fn fragment(header: Header, payload: &[u8]) -> Option<&[u8]> {
    let (mut rest, mut padding) = (payload, 0);
    if header.has(FLAG_PADDED) {
        let (pad, behind) = rest.split_first()?;
        (rest, padding) = (behind, usize::from(*pad));
    }
    if header.has(FLAG_PRIORITY) {
        rest = rest.get(5..)?;
    }
    rest.get(..rest.len().checked_sub(padding)?)
}
