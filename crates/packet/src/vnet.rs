//! The `virtio_net_hdr` that precedes frames in offload mode (virtio 1.2 §5.1.6).
//!
//! It says which checksum is unfinished and into which segments the frame is to be cut. A link
//! carries it along unread: what one kernel put in, another takes out. A host of its own makes and
//! reads it as a [`Header`].

/// Length of the header in bytes, without merged-buffer fields.
pub const HEADER_LEN: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
/// The bit that says that the first segment has ECN's CWR.
const ECN: u8 = 0x80;

/// What segments a frame is to be cut into, or was joined from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segmentation {
    /// It is one frame.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// Some other kind, by its number.
    Other(u8),
}

/// A header. Its fields count bytes from the beginning of the frame behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Where the unfinished checksum begins to sum, and where in what follows from there it
    /// belongs; `None` if the checksum is complete.
    pub checksum: Option<(u16, u16)>,
    /// The checksum of a received frame has been found right.
    pub checksum_valid: bool,
    /// What the frame is to be cut into, or was joined from.
    pub segmentation: Segmentation,
    /// Bytes of headers that each segment gets.
    pub header_len: u16,
    /// Bytes of payload of each segment.
    pub segment_size: u16,
}

impl Header {
    /// Reads a header, in the machine's byte order as AF_PACKET, TAP and TUN have it.
    #[must_use]
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Self {
        let [flags, kind, a, b, c, d, e, f, g, h] = *bytes;
        let start = (u16::from_ne_bytes([e, f]), u16::from_ne_bytes([g, h]));
        Header {
            checksum: (flags & NEEDS_CHECKSUM != 0).then_some(start),
            checksum_valid: flags & DATA_VALID != 0,
            segmentation: match kind & !ECN {
                0 => Segmentation::None,
                1 => Segmentation::TcpV4,
                4 => Segmentation::TcpV6,
                other => Segmentation::Other(other),
            },
            header_len: u16::from_ne_bytes([a, b]),
            segment_size: u16::from_ne_bytes([c, d]),
        }
    }

    /// The header's bytes, in the machine's byte order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let needs = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        let valid = if self.checksum_valid { DATA_VALID } else { 0 };
        let kind = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::TcpV4 => 1,
            Segmentation::TcpV6 => 4,
            Segmentation::Other(kind) => kind,
        };
        let (start, offset) = self.checksum.unwrap_or_default();
        let ([a, b], [c, d]) = (self.header_len.to_ne_bytes(), self.segment_size.to_ne_bytes());
        let ([e, f], [g, h]) = (start.to_ne_bytes(), offset.to_ne_bytes());
        [needs | valid, kind, a, b, c, d, e, f, g, h]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let super_segment = Header {
            checksum: Some((34, 16)),
            checksum_valid: false,
            segmentation: Segmentation::TcpV4,
            header_len: 66,
            segment_size: 1448,
        };
        let checked = Header { checksum_valid: true, ..Header::default() };
        for header in [super_segment, checked, Header::default()] {
            assert_eq!(Header::parse(&header.to_bytes()), header);
        }
        assert_eq!(Header::default().to_bytes(), [0; HEADER_LEN]);
    }

    #[test]
    fn the_mark_of_congestion_is_no_other_kind() {
        let mut bytes =
            Header { segmentation: Segmentation::TcpV6, ..Header::default() }.to_bytes();
        bytes[1] |= ECN;
        assert_eq!(Header::parse(&bytes).segmentation, Segmentation::TcpV6);
    }
}
