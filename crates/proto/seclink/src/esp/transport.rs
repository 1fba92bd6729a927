//! Transport mode (RFC 4303 §3.1.1): ESP goes between a packet's IP header and its payload; with UDP between them
//! where a NAT is (RFC 3948 §3.1.2).
//!
//! Fragments are not protected (§3.3.4), nor are IPv6 packets with extension headers that routers read.

use std::net::Ipv6Addr;

use wire::checksum::Sum;
use wire::esp::Datagram;
use wire::{esp, ipv4, ipv6, udp};

use super::tunnel::Ends;
use super::{Dropped, Inbound, Opened, Outbound};
use crate::underlay::write_udp;
use crate::{SealError, Slot};

/// Bytes of the longest IPv4 header; IPv6's is shorter.
const LONGEST: usize = 60;
/// Extension headers that stay before ESP (RFC 4303 §3.1.1): hop-by-hop options, routing, fragment.
const BEFORE_ESP: [u8; 3] = [0, 43, 44];

/// An IP header, kept aside while what is behind it is sealed or opened.
struct Header {
    bytes: [u8; LONGEST],
    len: usize,
    is_v6: bool,
}

impl Header {
    /// Takes the header off the packet in the slot, and what a link has padded behind it. `None`, and nothing is
    /// taken, if there is no whole packet, it is a fragment, or it has extension headers that stay before ESP.
    fn take(slot: &mut Slot<'_>) -> Option<Header> {
        let (len, payload_len, is_v6) = if let Ok(packet) = ipv4::Packet::new_checked(slot.frame())
        {
            let len = ipv4::HEADER_LEN.saturating_add(packet.options().len());
            (!packet.is_fragment()).then(|| (len, packet.payload_len(), false))?
        } else {
            let packet = ipv6::Packet::new_checked(slot.frame()).ok()?;
            let is_bare = !BEFORE_ESP.contains(&packet.next_header());
            is_bare.then(|| (ipv6::HEADER_LEN, packet.payload_len(), true))?
        };
        let whole = len.saturating_add(payload_len);
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..len)?.copy_from_slice(slot.frame().get(..len)?);
        slot.shrink_back(slot.len().saturating_sub(whole));
        slot.shrink_front(len);
        Some(Header { bytes, len, is_v6 })
    }

    /// The protocol that it names.
    fn protocol(&self) -> u8 {
        if self.is_v6 { self.bytes[6] } else { self.bytes[9] }
    }

    /// Puts it back as it was.
    fn restore(&self, slot: &mut Slot<'_>) {
        // There was room for it before.
        if slot.grow_front(self.len).is_ok() {
            slot.frame_mut().iter_mut().zip(self.written()).for_each(|(to, from)| *to = *from);
        }
    }

    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The packet's addresses, where its UDP datagrams have a checksum.
    fn ends(&self) -> Ends {
        let v4 = |at: usize| {
            let octets = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
            octets.copied().unwrap_or_default().into()
        };
        let v6 = |at: usize| -> Ipv6Addr {
            let octets = self.bytes.get(at..).and_then(|bytes| bytes.first_chunk::<16>());
            octets.copied().unwrap_or_default().into()
        };
        if self.is_v6 { Ends::V6(v6(8), v6(24)) } else { Ends::V4(v4(12), v4(16)) }
    }

    /// Puts it before what the slot holds now, of this protocol; its length and checksum follow.
    fn put(mut self, slot: &mut Slot<'_>, protocol: u8) -> Result<(), SealError> {
        let too_long = SealError::NoRoom { needed: self.len, place: "before" };
        if self.is_v6 {
            let [a, b] = u16::try_from(slot.len()).map_err(|_| too_long)?.to_be_bytes();
            (self.bytes[4], self.bytes[5], self.bytes[6]) = (a, b, protocol);
        } else {
            let total = slot.len().saturating_add(self.len);
            let [a, b] = u16::try_from(total).map_err(|_| too_long)?.to_be_bytes();
            (self.bytes[2], self.bytes[3]) = (a, b);
            self.bytes[9] = protocol;
            (self.bytes[10], self.bytes[11]) = (0, 0);
            let sum = Sum::new().plus(self.written()).finish().to_be_bytes();
            (self.bytes[10], self.bytes[11]) = (sum[0], sum[1]);
        }
        slot.grow_front(self.len)?;
        slot.frame_mut().iter_mut().zip(self.written()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// Protects the payload of the IP packet in the slot, in place. `in_udp`: ESP goes in UDP from and to port 4500.
///
/// # Errors
/// There is no such packet, or as [`Outbound::seal`]; it is then as it was, but for an error of the cipher.
pub fn seal(outbound: &mut Outbound, slot: &mut Slot<'_>, in_udp: bool) -> Result<(), SealError> {
    let header = Header::take(slot).ok_or(SealError::TooShort)?;
    let udp_len = if in_udp { udp::HEADER_LEN } else { 0 };
    let added = super::overhead(outbound.suite(), slot.len()).saturating_add(udp_len);
    let whole = slot.len().saturating_add(header.len).saturating_add(added);
    let before = outbound.added_before().saturating_add(udp_len);
    let sealed = if slot.range().start < before.saturating_add(header.len) {
        Err(SealError::NoRoom { needed: before, place: "before" })
    } else if whole > usize::from(u16::MAX) {
        Err(SealError::NoRoom { needed: added, place: "behind" })
    } else {
        outbound.seal(slot, header.protocol())
    };
    if let Err(error) = sealed {
        header.restore(slot);
        return Err(error);
    }
    if !in_udp {
        return header.put(slot, esp::PROTOCOL);
    }
    // There is room for it: see above.
    slot.grow_front(udp_len)?;
    let written = write_udp(slot.frame_mut(), esp::UDP_PORT, esp::UDP_PORT, header.ends());
    written.ok_or(SealError::NoRoom { needed: udp_len, place: "before" })?;
    header.put(slot, udp::PROTOCOL)
}

/// Checks the ESP packet in the slot, IP header before it, and takes its protection off in place. A packet
/// without ESP is dropped as malformed: this is for what must be protected. `in_udp`: ESP comes in UDP.
pub fn open(inbound: &mut Inbound, slot: &mut Slot<'_>, in_udp: bool) -> Opened {
    let protocol = if in_udp { udp::PROTOCOL } else { esp::PROTOCOL };
    let header = Header::take(slot).filter(|header| header.protocol() == protocol);
    let Some(header) = header.filter(|_| !in_udp || take_udp(slot)) else {
        return inbound.refuse(Dropped::Malformed);
    };
    let opened = inbound.open(slot);
    if let Opened::Delivered { next_header } = opened
        && header.put(slot, next_header).is_err()
    {
        return Opened::Dropped(Dropped::Malformed);
    }
    opened
}

/// Takes the UDP header off an ESP packet. Whether there was one.
fn take_udp(slot: &mut Slot<'_>) -> bool {
    let esp = udp::Datagram::new_checked(slot.frame()).ok().and_then(|datagram| {
        let is_ours = datagram.destination_port() == esp::UDP_PORT;
        match Datagram::new_checked(datagram.payload()).ok()? {
            Datagram::Esp(esp) if is_ours => Some(esp.len()),
            _ => None,
        }
    });
    let Some(len) = esp else { return false };
    slot.shrink_front(udp::HEADER_LEN);
    slot.shrink_back(slot.len().saturating_sub(len));
    true
}
