//! The record layer (RFC 8446 §5.1) and the framing of handshake messages (§4).

use super::iana;
use crate::{Error, Reader};

const FORMAT: &str = "TLS record";

/// Bytes of a record's header.
pub const RECORD_HEADER_LEN: usize = 5;

/// The longest record: TLS 1.2 allows 2^14 + 2048 (RFC 5246 §6.2.3), TLS 1.3 2^14 + 256.
const MAX_RECORD_LEN: u16 = (1 << 14) + 2048;

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// 20: cipher keys change (a mere sign of life in TLS 1.3).
    ChangeCipherSpec,
    /// 21: an alert.
    Alert,
    /// 22: handshake messages.
    Handshake,
    /// 23: application data; in TLS 1.3 anything encrypted.
    ApplicationData,
    /// 24: a heartbeat (RFC 6520).
    Heartbeat,
}

impl ContentType {
    /// The type with this number, if TLS has one.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            20 => ContentType::ChangeCipherSpec,
            21 => ContentType::Alert,
            22 => ContentType::Handshake,
            23 => ContentType::ApplicationData,
            24 => ContentType::Heartbeat,
            _ => return None,
        })
    }

    /// Its number on the wire (RFC 8446 §5.1).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            ContentType::ChangeCipherSpec => 20,
            ContentType::Alert => 21,
            ContentType::Handshake => 22,
            ContentType::ApplicationData => 23,
            ContentType::Heartbeat => 24,
        }
    }
}

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// What the record holds.
    pub content_type: ContentType,
    /// The version field, which says little since TLS 1.3.
    pub legacy_version: u16,
    /// Bytes after the header.
    pub length: u16,
}

impl RecordHeader {
    /// The header in five bytes, if it can be one: a known type, a version 3.x or a draft's,
    /// a length that TLS allows.
    pub const fn parse(bytes: &[u8; RECORD_HEADER_LEN]) -> Result<Self, Error> {
        let Some(content_type) = ContentType::from_number(bytes[0]) else {
            return Err(Error::malformed(FORMAT, "its type is not one of TLS"));
        };
        let legacy_version = u16::from_be_bytes([bytes[1], bytes[2]]);
        if bytes[1] != 3 && bytes[1] != 0x7f {
            return Err(Error::malformed(FORMAT, "its version is not one of TLS"));
        }
        let length = u16::from_be_bytes([bytes[3], bytes[4]]);
        if length > MAX_RECORD_LEN {
            return Err(Error::malformed(FORMAT, "it is longer than TLS allows"));
        }
        Ok(RecordHeader { content_type, legacy_version, length })
    }

    /// The header as bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; RECORD_HEADER_LEN] {
        let ([a, b], [c, d]) = (self.legacy_version.to_be_bytes(), self.length.to_be_bytes());
        [self.content_type.number(), a, b, c, d]
    }

    /// Bytes of header and payload.
    #[must_use]
    pub const fn total_len(self) -> usize {
        (self.length as usize).saturating_add(RECORD_HEADER_LEN)
    }
}

/// Cuts bytes into whole records: header and payload. The walk ends at the first record that is
/// cut or malformed; [`Records::rest`] is then where it stands.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// A walk over bytes that begin with a record.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Records { rest: bytes }
    }

    /// What has not been walked.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (RecordHeader, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, after) = self.rest.split_first_chunk::<RECORD_HEADER_LEN>()?;
        let header = RecordHeader::parse(header).ok()?;
        let (payload, rest) = after.split_at_checked(usize::from(header.length))?;
        self.rest = rest;
        Some((header, payload))
    }
}

/// A handshake message's type (RFC 8446 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandshakeType(pub u8);

impl HandshakeType {
    /// ClientHello: the client's offer, first of all messages (RFC 8446 §4.1.2).
    pub const CLIENT_HELLO: HandshakeType = HandshakeType(1);
    /// ServerHello, HelloRetryRequest too since draft 22.
    pub const SERVER_HELLO: HandshakeType = HandshakeType(2);
    /// NewSessionTicket: for a later resumption (RFC 8446 §4.6.1).
    pub const NEW_SESSION_TICKET: HandshakeType = HandshakeType(4);
    /// EndOfEarlyData: the client's 0-RTT data are over (RFC 8446 §4.5).
    pub const END_OF_EARLY_DATA: HandshakeType = HandshakeType(5);
    /// HelloRetryRequest before draft 22.
    pub const HELLO_RETRY_REQUEST_DRAFT: HandshakeType = HandshakeType(6);
    /// EncryptedExtensions: the server's answers that need no key exchange (RFC 8446 §4.3.1).
    pub const ENCRYPTED_EXTENSIONS: HandshakeType = HandshakeType(8);
    /// Certificate: the sender's chain, leaf first (RFC 8446 §4.4.2).
    pub const CERTIFICATE: HandshakeType = HandshakeType(11);
    /// ServerKeyExchange (TLS 1.2).
    pub const SERVER_KEY_EXCHANGE: HandshakeType = HandshakeType(12);
    /// CertificateRequest: the server wants the client's certificate (RFC 8446 §4.3.2).
    pub const CERTIFICATE_REQUEST: HandshakeType = HandshakeType(13);
    /// ServerHelloDone (TLS 1.2).
    pub const SERVER_HELLO_DONE: HandshakeType = HandshakeType(14);
    /// CertificateVerify: the signature over the handshake so far (RFC 8446 §4.4.3).
    pub const CERTIFICATE_VERIFY: HandshakeType = HandshakeType(15);
    /// ClientKeyExchange (TLS 1.2).
    pub const CLIENT_KEY_EXCHANGE: HandshakeType = HandshakeType(16);
    /// Finished: the MAC over the handshake so far (RFC 8446 §4.4.4).
    pub const FINISHED: HandshakeType = HandshakeType(20);
}

