//! What each node of a path is told.
//!
//! At each end of a span there is a device on which frames or packets are in the clear and behind which they are
//! protected: a *port*. Between a node's two ports stands a bridge, a router, or tc's and MPLS's half of a pseudowire.

use seclink::path::{Role, Topology};
use units::CountedBytes;

use super::script::Script;
use super::{KernelOptions, pseudowire, security};
use crate::Error;
use crate::ends::{self, Direction, Side, Span, VLAN};

/// A node and its two interfaces: links `number` and `number + 1`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) topology: &'a Topology,
    pub(super) options: &'a KernelOptions,
    pub(super) number: u8,
    /// Names of the interfaces, the left first.
    pub(super) interfaces: [&'a str; 2],
}

impl Place<'_> {
    pub(super) fn interface(&self, side: Side) -> &str {
        let [left, right] = self.interfaces;
        match side {
            Side::Left => left,
            Side::Right => right,
        }
    }

    /// The number of the link on this side.
    pub(super) const fn link(&self, side: Side) -> u8 {
        match side {
            Side::Left => self.number,
            Side::Right => self.number.saturating_add(1),
        }
    }

    /// The end of the path that the node is, if it is one.
    pub(super) const fn edge(&self) -> Option<Side> {
        match self.number {
            0 => Some(Side::Left),
            number if number == self.topology.hops => Some(Side::Right),
            _ => None,
        }
    }

    /// Whether something is protected from here on.
    pub(super) fn is_span_end(&self) -> bool {
        Side::ALL.iter().any(|side| self.span(*side).is_some())
    }

    /// The span on this side of the node, and the end of it that the node is.
    fn span(&self, side: Side) -> Option<(Span, Side)> {
        let end = side.other();
        let mut spans = ends::spans(self.topology).into_iter();
        spans.find(|span| span.node(end) == self.number).map(|span| (span, end))
    }
}

/// What a node is told.
///
/// # Errors
/// A key that does not fit, or a rate that the kernel cannot count.
pub(super) fn script(place: &Place<'_>) -> Result<Script, Error> {
    let mut script = Script::new();
    let left = port(place, Side::Left, &mut script)?;
    let right = port(place, Side::Right, &mut script)?;
    match place.topology.role(place.number) {
        Role::Pe => pseudowire::edge(place, [&left, &right], &mut script),
        Role::P => pseudowire::swap(place, [&left, &right], &mut script),
        // Between two ports that carry packets, and where one of them is the tester's.
        Role::Ce | Role::Switch if routes(place) => route(place, [&left, &right], &mut script),
        Role::Ce | Role::Switch => bridge([&left, &right], &mut script),
    }
    limit(place, &mut script);
    Ok(script)
}

/// Whether packets are routed here: at the ends of spans that carry nothing else.
fn routes(place: &Place<'_>) -> bool {
    place.is_span_end() && !place.topology.carries_ethernet()
}

/// Makes the port on one side: the interface itself where nothing is protected there. Its name.
fn port(place: &Place<'_>, side: Side, script: &mut Script) -> Result<String, Error> {
    match place.span(side) {
        Some((span, end)) => {
            let spot = security::Spot { place, span, end, side };
            security::port(&spot, script)
        }
        None => Ok(place.interface(side).to_owned()),
    }
}

/// A switch. Frames to 01-80-C2-00-00-03 pass it too: key agreement is the customers' own. One that snooped would
/// join a group of its kind, and say so on all links (RFC 4286 §5).
fn bridge(ports: [&str; 2], script: &mut Script) {
    script.ip(format_args!("link add name switch type bridge group_fwd_mask 8 mcast_snooping 0"));
    for port in ports {
        script.ip(format_args!("link set dev {port} master switch"));
    }
    script.ip(format_args!("link set dev switch up"));
}

/// A router between the testers' networks.
fn route(place: &Place<'_>, ports: [&str; 2], script: &mut Script) {
    script.setting("net.ipv4.ip_forward", "1");
    for (side, port) in Side::ALL.iter().copied().zip(ports) {
        let network = ends::network(side);
        match place.span(side) {
            Some((span, end)) => {
                let version = place.topology.carrier.ip;
                security::route((&span, version), end, network, port, script);
            }
            None => lan(place, side, port, script),
        }
    }
}

/// The gateway's place in its tester's network.
fn lan(place: &Place<'_>, side: Side, interface: &str, script: &mut Script) {
    let device = match place.topology.tagged {
        true => {
            script.ip(format_args!("link add link {interface} name lan type vlan id {VLAN}"));
            script.ip(format_args!("link set dev lan up"));
            "lan"
        }
        false => interface,
    };
    let (own, tester) = (ends::gateway_ip(side), ends::tester_ip(side));
    let mac = ends::tester_mac(place.topology, side);
    script.ip(format_args!("address add {own}/24 dev {device}"));
    script.ip(format_args!("neighbour replace {tester} lladdr {mac} dev {device} nud permanent"));
}

