//! Cuts the bytes of one direction into frames, as they come. Bodies and header blocks are counted and
//! not kept.

use wire::{http2, spdy};

use crate::event::Kind;
use crate::protocol::Protocol;

/// Bytes of a SETTINGS that are kept; a longer one counts as malformed.
const SETTINGS_ROOM: usize = 16 << 10;
/// Bytes of any other frame that are kept: all that stands before what is not looked at.
const ROOM: usize = 8;
/// The longest frame header.
const HEADER_ROOM: usize = 9;

/// A frame that went by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) stream: u32,
    pub(crate) length: u64,
}

/// The bytes are none of the protocol's: nothing more can be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotFrames;

#[derive(Debug, Clone, Copy)]
enum Header {
    Spdy(spdy::Header),
    Http2(http2::Header),
}

impl Header {
    const fn length(self) -> usize {
        match self {
            Header::Spdy(header) => header.length(),
            Header::Http2(header) => header.length as usize,
        }
    }

    /// Bytes of the frame that are looked at.
    fn room(self) -> usize {
        match self {
            Header::Spdy(spdy::Header::Data { .. }) => 0,
            Header::Spdy(spdy::Header::Control { kind: spdy::FrameType::SETTINGS, .. })
            | Header::Http2(http2::Header { kind: http2::FrameType::SETTINGS, .. }) => {
                SETTINGS_ROOM
            }
            _ => ROOM,
        }
    }
}

/// Where a direction stands.
#[derive(Debug)]
enum State {
    /// In HTTP/2's preface: so many bytes of it were read.
    Preface(usize),
    /// In a frame's header.
    Header { bytes: [u8; HEADER_ROOM], have: usize },
    /// Behind a header: what was kept, and how many bytes are left.
    Payload { header: Header, kept: Vec<u8>, left: usize },
    /// Behind bytes that are no frame.
    Broken,
}

const NO_HEADER: State = State::Header { bytes: [0; HEADER_ROOM], have: 0 };

/// Reads one direction.
#[derive(Debug)]
pub(crate) struct FrameReader {
    protocol: Protocol,
    state: State,
}

impl FrameReader {
    pub(crate) fn new(protocol: Protocol, from_client: bool) -> Self {
        let state = match (protocol, from_client) {
            (Protocol::Http2, true) => State::Preface(0),
            _ => NO_HEADER,
        };
        FrameReader { protocol, state }
    }

    /// The next frame that ends in `input`, from whose front it takes bytes; `None` when it wants more.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Result<Frame, NotFrames>> {
        loop {
            match &mut self.state {
                State::Broken => {
                    *input = &[];
                    return None;
                }
                State::Preface(have) => {
                    let expected = http2::PREFACE.get(*have..).unwrap_or(&[]);
                    let (taken, rest) = input.split_at_checked(expected.len().min(input.len()))?;
                    if !expected.starts_with(taken) {
                        return Some(self.broken());
                    }
                    *have = have.saturating_add(taken.len());
                    *input = rest;
                    if taken.len() < expected.len() {
                        return None;
                    }
                    self.state = NO_HEADER;
                }
                State::Header { bytes, have } => {
                    let len = match self.protocol {
                        Protocol::Http2 => http2::HEADER_LEN,
                        Protocol::Spdy3 | Protocol::Spdy31 => spdy::HEADER_LEN,
                    };
                    while *have < len {
                        let (first, rest) = input.split_first()?;
                        if let Some(to) = bytes.get_mut(*have) {
                            *to = *first;
                        }
                        *have = have.saturating_add(1);
                        *input = rest;
                    }
                    let bytes = *bytes;
                    let Some(header) = header(self.protocol, &bytes) else {
                        return Some(self.broken());
                    };
                    let left = header.length();
                    self.state = State::Payload { header, kept: Vec::new(), left };
                }
                State::Payload { header, kept, left } => {
                    let (taken, rest) = input.split_at_checked((*left).min(input.len()))?;
                    let room = header.room().saturating_sub(kept.len());
                    kept.extend_from_slice(taken.get(..room).unwrap_or(taken));
                    *left = left.saturating_sub(taken.len());
                    *input = rest;
                    if *left > 0 {
                        return None;
                    }
                    let frame = read(*header, kept);
                    self.state = NO_HEADER;
                    return Some(Ok(frame));
                }
            }
        }
    }

    fn broken(&mut self) -> Result<Frame, NotFrames> {
        self.state = State::Broken;
        Err(NotFrames)
    }
}

