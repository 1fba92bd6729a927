//! ICMPv6 (RFC 4443), as far as Wiretax uses it: "packet too big" and neighbour discovery
//! (RFC 4861 §4.3, 4.4).

use std::net::Ipv6Addr;

use crate::checksum::Sum;
use crate::error::room;
use crate::ethernet::Address;
use crate::icmp::QuotedTcp;
use crate::{Error, Reader};

const FORMAT: &str = "ICMPv6";

/// ICMPv6's number as a next header.
pub const PROTOCOL: u8 = 58;

/// The hop limit of neighbour discovery: what has another came from beyond the link
/// (RFC 4861 §7.1).
pub const DISCOVERY_HOP_LIMIT: u8 = 255;

const PACKET_TOO_BIG: u8 = 2;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Options that carry a link-layer address (RFC 4861 §4.6.1).
const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;

/// A view of a message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    header: &'a [u8; 4],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// A view of `bytes`, the upper payload of an IPv6 packet, if they hold a header.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header = reader.array()?;
        Ok(Message { bytes, header, body: reader.rest() })
    }

    /// The message's type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code, which divides a type.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.header[1]
    }

    /// Whether the checksum is right between these addresses.
    #[must_use]
    pub fn checksum_ok(&self, src: Ipv6Addr, dst: Ipv6Addr) -> bool {
        let len = self.bytes.len() as u32;
        let sum = Sum::new().plus_pseudo_header(src.into(), dst.into(), PROTOCOL, len);
        sum.plus(self.bytes).finish() == 0
    }

    /// What follows type, code and checksum.
    #[must_use]
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// A message that Wiretax knows. The checksum is looked at by [`Message::checksum_ok`], the hop
/// limit by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repr<'a> {
    /// A router could not pass a packet on (RFC 4443 §3.2).
    PacketTooBig {
        /// The MTU of the link that the packet does not fit, bytes of IP packet.
        mtu: u32,
        /// The packet's beginning.
        quoted: &'a [u8],
    },
    /// Who has the target address (RFC 4861 §4.3)?
    NeighbourSolicitation {
        /// The address asked for.
        target: Ipv6Addr,
        /// The sender's Ethernet address; none if it has no IPv6 address yet.
        source_link: Option<Address>,
    },
    /// The sender has the target address (RFC 4861 §4.4).
    NeighbourAdvertisement {
        /// The sender is a router.
        router: bool,
        /// It answers a solicitation.
        solicited: bool,
        /// It replaces what the receiver knows.
        replace: bool,
        /// The address that the sender has.
        target: Ipv6Addr,
        /// Its Ethernet address.
        target_link: Option<Address>,
    },
}

impl<'a> Repr<'a> {
    /// What a message says; `None` for types that Wiretax does not know and codes other than 0.
    ///
    /// # Errors
    /// It is cut short, or an option has the length 0 (RFC 4861 §4.6).
    pub fn parse(message: &Message<'a>) -> Result<Option<Self>, Error> {
        let mut reader = Reader::new(FORMAT, message.body);
        Ok(match (message.kind(), message.code()) {
            // RFC 4443 §3.2: the code is ignored by the receiver.
            (PACKET_TOO_BIG, _) => {
                let mtu = reader.u32()?;
                Some(Repr::PacketTooBig { mtu, quoted: reader.rest() })
            }
            (SOLICITATION, 0) => {
                reader.u32()?;
                let target = Ipv6Addr::from(*reader.array::<16>()?);
                let source_link = link_address(reader, SOURCE_LINK)?;
                Some(Repr::NeighbourSolicitation { target, source_link })
            }
            (ADVERTISEMENT, 0) => {
                let flags = reader.u32()?;
                let target = Ipv6Addr::from(*reader.array::<16>()?);
                Some(Repr::NeighbourAdvertisement {
                    router: flags & 1 << 31 != 0,
                    solicited: flags & 1 << 30 != 0,
                    replace: flags & 1 << 29 != 0,
                    target,
                    target_link: link_address(reader, TARGET_LINK)?,
                })
            }
            _ => None,
        })
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        match self {
            Repr::PacketTooBig { quoted, .. } => quoted.len().saturating_add(8),
            Repr::NeighbourSolicitation { source_link, .. } => {
                if source_link.is_some() {
                    32
                } else {
                    24
                }
            }
            Repr::NeighbourAdvertisement { target_link, .. } => {
                if target_link.is_some() {
                    32
                } else {
                    24
                }
            }
        }
    }

    /// Writes the message, checksum included, to the front of `buffer`.
    pub fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, buffer: &mut [u8]) -> Result<(), Error> {
        let len = self.buffer_len();
        let buffer = room(FORMAT, buffer, len)?;
        match *self {
            Repr::PacketTooBig { mtu, quoted } => {
                fill(buffer, [&[PACKET_TOO_BIG, 0, 0, 0], &mtu.to_be_bytes(), quoted, &[]]);
            }
            Repr::NeighbourSolicitation { target, source_link } => {
                let option = link_option(SOURCE_LINK, source_link);
                let head = [SOLICITATION, 0, 0, 0, 0, 0, 0, 0];
                fill(buffer, [&head, &target.octets(), &option, &[]]);
            }
            Repr::NeighbourAdvertisement { router, solicited, replace, target, target_link } => {
                let flags = u8::from(router) << 7 | u8::from(solicited) << 6;
                let flags = flags | u8::from(replace) << 5;
                let option = link_option(TARGET_LINK, target_link);
                let head = [ADVERTISEMENT, 0, 0, 0, flags, 0, 0, 0];
                fill(buffer, [&head, &target.octets(), &option, &[]]);
            }
        }
        let sum = Sum::new().plus_pseudo_header(src.into(), dst.into(), PROTOCOL, len as u32);
        let sum = sum.plus(buffer).finish().to_be_bytes();
        if let Some(field) = buffer.get_mut(2..4) {
            field.copy_from_slice(&sum);
        }
        Ok(())
    }
}

