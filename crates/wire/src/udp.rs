//! UDP datagrams (RFC 768).

use std::net::IpAddr;

use crate::checksum::Sum;
use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "UDP";

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// UDP's number in an IP header.
pub const PROTOCOL: u8 = 17;

/// A view of a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// A view of `bytes`, if header and payload are there; bytes after the payload are left out.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let datagram = Self::new_captured(bytes)?;
        let (needed, had) = (datagram.payload_len(), datagram.payload.len());
        if had < needed {
            return Err(Error::Truncated { format: FORMAT, needed, had });
        }
        Ok(datagram)
    }

    /// As [`Datagram::new_checked`], but the payload may be cut by the capture's snapshot length.
    pub fn new_captured(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let Some(payload_len) = length.checked_sub(HEADER_LEN) else {
            return Err(Error::malformed(FORMAT, "its length is shorter than its header"));
        };
        let rest = reader.rest();
        Ok(Datagram { header, payload: rest.get(..payload_len).unwrap_or(rest) })
    }

    /// The sender's port.
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// The receiver's port.
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// Bytes of payload that the header states.
    #[must_use]
    pub const fn payload_len(&self) -> usize {
        (u16::from_be_bytes([self.header[4], self.header[5]]) as usize).saturating_sub(HEADER_LEN)
    }

    /// The checksum field; 0 says that there is none (IPv4 only).
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// Whether the checksum is right or absent. A cut payload gives false.
    #[must_use]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        let len = self.payload_len().saturating_add(HEADER_LEN) as u32;
        self.checksum() == 0
            || Sum::new()
                .plus_pseudo_header(src, dst, PROTOCOL, len)
                .plus(self.header)
                .plus(self.payload)
                .finish()
                == 0
    }

    /// The payload, as far as captured.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
}

impl Repr {
    /// The header that a datagram has.
    #[must_use]
    pub const fn parse(datagram: &Datagram<'_>) -> Self {
        Repr { source_port: datagram.source_port(), destination_port: datagram.destination_port() }
    }

    /// Bytes that [`Repr::emit`] writes for `payload_len` bytes of payload.
    #[must_use]
    pub const fn buffer_len(&self, payload_len: usize) -> usize {
        payload_len.saturating_add(HEADER_LEN)
    }

    /// Writes header and payload to the front of `buffer`, checksum included.
    pub fn emit(
        &self,
        src: IpAddr,
        dst: IpAddr,
        payload: &[u8],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let total = self.buffer_len(payload.len());
        let length = u16::try_from(total)
            .map_err(|_| Error::DoesNotFit { format: FORMAT, field: "length" })?;
        let ([a, b], [c, d]) =
            (self.source_port.to_be_bytes(), self.destination_port.to_be_bytes());
        let [e, f] = length.to_be_bytes();
        let sum = Sum::new()
            .plus_pseudo_header(src, dst, PROTOCOL, u32::from(length))
            .plus(&[a, b, c, d, e, f])
            .plus(payload)
            .finish();
        // RFC 768: a computed zero is sent as all ones.
        let [g, h] = if sum == 0 { [0xff, 0xff] } else { sum.to_be_bytes() };
        let buffer = room(FORMAT, buffer, total)?;
        if let Some((header, body)) = buffer.split_at_mut_checked(HEADER_LEN) {
            header.copy_from_slice(&[a, b, c, d, e, f, g, h]);
            body.copy_from_slice(payload);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            crate::fuzz::udp(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            source_port: u16, destination_port: u16, v6: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..99),
        ) {
            let repr = Repr { source_port, destination_port };
            let (src, dst): (IpAddr, IpAddr) = if v6 {
                ("fd77::1".parse().unwrap(), "fd77::2".parse().unwrap())
            } else {
                ("10.77.0.1".parse().unwrap(), "10.77.0.2".parse().unwrap())
            };
            let mut buffer = vec![0; repr.buffer_len(payload.len())];
            repr.emit(src, dst, &payload, &mut buffer).unwrap();
            let datagram = Datagram::new_checked(&buffer).unwrap();
            prop_assert_eq!(Repr::parse(&datagram), repr);
            prop_assert_eq!(datagram.payload(), &payload[..]);
            prop_assert!(datagram.checksum_ok(src, dst));
        }
    }
}
