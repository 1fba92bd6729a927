//! The envelope of the `paper` profile: one handshake payload in at least 1024 bytes.
//!
//! ```text
//! 0        2                2 + length          max(1024, 2 + length)
//! | length | payload        | zeros             |
//! ```
//!
//! The length is big-endian and of the payload alone. It is below 0x1400, so that the first byte
//! tells an envelope from a TLS record, whose type is 0x14 or more (RFC 8446 §5.1). An envelope is
//! framing of the byte stream: it may span segments, and nothing is said of where it is cut.

use fault::{Explain, Fault};
use thiserror::Error;

/// The least length of an envelope in bytes (document §4.2: a payload of 1024 bytes).
pub const MIN_LEN: usize = 1024;

/// The longest payload in bytes: the length's first byte stays below that of a TLS record.
pub const MAX_PAYLOAD: usize = 0x13ff;

/// The least TCP segment length, header included, of a handshake segment that carries an envelope
/// (document §4.2: anything shorter than 1044 is ordinary TCP).
pub const MIN_SEGMENT: usize = 1044;

/// The smallest content type of a TLS record, change_cipher_spec (RFC 8446 §5.1).
pub const FIRST_RECORD_TYPE: u8 = 0x14;

/// Bytes of the length.
const HEADER: usize = 2;

/// A peer's envelope that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// The length is 0.
    #[error("an envelope without a payload")]
    Empty,
    /// The length is above [`MAX_PAYLOAD`].
    #[error("an envelope of {0} bytes, which are more than {MAX_PAYLOAD}")]
    TooLong(usize),
    /// The padding is not zero.
    #[error("an envelope whose padding is not zero")]
    Padding,
}

impl Explain for EnvelopeError {
    fn fault(&self) -> Fault {
        Fault::Peer
    }
}

/// Appends an envelope of as much of `payload` as one holds, and returns the rest. Nothing is
/// appended for an empty payload.
pub fn encode<'a>(payload: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let (payload, rest) = payload.split_at(payload.len().min(MAX_PAYLOAD));
    if payload.is_empty() {
        return rest;
    }
    let length = u16::try_from(payload.len()).unwrap_or(u16::MAX); // at most MAX_PAYLOAD
    let end = out.len().saturating_add(MIN_LEN.max(HEADER + payload.len()));
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(payload);
    out.resize(end, 0);
    rest
}

/// Whether bytes that begin a stream begin an envelope; `None` without bytes.
#[must_use]
pub fn begins(bytes: &[u8]) -> Option<bool> {
    bytes.first().map(|&first| first < FIRST_RECORD_TYPE)
}

/// Takes a number of envelopes off the front of a stream that comes in pieces. Holds no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoder {
    left: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between envelopes, or behind the last.
    Length,
    /// After the first byte of a length.
    LengthRest(u8),
    /// So many bytes of payload are to come, then of padding.
    Payload { left: usize, padding: usize },
    /// So many bytes of padding are to come.
    Padding(usize),
}

impl Decoder {
    /// A stream that begins with `envelopes` envelopes, plain behind them.
    #[must_use]
    pub const fn new(envelopes: u8) -> Self {
        Self { left: envelopes, state: State::Length }
    }

    /// Whether every envelope has been read wholly: what comes is plain.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.state == State::Length
    }

    /// The next bytes of payload, or of the plain stream, at the front of `input`, which is
    /// advanced past what was read; `None` when all of it was read.
    ///
    /// # Errors
    /// The peer's fault; the stream cannot be read on.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<&'a [u8]>, EnvelopeError> {
        loop {
            match self.state {
                State::Length if self.left == 0 => {
                    let plain = core::mem::take(input);
                    return Ok(Some(plain).filter(|plain| !plain.is_empty()));
                }
                State::Length => {
                    let Some(first) = take_byte(input) else { return Ok(None) };
                    self.state = State::LengthRest(first);
                }
                State::LengthRest(first) => {
                    let Some(second) = take_byte(input) else { return Ok(None) };
                    self.state = begin(usize::from(u16::from_be_bytes([first, second])))?;
                    self.left = self.left.saturating_sub(1);
                }
                State::Payload { left: 0, padding } => self.state = State::Padding(padding),
                State::Payload { left, padding } => {
                    let payload = take(input, left);
                    if payload.is_empty() {
                        return Ok(None);
                    }
                    let left = left.saturating_sub(payload.len());
                    self.state = State::Payload { left, padding };
                    return Ok(Some(payload));
                }
                State::Padding(0) => self.state = State::Length,
                State::Padding(left) => {
                    let zeros = take(input, left);
                    if zeros.is_empty() {
                        return Ok(None);
                    }
                    // They are not authenticated: nothing may hide there.
                    if zeros.iter().any(|&byte| byte != 0) {
                        return Err(EnvelopeError::Padding);
                    }
                    self.state = State::Padding(left.saturating_sub(zeros.len()));
                }
            }
        }
    }
}

