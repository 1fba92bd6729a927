//! Prefixes of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::Error;

/// Lengths of prefixes, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefixes {
    v4: u8,
    v6: u8,
}

impl Default for Prefixes {
    /// 24 and 48: what sites are commonly given.
    fn default() -> Self {
        Prefixes { v4: 24, v6: 48 }
    }
}

impl Prefixes {
    /// The first `v4` bits of IPv4 addresses and the first `v6` bits of IPv6 addresses.
    ///
    /// # Errors
    /// More bits than the addresses have.
    pub fn new(v4: u8, v6: u8) -> Result<Self, Error> {
        if v4 > 32 || v6 > 128 {
            return Err(Error::Prefixes { v4, v6 });
        }
        Ok(Prefixes { v4, v6 })
    }

    /// The shorter ones of both.
    pub(crate) fn min(self, other: Prefixes) -> Prefixes {
        Prefixes { v4: self.v4.min(other.v4), v6: self.v6.min(other.v6) }
    }

    /// The network of `address`.
    #[must_use]
    pub fn of(self, address: IpAddr) -> Network {
        let (address, bits) = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.v4)).unwrap_or(0);
                (Ipv4Addr::from_bits(address.to_bits() & mask).into(), self.v4)
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.v6)).unwrap_or(0);
                (Ipv6Addr::from_bits(address.to_bits() & mask).into(), self.v6)
            }
        };
        Network { address, bits }
    }
}

/// A network: an address whose bits beyond the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    /// Its lowest address.
    pub address: IpAddr,
    /// Length of its prefix, bits.
    pub bits: u8,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_keeps_the_prefix_only() {
        for (v4, v6, address, network) in [
            (24, 48, "192.0.2.77", "192.0.2.0/24"),
            (32, 48, "192.0.2.77", "192.0.2.77/32"),
            (0, 48, "192.0.2.77", "0.0.0.0/0"),
            (9, 48, "10.255.2.77", "10.128.0.0/9"),
            (24, 48, "2001:db8:1:2::3", "2001:db8:1::/48"),
            (24, 128, "2001:db8:1:2::3", "2001:db8:1:2::3/128"),
            (24, 0, "2001:db8:1:2::3", "::/0"),
        ] {
            let prefixes = Prefixes::new(v4, v6).unwrap();
            assert_eq!(prefixes.of(address.parse().unwrap()).to_string(), network);
        }
        assert!(Prefixes::new(33, 48).is_err() && Prefixes::new(24, 129).is_err());
    }
}
