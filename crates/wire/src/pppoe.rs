//! PPPoE sessions: what follows an EtherType 0x8864 (RFC 2516 §4), and the PPP protocol in them.

use crate::error::room;
use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "PPPoE";

/// Bytes of the header and of PPP's protocol field behind it.
pub const HEADER_LEN: usize = 8;

/// PPP's number of IPv4 (RFC 1332 §2).
pub const PPP_IPV4: u16 = 0x0021;
/// PPP's number of IPv6 (RFC 5072 §2).
pub const PPP_IPV6: u16 = 0x0057;

/// A view of a session packet.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Session<'a> {
    /// A view of `bytes`; the payload may be cut by the capture's snapshot length, and link padding
    /// after it is left out.
    pub fn new_captured(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        if header[0] != 0x11 {
            return Err(Error::malformed(FORMAT, "its version and type are not 1"));
        }
        if header[1] != 0 {
            return Err(Error::malformed(FORMAT, "its code is not that of session data"));
        }
        // The length counts PPP's protocol field.
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let Some(payload_len) = length.checked_sub(2) else {
            return Err(Error::malformed(FORMAT, "its length leaves no room for a PPP protocol"));
        };
        let rest = reader.rest();
        Ok(Session { header, payload: rest.get(..payload_len).unwrap_or(rest) })
    }

    /// The session's number.
    #[must_use]
    pub const fn session(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The PPP protocol of the payload.
    #[must_use]
    pub const fn protocol(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// The EtherType of the same protocol, if it is IPv4 or IPv6.
    #[must_use]
    pub const fn ether_type(&self) -> Option<EtherType> {
        match self.protocol() {
            PPP_IPV4 => Some(EtherType::IPV4),
            PPP_IPV6 => Some(EtherType::IPV6),
            _ => None,
        }
    }

    /// Bytes of payload that the header states.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        (u16::from_be_bytes([self.header[4], self.header[5]]) as usize).saturating_sub(2)
    }

    /// What follows the PPP protocol, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A session packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The session's number.
    pub session: u16,
    /// The PPP protocol of the payload.
    pub protocol: u16,
    /// Bytes of payload behind the PPP protocol.
    pub payload_len: usize,
}

impl Repr {
    /// The header that a view shows.
    #[must_use]
    pub const fn parse(packet: &Session<'_>) -> Self {
        Repr {
            session: packet.session(),
            protocol: packet.protocol(),
            payload_len: packet.payload_len(),
        }
    }

    /// Bytes that [`Repr::emit`] writes: the header.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let length = u16::try_from(self.payload_len.saturating_add(2))
            .map_err(|_| Error::DoesNotFit { format: FORMAT, field: "payload length" })?;
        let ([a, b], [c, d], [e, f]) =
            (self.session.to_be_bytes(), length.to_be_bytes(), self.protocol.to_be_bytes());
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&[0x11, 0, a, b, c, d, e, f]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::pppoe(&bytes);
            if let Some(front) = bytes.first_chunk_mut::<2>() {
                *front = [0x11, 0];
            }
            crate::fuzz::pppoe(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(session: u16, protocol: u16, payload_len in 0usize..200) {
            let repr = Repr { session, protocol, payload_len };
            let mut buffer = vec![0; repr.buffer_len() + payload_len + 3];
            repr.emit(&mut buffer).unwrap();
            let packet = Session::new_captured(&buffer).unwrap();
            prop_assert_eq!(Repr::parse(&packet), repr);
            prop_assert_eq!(packet.payload().len(), payload_len);
        }
    }

    #[test]
    fn discovery_and_hostile_lengths_are_refused() {
        assert!(Session::new_captured(&[0x11, 9, 0, 1, 0, 4, 0, 0x21, 1, 2]).is_err());
        assert!(Session::new_captured(&[0x21, 0, 0, 1, 0, 4, 0, 0x21, 1, 2]).is_err());
        assert!(Session::new_captured(&[0x11, 0, 0, 1, 0, 1, 0, 0x21, 1, 2]).is_err());
        let cut = Session::new_captured(&[0x11, 0, 0, 1, 0xff, 0xff, 0, 0x57, 1]).unwrap();
        assert_eq!((cut.payload_len(), cut.payload()), (0xfffd, &[1][..]));
        assert_eq!(cut.ether_type(), Some(EtherType::IPV6));
    }
}
