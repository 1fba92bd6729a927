//! The lab: nodes, and the links between them.

use std::fmt;
use std::str::FromStr;

use linkmodel::Path;
use serde::{Deserialize, Serialize};

use crate::link::{Carrier, End, Link, Pump};
use crate::node::Node;
use crate::{Error, enter, netem, netlink, steer};

/// Links of one lab: they are numbered from 1, and the number is an octet of their addresses.
const MAX_LINKS: u8 = 254;

/// What carries frames between nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// [`Backend::Tap`] where it may be used, else [`Backend::Veth`].
    #[default]
    Auto,
    /// The link pump on veth pairs. Works for every user.
    Veth,
    /// The link pump on TAP devices: less CPU time a frame, but /dev/net/tun is root's on most
    /// systems.
    Tap,
    /// The kernel's sch_netem on a veth pair between the nodes.
    Netem,
    /// A veth pair between the nodes and nothing else: what a link costs that emulates nothing.
    /// Only the perfect path can be had of it.
    Direct,
}

const BACKENDS: [(Backend, &str); 5] = [
    (Backend::Auto, "auto"),
    (Backend::Veth, "veth"),
    (Backend::Tap, "tap"),
    (Backend::Netem, "netem"),
    (Backend::Direct, "direct"),
];

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = BACKENDS.iter().find(|(backend, _)| backend == self).map_or("", |(_, n)| n);
        f.write_str(name)
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<Self, UnknownBackend> {
        let found = BACKENDS.iter().find(|(_, name)| *name == text);
        found.map(|(backend, _)| *backend).ok_or_else(|| UnknownBackend(text.to_owned()))
    }
}

/// A text that names no backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a backend: write auto, veth, tap, netem or direct")]
pub struct UnknownBackend(String);

/// How a lab is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabOptions {
    /// The seed from which every link's is derived, by its number.
    pub seed: u64,
    /// What carries frames.
    pub backend: Backend,
    /// How links are pumped.
    pub pump: pump::Options,
    /// The processor that all nodes stay on, so that the pump has another to itself; any if not
    /// given.
    pub node_cpu: Option<usize>,
}

/// Nodes and the links between them. Dropping it ends them all.
#[derive(Debug)]
pub struct Lab {
    options: LabOptions,
    backend: Backend,
    /// A namespace of this lab's own in which the pump's ends of its links are: labs of one
    /// process do not meet, and devices go with it.
    hub: Node,
    nodes: Vec<Node>,
    /// Carries all links; started with the first.
    pump: Option<Pump>,
    links: u8,
}

impl Lab {
    /// A lab without nodes. The process must have called [`crate::enter()`].
    ///
    /// # Errors
    /// [`Error::NotEntered`]; [`Error::NoNetem`] if netem is asked for and the kernel has none;
    /// [`Error::Packet`] if TAP is asked for and may not be used.
    pub fn new(options: LabOptions) -> Result<Lab, Error> {
        if enter::entered().is_none() {
            return Err(Error::NotEntered);
        }
        let hub = Node::start("lab-hub", None)?;
        let backend = match options.backend {
            Backend::Auto if tap_works(&hub).is_ok() => Backend::Tap,
            Backend::Auto | Backend::Veth => Backend::Veth,
            Backend::Tap => {
                tap_works(&hub)?;
                Backend::Tap
            }
            Backend::Netem => {
                try_netem(&hub)?;
                Backend::Netem
            }
            Backend::Direct => Backend::Direct,
        };
        Ok(Lab { options, backend, hub, nodes: Vec::new(), pump: None, links: 0 })
    }

