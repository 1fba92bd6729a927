//! Endpoints of our own TCP on a client's node and the server's, at addresses of their link that the
//! kernels do not have.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use lab::{End, Link, Node};
use tcpio::{DeviceOptions, InterfaceAddress, Stack, StackOptions};

use crate::Error;

/// Last octets of the addresses on the link.
const CLIENT: u8 = 101;
const SERVER: u8 = 102;
const REMEMBERING_CLIENT: u8 = 103;
/// The link's network, as the lab has it.
const PREFIX: u8 = 24;
/// The first port of our servers.
const FIRST_PORT: u16 = 20_000;

/// Our TCP in user space at both ends of a link.
pub struct Endpoints {
    /// The servers' stack.
    pub server: Stack,
    /// A client's that forgets what it learns of a path, so that each connection is as the first.
    pub client: Stack,
    /// A client's that does not.
    pub remembering_client: Stack,
    address: Ipv4Addr,
    ports: AtomicU16,
}

impl Endpoints {
    /// Opens them at the ends of the link between the two nodes.
    ///
    /// # Errors
    /// [`Error::UserTcp`], or the lab's own.
    pub(crate) fn open(client: &Node, server: &Node, link: &Link) -> Result<Endpoints, Error> {
        let [here, there] = link.ends();
        let forgetful = tcp::Config { black_hole_memory: Duration::ZERO, ..tcp::Config::default() };
        let usual = tcp::Config::default();
        let at = |end: &End, last| on_link(end, last).map(IpAddr::V4);
        let to_server = [(at(there, SERVER)?, there), (there.addr4()?.into(), there)];
        let to_client = [(at(here, CLIENT)?, here), (at(here, REMEMBERING_CLIENT)?, here)];
        Ok(Endpoints {
            server: open(server, there, SERVER, &to_client, usual.clone())?,
            address: on_link(there, SERVER)?,
            client: open(client, here, CLIENT, &to_server, forgetful)?,
            remembering_client: open(client, here, REMEMBERING_CLIENT, &to_server, usual)?,
            ports: AtomicU16::new(FIRST_PORT),
        })
    }

    /// An address for another server: a port of its own, so that none gets another's late segments.
    pub(crate) fn next_server_address(&self) -> SocketAddr {
        let port = self.ports.fetch_add(1, Ordering::Relaxed).max(FIRST_PORT);
        SocketAddr::from((self.address, port))
    }
}

/// The address of an end's network that ends in `last`.
fn on_link(end: &End, last: u8) -> Result<Ipv4Addr, Error> {
    let [a, b, c, _] = end.addr4()?.octets();
    Ok(Ipv4Addr::new(a, b, c, last))
}

fn open(
    node: &Node,
    end: &End,
    last: u8,
    neighbours: &[(IpAddr, &End)],
    tcp: tcp::Config,
) -> Result<Stack, Error> {
    let device = DeviceOptions::Interface { name: end.interface.clone(), vnet_header: false };
    let address = InterfaceAddress::new(on_link(end, last)?.into(), PREFIX);
    let failed = |source| Error::UserTcp { node: node.name().to_owned(), source };
    let address = address.map_err(failed)?;
    let neighbours =
        neighbours.iter().map(|(address, end)| (*address, wire::ethernet::Address(end.mac)));
    let neighbours = neighbours.collect();
    let options = StackOptions { neighbours, tcp, ..StackOptions::new(device, vec![address]) };
    node.spawn(move || async move { Stack::open(options) }).join()?.map_err(failed)
}
