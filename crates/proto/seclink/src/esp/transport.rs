//! Transport mode over IPv4 (RFC 4303 §3.1.1): ESP goes between a packet's header and its payload.
//!
//! Fragments are not protected (§3.3.4), and IPv6 has no transport mode here.

use wire::checksum::Sum;
use wire::{esp, ipv4};

use super::{Dropped, Inbound, Opened, Outbound};
use crate::{SealError, Slot};

/// Bytes of the longest IPv4 header.
const LONGEST: usize = 60;

/// An IPv4 header, kept aside while what is behind it is sealed or opened.
struct Header {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Header {
    /// Takes the header off the packet in the slot, and what a link has padded behind it. `None`, and nothing is
    /// taken, if there is no whole packet or it is a fragment.
    fn take(slot: &mut Slot<'_>) -> Option<Header> {
        let packet = ipv4::Packet::new_checked(slot.frame()).ok()?;
        if packet.is_fragment() {
            return None;
        }
        let len = ipv4::HEADER_LEN.saturating_add(packet.options().len());
        let whole = len.saturating_add(packet.payload_len());
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..len)?.copy_from_slice(slot.frame().get(..len)?);
        slot.shrink_back(slot.len().saturating_sub(whole));
        slot.shrink_front(len);
        Some(Header { bytes, len })
    }

    /// The protocol that it names.
    fn protocol(&self) -> u8 {
        self.bytes[9]
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

    /// Puts it before what the slot holds now, of this protocol; its length and checksum follow.
    fn put(mut self, slot: &mut Slot<'_>, protocol: u8) -> Result<(), SealError> {
        let too_long = SealError::NoRoom { needed: self.len, place: "before" };
        let total = slot.len().saturating_add(self.len);
        let total = u16::try_from(total).map_err(|_| too_long)?.to_be_bytes();
        (self.bytes[2], self.bytes[3]) = (total[0], total[1]);
        self.bytes[9] = protocol;
        (self.bytes[10], self.bytes[11]) = (0, 0);
        let sum = Sum::new().plus(self.written()).finish().to_be_bytes();
        (self.bytes[10], self.bytes[11]) = (sum[0], sum[1]);
        slot.grow_front(self.len)?;
        slot.frame_mut().iter_mut().zip(self.written()).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// Protects the payload of the IPv4 packet in the slot, in place.
///
/// # Errors
/// There is no such packet, or as [`Outbound::seal`]; it is then as it was, but for an error of the cipher.
pub fn seal(outbound: &mut Outbound, slot: &mut Slot<'_>) -> Result<(), SealError> {
    let header = Header::take(slot).ok_or(SealError::TooShort)?;
    let added = super::overhead(outbound.suite(), slot.len());
    let whole = slot.len().saturating_add(header.len).saturating_add(added);
    let before = outbound.added_before().saturating_add(header.len);
    let sealed = if slot.range().start < before {
        Err(SealError::NoRoom { needed: outbound.added_before(), place: "before" })
    } else if whole > usize::from(u16::MAX) {
        Err(SealError::NoRoom { needed: added, place: "behind" })
    } else {
        outbound.seal(slot, header.protocol())
    };
    match sealed {
        Ok(()) => header.put(slot, esp::PROTOCOL),
        Err(error) => {
            header.restore(slot);
            Err(error)
        }
    }
}

/// Checks the ESP packet in the slot, IPv4 header before it, and takes its protection off in place. A packet
/// without ESP is dropped as malformed: this is for what must be protected.
pub fn open(inbound: &mut Inbound, slot: &mut Slot<'_>) -> Opened {
    let header = Header::take(slot).filter(|header| header.protocol() == esp::PROTOCOL);
    let Some(header) = header else {
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
