//! From a captured frame to the transport in it.

use std::net::{IpAddr, SocketAddr};

use wire::ethernet::{EtherType, Frame};
use wire::tcp::Segment;
use wire::udp::Datagram;
use wire::{ipv4, ipv6, tcp, udp, vlan};

/// What a capture's frames begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkType {
    /// Ethernet: LINKTYPE_ETHERNET, 1.
    Ethernet,
    /// IPv4 or IPv6 without a link header: LINKTYPE_RAW, 101, and 228, 229.
    RawIp,
}

impl LinkType {
    /// The link type with this number in a pcap or pcapng file, if Wiretax reads it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(LinkType::Ethernet),
            12 | 101 | 228 | 229 => Some(LinkType::RawIp),
            _ => None,
        }
    }
}

/// A transport packet and its addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoded<'a> {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) transport: Transport<'a>,
}

/// A transport packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport<'a> {
    /// A segment, its payload as far as captured, and the payload's length by the IP header.
    Tcp { segment: Segment<'a>, payload: &'a [u8], payload_len: usize },
    /// A datagram's payload.
    Udp(&'a [u8]),
}

/// What a frame is to the tracker.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    /// A transport packet.
    Transport(Decoded<'a>),
    /// An IP fragment that is not a whole packet.
    Fragment,
    /// Anything else.
    Other,
}

/// Reads a frame.
pub(crate) fn decode(link: LinkType, bytes: &[u8]) -> Content<'_> {
    read(link, bytes).unwrap_or(Content::Other)
}

fn read(link: LinkType, bytes: &[u8]) -> Option<Content<'_>> {
    match link {
        LinkType::Ethernet => {
            let frame = Frame::new_checked(bytes).ok()?;
            match vlan::strip(frame.ether_type(), frame.payload())? {
                (EtherType::IPV4, packet) => read_ipv4(packet),
                (EtherType::IPV6, packet) => read_ipv6(packet),
                _ => None,
            }
        }
        LinkType::RawIp => match bytes.first()? >> 4 {
            4 => read_ipv4(bytes),
            6 => read_ipv6(bytes),
            _ => None,
        },
    }
}

fn read_ipv4(bytes: &[u8]) -> Option<Content<'_>> {
    let packet = ipv4::Packet::new_captured(bytes).ok()?;
    if packet.is_fragment() {
        return Some(Content::Fragment);
    }
    let (source, destination) = (packet.source().into(), packet.destination().into());
    upper(source, destination, packet.protocol(), packet.payload(), packet.payload_len())
}

fn read_ipv6(bytes: &[u8]) -> Option<Content<'_>> {
    let packet = ipv6::Packet::new_captured(bytes).ok()?;
    let next = packet.upper().ok()?;
    if next.fragment.is_some_and(|fragment| !fragment.is_atomic()) {
        return Some(Content::Fragment);
    }
    let (source, destination) = (packet.source().into(), packet.destination().into());
    upper(source, destination, next.protocol, next.payload, next.payload_len)
}

fn upper(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    bytes: &[u8],
    len: usize,
) -> Option<Content<'_>> {
    let (ports, transport) = match protocol {
        tcp::PROTOCOL => {
            let segment = Segment::new_checked(bytes).ok()?;
            let payload_len = len.saturating_sub(segment.header_len());
            let payload = segment.payload();
            let transport = Transport::Tcp { segment, payload, payload_len };
            ((segment.source_port(), segment.destination_port()), transport)
        }
        udp::PROTOCOL => {
            let datagram = Datagram::new_captured(bytes).ok()?;
            let ports = (datagram.source_port(), datagram.destination_port());
            (ports, Transport::Udp(datagram.payload()))
        }
        _ => return None,
    };
    Some(Content::Transport(Decoded {
        source: SocketAddr::new(source, ports.0),
        destination: SocketAddr::new(destination, ports.1),
        transport,
    }))
}
