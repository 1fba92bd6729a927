//! MPLS label stacks (RFC 3032), and what may follow them: IP, or an Ethernet frame on a
//! pseudowire (RFC 4448).

use crate::error::room;
use crate::ethernet::{EtherType, Frame};
use crate::{Error, Reader, ipv4, ipv6, macsec};

const FORMAT: &str = "MPLS";

/// Bytes of a label stack entry, and of a pseudowire's control word.
pub const HEADER_LEN: usize = 4;

/// Labels that [`strip`] passes at most.
pub const MAX_LABELS: usize = 8;

/// A view of a label stack entry and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    header: u32,
    payload: &'a [u8],
}

impl<'a> Entry<'a> {
    /// A view of `bytes`, which begin with the entry.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(FORMAT, bytes);
        let header = reader.u32()?;
        Ok(Entry { header, payload: reader.rest() })
    }

    /// The label, 20 bits.
    #[must_use]
    pub const fn label(&self) -> u32 {
        self.header >> 12
    }

    /// The traffic class, 3 bits (RFC 5462).
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        (self.header >> 9) as u8 & 7
    }

    /// Whether it is the last of the stack.
    #[must_use]
    pub const fn is_bottom(&self) -> bool {
        self.header & 0x100 != 0
    }

    /// Time to live: hops left (RFC 3032 §2.1).
    #[must_use]
    pub const fn time_to_live(&self) -> u8 {
        self.header as u8
    }

    /// What follows: another entry, or behind the last the packet.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// A label stack entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The label, below 2^20.
    pub label: u32,
    /// The traffic class, below 8.
    pub traffic_class: u8,
    /// Whether it is the last of the stack.
    pub bottom: bool,
    /// Time to live: hops left (RFC 3032 §2.1).
    pub time_to_live: u8,
}

impl Repr {
    /// The entry that a view shows.
    #[must_use]
    pub const fn parse(entry: &Entry<'_>) -> Self {
        Repr {
            label: entry.label(),
            traffic_class: entry.traffic_class(),
            bottom: entry.is_bottom(),
            time_to_live: entry.time_to_live(),
        }
    }

    /// Bytes that [`Repr::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the entry to the front of `buffer`.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.label >> 20 != 0 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "label" });
        }
        if self.traffic_class > 7 {
            return Err(Error::DoesNotFit { format: FORMAT, field: "traffic class" });
        }
        let header = self.label << 12
            | u32::from(self.traffic_class) << 9
            | u32::from(self.bottom) << 8
            | u32::from(self.time_to_live);
        room(FORMAT, buffer, HEADER_LEN)?.copy_from_slice(&header.to_be_bytes());
        Ok(())
    }
}

/// The control word of a pseudowire (RFC 4385 §3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlWord {
    /// Four bits whose use is the payload's (Ethernet has none, RFC 4448 §4.6).
    pub flags: u8,
    /// The frame's length where it is below 64 with the word, so that padding can be taken off; or 0.
    pub length: u8,
    /// The frame's number, or 0 where frames are not numbered.
    pub sequence: u16,
}

impl ControlWord {
    /// The word that `bytes` begin with, and what follows it. Fragments are not read.
    ///
    /// # Errors
    /// Cut short; or its first four bits are not 0, so that it is no control word.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let mut reader = Reader::new(CONTROL_WORD, bytes);
        let (head, sequence) = (reader.u16()?, reader.u16()?);
        if head >> 12 != 0 {
            return Err(Error::malformed(CONTROL_WORD, "its first four bits are not 0"));
        }
        if head & 0x00c0 != 0 {
            return Err(Error::malformed(CONTROL_WORD, "it begins a fragment"));
        }
        let word = ControlWord {
            flags: (head >> 8) as u8 & 0x0f,
            length: head as u8 & LONGEST_SAID,
            sequence,
        };
        Ok((word, reader.rest()))
    }

    /// Bytes that [`ControlWord::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_LEN
    }

    /// Writes the word to the front of `buffer`.
    ///
    /// # Errors
    /// A field does not fit, or the buffer is too short.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if self.flags > 0x0f {
            return Err(Error::DoesNotFit { format: CONTROL_WORD, field: "flags" });
        }
        if self.length > LONGEST_SAID {
            return Err(Error::DoesNotFit { format: CONTROL_WORD, field: "length" });
        }
        let [a, b] = self.sequence.to_be_bytes();
        room(CONTROL_WORD, buffer, HEADER_LEN)?.copy_from_slice(&[self.flags, self.length, a, b]);
        Ok(())
    }
}

const CONTROL_WORD: &str = "pseudowire control word";

/// The largest length that a control word says.
const LONGEST_SAID: u8 = 0x3f;

/// What follows a label stack, which does not say so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    /// An IPv4 packet.
    Ipv4(&'a [u8]),
    /// An IPv6 packet.
    Ipv6(&'a [u8]),
    /// An Ethernet frame; a control word before it is passed.
    Ethernet(&'a [u8]),
}

/// Passes a label stack. `None` if it is cut, has more than [`MAX_LABELS`], or carries what cannot
/// be told.
///
/// The first four bits tell IPv4 (4), IPv6 (6) and a control word (0, RFC 4385 §3), but may also be
/// those of an Ethernet address. So an IPv4 header is believed by its checksum, an IPv6 header by
/// its length, and an Ethernet frame by an EtherType whose payload begins as it should.
#[must_use]
pub fn strip(mut bytes: &[u8]) -> Option<Payload<'_>> {
    for _ in 0..MAX_LABELS {
        let entry = Entry::new_checked(bytes).ok()?;
        bytes = entry.payload();
        if entry.is_bottom() {
            return tell(bytes);
        }
    }
    None
}

fn tell(bytes: &[u8]) -> Option<Payload<'_>> {
    let believed_v4 = || ipv4::Packet::new_captured(bytes).is_ok_and(|packet| packet.checksum_ok());
    match bytes.first()? >> 4 {
        4 if believed_v4() || !is_ethernet(bytes) => return Some(Payload::Ipv4(bytes)),
        6 if !is_ethernet(bytes) || believed_v6(bytes) => return Some(Payload::Ipv6(bytes)),
        0 => {
            let behind = bytes.get(HEADER_LEN..)?;
            if is_ethernet(behind) {
                return Some(Payload::Ethernet(behind));
            }
        }
        _ => {}
    }
    is_ethernet(bytes).then_some(Payload::Ethernet(bytes))
}

