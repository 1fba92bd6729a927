//! What takes the protection off a frame.

use wire::{l2tpv3, udp, vxlan as vxlan_format};

use super::Reason;
use super::sealer::outer;
use crate::esp::{self, Inbound, transport};
use crate::macsec::{self, Receive};
use crate::underlay::Underlay;
use crate::wireguard::{self, Receiver};
use crate::{Slot, ip_packet_len, l2tp, vxlan};

/// IP's numbers of IPv4 and IPv6 inside of something.
const IP_IN_IP: [u8; 2] = [4, 41];

/// The opening end of a protection, its outer headers included.
pub enum Opener {
    /// Takes frames as they are.
    Plain,
    /// Takes the link's headers off an IP packet that is not protected, as in a PPPoE session.
    Routed {
        /// Addresses of the link's ends, and its session.
        underlay: Underlay,
    },
    /// MACsec, of a frame.
    MacSec(Box<Receive>),
    /// ESP in tunnel mode, of an IP packet.
    Esp {
        /// The security association, with its anti-replay window.
        inbound: Box<Inbound>,
        /// Addresses of the tunnel's ends, which the outer headers must have.
        underlay: Underlay,
    },
    /// A frame in L2TPv3 over UDP, this in ESP in transport mode.
    L2tp {
        /// The security association, with its anti-replay window.
        inbound: Box<Inbound>,
        /// Addresses of the tunnel's ends, which the outer headers must have.
        underlay: Underlay,
        /// This end's number for the session.
        session: u32,
    },
    /// WireGuard's transport data, of an IP packet.
    WireGuard {
        /// The session's receiving half, with its anti-replay window.
        receiver: Box<Receiver>,
        /// Addresses of the tunnel's ends, which the outer headers must have.
        underlay: Underlay,
        /// The UDP port of both ends.
        port: u16,
    },
    /// A MACsec frame in VXLAN.
    MacSecVxlan {
        /// The peers' secure channels, with their anti-replay windows.
        receive: Box<Receive>,
        /// Addresses of the tunnel's ends, which the outer headers must have.
        underlay: Underlay,
        /// The VXLAN network identifier, 24 bits.
        network: u32,
    },
}

impl Opener {
    /// Checks the frame in the slot and takes its protection off: the slot then holds what
    /// [`Sealer::seal`](super::Sealer::seal) was given.
    ///
    /// # Errors
    /// The frame is to be dropped; what the slot then holds means nothing.
    pub fn open(&mut self, slot: &mut Slot<'_>) -> Result<(), Reason> {
        match self {
            Opener::Plain => Ok(()),
            Opener::Routed { underlay } => Ok(underlay.take_link(slot)?),
            Opener::MacSec(receive) => open_macsec(receive, slot),
            Opener::Esp { inbound, underlay } => {
                underlay.take_ethernet(slot)?;
                // Not of the tunnel: unprotected, since the addresses are right.
                if !outer(underlay).unwrap(slot) {
                    return Err(Reason::EspMalformed);
                }
                match inbound.open(slot) {
                    esp::Opened::Delivered { next_header } if IP_IN_IP.contains(&next_header) => {
                        trim(slot)
                    }
                    esp::Opened::Delivered { .. } => Err(Reason::EspNothing),
                    esp::Opened::Dropped(dropped) => Err(dropped.into()),
                }
            }
            Opener::L2tp { inbound, underlay, session } => {
                underlay.take_ethernet(slot)?;
                if let esp::Opened::Dropped(dropped) =
                    transport::open(inbound, slot, underlay.nat_traversal)
                {
                    return Err(dropped.into());
                }
                Underlay::take_ip(slot, udp::PROTOCOL)?;
                Underlay::take_udp(slot, l2tpv3::PORT)?;
                if l2tp::pop(slot, *session) { Ok(()) } else { Err(Reason::NotForUs) }
            }
            Opener::WireGuard { receiver, underlay, port } => {
                underlay.take_ethernet(slot)?;
                Underlay::take_ip(slot, udp::PROTOCOL)?;
                Underlay::take_udp(slot, *port)?;
                match receiver.open(slot) {
                    wireguard::Opened::Delivered => Ok(()),
                    wireguard::Opened::KeepAlive => Err(Reason::WireGuardNoPacket),
                    wireguard::Opened::Dropped(dropped) => Err(dropped.into()),
                }
            }
            Opener::MacSecVxlan { receive, underlay, network } => {
                underlay.take_ethernet(slot)?;
                Underlay::take_ip(slot, udp::PROTOCOL)?;
                Underlay::take_udp(slot, vxlan_format::PORT)?;
                if !vxlan::pop(slot, *network) {
                    return Err(Reason::NotForUs);
                }
                open_macsec(receive, slot)
            }
        }
    }
}

fn open_macsec(receive: &mut Receive, slot: &mut Slot<'_>) -> Result<(), Reason> {
    match receive.open(slot) {
        macsec::Opened::Delivered => Ok(()),
        macsec::Opened::Untagged => Err(Reason::MacsecNoTag),
        macsec::Opened::Dropped(dropped) => Err(dropped.into()),
    }
}

/// Takes off what was padded behind the IP packet in the slot (RFC 4303 §2.7).
fn trim(slot: &mut Slot<'_>) -> Result<(), Reason> {
    let len = ip_packet_len(slot.frame()).ok_or(Reason::EspNothing)?;
    slot.shrink_back(slot.len().saturating_sub(len));
    Ok(())
}
