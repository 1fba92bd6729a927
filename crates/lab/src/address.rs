//! Addresses of a link's ends.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use fault::{Explain, Fault};

/// An address and the length of its network's prefix, as in `10.0.0.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

/// A text that is no address with the length of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address with a prefix length")]
pub struct NotPrefix(String);

impl Explain for NotPrefix {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write it like 10.0.0.1/24 or fd00::1/64".into())
    }
}

impl Prefix {
    /// An address in a network of this prefix length; `None` if the address has fewer bits.
    #[must_use]
    pub fn new(address: impl Into<IpAddr>, len: u8) -> Option<Prefix> {
        let address = address.into();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (len <= bits).then_some(Prefix { address, len })
    }

    /// The whole address, the bits behind the prefix included.
    #[must_use]
    pub const fn address(self) -> IpAddr {
        self.address
    }

    /// The length of the network's prefix, in bits.
    #[must_use]
    pub const fn prefix_len(self) -> u8 {
        self.len
    }

    /// What end `side` (1 or 2) of link `number` has unless something else is asked for.
    pub(crate) fn defaults(number: u8, side: u8) -> [Prefix; 2] {
        let v6 = Ipv6Addr::new(0xfd77, u16::from(number), 0, 0, 0, 0, 0, u16::from(side));
        let v4 = Ipv4Addr::new(10, 77, number, side);
        [Prefix { address: v4.into(), len: 24 }, Prefix { address: v6.into(), len: 64 }]
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl FromStr for Prefix {
    type Err = NotPrefix;

    fn from_str(text: &str) -> Result<Prefix, NotPrefix> {
        let parse = || {
            let (address, len) = text.split_once('/')?;
            Prefix::new(address.parse::<IpAddr>().ok()?, len.parse().ok()?)
        };
        parse().ok_or_else(|| NotPrefix(text.to_owned()))
    }
}

/// The addresses of a link's two ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Addresses {
    /// 10.77.N.1/24 and fd77:N::1/64 at the first node, 10.77.N.2/24 and fd77:N::2/64 at the second,
    /// where N is the link's number; without those of IPv6 where there is no IPv6.
    #[default]
    Numbered,
    /// These: of the first node, then of the second. An empty list is none at all, as for a port of a
    /// bridge.
    Given([Vec<Prefix>; 2]),
}

impl Addresses {
    /// None at either end.
    #[must_use]
    pub fn none() -> Addresses {
        Addresses::Given([Vec::new(), Vec::new()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_as_they_are_printed() {
        for text in ["10.0.0.1/24", "0.0.0.0/0", "192.0.2.1/32", "fd00::1/64", "::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        for wrong in ["", "10.0.0.1", "10.0.0.1/33", "fd00::1/129", "10.0.0.1/-1", "x/8", "1/2/3"] {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }
}
