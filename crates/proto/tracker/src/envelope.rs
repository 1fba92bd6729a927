//! SSLmTCP's envelopes: what its `paper` profile wraps the TLS records of the TCP handshake in.
//!
//! An envelope is the length of its payload in two bytes, the payload, and zeros up to 1024 bytes
//! in all. The client sends two, on its SYN and on the ACK, the server one, on its SYN+ACK; behind
//! them the stream is plain. A segment that carries one is known by its length (document §4.2), and
//! the envelope by its first byte: it is below that of any TLS record.

/// A TCP segment of the handshake that is at least this long, header included, carries an envelope
/// (document §4.2).
const MIN_SEGMENT: usize = 1044;

/// An envelope is at least this long.
const MIN_ENVELOPE: usize = 1024;

/// Bytes of the length.
const HEADER: usize = 2;

/// The smallest first byte of a TLS record (ChangeCipherSpec); also above that of any length.
const FIRST_RECORD_TYPE: u8 = 0x14;

/// Whether a SYN's `data` are an envelope that begins with a TLS handshake record.
pub(crate) fn begins(segment_len: usize, data: &[u8]) -> bool {
    let first = matches!(data, [high, _, 22, 3, ..] if *high < FIRST_RECORD_TYPE);
    first && segment_len >= MIN_SEGMENT
}

/// What comes next in the stream.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// An envelope, if one may still come and the next byte is not that of a record.
    Any,
    /// The second byte of the length, after this one.
    Length(u8),
    /// So many bytes of payload, then of padding.
    Payload { left: usize, padding: usize },
}

/// Takes the envelopes off the front of one direction's stream.
#[derive(Debug)]
pub(crate) struct Unwrapper {
    /// Envelopes that may still come.
    envelopes: u8,
    next: Next,
    /// Bytes of lengths and padding passed so far.
    overhead: u64,
}

impl Unwrapper {
    /// A stream that begins with up to so many envelopes.
    pub(crate) const fn new(envelopes: u8) -> Self {
        Unwrapper { envelopes, next: Next::Any, overhead: 0 }
    }

    /// How many bytes of the stream so far were none of the payload.
    pub(crate) const fn overhead(&self) -> u64 {
        self.overhead
    }

    /// The next payload bytes in `input`, from whose front it takes bytes; `None` when it wants
    /// more.
    pub(crate) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Option<&'a [u8]> {
        loop {
            match self.next {
                Next::Any => {
                    let (first, rest) = input.split_first()?;
                    if self.envelopes == 0 || *first >= FIRST_RECORD_TYPE {
                        self.envelopes = 0;
                        return Some(std::mem::take(input));
                    }
                    self.envelopes = self.envelopes.saturating_sub(1);
                    self.overhead = self.overhead.saturating_add(1);
                    self.next = Next::Length(*first);
                    *input = rest;
                }
                Next::Length(high) => {
                    let (low, rest) = input.split_first()?;
                    let left = usize::from(u16::from_be_bytes([high, *low]));
                    let padding = MIN_ENVELOPE.saturating_sub(HEADER.saturating_add(left));
                    self.overhead = self.overhead.saturating_add(1);
                    self.next = Next::Payload { left, padding };
                    *input = rest;
                }
                Next::Payload { left: 0, padding: 0 } => self.next = Next::Any,
                Next::Payload { left: 0, padding } => {
                    let passed = padding.min(input.len());
                    if passed == 0 {
                        return None;
                    }
                    self.overhead = self.overhead.saturating_add(passed as u64);
                    self.next = Next::Payload { left: 0, padding: padding.saturating_sub(passed) };
                    *input = input.get(passed..)?;
                }
                Next::Payload { left, padding } => {
                    let (payload, rest) = input.split_at_checked(left.min(input.len()))?;
                    if payload.is_empty() {
                        return None;
                    }
                    self.next = Next::Payload { left: left.saturating_sub(payload.len()), padding };
                    *input = rest;
                    return Some(payload);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope(payload: &[u8]) -> Vec<u8> {
        let mut out = (payload.len() as u16).to_be_bytes().to_vec();
        out.extend_from_slice(payload);
        out.resize(out.len().max(MIN_ENVELOPE), 0);
        out
    }

    fn unwrap(envelopes: u8, stream: &[u8], step: usize) -> (Vec<u8>, u64) {
        let mut unwrapper = Unwrapper::new(envelopes);
        let mut out = Vec::new();
        for mut piece in stream.chunks(step) {
            while let Some(bytes) = unwrapper.next(&mut piece) {
                out.extend_from_slice(bytes);
            }
            assert!(piece.is_empty());
        }
        (out, unwrapper.overhead())
    }

    #[test]
    fn an_envelope_is_known_by_length_and_first_bytes() {
        let envelope = envelope(&[22, 3, 1, 0, 9]);
        assert!(begins(1044, &envelope) && !begins(1043, &envelope));
        assert!(!begins(1500, &[22, 3, 1, 4, 0, 1]) && !begins(1500, b"GET / HTTP/1.1"));
        assert!(!begins(1500, &[0, 5]));
    }

    #[test]
    fn records_are_let_through_where_an_envelope_might_have_come() {
        let stream = [envelope(&[22, 3]), vec![22, 3, 3, 0, 0]].concat();
        assert_eq!(unwrap(2, &stream, 7), (vec![22, 3, 22, 3, 3, 0, 0], 1022));
        assert_eq!(unwrap(0, &stream, 7), (stream, 0));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..5100), 1..3),
            tail in proptest::collection::vec(any::<u8>(), 0..50),
            step in 1usize..2000,
        ) {
            let mut stream: Vec<u8> = payloads.iter().flat_map(|one| envelope(one)).collect();
            stream.extend_from_slice(&tail);
            let expected = [payloads.concat(), tail].concat();
            let overhead = (stream.len() - expected.len()) as u64;
            prop_assert_eq!(unwrap(payloads.len() as u8, &stream, step), (expected, overhead));
        }
    }
}
