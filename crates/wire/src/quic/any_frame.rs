//! The frames that packets of any type may hold (RFC 9000 §19, RFC 9221 §4).

use super::read_varint;
use crate::{Error, Reader};

const FORMAT: &str = "QUIC frame";

/// Whether streams have one direction or two (RFC 9000 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamType {
    /// Both sides send.
    Bidirectional,
    /// Only the side that opened it sends.
    Unidirectional,
}

/// A frame of any packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyFrame<'a> {
    /// A run of PADDING (§19.1).
    Padding {
        /// How many of them.
        count: usize,
    },
    /// PING (§19.2).
    Ping,
    /// ACK (§19.3).
    Ack {
        /// The delay field, not scaled.
        delay: u64,
        /// Packet numbers, smallest and largest of each range, from the largest range down.
        ranges: Vec<(u64, u64)>,
        /// Counts of ECT(0), ECT(1) and CE.
        ecn: Option<[u64; 3]>,
    },
    /// RESET_STREAM (§19.4).
    ResetStream {
        /// The stream's identifier.
        stream: u64,
        /// The application's error code.
        code: u64,
        /// Bytes that were sent on the stream.
        final_size: u64,
    },
    /// STOP_SENDING (§19.5).
    StopSending {
        /// The stream's identifier.
        stream: u64,
        /// The application's error code.
        code: u64,
    },
    /// CRYPTO (§19.6).
    Crypto {
        /// The offset of its data in the handshake's bytes.
        offset: u64,
        /// Bytes of the handshake.
        data: &'a [u8],
    },
    /// NEW_TOKEN (§19.7).
    NewToken {
        /// The token for a later connection.
        token: &'a [u8],
    },
    /// STREAM (§19.8).
    Stream {
        /// The stream's identifier.
        stream: u64,
        /// The offset of its data in the stream.
        offset: u64,
        /// Whether the stream ends with it.
        fin: bool,
        /// Bytes of the stream.
        data: &'a [u8],
    },
    /// MAX_DATA (§19.9).
    MaxData {
        /// Bytes that may be sent on the connection.
        maximum: u64,
    },
    /// MAX_STREAM_DATA (§19.10).
    MaxStreamData {
        /// The stream's identifier.
        stream: u64,
        /// Bytes that may be sent on it.
        maximum: u64,
    },
    /// MAX_STREAMS (§19.11).
    MaxStreams {
        /// The streams' type.
        kind: StreamType,
        /// Streams that may be opened.
        maximum: u64,
    },
    /// DATA_BLOCKED (§19.12).
    DataBlocked {
        /// The limit that was reached, bytes.
        limit: u64,
    },
    /// STREAM_DATA_BLOCKED (§19.13).
    StreamDataBlocked {
        /// The stream's identifier.
        stream: u64,
        /// The limit that was reached, bytes.
        limit: u64,
    },
    /// STREAMS_BLOCKED (§19.14).
    StreamsBlocked {
        /// The streams' type.
        kind: StreamType,
        /// The limit that was reached, streams.
        limit: u64,
    },
    /// NEW_CONNECTION_ID (§19.15).
    NewConnectionId {
        /// The identifier's number.
        sequence: u64,
        /// Identifiers below this number are to be retired.
        retire_prior_to: u64,
        /// The identifier.
        id: &'a [u8],
        /// Its stateless reset token.
        token: &'a [u8; 16],
    },
    /// RETIRE_CONNECTION_ID (§19.16).
    RetireConnectionId {
        /// The identifier's number.
        sequence: u64,
    },
    /// PATH_CHALLENGE (§19.17).
    PathChallenge {
        /// Arbitrary bytes.
        data: &'a [u8; 8],
    },
    /// PATH_RESPONSE (§19.18).
    PathResponse {
        /// The bytes of the challenge.
        data: &'a [u8; 8],
    },
    /// CONNECTION_CLOSE (§19.19).
    Close {
        /// Whether the application closes it, not QUIC.
        by_application: bool,
        /// The error code; of QUIC 0x100 + n is TLS alert n (RFC 9001 §4.8).
        code: u64,
        /// The type of the frame that caused it; of QUIC only.
        frame_type: Option<u64>,
        /// The reason phrase.
        reason: &'a [u8],
    },
    /// HANDSHAKE_DONE (§19.20).
    HandshakeDone,
    /// DATAGRAM (RFC 9221 §4).
    Datagram {
        /// The application's bytes.
        data: &'a [u8],
    },
    /// A type that is not known; its end is not either.
    Unknown {
        /// The type.
        kind: u64,
        /// The rest of the packet.
        rest: &'a [u8],
    },
}

