//! A path out of the Linux kernel's own features.
//!
//! Nodes are configured by iproute2's `ip` and `tc`, whose scripts go by standard input, and WireGuard by netlink:
//! keys stand in no command line and in no file. Where packets are routed, each router counts a hop off them.

mod counters;
pub mod generic;
mod plan;
mod probe;
mod program;
mod pseudowire;
mod script;
mod security;
mod wireguard;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

use lab::Node;
use seclink::path::{IpVersion, Protection, Topology};

use crate::Error;
use crate::ends::{self, Side};
use crate::stage::{Stage, statistics};
use crate::standing::Counted;
use plan::Place;

pub use probe::lacking;
pub use program::{Ended, batch, must, run};
pub use pseudowire::{Attachment, Crossing, attach, cross};
pub use script::Script;
pub use wireguard::{PublicKey, Tunnel};

/// How a path of the kernel's features is stood up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelOptions {
    /// What the keys are made of.
    pub seed: u64,
    /// Frames that wait before a gateway that is limited ([`Topology::gateway`]).
    pub queue: u32,
    /// Packets up to the highest number that ESP still takes, each once.
    pub replay_window: u32,
    /// Whether ESP's sequence numbers have 64 bits (RFC 4303 §2.2.1).
    pub extended: bool,
}

impl Default for KernelOptions {
    fn default() -> Self {
        KernelOptions { seed: 0, queue: 64, replay_window: 64, extended: false }
    }
}

/// How long WireGuard's handshakes may take, on all links.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);

/// The kernel's part of a path.
#[derive(Debug)]
pub(crate) struct Kernel {
    stage: Stage,
    topology: Topology,
    /// What had passed each link before the path stood.
    before: Vec<Counted>,
    /// The sockets by which the kernel takes ESP out of UDP, as long as they are open.
    _encapsulations: Vec<UdpSocket>,
}

impl Kernel {
    /// Configures the nodes.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn stand(
        stage: Stage,
        topology: &Topology,
        options: &KernelOptions,
    ) -> Result<Kernel, Error> {
        let mut sockets = Vec::new();
        for (number, node) in (0..).zip(stage.nodes()) {
            let interfaces = stage.interfaces(number);
            let place = Place { topology, options, number, interfaces };
            plan::script(&place)?.apply(node)?;
            if topology.carrier.nat_traversal && place.is_span_end() {
                sockets.push(take_esp_from_udp(node, topology.carrier.ip)?);
            }
        }
        if topology.protection == Protection::WireGuard {
            shake_hands(stage.nodes())?;
        }
        let mut kernel =
            Kernel { stage, topology: *topology, before: Vec::new(), _encapsulations: sockets };
        let links = (1..=topology.hops).map(|link| kernel.stage.passed(link));
        kernel.before = links.collect::<Result<_, _>>()?;
        Ok(kernel)
    }

    /// What passed a link since then.
    pub(crate) fn link_bytes(&self, link: u8) -> Result<Counted, Error> {
        let now = self.stage.passed(link)?;
        let before = self.before.get(usize::from(link.saturating_sub(1)));
        let before = before.copied().unwrap_or_default();
        Ok(Counted {
            frames: now.frames.saturating_sub(before.frames),
            bytes: now.bytes.saturating_sub(before.bytes),
        })
    }

    /// What all nodes dropped, by the kernel's name for the reason.
    pub(crate) fn drops(&self) -> Result<Vec<(String, u64)>, Error> {
        let mut all = BTreeMap::<String, u64>::new();
        for node in self.stage.nodes() {
            for (name, count) in counters::of(node, &self.topology)? {
                *all.entry(name).or_default() += count;
            }
        }
        Ok(all.into_iter().collect())
    }
}

/// Opens the socket by which a node's kernel takes ESP out of UDP (RFC 3948), as a key daemon does.
fn take_esp_from_udp(node: &Node, version: IpVersion) -> Result<UdpSocket, Error> {
    let any: IpAddr = match version {
        IpVersion::V4 => Ipv4Addr::UNSPECIFIED.into(),
        IpVersion::V6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    let opened = node.run(move || {
        let socket = UdpSocket::bind((any, wire::esp::UDP_PORT))?;
        packet::decapsulate_esp(&socket)?;
        Ok(socket)
    })?;
    let doing = "opening the port of ESP in UDP";
    opened.map_err(|source| Error::Netlink { doing, node: node.name().to_owned(), source })
}

/// Sends a datagram through all tunnels, so that they have keys before anything is measured. What comes back says
/// that they have: there is nobody at that port.
fn shake_hands(nodes: &[Node]) -> Result<(), Error> {
    let ([first, ..], [.., last]) = (nodes, nodes) else { return Ok(()) };
    let far = ends::gateway_ip(Side::Right);
    let sent = first
        .run(move || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.send_to(&[], (far, DISCARD)))?;
    let doing = "sending through the tunnel";
    sent.map_err(|source| Error::Netlink { doing, node: first.name().to_owned(), source })?;
    let deadline = Instant::now() + HANDSHAKE_LIMIT;
    for (node, device) in [(last, "wg1"), (first, "wg2")] {
        while statistics(node, device)?[0].frames == 0 {
            if Instant::now() > deadline {
                let (node, seconds) = (first.name().to_owned(), HANDSHAKE_LIMIT.as_secs());
                return Err(Error::NoTunnel { node, seconds });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// The port that drops everything (RFC 863); here nobody is at it.
const DISCARD: u16 = 9;
