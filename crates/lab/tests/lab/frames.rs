//! Reading captured frames, as far as the tests need it.

use lab::{Direction, OwnedFrame};

pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// A TCP segment over IPv4 or IPv6 without extension headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub direction: Direction,
    pub flags: u8,
    /// Kinds of the options, with the length of each value.
    pub options: Vec<(u8, usize)>,
    pub payload: Vec<u8>,
}

impl Segment {
    /// Whether it begins a connection.
    pub fn is_syn(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Its Fast Open option's cookie length, if it has one (RFC 7413 §4.1.1).
    pub fn fast_open(&self) -> Option<usize> {
        self.options.iter().find(|(kind, _)| *kind == 34).map(|(_, length)| *length)
    }
}

pub fn ether_type(frame: &OwnedFrame) -> u16 {
    u16::from_be_bytes([frame.bytes[12], frame.bytes[13]])
}

/// The TCP segments among the frames.
pub fn segments(frames: &[OwnedFrame]) -> Vec<Segment> {
    frames.iter().filter_map(segment).collect()
}

fn segment(frame: &OwnedFrame) -> Option<Segment> {
    let ip = &frame.bytes[14..];
    let (protocol, header, length) = match ether_type(frame) {
        0x0800 => {
            let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            (ip[9], usize::from(ip[0] & 15) * 4, length)
        }
        0x86dd => (ip[6], 40, 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]))),
        _ => return None,
    };
    if protocol != 6 {
        return None;
    }
    let tcp = &ip[header..length];
    let offset = usize::from(tcp[12] >> 4) * 4;
    let mut options = Vec::new();
    let mut rest = &tcp[20..offset];
    while let [kind, tail @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = tail,
            _ => {
                let length = usize::from(tail[0]);
                options.push((*kind, length - 2));
                rest = &rest[length..];
            }
        }
    }
    let payload = tcp[offset..].to_vec();
    Some(Segment { direction: frame.direction, flags: tcp[13], options, payload })
}
