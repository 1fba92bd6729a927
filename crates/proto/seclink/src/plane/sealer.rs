//! What protects a frame.

use wire::{l2tpv3, udp, vxlan as vxlan_format};

use crate::esp::Outbound;
use crate::esp::transport;
use crate::esp::tunnel::{Inner, Outer};
use crate::macsec::Transmit;
use crate::underlay::Underlay;
use crate::wireguard::Sender;
use crate::{SealError, Slot, l2tp, vxlan};

/// The sealing end of a protection, its outer headers included.
pub enum Sealer {
    /// Leaves frames as they are.
    Plain,
    /// Puts an IP packet on its way unprotected, as in a PPPoE session.
    Routed {
        /// Addresses of the link's ends, and its session.
        underlay: Underlay,
    },
    /// MACsec, of a frame.
    MacSec(Box<Transmit>),
    /// ESP in tunnel mode, of an IP packet.
    Esp {
        /// The security association, with the next sequence number.
        outbound: Box<Outbound>,
        /// Addresses of the tunnel's ends, for the outer headers.
        underlay: Underlay,
    },
    /// A frame in L2TPv3 over UDP, this in ESP in transport mode.
    L2tp {
        /// The security association, with the next sequence number.
        outbound: Box<Outbound>,
        /// Addresses of the tunnel's ends, for the outer headers.
        underlay: Underlay,
        /// The receiver's number for the session.
        session: u32,
    },
    /// WireGuard's transport data, of an IP packet.
    WireGuard {
        /// The session's sending half, with its counter.
        sender: Box<Sender>,
        /// Addresses of the tunnel's ends, for the outer headers.
        underlay: Underlay,
        /// The UDP port of both ends.
        port: u16,
    },
    /// A MACsec frame in VXLAN.
    MacSecVxlan {
        /// The secure channel, with its packet number.
        transmit: Box<Transmit>,
        /// Addresses of the tunnel's ends, for the outer headers.
        underlay: Underlay,
        /// The VXLAN network identifier, 24 bits.
        network: u32,
    },
}

impl Sealer {
    /// Protects what is in the slot, a frame or an IP packet; the slot then holds a frame.
    ///
    /// # Errors
    /// There is no room around it, or the key is used up.
    pub fn seal(&mut self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        match self {
            Sealer::Plain => Ok(()),
            Sealer::Routed { underlay } => underlay.put_ethernet(slot),
            Sealer::MacSec(transmit) => transmit.seal(slot),
            Sealer::Esp { outbound, underlay } => {
                let inner = Inner::of(slot.frame()).ok_or(SealError::TooShort)?;
                outbound.seal(slot, inner.next_header)?;
                outer(underlay).wrap(slot, inner)?;
                underlay.put_ethernet(slot)
            }
            Sealer::L2tp { outbound, underlay, session } => {
                l2tp::push(slot, *session)?;
                underlay.put_udp(slot, l2tpv3::PORT, l2tpv3::PORT)?;
                underlay.put_ip(slot, udp::PROTOCOL)?;
                transport::seal(outbound, slot, underlay.nat_traversal)?;
                underlay.put_ethernet(slot)
            }
            Sealer::WireGuard { sender, underlay, port } => {
                sender.seal(slot)?;
                underlay.put_udp(slot, *port, *port)?;
                underlay.put_ip(slot, udp::PROTOCOL)?;
                underlay.put_ethernet(slot)
            }
            Sealer::MacSecVxlan { transmit, underlay, network } => {
                transmit.seal(slot)?;
                let from = vxlan::source_port(slot.frame());
                vxlan::push(slot, *network)?;
                underlay.put_udp(slot, from, vxlan_format::PORT)?;
                underlay.put_ip(slot, udp::PROTOCOL)?;
                underlay.put_ethernet(slot)
            }
        }
    }
}

/// The outer headers of ESP's tunnel mode.
pub(super) const fn outer(underlay: &Underlay) -> Outer {
    Outer { ends: underlay.ends(), in_udp: underlay.nat_traversal }
}
