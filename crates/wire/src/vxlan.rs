//! VXLAN (RFC 7348): Ethernet frames in UDP datagrams to port 4789, and its generic protocol extension
//! (draft-ietf-nvo3-vxlan-gpe-13), whose datagrams hold other packets too.

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "VXLAN";

/// The port that datagrams go to (RFC 7348 §5).
pub const PORT: u16 = 4789;

/// The port of the generic protocol extension.
pub const GPE_PORT: u16 = 4790;

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

/// The flag I: the identifier counts.
const IDENTIFIED: u8 = 0x08;
/// The generic protocol extension's flag P: the next protocol is said.
const NEXT: u8 = 0x04;

/// A view of a header and the frame behind it.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, a datagram's payload. Other flags than I are ignored, as the RFC asks.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        if header[0] & IDENTIFIED == 0 {
            return Err(Error::malformed(FORMAT, "its flag I is not set"));
        }
        Ok(Packet { header, payload: reader.rest() })
    }

    /// The network identifier, 24 bits.
    #[must_use]
    pub const fn network(&self) -> u32 {
        u32::from_be_bytes([0, self.header[4], self.header[5], self.header[6]])
    }

    /// Whether no flag but I is set, and what is reserved is 0, as every sender is asked to (§5).
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        matches!(self.header, [IDENTIFIED, 0, 0, 0, _, _, _, 0])
    }

    /// The number of the next protocol, of a header of the generic protocol extension that says it.
    #[must_use]
    pub const fn next_protocol(&self) -> Option<u8> {
        if self.header[0] & NEXT == 0 { None } else { Some(self.header[3]) }
    }

    /// The content: an Ethernet frame, if the header names no next protocol.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A header as its values (RFC 7348 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The network identifier, below 2^24.
    pub network: u32,
}

impl Repr {
    /// The header that a view shows.
    #[must_use]
    pub const fn parse(packet: &Packet<'_>) -> Self {
        Repr { network: packet.network() }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let [0, a, b, c] = self.network.to_be_bytes() else {
            return Err(Error::DoesNotFit { format: FORMAT, field: "network identifier" });
        };
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&[IDENTIFIED, 0, 0, 0, a, b, c, 0]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::vxlan(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(network in 0u32..1 << 24) {
            let repr = Repr { network };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&buffer).unwrap()), repr);
        }
    }

    #[test]
    fn without_its_flag_it_is_refused() {
        assert!(Packet::new_checked(&[0xf7, 0, 0, 0, 0, 0, 1, 0]).is_err());
        assert!(Repr { network: 1 << 24 }.emit(&mut [0; 8]).is_err());
    }
}
