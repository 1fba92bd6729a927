//! IP packets as frames of the simulation, read and cut.

use std::fmt;
use std::net::IpAddr;

use linkmodel::Frame;
use wire::checksum::Sum;
use wire::tcp::{Flags, PROTOCOL, Segment};
use wire::{ipv4, ipv6};

/// An IP packet: a frame without a link header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet(pub Vec<u8>);

impl Frame for Packet {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, bit: usize) {
        self.0.flip_bit(bit);
    }

    fn link_header(&self) -> usize {
        0
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(&mut self.0)
    }

    fn shorten(&mut self, len: usize) {
        self.0.truncate(len);
    }
}

/// A packet taken apart.
pub struct Parts<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub ip_header: usize,
    pub segment: Segment<'a>,
}

impl Packet {
    /// Takes it apart.
    ///
    /// # Panics
    /// If it is no whole TCP segment in an IP packet of this length.
    pub fn parts(&self) -> Parts<'_> {
        let bytes = &self.0;
        if bytes[0] >> 4 == 4 {
            let ip = ipv4::Packet::new_checked(bytes).expect("an IPv4 packet");
            assert!(ip.checksum_ok(), "the IPv4 checksum is wrong");
            assert_eq!(ip.payload_len() + ipv4::HEADER_LEN, bytes.len(), "IPv4 total length");
            Parts {
                source: ip.source().into(),
                destination: ip.destination().into(),
                ip_header: ipv4::HEADER_LEN,
                segment: Segment::new_checked(ip.payload()).expect("a segment"),
            }
        } else {
            let ip = ipv6::Packet::new_checked(bytes).expect("an IPv6 packet");
            assert_eq!(ip.payload_len() + ipv6::HEADER_LEN, bytes.len(), "IPv6 payload length");
            Parts {
                source: ip.source().into(),
                destination: ip.destination().into(),
                ip_header: ipv6::HEADER_LEN,
                segment: Segment::new_checked(ip.payload()).expect("a segment"),
            }
        }
    }

    /// Whether the TCP checksum is right.
    pub fn checksum_ok(&self) -> bool {
        let parts = self.parts();
        parts.segment.checksum_ok(parts.source, parts.destination)
    }

    /// Writes the TCP checksum anew.
    pub fn fill_checksum(&mut self) {
        let parts = self.parts();
        let (at, source, destination) = (parts.ip_header, parts.source, parts.destination);
        let segment = &mut self.0[at..];
        segment[16..18].fill(0);
        let len = segment.len() as u32;
        let sum = Sum::new().plus_pseudo_header(source, destination, PROTOCOL, len).plus(segment);
        segment[16..18].copy_from_slice(&sum.finish().to_be_bytes());
    }

    /// Cuts a super-segment into segments of at most `size` bytes of payload, as a device does.
    pub fn cut(&self, size: usize) -> Vec<Packet> {
        let parts = self.parts();
        let at = parts.ip_header;
        let header = at + parts.segment.header_len();
        let (payload, sequence) = (parts.segment.payload(), parts.segment.sequence());
        let count = payload.len().div_ceil(size).max(1);
        let pieces = payload.chunks(size).enumerate().map(|(number, piece)| {
            let mut bytes = [&self.0[..header], piece].concat();
            let total = bytes.len() as u16;
            if bytes[0] >> 4 == 4 {
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
                let id = u16::from_be_bytes([bytes[4], bytes[5]]).wrapping_add(number as u16);
                bytes[4..6].copy_from_slice(&id.to_be_bytes());
                bytes[10..12].fill(0);
                let sum = Sum::new().plus(&bytes[..at]).finish();
                bytes[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                bytes[4..6].copy_from_slice(&(total - at as u16).to_be_bytes());
            }
            let sequence = sequence.wrapping_add((number * size) as u32);
            bytes[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
            if number + 1 < count {
                bytes[at + 13] &= !Flags::FIN.with(Flags::PSH).0;
            }
            let mut packet = Packet(bytes);
            packet.fill_checksum();
            packet
        });
        pieces.collect()
    }

    /// Whether it goes to an address of 20.0.0.0/8, where no host is.
    pub fn is_to_flood(&self) -> bool {
        matches!(self.parts().destination, IpAddr::V4(to) if to.octets()[0] == 20)
    }

    pub fn payload_len(&self) -> usize {
        self.parts().segment.payload().len()
    }

    /// Whether the flags have all of these.
    pub fn has(&self, flags: Flags) -> bool {
        self.parts().segment.flags().has(flags)
    }
}

/// The initial sequence numbers of both sides, for relative numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Initial {
    pub sender: Option<u32>,
    pub receiver: Option<u32>,
}

/// One line of a transcript: `SYN 0+1200`, `SYN,ACK 0+900 ack 1201`, with sequence numbers relative
/// to the initial ones.
pub struct Line<'a>(pub &'a Packet, pub Initial);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.parts();
        let (segment, flags) = (parts.segment, parts.segment.flags());
        let names =
            [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST"), (Flags::ACK, "ACK")];
        let names: Vec<&str> =
            names.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| *name).collect();
        let sequence = segment.sequence().wrapping_sub(self.1.sender.unwrap_or(0));
        write!(f, "{} {}+{}", names.join(","), sequence, segment.payload().len())?;
        match segment.acknowledgment() {
            Some(ack) => write!(f, " ack {}", ack.wrapping_sub(self.1.receiver.unwrap_or(0))),
            None => Ok(()),
        }
    }
}
