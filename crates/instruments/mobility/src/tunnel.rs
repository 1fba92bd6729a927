//! What protects the frames between the edges, or between the host and the far edge.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use daemons::Daemon;
use daemons::charon::{Charon, Connection};
use daemons::supplicant::Member;
use handoff::{Keying, Scenario, Tunnel};
use l2vpn::ends::{self, Direction, Side};
use l2vpn::kernel::{PublicKey, Script, Tunnel as Wireguard};
use l2vpn::{Key, keys};
use lab::Node;
use seclink::path::Protection;

use crate::layout::{HOST_PORT, HOST_TUNNEL, Layout, Site, link};
use crate::wiring::Nodes;
use crate::{Error, sites, wait};

/// How long keys may take to be agreed on.
const AGREED: Duration = Duration::from_secs(60);
/// The span of keys that are no site's.
const HOST_SPAN: u8 = 9;

/// What stands between the edges.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// At each site: a device that carries frames, or packets.
    pub(crate) near: [String; 2],
    /// At the far edge.
    pub(crate) far: [String; 2],
    /// Those who agree on keys.
    pub(crate) daemons: Vec<Daemon>,
}

/// Stands the pipes up.
pub(crate) fn pipes(nodes: &Nodes, scenario: &Scenario, seed: u64) -> Result<Pipes, Error> {
    let host = Layout::of(scenario).host;
    let mut pipes = Pipes {
        near: Site::ALL.map(|site| link::name(link::customer(site))),
        far: Site::ALL.map(|site| link::name(link::far(site))),
        daemons: Vec::new(),
    };
    for site in Site::ALL {
        let made = match scenario.tunnel {
            Tunnel::MacSec if !host && scenario.keying == Keying::Static => {
                Some(fixed(nodes, site, seed)?)
            }
            Tunnel::MacSec if !host => Some(agreed(nodes, site, seed, &mut pipes.daemons)?),
            Tunnel::WireGuard if !host => Some(wireguard(nodes, scenario, site, seed)?),
            _ => None,
        };
        if let Some([near, far]) = made {
            pipes.near[site.index()] = near;
            pipes.far[site.index()] = far;
        }
    }
    Ok(pipes)
}

/// The key of one way between a site and the far edge.
fn key(seed: u64, protection: Protection, site: Site, way: Direction, len: usize) -> Key {
    keys(seed, protection, site.number(), way, len)
}

/// Hexadecimal digits of a key, where it is written.
struct Hex<'a>(&'a Key);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expose().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A shared secret of this many bytes, as hexadecimal digits.
pub(crate) fn secret(seed: u64, span: u8, len: usize) -> String {
    Hex(&keys(seed, Protection::Plain, span, Direction::Forward, len)).to_string()
}

