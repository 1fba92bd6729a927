//! Frames inside of others: one function an encapsulation.
#![allow(dead_code)]

use wire::ethernet::{self, EtherType};
use wire::{cooked, gre, ipv4, ipv6, mpls, pppoe, udp, vlan, vxlan};

/// An Ethernet header before a payload.
pub fn ethernet(ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let header = ethernet::Repr {
        destination: ethernet::Address([2; 6]),
        source: ethernet::Address([4; 6]),
        ether_type,
    };
    let mut out = vec![0; header.buffer_len()];
    header.emit(&mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

/// VLAN tags in a frame.
pub fn tagged(frame: &[u8], tags: &[EtherType]) -> Vec<u8> {
    let mut inner = EtherType(u16::from_be_bytes([frame[12], frame[13]]));
    let mut payload = frame[14..].to_vec();
    for tag in tags.iter().rev() {
        let repr = vlan::Repr { vlan: 9, priority: 0, drop_eligible: false, ether_type: inner };
        let mut header = vec![0; repr.buffer_len()];
        repr.emit(&mut header).unwrap();
        payload = [header, payload].concat();
        inner = *tag;
    }
    ethernet(inner, &payload)
}

/// MPLS labels before a payload, in an Ethernet frame.
pub fn labelled(payload: &[u8], labels: u32) -> Vec<u8> {
    let mut stack = Vec::new();
    for label in 1..=labels {
        let bottom = label == labels;
        let repr = mpls::Repr { label: 16 + label, traffic_class: 0, bottom, time_to_live: 60 };
        let mut header = vec![0; repr.buffer_len()];
        repr.emit(&mut header).unwrap();
        stack.extend(header);
    }
    ethernet(EtherType::MPLS, &[&stack, payload].concat())
}

/// A PPPoE session packet around an IP packet, in an Ethernet frame.
pub fn pppoe(packet: &[u8]) -> Vec<u8> {
    let protocol = if packet[0] >> 4 == 4 { pppoe::PPP_IPV4 } else { pppoe::PPP_IPV6 };
    let repr = pppoe::Repr { session: 77, protocol, payload_len: packet.len() };
    let mut header = vec![0; repr.buffer_len()];
    repr.emit(&mut header).unwrap();
    ethernet(EtherType::PPPOE_SESSION, &[&header, packet].concat())
}

/// An IPv4 header between two tunnel ends before a payload.
pub fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let repr = ipv4::Repr {
        source: [192, 0, 2, 1].into(),
        destination: [192, 0, 2, 2].into(),
        protocol,
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        time_to_live: 64,
        payload_len: payload.len(),
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

/// An IPv6 header between two tunnel ends before a payload.
pub fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let repr = ipv6::Repr {
        source: [0x20; 16].into(),
        destination: [0x21; 16].into(),
        next_header,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
        payload_len: payload.len(),
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

/// A GRE header with all of its options before a payload.
pub fn gre(ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let repr =
        gre::Repr { ether_type, checksum: Some(7), key: Some(0x0800_4500), sequence: Some(3) };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).unwrap();
    out.extend_from_slice(payload);
    out
}

/// A UDP datagram to VXLAN's port around a frame.
pub fn vxlan(frame: &[u8]) -> Vec<u8> {
    let repr = vxlan::Repr { network: 0x45_08_00 };
    let mut header = vec![0; repr.buffer_len()];
    repr.emit(&mut header).unwrap();
    datagram(50_000, vxlan::PORT, &[&header, frame].concat())
}

/// A UDP datagram to Geneve's port around what an EtherType announces, with an option of four bytes.
/// A mirrored frame in GRE, with a sequence number unless the type is I.
pub fn erspan(kind: u8, frame: &[u8]) -> Vec<u8> {
    let (ether_type, header) = match kind {
        1 => (EtherType::ERSPAN, &[][..]),
        2 => (EtherType::ERSPAN, &[0x10, 1, 0, 1, 0, 0, 0, 0][..]),
        _ => (EtherType::ERSPAN_III, &[0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..]),
    };
    let sequence = (kind > 1).then_some(7);
    let gre = wire::gre::Repr { ether_type, checksum: None, key: None, sequence };
    let mut out = vec![0; gre.buffer_len()];
    gre.emit(&mut out).unwrap();
    [&out[..], header, frame].concat()
}

/// A frame with its EtherType and what follows behind a SNAP header, so that it has a length, 1500 at most.
pub fn snap(frame: &[u8]) -> Vec<u8> {
    let len = u16::try_from(frame.len() - 14 + 8).unwrap().min(1500).to_be_bytes();
    [&frame[..12], &len, &[0xaa, 0xaa, 3, 0, 0, 0], &frame[12..]].concat()
}

/// A frame with a tag before its EtherType.
pub fn with_tag(ether_type: EtherType, tag: &[u8], frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &ether_type.0.to_be_bytes(), tag, &frame[12..]].concat()
}

pub fn geneve(ether_type: EtherType, payload: &[u8]) -> Vec<u8> {
    let [high, low] = ether_type.0.to_be_bytes();
    let header = [2, 0, high, low, 0, 0, 7, 0, 1, 2, 3, 1, 9, 9, 9, 9];
    datagram(50_000, 6081, &[&header, payload].concat())
}

/// A UDP datagram to GTP-U's port around an IP packet, with a sequence number and an extension header.
pub fn gtpu(packet: &[u8]) -> Vec<u8> {
    let [high, low] = ((packet.len() + 8) as u16).to_be_bytes();
    let header = [0x36, 255, high, low, 0, 0, 0, 7, 0, 1, 0, 0x85, 1, 0x10, 9, 0];
    datagram(50_000, 2152, &[&header, packet].concat())
}

/// A UDP datagram from CAPWAP's data port around an Ethernet frame, or one of IEEE 802.11.
pub fn capwap(native: bool, frame: &[u8]) -> Vec<u8> {
    let header = [0, 0x10, if native { 3 } else { 2 }, 0, 0, 0, 0, 0];
    datagram(5247, 50_000, &[&header, frame].concat())
}

/// An IEEE 802.11 data frame with QoS around an IPv4 packet.
pub fn ieee_80211(packet: &[u8]) -> Vec<u8> {
    [&[0x88, 1][..], &[4; 24], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet].concat()
}

/// A UDP datagram.
pub fn datagram(source_port: u16, destination_port: u16, payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port, destination_port };
    let mut out = vec![0; udp.buffer_len(payload.len())];
    let ends = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
    udp.emit(ends[0], ends[1], payload, &mut out).unwrap();
    out
}

/// A cooked header before a packet; the second version with an interface.
pub fn cooked(ether_type: EtherType, interface: Option<u32>, packet: &[u8]) -> Vec<u8> {
    let repr = cooked::Repr { ether_type, device_type: 1, packet_type: 0, interface };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).unwrap();
    out.extend_from_slice(packet);
    out
}

