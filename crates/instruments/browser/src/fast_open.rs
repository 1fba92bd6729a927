//! TCP Fast Open on a lane. The kernel keeps its cookies by the addresses of both ends, and only root of the
//! machine may have it forget them: so each first visit is a client of another address, which no server knows.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use lab::{Link, Node, Prefix};

use crate::Error;

/// The network that the lanes' networks of clients are in: 10.128.0.0/9.
const ALL: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
/// Bits of an address that tell a lane's clients apart.
const BITS: u32 = 15;
/// Clients of a lane; those beyond it have addresses again.
const MOST: u32 = (1 << BITS) - 2;

/// The clients of a lane.
#[derive(Debug)]
pub(crate) struct Clients {
    net: u8,
    node: Node,
    interface: String,
    next: AtomicU32,
}

impl Clients {
    /// Of the lane with this third byte of its addresses, whose client is at `gateway` for the server.
    pub(crate) fn open(net: u8, [client, server]: [&Node; 2], link: &Link) -> Result<Self, Error> {
        let [here, _] = link.ends();
        let gateway = here.addr4()?;
        // 1: data in the SYN of a client; 2: of a server (Linux ip-sysctl).
        client.sysctl("net.ipv4.tcp_fastopen", "1")?;
        server.sysctl("net.ipv4.tcp_fastopen", "2")?;
        let length = 32 - BITS as u8;
        server.add_route(IpAddr::V4(address(net, 0)), length, IpAddr::V4(gateway))?;
        let (node, interface) = (client.clone(), here.interface.clone());
        Ok(Clients { net, node, interface, next: AtomicU32::new(0) })
    }

    /// A client's address that was not there before.
    pub(crate) fn another(&self) -> Result<IpAddr, Error> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % MOST + 1;
        let address = IpAddr::V4(address(self.net, number));
        if let Some(own) = Prefix::new(address, 32) {
            self.node.add_address(&self.interface, own)?;
        }
        Ok(address)
    }
}

fn address(net: u8, client: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(ALL.to_bits() | (u32::from(net) << BITS) | client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_and_clients_have_addresses_of_their_own() {
        assert_eq!(address(1, 0), Ipv4Addr::new(10, 128, 128, 0));
        assert_eq!(address(1, 1), Ipv4Addr::new(10, 128, 128, 1));
        assert_eq!(address(2, 300), Ipv4Addr::new(10, 129, 1, 44));
        assert_eq!(address(255, MOST), Ipv4Addr::new(10, 255, 255, 254));
    }
}
