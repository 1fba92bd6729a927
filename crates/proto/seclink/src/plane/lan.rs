//! The end of a routed path at its LAN.

use wire::ethernet::{self, Address, EtherType, Frame};
use wire::vlan;

use super::Reason;
use crate::{SealError, Slot, ip_packet_len};

/// A node's end at the tester's LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lan {
    /// The node's own address there.
    pub own: Address,
    /// The tester's address: frames from the node go to it.
    pub host: Address,
    /// The VLAN that its frames are tagged with, below 4096; untagged if not given.
    pub vlan: Option<u16>,
}

impl Lan {
    /// Takes Ethernet's header and VLAN tag off a frame that the node is to route, and what Ethernet pads.
    ///
    /// # Errors
    /// It is for another station, of another VLAN, or holds no whole IP packet. It is then as it was.
    pub fn strip(&self, slot: &mut Slot<'_>) -> Result<(), Reason> {
        let frame = Frame::new_checked(slot.frame()).map_err(|_| Reason::TooShort)?;
        if frame.destination() != self.own {
            return Err(Reason::NotForUs);
        }
        let (ether_type, packet) = match (self.vlan, frame.ether_type()) {
            (None, ether_type) => (ether_type, frame.payload()),
            (Some(vlan), EtherType::VLAN) => {
                let tag = vlan::Tag::new_checked(frame.payload()).map_err(|_| Reason::TooShort)?;
                if tag.vlan() != vlan {
                    return Err(Reason::NotIp);
                }
                (tag.ether_type(), tag.payload())
            }
            (Some(_), _) => return Err(Reason::NotIp),
        };
        if ether_type_of(packet) != Some(ether_type) {
            return Err(Reason::NotIp);
        }
        let len = ip_packet_len(packet).ok_or(Reason::NotIp)?;
        let before = slot.len().saturating_sub(packet.len());
        slot.shrink_front(before);
        slot.shrink_back(slot.len().saturating_sub(len));
        Ok(())
    }

    /// Puts Ethernet's header and VLAN tag before the IP packet in the slot.
    ///
    /// # Errors
    /// There is no room before it, or it is no IP packet. It is then as it was.
    pub fn dress(&self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        let ether_type = ether_type_of(slot.frame()).ok_or(SealError::TooShort)?;
        let tag = self.vlan.map(|vlan| vlan::Repr {
            vlan,
            priority: 0,
            drop_eligible: false,
            ether_type,
        });
        let added = ethernet::HEADER_LEN + if tag.is_some() { vlan::HEADER_LEN } else { 0 };
        let header = ethernet::Repr {
            destination: self.host,
            source: self.own,
            ether_type: if tag.is_some() { EtherType::VLAN } else { ether_type },
        };
        slot.grow_front(added)?;
        let buffer = slot.frame_mut();
        let written = header.emit(buffer).and_then(|()| match tag {
            Some(tag) => tag.emit(buffer.get_mut(ethernet::HEADER_LEN..).unwrap_or_default()),
            None => Ok(()),
        });
        if written.is_err() {
            slot.shrink_front(added);
            return Err(SealError::TooShort);
        }
        Ok(())
    }
}

/// The EtherType of an IP packet, by its version.
fn ether_type_of(packet: &[u8]) -> Option<EtherType> {
    match packet.first()? >> 4 {
        4 => Some(EtherType::IPV4),
        6 => Some(EtherType::IPV6),
        _ => None,
    }
}
