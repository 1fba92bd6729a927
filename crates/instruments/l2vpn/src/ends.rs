//! The plan of a path: names, addresses, labels, indices and ports, as functions of its topology alone.
//!
//! Links are counted from the left: 0 is the first tester's, 1 to `hops` are the path's, `hops + 1` is the second
//! tester's. Link k joins node k - 1 and node k.

use std::net::{IpAddr, Ipv4Addr};

use seclink::path::{IpVersion, Protection, Reach, Role, Topology};
use seclink::plane::address;
use units::named;
use wire::ethernet::Address;
use wire::macsec::Sci;

/// The VLAN of the tester's frames where they are tagged.
pub const VLAN: u16 = 10;

/// The pseudowire's own label: a second one below that of each link, where no control word says what follows.
pub const PSEUDOWIRE_LABEL: u32 = 500;

/// Bytes of the longest packet on every link: jumbo frames and all that is put around them.
pub const MTU: u32 = 9500;

/// The salt of MACsec's extended packet numbers: each way of a span has a key of its own, so that one is enough.
pub const SALT: [u8; 12] = [0x5a; 12];

named! {
    /// An end of a link, or of a path.
    pub enum Side: "side" {
        /// Towards the first tester.
        Left = "left",
        /// Towards the second.
        Right = "right",
    }
}

impl Side {
    /// The opposite end.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }

    /// 1 or 2: the last octet of its addresses.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Side::Left => 1,
            Side::Right => 2,
        }
    }

    /// The direction of what it sends.
    #[must_use]
    pub const fn sends(self) -> Direction {
        match self {
            Side::Left => Direction::Forward,
            Side::Right => Direction::Backward,
        }
    }
}

named! {
    /// Which way frames go.
    pub enum Direction: "direction" {
        /// From the first tester to the second.
        Forward = "forward",
        /// From the second to the first.
        Backward = "backward",
    }
}

impl Direction {
    /// The end that sends this way.
    #[must_use]
    pub const fn sender(self) -> Side {
        match self {
            Direction::Forward => Side::Left,
            Direction::Backward => Side::Right,
        }
    }
}

/// The Ethernet address of one end of a link.
#[must_use]
pub const fn mac(link: u8, side: Side) -> Address {
    // The second-lowest bit of the first octet: locally administered (IEEE 802 §8.4).
    Address([0x02, 0, 0, 0, link, side.number()])
}

/// The Ethernet addresses of a link's ends, the left first.
#[must_use]
pub const fn macs(link: u8) -> [Address; 2] {
    [mac(link, Side::Left), mac(link, Side::Right)]
}

/// The first three octets of the network at a tester's link; its mask has 24 bits.
const fn lan(side: Side, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(172, 16, side.number(), host)
}

/// The network at a tester's link, of 24 bits.
#[must_use]
pub const fn network(side: Side) -> Ipv4Addr {
    lan(side, 0)
}

/// The first or last node's address at its tester's link.
#[must_use]
pub const fn gateway_ip(side: Side) -> Ipv4Addr {
    lan(side, 1)
}

/// A tester's address.
#[must_use]
pub const fn tester_ip(side: Side) -> Ipv4Addr {
    lan(side, 2)
}

/// A tester's Ethernet address.
#[must_use]
pub const fn tester_mac(topology: &Topology, side: Side) -> Address {
    match side {
        Side::Left => mac(0, Side::Left),
        Side::Right => mac(topology.hops.saturating_add(1), Side::Right),
    }
}

/// The Ethernet address of the first or last node at its tester's link.
#[must_use]
pub const fn gateway_mac(topology: &Topology, side: Side) -> Address {
    match side {
        Side::Left => mac(0, Side::Right),
        Side::Right => mac(topology.hops.saturating_add(1), Side::Left),
    }
}

/// Where a tester's frames go: to the other tester where Ethernet is carried, to the gateway where packets are
/// routed.
#[must_use]
pub const fn next_hop(topology: &Topology, side: Side) -> Address {
    match topology.carries_ethernet() {
        true => tester_mac(topology, side.other()),
        false => gateway_mac(topology, side),
    }
}

