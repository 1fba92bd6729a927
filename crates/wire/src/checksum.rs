//! The Internet checksum (RFC 1071).

use std::net::IpAddr;

/// A running one's complement sum of 16-bit words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// A sum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Sum(0)
    }

    /// Adds the words of `bytes`; an odd last byte is padded with zero, so only the last piece of
    /// a message may be odd.
    #[must_use]
    pub fn plus(self, bytes: &[u8]) -> Self {
        let (words, odd) = bytes.as_chunks::<2>();
        // At most 2^31 words a call, each below 2^16: the sum cannot wrap in 64 bits.
        let mut sum = self.0;
        for word in words {
            sum = sum.wrapping_add(u64::from(u16::from_be_bytes(*word)));
        }
        if let [last] = odd {
            sum = sum.wrapping_add(u64::from(*last) << 8);
        }
        Sum(sum)
    }

    /// Adds the pseudo-header over which TCP and UDP are summed (RFC 9293 §3.1, RFC 8200 §8.1).
    #[must_use]
    pub fn plus_pseudo_header(self, src: IpAddr, dst: IpAddr, protocol: u8, len: u32) -> Self {
        let sum = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => self.plus(&src.octets()).plus(&dst.octets()),
            (src, dst) => self.plus(&octets16(src)).plus(&octets16(dst)),
        };
        sum.plus(&len.to_be_bytes()).plus(&[0, protocol])
    }

    /// The checksum: the complement of the folded sum. Over bytes that hold their own right
    /// checksum it is zero.
    #[must_use]
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff).wrapping_add(sum >> 16);
        }
        !(sum as u16)
    }
}

fn octets16(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_1071_example() {
        // RFC 1071 §3: the sum of these words is ddf2.
        let sum = Sum::new().plus(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn an_odd_last_byte_counts_as_the_high_half() {
        assert_eq!(Sum::new().plus(&[0x12]).finish(), !0x1200);
    }
}
