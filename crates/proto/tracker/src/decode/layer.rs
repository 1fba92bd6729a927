//! The next header of a frame, by what announces it.

use wire::ethernet::{EtherType, Frame};
use wire::nsh::Next;
use wire::{capwap, cooked, ipv4, ipv6, llc, macsec, ppp, vlan};

use super::{LinkType, Passing, Upper};
use crate::wrapping::Wrapping;

/// Bytes before the frame of an L2TP pseudowire, behind the session: a cookie of none, 4 or 8 bytes, and perhaps
/// a sublayer of 4 (RFC 3931 §4.1, §4.6). No message says which.
const L2TPV3_OFFSETS: [usize; 4] = [0, 4, 8, 12];
/// Bytes of the ICV of all of MACsec's cipher suites (IEEE 802.1AE §14.4).
const MACSEC_ICV_LEN: usize = 16;

/// What is to be read next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layer<'a> {
    Ethernet(&'a [u8]),
    Ipv4(&'a [u8]),
    Ipv6(&'a [u8]),
    Mpls(&'a [u8]),
    Nsh(&'a [u8]),
    Pppoe(&'a [u8]),
    Upper(Upper<'a>),
}

impl<'a> Layer<'a> {
    /// The first header of a frame, a cooked one passed.
    pub(super) fn of_frame(link: LinkType, bytes: &'a [u8], passing: &mut Passing) -> Option<Self> {
        let (ether_type, payload) = match link {
            LinkType::Ethernet => return Some(Layer::Ethernet(bytes)),
            LinkType::RawIp => return Layer::of_ip(bytes),
            LinkType::Ppp => return Layer::of_ppp(bytes),
            LinkType::LinuxCooked => {
                let (header, payload) = cooked::Repr::parse_v1(bytes).ok()?;
                (header.ether_type, payload)
            }
            LinkType::LinuxCooked2 => {
                let (header, payload) = cooked::Repr::parse_v2(bytes).ok()?;
                (header.ether_type, payload)
            }
            LinkType::Loopback => cooked::strip_loopback(bytes).ok()?,
        };
        Layer::of_ether_type(ether_type, payload, passing)
    }

    /// An IP packet of either version, by its first four bits.
    pub(super) fn of_ip(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Some(Layer::Ipv4(packet)),
            6 => Some(Layer::Ipv6(packet)),
            _ => None,
        }
    }

    /// An IP packet or an MPLS stack, by its EtherType.
    fn of_network(ether_type: EtherType, payload: &'a [u8]) -> Option<Self> {
        match ether_type {
            EtherType::IPV4 => Some(Layer::Ipv4(payload)),
            EtherType::IPV6 => Some(Layer::Ipv6(payload)),
            EtherType::MPLS | EtherType::MPLS_UPSTREAM => Some(Layer::Mpls(payload)),
            _ => None,
        }
    }

    /// The content of a PPP packet.
    pub(super) fn of_ppp(bytes: &'a [u8]) -> Option<Self> {
        let packet = ppp::Packet::new_checked(bytes).ok()?;
        Layer::of_network(packet.ether_type()?, packet.payload())
    }

    /// The header that an EtherType announces, behind tags and a SNAP header.
    pub(super) fn of_ether_type(
        ether_type: EtherType,
        payload: &'a [u8],
        passing: &mut Passing,
    ) -> Option<Self> {
        let (mut ether_type, mut payload) = vlan::strip(ether_type, payload)?;
        if ether_type.is_length() {
            (ether_type, payload) = llc::strip(payload).ok()?;
        }
        match ether_type {
            EtherType::PPPOE_SESSION => Some(Layer::Pppoe(payload)),
            EtherType::BRIDGED => Some(Layer::Ethernet(payload)),
            EtherType::I_TAG => Some(Layer::Ethernet(payload.get(vlan::I_TAG_LEN..)?)),
            EtherType::NSH => Some(Layer::Nsh(payload)),
            EtherType::MACSEC => Layer::of_macsec(payload, passing),
            other => Layer::of_network(other, payload)
                .or_else(|| passing.ends_at(Wrapping::of_ether_type(other)?)),
        }
    }

    /// The user data of a MAC security tag that does not encrypt (IEEE 802.1AE §9.5).
    pub(super) fn of_macsec(bytes: &'a [u8], passing: &mut Passing) -> Option<Self> {
        let tag = macsec::Tag::new_checked(bytes).ok()?;
        if tag.protection() != macsec::Protection::IntegrityOnly {
            return passing.ends_at(Wrapping::Macsec);
        }
        let data = tag.rest().get(..tag.secure_data(MACSEC_ICV_LEN).ok()?)?;
        let (ether_type, payload) = data.split_first_chunk()?;
        let (ether_type, payload) =
            vlan::strip(EtherType(u16::from_be_bytes(*ether_type)), payload)?;
        Layer::of_network(ether_type, payload)
    }

    /// The header that a number of NSH or VXLAN-GPE announces.
    pub(super) fn of_next(number: u8, payload: &'a [u8]) -> Option<Self> {
        Some(match Next::of(number)? {
            Next::Ipv4 => Layer::Ipv4(payload),
            Next::Ipv6 => Layer::Ipv6(payload),
            Next::Ethernet => Layer::Ethernet(payload),
            Next::Nsh => Layer::Nsh(payload),
            Next::Mpls => Layer::Mpls(payload),
        })
    }

    /// A captured frame, of a wire or of a radio.
    pub(super) fn of_captured(frame: capwap::Payload<'a>, passing: &mut Passing) -> Option<Self> {
        match frame {
            capwap::Payload::Ethernet(frame) => Some(Layer::Ethernet(frame)),
            capwap::Payload::Ieee80211(frame) => match capwap::strip_80211(frame) {
                Ok((ether_type, packet)) => Layer::of_ether_type(ether_type, packet, passing),
                Err(_) => None,
            },
        }
    }

    /// The frame of an L2TP session, where one of the places that it may have holds IP in Ethernet, or IP
    /// in PPP.
    pub(super) fn of_l2tpv3(payload: &'a [u8], passing: &mut Passing) -> Option<Self> {
        let at = |offset: &usize| payload.get(*offset..).filter(|frame| holds_ip(frame));
        match L2TPV3_OFFSETS.iter().find_map(at) {
            Some(frame) => Some(Layer::Ethernet(frame)),
            None => passing.ends_at(Wrapping::L2tp),
        }
    }
}

/// Whether bytes look like an Ethernet frame that carries IP, tagged or not.
pub(super) fn holds_ip(bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::new_checked(bytes) else { return false };
    match vlan::strip(frame.ether_type(), frame.payload()) {
        Some((EtherType::IPV4, packet)) => ipv4::Packet::new_captured(packet).is_ok(),
        Some((EtherType::IPV6, packet)) => ipv6::Packet::new_captured(packet).is_ok(),
        _ => false,
    }
}
