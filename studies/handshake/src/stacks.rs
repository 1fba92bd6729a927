//! Our own TCP on both nodes, at addresses of the link that the kernels do not have.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use lab::{End, Node};
use tcpio::{DeviceOptions, InterfaceAddress, Stack, StackOptions};

use crate::error::StudyError;
use crate::point::Visit;

/// Last octets of the addresses on the link.
const CLIENT: u8 = 101;
const SERVER: u8 = 102;
const REMEMBERING_CLIENT: u8 = 103;
/// The link's network, as the lab has it.
const PREFIX: u8 = 24;
/// The first port of our servers.
const FIRST_PORT: u16 = 20_000;

/// The stacks of a run.
#[derive(Clone)]
pub(crate) struct Stacks {
    pub server: Stack,
    address: Ipv4Addr,
    /// Forgets what it learns of a path, so that each connection is as the first.
    client: Stack,
    /// Does not.
    remembering: Stack,
    ports: Arc<AtomicU16>,
}

impl Stacks {
    /// Opens the stacks on the nodes' ends of their first link.
    pub(crate) fn open(client: &Node, server: &Node) -> Result<Stacks, StudyError> {
        let (here, there) = (end(client)?, end(server)?);
        let forgetful = tcp::Config { black_hole_memory: Duration::ZERO, ..tcp::Config::default() };
        let usual = tcp::Config::default();
        let at = |end: &End, last| on_link(end, last).map(IpAddr::V4);
        let to_server = [(at(&there, SERVER)?, &there), (there.addr4()?.into(), &there)];
        let to_client = [(at(&here, CLIENT)?, &here), (at(&here, REMEMBERING_CLIENT)?, &here)];
        Ok(Stacks {
            server: open(server, &there, SERVER, &to_client, usual.clone())?,
            address: on_link(&there, SERVER)?,
            client: open(client, &here, CLIENT, &to_server, forgetful)?,
            remembering: open(client, &here, REMEMBERING_CLIENT, &to_server, usual)?,
            ports: Arc::new(AtomicU16::new(FIRST_PORT)),
        })
    }

    /// The client's stack for such a visit.
    pub(crate) fn client(&self, visit: Visit) -> &Stack {
        match visit {
            Visit::First => &self.client,
            Visit::Remembered => &self.remembering,
        }
    }

    /// An address for another server: a port of its own, so that none gets another's late segments.
    pub(crate) fn next_server_address(&self) -> SocketAddr {
        let port = self.ports.fetch_add(1, Ordering::Relaxed).max(FIRST_PORT);
        SocketAddr::from((self.address, port))
    }
}

fn end(node: &Node) -> Result<End, StudyError> {
    let first = node.ends().into_iter().next();
    first.ok_or_else(|| lab::Error::NoLink { node: node.name().to_owned() }.into())
}

/// The address of an end's network that ends in `last`.
fn on_link(end: &End, last: u8) -> Result<Ipv4Addr, StudyError> {
    let [a, b, c, _] = end.addr4()?.octets();
    Ok(Ipv4Addr::new(a, b, c, last))
}

fn open(
    node: &Node,
    end: &End,
    last: u8,
    neighbours: &[(IpAddr, &End)],
    tcp: tcp::Config,
) -> Result<Stack, StudyError> {
    let device = DeviceOptions::Interface { name: end.interface.clone(), vnet_header: false };
    let address = InterfaceAddress::new(on_link(end, last)?.into(), PREFIX);
    let failed = |source| StudyError::Stack { node: node.name().to_owned(), source };
    let address = address.map_err(failed)?;
    let neighbours =
        neighbours.iter().map(|(address, end)| (*address, wire::ethernet::Address(end.mac)));
    let neighbours = neighbours.collect();
    let options = StackOptions { neighbours, tcp, ..StackOptions::new(device, vec![address]) };
    node.spawn(move || async move { Stack::open(options) }).join()?.map_err(failed)
}
