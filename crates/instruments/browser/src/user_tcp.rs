//! Our TCP at both ends of a lane, at addresses of a network of its own that the kernels do not have.

use std::net::{IpAddr, Ipv4Addr};

use lab::{End, Link, Node};
use tcpio::{DeviceOptions, InterfaceAddress, Stack, StackOptions};
use wire::ethernet;

use crate::Error;

/// How far the network's second byte is above that of the lane's link: the two above it are those of cross
/// traffic, whose packets the kernels forward.
const ABOVE: u8 = 3;
/// The length of the network's prefix.
const PREFIX: u8 = 24;

/// Bytes that a side may write ahead of what it has sent, or a congestion window's: a server's most urgent response
/// would wait behind all that is written, as it does not over the kernel's TCP.
const AHEAD: usize = 16 << 10;

/// Our TCP at both ends.
pub(crate) struct UserTcps {
    pub(crate) client: Stack,
    pub(crate) server: Stack,
    /// Addresses of a page's hosts, at the server's end.
    pub(crate) hosts: Vec<Ipv4Addr>,
}

impl std::fmt::Debug for UserTcps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserTcps").field("hosts", &self.hosts.len()).finish_non_exhaustive()
    }
}

impl UserTcps {
    /// Opens them on a lane's link, which has the kernels' addresses `kernels` of hosts: each has another
    /// one here, by the second octet.
    pub(crate) fn open(
        [client, server]: [&Node; 2],
        link: &Link,
        kernels: &[Ipv4Addr],
    ) -> Result<UserTcps, Error> {
        let [here, there] = link.ends();
        let hosts: Vec<Ipv4Addr> = kernels.iter().copied().map(beside).collect();
        let own = beside(here.addr4()?);
        let to = |address: &Ipv4Addr, end: &End| (IpAddr::V4(*address), ethernet::Address(end.mac));
        let servers = hosts.iter().map(|host| to(host, there)).collect();
        Ok(UserTcps {
            client: stack(client, here, &[own], servers)?,
            server: stack(server, there, &hosts, vec![to(&own, here)])?,
            hosts,
        })
    }
}

/// The address of our TCP that stands beside one of the kernel's.
fn beside(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b.wrapping_add(ABOVE), c, d)
}

fn stack(
    node: &Node,
    end: &End,
    addresses: &[Ipv4Addr],
    neighbours: Vec<(IpAddr, ethernet::Address)>,
) -> Result<Stack, Error> {
    let failed = |source| Error::UserTcp { node: node.name().to_owned(), source };
    let device = DeviceOptions::Interface { name: end.interface.clone(), vnet_header: false };
    let own = addresses.iter().map(|address| InterfaceAddress::new((*address).into(), PREFIX));
    let own = own.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let tcp = tcp::Config { send_ahead: Some(AHEAD), ..tcp::Config::default() };
    let options = StackOptions { neighbours, tcp, ..StackOptions::new(device, own) };
    node.spawn(move || async move { Stack::open(options) }).join()?.map_err(failed)
}
