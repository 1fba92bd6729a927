//! HTTP/2 frames (RFC 9113): the header that every frame has, and the payloads of those that say
//! something about flow control or end something. Header blocks are handed on as they stand (HPACK).

use crate::{Error, Reader};

const FORMAT: &str = "HTTP/2";

/// What a client sends before its first frame (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of the header that every frame has (§4.1).
pub const HEADER_LEN: usize = 9;

/// The window that a stream, and the connection, begins with (§6.9.2).
pub const DEFAULT_WINDOW: u32 = 65_535;

/// The largest window: 2^31 - 1 bytes (§6.9.1).
pub const MAX_WINDOW: u32 = 0x7fff_ffff;

/// DATA, HEADERS: the frame is the sender's last on its stream (§6.1).
pub const FLAG_END_STREAM: u8 = 0x01;

/// SETTINGS, PING: it answers another (§6.5, §6.7).
pub const FLAG_ACK: u8 = 0x01;

/// DATA, HEADERS, PUSH_PROMISE: padding follows, its length is in the first byte (§6.1).
pub const FLAG_PADDED: u8 = 0x08;

/// A frame's type (§6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameType(pub u8);

impl FrameType {
    /// A piece of a stream (§6.1).
    pub const DATA: FrameType = FrameType(0);
    /// Opens a stream, or ends one with trailers (§6.2).
    pub const HEADERS: FrameType = FrameType(1);
    /// A stream's priority, deprecated (§6.3).
    pub const PRIORITY: FrameType = FrameType(2);
    /// Ends a stream abnormally (§6.4).
    pub const RST_STREAM: FrameType = FrameType(3);
    /// States how its sender wants to receive (§6.5).
    pub const SETTINGS: FrameType = FrameType(4);
    /// Announces a stream of the server's (§6.6).
    pub const PUSH_PROMISE: FrameType = FrameType(5);
    /// Measures a round trip (§6.7).
    pub const PING: FrameType = FrameType(6);
    /// Ends the connection for new streams (§6.8).
    pub const GOAWAY: FrameType = FrameType(7);
    /// Widens a window (§6.9).
    pub const WINDOW_UPDATE: FrameType = FrameType(8);
    /// More of a header block (§6.10).
    pub const CONTINUATION: FrameType = FrameType(9);
    /// A priority of RFC 9218 §7.1.
    pub const PRIORITY_UPDATE: FrameType = FrameType(16);

    /// Its registered name; `None` of a type that is not known here.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            FrameType::DATA => "DATA",
            FrameType::HEADERS => "HEADERS",
            FrameType::PRIORITY => "PRIORITY",
            FrameType::RST_STREAM => "RST_STREAM",
            FrameType::SETTINGS => "SETTINGS",
            FrameType::PUSH_PROMISE => "PUSH_PROMISE",
            FrameType::PING => "PING",
            FrameType::GOAWAY => "GOAWAY",
            FrameType::WINDOW_UPDATE => "WINDOW_UPDATE",
            FrameType::CONTINUATION => "CONTINUATION",
            FrameType::PRIORITY_UPDATE => "PRIORITY_UPDATE",
            _ => return None,
        })
    }
}

/// The header of a frame (§4.1). Any nine bytes are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of payload, below 2^24.
    pub length: u32,
    /// The frame's type.
    pub kind: FrameType,
    /// Flags; what they mean depends on the type.
    pub flags: u8,
    /// Its stream, 31 bits; 0 is the connection.
    pub stream: u32,
}

impl Header {
    /// The header that these bytes are. The reserved bit is passed over.
    #[must_use]
    pub const fn parse(bytes: &[u8; HEADER_LEN]) -> Self {
        let [x, y, z, kind, flags, a, b, c, d] = *bytes;
        Header {
            length: u32::from_be_bytes([0, x, y, z]),
            kind: FrameType(kind),
            flags,
            stream: u32::from_be_bytes([a, b, c, d]) & MAX_WINDOW,
        }
    }

    /// The header's bytes; of a length above 2^24 - 1 the low 24 bits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [_, x, y, z] = self.length.to_be_bytes();
        let [a, b, c, d] = (self.stream & MAX_WINDOW).to_be_bytes();
        [x, y, z, self.kind.0, self.flags, a, b, c, d]
    }

    /// Whether it has all bits of a flag.
    #[must_use]
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag == flag
    }
}

/// What a setting says (§6.5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettingId(pub u16);

impl SettingId {
    /// Bytes of the receiver's table for HPACK.
    pub const HEADER_TABLE_SIZE: SettingId = SettingId(1);
    /// Whether the sender takes pushed streams.
    pub const ENABLE_PUSH: SettingId = SettingId(2);
    /// Streams that the peer may have open at once.
    pub const MAX_CONCURRENT_STREAMS: SettingId = SettingId(3);
    /// The window in bytes that streams begin with.
    pub const INITIAL_WINDOW_SIZE: SettingId = SettingId(4);
    /// The largest frame that the sender takes, bytes of payload.
    pub const MAX_FRAME_SIZE: SettingId = SettingId(5);
    /// The largest list of header fields that the sender takes, bytes.
    pub const MAX_HEADER_LIST_SIZE: SettingId = SettingId(6);
}

