//! The stack's own addresses, and the routes to others.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::Error;

/// An address of the stack with the length of its network's prefix, as `10.77.1.101/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InterfaceAddress {
    address: IpAddr,
    prefix_len: u8,
}

impl InterfaceAddress {
    /// `address` in a network with `prefix_len` bits of prefix.
    ///
    /// # Errors
    /// [`Error::Address`] if the prefix is longer than the address, or the address can be no
    /// host's.
    pub fn new(address: IpAddr, prefix_len: u8) -> Result<Self, Error> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let wrong = |problem| Error::Address { text: format!("{address}/{prefix_len}"), problem };
        if prefix_len > longest {
            return Err(wrong("its prefix is longer than the address"));
        }
        let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() || broadcast
        {
            return Err(wrong("a host on a link cannot have this address"));
        }
        Ok(InterfaceAddress { address, prefix_len })
    }

    /// The whole address, the bits behind the prefix included.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits of prefix that all hosts of its network share.
    #[must_use]
    pub fn prefix_len(&self) -> u8 {
        self.prefix_len
    }

    /// Whether `other` is in the same network.
    #[must_use]
    pub fn covers(&self, other: IpAddr) -> bool {
        let differing = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        differing >= u32::from(self.prefix_len)
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

impl FromStr for InterfaceAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |problem| Error::Address { text: text.to_owned(), problem };
        let (address, prefix_len) =
            text.split_once('/').ok_or(wrong("write address/prefix, as 192.0.2.7/24"))?;
        let address = address.parse().map_err(|_| wrong("its address cannot be read"))?;
        let prefix_len = prefix_len.parse().map_err(|_| wrong("its prefix cannot be read"))?;
        InterfaceAddress::new(address, prefix_len)
    }
}

/// The stack's addresses and gateways.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    addresses: Vec<InterfaceAddress>,
    gateways: Vec<IpAddr>,
}

impl Routes {
    pub(crate) fn new(
        addresses: Vec<InterfaceAddress>,
        gateways: Vec<IpAddr>,
    ) -> Result<Self, Error> {
        if addresses.is_empty() {
            return Err(Error::NoAddress);
        }
        let off_link = |gateway: &&IpAddr| !addresses.iter().any(|own| own.covers(**gateway));
        if let Some(gateway) = gateways.iter().find(off_link) {
            return Err(Error::Gateway { gateway: *gateway });
        }
        Ok(Routes { addresses, gateways })
    }

    pub(crate) fn addresses(&self) -> &[InterfaceAddress] {
        &self.addresses
    }

    /// Whether packets to `address` are for us.
    pub(crate) fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    /// Who on the link gets packets to `destination`: itself, or a gateway. `None` if there is no
    /// way.
    pub(crate) fn next_hop(&self, destination: IpAddr) -> Option<IpAddr> {
        if self.addresses.iter().any(|own| own.covers(destination)) {
            return Some(destination);
        }
        self.gateways.iter().copied().find(|gateway| gateway.is_ipv4() == destination.is_ipv4())
    }

    /// The address to speak to `destination` from: of its network if we have one, else of its
    /// family.
    pub(crate) fn source(&self, destination: IpAddr) -> Option<IpAddr> {
        let hop = self.next_hop(destination)?;
        let covering = self.addresses.iter().filter(|own| own.covers(hop));
        covering.max_by_key(|own| own.prefix_len).map(|own| own.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(addresses: &[&str], gateways: &[&str]) -> Result<Routes, Error> {
        Routes::new(
            addresses.iter().map(|text| text.parse().unwrap()).collect(),
            gateways.iter().map(|text| text.parse().unwrap()).collect(),
        )
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_on_the_link_is_reached_directly_and_the_rest_by_the_gateway() {
        let routes = routes(
            &["10.77.1.101/24", "10.77.1.5/32", "fd77:1::101/64"],
            &["10.77.1.1", "fd77:1::1"],
        )
        .unwrap();
        assert_eq!(routes.next_hop(ip("10.77.1.2")), Some(ip("10.77.1.2")));
        assert_eq!(routes.next_hop(ip("10.77.2.2")), Some(ip("10.77.1.1")));
        assert_eq!(routes.next_hop(ip("fd77:1::2")), Some(ip("fd77:1::2")));
        assert_eq!(routes.next_hop(ip("2001:db8::2")), Some(ip("fd77:1::1")));
        assert_eq!(routes.source(ip("192.0.2.1")), Some(ip("10.77.1.101")));
        assert_eq!(routes.source(ip("2001:db8::2")), Some(ip("fd77:1::101")));
        assert!(routes.owns(ip("10.77.1.5")) && !routes.owns(ip("10.77.1.2")));
    }

    #[test]
    fn without_a_gateway_there_is_no_way_beyond_the_link() {
        let routes = routes(&["10.77.1.101/24"], &[]).unwrap();
        assert_eq!(routes.next_hop(ip("10.78.0.1")), None);
        assert_eq!(routes.source(ip("fd77:1::2")), None);
    }

    #[test]
    fn a_prefix_of_no_bits_covers_all_and_of_all_bits_itself() {
        let everything: InterfaceAddress = "10.0.0.1/0".parse().unwrap();
        assert!(everything.covers(ip("203.0.113.9")) && !everything.covers(ip("::1")));
        let single: InterfaceAddress = "2001:db8::1/128".parse().unwrap();
        assert!(single.covers(ip("2001:db8::1")) && !single.covers(ip("2001:db8::2")));
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, problem) in [
            ("10.77.1.101", "address/prefix"),
            ("10.77.1.101/33", "longer"),
            ("ten/8", "address cannot be read"),
            ("10.0.0.1/x", "prefix cannot be read"),
            ("224.0.0.1/24", "cannot have this address"),
            ("::/64", "cannot have this address"),
        ] {
            let error = text.parse::<InterfaceAddress>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(text), "{text}: {error}");
        }
        assert!(matches!(routes(&[], &[]), Err(Error::NoAddress)));
        let off_link = routes(&["10.77.1.101/24"], &["10.78.0.1"]);
        assert!(matches!(off_link, Err(Error::Gateway { .. })));
    }
}
