//! What the edges are told, once their pipes stand: bridges, or networks and routes.

use handoff::Measures;
use l2vpn::ends::{self, Side};
use l2vpn::kernel::{Script, must};
use lab::Node;

use crate::Error;
use crate::layout::{BRIDGE, HOST_TUNNEL, Layout, Site, link};
use crate::radio::written;

/// A site's customer edge.
pub(crate) fn near(
    layout: Layout,
    measures: Measures,
    site: Site,
    pipe: &str,
    cable: bool,
) -> Script {
    let mut script = Script::new();
    bridge(measures, &mut script);
    if cable {
        let cable = link::name(link::cable(site));
        script.ip(format_args!("link set dev {cable} master {BRIDGE}"));
    }
    script.ip(format_args!("link set dev {pipe} up"));
    if layout.one {
        script.ip(format_args!("link set dev {pipe} master {BRIDGE}"));
        if measures.proxy_arp && layout.is_flat() {
            answer_for_peer(layout, pipe, &mut script);
        }
        return script;
    }
    script.setting("net.ipv4.ip_forward", "1");
    let (own, other) = layout.pipe(site);
    script.ip(format_args!("address add {}/24 dev {BRIDGE}", layout.gateway(site)));
    let peers = network(layout.peer());
    if is_wireguard(pipe) {
        script.ip(format_args!("route add {peers} dev {pipe}"));
    } else {
        script.ip(format_args!("address add {own}/24 dev {pipe}"));
        script.ip(format_args!("route add {peers} via {other} dev {pipe}"));
        script.ip(format_args!("route add {}/32 via {other} dev {pipe}", layout.tunnel_gateway()));
    }
    script
}

/// The far customer edge, with the pipes to both sites.
pub(crate) fn far(layout: Layout, measures: Measures, pipes: &[String; 2]) -> Script {
    let mut script = Script::new();
    let peer = link::name(link::PEER);
    for pipe in pipes {
        script.ip(format_args!("link set dev {pipe} up"));
    }
    let gateway = layout.far_gateway();
    if layout.one {
        bridge(measures, &mut script);
        for pipe in pipes {
            script.ip(format_args!("link set dev {pipe} master {BRIDGE}"));
        }
        script.ip(format_args!("address add {}/24 dev {BRIDGE}", layout.gateway(Site::First)));
    }
    if layout.is_flat() {
        script.ip(format_args!("link set dev {peer} master {BRIDGE}"));
    } else {
        script.setting("net.ipv4.ip_forward", "1");
        script.ip(format_args!("address add {gateway}/24 dev {peer}"));
    }
    if !layout.one {
        script.ip(format_args!("address add {}/32 dev lo", layout.tunnel_gateway()));
        for (site, pipe) in Site::ALL.into_iter().zip(pipes) {
            let (other, own) = layout.pipe(site);
            let hosts = network(layout.gateway(site));
            if is_wireguard(pipe) {
                script.ip(format_args!("route add {hosts} dev {pipe}"));
            } else {
                script.ip(format_args!("address add {own}/24 dev {pipe}"));
                script.ip(format_args!("route add {hosts} via {other} dev {pipe}"));
            }
        }
    }
    script
}

/// A route to what is in a host's tunnel, at the far edge: the policy says where it goes from there.
pub(crate) fn to_tunnels(layout: Layout, device: Option<&str>, script: &mut Script) {
    let inner = network(layout.inner());
    match device {
        Some(device) => script.ip(format_args!("route add {inner} dev {device}")),
        None if layout.one => script.ip(format_args!("route add {inner} dev {BRIDGE}")),
        None => {
            let (other, _) = layout.pipe(Site::First);
            script.ip(format_args!("route add {inner} via {other}"));
        }
    }
}

/// Whatever a host sends outside of its tunnel does not reach its peer.
pub(crate) fn protected_only(layout: Layout, script: &mut Script) {
    let peers = network(layout.peer());
    script.ip(format_args!(
        "xfrm policy add src 10.50.0.0/16 dst {peers} dir fwd action block priority 4000000"
    ));
}

/// The host's peer.
pub(crate) fn peer(layout: Layout) -> Script {
    let mut script = Script::new();
    let interface = link::name(link::PEER);
    script.ip(format_args!("address add {}/24 dev {interface}", layout.peer()));
    script.ip(format_args!("route add default via {}", layout.far_gateway()));
    script
}

/// The host's device of WireGuard, without its keys.
pub(crate) fn host_tunnel(layout: Layout) -> Script {
    let mut script = Script::new();
    script.ip(format_args!("link add name {HOST_TUNNEL} type wireguard"));
    script.ip(format_args!("address add {}/32 dev {HOST_TUNNEL}", layout.inner()));
    script.ip(format_args!("link set dev {HOST_TUNNEL} mtu 1420 up"));
    script.ip(format_args!("route add {} dev {HOST_TUNNEL}", network(layout.peer())));
    script
}

/// A switch whose ports forward at once, and which looks into no groups.
fn bridge(measures: Measures, script: &mut Script) {
    script.ip(format_args!("link add name {BRIDGE} type bridge forward_delay 0 mcast_snooping 0"));
    if measures.bridge_learning {
        // It forgets at once, and sends everything everywhere.
        script.ip(format_args!("link set dev {BRIDGE} type bridge ageing_time 0"));
    }
    script.ip(format_args!("link set dev {BRIDGE} up"));
}

/// Has a site's bridge answer ARP for the host's peer. The kernel does so for a neighbour of the bridge that is behind a
/// port which suppresses questions (Linux: net/bridge/br_arp_nd_proxy.c): [`known_behind`] says that the peer is.
fn answer_for_peer(layout: Layout, pipe: &str, script: &mut Script) {
    let (peer, mac) = (layout.peer(), peer_mac());
    script.ip(format_args!("link set dev {pipe} type bridge_slave neigh_suppress on"));
    script.ip(format_args!("neighbour replace {peer} lladdr {mac} dev {BRIDGE} nud permanent"));
}

/// Tells a site's bridge for good that the host's peer is behind its pipe.
pub(crate) fn known_behind(node: &Node, pipe: &str) -> Result<(), Error> {
    must(node, "bridge", &["fdb", "replace", &peer_mac(), "dev", pipe, "master", "static"], "")?;
    Ok(())
}

/// The Ethernet address of the host's peer.
fn peer_mac() -> String {
    written(&ends::mac(link::PEER, Side::Right).0)
}

fn is_wireguard(pipe: &str) -> bool {
    pipe.starts_with("wg")
}

/// The network of 24 bits that an address is in.
fn network(address: std::net::Ipv4Addr) -> String {
    let [a, b, c, _] = address.octets();
    format!("{a}.{b}.{c}.0/24")
}
