//! The content of tunnels: GRE packets and datagrams.

use wire::ethernet::EtherType;
use wire::udp::Datagram;
use wire::{capwap, erspan, esp, geneve, gre, gtpu, l2tp, l2tpv3, tzsp, vxlan, wireguard};

use super::Passing;
use super::layer::{Layer, holds_ip};
use crate::wrapping::Wrapping;

/// The content of a GRE packet.
pub(super) fn of_gre<'a>(packet: &gre::Packet<'a>, passing: &mut Passing) -> Option<Layer<'a>> {
    match packet.ether_type() {
        EtherType::ERSPAN | EtherType::ERSPAN_III => {
            Some(Layer::Ethernet(erspan::strip(packet).ok()?))
        }
        other => Layer::of_ether_type(other, packet.payload(), passing),
    }
}

/// What is in a datagram, if it is a tunnel's: known by the port and a header that fits, or by a header
/// that nothing else has.
pub(super) fn tunnelled<'a>(datagram: &Datagram<'a>, passing: &mut Passing) -> Option<Layer<'a>> {
    let payload = datagram.payload();
    match (datagram.source_port(), datagram.destination_port()) {
        (_, vxlan::PORT) => {
            Some(Layer::Ethernet(vxlan::Packet::new_checked(payload).ok()?.payload()))
        }
        (_, vxlan::GPE_PORT) => {
            let packet = vxlan::Packet::new_checked(payload).ok()?;
            match packet.next_protocol() {
                None => Some(Layer::Ethernet(packet.payload())),
                Some(number) => Layer::of_next(number, packet.payload()),
            }
        }
        (_, geneve::PORT) => {
            let packet = geneve::Packet::new_checked(payload).ok()?;
            Layer::of_ether_type(packet.protocol(), packet.payload(), passing)
        }
        (_, gtpu::PORT) => Layer::of_ip(gtpu::Packet::new_captured(payload).ok()?.payload()),
        (capwap::PORT, _) | (_, capwap::PORT) => match capwap::strip(payload) {
            Ok(frame) => Layer::of_captured(frame, passing),
            Err(_) if payload.first() == Some(&capwap::DTLS) => passing.ends_at(Wrapping::Capwap),
            Err(_) => None,
        },
        (_, tzsp::PORT) => Layer::of_captured(tzsp::strip(payload).ok()?, passing),
        (l2tp::PORT, _) | (_, l2tp::PORT) => match l2tpv3::Data::new_checked(payload) {
            Ok(message) => Layer::of_l2tpv3(message.payload(), passing),
            Err(_) => {
                let message = l2tp::Message::new_checked(payload).ok()?;
                if message.is_control() { None } else { Layer::of_ppp(message.payload()) }
            }
        },
        (esp::UDP_PORT, _) | (_, esp::UDP_PORT)
            if matches!(esp::Datagram::new_checked(payload), Ok(esp::Datagram::Esp(_))) =>
        {
            passing.ends_at(Wrapping::Esp)
        }
        _ => by_content(payload, passing),
    }
}

/// As [`tunnelled`], of ports that name no tunnel.
fn by_content<'a>(payload: &'a [u8], passing: &mut Passing) -> Option<Layer<'a>> {
    // Most datagrams are QUIC's, whose first byte has one of these bits (RFC 9000 §17).
    if payload.first()? & 0xc0 != 0 {
        return None;
    }
    if let Ok(packet) = vxlan::Packet::new_checked(payload)
        && packet.is_plain()
        && holds_ip(packet.payload())
    {
        return Some(Layer::Ethernet(packet.payload()));
    }
    match wireguard::Message::new_checked(payload) {
        Ok(wireguard::Message::Data { .. }) => passing.ends_at(Wrapping::WireGuard),
        _ => None,
    }
}