/// An IPv4 packet in fragments of `size` bytes of payload, a multiple of 8.
pub fn fragments_v4(packet: &[u8], id: u16, size: usize) -> Vec<Vec<u8>> {
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let payload = &packet[20..total];
    let count = payload.chunks(size).count();
    let fragment = |(number, piece): (usize, &[u8])| {
        let mut out = packet[..20].to_vec();
        out[2..4].copy_from_slice(&((20 + piece.len()) as u16).to_be_bytes());
        out[4..6].copy_from_slice(&id.to_be_bytes());
        let more = if number + 1 < count { 0x2000 } else { 0 };
        out[6..8].copy_from_slice(&((number * size / 8) as u16 | more).to_be_bytes());
        out.extend_from_slice(piece);
        out
    };
    payload.chunks(size).enumerate().map(fragment).collect()
}

/// A payload in fragments of `size` bytes, a multiple of 8, each in an IPv6 packet.
pub fn fragments_v6(protocol: u8, payload: &[u8], id: u32, size: usize) -> Vec<Vec<u8>> {
    let count = payload.chunks(size).count();
    let fragment = |(number, piece): (usize, &[u8])| {
        let more = u16::from(number + 1 < count);
        let mut header = vec![protocol, 0];
        header.extend(((number * size) as u16 | more).to_be_bytes());
        header.extend(id.to_be_bytes());
        header.extend_from_slice(piece);
        ipv6(44, &header)
    };
    payload.chunks(size).enumerate().map(fragment).collect()
}