/// The TCP segment that a "packet too big" quotes.
pub fn quoted_segment(quoted: &[u8]) -> Result<QuotedTcp, Error> {
    QuotedTcp::parse_v6(quoted)
}

/// The multicast group in which whoever has `address` listens for solicitations (RFC 4291 §2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// The Ethernet address of an IPv6 multicast group (RFC 2464 §7).
#[must_use]
pub fn multicast_link(group: Ipv6Addr) -> Address {
    let [.., a, b, c, d] = group.octets();
    Address([0x33, 0x33, a, b, c, d])
}

/// The first address among the options that is of this kind.
fn link_address(mut reader: Reader<'_>, kind: u8) -> Result<Option<Address>, Error> {
    while !reader.is_empty() {
        let (found, length) = (reader.u8()?, reader.u8()?);
        // RFC 4861 §4.6: in units of 8 bytes, type and length included; never 0.
        let Some(rest) = usize::from(length).saturating_mul(8).checked_sub(2) else {
            return Err(Error::malformed(FORMAT, "an option has the length 0"));
        };
        let value = reader.take(rest)?;
        if found == kind
            && let Ok(address) = <[u8; 6]>::try_from(value)
        {
            return Ok(Some(Address(address)));
        }
    }
    Ok(None)
}

/// An option with an Ethernet address; its bytes are not used if there is none.
fn link_option(kind: u8, address: Option<Address>) -> [u8; 8] {
    let [a, b, c, d, e, f] = address.unwrap_or_default().0;
    [kind, 1, a, b, c, d, e, f]
}

fn fill(buffer: &mut [u8], parts: [&[u8]; 4]) {
    for (to, from) in buffer.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 0x101);
    const PEER: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 2);
    const LINK: Address = Address([2, 0x77, 0, 0, 1, 1]);

    fn there_and_back(repr: Repr<'_>) {
        let mut buffer = vec![0; repr.buffer_len()];
        repr.emit(US, PEER, &mut buffer).unwrap();
        let message = Message::new_checked(&buffer).unwrap();
        assert!(message.checksum_ok(US, PEER));
        assert!(!message.checksum_ok(US, US));
        assert_eq!(Repr::parse(&message), Ok(Some(repr)));
    }

    #[test]
    fn emitted_is_parsed_back() {
        for link in [None, Some(LINK)] {
            there_and_back(Repr::NeighbourSolicitation { target: PEER, source_link: link });
            for flags in 0..8 {
                there_and_back(Repr::NeighbourAdvertisement {
                    router: flags & 4 != 0,
                    solicited: flags & 2 != 0,
                    replace: flags & 1 != 0,
                    target: US,
                    target_link: link,
                });
            }
        }
        there_and_back(Repr::PacketTooBig { mtu: 1280, quoted: &[0x60; 41] });
    }

    #[test]
    fn a_solicitation_reads_as_one() {
        // The layout of RFC 4861 §4.3, with the option of §4.6.1.
        let mut bytes = vec![135, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(US.octets());
        bytes.extend([1, 1, 2, 0x77, 0, 0, 1, 1]);
        let message = Message::new_checked(&bytes).unwrap();
        let expected = Repr::NeighbourSolicitation { target: US, source_link: Some(LINK) };
        assert_eq!(Repr::parse(&message), Ok(Some(expected)));
    }

    #[test]
    fn an_option_of_length_zero_is_refused() {
        // RFC 4861 §4.6: "nodes MUST silently discard an ND packet that contains an option with
        // length zero".
        let mut bytes = vec![135, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend(US.octets());
        bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        let message = Message::new_checked(&bytes).unwrap();
        assert!(matches!(Repr::parse(&message), Err(Error::Malformed { .. })));
    }

    #[test]
    fn unknown_options_are_passed_over() {
        let mut bytes = vec![136, 0, 0, 0, 0x60, 0, 0, 0];
        bytes.extend(PEER.octets());
        bytes.extend([14, 1, 0, 0, 0, 0, 0, 0, 2, 1, 2, 0x77, 0, 0, 1, 1]);
        let message = Message::new_checked(&bytes).unwrap();
        let expected = Repr::NeighbourAdvertisement {
            router: false,
            solicited: true,
            replace: true,
            target: PEER,
            target_link: Some(LINK),
        };
        assert_eq!(Repr::parse(&message), Ok(Some(expected)));
    }

    #[test]
    fn multicast_addresses() {
        // RFC 4291 §2.7.1's example, and RFC 2464 §7.
        let address = "4037::1:800:200e:8c6c".parse().unwrap();
        let group = solicited_node(address);
        assert_eq!(group, "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().unwrap());
        assert_eq!(multicast_link(group), Address([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]));
    }

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(
            kind in proptest::sample::select(vec![2u8, 135, 136, 1]),
            bytes in proptest::collection::vec(any::<u8>(), 0..96),
        ) {
            crate::fuzz::icmp(&bytes);
            let mut typed = vec![kind, 0, 0, 0];
            typed.extend(bytes);
            crate::fuzz::icmp(&typed);
        }
    }
}
