//! From a captured frame to the transport in it, through the headers around it.

mod layer;
mod tunnel;

use std::net::IpAddr;

use wire::ethernet::Frame;
use wire::tcp::Segment;
use wire::udp::Datagram;
use wire::{ah, esp, gre, ipv4, ipv6, mpls, nsh, pppoe, tcp, udp};

pub(crate) use self::layer::Layer;
use self::tunnel::{of_gre, tunnelled};
use crate::table::Key;
use crate::wrapping::Wrapping;

/// Headers outside of the transport's that are passed at most. Tags of one frame, labels of one
/// stack, and IPv6 with its extension headers, each bounded by itself, count once.
pub(crate) const MAX_HEADERS: u8 = 8;

/// IPv4 in IP (RFC 2003).
const IPV4_IN_IP: u8 = 4;
/// IPv6 in IP (RFC 4213).
const IPV6_IN_IP: u8 = 41;
/// L2TP version 3 in IP (RFC 3931 §4.1.1).
const L2TPV3_IN_IP: u8 = 115;
/// What a capture's frames begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkType {
    /// Ethernet: LINKTYPE_ETHERNET, 1.
    Ethernet,
    /// IPv4 or IPv6 without a link header: LINKTYPE_RAW, 101, and 12, 228, 229.
    RawIp,
    /// A Linux cooked capture: LINKTYPE_LINUX_SLL, 113.
    LinuxCooked,
    /// Its second version: LINKTYPE_LINUX_SLL2, 276.
    LinuxCooked2,
    /// BSD loopback: LINKTYPE_NULL, 0, and LINKTYPE_LOOP, 108.
    Loopback,
    /// PPP: LINKTYPE_PPP, 9, and LINKTYPE_PPP_HDLC, 50.
    Ppp,
}

impl LinkType {
    /// All of them.
    pub const ALL: [LinkType; 6] = [
        LinkType::Ethernet,
        LinkType::RawIp,
        LinkType::LinuxCooked,
        LinkType::LinuxCooked2,
        LinkType::Loopback,
        LinkType::Ppp,
    ];

    /// The link type with this number in a pcap or pcapng file, if Wiretax reads it.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1 => Some(LinkType::Ethernet),
            12 | 101 | 228 | 229 => Some(LinkType::RawIp),
            113 => Some(LinkType::LinuxCooked),
            276 => Some(LinkType::LinuxCooked2),
            0 | 108 => Some(LinkType::Loopback),
            9 | 50 => Some(LinkType::Ppp),
            _ => None,
        }
    }
}

/// Headers of a frame that may still be passed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passing {
    /// Headers that may still be passed.
    left: u8,
    /// The wrapping at which reading ended.
    pub(crate) wrapping: Option<Wrapping>,
}

impl Default for Passing {
    fn default() -> Self {
        Passing { left: MAX_HEADERS, wrapping: None }
    }
}

impl Passing {
    /// Reading ends here.
    fn ends_at<T>(&mut self, wrapping: Wrapping) -> Option<T> {
        self.wrapping = Some(wrapping);
        None
    }
}

/// A transport packet and its two ends: the innermost, where it came through tunnels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoded<'a> {
    pub(crate) key: Key,
    /// Whether the low end of the key sent it.
    pub(crate) from_low: bool,
    pub(crate) transport: Transport<'a>,
}

/// A transport packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport<'a> {
    /// A segment, its payload as far as captured, and the payload's length by the IP header.
    Tcp { segment: Segment<'a>, payload: &'a [u8], payload_len: usize },
    /// A datagram's payload as far as captured, and its length by the UDP header.
    Udp { payload: &'a [u8], payload_len: usize },
}

