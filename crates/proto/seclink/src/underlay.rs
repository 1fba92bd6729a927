//! The network under a tunnel: Ethernet, PPPoE, IP and UDP headers between two stations.

use std::net::IpAddr;

use wire::checksum::Sum;
use wire::ethernet::{Address, EtherType, Frame};
use wire::{ethernet, ipv4, ipv6, pppoe, udp};

use crate::esp::tunnel::Ends;
use crate::{SealError, Slot, ip_packet_len};

/// Hops that a packet begins with.
const TIME_TO_LIVE: u8 = 64;

/// Where a tunnel begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address.
    pub mac: Address,
    /// Its address in the network under the tunnel.
    pub ip: IpAddr,
}

/// The two ends of a tunnel, as one of them sees it. Frames go straight from one to the other: whatever is
/// between them is a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Underlay {
    /// This end: the source of what it sends.
    pub own: Station,
    /// The other end: where frames are sent to.
    pub peer: Station,
    /// The PPPoE session that carries the packets (RFC 2516 §4); without one, Ethernet does.
    pub session: Option<u16>,
    /// Whether ESP goes in UDP, as behind a NAT (RFC 3948).
    pub nat_traversal: bool,
}

/// Why a frame does not come out of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strange {
    /// It is for another station, or from another than the other end, or of another protocol, session or port.
    NotForUs,
    /// A header is cut short, its checksum is wrong, or it is a fragment.
    Malformed,
}

impl Underlay {
    /// A tunnel over Ethernet, without PPPoE and NAT.
    #[must_use]
    pub const fn between(own: Station, peer: Station) -> Self {
        Underlay { own, peer, session: None, nat_traversal: false }
    }

    /// The same tunnel, as the other end sees it.
    #[must_use]
    pub const fn turned(self) -> Self {
        Underlay { own: self.peer, peer: self.own, ..self }
    }

