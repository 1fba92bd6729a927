//! A span's ends, protocol by protocol.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use seclink::path::{Cipher, IpVersion, Protection};
use zeroize::Zeroizing;

use super::plan::Place;
use super::probe::unspecified;
use super::script::Script;
use super::wireguard::{PublicKey, Tunnel};
use crate::Error;
use crate::ends::{self, Direction, Side, Span};
use crate::keys::{Key, keys};

/// L2TP's port, at both ends.
const L2TP_PORT: u16 = wire::l2tp::PORT;
/// UDP's number: a system may have no list of names.
const UDP: u8 = wire::udp::PROTOCOL;
const VXLAN_PORT: u16 = wire::vxlan::PORT;
/// Bytes of the longest packet in a tunnel: what a link has without the most that is put around it.
const TUNNEL_MTU: u32 = ends::MTU - 100;
/// A policy for all packets between two networks of these bits.
const NETWORK_BITS: u8 = 24;

/// One end of a span, at a node.
#[derive(Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) place: &'a Place<'a>,
    pub(super) span: Span,
    /// The end of the span that the node is.
    pub(super) end: Side,
    /// The side of the node that the span is on.
    pub(super) side: Side,
}

impl Spot<'_> {
    /// A device's name on this side of its node.
    fn device(&self, kind: &str) -> String {
        format!("{kind}{}", self.side.number())
    }

    fn interface(&self) -> &str {
        self.place.interface(self.side)
    }

    fn key(&self, direction: Direction, len: usize) -> Key {
        let (seed, protection) = (self.place.options.seed, self.place.topology.protection);
        keys(seed, protection, self.span.number, direction, len)
    }

    fn cipher(&self) -> Cipher {
        self.place.topology.cipher
    }

    /// This end's address and the other's.
    fn ips(&self) -> (IpAddr, IpAddr) {
        (self.ip(self.end), self.ip(self.end.other()))
    }

    /// The address of one end.
    fn ip(&self, side: Side) -> IpAddr {
        self.span.ip(self.version(), side)
    }

    fn version(&self) -> IpVersion {
        self.place.topology.carrier.ip
    }
}

/// Makes the port; its name.
///
/// # Errors
/// A key that does not fit.
pub(super) fn port(spot: &Spot<'_>, script: &mut Script) -> Result<String, Error> {
    match spot.place.topology.protection {
        Protection::Plain => Ok(spot.interface().to_owned()),
        Protection::MacSec => Ok(macsec(spot, spot.interface(), script)),
        Protection::MacSecVxlan => {
            let outside = vxlan(spot, script);
            Ok(macsec(spot, &outside, script))
        }
        Protection::Esp => {
            address(spot, script);
            tunnels(spot, script);
            Ok(spot.interface().to_owned())
        }
        Protection::L2tp => {
            address(spot, script);
            Ok(l2tp(spot, script))
        }
        Protection::WireGuard => {
            address(spot, script);
            wireguard(spot, script)
        }
    }
}

/// The way to a tester's network through a span, for what routes.
pub(super) fn route(
    (span, version): (&Span, IpVersion),
    end: Side,
    network: Ipv4Addr,
    port: &str,
    script: &mut Script,
) {
    let next = span.ip(version, end.other());
    // A tunnel device asks for no neighbour, nor does what xfrm sends over IPv6 in place of the packet.
    match port.starts_with("wg") || version == IpVersion::V6 {
        true => script.ip(format_args!("route add {network}/{NETWORK_BITS} dev {port}")),
        false => {
            script.ip(format_args!("route add {network}/{NETWORK_BITS} via {next} dev {port}"));
        }
    }
}