/// MACsec with fixed keys.
fn fixed(nodes: &Nodes, site: Site, seed: u64) -> Result<[String; 2], Error> {
    let device = format!("sec{}", site.number());
    let macs =
        [ends::mac(link::customer(site), Side::Left), ends::mac(link::far(site), Side::Right)];
    let [near, far] = macs;
    let sides = [
        (nodes.site(site), link::customer(site), far, Direction::Forward),
        (&nodes.far, link::far(site), near, Direction::Backward),
    ];
    for (node, number, other, sends) in sides {
        let mut script = Script::new();
        let on = link::name(number);
        script.ip(format_args!(
            "link add link {on} name {device} type macsec port 1 cipher gcm-aes-128 encrypt on send_sci on \
             protect on replay on window 0 validate strict"
        ));
        script.ip(format_args!("macsec add {device} rx port 1 address {other} on"));
        let takes = match sends {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        for (who, way, id) in [
            ("tx".to_owned(), sends, id(sends)),
            (format!("rx port 1 address {other}"), takes, id(takes)),
        ] {
            let key = key(seed, Protection::MacSec, site, way, 16);
            let key = Hex(&key);
            script.ip(format_args!("macsec add {device} {who} sa 0 pn 1 on key {id:032x} {key}"));
        }
        script.apply(node)?;
    }
    Ok([device.clone(), device])
}

/// The name of the key of one way.
const fn id(way: Direction) -> u8 {
    match way {
        Direction::Forward => 1,
        Direction::Backward => 2,
    }
}

/// MACsec whose keys both ends agree on.
fn agreed(
    nodes: &Nodes,
    site: Site,
    seed: u64,
    daemons: &mut Vec<Daemon>,
) -> Result<[String; 2], Error> {
    let member = |number: u8, priority: u8| Member {
        interface: link::name(number),
        cak: secret(seed, site.number(), 16),
        ckn: format!("{:064x}", site.number()),
        priority,
    };
    let mut join = |node: &Node, member: &Member| -> Result<String, Error> {
        let before = secured(node)?;
        let daemon = member.start(node)?;
        let device = wait::until("a MACsec device", AGREED, || {
            Ok(secured(node)?.into_iter().find(|device| !before.contains(device)))
        })?;
        daemons.push(daemon);
        Ok(device)
    };
    // The lower number makes the keys.
    let far = join(&nodes.far, &member(link::far(site), 16))?;
    let near = join(nodes.site(site), &member(link::customer(site), 32))?;
    Ok([near, far])
}

fn secured(node: &Node) -> Result<Vec<String>, Error> {
    let devices = node.devices()?.into_iter();
    let devices = devices.filter(|device| device.kind.as_deref() == Some("macsec"));
    Ok(devices.map(|device| device.name).collect())
}

/// WireGuard between a site and the far edge.
fn wireguard(
    nodes: &Nodes,
    scenario: &Scenario,
    site: Site,
    seed: u64,
) -> Result<[String; 2], Error> {
    let layout = Layout::of(scenario);
    let device = format!("wg{}", site.number());
    let (near, far) = layout.pipe(site);
    let sides = [
        (nodes.site(site), link::customer(site), near, far, Direction::Forward),
        (&nodes.far, link::far(site), far, near, Direction::Backward),
    ];
    let port = HOST_PORT.saturating_add(site.number().into());
    for (node, number, own, other, sends) in sides {
        let mut script = Script::new();
        script.ip(format_args!("address add {own}/24 dev {}", link::name(number)));
        script.ip(format_args!("link add name {device} type wireguard"));
        script.ip(format_args!("link set dev {device} mtu 1900 up"));
        let takes = match sends {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        let private = |way| key(seed, Protection::WireGuard, site, way, 32);
        script.tunnel(Wireguard {
            device: device.clone(),
            port,
            private: private(sends),
            peer: PublicKey::of(&private(takes))?,
            endpoint: SocketAddr::new(other.into(), port),
        });
        script.apply(node)?;
    }
    Ok([device.clone(), device])
}

/// Key daemons, and who begins.
#[derive(Debug, Default)]
pub(crate) struct Keepers {
    charons: Vec<Charon>,
    /// The host's, and its connection.
    host: Option<(Charon, &'static str)>,
}

const HOST: &str = "host";

impl Keepers {
    /// Starts what IKE needs, once the edges reach each other, and WireGuard on the host.
    pub(crate) fn start(nodes: &Nodes, scenario: &Scenario, seed: u64) -> Result<Keepers, Error> {
        let layout = Layout::of(scenario);
        match (scenario.tunnel, layout.host) {
            (Tunnel::Ipsec | Tunnel::IpsecMobike, false) => between_edges(nodes, layout, seed),
            (Tunnel::Ipsec | Tunnel::IpsecMobike, true) => {
                let mobike = scenario.tunnel == Tunnel::IpsecMobike;
                from_host(nodes, layout, seed, mobike)
            }
            (Tunnel::WireGuard, true) => {
                host_wireguard(nodes, layout, seed)?;
                Ok(Keepers::default())
            }
            _ => Ok(Keepers::default()),
        }
    }

    /// Those whose words are read.
    pub(crate) fn daemons(&self) -> impl Iterator<Item = &Daemon> {
        let host = self.host.iter().map(|(charon, _)| charon.daemon());
        self.charons.iter().map(Charon::daemon).chain(host)
    }

    /// The host's own daemon.
    pub(crate) fn host(&self) -> Option<&Daemon> {
        self.host.as_ref().map(|(charon, _)| charon.daemon())
    }

    /// Brings the host's association up, if it is to have one.
    pub(crate) fn initiate(&self) -> Result<(), Error> {
        match &self.host {
            Some((charon, connection)) => Ok(charon.initiate(connection)?),
            None => Ok(()),
        }
    }
}

fn network(address: Ipv4Addr) -> String {
    let [a, b, c, _] = address.octets();
    format!("{a}.{b}.{c}.0/24")
}

fn between_edges(nodes: &Nodes, layout: Layout, seed: u64) -> Result<Keepers, Error> {
    let far = Charon::start(&nodes.far)?;
    let mut charons = Vec::new();
    for site in Site::ALL {
        let (own, other) = layout.pipe(site);
        let near = Connection {
            name: format!("edge{}", site.number()),
            local: Some(own),
            remote: Some(other),
            own_id: format!("ce{}", site.number()),
            peer_id: "ce3".to_owned(),
            key: secret(seed, site.number(), 32),
            mobike: false,
            own_networks: network(layout.gateway(site)),
            peer_networks: network(layout.peer()),
            asks_address: false,
            pool: None,
        };
        let other_end = Connection {
            local: near.remote,
            remote: near.local,
            own_id: near.peer_id.clone(),
            peer_id: near.own_id.clone(),
            own_networks: near.peer_networks.clone(),
            peer_networks: near.own_networks.clone(),
            ..near.clone()
        };
        far.load(&other_end)?;
        let charon = Charon::start(nodes.site(site))?;
        charon.load(&near)?;
        charon.initiate(&near.name)?;
        charons.push(charon);
    }
    charons.push(far);
    Ok(Keepers { charons, host: None })
}

fn from_host(nodes: &Nodes, layout: Layout, seed: u64, mobike: bool) -> Result<Keepers, Error> {
    let far = Charon::start(&nodes.far)?;
    let own = Connection {
        name: HOST.to_owned(),
        local: None,
        remote: Some(layout.tunnel_gateway()),
        own_id: HOST.to_owned(),
        peer_id: "ce3".to_owned(),
        key: secret(seed, HOST_SPAN, 32),
        mobike,
        own_networks: "dynamic".to_owned(),
        peer_networks: network(layout.peer()),
        asks_address: true,
        pool: None,
    };
    let other_end = Connection {
        local: Some(layout.tunnel_gateway()),
        remote: None,
        own_id: own.peer_id.clone(),
        peer_id: own.own_id.clone(),
        own_networks: own.peer_networks.clone(),
        peer_networks: own.own_networks.clone(),
        asks_address: false,
        pool: Some(("hosts".to_owned(), format!("{0}-{0}", layout.inner()))),
        ..own.clone()
    };
    let mut script = Script::new();
    sites::to_tunnels(layout, None, &mut script);
    sites::protected_only(layout, &mut script);
    script.apply(&nodes.far)?;
    far.load(&other_end)?;
    let charon = Charon::start(&nodes.host)?;
    charon.load(&own)?;
    Ok(Keepers { charons: vec![far], host: Some((charon, HOST)) })
}

fn host_wireguard(nodes: &Nodes, layout: Layout, seed: u64) -> Result<(), Error> {
    let private = |way| keys(seed, Protection::WireGuard, HOST_SPAN, way, 32);
    let mut script = sites::host_tunnel(layout);
    script.tunnel(Wireguard {
        device: HOST_TUNNEL.to_owned(),
        port: HOST_PORT,
        private: private(Direction::Forward),
        peer: PublicKey::of(&private(Direction::Backward))?,
        endpoint: SocketAddr::new(layout.tunnel_gateway().into(), HOST_PORT),
    });
    script.apply(&nodes.host)?;
    let mut script = Script::new();
    script.ip(format_args!("link add name {HOST_TUNNEL} type wireguard"));
    script.ip(format_args!("link set dev {HOST_TUNNEL} mtu 1420 up"));
    sites::to_tunnels(layout, Some(HOST_TUNNEL), &mut script);
    sites::protected_only(layout, &mut script);
    script.tunnel(Wireguard {
        device: HOST_TUNNEL.to_owned(),
        port: HOST_PORT,
        private: private(Direction::Backward),
        peer: PublicKey::of(&private(Direction::Forward))?,
        // Until the host has spoken.
        endpoint: SocketAddr::new(layout.kept().into(), HOST_PORT),
    });
    script.apply(&nodes.far)?;
    Ok(())
}
