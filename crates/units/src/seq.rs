//! TCP sequence numbers.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Sub};

/// A TCP sequence number: 32 bits that wrap (RFC 9293 §3.4).
///
/// It has no total order, so it is compared by [`SeqNumber::distance`] or `PartialOrd`, which is
/// right for numbers less than 2^31 apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// How far `self` is past `other`: negative if it is before it.
    #[must_use]
    pub const fn distance(self, other: SeqNumber) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl PartialOrd for SeqNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        // Exactly half the space apart: neither is before the other.
        match self.distance(*other) {
            i32::MIN => None,
            distance => Some(distance.cmp(&0)),
        }
    }
}

impl Add<u32> for SeqNumber {
    type Output = SeqNumber;
    fn add(self, octets: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_add(octets))
    }
}

impl Sub<u32> for SeqNumber {
    type Output = SeqNumber;
    fn sub(self, octets: u32) -> SeqNumber {
        SeqNumber(self.0.wrapping_sub(octets))
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        let (before, after) = (SeqNumber(u32::MAX - 1), SeqNumber(3));
        assert!(before < after);
        assert_eq!(after.distance(before), 5);
        assert_eq!(before + 5, after);
        assert_eq!(after - 5, before);
    }

    #[test]
    fn half_the_space_apart_has_no_order() {
        assert_eq!(SeqNumber(0).partial_cmp(&SeqNumber(1 << 31)), None);
    }
}