    /// The two ends as ESP's tunnel mode has them. Where one has an IPv4 address and the other an IPv6 address, the
    /// former is mapped (RFC 4291 §2.5.5.2).
    #[must_use]
    pub const fn ends(&self) -> Ends {
        match (self.own.ip, self.peer.ip) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => Ends::V4(own, peer),
            (IpAddr::V6(own), IpAddr::V6(peer)) => Ends::V6(own, peer),
            (IpAddr::V4(own), IpAddr::V6(peer)) => Ends::V6(own.to_ipv6_mapped(), peer),
            (IpAddr::V6(own), IpAddr::V4(peer)) => Ends::V6(own, peer.to_ipv6_mapped()),
        }
    }

    /// Bytes of the link's headers: Ethernet's, and PPPoE's with PPP's protocol.
    const fn link_len(&self) -> usize {
        match self.session {
            Some(_) => ethernet::HEADER_LEN + pppoe::HEADER_LEN,
            None => ethernet::HEADER_LEN,
        }
    }

    /// Puts Ethernet's header, and that of the PPPoE session, before the IP packet in the slot.
    ///
    /// # Errors
    /// There is no room before it, or it is no IP packet. It is then as it was.
    pub fn put_ethernet(&self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        let payload_len = slot.len();
        let (ether_type, protocol) = match slot.frame().first().map(|first| first >> 4) {
            Some(4) => (EtherType::IPV4, pppoe::PPP_IPV4),
            Some(6) => (EtherType::IPV6, pppoe::PPP_IPV6),
            _ => return Err(SealError::TooShort),
        };
        put(slot, self.link_len(), |buffer| {
            let ether_type =
                if self.session.is_some() { EtherType::PPPOE_SESSION } else { ether_type };
            let (destination, source) = (self.peer.mac, self.own.mac);
            ethernet::Repr { destination, source, ether_type }.emit(buffer).ok()?;
            if let Some(session) = self.session {
                let behind = buffer.get_mut(ethernet::HEADER_LEN..)?;
                pppoe::Repr { session, protocol, payload_len }.emit(behind).ok()?;
            }
            Some(())
        })
    }

    /// Puts an IP header before what is in the slot, which is of this protocol.
    ///
    /// # Errors
    /// There is no room before it, or it is too long for IP. It is then as it was.
    pub fn put_ip(&self, slot: &mut Slot<'_>, protocol: u8) -> Result<(), SealError> {
        let payload_len = slot.len();
        match self.ends() {
            Ends::V4(source, destination) => {
                let header = ipv4::Repr {
                    source,
                    destination,
                    protocol,
                    traffic_class: 0,
                    identification: 0,
                    dont_fragment: true,
                    time_to_live: TIME_TO_LIVE,
                    payload_len,
                };
                put(slot, ipv4::HEADER_LEN, |buffer| header.emit(buffer).ok())
            }
            Ends::V6(source, destination) => {
                let header = ipv6::Repr {
                    source,
                    destination,
                    next_header: protocol,
                    traffic_class: 0,
                    flow_label: 0,
                    hop_limit: TIME_TO_LIVE,
                    payload_len,
                };
                put(slot, ipv6::HEADER_LEN, |buffer| header.emit(buffer).ok())
            }
        }
    }

    /// Puts a UDP header with these ports before what is in the slot. Its checksum is left out over IPv4, which allows
    /// it: what is inside has its own. IPv6 demands one (RFC 8200 §8.1).
    ///
    /// # Errors
    /// There is no room before it, or it is too long for UDP. It is then as it was.
    pub fn put_udp(&self, slot: &mut Slot<'_>, from: u16, to: u16) -> Result<(), SealError> {
        let ends = self.ends();
        put(slot, udp::HEADER_LEN, |buffer| write_udp(buffer, from, to, ends))
    }

    /// Takes Ethernet's header, and that of the PPPoE session, off a frame for this end that holds an IP packet; and
    /// what a link has padded behind it.
    ///
    /// # Errors
    /// It is no such frame; it is then as it was.
    pub fn take_link(&self, slot: &mut Slot<'_>) -> Result<(), Strange> {
        let whole = ip_packet_len(self.carried(slot.frame())?).ok_or(Strange::Malformed)?;
        slot.shrink_front(self.link_len());
        slot.shrink_back(slot.len().saturating_sub(whole));
        Ok(())
    }

    /// Takes the link's headers off a frame for this end that holds a sound IP packet from the other end, and what a
    /// link has padded behind it.
    ///
    /// # Errors
    /// It is no such frame; it is then as it was.
    pub fn take_ethernet(&self, slot: &mut Slot<'_>) -> Result<(), Strange> {
        let packet = self.carried(slot.frame())?;
        let ends = match self.ends() {
            Ends::V4(own, peer) => {
                let packet = ipv4::Packet::new_checked(packet).map_err(|_| Strange::Malformed)?;
                if !packet.checksum_ok() || packet.is_fragment() {
                    return Err(Strange::Malformed);
                }
                (packet.source(), packet.destination()) == (peer, own)
            }
            Ends::V6(own, peer) => {
                let packet = ipv6::Packet::new_checked(packet).map_err(|_| Strange::Malformed)?;
                (packet.source(), packet.destination()) == (peer, own)
            }
        };
        if !ends {
            return Err(Strange::NotForUs);
        }
        self.take_link(slot)
    }

    /// The IP packet in a frame for this end, with what is padded behind it.
    fn carried<'f>(&self, frame: &'f [u8]) -> Result<&'f [u8], Strange> {
        let frame = Frame::new_checked(frame).map_err(|_| Strange::Malformed)?;
        let session = match frame.ether_type() {
            _ if frame.destination() != self.own.mac => return Err(Strange::NotForUs),
            EtherType::PPPOE_SESSION => {
                let session = pppoe::Session::new_captured(frame.payload());
                Some(session.map_err(|_| Strange::Malformed)?)
            }
            EtherType::IPV4 | EtherType::IPV6 => None,
            _ => return Err(Strange::NotForUs),
        };
        if session.map(|session| session.session()) != self.session {
            return Err(Strange::NotForUs);
        }
        let said = session.map_or(Some(frame.ether_type()), |session| session.ether_type());
        let packet = session.map_or(frame.payload(), |session| session.payload());
        let version = match packet.first().map(|first| first >> 4) {
            Some(4) => EtherType::IPV4,
            Some(6) => EtherType::IPV6,
            _ => return Err(Strange::Malformed),
        };
        if said == Some(version) { Ok(packet) } else { Err(Strange::NotForUs) }
    }

    /// Takes the header off an IP packet of this protocol, whose ends [`Underlay::take_ethernet`] has checked. Over
    /// IPv6 it has no extension headers.
    ///
    /// # Errors
    /// It is no such packet; it is then as it was.
    pub fn take_ip(slot: &mut Slot<'_>, protocol: u8) -> Result<(), Strange> {
        let (found, header) = if let Ok(packet) = ipv4::Packet::new_checked(slot.frame()) {
            let header = ipv4::HEADER_LEN.saturating_add(packet.options().len());
            (packet.protocol(), header)
        } else {
            let packet = ipv6::Packet::new_checked(slot.frame()).map_err(|_| Strange::Malformed)?;
            (packet.next_header(), ipv6::HEADER_LEN)
        };
        if found != protocol {
            return Err(Strange::NotForUs);
        }
        slot.shrink_front(header);
        Ok(())
    }

    /// Takes the header off a datagram to this port. Its checksum is not looked at: what is inside is
    /// authenticated.
    ///
    /// # Errors
    /// It is no such datagram; it is then as it was.
    pub fn take_udp(slot: &mut Slot<'_>, to: u16) -> Result<(), Strange> {
        let datagram = udp::Datagram::new_checked(slot.frame()).map_err(|_| Strange::Malformed)?;
        if datagram.destination_port() != to {
            return Err(Strange::NotForUs);
        }
        let payload = datagram.payload_len();
        slot.shrink_front(udp::HEADER_LEN);
        slot.shrink_back(slot.len().saturating_sub(payload));
        Ok(())
    }
}