/// A node's name: what it is, and its number among those of its kind, from 1.
#[must_use]
pub fn node_name(topology: &Topology, node: u8) -> String {
    let role = topology.role(node);
    let number = (0..=node).filter(|other| topology.role(*other) == role).count();
    let kind = match role {
        Role::Ce => "ce",
        Role::Pe => "pe",
        Role::P => "p",
        Role::Switch => "node",
    };
    format!("{kind}{number}")
}

/// A tester's node.
#[must_use]
pub const fn tester_name(side: Side) -> &'static str {
    match side {
        Side::Left => "tester1",
        Side::Right => "tester2",
    }
}

/// The label of frames on a link of the core, which the node at its far end chose.
#[must_use]
pub const fn label(direction: Direction, link: u8) -> u32 {
    match direction {
        Direction::Forward => 100 + link as u32,
        Direction::Backward => 200 + link as u32,
    }
}

/// What one security association of each direction covers: from a node to one further right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// 0 from end to end; the link's number where each link is protected.
    pub number: u8,
    /// The node at its left end.
    pub first: u8,
    /// The node at its right end.
    pub last: u8,
}

/// Where frames are protected; none where they are plain.
#[must_use]
pub fn spans(topology: &Topology) -> Vec<Span> {
    match (topology.protection, topology.reach) {
        (Protection::Plain, _) => Vec::new(),
        (_, Reach::EndToEnd) => vec![Span { number: 0, first: 0, last: topology.hops }],
        (_, Reach::EveryHop) => (1..=topology.hops)
            .map(|link| Span { number: link, first: link.saturating_sub(1), last: link })
            .collect(),
    }
}

impl Span {
    /// The node at one of its ends.
    #[must_use]
    pub const fn node(&self, side: Side) -> u8 {
        match side {
            Side::Left => self.first,
            Side::Right => self.last,
        }
    }

    /// The Ethernet address of one end.
    #[must_use]
    pub const fn mac(&self, side: Side) -> Address {
        match side {
            Side::Left => mac(self.first.saturating_add(1), Side::Left),
            Side::Right => mac(self.last, Side::Right),
        }
    }

    /// The secure channel that one end sends on (IEEE 802.1AE §8.2.1).
    #[must_use]
    pub const fn sci(&self, side: Side) -> Sci {
        Sci::new(self.mac(side), Sci::END_STATION_PORT)
    }

    /// The short name of the channel of what goes this way, where packet numbers are extended (IEEE 802.1AE-2018
    /// §10.7.13).
    #[must_use]
    pub const fn ssci(&self, direction: Direction) -> u32 {
        self.index(direction)
    }

    /// The address of one end: in an IPv4 network of 24 bits, or in an IPv6 network of 64.
    #[must_use]
    pub const fn ip(&self, version: IpVersion, side: Side) -> IpAddr {
        address(version, self.number, side.number())
    }

    /// The security parameters index of what goes this way.
    #[must_use]
    pub const fn spi(&self, direction: Direction) -> u32 {
        // Up to 255 are reserved (RFC 4303 §2.1).
        0x1000 + 0x10 * self.number as u32 + self.index(direction)
    }

    /// What the receiver calls WireGuard's session of what goes this way.
    #[must_use]
    pub const fn session(&self, direction: Direction) -> u32 {
        self.spi(direction)
    }

    /// The UDP port of both ends of a WireGuard tunnel.
    #[must_use]
    pub const fn wireguard_port(&self) -> u16 {
        51_820 + self.number as u16
    }

    /// The identifier of L2TPv3's session of what goes this way (RFC 3931 §4.1); the tunnel's too, where it has one.
    #[must_use]
    pub const fn l2tp(&self, direction: Direction) -> u32 {
        0x100 + 0x10 * self.number as u32 + self.index(direction)
    }

