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
        let (blocks, rest) = bytes.as_chunks::<32>();
        let (words, odd) = rest.as_chunks::<2>();
        // At most 2^31 words a call, each below 2^16: the sum cannot wrap in 64 bits.
        let mut sum = self.0.wrapping_add(sum_blocks(blocks));
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

/// The sum of whole blocks, folded to 16 bits. Words are added two at a time and in the machine's
/// byte order, which changes nothing but the order of the sum's own bytes (RFC 1071 §2 B, C).
fn sum_blocks(blocks: &[[u8; 32]]) -> u64 {
    let mut lanes = [0u64; 8];
    for block in blocks {
        for (lane, pair) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
            *lane = lane.wrapping_add(u64::from(u32::from_ne_bytes(*pair)));
        }
    }
    // A call has far fewer than 2^32 blocks, so no lane wraps.
    let mut sum = lanes.iter().fold(0u64, |sum, lane| sum.wrapping_add(*lane));
    while sum > 0xffff {
        sum = (sum & 0xffff).wrapping_add(sum >> 16);
    }
    u64::from((sum as u16).to_be())
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_sum_of_words(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut sum = 0u32;
            for pair in bytes.chunks(2) {
                sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(Sum::new().plus(&bytes).finish(), !(sum as u16));
        }
    }

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