/// An entry of SETTINGS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What it says.
    pub id: SettingId,
    /// Its value, in the unit of the setting (RFC 9113 §6.5.2).
    pub value: u32,
}

impl Setting {
    /// Bytes of an entry (§6.5.1).
    pub const LEN: usize = 6;

    const fn parse(bytes: &[u8; Setting::LEN]) -> Self {
        let [a, b, value @ ..] = *bytes;
        Setting { id: SettingId(u16::from_be_bytes([a, b])), value: u32::from_be_bytes(value) }
    }
}

/// The entries of a SETTINGS frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings<'a> {
    entries: &'a [[u8; Setting::LEN]],
}

impl<'a> Settings<'a> {
    /// The entries in their order. Of several with one id the last counts (§6.5.3).
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Setting> + 'a {
        self.entries.iter().map(Setting::parse)
    }
}

/// A frame, by its type (RFC 9113 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of a stream (§6.1). All of a frame's payload counts for flow control, padding too.
    Data {
        /// The piece, without padding.
        data: &'a [u8],
        /// Bytes of payload that are not the piece: padding and its length.
        padding: usize,
        /// Its sender's last frame on the stream.
        end: bool,
    },
    /// Ends a stream abnormally (§6.4).
    RstStream {
        /// The error code that says why.
        error: u32,
    },
    /// How the frame's sender wants to receive (§6.5).
    Settings {
        /// The peer's were taken; there are no entries.
        ack: bool,
        /// Its entries, in the order of the wire.
        entries: Settings<'a>,
    },
    /// No new streams (§6.8).
    GoAway {
        /// The last stream of the receiver that the sender took.
        last: u32,
        /// The error code that says why.
        error: u32,
    },
    /// Widens the window of the header's stream, or of the connection (§6.9).
    WindowUpdate {
        /// By how many bytes; 1 to 2^31 - 1 are legal.
        increment: u32,
    },
    /// Any other; its payload as it stands.
    Other(&'a [u8]),
}

impl<'a> Frame<'a> {
    /// The frame that a header and the payload behind it are.
    ///
    /// # Errors
    /// The payload has another length than the header says, or than frames of this type have; a stream
    /// where there can be none, or none where one must be.
    pub fn parse(header: Header, payload: &'a [u8]) -> Result<Self, Error> {
        if payload.len() as u64 != u64::from(header.length) {
            let needed = header.length as usize;
            return Err(Error::Truncated { format: FORMAT, needed, had: payload.len() });
        }
        let of_stream = matches!(
            header.kind,
            FrameType::DATA
                | FrameType::HEADERS
                | FrameType::PRIORITY
                | FrameType::RST_STREAM
                | FrameType::PUSH_PROMISE
                | FrameType::CONTINUATION
        );
        let of_connection =
            matches!(header.kind, FrameType::SETTINGS | FrameType::PING | FrameType::GOAWAY);
        if (of_stream && header.stream == 0) || (of_connection && header.stream != 0) {
            return Err(Error::malformed(FORMAT, "a frame on a stream that it cannot be on"));
        }
        let mut reader = Reader::new(FORMAT, payload);
        let frame = match header.kind {
            FrameType::DATA => return data(header, payload),
            FrameType::SETTINGS => return settings(header, payload),
            FrameType::RST_STREAM => Frame::RstStream { error: reader.u32()? },
            FrameType::WINDOW_UPDATE => {
                Frame::WindowUpdate { increment: reader.u32()? & MAX_WINDOW }
            }
            FrameType::GOAWAY => {
                let (last, error) = (reader.u32()? & MAX_WINDOW, reader.u32()?);
                return Ok(Frame::GoAway { last, error });
            }
            _ => return Ok(Frame::Other(payload)),
        };
        // §6.4, §6.9: these have one length.
        match reader.is_empty() {
            true => Ok(frame),
            false => Err(Error::malformed(FORMAT, "a frame is longer than its type allows")),
        }
    }
}

fn data(header: Header, payload: &[u8]) -> Result<Frame<'_>, Error> {
    let end = header.has(FLAG_END_STREAM);
    if !header.has(FLAG_PADDED) {
        return Ok(Frame::Data { data: payload, padding: 0, end });
    }
    let mut reader = Reader::new(FORMAT, payload);
    let padding = usize::from(reader.u8()?);
    // §6.1: padding as long as the payload or longer is an error.
    let data = reader.rest().len().checked_sub(padding).and_then(|len| reader.rest().get(..len));
    let data = data.ok_or(Error::malformed(FORMAT, "padding longer than its frame"))?;
    Ok(Frame::Data { data, padding: payload.len().saturating_sub(data.len()), end })
}

