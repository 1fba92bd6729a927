//! ICMP's messages that a packet was too big, as the endpoint takes them.
//!
//! The endpoint checks that the quoted segment is one that is under way (RFC 5927 §7) before it
//! believes them.

use tcp::PathMtu;
use units::SeqNumber;
use wire::icmp::QuotedTcp;
use wire::{icmpv4, icmpv6, ipv4};

/// What an IPv4 packet with an ICMP message tells.
pub(crate) fn from_v4(packet: &ipv4::Packet<'_>) -> Option<PathMtu> {
    if packet.is_fragment() {
        return None;
    }
    let message = icmpv4::Message::new_checked(packet.payload()).ok()?;
    let needed = icmpv4::FragmentationNeeded::parse(&message)?;
    let segment = needed.segment().ok()?;
    Some(reported(&segment, needed.mtu(&segment)))
}

/// What an ICMPv6 message with a right checksum tells.
pub(crate) fn from_v6(message: &icmpv6::Repr<'_>) -> Option<PathMtu> {
    let icmpv6::Repr::PacketTooBig { mtu, quoted } = *message else { return None };
    let segment = icmpv6::quoted_segment(quoted).ok()?;
    // RFC 8201 §4: never below IPv6's least MTU.
    Some(reported(&segment, u16::try_from(mtu).unwrap_or(u16::MAX).max(1280)))
}

fn reported(segment: &QuotedTcp, mtu: u16) -> PathMtu {
    PathMtu {
        local: segment.source,
        remote: segment.destination,
        sequence: SeqNumber(segment.sequence),
        mtu,
    }
}