/// What a frame is to the tracker.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Content<'a> {
    /// A transport packet.
    Transport(Decoded<'a>),
    /// An IP fragment that is not a whole packet.
    Fragment(Fragment<'a>),
}

/// An IP fragment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// What the whole datagram carries; of IPv6 only the first fragment's counts (RFC 8200 §4.5).
    pub(crate) protocol: u8,
    pub(crate) identification: u32,
    /// Where the payload stands in the whole datagram, bytes.
    pub(crate) offset: usize,
    /// Whether fragments follow this one.
    pub(crate) more: bool,
    /// As far as captured.
    pub(crate) payload: &'a [u8],
    /// The payload's length by the IP header.
    pub(crate) payload_len: usize,
}

/// What an IP packet carries: whole, whether it came so or was put together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upper<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) payload: &'a [u8],
    pub(crate) payload_len: usize,
}

/// Reads a frame until the transport. `None` where there is neither TCP nor UDP, or something is malformed.
pub(crate) fn decode_frame<'a>(
    link: LinkType,
    bytes: &'a [u8],
    passing: &mut Passing,
) -> Option<Content<'a>> {
    decode(Layer::of_frame(link, bytes, passing)?, passing)
}

/// As [`decode_frame`], from a layer on. Passes as many headers as `passing` allows and counts them.
pub(crate) fn decode<'a>(mut layer: Layer<'a>, passing: &mut Passing) -> Option<Content<'a>> {
    loop {
        passing.left = passing.left.checked_sub(1)?;
        let upper = match layer {
            Layer::Ethernet(bytes) => {
                let frame = Frame::new_checked(bytes).ok()?;
                layer = Layer::of_ether_type(frame.ether_type(), frame.payload(), passing)?;
                continue;
            }
            Layer::Mpls(bytes) => {
                layer = match mpls::strip(bytes)? {
                    mpls::Payload::Ipv4(packet) => Layer::Ipv4(packet),
                    mpls::Payload::Ipv6(packet) => Layer::Ipv6(packet),
                    mpls::Payload::Ethernet(frame) => Layer::Ethernet(frame),
                };
                continue;
            }
            Layer::Nsh(bytes) => {
                let (next, payload) = nsh::strip(bytes).ok()?;
                layer = Layer::of_next(next, payload)?;
                continue;
            }
            Layer::Pppoe(bytes) => {
                let packet = pppoe::Session::new_captured(bytes).ok()?;
                layer = Layer::of_ether_type(packet.ether_type()?, packet.payload(), passing)?;
                continue;
            }
            Layer::Ipv4(bytes) => {
                let packet = ipv4::Packet::new_captured(bytes).ok()?;
                if packet.is_fragment() {
                    return Some(Content::Fragment(fragment_v4(&packet)));
                }
                Upper {
                    source: packet.source().into(),
                    destination: packet.destination().into(),
                    protocol: packet.protocol(),
                    payload: packet.payload(),
                    payload_len: packet.payload_len(),
                }
            }
            Layer::Ipv6(bytes) => {
                let packet = ipv6::Packet::new_captured(bytes).ok()?;
                let inner = packet.upper().ok()?;
                if inner.fragment.is_some_and(|header| !header.is_atomic()) {
                    return Some(Content::Fragment(fragment_v6(&packet, &inner)?));
                }
                Upper {
                    source: packet.source().into(),
                    destination: packet.destination().into(),
                    protocol: inner.protocol,
                    payload: inner.payload,
                    payload_len: inner.payload_len,
                }
            }
            Layer::Upper(upper) => upper,
        };
        layer = match upper.protocol {
            tcp::PROTOCOL => return upper.read_tcp(),
            udp::PROTOCOL => {
                let datagram = Datagram::new_captured(upper.payload).ok()?;
                match tunnelled(&datagram, passing) {
                    Some(inside) => inside,
                    None if passing.wrapping.is_some() => return None,
                    None => return Some(upper.read_udp(&datagram)),
                }
            }
            IPV4_IN_IP => Layer::Ipv4(upper.payload),
            IPV6_IN_IP => Layer::Ipv6(upper.payload),
            ah::PROTOCOL => {
                let (protocol, payload) = ah::strip(upper.payload).ok()?;
                let before = upper.payload.len() - payload.len();
                let payload_len = upper.payload_len.saturating_sub(before);
                Layer::Upper(Upper { protocol, payload, payload_len, ..upper })
            }
            L2TPV3_IN_IP => match upper.payload.split_first_chunk()? {
                // The session 0 is control's own (RFC 3931 §4.1.1.2).
                ([0, 0, 0, 0], _) => return None,
                (_, payload) => Layer::of_l2tpv3(payload, passing)?,
            },
            esp::PROTOCOL => return passing.ends_at(Wrapping::Esp),
            gre::PROTOCOL => match gre::Packet::new_checked(upper.payload) {
                Ok(packet) => of_gre(&packet, passing)?,
                // Version 1, by which PPTP tunnels PPP (RFC 2637 §4.1).
                Err(_) => match upper.payload {
                    [_, flags, ..] if flags & 7 == 1 => return passing.ends_at(Wrapping::Pptp),
                    _ => return None,
                },
            },
            _ => return None,
        };
    }
}

