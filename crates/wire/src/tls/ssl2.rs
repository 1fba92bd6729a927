//! SSL 2.0's hellos: clients that also spoke SSL 3.0 or TLS greeted in this format (RFC 5246 §E.2,
//! RFC 6101 §E).

use super::names::Version;
use crate::{Error, Reader};

const FORMAT: &str = "SSL 2.0 hello";

/// Bytes of the header before an SSL 2.0 record without padding.
pub const SSL2_HEADER_LEN: usize = 2;

/// Bytes of a ClientHello before its three vectors.
const CLIENT_HELLO_MIN: u16 = 9;

/// The length that an SSL 2.0 record's header states: two bytes, the highest bit set, which says
/// that there is no padding.
#[must_use]
pub const fn ssl2_record_len(header: [u8; SSL2_HEADER_LEN]) -> Option<u16> {
    if header[0] & 0x80 == 0 {
        return None;
    }
    Some(u16::from_be_bytes([header[0] & 0x7f, header[1]]))
}

/// Whether a stream's first five bytes begin such a ClientHello: a record that is long enough, its
/// type 1, and version 3.x or 2.0.
#[must_use]
pub const fn begins_ssl2_client_hello(bytes: &[u8; 5]) -> bool {
    let Some(len) = ssl2_record_len([bytes[0], bytes[1]]) else { return false };
    let version = matches!((bytes[3], bytes[4]), (3, 0..=4) | (0, 2));
    len >= CLIENT_HELLO_MIN && bytes[2] == 1 && version
}

/// A view of a ClientHello: the record without its header.
#[derive(Debug, Clone, Copy)]
pub struct Ssl2ClientHello<'a> {
    version: u16,
    cipher_specs: &'a [u8],
    session_id: &'a [u8],
    challenge: &'a [u8],
}

impl<'a> Ssl2ClientHello<'a> {
    /// A view of `record`, if it is a ClientHello whose vectors are whole.
    pub fn new_checked(record: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, record);
        if reader.u8()? != 1 {
            return Err(Error::malformed(FORMAT, "it is not a ClientHello"));
        }
        let version = reader.u16()?;
        let [specs, session_id, challenge] = [reader.u16()?, reader.u16()?, reader.u16()?];
        if specs % 3 != 0 {
            return Err(Error::malformed(FORMAT, "its cipher specs end in a part of one"));
        }
        Ok(Ssl2ClientHello {
            version,
            cipher_specs: reader.take(specs.into())?,
            session_id: reader.take(session_id.into())?,
            challenge: reader.take(challenge.into())?,
        })
    }

    /// The highest version that the client speaks.
    #[must_use]
    pub const fn version(&self) -> Version {
        Version(self.version)
    }

    /// The cipher suites of SSL 3.0 and TLS among the cipher specs: those whose first byte is zero.
    pub fn cipher_suites(&self) -> impl Iterator<Item = u16> + use<'a> {
        let specs = self.cipher_specs.as_chunks::<3>().0;
        specs.iter().filter(|spec| spec[0] == 0).map(|spec| u16::from_be_bytes([spec[1], spec[2]]))
    }

    /// The session id.
    #[must_use]
    pub const fn session_id(&self) -> &'a [u8] {
        self.session_id
    }

    /// The challenge: the client's random, or its end (RFC 5246 §E.2).
    #[must_use]
    pub const fn challenge(&self) -> &'a [u8] {
        self.challenge
    }
}

/// The version in an SSL 2.0 ServerHello: the record's first bytes without its header.
pub fn ssl2_server_version(record: &[u8]) -> Result<Version, Error> {
    let [kind, _session_id_hit, _certificate_type, high, low] =
        *Reader::new(FORMAT, record).array()?;
    if kind != 4 {
        return Err(Error::malformed(FORMAT, "it is not a ServerHello"));
    }
    Ok(Version(u16::from_be_bytes([high, low])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hello for TLS 1.0 with two suites of TLS, one of SSL 2.0 alone, and 16 bytes of challenge.
    fn example() -> Vec<u8> {
        let mut hello = vec![1, 3, 1, 0, 9, 0, 0, 0, 16];
        hello.extend([0, 0, 0x35, 1, 0, 0x80, 0, 0, 0x0a]);
        hello.extend([7; 16]);
        hello
    }

    #[test]
    fn the_suites_of_tls_are_told_from_those_of_ssl_2() {
        let bytes = example();
        let hello = Ssl2ClientHello::new_checked(&bytes).unwrap();
        assert_eq!(hello.version(), Version::TLS10);
        assert_eq!(hello.cipher_suites().collect::<Vec<_>>(), [0x35, 0x0a]);
        assert_eq!((hello.session_id(), hello.challenge()), (&[][..], &[7; 16][..]));
        for cut in 0..bytes.len() {
            assert!(Ssl2ClientHello::new_checked(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn headers_are_told_from_other_first_bytes() {
        assert!(begins_ssl2_client_hello(&[0x80, 0x2e, 1, 3, 1]));
        assert!(begins_ssl2_client_hello(&[0x80, 0x2e, 1, 0, 2]));
        for other in [*b"GET /", [0x80, 2, 1, 3, 1], [0x80, 0x2e, 4, 3, 1], [0x80, 0x2e, 1, 9, 9]] {
            assert!(!begins_ssl2_client_hello(&other));
        }
        assert_eq!(ssl2_server_version(&[4, 0, 1, 0, 2]).unwrap().to_string(), "SSL 2.0");
        assert!(ssl2_server_version(&[22, 3, 1, 0, 2]).is_err());
    }
}