fn believed_v6(bytes: &[u8]) -> bool {
    ipv6::Packet::new_captured(bytes).is_ok_and(|packet| {
        let captured = bytes.len().saturating_sub(ipv6::HEADER_LEN);
        packet.payload_len() == captured
    })
}

fn is_ethernet(bytes: &[u8]) -> bool {
    let Ok(frame) = Frame::new_checked(bytes) else { return false };
    let version = frame.payload().first().map(|first| first >> 4);
    match frame.ether_type() {
        EtherType::IPV4 => version == Some(4),
        EtherType::IPV6 => version == Some(6),
        EtherType::PPPOE_SESSION => version == Some(1),
        EtherType::MACSEC => macsec::Tag::new_checked(frame.payload()).is_ok(),
        // EAPOL's own version (IEEE 802.1X §11.3.1).
        EtherType::EAPOL => matches!(frame.payload().first(), Some(1..=3)),
        EtherType::ARP | EtherType::MPLS | EtherType::MPLS_UPSTREAM => true,
        other => other.is_vlan(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            crate::fuzz::mpls(&bytes);
        }

        #[test]
        fn emitted_is_parsed_back(
            label in 0u32..1 << 20, traffic_class in 0u8..8, bottom: bool, time_to_live: u8,
        ) {
            let repr = Repr { label, traffic_class, bottom, time_to_live };
            let mut buffer = vec![0; repr.buffer_len()];
            repr.emit(&mut buffer).unwrap();
            prop_assert_eq!(Repr::parse(&Entry::new_checked(&buffer).unwrap()), repr);
        }
    }

    #[test]
    fn a_control_word_is_parsed_back_and_an_ip_packet_is_none() {
        for word in [
            ControlWord::default(),
            ControlWord { flags: 0x0f, length: 63, sequence: 0xffff },
            ControlWord { flags: 1, length: 8, sequence: 2 },
        ] {
            let mut bytes = [0; 5];
            word.emit(&mut bytes).unwrap();
            assert_eq!(ControlWord::parse(&bytes), Ok((word, &[0][..])));
        }
        assert!(ControlWord { length: 64, ..ControlWord::default() }.emit(&mut [0; 4]).is_err());
        assert!(ControlWord::parse(&[0x45, 0, 0, 20]).is_err());
    }

    #[test]
    fn macsec_inside_a_pseudowire_is_an_ethernet_frame() {
        let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0, 7, 8, 9, 10, 11, 12, 0x88, 0xe5];
        frame.extend([0x2c, 0, 0, 0, 0, 1, 7, 8, 9, 10, 11, 12, 0, 1]);
        frame.extend([0xaa; 64]);
        for word in [&[][..], &[0; 4]] {
            let bytes = [&BOTTOM[..], word, &frame].concat();
            assert_eq!(strip(&bytes), Some(Payload::Ethernet(&frame)));
        }
    }

    const BOTTOM: [u8; 4] = [0, 0x01, 0x01, 0x40];

    fn ipv4_packet() -> Vec<u8> {
        let repr = ipv4::Repr {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            protocol: 6,
            traffic_class: 0,
            identification: 0,
            dont_fragment: false,
            time_to_live: 9,
            payload_len: 0,
        };
        let mut bytes = vec![0; ipv4::HEADER_LEN];
        repr.emit(&mut bytes).unwrap();
        bytes
    }

    fn ethernet_frame(first: u8) -> Vec<u8> {
        let mut frame = vec![first, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0x00];
        frame.extend(ipv4_packet());
        frame
    }

    #[test]
    fn a_packet_behind_several_labels_is_told_by_its_first_bits() {
        let bytes = [&[0, 0x01, 0x00, 0x40], &BOTTOM[..], &ipv4_packet()].concat();
        assert_eq!(strip(&bytes), Some(Payload::Ipv4(&bytes[8..])));
    }

    #[test]
    fn a_pseudowire_is_found_with_and_without_its_control_word_whatever_the_address() {
        for first in [0x00, 0x02, 0x45, 0x46, 0x60, 0xfe] {
            let bare = [&BOTTOM[..], &ethernet_frame(first)].concat();
            assert_eq!(strip(&bare), Some(Payload::Ethernet(&bare[4..])), "{first:02x}");
            let word = [&BOTTOM[..], &[0; 4], &ethernet_frame(first)].concat();
            assert_eq!(strip(&word), Some(Payload::Ethernet(&word[8..])), "{first:02x}");
        }
    }

    #[test]
    fn a_tower_of_labels_is_refused_and_so_is_what_cannot_be_told() {
        assert_eq!(strip(&[0, 1, 0, 64].repeat(20)), None);
        assert_eq!(strip(&[&BOTTOM[..], &[0xa0; 40]].concat()), None);
        assert_eq!(strip(&BOTTOM), None);
    }
}
