//! GRE (RFC 2784), with key and sequence number (RFC 2890).

use crate::error::room;
use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "GRE";

/// GRE's number in an IP header.
pub const PROTOCOL: u8 = 47;

/// Bytes of the header without options.
pub const HEADER_LEN: usize = 4;

const CHECKSUM: u16 = 0x8000;
const KEY: u16 = 0x2000;
const SEQUENCE: u16 = 0x1000;
/// Bits of RFC 1701 that a receiver must not ignore (RFC 2784 §2.3), less those of RFC 2890.
const REFUSED: u16 = 0x4c00;

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    ether_type: EtherType,
    checksum: Option<u16>,
    key: Option<u32>,
    sequence: Option<u32>,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, which begin with the header.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let flags = reader.u16()?;
        if flags & 7 != 0 {
            return Err(Error::malformed(FORMAT, "its version is not 0"));
        }
        if flags & REFUSED != 0 {
            return Err(Error::malformed(FORMAT, "it has routing or other obsolete fields"));
        }
        let ether_type = EtherType(reader.u16()?);
        let checksum = match flags & CHECKSUM {
            0 => None,
            _ => {
                let checksum = reader.u16()?;
                reader.u16()?;
                Some(checksum)
            }
        };
        let mut option = |bit| if flags & bit == 0 { Ok(None) } else { reader.u32().map(Some) };
        let (key, sequence) = (option(KEY)?, option(SEQUENCE)?);
        Ok(Packet { ether_type, checksum, key, sequence, payload: reader.rest() })
    }

    /// What the payload is.
    #[must_use]
    pub const fn ether_type(&self) -> EtherType {
        self.ether_type
    }

    /// The checksum field, if there is one.
    #[must_use]
    pub const fn checksum(&self) -> Option<u16> {
        self.checksum
    }

    /// The key, if there is one.
    #[must_use]
    pub const fn key(&self) -> Option<u32> {
        self.key
    }

    /// The sequence number, if there is one.
    #[must_use]
    pub const fn sequence(&self) -> Option<u32> {
        self.sequence
    }

    /// What follows the header.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A header. The checksum is the caller's to compute: it covers the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// What the payload is.
    pub ether_type: EtherType,
    /// The checksum field, if there is to be one.
    pub checksum: Option<u16>,
    /// The key, if there is to be one.
    pub key: Option<u32>,
    /// The sequence number, if there is to be one.
    pub sequence: Option<u32>,
}

impl Repr {
    /// The header that a packet has.
    #[must_use]
    pub const fn parse(packet: &Packet<'_>) -> Self {
        Repr {
            ether_type: packet.ether_type,
            checksum: packet.checksum,
            key: packet.key,
            sequence: packet.sequence,
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let options = [self.checksum.is_some(), self.key.is_some(), self.sequence.is_some()];
        let count = options.into_iter().filter(|there| *there).count();
        count.saturating_mul(4).saturating_add(HEADER_LEN)
    }

    /// Writes the header to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let bit = |there: bool, bit: u16| if there { bit } else { 0 };
        let flags = bit(self.checksum.is_some(), CHECKSUM)
            | bit(self.key.is_some(), KEY)
            | bit(self.sequence.is_some(), SEQUENCE);
        let first = u32::from(flags) << 16 | u32::from(self.ether_type.0);
        let checksum = self.checksum.map(|checksum| u32::from(checksum) << 16);
        let words = [Some(first), checksum, self.key, self.sequence];
        let buffer = room(FORMAT, buffer, self.buffer_len())?;
        for (to, word) in buffer.chunks_exact_mut(4).zip(words.into_iter().flatten()) {
            to.copy_from_slice(&word.to_be_bytes());
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
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            crate::fuzz::gre(&bytes);
            if let Some(front) = bytes.first_chunk_mut::<2>() {
                *front = [front[0] & 0xb0, 0];
            }
            crate::fuzz::gre(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            ether_type: u16, checksum: Option<u16>, key: Option<u32>, sequence: Option<u32>,
        ) {
            let repr = Repr { ether_type: EtherType(ether_type), checksum, key, sequence };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            let packet = Packet::new_checked(&buffer).unwrap();
            prop_assert_eq!((Repr::parse(&packet), packet.payload().len()), (repr, 0));
        }
    }

    #[test]
    fn other_versions_and_source_routes_are_refused() {
        assert!(Packet::new_checked(&[0x30, 0x01, 0x88, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(Packet::new_checked(&[0x40, 0x00, 0x08, 0x00, 0, 0, 0, 0]).is_err());
        assert!(Packet::new_checked(&[0x20, 0x00, 0x08, 0x00, 0, 0, 0]).is_err());
    }
}