    /// What carries frames: [`Backend::Auto`] has become one of the others.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Adds a node. Its name, 1 to 15 letters, digits, `-` or `_`, names its thread too.
    ///
    /// # Errors
    /// [`Error::NodeName`]; [`Error::Node`] if the kernel refuses a namespace.
    pub fn add_node(&mut self, name: &str) -> Result<Node, Error> {
        let wrong = |problem| Error::NodeName { name: name.to_owned(), problem };
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=15).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(wrong("write 1 to 15 letters, digits, `-` or `_`"));
        }
        if name == self.hub.name() || self.nodes.iter().any(|node| node.name() == name) {
            return Err(wrong("there is one of this name already"));
        }
        let node = Node::start(name, self.options.node_cpu)?;
        self.nodes.push(node.clone());
        Ok(node)
    }

    /// Joins two nodes by a link; `path.forward` is the way from `a` to `b`. The link works when
    /// this returns; its traces and outages count from then. Link N has the addresses 10.77.N.1
    /// and fd77:N::1 at `a`, 10.77.N.2 and fd77:N::2 at `b`. One thread carries the frames of all
    /// links of a lab.
    ///
    /// # Errors
    /// [`Error::Ends`], [`Error::TooManyLinks`], [`Error::Config`], [`Error::NotNetem`]; what the
    /// kernel or the pump refuses.
    pub fn connect(&mut self, a: &Node, b: &Node, path: &Path) -> Result<Link, Error> {
        path.validate()?;
        self.check_ends(a, b)?;
        if self.links == MAX_LINKS {
            return Err(Error::TooManyLinks);
        }
        self.links += 1;
        let number = self.links;
        let mut joint = Joint::new(number, [a.clone(), b.clone()], self.options.seed);
        let carrier = match self.backend {
            Backend::Netem => {
                self.join_directly(&mut joint)?;
                netem::apply(&joint.nodes, &joint.ends, path, joint.seed)?;
                Carrier::Netem { nodes: joint.nodes.clone(), seed: joint.seed }
            }
            Backend::Direct if *path != Path::default() => return Err(Error::NotDirect),
            Backend::Direct => {
                self.join_directly(&mut joint)?;
                Carrier::Direct
            }
            _ => self.join_by_pump(&mut joint, path)?,
        };
        for (node, end) in joint.nodes.iter().zip(&joint.ends) {
            node.add_end(end.clone());
        }
        Ok(Link::new(number, joint.ends, carrier))
    }

    fn check_ends(&self, a: &Node, b: &Node) -> Result<(), Error> {
        let wrong =
            |node: &Node, problem| Err(Error::Ends { node: node.name().to_owned(), problem });
        for node in [a, b] {
            if !self.nodes.iter().any(|own| own.is(node)) {
                return wrong(node, "a node of another lab");
            }
        }
        if a.is(b) { wrong(a, "the same node twice") } else { Ok(()) }
    }

    /// Joins two nodes by a veth pair of which each has one end.
    fn join_directly(&self, joint: &mut Joint) -> Result<(), Error> {
        let [first, second] = &joint.nodes;
        make_veth(&self.hub, "first", "second")?;
        hand_over(&self.hub, "first", first, &joint.ends[0].interface)?;
        hand_over(&self.hub, "second", second, &joint.ends[1].interface)?;
        raise_ends(joint, true)
    }

    /// Makes the devices of a link: the ports for the pump, which are the hub's, and the ends.
    pub(crate) fn ports(&self, joint: &mut Joint) -> Result<(pump::Port, pump::Port), Error> {
        let offload = self.options.pump.offload;
        let port = |side: usize| {
            let (node, end) = (&joint.nodes[side], &joint.ends[side]);
            match self.backend {
                Backend::Tap => make_tap_port(node, &end.interface, offload),
                _ => {
                    let hub_name = format!("hub{}-{}", joint.number, side + 1);
                    make_veth_port(&self.hub, node, &hub_name, &end.interface, offload)
                }
            }
        };
        let ports = (port(0)?, port(1)?);
        raise_ends(joint, !offload)?;
        Ok(ports)
    }

    /// The node of the pump's ends.
    pub(crate) fn hub(&self) -> &Node {
        &self.hub
    }

    fn join_by_pump(&mut self, joint: &mut Joint, path: &Path) -> Result<Carrier, Error> {
        let (a, b) = self.ports(joint)?;
        let pump = match &self.pump {
            Some(pump) => pump.clone(),
            None => {
                let options = self.options.pump;
                let handle = self.hub.run(move || pump::Builder::new(options).start())??;
                self.pump.insert(Pump::new(handle)).clone()
            }
        };
        // The ports are of the hub's namespace, and opened there.
        let (opener, path, seed) = (pump.clone(), path.clone(), joint.seed);
        let id = self.hub.run(move || opener.add_link(a, b, &path, seed))??;
        Ok(Carrier::Pump { pump, id })
    }

    /// Ends pump and nodes and waits for them, for a bounded time. Tasks of the nodes are
    /// dropped, frames on the way are lost. Dropping the lab does the same.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.stop();
        }
        for node in self.nodes.iter().chain([&self.hub]) {
            node.stop();
        }
        for node in self.nodes.iter().chain([&self.hub]) {
            if !node.wait() {
                tracing::warn!(node = node.name(), "a node did not end; is a task blocking it?");
            }
        }
    }
}

/// A link in the making.
pub(crate) struct Joint {
    number: u8,
    nodes: [Node; 2],
    ends: [End; 2],
    seed: u64,
}

impl Joint {
    pub(crate) fn new(number: u8, nodes: [Node; 2], lab_seed: u64) -> Joint {
        let ends = [End::new(&nodes[0], number, 1), End::new(&nodes[1], number, 2)];
        Joint { number, nodes, ends, seed: linkmodel::mix(lab_seed, u64::from(number)) }
    }

    /// The index of one end's interface in its node's namespace, once it is there.
    pub(crate) fn interface_index(&self, side: usize) -> u32 {
        self.ends[side].index
    }
}

/// Makes a veth pair in the hub.
fn make_veth(hub: &Node, name: &'static str, peer: &'static str) -> Result<(), Error> {
    hub.netlink(move |handle| async move { netlink::create_veth(&handle, name, peer).await })
}

