//! The network under a tunnel: Ethernet, IPv4 and UDP headers between two stations.

use std::net::Ipv4Addr;

use wire::ethernet::{Address, EtherType, Frame};
use wire::{ethernet, ipv4, udp};

use crate::{SealError, Slot};

/// Hops that a packet begins with.
const TIME_TO_LIVE: u8 = 64;

/// Where a tunnel begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address.
    pub mac: Address,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
}

/// The two ends of a tunnel, as one of them sees it. Frames go straight from one to the other: whatever is
/// between them is a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Underlay {
    /// This end: the source of what it sends.
    pub own: Station,
    /// The other end: where frames are sent to.
    pub peer: Station,
}

/// Why a frame does not come out of the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strange {
    /// It is for another station, or from another than the other end, or of another protocol or port.
    NotForUs,
    /// A header is cut short, its checksum is wrong, or it is a fragment.
    Malformed,
}

impl Underlay {
    /// The same tunnel, as the other end sees it.
    #[must_use]
    pub const fn turned(self) -> Self {
        Underlay { own: self.peer, peer: self.own }
    }

    /// Puts Ethernet's header before the IPv4 packet in the slot.
    ///
    /// # Errors
    /// There is no room before it. It is then as it was.
    pub fn put_ethernet(&self, slot: &mut Slot<'_>) -> Result<(), SealError> {
        slot.grow_front(ethernet::HEADER_LEN)?;
        let (destination, source) = (self.peer.mac, self.own.mac);
        let header = ethernet::Repr { destination, source, ether_type: EtherType::IPV4 };
        header.emit(slot.frame_mut()).map_err(|_| SealError::TooShort)
    }

    /// Puts an IPv4 header before what is in the slot, which is of this protocol.
    ///
    /// # Errors
    /// There is no room before it, or it is too long for IP. It is then as it was.
    pub fn put_ipv4(&self, slot: &mut Slot<'_>, protocol: u8) -> Result<(), SealError> {
        let header = ipv4::Repr {
            source: self.own.ip,
            destination: self.peer.ip,
            protocol,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: TIME_TO_LIVE,
            payload_len: slot.len(),
        };
        put(slot, ipv4::HEADER_LEN, |buffer| header.emit(buffer).ok())
    }

    /// Puts a UDP header with these ports before what is in the slot, without a checksum, which IPv4 allows: what
    /// is inside has its own.
    ///
    /// # Errors
    /// There is no room before it, or it is too long for UDP. It is then as it was.
    pub fn put_udp(slot: &mut Slot<'_>, from: u16, to: u16) -> Result<(), SealError> {
        let length = slot.len().saturating_add(udp::HEADER_LEN);
        put(slot, udp::HEADER_LEN, |buffer| {
            let [a, b] = u16::try_from(length).ok()?.to_be_bytes();
            let ([c, d], [e, f]) = (from.to_be_bytes(), to.to_be_bytes());
            *buffer.first_chunk_mut()? = [c, d, e, f, a, b, 0, 0];
            Some(())
        })
    }

    /// Takes Ethernet's header off a frame for this end that holds a sound IPv4 packet from the other, and what a
    /// link has padded behind it.
    ///
    /// # Errors
    /// It is no such frame; it is then as it was.
    pub fn take_ethernet(&self, slot: &mut Slot<'_>) -> Result<(), Strange> {
        let frame = Frame::new_checked(slot.frame()).map_err(|_| Strange::Malformed)?;
        if frame.destination() != self.own.mac || frame.ether_type() != EtherType::IPV4 {
            return Err(Strange::NotForUs);
        }
        let packet = ipv4::Packet::new_checked(frame.payload()).map_err(|_| Strange::Malformed)?;
        if !packet.checksum_ok() || packet.is_fragment() {
            return Err(Strange::Malformed);
        }
        if (packet.source(), packet.destination()) != (self.peer.ip, self.own.ip) {
            return Err(Strange::NotForUs);
        }
        let whole = header_len(&packet).saturating_add(packet.payload_len());
        slot.shrink_front(ethernet::HEADER_LEN);
        slot.shrink_back(slot.len().saturating_sub(whole));
        Ok(())
    }

    /// Takes the header off an IPv4 packet of this protocol, whose ends [`Underlay::take_ethernet`] has checked.
    ///
    /// # Errors
    /// It is no such packet; it is then as it was.
    pub fn take_ipv4(slot: &mut Slot<'_>, protocol: u8) -> Result<(), Strange> {
        let packet = ipv4::Packet::new_checked(slot.frame()).map_err(|_| Strange::Malformed)?;
        if packet.protocol() != protocol {
            return Err(Strange::NotForUs);
        }
        let header = header_len(&packet);
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

    /// The two ends as ESP's tunnel mode has them.
    #[must_use]
    pub const fn ends(&self) -> crate::esp::tunnel::Ends {
        crate::esp::tunnel::Ends::V4(self.own.ip, self.peer.ip)
    }
}

fn header_len(packet: &ipv4::Packet<'_>) -> usize {
    ipv4::HEADER_LEN.saturating_add(packet.options().len())
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
