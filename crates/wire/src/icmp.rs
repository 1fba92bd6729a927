//! What ICMP messages of both families share: the packet that an error quotes.

use std::net::{IpAddr, SocketAddr};

use crate::{Error, Reader, ipv4, ipv6, tcp};

/// The beginning of a TCP segment that an ICMP error quotes: which connection it is about.
///
/// The quoted packet is one that the receiver of the error has sent, or so its sender says:
/// RFC 5927 §4 tells what to check before it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedTcp {
    /// Who sent the quoted segment: the receiver of the error.
    pub source: SocketAddr,
    /// Where it went.
    pub destination: SocketAddr,
    /// Its sequence number.
    pub sequence: u32,
    /// Bytes of the whole packet by its IP header.
    pub packet_len: usize,
}

impl QuotedTcp {
    /// Reads a quoted IPv4 packet: header and at least 8 bytes (RFC 792).
    pub fn parse_v4(quoted: &[u8]) -> Result<Self, Error> {
        let packet = ipv4::Packet::new_captured(quoted)?;
        if packet.protocol() != tcp::PROTOCOL || packet.fragment_offset() != 0 {
            return Err(Error::malformed("ICMP", "it does not quote the beginning of a segment"));
        }
        let header_len = ipv4::HEADER_LEN.saturating_add(packet.options().len());
        let packet_len = packet.payload_len().saturating_add(header_len);
        let (source, destination) = (packet.source().into(), packet.destination().into());
        Self::read(source, destination, packet_len, packet.payload())
    }

    /// Reads a quoted IPv6 packet: as much of it as fits (RFC 4443 §2.4).
    pub fn parse_v6(quoted: &[u8]) -> Result<Self, Error> {
        let packet = ipv6::Packet::new_captured(quoted)?;
        let upper = packet.upper()?;
        let later_fragment = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
        if upper.protocol != tcp::PROTOCOL || later_fragment {
            return Err(Error::malformed("ICMPv6", "it does not quote the beginning of a segment"));
        }
        let packet_len = packet.payload_len().saturating_add(ipv6::HEADER_LEN);
        let (source, destination) = (packet.source().into(), packet.destination().into());
        Self::read(source, destination, packet_len, upper.payload)
    }

    fn read(
        source: IpAddr,
        destination: IpAddr,
        packet_len: usize,
        segment: &[u8],
    ) -> Result<Self, Error> {
        let mut reader = Reader::new("quoted TCP", segment);
        let (source_port, destination_port) = (reader.u16()?, reader.u16()?);
        Ok(QuotedTcp {
            source: SocketAddr::new(source, source_port),
            destination: SocketAddr::new(destination, destination_port),
            sequence: reader.u32()?,
            packet_len,
        })
    }
}
