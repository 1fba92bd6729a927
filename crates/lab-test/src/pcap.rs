//! Captures that tests write frame by frame.

/// A capture in pcap's format, in little endian and with nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcap(Vec<u8>);

impl Pcap {
    /// Link type of Ethernet.
    pub const ETHERNET: u32 = 1;
    /// Link type of IP packets without a link header.
    pub const IP: u32 = 101;

    /// One without frames, of a link type.
    #[must_use]
    pub fn new(link_type: u32) -> Pcap {
        // Magic number, version 2.4, the longest frame.
        let header = [0xa1b2_3c4d, 4 << 16 | 2, 0, 0, 262_144, link_type];
        Pcap(header.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    /// Adds a frame that was captured so many nanoseconds after 1970.
    pub fn push(&mut self, nanos: u64, frame: &[u8]) {
        self.push_cut(nanos, frame, frame.len());
    }

    /// The same of a frame that had `original_len` bytes on the link.
    pub fn push_cut(&mut self, nanos: u64, frame: &[u8], original_len: usize) {
        let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        for number in [seconds, nanos, frame.len() as u64, original_len as u64] {
            let number = u32::try_from(number).expect("a number of a pcap has 32 bits");
            self.0.extend(number.to_le_bytes());
        }
        self.0.extend_from_slice(frame);
    }

    /// The file so far.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
