//! What most frames of a capture are: plain TCP segments, of which a connection whose record is out wants no
//! more than a few numbers.

use wire::tcp::{Flags, HEADER_LEN};

use crate::table::Key;

/// Bytes of Ethernet and of IPv4 without options.
const BEFORE_TCP: usize = 14 + 20;

/// What the headers of a plain TCP segment say: in IPv4 without options, in Ethernet, whole as far as the
/// headers go, neither SYN nor RST. Who has it need not look at the frame where its connection's record is
/// out: [`crate::Tracker::handle_sharded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// As [`crate::decode::plain_tcp`] has them; who sent it first.
    addresses: [u32; 2],
    ports: [u16; 2],
    pub(crate) sequence: u32,
    /// By the IP header.
    pub(crate) payload_len: u16,
    pub(crate) flags: Flags,
}

impl Plain {
    /// Of a frame between these two ends ([`crate::decode::plain_tcp`]). What [`crate::decode::decode`] finds
    /// in it says the same.
    #[inline]
    pub(crate) fn of(ends: [(u32, u16); 2], bytes: &[u8]) -> Option<Plain> {
        let header: &[u8; BEFORE_TCP + HEADER_LEN] = bytes.first_chunk()?;
        let total = u16::from_be_bytes([header[16], header[17]]);
        let header_len = usize::from(header[46] >> 4) * 4;
        let flags = Flags(header[47]);
        let payload_len = usize::from(total).checked_sub(20 + header_len)?;
        let is_plain = header_len >= HEADER_LEN
            && bytes.len() >= BEFORE_TCP + header_len
            && flags.0 & (Flags::SYN.0 | Flags::RST.0) == 0;
        let [(from, from_port), (to, to_port)] = ends;
        is_plain.then_some(Plain {
            addresses: [from, to],
            ports: [from_port, to_port],
            sequence: u32::from_be_bytes([header[38], header[39], header[40], header[41]]),
            payload_len: payload_len as u16,
            flags,
        })
    }

    pub(crate) fn ends(&self) -> [(u32, u16); 2] {
        let ([from, to], [from_port, to_port]) = (self.addresses, self.ports);
        [(from, from_port), (to, to_port)]
    }

    /// Its connection's key, and whether the low end sent it.
    pub(crate) fn key(&self) -> (Key, bool) {
        Key::plain(self.ends())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::{Content, Decoded, LinkType, Passing, Transport, decode_frame, plain_tcp};

    /// A segment with 20 bytes of payload.
    fn frame() -> Vec<u8> {
        let mut bytes = vec![7; 74];
        bytes[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 60, 1, 2, 0x40, 0, 64, 6]);
        bytes[46..48].copy_from_slice(&[0x50, 0x10]);
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Plain> {
        Plain::of(plain_tcp(LinkType::Ethernet, bytes)?, bytes)
    }

    proptest! {
        #[test]
        fn it_says_what_is_decoded(
            edits in prop::collection::vec((0_usize..74, any::<u8>()), 0..4),
            len in 40_usize..=74,
        ) {
            let mut bytes = frame();
            for (at, value) in edits {
                bytes[at] = value;
            }
            bytes.truncate(len);
            if let Some(plain) = read(&bytes) {
                let content = decode_frame(LinkType::Ethernet, &bytes, &mut Passing::default());
                let Some(Content::Transport(Decoded { key, from_low, transport })) = content else {
                    panic!("{content:?}");
                };
                let Transport::Tcp { segment, payload_len, .. } = transport else { panic!() };
                prop_assert_eq!(plain.key(), (key, from_low));
                prop_assert_eq!(plain.sequence, segment.sequence());
                prop_assert_eq!(plain.flags, segment.flags());
                prop_assert_eq!(usize::from(plain.payload_len), payload_len);
            }
        }
    }

    #[test]
    fn what_wants_a_closer_look_is_not_plain() {
        let plain = read(&frame()).unwrap();
        assert_eq!((plain.payload_len, plain.flags), (20, Flags::ACK));
        // Cut within the headers; no total length, or too short a one; SYN, RST; an impossible offset.
        assert_eq!(read(&frame()[..53]), None);
        for (at, value) in [(17, 0), (17, 39), (47, 0x12), (47, 0x04), (46, 0x40), (46, 0xf0)] {
            let mut bytes = frame();
            bytes[at] = value;
            assert_eq!(read(&bytes), None, "{value:#x} at {at}");
        }
        // Cut within its payload.
        assert_eq!(read(&frame()[..54]).unwrap().payload_len, 20);
    }
}
