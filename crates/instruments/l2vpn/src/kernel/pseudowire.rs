//! A pseudowire by tc and MPLS: a VPWS whose provider edges put frames behind two labels, the link's and the
//! pseudowire's.

use crate::ends::{self, PSEUDOWIRE_LABEL, Side};

use super::plan::{Place, leaving};
use super::script::Script;

/// Hops that a label begins with.
const TIME_TO_LIVE: u8 = 64;

/// A provider edge: whatever comes from the customer goes into the pseudowire, and what comes out goes to the
/// customer.
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
    // The node is the link's other end, seen from the link.
    let (source, destination) = (ends::mac(link, core.other()), ends::mac(link, core));
    script.ip(format_args!("link set dev {customer} promisc on"));
    for port in ports {
        script.tc(format_args!("qdisc add dev {port} clsact"));
    }
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

/// A provider: swaps the upper label.
pub(super) fn swap(place: &Place<'_>, ports: [&str; 2], script: &mut Script) {
    script.setting("net.mpls.platform_labels", "1000");
    for (side, port) in Side::ALL.iter().copied().zip(ports) {
        let link = place.link(side);
        // The node is the link's other end, seen from the link.
        let (own, next) = (ends::link_ip(link, side.other()), ends::link_ip(link, side));
        let mac = ends::mac(link, side);
        script.ip(format_args!("address add {own}/24 dev {port}"));
        script.ip(format_args!("neighbour replace {next} lladdr {mac} dev {port} nud permanent"));
        script.setting_of_device(format!("net.mpls.conf.{port}.input"), "1");
        let way = leaving(side);
        let (from, to) = (ends::label(way, place.link(side.other())), ends::label(way, link));
        script.mpls(format_args!("route add {from} as {to} via inet {next} dev {port}"));
    }
}