fn settings(header: Header, payload: &[u8]) -> Result<Frame<'_>, Error> {
    let (entries, rest) = payload.as_chunks();
    let ack = header.has(FLAG_ACK);
    if !rest.is_empty() || (ack && !payload.is_empty()) {
        return Err(Error::malformed(FORMAT, "a SETTINGS of a length that it cannot have"));
    }
    Ok(Frame::Settings { ack, entries: Settings { entries } })
}

/// Walks the frames of one direction of a connection, behind the client's [`PREFACE`]. What is no frame,
/// or cut short, gives one error and ends the walk.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// A walk from the first byte of a frame.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Frames { reader: Reader::new(FORMAT, bytes) }
    }

    fn read(&mut self) -> Result<(Header, Frame<'a>), Error> {
        let header = Header::parse(self.reader.array()?);
        let payload = self.reader.take(header.length as usize)?;
        Ok((header, Frame::parse(header, payload)?))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<(Header, Frame<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let frame = self.read();
        if frame.is_err() {
            self.reader = Reader::new(FORMAT, &[]);
        }
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(bytes: &[u8]) -> Result<(Header, Frame<'_>), Error> {
        let mut frames = Frames::new(bytes);
        let first = frames.next().unwrap();
        assert_eq!(frames.next(), None);
        first
    }

    #[test]
    fn frames_read_as_the_rfc_draws_them() {
        // §6.9: the connection's window by 0x9ffff01.
        let bytes = [0, 0, 4, 8, 0, 0x80, 0, 0, 0, 0x89, 0xff, 0xff, 0x01];
        let (header, frame) = one(&bytes).unwrap();
        assert_eq!((header.stream, header.kind.name()), (0, Some("WINDOW_UPDATE")));
        assert_eq!(frame, Frame::WindowUpdate { increment: 0x09ff_ff01 });
        // §6.5: a table of 4096 bytes, windows of 10 MB.
        let bytes = [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0, 0, 4, 0, 0xa0, 0, 0];
        let (_, Frame::Settings { ack: false, entries }) = one(&bytes).unwrap() else { panic!() };
        let entries: Vec<_> = entries.iter().collect();
        assert_eq!(entries[0], Setting { id: SettingId::HEADER_TABLE_SIZE, value: 4096 });
        assert_eq!(entries[1], Setting { id: SettingId::INITIAL_WINDOW_SIZE, value: 10 << 20 });
        // §6.4, §6.8.
        let bytes = [0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 8];
        assert_eq!(one(&bytes).unwrap().1, Frame::RstStream { error: 8 });
        let bytes = [0, 0, 9, 7, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 9];
        assert_eq!(one(&bytes).unwrap().1, Frame::GoAway { last: 3, error: 1 });
        let bytes = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82];
        assert_eq!(one(&bytes).unwrap().1, Frame::Other(&[0x82]));
    }

    #[test]
    fn padding_is_told_from_data() {
        let bytes = [0, 0, 6, 0, 9, 0, 0, 0, 1, 2, b'a', b'b', b'c', 0, 0];
        let (header, frame) = one(&bytes).unwrap();
        assert_eq!(header.length, 6);
        assert_eq!(frame, Frame::Data { data: b"abc", padding: 3, end: true });
        // As long as the frame allows, and longer.
        let all = [0, 0, 3, 0, 8, 0, 0, 0, 1, 2, 0, 0];
        assert_eq!(one(&all).unwrap().1, Frame::Data { data: &[], padding: 3, end: false });
        assert!(one(&[0, 0, 3, 0, 8, 0, 0, 0, 1, 3, 0, 0]).is_err());
        assert!(one(&[0, 0, 0, 0, 8, 0, 0, 0, 1]).is_err());
    }

    #[test]
    fn what_contradicts_the_format_is_an_error() {
        for wrong in [
            // SETTINGS: 5 bytes; entries in an answer; on a stream.
            &[0, 0, 5, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 0, 6, 4, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1],
            &[0, 0, 0, 4, 0, 0, 0, 0, 1],
            // DATA on the connection.
            &[0, 0, 0, 0, 0, 0, 0, 0, 0],
            // WINDOW_UPDATE of 3 and of 5 bytes, RST_STREAM of 5, GOAWAY of 7.
            &[0, 0, 3, 8, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0, 0, 5, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0],
            &[0, 0, 5, 3, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0],
            &[0, 0, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
            // Cut in the header, and in the payload.
            &[0, 0, 4, 8, 0, 0, 0, 0],
            &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(one(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn a_header_is_read_back(length in 0u32..1 << 24, kind: u8, flags: u8, stream in 0u32..1 << 31) {
            let header = Header { length, kind: FrameType(kind), flags, stream };
            prop_assert_eq!(Header::parse(&header.to_bytes()), header);
        }

        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), kind in 0u8..11) {
            crate::fuzz::http2_frames(&bytes);
            let len = bytes.len() as u8;
            if let Some(front) = bytes.first_chunk_mut::<4>() {
                *front = [0, 0, len.saturating_sub(9), kind];
            }
            crate::fuzz::http2_frames(&bytes);
        }
    }
}
