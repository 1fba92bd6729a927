//! Ethernet frames (IEEE 802.3 §3.2), without preamble and frame check sequence.

use std::fmt;

use crate::error::room;
use crate::{Error, Reader};

const FORMAT: &str = "Ethernet";

/// Bytes of the header: two addresses and the EtherType.
pub const HEADER_LEN: usize = 14;

/// A MAC address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(pub [u8; 6]);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What follows a header: an EtherType, or below 1536 the length of an LLC frame (802.3 §3.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4 (RFC 894).
    pub const IPV4: EtherType = EtherType(0x0800);
    /// IPv6 (RFC 2464).
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// ARP (RFC 826).
    pub const ARP: EtherType = EtherType(0x0806);
    /// An 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// An 802.1ad service tag.
    pub const QINQ: EtherType = EtherType(0x88a8);
    /// The service tag that equipment used before 802.1ad.
    pub const QINQ_OLD: EtherType = EtherType(0x9100);
    /// MPLS (RFC 5332 §3).
    pub const MPLS: EtherType = EtherType(0x8847);
    /// MPLS with a label that the sender's side assigned (RFC 5332 §3).
    pub const MPLS_UPSTREAM: EtherType = EtherType(0x8848);
    /// A frame with a MAC security tag (IEEE 802.1AE §9.4).
    pub const MACSEC: EtherType = EtherType(0x88e5);
    /// EAP over LANs, and with it MACsec's key agreement (IEEE 802.1X §11.1.4).
    pub const EAPOL: EtherType = EtherType(0x888e);
    /// A PPPoE session (RFC 2516 §4).
    pub const PPPOE_SESSION: EtherType = EtherType(0x8864);
    /// An Ethernet frame inside GRE (RFC 1701).
    pub const BRIDGED: EtherType = EtherType(0x6558);
    /// Cisco's VN-Tag, before 802.1BR.
    pub const VN_TAG: EtherType = EtherType(0x8926);
    /// An HSR tag of a redundant ring (IEC 62439-3).
    pub const HSR: EtherType = EtherType(0x892f);
    /// An 802.1BR E-TAG.
    pub const E_TAG: EtherType = EtherType(0x893f);
    /// Cisco MetaData, with TrustSec's group tag.
    pub const CISCO_METADATA: EtherType = EtherType(0x8909);
    /// An 802.1Q I-TAG: a customer's frame behind a backbone's header.
    pub const I_TAG: EtherType = EtherType(0x88e7);
    /// A network service header (RFC 8300 §12.2.1).
    pub const NSH: EtherType = EtherType(0x894f);
    /// ERSPAN of types I and II inside GRE.
    pub const ERSPAN: EtherType = EtherType(0x88be);
    /// ERSPAN of type III inside GRE.
    pub const ERSPAN_III: EtherType = EtherType(0x22eb);
    /// IEEE 802 local experimental EtherType 1, which calibration frames may use.
    pub const EXPERIMENTAL: EtherType = EtherType(0x88b5);

    /// Whether this is an LLC frame's length rather than a type.
    #[must_use]
    pub const fn is_length(self) -> bool {
        self.0 < 1536
    }

    /// Whether a VLAN tag follows.
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, EtherType::VLAN | EtherType::QINQ | EtherType::QINQ_OLD)
    }
}

/// A view of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A view of `bytes`, if they hold a header.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header = reader.array()?;
        Ok(Frame { header, payload: reader.rest() })
    }

    /// Where the frame goes.
    #[must_use]
    pub fn destination(&self) -> Address {
        let [a, b, c, d, e, f, ..] = *self.header;
        Address([a, b, c, d, e, f])
    }

    /// Who sent it.
    #[must_use]
    pub fn source(&self) -> Address {
        let [_, _, _, _, _, _, a, b, c, d, e, f, _, _] = *self.header;
        Address([a, b, c, d, e, f])
    }

    /// What the payload is.
    #[must_use]
    pub const fn ether_type(&self) -> EtherType {
        EtherType(u16::from_be_bytes([self.header[12], self.header[13]]))
    }

    /// What follows the header, padding included.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Where the frame goes.
    pub destination: Address,
    /// Who sends it.
    pub source: Address,
    /// What the payload is.
    pub ether_type: EtherType,
}

impl Repr {
    /// The header that a frame has.
    #[must_use]
    pub fn parse(frame: &Frame<'_>) -> Self {
        Repr {
            destination: frame.destination(),
            source: frame.source(),
            ether_type: frame.ether_type(),
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the header to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        let [a, b, c, d, e, f] = self.destination.0;
        let [g, h, i, j, k, l] = self.source.0;
        let [m, n] = self.ether_type.0.to_be_bytes();
        room(FORMAT, buffer, HEADER_LEN)?
            .copy_from_slice(&[a, b, c, d, e, f, g, h, i, j, k, l, m, n]);
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
            crate::fuzz::ethernet(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(destination: [u8; 6], source: [u8; 6], ether_type: u16) {
            let repr = Repr {
                destination: Address(destination),
                source: Address(source),
                ether_type: EtherType(ether_type),
            };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Frame::new_checked(&buffer).unwrap()), repr);
        }
    }

    #[test]
    fn a_length_is_not_a_type() {
        assert!(EtherType(1500).is_length());
        assert!(!EtherType::IPV4.is_length());
    }

    #[test]
    fn a_short_buffer_is_refused() {
        let repr = Repr {
            destination: Address::default(),
            source: Address::default(),
            ether_type: EtherType::ARP,
        };
        assert!(matches!(repr.emit(&mut [0; 13]), Err(Error::BufferTooShort { needed: 14, .. })));
    }
}