/// Gives the interface its end's address, and the other's neighbour.
fn address(spot: &Spot<'_>, script: &mut Script) {
    let (interface, (own, other)) = (spot.interface(), spot.ips());
    let mac = spot.span.mac(spot.end.other());
    match spot.version() {
        IpVersion::V4 => script.ip(format_args!("address add {own}/24 dev {interface}")),
        IpVersion::V6 => {
            // Neither multicast nor neighbour discovery: nothing is sent but what is measured.
            script.setting(&format!("net.ipv6.conf.{interface}.disable_ipv6"), "0");
            script.ip(format_args!("link set dev {interface} arp off"));
            script.ip(format_args!("address add {own}/64 dev {interface} nodad"));
        }
    }
    script.ip(format_args!("neighbour replace {other} lladdr {mac} dev {interface} nud permanent"));
}

/// MACsec's device, on another.
fn macsec(spot: &Spot<'_>, on: &str, script: &mut Script) -> String {
    let name = spot.device("sec");
    let suite = spot.cipher().macsec().unwrap_or_default();
    // In order only: with a wider window a frame is taken twice (IEEE 802.1AE-2018 §10.6.2).
    script.ip(format_args!(
        "link add link {on} name {name} type macsec port 1 cipher {suite} encrypt on send_sci on \
         protect on replay on window 0 validate strict"
    ));
    let peer = spot.span.mac(spot.end.other());
    let salt = crate::keys::hex(&ends::SALT);
    script.ip(format_args!("macsec add {name} rx port 1 address {peer} on"));
    for (way, who) in [
        (spot.end.sends(), "tx".to_owned()),
        (spot.end.other().sends(), format!("rx port 1 address {peer}")),
    ] {
        let key = spot.key(way, suite.key_len()).hex();
        let id = spot.span.spi(way);
        let number = match suite.is_extended() {
            true => format!("xpn 1 ssci {} salt {}", spot.span.ssci(way), &*salt),
            false => "pn 1".to_owned(),
        };
        script.ip(format_args!("macsec add {name} {who} sa 0 {number} on key {id:032x} {}", &*key));
    }
    script.ip(format_args!("link set dev {name} up"));
    name
}

/// VXLAN's device between the span's ends.
fn vxlan(spot: &Spot<'_>, script: &mut Script) -> String {
    address(spot, script);
    let (name, on, (own, other)) = (spot.device("vx"), spot.interface(), spot.ips());
    let (mac, network) = (spot.span.mac(spot.end), spot.span.vxlan());
    script.ip(format_args!(
        "link add name {name} address {mac} type vxlan id {network} local {own} remote {other} \
         dstport {VXLAN_PORT} dev {on} nolearning"
    ));
    script.ip(format_args!("link set dev {name} up"));
    name
}

/// The state and policy of ESP in tunnel mode, for all packets between the testers' networks.
fn tunnels(spot: &Spot<'_>, script: &mut Script) {
    states(spot, "tunnel", script);
    for way in Direction::ALL.iter().copied() {
        let (from, to) = (ends::network(way.sender()), ends::network(way.sender().other()));
        let (source, target) = (spot.ip(way.sender()), spot.ip(way.sender().other()));
        // What came in goes on: it is not for this node.
        let policy = if way.sender() == spot.end { "out" } else { "fwd" };
        let request = spot.span.spi(way);
        script.ip(format_args!(
            "xfrm policy add src {from}/{NETWORK_BITS} dst {to}/{NETWORK_BITS} dir {policy} \
             tmpl src {source} dst {target} proto esp reqid {request} mode tunnel"
        ));
    }
}

/// Both security associations.
fn states(spot: &Spot<'_>, mode: &str, script: &mut Script) {
    let options = spot.place.options;
    let window = options.replay_window;
    let extended = if options.extended { " esn" } else { "" };
    // In a tunnel over IPv6 the testers' packets are of another family.
    let family = if spot.version() == IpVersion::V6 { " af-unspec" } else { "" };
    let flags = match (extended, family) {
        ("", "") => String::new(),
        (extended, family) => format!(" flag{extended}{family}"),
    };
    let in_udp = match spot.place.topology.carrier.nat_traversal {
        true => {
            let (port, any) = (wire::esp::UDP_PORT, unspecified(spot.version()));
            format!(" encap espinudp {port} {port} {any}")
        }
        false => String::new(),
    };
    for way in Direction::ALL.iter().copied() {
        let (source, target) = (spot.ip(way.sender()), spot.ip(way.sender().other()));
        let (spi, algorithm) = (spot.span.spi(way), algorithm(spot, way));
        script.ip(format_args!(
            "xfrm state add src {source} dst {target} proto esp spi {spi:#x} reqid {spi} mode {mode} \
             replay-window {window}{flags}{in_udp} {}",
            &*algorithm
        ));
    }
}