/// Moves the hub's interface `name` to the node under a new name.
fn hand_over(hub: &Node, name: &str, node: &Node, new_name: &str) -> Result<(), Error> {
    let (from, to) = (name.to_owned(), new_name.to_owned());
    let namespace = node.namespace_for_move()?;
    hub.netlink(move |handle| async move {
        netlink::rename(&handle, &from, &to).await?;
        netlink::move_to(&handle, &to, &namespace).await
    })
}

fn make_veth_port(
    hub: &Node,
    node: &Node,
    hub_name: &str,
    node_name: &str,
    offload: bool,
) -> Result<pump::Port, Error> {
    let (hub_name, node_name) = (hub_name.to_owned(), node_name.to_owned());
    let namespace = node.namespace_for_move()?;
    let index = hub.netlink(move |handle| async move {
        netlink::create_veth(&handle, &hub_name, &node_name).await?;
        netlink::move_to(&handle, &node_name, &namespace).await?;
        silence_ipv6(&hub_name);
        if let Err(error) = steer::to_one_processor(&hub_name) {
            tracing::debug!(interface = hub_name, %error, "frames may overtake each other");
        }
        if !offload {
            packet::offload::disable(&hub_name)?;
        }
        netlink::raise_hub_end(&handle, &hub_name).await?;
        Ok(packet::interface_index(&hub_name)?)
    })?;
    Ok(pump::Port::Packet { interface: index })
}

/// Makes a TAP device in the node's namespace; the pump reads and writes its descriptor.
fn make_tap_port(node: &Node, name: &str, offload: bool) -> Result<pump::Port, Error> {
    let name = name.to_owned();
    let tap = node.run(move || match offload {
        true => packet::Tap::create_with_vnet_header(&name),
        false => packet::Tap::create(&name),
    })??;
    Ok(pump::Port::Tap(tap.into()))
}

/// Sets both nodes' interfaces up, quiet and with their addresses.
fn raise_ends(joint: &mut Joint, disable_offloads: bool) -> Result<(), Error> {
    let [first, second] = joint.ends.clone();
    let ends = [(first.clone(), second.clone()), (second, first)];
    for (side, (node, (end, peer))) in joint.nodes.iter().zip(ends).enumerate() {
        let name = end.interface.clone();
        node.run(move || {
            silence_ipv6(&name);
            if disable_offloads { packet::offload::disable(&name) } else { Ok(()) }
        })??;
        let index = node.netlink(move |handle| netlink::raise_node_end(handle, end, peer))?;
        if let Some(end) = joint.ends.get_mut(side) {
            end.index = index;
        }
    }
    for (node, end) in joint.nodes.iter().zip(joint.ends.clone()) {
        node.netlink(move |handle| netlink::until_it_works(handle, end))?;
    }
    Ok(())
}

/// Keeps the kernel from sending IPv6 packets of its own on an interface of this namespace.
fn silence_ipv6(interface: &str) {
    // addr_gen_mode 1: no link-local address.
    let settings = [
        ("addr_gen_mode", "1"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("dad_transmits", "0"),
    ];
    for (setting, value) in settings {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/{setting}");
        // Without IPv6 there is nothing to silence.
        if let Err(error) = std::fs::write(path, value) {
            tracing::debug!(interface, setting, %error, "not set");
        }
    }
}

/// Whether a TAP device can be made in the hub.
fn tap_works(hub: &Node) -> Result<(), Error> {
    Ok(hub.run(|| packet::Tap::create("probe").map(drop))??)
}

/// Whether the kernel has netem, by setting it on the hub's loopback interface.
fn try_netem(hub: &Node) -> Result<(), Error> {
    let set = hub.netlink(|handle| async move {
        let index = packet::interface_index("lo")?;
        netlink::set_root_qdisc(handle, index, "netem", netem::neutral_options()).await
    });
    match set {
        Err(Error::Netlink { source, .. }) if source.raw_os_error() == Some(libc::ENOENT) => {
            Err(Error::NoNetem)
        }
        other => other,
    }
}

/// Whether the kernel has netem, by setting it in a scratch namespace. In a lab only.
///
/// # Errors
/// [`Error::NotEntered`]; what the kernel refuses, other than that it has no netem.
pub fn netem_available() -> Result<bool, Error> {
    if enter::entered().is_none() {
        return Err(Error::NotEntered);
    }
    let scratch = Node::start("scratch", None)?;
    let tried = try_netem(&scratch);
    scratch.stop();
    scratch.wait();
    match tried {
        Ok(()) => Ok(true),
        Err(Error::NoNetem) => Ok(false),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read_as_they_are_printed() {
        for (backend, name) in BACKENDS {
            assert_eq!(backend.to_string(), name);
            assert_eq!(name.parse(), Ok(backend));
        }
        assert!("Veth".parse::<Backend>().unwrap_err().to_string().contains("write auto"));
    }

    #[test]
    fn outside_a_lab_there_is_no_lab() {
        assert!(matches!(Lab::new(LabOptions::default()), Err(Error::NotEntered)));
        assert!(matches!(netem_available(), Err(Error::NotEntered)));
    }
}