fn header(protocol: Protocol, bytes: &[u8; HEADER_ROOM]) -> Option<Header> {
    match protocol {
        Protocol::Http2 => Some(Header::Http2(http2::Header::parse(bytes))),
        Protocol::Spdy3 | Protocol::Spdy31 => {
            spdy::Header::parse(bytes.first_chunk()?).ok().map(Header::Spdy)
        }
    }
}

/// The frame of a header and of what was kept behind it.
fn read(header: Header, kept: &[u8]) -> Frame {
    let length = header.length() as u64;
    let (kind, stream) = match header {
        Header::Spdy(header) => read_spdy(header, kept),
        Header::Http2(header) => (read_http2(header, kept), header.stream),
    };
    Frame { kind, stream, length }
}

fn read_spdy(header: spdy::Header, kept: &[u8]) -> (Kind, u32) {
    let (kind, flags) = match header {
        spdy::Header::Data { stream, flags, .. } => {
            return (Kind::Data { fin: flags & spdy::FLAG_FIN != 0 }, stream.value());
        }
        spdy::Header::Control { kind, flags, .. } => (kind, flags),
    };
    let fin = flags & spdy::FLAG_FIN != 0;
    // Of these the header block is left out.
    if kind.has_header_block() {
        let Some(stream) = kept.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) else {
            return (Kind::Malformed, 0);
        };
        let kind = match kind {
            spdy::FrameType::SYN_STREAM => Kind::SynStream { fin },
            spdy::FrameType::SYN_REPLY => Kind::SynReply { fin },
            _ => Kind::Headers { fin },
        };
        return (kind, spdy::StreamId::new(stream).value());
    }
    if kind == spdy::FrameType::CREDENTIAL {
        return (Kind::Credential, 0);
    }
    if !kind.is_known() {
        return (Kind::Other { number: kind.0 }, 0);
    }
    match spdy::Frame::parse(header, kept) {
        Ok(spdy::Frame::RstStream { stream, status }) => {
            (Kind::RstStream { code: status.0 }, stream.value())
        }
        Ok(spdy::Frame::Settings { entries, .. }) => {
            let entries = entries.iter().map(|entry| (entry.id.0, entry.value)).collect();
            (Kind::Settings { ack: false, entries }, 0)
        }
        Ok(spdy::Frame::Ping { .. }) => (Kind::Ping, 0),
        Ok(spdy::Frame::GoAway { status, .. }) => (Kind::Goaway { code: status.0 }, 0),
        Ok(spdy::Frame::WindowUpdate { stream, delta }) => {
            (Kind::WindowUpdate { increment: delta }, stream.value())
        }
        _ => (Kind::Malformed, 0),
    }
}

