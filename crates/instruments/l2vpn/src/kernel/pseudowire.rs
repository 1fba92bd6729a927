//! A pseudowire by tc and MPLS: a VPWS whose provider edges put frames behind two labels, the link's and the
//! pseudowire's.

use std::net::Ipv4Addr;

use wire::ethernet::Address;

use crate::ends::{self, PSEUDOWIRE_LABEL, Side};

use super::plan::{Place, leaving};
use super::script::Script;

/// Hops that a label begins with.
const TIME_TO_LIVE: u8 = 64;

/// Where a customer's interface meets the core: one end of a pseudowire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// The interface towards the customer.
    pub customer: &'a str,
    /// The interface towards the core.
    pub provider: &'a str,
    /// The upper label of what is sent into the core.
    pub out: u32,
    /// The upper label of what comes out of it.
    pub into: u32,
    /// The provider edge's address on its link.
    pub source: Address,
    /// The address at the link's other end.
    pub destination: Address,
}

/// Whatever comes from the customer goes into the pseudowire, and what comes out goes to the customer. Both interfaces
/// have their `clsact` already.
pub fn attach(attachment: &Attachment<'_>, script: &mut Script) {
    let Attachment { customer, provider, out, into, source, destination } = *attachment;
    script.ip(format_args!("link set dev {customer} promisc on"));
    script.tc(format_args!(
        "filter add dev {customer} ingress matchall \
         action mpls mac_push protocol mpls_uc label {PSEUDOWIRE_LABEL} tc 0 ttl {TIME_TO_LIVE} bos 1 pipe \
         action mpls push protocol mpls_uc label {out} tc 0 ttl {TIME_TO_LIVE} bos 0 pipe \
         action vlan push_eth dst_mac {destination} src_mac {source} pipe \
         action mirred egress redirect dev {provider}"
    ));
    script.tc(format_args!(
        "filter add dev {provider} ingress protocol mpls_uc \
         flower mpls lse depth 1 label {into} lse depth 2 label {PSEUDOWIRE_LABEL} bos 1 \
         action vlan pop_eth pipe \
         action mpls pop protocol mpls_uc pipe \
         action mpls pop protocol teb pipe \
         action mirred egress redirect dev {customer}"
    ));
}

/// A provider's interface, and who is at the other end of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing<'a> {
    /// The interface's name.
    pub interface: &'a str,
    /// The interface's own address.
    pub own: Ipv4Addr,
    /// The address at the other end.
    pub next: Ipv4Addr,
    /// The other end's Ethernet address.
    pub mac: Address,
}

/// Gives a provider's interface its addresses, and takes labels on it; each pair of labels says as which one is sent
/// on here.
pub fn cross(crossing: &Crossing<'_>, labels: &[(u32, u32)], script: &mut Script) {
    let Crossing { interface, own, next, mac } = *crossing;
    script.ip(format_args!("address add {own}/24 dev {interface}"));
    script.ip(format_args!("neighbour replace {next} lladdr {mac} dev {interface} nud permanent"));
    script.setting_of_device(format!("net.mpls.conf.{interface}.input"), "1");
    for (from, to) in labels {
        script.mpls(format_args!("route add {from} as {to} via inet {next} dev {interface}"));
    }
}

/// A provider edge of a path.
pub(super) fn edge(place: &Place<'_>, ports: [&str; 2], script: &mut Script) {
    // The first provider edge has its customer on the left; with three hops it is node 1 of 0 to 3.
    let core = if place.number == 1 { Side::Right } else { Side::Left };
    let [left, right] = ports;
    let (customer, provider) = match core {
        Side::Right => (left, right),
        Side::Left => (right, left),
    };
    let link = place.link(core);
    let (out, into) = (ends::label(leaving(core), link), ends::label(leaving(core.other()), link));
    for port in ports {
        script.tc(format_args!("qdisc add dev {port} clsact"));
    }
    // The node is the link's other end, seen from the link.
    let (source, destination) = (ends::mac(link, core.other()), ends::mac(link, core));
    attach(&Attachment { customer, provider, out, into, source, destination }, script);
}

/// A provider of a path: swaps the upper label.
pub(super) fn swap(place: &Place<'_>, ports: [&str; 2], script: &mut Script) {
    script.setting("net.mpls.platform_labels", "1000");
    for (side, interface) in Side::ALL.iter().copied().zip(ports) {
        let link = place.link(side);
        // The node is the link's other end, seen from the link.
        let (own, next) = (ends::link_ip(link, side.other()), ends::link_ip(link, side));
        let crossing = Crossing { interface, own, next, mac: ends::mac(link, side) };
        let way = leaving(side);
        let labels = (ends::label(way, place.link(side.other())), ends::label(way, link));
        cross(&crossing, &[labels], script);
    }
}