/// The two ends of a plain TCP segment over IPv4 in Ethernet, which most frames are: addresses as numbers in
/// little order, and ports; who sent it first. What [`decode`] finds in such a frame, if anything, is TCP
/// between these ends. What else there is, or is odd in any way, is none.
#[inline]
pub(crate) fn plain_tcp(link_type: LinkType, bytes: &[u8]) -> Option<[(u32, u16); 2]> {
    if link_type != LinkType::Ethernet {
        return None;
    }
    let header: &[u8; 38] = bytes.first_chunk()?;
    // EtherType IPv4; version 4 and no options; no fragment; TCP.
    let [
        ..,
        0x08,
        0x00,
        0x45,
        _,
        _,
        _,
        _,
        _,
        fragment,
        offset,
        _,
        6,
        _,
        _,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        p,
        q,
        r,
        s,
    ] = *header
    else {
        return None;
    };
    if fragment & 0x3f != 0 || offset != 0 {
        return None;
    }
    let end = |address, port| (u32::from_le_bytes(address), u16::from_be_bytes(port));
    Some([end([a, b, c, d], [p, q]), end([e, f, g, h], [r, s])])
}

fn fragment_v4<'a>(packet: &ipv4::Packet<'a>) -> Fragment<'a> {
    Fragment {
        source: packet.source().into(),
        destination: packet.destination().into(),
        protocol: packet.protocol(),
        identification: packet.identification().into(),
        offset: packet.fragment_offset(),
        more: packet.more_fragments(),
        payload: packet.payload(),
        payload_len: packet.payload_len(),
    }
}

fn fragment_v6<'a>(packet: &ipv6::Packet<'a>, inner: &ipv6::Upper<'a>) -> Option<Fragment<'a>> {
    let header = inner.fragment?;
    Some(Fragment {
        source: packet.source().into(),
        destination: packet.destination().into(),
        protocol: inner.protocol,
        identification: header.identification,
        offset: header.offset,
        more: header.more,
        payload: inner.payload,
        payload_len: inner.payload_len,
    })
}

impl<'a> Upper<'a> {
    fn read_tcp(&self) -> Option<Content<'a>> {
        let segment = Segment::new_checked(self.payload).ok()?;
        let payload_len = self.payload_len.saturating_sub(segment.header_len());
        let payload = segment.payload();
        let ports = [segment.source_port(), segment.destination_port()];
        let (key, from_low) = Key::new([self.source, self.destination], ports, true);
        let transport = Transport::Tcp { segment, payload, payload_len };
        Some(Content::Transport(Decoded { key, from_low, transport }))
    }

    fn read_udp(&self, datagram: &Datagram<'a>) -> Content<'a> {
        let (payload, payload_len) = (datagram.payload(), datagram.payload_len());
        let ports = [datagram.source_port(), datagram.destination_port()];
        let (key, from_low) = Key::new([self.source, self.destination], ports, false);
        let transport = Transport::Udp { payload, payload_len };
        Content::Transport(Decoded { key, from_low, transport })
    }
}