/// Walks the frames of a decrypted packet. A frame that cannot be read gives one error and ends the walk.
#[derive(Debug, Clone)]
pub struct AnyFrames<'a> {
    reader: Reader<'a>,
}

impl<'a> AnyFrames<'a> {
    /// A walk over a packet's payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        AnyFrames { reader: Reader::new(FORMAT, payload) }
    }

    fn number(&mut self) -> Result<u64, Error> {
        read_varint(&mut self.reader)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.number()?;
        self.reader.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    fn rest(&mut self) -> Result<&'a [u8], Error> {
        let rest = self.reader.rest();
        self.reader.take(rest.len())
    }

    fn read(&mut self) -> Result<AnyFrame<'a>, Error> {
        let kind = self.number()?;
        Ok(match kind {
            0x00 => {
                let more = self.reader.rest().iter().take_while(|byte| **byte == 0).count();
                self.reader.take(more)?;
                AnyFrame::Padding { count: more.saturating_add(1) }
            }
            0x01 => AnyFrame::Ping,
            0x02 | 0x03 => self.ack(kind == 0x03)?,
            0x04 => AnyFrame::ResetStream {
                stream: self.number()?,
                code: self.number()?,
                final_size: self.number()?,
            },
            0x05 => AnyFrame::StopSending { stream: self.number()?, code: self.number()? },
            0x06 => AnyFrame::Crypto { offset: self.number()?, data: self.bytes()? },
            0x07 => AnyFrame::NewToken { token: self.bytes()? },
            0x08..=0x0f => self.stream(kind)?,
            0x10 => AnyFrame::MaxData { maximum: self.number()? },
            0x11 => AnyFrame::MaxStreamData { stream: self.number()?, maximum: self.number()? },
            0x12 | 0x13 => AnyFrame::MaxStreams { kind: direction(kind), maximum: self.number()? },
            0x14 => AnyFrame::DataBlocked { limit: self.number()? },
            0x15 => AnyFrame::StreamDataBlocked { stream: self.number()?, limit: self.number()? },
            0x16 | 0x17 => {
                AnyFrame::StreamsBlocked { kind: direction(kind), limit: self.number()? }
            }
            0x18 => AnyFrame::NewConnectionId {
                sequence: self.number()?,
                retire_prior_to: self.number()?,
                id: self.reader.vec8()?,
                token: self.reader.array()?,
            },
            0x19 => AnyFrame::RetireConnectionId { sequence: self.number()? },
            0x1a => AnyFrame::PathChallenge { data: self.reader.array()? },
            0x1b => AnyFrame::PathResponse { data: self.reader.array()? },
            0x1c | 0x1d => self.close(kind == 0x1d)?,
            0x1e => AnyFrame::HandshakeDone,
            0x30 => AnyFrame::Datagram { data: self.rest()? },
            0x31 => AnyFrame::Datagram { data: self.bytes()? },
            kind => AnyFrame::Unknown { kind, rest: self.rest()? },
        })
    }

    // §19.3: the first range ends at the largest number; each other one is told by the gap above it.
    fn ack(&mut self, with_ecn: bool) -> Result<AnyFrame<'a>, Error> {
        let below_zero = || Error::malformed(FORMAT, "an ACK of packets below number 0");
        let (largest, delay, more) = (self.number()?, self.number()?, self.number()?);
        let mut smallest = largest.checked_sub(self.number()?).ok_or_else(below_zero)?;
        let mut ranges = vec![(smallest, largest)];
        // Each range takes two bytes at least, so that the payload bounds the loop.
        for _ in 0..more {
            let (gap, length) = (self.number()?, self.number()?);
            let largest = smallest.checked_sub(gap.saturating_add(2)).ok_or_else(below_zero)?;
            smallest = largest.checked_sub(length).ok_or_else(below_zero)?;
            ranges.push((smallest, largest));
        }
        let ecn = match with_ecn {
            true => Some([self.number()?, self.number()?, self.number()?]),
            false => None,
        };
        Ok(AnyFrame::Ack { delay, ranges, ecn })
    }

    // §19.8: three bits of the type.
    fn stream(&mut self, kind: u64) -> Result<AnyFrame<'a>, Error> {
        let stream = self.number()?;
        let offset = if kind & 0x04 != 0 { self.number()? } else { 0 };
        let data = if kind & 0x02 != 0 { self.bytes()? } else { self.rest()? };
        Ok(AnyFrame::Stream { stream, offset, fin: kind & 0x01 != 0, data })
    }

    fn close(&mut self, by_application: bool) -> Result<AnyFrame<'a>, Error> {
        let code = self.number()?;
        let frame_type = if by_application { None } else { Some(self.number()?) };
        Ok(AnyFrame::Close { by_application, code, frame_type, reason: self.bytes()? })
    }
}

