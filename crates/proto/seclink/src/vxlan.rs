//! Ethernet frames in VXLAN (RFC 7348).

use wire::vxlan::{HEADER_LEN, Packet, Repr};

use crate::{SealError, Slot};

/// Puts the header of a network, below 2^24, before the frame in the slot.
///
/// # Errors
/// There is no room before it, or there is no such network. It is then as it was.
pub fn push(slot: &mut Slot<'_>, network: u32) -> Result<(), SealError> {
    slot.grow_front(HEADER_LEN)?;
    if (Repr { network }).emit(slot.frame_mut()).is_err() {
        slot.shrink_front(HEADER_LEN);
        return Err(SealError::TooShort);
    }
    Ok(())
}

/// Takes the header off the packet in the slot. Whether it is one of this network.
#[must_use]
pub fn pop(slot: &mut Slot<'_>, network: u32) -> bool {
    let is_ours = Packet::new_checked(slot.frame()).is_ok_and(|packet| packet.network() == network);
    if is_ours {
        slot.shrink_front(HEADER_LEN);
    }
    is_ours
}

/// The source port of a frame's datagram: in the dynamic range, and the same for all frames between the same two
/// stations, so that they keep their order where paths are chosen by ports (RFC 7348 §5).
#[must_use]
pub fn source_port(frame: &[u8]) -> u16 {
    let addresses = frame.iter().take(12);
    let mixed = addresses.fold(0u16, |sum, byte| sum.rotate_left(5) ^ u16::from(*byte));
    0xc000 | (mixed & 0x3fff)
}
