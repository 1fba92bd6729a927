//! SPDY/3 and SPDY/3.1 (SPDY Protocol, drafts 3 and 3.1; sections are those of draft 3.1 unless draft
//! 3 is named): frame headers, control frames, settings, status codes and the name/value header block
//! in its uncompressed form. Both versions have the same frames, and say version 3.

mod block;
mod frame;
mod settings;
mod status;

use std::fmt;

use crate::Error;

pub use block::{Headers, NameValues, Pairs, values};
pub use frame::{Frame, Frames};
pub use settings::{Setting, SettingId, Settings};
pub use status::{GoAwayStatus, RstStatus};

const FORMAT: &str = "SPDY";

/// Bytes of the header that every frame has (§2.2).
pub const HEADER_LEN: usize = 8;

/// The version in control frames of SPDY/3 and of SPDY/3.1 (§2.2.1).
pub const VERSION: u16 = 3;

/// The most that a frame's length can say: 24 bits.
pub const MAX_LENGTH: usize = 0x00ff_ffff;

/// A control frame that a receiver must be able to take, in bytes of its data (§2.2.1).
pub const MIN_CONTROL_FRAME: usize = 8192;

/// The window that a stream, and in SPDY/3.1 the session, begins with (§2.6.8: "64KB").
pub const DEFAULT_WINDOW: u32 = 64 << 10;

/// The largest window: 2^31 - 1 bytes (§2.6.8).
pub const MAX_WINDOW: u32 = 0x7fff_ffff;

/// The frame is the sender's last on its stream (§2.2.2, §2.6.1).
pub const FLAG_FIN: u8 = 0x01;

/// SYN_STREAM: only its sender may send on the stream (§2.6.1).
pub const FLAG_UNIDIRECTIONAL: u8 = 0x02;

/// SETTINGS: the client forgets what it has persisted (§2.6.4).
pub const FLAG_CLEAR_SETTINGS: u8 = 0x01;

/// A stream's identifier, 31 bits: odd for the client's, even for the server's (§2.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u32);

impl StreamId {
    /// No stream; in WINDOW_UPDATE of SPDY/3.1 the session.
    pub const SESSION: StreamId = StreamId(0);

    /// The identifier of these 31 bits; the reserved bit is left out.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        StreamId(bits & MAX_WINDOW)
    }

    /// The identifier, 31 bits.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// Whether a client opened it.
    #[must_use]
    pub const fn is_clients(self) -> bool {
        self.0 & 1 == 1
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A stream's priority, 0 (sent first) to 7 (§2.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// 0: sent first.
    pub const HIGHEST: Priority = Priority(0);
    /// 7: sent last.
    pub const LOWEST: Priority = Priority(7);
    /// How many there are.
    pub const COUNT: usize = 8;

    /// The priority, if it is one: 0 to 7.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 8 { Some(Priority(value)) } else { None }
    }

    /// The priority as on the wire, 0 to 7.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }
}

/// A control frame's type (§2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameType(pub u16);

impl FrameType {
    /// Opens a stream (§2.6.1).
    pub const SYN_STREAM: FrameType = FrameType(1);
    /// Accepts one (§2.6.2).
    pub const SYN_REPLY: FrameType = FrameType(2);
    /// Ends one abnormally (§2.6.3).
    pub const RST_STREAM: FrameType = FrameType(3);
    /// States how its sender wants to receive (§2.6.4).
    pub const SETTINGS: FrameType = FrameType(4);
    /// Measures a round trip (§2.6.5).
    pub const PING: FrameType = FrameType(6);
    /// Ends the session for new streams (§2.6.6).
    pub const GOAWAY: FrameType = FrameType(7);
    /// More headers on a stream (§2.6.7).
    pub const HEADERS: FrameType = FrameType(8);
    /// Widens a window (§2.6.8).
    pub const WINDOW_UPDATE: FrameType = FrameType(9);
    /// A client certificate (draft 3 §2.6.9); gone in draft 3.1.
    pub const CREDENTIAL: FrameType = FrameType(10);

    /// Whether its data end in a compressed name/value header block, which a receiver cannot leave
    /// out without losing the state of compression (§2.4.1).
    #[must_use]
    pub const fn has_header_block(self) -> bool {
        matches!(self, FrameType::SYN_STREAM | FrameType::SYN_REPLY | FrameType::HEADERS)
    }

    /// Whether it is one of those above.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(self.0, 1..=4 | 6..=10)
    }
}

/// The header of a frame (§2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Of a control frame (§2.2.1).
    Control {
        /// What kind of control frame it is.
        kind: FrameType,
        /// Flags; what they mean depends on the type.
        flags: u8,
        /// Bytes that follow the header.
        length: u32,
    },
    /// Of a data frame (§2.2.2).
    Data {
        /// The stream that the data are of.
        stream: StreamId,
        /// [`FLAG_FIN`] or none.
        flags: u8,
        /// Bytes of payload.
        length: u32,
    },
}

impl Header {
    /// The header that these bytes are.
    ///
    /// # Errors
    /// A control frame of another version than 3.
    pub const fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let [a, b, c, d, flags, x, y, z] = *bytes;
        let length = u32::from_be_bytes([0, x, y, z]);
        if a & 0x80 == 0 {
            let stream = StreamId::new(u32::from_be_bytes([a, b, c, d]));
            return Ok(Header::Data { stream, flags, length });
        }
        if u16::from_be_bytes([a & 0x7f, b]) != VERSION {
            return Err(Error::malformed(FORMAT, "its version is not 3"));
        }
        Ok(Header::Control { kind: FrameType(u16::from_be_bytes([c, d])), flags, length })
    }

    /// The header's bytes; of a length above [`MAX_LENGTH`] the low 24 bits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let (first, flags, length) = match self {
            Header::Control { kind, flags, length } => {
                (0x8000_0000 | (VERSION as u32) << 16 | kind.0 as u32, flags, length)
            }
            Header::Data { stream, flags, length } => (stream.0, flags, length),
        };
        let [a, b, c, d] = first.to_be_bytes();
        let [_, x, y, z] = length.to_be_bytes();
        [a, b, c, d, flags, x, y, z]
    }

    /// Bytes that follow the header.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Header::Control { length, .. } | Header::Data { length, .. } => length as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..99), kind in 0u8..12) {
            crate::fuzz::spdy_frames(&bytes);
            let len = bytes.len() as u8;
            if let Some(front) = bytes.first_chunk_mut::<8>() {
                *front = [0x80, 3, 0, kind, 1, 0, 0, len - 8];
            }
            crate::fuzz::spdy_frames(&bytes);
        }

        #[test]
        fn a_header_is_read_back(stream: u32, flags: u8, length in 0u32..1 << 24, kind: u16) {
            for header in [
                Header::Data { stream: StreamId::new(stream), flags, length },
                Header::Control { kind: FrameType(kind), flags, length },
            ] {
                prop_assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
            }
        }
    }

    #[test]
    fn version_2_is_refused() {
        assert!(Header::parse(&[0x80, 2, 0, 1, 0, 0, 0, 0]).is_err());
    }
}
