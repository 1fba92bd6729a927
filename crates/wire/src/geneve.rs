//! Geneve (RFC 8926): frames or packets in UDP datagrams to port 6081.

use crate::ethernet::EtherType;
use crate::{Error, Reader};

const FORMAT: &str = "Geneve";

/// The port that datagrams go to (RFC 8926 §3.3).
pub const PORT: u16 = 6081;

/// Bytes of the header before its options.
pub const HEADER_LEN: usize = 8;

/// A view of a header and what follows its options.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`, a datagram's payload. Options are passed over (RFC 8926 §3.4, §3.5), and so
    /// is whether they are critical: nothing is forwarded.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header: &[u8; HEADER_LEN] = reader.array()?;
        if header[0] >> 6 != 0 {
            return Err(Error::malformed(FORMAT, "its version is not 0"));
        }
        // The length of the options is in units of four bytes.
        reader.take(usize::from(header[0] & 0x3f) * 4)?;
        Ok(Packet { header, payload: reader.rest() })
    }

    /// What the payload is: an EtherType, [`EtherType::BRIDGED`] for an Ethernet frame.
    #[must_use]
    pub const fn protocol(&self) -> EtherType {
        EtherType(u16::from_be_bytes([self.header[2], self.header[3]]))
    }

    /// The network identifier, 24 bits.
    #[must_use]
    pub const fn network(&self) -> u32 {
        u32::from_be_bytes([0, self.header[4], self.header[5], self.header[6]])
    }

    /// What follows the options.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            crate::fuzz::geneve(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first &= 0x03;
            }
            crate::fuzz::geneve(&bytes);
        }
    }

    #[test]
    fn options_are_passed_over_and_must_be_whole() {
        let bytes = [0x01, 0x40, 0x65, 0x58, 0, 1, 2, 0, 0, 1, 0x80, 0, 9, 8];
        let packet = Packet::new_checked(&bytes).unwrap();
        assert_eq!((packet.protocol(), packet.network()), (EtherType::BRIDGED, 0x0102));
        assert_eq!(packet.payload(), [9, 8]);
        assert!(Packet::new_checked(&bytes[..11]).is_err());
        assert!(Packet::new_checked(&[0x41, 0, 8, 0, 0, 0, 0, 0]).is_err());
    }
}
