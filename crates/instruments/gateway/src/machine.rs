//! What the kernel knows of this machine's addresses and routes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use tcpio::InterfaceAddress;

use crate::Error;

/// A route of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Route {
    interface: String,
    network: InterfaceNetwork,
    /// The router, or `None` for a network on the link.
    router: Option<IpAddr>,
}

/// A network by an address in it; the default route is that of length 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InterfaceNetwork {
    address: IpAddr,
    prefix_len: u8,
}

impl InterfaceNetwork {
    fn covers(&self, other: IpAddr) -> bool {
        let same = match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        same >= u32::from(self.prefix_len)
    }
}

/// The kernel's routes, as they were when they were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Vec<Route>);

/// Where an address is, or is reached by way of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) interface: String,
    /// The length of the prefix of the network on the link that it is in, if it is in one.
    pub(crate) prefix_len: Option<u8>,
}

impl Routes {
    /// Reads them. A kernel without IPv6, or without /proc, has none of it.
    pub(crate) fn read() -> Routes {
        let v4 = fs::read_to_string("/proc/net/route").unwrap_or_default();
        let v6 = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
        Routes::parse(&v4, &v6)
    }

    fn parse(v4: &str, v6: &str) -> Routes {
        let v4 = v4.lines().skip(1).filter_map(route4);
        Routes(v4.chain(v6.lines().filter_map(route6)).collect())
    }

    /// The interface by which packets to `address` leave: that of the most specific route.
    pub(crate) fn place(&self, address: IpAddr) -> Option<Place> {
        let covering = self.0.iter().filter(|route| route.network.covers(address));
        let best = covering.max_by_key(|route| route.network.prefix_len)?;
        let on_link = best.router.is_none() && best.network.prefix_len > 0;
        Some(Place {
            interface: best.interface.clone(),
            prefix_len: on_link.then_some(best.network.prefix_len),
        })
    }

    /// The network on the link of `interface` that `address` is in, as its prefix length.
    pub(crate) fn prefix_on(&self, interface: &str, address: IpAddr) -> Option<u8> {
        let here = self.0.iter().filter(|route| {
            route.interface == interface
                && route.router.is_none()
                && route.network.prefix_len > 0
                && route.network.covers(address)
        });
        here.map(|route| route.network.prefix_len).max()
    }

    /// The routers that lead from `address`'s network to everywhere else, by `interface`.
    pub(crate) fn default_router(
        &self,
        interface: &str,
        address: &InterfaceAddress,
    ) -> Option<IpAddr> {
        let default =
            |route: &&Route| route.network.prefix_len == 0 && route.interface == interface;
        let routers = self.0.iter().filter(default).filter_map(|route| route.router);
        routers.into_iter().find(|router| address.covers(*router))
    }
}

/// A line of /proc/net/route: `eth0 0002A8C0 00000000 0001 0 0 100 00FFFFFF 0 0 0`.
fn route4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    // Bytes as they are in memory, printed as a number of this machine.
    let address = |at| number(at).map(|bits| Ipv4Addr::from(bits.to_ne_bytes()));
    let up = number(3)? & 1 != 0;
    let router = address(2).filter(|router| !router.is_unspecified());
    let mask = address(7)?.to_bits();
    let route = Route {
        interface: (*fields.first()?).to_owned(),
        network: InterfaceNetwork {
            address: address(1)?.into(),
            prefix_len: u8::try_from(mask.leading_ones()).ok()?,
        },
        router: router.map(IpAddr::from),
    };
    up.then_some(route)
}

/// A line of /proc/net/ipv6_route: destination, its prefix length, source, its length, next hop,
/// metric, references, use, flags, interface.
fn route6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| {
        let bits = u128::from_str_radix(fields.get(at)?, 16).ok()?;
        Some(Ipv6Addr::from_bits(bits))
    };
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    // linux/route.h and ipv6_route.h: up; neither a reject route, nor one of our own addresses.
    let (up, reject, local) = (flags & 1 != 0, flags & 0x200 != 0, flags & 0x8000_0000 != 0);
    let network = address(0)?;
    let router = address(4).filter(|router| !router.is_unspecified());
    let route = Route {
        interface: (*fields.get(9)?).to_owned(),
        network: InterfaceNetwork {
            address: network.into(),
            prefix_len: u8::from_str_radix(fields.get(1)?, 16).ok()?,
        },
        router: router.map(IpAddr::from),
    };
    (up && !reject && !local && !network.is_multicast()).then_some(route)
}

/// Whether the kernel has this address itself.
pub(crate) fn is_kernels(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

/// The address from which the kernel speaks to `remote`.
pub(crate) fn source_towards(remote: SocketAddr) -> Result<IpAddr, Error> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a UDP socket sends nothing.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(remote)?;
        socket.local_addr()
    });
    socket.map(|local| local.ip()).map_err(|_| Error::NoInterface { address: remote.ip() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
eth1\t0000000A\t00000000\t0001\t0\t0\t100\t000000FF\t0\t0\t0
eth9\t0000000B\t00000000\t0000\t0\t0\t100\t000000FF\t0\t0\t0
nonsense";
    const V6: &str = "\
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
20010db8000000000000000000000007 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 20010db8000000000000000000000001 00000400 00000002 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000003 00000000 00000001     eth0";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernel_s_routes_are_read() {
        let routes = Routes::parse(V4, V6);
        let place = |address| routes.place(ip(address)).map(|of| (of.interface, of.prefix_len));
        assert_eq!(place("192.0.2.10"), Some(("eth0".into(), Some(24))));
        assert_eq!(place("10.1.2.3"), Some(("eth1".into(), Some(8))));
        assert_eq!(place("203.0.113.1"), Some(("eth0".into(), None)), "by the router");
        assert_eq!(place("11.0.0.1"), Some(("eth0".into(), None)), "eth9 is down");
        assert_eq!(place("2001:db8::7"), Some(("eth0".into(), Some(64))));
        assert_eq!(place("2001:db8:1::7"), Some(("eth0".into(), None)));
        assert_eq!(routes.prefix_on("eth1", ip("192.0.2.10")), None);
        assert_eq!(routes.prefix_on("eth0", ip("192.0.2.10")), Some(24));
        for (own, router) in [
            ("192.0.2.77/24", Some("192.0.2.1")),
            ("192.0.2.77/32", None),
            ("2001:db8::77/64", Some("2001:db8::1")),
        ] {
            let found = routes.default_router("eth0", &own.parse().unwrap());
            assert_eq!(found, router.map(ip), "{own}");
        }
        assert_eq!(routes.default_router("eth1", &"10.0.0.7/8".parse().unwrap()), None);
    }

    #[test]
    fn loopback_is_the_kernel_s_and_a_documentation_address_is_not() {
        assert!(is_kernels(ip("127.0.0.1")));
        assert!(!is_kernels(ip("192.0.2.77")));
    }
}