/// The limit of a gateway: what it opened waits in a short queue on its way to the tester.
fn limit(place: &Place<'_>, script: &mut Script) {
    let (Some(rate), Some(side)) = (place.topology.gateway, place.edge()) else { return };
    // The tag is put in behind the queue.
    let tag: i32 = if place.topology.tagged { 4 } else { 0 };
    let overhead = match rate.counted() {
        CountedBytes::Ethernet => tag,
        CountedBytes::Ip => -14,
        CountedBytes::Wire => tag.saturating_add(4 + 8 + 12),
    };
    let (interface, bits) = (place.interface(side), rate.bits_per_second());
    let queue = place.options.queue;
    script.tc(format_args!(
        "qdisc add dev {interface} root netem limit {queue} rate {bits}bit {overhead}"
    ));
}

/// The direction of what leaves a node on this side.
pub(super) const fn leaving(side: Side) -> Direction {
    match side {
        Side::Left => Direction::Backward,
        Side::Right => Direction::Forward,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seclink::path::{Cipher, Protection, Reach};

    fn lines(topology: &Topology, number: u8) -> Vec<String> {
        topology.check().unwrap();
        let options = KernelOptions::default();
        let place = Place { topology, options: &options, number, interfaces: ["left", "right"] };
        script(&place).unwrap().lines()
    }

    /// Hexadecimal digits as long as keys are not compared.
    fn without_keys(line: &str) -> String {
        let is_key = |word: &&str| word.trim_start_matches("0x").len() >= 32;
        let words: Vec<&str> =
            line.split(' ').map(|word| if is_key(&word) { "KEY" } else { word }).collect();
        words.join(" ")
    }

    fn path(protection: Protection) -> Topology {
        Topology { protection, cipher: protection.usual_cipher(), ..Topology::default() }
    }

    #[test]
    fn provider_edges_push_labels_and_providers_swap_them() {
        let plain = Topology::default();
        assert_eq!(
            lines(&plain, 1)[3..],
            [
                "tc filter add dev left ingress matchall action mpls mac_push protocol mpls_uc label 500 tc 0 ttl 64 \
             bos 1 pipe action mpls push protocol mpls_uc label 102 tc 0 ttl 64 bos 0 pipe action vlan push_eth \
             dst_mac 02:00:00:00:02:02 src_mac 02:00:00:00:02:01 pipe action mirred egress redirect dev right",
                "tc filter add dev right ingress protocol mpls_uc flower mpls lse depth 1 label 202 lse depth 2 label \
             500 bos 1 action vlan pop_eth pipe action mpls pop protocol mpls_uc pipe action mpls pop protocol teb \
             pipe action mirred egress redirect dev left",
            ]
        );
        assert_eq!(
            lines(&plain, 2),
            [
                "ip address add 10.9.2.2/24 dev left",
                "ip neighbour replace 10.9.2.1 lladdr 02:00:00:00:02:01 dev left nud permanent",
                "ip address add 10.9.3.1/24 dev right",
                "ip neighbour replace 10.9.3.2 lladdr 02:00:00:00:03:02 dev right nud permanent",
                "ip -f mpls route add 203 as 202 via inet 10.9.2.1 dev left",
                "ip -f mpls route add 102 as 103 via inet 10.9.3.2 dev right",
            ]
        );
        let last = lines(&plain, 3);
        assert!(last[3].contains("dev right ingress matchall"), "{last:?}");
        assert!(
            last[3].contains("label 203 ") && last[4].contains("depth 1 label 103 "),
            "{last:?}"
        );
        assert!(
            last[3].contains("dst_mac 02:00:00:00:03:01 src_mac 02:00:00:00:03:02"),
            "{last:?}"
        );
    }

    #[test]
    fn macsec_has_a_key_each_way_and_stands_under_the_switch() {
        let lines = lines(&path(Protection::MacSec), 0);
        let shown: Vec<String> = lines.iter().map(|line| without_keys(line)).collect();
        assert_eq!(
            shown,
            [
                "ip link add link right name sec2 type macsec port 1 cipher gcm-aes-128 encrypt on send_sci on protect \
             on replay on window 0 validate strict",
                "ip macsec add sec2 rx port 1 address 02:00:00:00:04:02 on",
                "ip macsec add sec2 tx sa 0 pn 1 on key KEY KEY",
                "ip macsec add sec2 rx port 1 address 02:00:00:00:04:02 sa 0 pn 1 on key KEY KEY",
                "ip link set dev sec2 up",
                "ip link add name switch type bridge group_fwd_mask 8 mcast_snooping 0",
                "ip link set dev left master switch",
                "ip link set dev sec2 master switch",
                "ip link set dev switch up",
            ]
        );
        let key = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
        assert_ne!(key(&lines[2]), key(&lines[3]));
        // What one end sends with, the other receives with.
        let other = super::tests::lines(&path(Protection::MacSec), 4);
        assert_eq!(key(&lines[2]), key(&other[3]));
        assert_eq!(key(&lines[3]), key(&other[2]));
    }

    #[test]
    fn gateways_route_between_the_testers_networks() {
        let esp = Topology { gateway: "120mbit".parse().ok(), ..path(Protection::Esp) };
        let shown: Vec<String> = lines(&esp, 4).iter().map(|line| without_keys(line)).collect();
        assert_eq!(
            shown,
            [
                "ip address add 10.9.0.2/24 dev left",
                "ip neighbour replace 10.9.0.1 lladdr 02:00:00:00:01:01 dev left nud permanent",
                "ip xfrm state add src 10.9.0.1 dst 10.9.0.2 proto esp spi 0x1001 reqid 4097 mode tunnel \
             replay-window 64 aead rfc4106(gcm(aes)) KEY 128",
                "ip xfrm state add src 10.9.0.2 dst 10.9.0.1 proto esp spi 0x1002 reqid 4098 mode tunnel \
             replay-window 64 aead rfc4106(gcm(aes)) KEY 128",
                "ip xfrm policy add src 172.16.1.0/24 dst 172.16.2.0/24 dir fwd tmpl src 10.9.0.1 dst 10.9.0.2 proto \
             esp reqid 4097 mode tunnel",
                "ip xfrm policy add src 172.16.2.0/24 dst 172.16.1.0/24 dir out tmpl src 10.9.0.2 dst 10.9.0.1 proto \
             esp reqid 4098 mode tunnel",
                "ip route add 172.16.1.0/24 via 10.9.0.1 dev left",
                "ip link add link right name lan type vlan id 10",
                "ip link set dev lan up",
                "ip address add 172.16.2.1/24 dev lan",
                "ip neighbour replace 172.16.2.2 lladdr 02:00:00:00:05:02 dev lan nud permanent",
                "tc qdisc add dev right root netem limit 64 rate 120000000bit 4",
            ]
        );
    }

    #[test]
    fn every_hop_has_tunnels_on_both_sides() {
        let every_hop = |protection| Topology {
            reach: Reach::EveryHop,
            pseudowire: false,
            tagged: false,
            ..path(protection)
        };
        let esp = lines(&every_hop(Protection::Esp), 2);
        assert_eq!(esp.iter().filter(|line| line.contains("xfrm state")).count(), 4);
        assert!(esp.contains(&"ip route add 172.16.2.0/24 via 10.9.3.2 dev right".to_owned()));
        assert!(esp.contains(&"ip route add 172.16.1.0/24 via 10.9.2.1 dev left".to_owned()));
        let l2tp = lines(&every_hop(Protection::L2tp), 2);
        assert!(l2tp.contains(&"ip link set dev pw1 master switch".to_owned()));
        assert!(l2tp.contains(&"ip link set dev pw2 master switch".to_owned()));
        let topology = every_hop(Protection::WireGuard);
        let options = KernelOptions::default();
        let interfaces = ["left", "right"];
        let place = Place { topology: &topology, options: &options, number: 2, interfaces };
        let script = script(&place).unwrap();
        let ports: Vec<_> = script.tunnels().iter().map(|tunnel| tunnel.port).collect();
        assert_eq!(ports, [51_822, 51_823]);
        let endpoints: Vec<_> =
            script.tunnels().iter().map(|tunnel| tunnel.endpoint.to_string()).collect();
        assert_eq!(endpoints, ["10.9.2.1:51822", "10.9.3.2:51823"]);
    }

    #[test]
    fn extended_numbers_have_short_names_and_salt() {
        let topology = Topology { cipher: Cipher::AesGcmXpn256, ..path(Protection::MacSecVxlan) };
        let lines = lines(&topology, 0);
        assert!(lines[2].starts_with("ip link add name vx2 address 02:00:00:00:01:01 type vxlan"));
        assert!(lines[4].starts_with("ip link add link vx2 name sec2"), "{lines:?}");
        let salt = |line: &String| line.split_once(" salt ").map(|(_, rest)| rest[..24].to_owned());
        assert!(lines[6].contains("tx sa 0 xpn 1 ssci 1 salt "), "{lines:?}");
        assert!(lines[7].contains("sa 0 xpn 1 ssci 2 salt "), "{lines:?}");
        assert_eq!(salt(&lines[6]), salt(&lines[7]));
    }
}