/// Writes a UDP header to the front of a datagram of which `datagram` is all; over IPv6 with its checksum. `None` if
/// it is too long.
pub(crate) fn write_udp(datagram: &mut [u8], from: u16, to: u16, ends: Ends) -> Option<()> {
    let length = u16::try_from(datagram.len()).ok()?;
    let [a, b] = length.to_be_bytes();
    let ([c, d], [e, f]) = (from.to_be_bytes(), to.to_be_bytes());
    *datagram.first_chunk_mut()? = [c, d, e, f, a, b, 0, 0];
    if let Ends::V6(source, destination) = ends {
        let (source, destination) = (IpAddr::V6(source), IpAddr::V6(destination));
        let sum = Sum::new().plus_pseudo_header(source, destination, udp::PROTOCOL, length.into());
        // A sum of 0 is sent as its complement: 0 stands for none (RFC 768).
        let sum = match sum.plus(datagram).finish() {
            0 => u16::MAX,
            sum => sum,
        };
        datagram.get_mut(6..8)?.copy_from_slice(&sum.to_be_bytes());
    }
    Some(())
}

/// Makes the slot longer by `len` bytes before it, which `write` fills, or leaves it as it was.
fn put(
    slot: &mut Slot<'_>,
    len: usize,
    write: impl FnOnce(&mut [u8]) -> Option<()>,
) -> Result<(), SealError> {
    slot.grow_front(len)?;
    if write(slot.frame_mut()).is_none() {
        slot.shrink_front(len);
        return Err(SealError::NoRoom { needed: len, place: "before" });
    }
    Ok(())
}
