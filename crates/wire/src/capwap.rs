//! CAPWAP's data channel in the clear (RFC 5415): frames between access points and their controller in
//! UDP datagrams to or from port 5247, and the IEEE 802.11 data frames that they may be.

use crate::ethernet::EtherType;
use crate::{Error, Reader, llc};

const FORMAT: &str = "CAPWAP";

/// The port of the controller's data channel (RFC 5415 §3.1).
pub const PORT: u16 = 5247;

/// The first byte of a packet in DTLS: version 0, type 1 (RFC 5415 §4.2).
pub const DTLS: u8 = 1;

/// Bytes of the header without its optional parts.
const HEADER_LEN: usize = 8;

/// The number of IEEE 802.11 among wireless bindings (RFC 5415 §4.3).
const IEEE_80211: u8 = 1;

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// An IEEE 802.3 frame.
    Ethernet(&'a [u8]),
    /// An IEEE 802.11 frame.
    Ieee80211(&'a [u8]),
}

/// The frame in `bytes`, a datagram's payload. Encrypted ones, keep-alives and parts of frames are
/// refused.
pub fn strip(bytes: &[u8]) -> Result<Payload<'_>, Error> {
    let mut reader = Reader::new(FORMAT, bytes);
    let header: &[u8; HEADER_LEN] = reader.array()?;
    // RFC 5415 §4.1, §4.3: version 0; type 1 would be DTLS.
    if header[0] != 0 {
        return Err(Error::malformed(FORMAT, "it is encrypted, or its version is not 0"));
    }
    let fields = u32::from_be_bytes([0, header[1], header[2], header[3]]);
    // HLEN 5 bits, RID 5, WBID 5, then the flags T, F, L, W, M, K and three that are reserved.
    let (words, binding) = (fields >> 19, (fields >> 9 & 0x1f) as u8);
    let flag = |place: u32| fields >> place & 1 == 1;
    let (native, fragment, keep_alive) = (flag(8), flag(7), flag(3));
    if fragment || keep_alive {
        return Err(Error::malformed(FORMAT, "it is a part of a frame, or a keep-alive"));
    }
    let Some(optional) = (words as usize * 4).checked_sub(HEADER_LEN) else {
        return Err(Error::malformed(FORMAT, "its header is shorter than any"));
    };
    reader.take(optional)?;
    match (native, binding) {
        (false, _) => Ok(Payload::Ethernet(reader.rest())),
        (true, IEEE_80211) => Ok(Payload::Ieee80211(reader.rest())),
        (true, _) => Err(Error::malformed(FORMAT, "its frame is of an unknown kind")),
    }
}

/// What an IEEE 802.11 data frame carries behind its LLC and SNAP headers (IEEE 802.11 §9.2, RFC 1042).
/// Encrypted frames are refused. The two bytes of the frame control may be swapped.
pub fn strip_80211(bytes: &[u8]) -> Result<(EtherType, &[u8]), Error> {
    const FRAME: &str = "IEEE 802.11";
    let mut reader = Reader::new(FRAME, bytes);
    let [mut kind, mut flags]: [u8; 2] = *reader.array()?;
    // Version 0, type 2 is data; its subtype's bit 2 says that there are none.
    let carries_data = |kind: u8| kind & 0x4f == 0x08;
    if !carries_data(kind) && carries_data(flags) {
        // As some access points send it.
        (kind, flags) = (flags, kind);
    }
    if !carries_data(kind) {
        return Err(Error::malformed(FRAME, "it carries no data"));
    }
    if flags & 0x40 != 0 {
        return Err(Error::malformed(FRAME, "it is encrypted"));
    }
    let four_addresses = flags & 0x03 == 0x03;
    let quality = kind & 0x80 != 0;
    let mut header = 22 + if four_addresses { 6 } else { 0 };
    if quality {
        // QoS Control, and HT Control behind it.
        header += if flags & 0x80 != 0 { 6 } else { 2 };
    }
    reader.take(header)?;
    llc::strip(reader.rest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), flags: u8) {
            crate::fuzz::capwap(&bytes);
            if let Some(front) = bytes.first_chunk_mut::<4>() {
                *front = [0, 0x10, 0x03, 0];
            }
            if let Some(frame) = bytes.get_mut(8..10) {
                frame.copy_from_slice(&[0x88, flags]);
            }
            crate::fuzz::capwap(&bytes);
        }
    }

    #[test]
    fn both_kinds_of_frames_are_told_apart() {
        let ethernet = [0, 0x10, 0x02, 0, 0, 0, 0, 0, 7];
        assert_eq!(strip(&ethernet), Ok(Payload::Ethernet(&[7])));
        // A radio's MAC address of four bytes more in the header.
        let native = [0, 0x18, 0x03, 0x10, 0, 0, 0, 0, 1, 2, 3, 4, 8];
        assert_eq!(strip(&native), Ok(Payload::Ieee80211(&[8])));
        for refused in [[1, 0x10, 2, 0], [0, 0x10, 2, 0x80], [0, 0x10, 2, 0x08], [0, 0x08, 2, 0]] {
            assert!(strip(&[&refused[..], &[0; 9]].concat()).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn data_frames_have_headers_of_four_lengths() {
        let tail = [0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0, 0x45];
        for (kind, flags, len) in
            [(8, 1, 22), (8, 3, 28), (0x88, 2, 24), (0x88, 0x83, 34), (1, 8, 22), (2, 0x88, 24)]
        {
            let frame = [&[kind, flags][..], &vec![0; len], &tail].concat();
            assert_eq!(strip_80211(&frame), Ok((EtherType::IPV4, &[0x45][..])));
        }
        for (kind, flags) in [(8, 0x41), (0x48, 1), (0x80, 0)] {
            assert!(strip_80211(&[&[kind, flags][..], &[0; 22], &tail].concat()).is_err());
        }
    }
}