/// The four bytes before each handshake message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// What the message is.
    pub kind: HandshakeType,
    /// Bytes after the header, below 2^24.
    pub length: u32,
}

impl MessageHeader {
    /// Bytes of a message's header.
    pub const LEN: usize = 4;

    /// The header in four bytes: any four are one.
    #[must_use]
    pub const fn parse(bytes: &[u8; 4]) -> Self {
        let length = u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]);
        MessageHeader { kind: HandshakeType(bytes[0]), length }
    }

    /// The header as bytes; of a length above 2^24 - 1 the low bits.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        let [_, a, b, c] = self.length.to_be_bytes();
        [self.kind.0, a, b, c]
    }
}

/// A whole handshake message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is.
    pub kind: HandshakeType,
    /// What follows its header.
    pub body: &'a [u8],
}

/// Cuts handshake bytes, joined across record borders, into whole messages. The walk ends at a cut
/// message; [`Messages::rest`] begins with it.
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// A walk over bytes that begin with a message.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Messages { rest: bytes }
    }

    /// What has not been walked.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, after) = self.rest.split_first_chunk::<4>()?;
        let header = MessageHeader::parse(header);
        let (body, rest) = after.split_at_checked(usize::try_from(header.length).ok()?)?;
        self.rest = rest;
        Some(Message { kind: header.kind, body })
    }
}

/// An alert that is not encrypted (RFC 8446 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// 1 warning, 2 fatal.
    pub level: u8,
    /// What is wrong.
    pub description: u8,
}

impl Alert {
    /// The alert in a record's payload; an encrypted one is longer and gives an error.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new("TLS alert", payload);
        let [level, description] = *reader.array()?;
        if !reader.is_empty() || !matches!(level, 1 | 2) {
            return Err(Error::malformed("TLS alert", "it is encrypted or no alert"));
        }
        Ok(Alert { level, description })
    }

    /// The description's registered name (IANA TLS Alerts).
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        iana::name(iana::ALERTS, self.description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            crate::fuzz::tls_records(&bytes);
            crate::fuzz::tls_messages(&bytes);
        }

        #[test]
        fn emitted_headers_are_parsed_back(
            kind in 20u8..25, minor: u8, length in 0u16..=MAX_RECORD_LEN, message in 0u32..(1 << 24),
        ) {
            let header = RecordHeader {
                content_type: ContentType::from_number(kind).unwrap(),
                legacy_version: 0x0300 | u16::from(minor),
                length,
            };
            prop_assert_eq!(RecordHeader::parse(&header.to_bytes()), Ok(header));
            let header = MessageHeader { kind: HandshakeType(kind), length: message };
            prop_assert_eq!(MessageHeader::parse(&header.to_bytes()), header);
        }

        #[test]
        fn what_is_cut_into_records_joins_again(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            cut in 0usize..5,
        ) {
            let mut bytes = Vec::new();
            for payload in &payloads {
                let header = RecordHeader {
                    content_type: ContentType::Handshake,
                    legacy_version: 0x0303,
                    length: payload.len() as u16,
                };
                bytes.extend_from_slice(&header.to_bytes());
                bytes.extend_from_slice(payload);
            }
            bytes.extend_from_slice(&[22, 3, 3, 0, 9][..cut]);
            let mut records = Records::new(&bytes);
            let walked: Vec<_> = records.by_ref().map(|(_, payload)| payload.to_vec()).collect();
            prop_assert_eq!(walked, payloads);
            prop_assert_eq!(records.rest().len(), cut);
        }
    }

    #[test]
    fn an_encrypted_alert_is_not_read() {
        assert_eq!(Alert::parse(&[2, 40]).unwrap().name(), Some("handshake_failure"));
        assert!(Alert::parse(&[2; 18]).is_err());
    }
}