fn read_http2(header: http2::Header, kept: &[u8]) -> Kind {
    use http2::FrameType;
    let fin = header.has(http2::FLAG_END_STREAM);
    let is_on_stream = header.stream != 0;
    match header.kind {
        FrameType::DATA if is_on_stream => return Kind::Data { fin },
        FrameType::HEADERS if is_on_stream => return Kind::Headers { fin },
        FrameType::PUSH_PROMISE if is_on_stream => return Kind::PushPromise,
        FrameType::CONTINUATION if is_on_stream => return Kind::Continuation,
        FrameType::PRIORITY if is_on_stream => return Kind::Priority,
        FrameType::PRIORITY_UPDATE => return Kind::Priority,
        FrameType::PING if !is_on_stream => return Kind::Ping,
        kind if kind.name().is_none() => return Kind::Other { number: kind.0.into() },
        _ => {}
    }
    // What a GOAWAY says beside its code is left out.
    let length = match header.kind {
        FrameType::GOAWAY => kept.len() as u32,
        _ => header.length,
    };
    match http2::Frame::parse(http2::Header { length, ..header }, kept) {
        Ok(http2::Frame::RstStream { error }) => Kind::RstStream { code: error },
        Ok(http2::Frame::Settings { ack, entries }) => {
            let entries = entries.iter().map(|entry| (entry.id.0.into(), entry.value));
            Kind::Settings { ack, entries: entries.collect() }
        }
        Ok(http2::Frame::GoAway { error, .. }) => Kind::Goaway { code: error },
        Ok(http2::Frame::WindowUpdate { increment }) => Kind::WindowUpdate { increment },
        _ => Kind::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(protocol: Protocol, from_client: bool, bytes: &[u8], step: usize) -> Vec<Frame> {
        let mut reader = FrameReader::new(protocol, from_client);
        let mut frames = Vec::new();
        for mut piece in bytes.chunks(step) {
            while let Some(frame) = reader.next(&mut piece) {
                match frame {
                    Ok(frame) => frames.push(frame),
                    Err(NotFrames) => return frames,
                }
            }
        }
        frames
    }

    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut() {
        let mut bytes = http2::PREFACE.to_vec();
        bytes.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0xa0, 0, 0]);
        bytes.extend([0, 0, 3, 1, 5, 0, 0, 0, 1, 9, 9, 9]);
        bytes.extend([0, 0, 2, 0, 1, 0, 0, 0, 1, 7, 7]);
        bytes.extend([0, 0, 12, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, b'b', b'y', b'e', b'!']);
        bytes.extend([0, 0, 1, 8, 0, 0, 0, 0, 1, 0]);
        for step in [1, 2, 7, 1000] {
            let frames = all(Protocol::Http2, true, &bytes, step);
            let kinds: Vec<_> = frames.iter().map(|frame| (&frame.kind, frame.stream)).collect();
            let settings = Kind::Settings { ack: false, entries: vec![(4, 10 << 20)] };
            let expected = [
                (&settings, 0),
                (&Kind::Headers { fin: true }, 1),
                (&Kind::Data { fin: true }, 1),
                (&Kind::Goaway { code: 2 }, 0),
                (&Kind::Malformed, 1),
            ];
            assert_eq!(kinds, expected, "{step}");
        }
    }

    #[test]
    fn spdys_frames_are_read_without_their_header_blocks() {
        let mut bytes = vec![0x80, 3, 0, 1, 1, 0, 0, 13, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 3];
        bytes.extend([0x80, 3, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0xa0, 0, 0]);
        bytes.extend([0x80, 3, 0, 9, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 1, 0]);
        bytes.extend([0, 0, 0, 5, 1, 0, 0, 2, 1, 1]);
        // RST_STREAM is 8 bytes long.
        bytes.extend([0x80, 3, 0, 3, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 1, 0]);
        for step in [1, 3, 1000] {
            let frames = all(Protocol::Spdy31, false, &bytes, step);
            let kinds: Vec<_> = frames.iter().map(|frame| (&frame.kind, frame.stream)).collect();
            let settings = Kind::Settings { ack: false, entries: vec![(7, 10 << 20)] };
            let expected = [
                (&Kind::SynStream { fin: true }, 5),
                (&settings, 0),
                (&Kind::WindowUpdate { increment: 256 }, 5),
                (&Kind::Data { fin: true }, 5),
                (&Kind::Malformed, 0),
            ];
            assert_eq!(kinds, expected, "{step}");
        }
    }

    #[test]
    fn what_is_no_frame_ends_it() {
        assert_eq!(all(Protocol::Http2, true, b"GET / HTTP/1.1", 3), []);
        assert_eq!(all(Protocol::Spdy3, true, &[0x80, 2, 0, 1, 0, 0, 0, 0], 3), []);
        let mut reader = FrameReader::new(Protocol::Http2, true);
        let mut input = &b"GET"[..];
        assert_eq!(reader.next(&mut input), Some(Err(NotFrames)));
        assert_eq!((reader.next(&mut input), input), (None, &[][..]));
    }
}
