//! DTLS record headers (RFC 6347 §4.1), enough to tell DTLS from other datagrams. The unified
//! header of DTLS 1.3 (RFC 9147 §4) has nothing to be told by.

use crate::{Error, Reader};

const FORMAT: &str = "DTLS";

/// Bytes of a record header.
pub const HEADER_LEN: usize = 13;

/// DTLS 1.0 (RFC 4347 §4.1).
pub const VERSION_1_0: u16 = 0xfeff;
/// DTLS 1.2, and in the headers of DTLS 1.3's plain records.
pub const VERSION_1_2: u16 = 0xfefd;

/// The most that a record holds: 2^14 bytes and what encryption may add (RFC 6347 §4.1).
const MAX_LENGTH: u16 = (1 << 14) + 2048;

/// A view of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// ChangeCipherSpec 20, alert 21, handshake 22, application data 23, acknowledgment 26.
    pub content_type: u8,
    /// The version field.
    pub version: u16,
    /// Counts the changes of cipher.
    pub epoch: u16,
    /// The sequence number, 48 bits.
    pub sequence: u64,
    /// What the record holds, as far as captured.
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the front of `bytes`, a datagram's payload, which may be cut by the capture's
    /// snapshot length from `whole` bytes.
    pub fn new_captured(bytes: &'a [u8], whole: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let content_type = reader.u8()?;
        if !matches!(content_type, 20..=23 | 26) {
            return Err(Error::malformed(FORMAT, "no record has this content type"));
        }
        let version = reader.u16()?;
        if !matches!(version, VERSION_1_0 | VERSION_1_2) {
            return Err(Error::malformed(FORMAT, "its version is unknown"));
        }
        let epoch = reader.u16()?;
        let sequence = u64::from(reader.u16()?) << 32 | u64::from(reader.u32()?);
        let length = reader.u16()?;
        let room = whole.saturating_sub(HEADER_LEN);
        if length == 0 || length > MAX_LENGTH || usize::from(length) > room {
            return Err(Error::malformed(FORMAT, "its length is not possible"));
        }
        let rest = reader.rest();
        let payload = rest.get(..usize::from(length)).unwrap_or(rest);
        Ok(Record { content_type, version, epoch, sequence, payload })
    }

    /// Whether it holds a ClientHello, or its first part: that begins a handshake (RFC 6347
    /// §4.2.2). One that answers a HelloVerifyRequest has another message number than 0.
    #[must_use]
    pub const fn begins_handshake(&self) -> bool {
        let first = matches!(self.payload, [1, _, _, _, 0, 0, 0, 0, 0, ..]);
        self.content_type == 22 && self.epoch == 0 && first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            crate::fuzz::dtls(&bytes);
            if let Some(front) = bytes.first_chunk_mut::<3>() {
                *front = [22, 0xfe, 0xfd];
            }
            crate::fuzz::dtls(&bytes);
        }
    }

    fn record(content_type: u8, version: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![content_type];
        bytes.extend(version.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 5]);
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn a_client_hello_begins_a_handshake_once() {
        let hello = [1, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 40];
        let bytes = record(22, VERSION_1_0, &hello);
        let parsed = Record::new_captured(&bytes, bytes.len()).unwrap();
        assert!(parsed.begins_handshake() && parsed.sequence == 5);
        let mut again = hello;
        again[5] = 1;
        let bytes = record(22, VERSION_1_2, &again);
        assert!(!Record::new_captured(&bytes, bytes.len()).unwrap().begins_handshake());
    }

    #[test]
    fn what_is_not_quite_a_record_is_refused() {
        let good = record(23, VERSION_1_2, &[1, 2, 3]);
        assert!(Record::new_captured(&good, good.len()).is_ok());
        // Cut by the capture, but not by the sender.
        assert!(Record::new_captured(&good[..14], good.len()).is_ok());
        assert!(Record::new_captured(&good[..14], 14).is_err());
        for bytes in
            [record(24, VERSION_1_2, &[1]), record(23, 0x0303, &[1]), record(23, VERSION_1_2, &[])]
        {
            assert!(Record::new_captured(&bytes, bytes.len()).is_err());
        }
    }
}