    /// The identifier of the VXLAN network.
    #[must_use]
    pub const fn vxlan(&self) -> u32 {
        1000 + self.number as u32
    }

    const fn index(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => 1,
            Direction::Backward => 2,
        }
    }
}

/// The address of one end of a link between routers; link 0 is the one network of both ends of the path.
#[must_use]
pub const fn link_ip(link: u8, side: Side) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, link, side.number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use seclink::plane::Plan;
    use std::collections::BTreeSet;

    fn every_hop(hops: u8) -> Topology {
        Topology {
            protection: Protection::MacSec,
            cipher: Protection::MacSec.usual_cipher(),
            reach: Reach::EveryHop,
            hops,
            pseudowire: false,
            ..Topology::default()
        }
    }

    #[test]
    fn the_papers_nodes_have_names() {
        let path = Topology::default();
        let names: Vec<_> = (0..path.nodes()).map(|node| node_name(&path, node)).collect();
        assert_eq!(names, ["ce1", "pe1", "p1", "pe2", "ce2"]);
    }

    #[test]
    fn frames_go_to_the_gateway_where_they_are_routed() {
        let plain = Topology::default();
        assert_eq!(next_hop(&plain, Side::Left), mac(5, Side::Right));
        assert_eq!(next_hop(&plain, Side::Right), mac(0, Side::Left));
        let esp = Topology { protection: Protection::Esp, ..plain };
        assert_eq!(next_hop(&esp, Side::Left), mac(0, Side::Right));
        assert_eq!(next_hop(&esp, Side::Right), mac(5, Side::Left));
    }

    #[test]
    fn a_span_ends_at_the_links_of_its_nodes() {
        assert!(spans(&Topology::default()).is_empty());
        let whole = Topology { reach: Reach::EndToEnd, ..every_hop(4) };
        let [span] = spans(&whole)[..] else { panic!("one span") };
        assert_eq!(
            (span.mac(Side::Left), span.mac(Side::Right)),
            (mac(1, Side::Left), mac(4, Side::Right))
        );
        let third = spans(&every_hop(4))[2];
        assert_eq!((third.first, third.last), (2, 3));
        assert_eq!(
            (third.mac(Side::Left), third.mac(Side::Right)),
            (mac(3, Side::Left), mac(3, Side::Right))
        );
    }

    /// Our planes' own numbering is the same: a node of theirs can stand beside one of the kernel's.
    #[test]
    fn our_planes_have_the_same_plan() {
        for tagged in [false, true] {
            let path = Topology { tagged, ..every_hop(8) };
            let plan = Plan::numbered(&path);
            let sides = || Side::ALL.iter().copied();
            for (link, ends) in (1..).zip(&plan.links) {
                for (side, station) in sides().zip(ends) {
                    let ip = IpAddr::V4(link_ip(link, side));
                    assert_eq!((station.mac, station.ip), (mac(link, side), ip));
                }
            }
            for ((side, ip), lan) in sides().zip(plan.through).zip(plan.lans) {
                assert_eq!(ip, IpAddr::V4(link_ip(0, side)));
                assert_eq!(lan.own, gateway_mac(&path, side));
                assert_eq!(lan.host, tester_mac(&path, side));
                assert_eq!(lan.vlan, tagged.then_some(VLAN));
            }
        }
    }

    #[test]
    fn no_two_associations_have_one_name() {
        let spans = spans(&every_hop(8));
        let directions = || Direction::ALL.iter().copied();
        let count = |name: &dyn Fn(&Span, Direction) -> u32| {
            let all = spans.iter().flat_map(|span| directions().map(move |way| name(span, way)));
            all.collect::<BTreeSet<_>>().len()
        };
        assert_eq!(count(&|span, way| span.spi(way)), 16);
        assert_eq!(count(&|span, way| span.l2tp(way)), 16);
        let ports: BTreeSet<_> = spans.iter().map(Span::wireguard_port).collect();
        assert_eq!(ports.len(), 8);
    }
}