fn begin(length: usize) -> Result<State, EnvelopeError> {
    match length {
        0 => Err(EnvelopeError::Empty),
        1..=MAX_PAYLOAD => {
            let padding = MIN_LEN.saturating_sub(HEADER + length);
            Ok(State::Payload { left: length, padding })
        }
        _ => Err(EnvelopeError::TooLong(length)),
    }
}

fn take_byte(input: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = input.split_first()?;
    *input = rest;
    Some(byte)
}

fn take<'a>(input: &mut &'a [u8], at_most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(at_most.min(input.len()));
    *input = rest;
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(decoder: &mut Decoder, stream: &[u8], step: usize) -> Result<Vec<u8>, EnvelopeError> {
        let mut out = Vec::new();
        for mut piece in stream.chunks(step) {
            while let Some(bytes) = decoder.next(&mut piece)? {
                out.extend_from_slice(bytes);
            }
            assert!(piece.is_empty());
        }
        Ok(out)
    }

    #[test]
    fn an_envelope_is_at_least_1024_bytes() {
        for (payload, wanted) in [(1, 1024), (1022, 1024), (1023, 1025), (MAX_PAYLOAD, 5121)] {
            let mut out = Vec::new();
            assert!(encode(&vec![22; payload], &mut out).is_empty());
            assert_eq!(out.len(), wanted);
            assert_eq!(begins(&out), Some(true));
        }
        let mut out = Vec::new();
        assert_eq!(encode(&[7; MAX_PAYLOAD + 3], &mut out), [7; 3]);
        out.clear();
        encode(&[], &mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        let refused = |stream: &[u8]| decode(&mut Decoder::new(1), stream, 1).unwrap_err();
        assert_eq!(refused(&[0, 0]), EnvelopeError::Empty);
        assert_eq!(refused(&[0x14, 0]), EnvelopeError::TooLong(0x1400));
        assert_eq!(refused(&[0, 1, 22, 1]), EnvelopeError::Padding);
        assert_eq!((begins(&[0x16]), begins(&[])), (Some(false), None));
    }

    #[test]
    fn a_decoder_tells_when_the_plain_stream_begins() {
        let mut stream = Vec::new();
        encode(&[22, 3], &mut stream);
        let mut decoder = Decoder::new(1);
        decode(&mut decoder, &stream[..1023], 100).unwrap();
        assert!(!decoder.is_done());
        decode(&mut decoder, &stream[1023..], 100).unwrap();
        // The padding's end is noticed with the next byte at the latest.
        assert_eq!(decode(&mut decoder, &[1], 1), Ok(vec![1]));
        assert!(decoder.is_done());
    }

    proptest! {
        #[test]
        fn envelopes_cut_anywhere_are_read(
            payloads in proptest::collection::vec(
                proptest::collection::vec(any::<u8>(), 1..MAX_PAYLOAD), 1..3),
            tail in proptest::collection::vec(any::<u8>(), 0..50),
            step in 1_usize..2000,
        ) {
            let mut stream = Vec::new();
            for payload in &payloads {
                encode(payload, &mut stream);
            }
            stream.extend_from_slice(&tail);
            let mut decoder = Decoder::new(payloads.len() as u8);
            let read = decode(&mut decoder, &stream, step);
            prop_assert_eq!(read, Ok([payloads.concat(), tail].concat()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            stream in proptest::collection::vec(any::<u8>(), 0..3000), step in 1_usize..100,
        ) {
            let (mut one, mut other) = (Decoder::new(2), Decoder::new(2));
            prop_assert_eq!(decode(&mut one, &stream, step), decode(&mut other, &stream, 3000));
        }
    }
}
