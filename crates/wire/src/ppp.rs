//! PPP (RFC 1661) as captures have it: with the HDLC-like framing's address and control (RFC 1662) or
//! without.

use crate::ethernet::EtherType;
use crate::pppoe::{PPP_IPV4, PPP_IPV6};
use crate::{Error, Reader};

const FORMAT: &str = "PPP";

/// All stations, and unnumbered information (RFC 1662 §3.1).
const ADDRESS_AND_CONTROL: [u8; 2] = [0xff, 0x03];

/// PPP's number of MPLS (RFC 3032 §4.3).
const PPP_MPLS: u16 = 0x0281;

/// A view of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    protocol: u16,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A view of `bytes`. Address and control may be left out, and so may the first byte of the
    /// protocol (RFC 1661 §6.5, §6.6): the last byte of a number is odd, the first is even (§2).
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let bytes = bytes.strip_prefix(&ADDRESS_AND_CONTROL).unwrap_or(bytes);
        let mut reader = Reader::new(FORMAT, bytes);
        let first = reader.u8()?;
        let protocol = match first & 1 {
            1 => first.into(),
            _ => u16::from_be_bytes([first, reader.u8()?]),
        };
        Ok(Packet { protocol, payload: reader.rest() })
    }

    /// The protocol of the payload.
    #[must_use]
    pub const fn protocol(&self) -> u16 {
        self.protocol
    }

    /// The EtherType of the same protocol, if it is IPv4, IPv6 or MPLS.
    #[must_use]
    pub const fn ether_type(&self) -> Option<EtherType> {
        match self.protocol {
            PPP_IPV4 => Some(EtherType::IPV4),
            PPP_IPV6 => Some(EtherType::IPV6),
            PPP_MPLS => Some(EtherType::MPLS),
            _ => None,
        }
    }

    /// What follows the protocol.
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
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            crate::fuzz::ppp(&bytes);
            crate::fuzz::ppp(&[&ADDRESS_AND_CONTROL[..], &bytes].concat());
        }
    }

    #[test]
    fn framing_and_compression_make_no_difference() {
        for bytes in [&[0xff, 3, 0, 0x21, 9][..], &[0, 0x21, 9], &[0x21, 9], &[0xff, 3, 0x21, 9]] {
            let packet = Packet::new_checked(bytes).unwrap();
            assert_eq!((packet.protocol(), packet.payload()), (PPP_IPV4, &[9][..]));
            assert_eq!(packet.ether_type(), Some(EtherType::IPV4));
        }
        assert_eq!(Packet::new_checked(&[0xc0, 0x21, 1]).unwrap().ether_type(), None);
        assert!(Packet::new_checked(&[0xff, 3]).is_err() && Packet::new_checked(&[0]).is_err());
    }
}
