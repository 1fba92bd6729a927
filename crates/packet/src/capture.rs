//! Packet capture: both directions of an interface, stamped by the kernel in nanoseconds, VLAN
//! tags in their place.
//!
//! It stands on a TPACKET_V2 ring. V3 hands frames over in blocks that are retired up to a
//! millisecond later, so that a capture that stops could miss what was sent just before; with V2
//! a frame is in the ring when the system call that sent it returns.

use std::os::fd::{AsFd, BorrowedFd};

use units::Time;

use crate::{Error, RingOptions, RingStatistics, RxFrame, RxRing, SocketOptions};

/// Bytes of the two addresses, behind which a VLAN tag belongs (IEEE 802.1Q §9).
const ADDRESSES: usize = 12;

/// Which way a captured frame went, as the interface sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// It came in.
    Inbound,
    /// It went out.
    Outbound,
}

/// One captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Captured<'a> {
    /// CLOCK_REALTIME, taken by the kernel as the frame passed.
    pub at: Time,
    /// Whether it came in or went out.
    pub direction: Direction,
    /// The Ethernet frame from the destination address on, without frame check sequence, cut to
    /// what the ring keeps.
    pub bytes: &'a [u8],
    /// Its length before it was cut.
    pub original_len: usize,
}

/// An open capture. Wait on [`Capture::as_fd`] for readability, then [`Capture::drain`].
#[derive(Debug)]
pub struct Capture {
    ring: RxRing,
    /// A frame whose VLAN tag is put back.
    tagged: Vec<u8>,
}

impl Capture {
    /// What fits a capture: whole frames at MTU 1500, and room for about 16 thousand of them
    /// (26 MiB) while the reader does something else.
    pub const RING: RingOptions = RingOptions { frames: 16 << 10, frame_bytes: 1522 };

    /// Opens a capture of the interface with that index in the calling thread's network
    /// namespace. Frames that pass from now on are in it.
    ///
    /// # Errors
    /// As [`RxRing::open`].
    pub fn open(interface: u32, ring: RingOptions) -> Result<Capture, Error> {
        // Not promiscuous: the point is what the node sees, and veth filters nothing.
        let options = SocketOptions {
            ignore_outgoing: false,
            promiscuous: false,
            ..SocketOptions::default()
        };
        let tagged = Vec::with_capacity(ring.frame_bytes as usize + 4);
        Ok(Capture { ring: RxRing::open(interface, &options, ring)?, tagged })
    }

    /// Hands every frame that is in the ring, but at most `limit`, to `each`, oldest first, and
    /// gives their places back. Returns how many there were. Never waits.
    pub fn drain(&mut self, limit: usize, mut each: impl FnMut(Captured<'_>)) -> usize {
        let Capture { ring, tagged } = self;
        let mut count = 0;
        while count < limit {
            let Some(frame) = ring.receive() else { break };
            hand_over(&frame, tagged, &mut each);
            count += 1;
        }
        count
    }

    /// Frames received and lost since the capture was opened.
    ///
    /// # Errors
    /// As [`RxRing::statistics`].
    pub fn statistics(&mut self) -> Result<RingStatistics, Error> {
        self.ring.statistics()
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn hand_over(frame: &RxFrame<'_>, tagged: &mut Vec<u8>, each: &mut impl FnMut(Captured<'_>)) {
    let direction = if frame.is_outgoing() { Direction::Outbound } else { Direction::Inbound };
    let (at, mut original_len) = (frame.timestamp(), frame.original_len());
    let mut bytes = frame.bytes();
    if let Some(tag) = frame.vlan()
        && with_tag(bytes, tag, tagged)
    {
        bytes = tagged;
        original_len += 4;
    }
    each(Captured { at, direction, bytes, original_len });
}

/// Writes the frame with the tag behind its addresses to `out`; false if it is too short for one.
fn with_tag(frame: &[u8], (ether_type, control): (u16, u16), out: &mut Vec<u8>) -> bool {
    let Some((addresses, rest)) = frame.split_at_checked(ADDRESSES) else { return false };
    out.clear();
    out.extend_from_slice(addresses);
    out.extend_from_slice(&ether_type.to_be_bytes());
    out.extend_from_slice(&control.to_be_bytes());
    out.extend_from_slice(rest);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    // IEEE 802.1Q §9: the tag stands between source address and EtherType.
    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let mut out = vec![99; 3];
        assert!(with_tag(&frame, (0x88a8, 0x2005), &mut out));
        assert_eq!(out[..12], frame[..12]);
        assert_eq!(out[12..16], [0x88, 0xa8, 0x20, 0x05]);
        assert_eq!(out[16..], frame[12..]);
        assert!(!with_tag(&frame[..11], (0x8100, 1), &mut out));
    }
}
