//! One TCP port of an address that is the kernel's, given to the gateway.
//!
//! A rule at the interface's ingress hands the packets of that port to a TUN device, before the
//! kernel's own TCP, its connection tracking or its routing see them; they keep their addresses. So do
//! ICMP's messages that such a packet of ours was too big for the path (RFC 1191 §3), without which
//! our TCP would send into a black hole. What the gateway sends comes in by the TUN device from an
//! address that is the machine's own, and the kernel routes it on, which needs two settings of that
//! one device. No other setting is touched.
//!
//! Nothing outlives the process, `kill -9` included: the table has the flag `owner`, so that the
//! kernel removes it with the netlink socket that made it; the device goes with its descriptor, and
//! its settings with it. The kernel looks at the capabilities of who sends on that socket too: without
//! CAP_NET_ADMIN it only holds the table.

mod nftables;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use tcpio::InterfaceAddress;

use self::nftables::{Base, Batch, Meta, Rule};
use crate::Error;

/// Before whatever else is at the ingress with the usual priority.
const PRIORITY: i32 = -150;
/// To which neighbour is all the same on a TUN device, which has none; the dummy address of RFC 7600.
const NEIGHBOUR: [u8; 4] = [192, 0, 0, 8];
/// The ports that we spoke from.
const PORTS: &str = "ports";

/// Which packets are handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Packets {
    /// Those to our listener, from these networks; from anywhere if there are none.
    To { listener: SocketAddrV4, allowed: Vec<InterfaceAddress> },
    /// Those of the server at `from` to ports that we spoke to it from, for this long after we last
    /// did.
    Answers { from: SocketAddrV4, to: Ipv4Addr, remembered: Duration },
}

/// The redirect; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Redirect {
    /// The table's owner.
    _socket: socket2::Socket,
}

impl Redirect {
    /// Hands `packets` that come in by `interface` to the TUN device `tun`, whose index is `device`.
    pub(crate) fn start(
        interface: &str,
        tun: &str,
        device: u32,
        packets: &Packets,
    ) -> Result<Redirect, Error> {
        // As the device is called, which no other is.
        let table = tun.replace("wiretax", "wiretax_").replace('-', "_");
        let committed = batch(&table, interface, tun, device, packets).commit();
        let socket = committed.map_err(|source| Error::Redirect { source })?;
        Ok(Redirect { _socket: socket })
    }
}

fn batch(table: &str, interface: &str, tun: &str, device: u32, packets: &Packets) -> Batch {
    let mut batch = Batch::new(table);
    batch.chain("ingress", interface, PRIORITY);
    match packets {
        Packets::To { listener, allowed } => {
            let rule = tcp().is(Base::Network, 16, &listener.ip().octets());
            let rule = rule.is(Base::Transport, 2, &listener.port().to_be_bytes());
            let sources = allowed.iter().filter_map(network);
            let mut rules: Vec<Rule> = sources
                .map(|(network, mask)| rule.clone().masked(Base::Network, 12, network, mask))
                .collect();
            if allowed.is_empty() {
                rules.push(rule);
            }
            rules.push(too_big(*listener.ip()).is(
                Base::Transport,
                QUOTED_TCP,
                &listener.port().to_be_bytes(),
            ));
            for rule in rules {
                batch.rule("ingress", rule.forward(device, NEIGHBOUR));
            }
        }
        Packets::Answers { from, to, remembered } => {
            let (server, port) = (from.ip().octets(), from.port().to_be_bytes());
            // The ports are learnt from what comes in by the TUN device: the answers to them are
            // ours, those to any other port the kernel's.
            batch.ports(PORTS, *remembered);
            batch.chain("egress", tun, PRIORITY);
            let sent = tcp().is(Base::Network, 16, &server).is(Base::Transport, 2, &port);
            batch.rule("egress", sent.remember_port(PORTS, Base::Transport, 0));
            let answer = tcp().is(Base::Network, 12, &server).is(Base::Transport, 0, &port);
            let answer = answer.is(Base::Network, 16, &to.octets());
            let answer = answer.port_in(PORTS, Base::Transport, 2);
            batch.rule("ingress", answer.forward(device, NEIGHBOUR));
            let of_ours = too_big(*to)
                .is(Base::Transport, QUOTED_IP + 16, &server)
                .is(Base::Transport, QUOTED_TCP + 2, &port)
                .port_in(PORTS, Base::Transport, QUOTED_TCP);
            batch.rule("ingress", of_ours.forward(device, NEIGHBOUR));
        }
    }
    batch
}

fn ipv4(protocol: u8) -> Rule {
    const ETHERTYPE_IPV4: u16 = 0x0800;
    let rule = Rule::default().meta(Meta::Protocol, &ETHERTYPE_IPV4.to_be_bytes());
    rule.meta(Meta::L4Protocol, &[protocol])
}

fn tcp() -> Rule {
    ipv4(6)
}

/// Where ICMP quotes the packet that it is about, and its TCP if it has no IP options, which we send
/// none of (RFC 792).
const QUOTED_IP: u32 = 8;
const QUOTED_TCP: u32 = QUOTED_IP + 20;

/// "Fragmentation needed" (RFC 792: type 3, code 4) for `own` about a TCP packet of its own.
fn too_big(own: Ipv4Addr) -> Rule {
    ipv4(1)
        .is(Base::Network, 16, &own.octets())
        .is(Base::Transport, 0, &[3, 4])
        .is(Base::Transport, QUOTED_IP, &[0x45])
        .is(Base::Transport, QUOTED_IP + 9, &[6])
        .is(Base::Transport, QUOTED_IP + 12, &own.octets())
}

/// A network of IPv4 and its mask.
fn network(allowed: &InterfaceAddress) -> Option<([u8; 4], [u8; 4])> {
    let std::net::IpAddr::V4(address) = allowed.address() else { return None };
    let mask = !u32::MAX.checked_shr(allowed.prefix_len().into()).unwrap_or(0);
    Some(((address.to_bits() & mask).to_be_bytes(), mask.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_a_mask() {
        for (text, expected) in [
            ("192.0.2.77/24", ([192, 0, 2, 0], [255, 255, 255, 0])),
            ("192.0.2.77/32", ([192, 0, 2, 77], [255; 4])),
            ("192.0.2.77/0", ([0; 4], [0; 4])),
            ("10.1.2.3/9", ([10, 0, 0, 0], [255, 128, 0, 0])),
        ] {
            assert_eq!(network(&text.parse().unwrap()), Some(expected), "{text}");
        }
        assert_eq!(network(&"2001:db8::/32".parse().unwrap()), None);
    }
}
