//! The frames that Initial packets may hold (RFC 9000 §12.4, §19).

use super::read_varint;
use crate::{Error, Reader};

const FORMAT: &str = "QUIC frame";

/// A frame of an Initial packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A run of PADDING.
    Padding {
        /// How many of them.
        count: usize,
    },
    /// PING (RFC 9000 §19.2).
    Ping,
    /// ACK; its ranges were checked and left out.
    Ack {
        /// The largest packet number acknowledged.
        largest: u64,
        /// The delay field, not scaled.
        delay: u64,
    },
    /// CRYPTO: a piece of the handshake.
    Crypto {
        /// Where the piece begins in the stream.
        offset: u64,
        /// The piece, as long as the frame says.
        data: &'a [u8],
    },
    /// CONNECTION_CLOSE, of QUIC or of the application (RFC 9000 §19.19).
    Close {
        /// The error code; 0x100 + n is TLS alert n (RFC 9001 §4.8).
        code: u64,
        /// The reason phrase.
        reason: &'a [u8],
    },
}

/// Walks the frames of a decrypted Initial packet. A frame that cannot stand there gives one error
/// and ends the walk.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// A walk over a packet's payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Frames { reader: Reader::new(FORMAT, payload) }
    }

    fn read(&mut self) -> Result<Frame<'a>, Error> {
        match read_varint(&mut self.reader)? {
            0x00 => {
                let rest = self.reader.rest();
                let more = rest.iter().take_while(|byte| **byte == 0).count();
                self.reader.take(more)?;
                Ok(Frame::Padding { count: more.saturating_add(1) })
            }
            0x01 => Ok(Frame::Ping),
            kind @ (0x02 | 0x03) => self.ack(kind == 0x03),
            0x06 => {
                let offset = read_varint(&mut self.reader)?;
                Ok(Frame::Crypto { offset, data: self.bytes()? })
            }
            kind @ (0x1c | 0x1d) => {
                let code = read_varint(&mut self.reader)?;
                if kind == 0x1c {
                    read_varint(&mut self.reader)?;
                }
                Ok(Frame::Close { code, reason: self.bytes()? })
            }
            _ => Err(Error::malformed(FORMAT, "its type may not stand in an Initial packet")),
        }
    }

    fn ack(&mut self, with_ecn: bool) -> Result<Frame<'a>, Error> {
        let largest = read_varint(&mut self.reader)?;
        let delay = read_varint(&mut self.reader)?;
        let ranges = read_varint(&mut self.reader)?;
        let mut smallest = largest.checked_sub(read_varint(&mut self.reader)?);
        // Each range takes two bytes at least, so that the payload bounds the loop.
        for _ in 0..ranges {
            let gap = read_varint(&mut self.reader)?;
            let length = read_varint(&mut self.reader)?;
            // RFC 9000 §19.3.1: a number below 0 is an error.
            smallest =
                smallest.and_then(|s| s.checked_sub(gap.saturating_add(2))?.checked_sub(length));
        }
        if with_ecn {
            for _ in 0..3 {
                read_varint(&mut self.reader)?;
            }
        }
        match smallest {
            Some(_) => Ok(Frame::Ack { largest, delay }),
            None => Err(Error::malformed(FORMAT, "an ACK of packets below number 0")),
        }
    }

    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = read_varint(&mut self.reader)?;
        self.reader.take(usize::try_from(length).unwrap_or(usize::MAX))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, Error>;

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

/// Appends a CRYPTO frame (RFC 9000 §19.6).
pub fn put_crypto(offset: u64, data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(0x06);
    super::put_varint(offset, out)?;
    super::put_varint(data.len() as u64, out)?;
    out.extend_from_slice(data);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..99), kind in 0u8..32) {
            crate::fuzz::quic_frames(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            crate::fuzz::quic_frames(&bytes);
        }

        #[test]
        fn a_crypto_frame_is_read_back(
            offset in 0u64..1 << 40, data in proptest::collection::vec(any::<u8>(), 0..99), pad in 0usize..9,
        ) {
            let mut bytes = vec![0x01];
            put_crypto(offset, &data, &mut bytes).unwrap();
            bytes.extend(vec![0; pad]);
            let frames: Vec<_> = Frames::new(&bytes).map(Result::unwrap).collect();
            let mut expected = vec![Frame::Ping, Frame::Crypto { offset, data: &data }];
            if pad > 0 {
                expected.push(Frame::Padding { count: pad });
            }
            prop_assert_eq!(frames, expected);
        }
    }

    #[test]
    fn a_stream_frame_may_not_stand_here() {
        assert!(matches!(Frames::new(&[0x08, 0]).next(), Some(Err(_))));
    }

    #[test]
    fn hostile_ack_ranges_end() {
        let mut bytes = vec![0x02, 5, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];
        assert!(matches!(Frames::new(&bytes).next(), Some(Err(_))));
        bytes = vec![0x02, 5, 0, 1, 0, 9, 0];
        assert!(matches!(Frames::new(&bytes).next(), Some(Err(_))));
    }
}
