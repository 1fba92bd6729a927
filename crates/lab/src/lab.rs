//! The lab: nodes, and the links between them.

use linkmodel::Path;

use crate::link::{Carrier, Link, Pump};
use crate::node::Node;
use crate::options::{Backend, LabOptions, LinkOptions, NodeOptions};
use crate::wiring::{self, Joint};
use crate::{Error, enter, netem};

/// Links of one lab: they are numbered from 1, and the number is an octet of their addresses.
const MAX_LINKS: u8 = 254;

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
        let backend = wiring::resolve(&hub, options.backend)?;
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
        self.add_node_with(name, NodeOptions::default())
    }

    /// As [`Lab::add_node`], with options.
    ///
    /// # Errors
    /// As [`Lab::add_node`]; [`Error::Packet`] if it cannot stay on that processor.
    pub fn add_node_with(&mut self, name: &str, options: NodeOptions) -> Result<Node, Error> {
        let wrong = |problem| Error::NodeName { name: name.to_owned(), problem };
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=15).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(wrong("write 1 to 15 letters, digits, `-` or `_`"));
        }
        if name == self.hub.name() || self.nodes.iter().any(|node| node.name() == name) {
            return Err(wrong("there is one of this name already"));
        }
        let node = Node::start(name, options.cpu.or(self.options.node_cpu))?;
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
        self.connect_with(a, b, path, &LinkOptions::default())
    }

    /// As [`Lab::connect`], with options.
    ///
    /// # Errors
    /// As [`Lab::connect`]; [`Error::Mtu`], [`Error::LinkOptions`]; [`Error::NoIpv6`] if an address
    /// is one that the kernel cannot have; what this machine lacks for the backend.
    pub fn connect_with(
        &mut self,
        a: &Node,
        b: &Node,
        path: &Path,
        options: &LinkOptions,
    ) -> Result<Link, Error> {
        path.validate()?;
        self.check_ends(a, b)?;
        let backend = match options.backend {
            Backend::Auto => self.backend,
            asked => wiring::resolve(&self.hub, asked)?,
        };
        options.check(backend)?;
        if backend == Backend::Direct && *path != Path::default() {
            return Err(Error::NotDirect);
        }
        if self.links == MAX_LINKS {
            return Err(Error::TooManyLinks);
        }
        self.links += 1;
        let nodes = [a.clone(), b.clone()];
        let mut joint = Joint::new(self.links, nodes, self.options.seed, options.clone())?;
        let carrier = match backend {
            Backend::Netem => {
                wiring::join_directly(&self.hub, &mut joint)?;
                netem::apply(&joint.nodes, &joint.ends, path, joint.seed)?;
                Carrier::Netem
            }
            Backend::Direct => {
                wiring::join_directly(&self.hub, &mut joint)?;
                Carrier::Direct
            }
            _ => self.join_by_pump(backend, &mut joint, path)?,
        };
        for (node, end) in joint.nodes.iter().zip(&joint.ends) {
            node.add_end(end.clone());
        }
        for (node, peer) in joint.nodes.iter().zip(joint.ends.iter().rev()) {
            node.add_peer(peer.clone());
        }
        Ok(Link::new(joint, carrier))
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

    /// Makes the devices of a link that a pump is to carry; returns the pump's ports.
    pub(crate) fn ports(&self, joint: &mut Joint) -> Result<[pump::Port; 2], Error> {
        let ports = wiring::ports(&self.hub, self.backend, self.options.pump.offload, joint)?;
        wiring::set_up(joint)?;
        Ok(ports)
    }

    /// The node of the pump's ends.
    pub(crate) fn hub(&self) -> &Node {
        &self.hub
    }

    fn join_by_pump(
        &mut self,
        backend: Backend,
        joint: &mut Joint,
        path: &Path,
    ) -> Result<Carrier, Error> {
        let ports = wiring::ports(&self.hub, backend, self.options.pump.offload, joint)?;
        // Probes for duplicates must reach the other end. The path's time begins when the link works.
        let probes = joint.options.dad;
        if !probes {
            wiring::set_up(joint)?;
        }
        let pump = match &self.pump {
            Some(pump) => pump.clone(),
            None => {
                let options = self.options.pump;
                let handle = self.hub.run(move || pump::Builder::new(options).start())??;
                self.pump.insert(Pump::new(handle)).clone()
            }
        };
        // The ports are of the hub's namespace, and opened there.
        let opener = pump.clone();
        let first = if probes { Path::default() } else { path.clone() };
        let (mtu, seed) = (joint.options.mtu, joint.seed);
        let id = self.hub.run(move || opener.add_link(ports, mtu, &first, seed))??;
        if probes {
            wiring::set_up(joint)?;
            pump.set_path(id, path)?;
        }
        let hub = (backend != Backend::Tap).then(|| self.hub.clone());
        Ok(Carrier::Pump { pump, id, hub })
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
        for node in &self.nodes {
            node.end_programs();
            node.give_back();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_a_lab_there_is_no_lab() {
        assert!(matches!(Lab::new(LabOptions::default()), Err(Error::NotEntered)));
        assert!(matches!(wiring::netem_available(), Err(Error::NotEntered)));
    }
}