/// Ciphers and keys, as iproute2 has them.
fn algorithm(spot: &Spot<'_>, way: Direction) -> Zeroizing<String> {
    let suite = spot.cipher().esp().unwrap_or_default();
    let key = spot.key(way, suite.key_material()).hex();
    Zeroizing::new(match suite {
        seclink::esp::Suite::AesGcm128 | seclink::esp::Suite::AesGcm256 => {
            format!("aead rfc4106(gcm(aes)) 0x{} 128", &*key)
        }
        seclink::esp::Suite::ChaCha20Poly1305 => {
            format!("aead rfc7539esp(chacha20,poly1305) 0x{} 128", &*key)
        }
        seclink::esp::Suite::AesCbc128Sha1 => {
            // The cipher's key of 16 bytes, then the other's of 20.
            let (cipher, authentication) = key.split_at_checked(32).unwrap_or_default();
            format!("enc cbc(aes) 0x{cipher} auth-trunc hmac(sha1) 0x{authentication} 96")
        }
    })
}

/// L2TPv3's device, whose UDP datagrams are in ESP in transport mode.
fn l2tp(spot: &Spot<'_>, script: &mut Script) -> String {
    states(spot, "transport", script);
    let bits = match spot.version() {
        IpVersion::V4 => 32,
        IpVersion::V6 => 128,
    };
    for way in Direction::ALL.iter().copied() {
        let (source, target) = (spot.ip(way.sender()), spot.ip(way.sender().other()));
        let policy = if way.sender() == spot.end { "out" } else { "in" };
        let request = spot.span.spi(way);
        script.ip(format_args!(
            "xfrm policy add src {source}/{bits} dst {target}/{bits} proto {UDP} sport {L2TP_PORT} \
             dport {L2TP_PORT} dir {policy} \
             tmpl src {source} dst {target} proto esp reqid {request} mode transport"
        ));
    }
    let (name, (own, other)) = (spot.device("pw"), spot.ips());
    let (ours, theirs) =
        (spot.span.l2tp(spot.end.other().sends()), spot.span.l2tp(spot.end.sends()));
    script.ip(format_args!(
        "l2tp add tunnel tunnel_id {ours} peer_tunnel_id {theirs} encap udp local {own} \
         remote {other} udp_sport {L2TP_PORT} udp_dport {L2TP_PORT}"
    ));
    script.ip(format_args!(
        "l2tp add session name {name} tunnel_id {ours} session_id {ours} peer_session_id {theirs} \
         l2spec_type none"
    ));
    script.ip(format_args!("link set dev {name} mtu {TUNNEL_MTU} up"));
    name
}

/// Adds WireGuard's device to the script; its name.
fn wireguard(spot: &Spot<'_>, script: &mut Script) -> Result<String, Error> {
    let name = spot.device("wg");
    script.ip(format_args!("link add name {name} type wireguard"));
    script.ip(format_args!("link set dev {name} mtu {TUNNEL_MTU} up"));
    // A private key of each end: that of what it sends.
    let private = |end: Side| spot.key(end.sends(), 32);
    let (_, other) = spot.ips();
    let port = spot.span.wireguard_port();
    script.tunnel(Tunnel {
        device: name.clone(),
        port,
        private: private(spot.end),
        peer: PublicKey::of(&private(spot.end.other()))?,
        endpoint: SocketAddr::new(other, port),
    });
    Ok(name)
}