const fn direction(kind: u64) -> StreamType {
    if kind & 1 == 0 { StreamType::Bidirectional } else { StreamType::Unidirectional }
}

impl<'a> Iterator for AnyFrames<'a> {
    type Item = Result<AnyFrame<'a>, Error>;

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

    fn read(bytes: &[u8]) -> Vec<AnyFrame<'_>> {
        AnyFrames::new(bytes).map(Result::unwrap).collect()
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..99), kind in 0u8..0x34,
        ) {
            crate::fuzz::quic_frames(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            crate::fuzz::quic_frames(&bytes);
        }
    }

    #[test]
    fn frames_are_read_to_the_end_of_each() {
        let bytes = [
            &[0x08, 4][..], // To the end of the packet.
            b"all the rest",
        ];
        let stream = |stream, offset, fin, data| AnyFrame::Stream { stream, offset, fin, data };
        assert_eq!(read(&bytes.concat()), [stream(4, 0, false, b"all the rest")]);
        let bytes = [
            &[0x0f, 8, 0x40, 0x64, 2, 7, 7][..],
            &[0x10, 9, 0x11, 4, 10, 0x12, 1, 0x13, 2, 0x14, 3, 0x15, 0, 4, 0x16, 5, 0x17, 6],
            &[0x04, 1, 2, 3, 0x05, 1, 2, 0x06, 1, 1, 9, 0x07, 1, 8],
            &[0x18, 1, 0, 2, 5, 5],
            &[6; 16],
            &[0x19, 1, 0x1a, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x1c, 10, 6, 1, b'a', 0x1d, 0, 0, 0x1e, 0x31, 1, 3, 0x01, 0, 0, 0],
            &[0x30, 1, 2],
        ];
        use AnyFrame as F;
        use StreamType::{Bidirectional, Unidirectional};
        let data = &[1, 2, 3, 4, 5, 6, 7, 8];
        let expected = [
            stream(8, 100, true, &[7, 7]),
            F::MaxData { maximum: 9 },
            F::MaxStreamData { stream: 4, maximum: 10 },
            F::MaxStreams { kind: Bidirectional, maximum: 1 },
            F::MaxStreams { kind: Unidirectional, maximum: 2 },
            F::DataBlocked { limit: 3 },
            F::StreamDataBlocked { stream: 0, limit: 4 },
            F::StreamsBlocked { kind: Bidirectional, limit: 5 },
            F::StreamsBlocked { kind: Unidirectional, limit: 6 },
            F::ResetStream { stream: 1, code: 2, final_size: 3 },
            F::StopSending { stream: 1, code: 2 },
            F::Crypto { offset: 1, data: &[9] },
            F::NewToken { token: &[8] },
            F::NewConnectionId { sequence: 1, retire_prior_to: 0, id: &[5, 5], token: &[6; 16] },
            F::RetireConnectionId { sequence: 1 },
            F::PathChallenge { data },
            F::PathResponse { data },
            F::Close { by_application: false, code: 10, frame_type: Some(6), reason: b"a" },
            F::Close { by_application: true, code: 0, frame_type: None, reason: b"" },
            F::HandshakeDone,
            F::Datagram { data: &[3] },
            F::Ping,
            F::Padding { count: 3 },
            F::Datagram { data: &[1, 2] },
        ];
        assert_eq!(read(&bytes.concat()), expected);
        assert_eq!(read(&[0x3f, 1, 2]), [F::Unknown { kind: 0x3f, rest: &[1, 2] }]);
    }

    // RFC 9000 §19.3.1: smallest = largest - ACK range; largest = previous smallest - gap - 2.
    #[test]
    fn ranges_of_an_ack_are_counted_down() {
        let ranges = vec![(8, 10), (3, 5), (0, 0)];
        let frame = AnyFrame::Ack { delay: 7, ranges: ranges.clone(), ecn: None };
        assert_eq!(read(&[0x02, 10, 7, 2, 2, 1, 2, 1, 0]), [frame]);
        let frame = AnyFrame::Ack { delay: 7, ranges, ecn: Some([1, 2, 3]) };
        assert_eq!(read(&[0x03, 10, 7, 2, 2, 1, 2, 1, 0, 1, 2, 3]), [frame]);
        for hostile in [&[0x02, 5, 0, 1, 0, 9, 0][..], &[0x02, 5, 0, 0, 6], &[0x02, 0xff]] {
            assert!(matches!(AnyFrames::new(hostile).next(), Some(Err(_))), "{hostile:?}");
        }
    }
}
