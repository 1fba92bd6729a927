//! The nodes and links of a path, before anything is done with them.

use lab::{Addresses, Backend, Lab, Link, LinkOptions, Node};
use linkmodel::Path;
use seclink::path::Topology;

use crate::Error;
use crate::ends::{self, MTU, Side};
use crate::standing::{Counted, End};

/// The nodes of a path and the testers', and bare veth pairs between them without IP addresses, which send nothing
/// of their own accord.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    topology: Topology,
    testers: [Node; 2],
    /// The path's nodes, the first CE first.
    nodes: Vec<Node>,
    /// From left to right: the first tester's, those of the path, the second tester's.
    links: Vec<Link>,
}

impl Stage {
    /// Makes them.
    ///
    /// # Errors
    /// [`Error::Topology`]; what the kernel refuses, or names that the lab has already.
    pub(crate) fn build(lab: &mut Lab, topology: &Topology) -> Result<Stage, Error> {
        topology.check()?;
        let mut tester = |side| lab.add_node(ends::tester_name(side));
        let testers = [tester(Side::Left)?, tester(Side::Right)?];
        let nodes =
            (0..topology.nodes()).map(|node| lab.add_node(&ends::node_name(topology, node)));
        let nodes = nodes.collect::<Result<Vec<Node>, _>>()?;
        let [first, last] = &testers;
        let row: Vec<&Node> = [first].into_iter().chain(&nodes).chain([last]).collect();
        let pairs = row.iter().zip(row.iter().skip(1)).zip(0..);
        let links = pairs.map(|((left, right), link)| connect(lab, left, right, link));
        let links = links.collect::<Result<Vec<Link>, Error>>()?;
        Ok(Stage { topology: *topology, testers, nodes, links })
    }

    /// The path's nodes, the first CE first.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The name of the interface at one end of a link (0 to hops + 1), in its node's namespace.
    pub(crate) fn interface(&self, link: u8, side: Side) -> &str {
        let found = self.links.get(usize::from(link));
        found.map_or("", |link| {
            let [left, right] = link.ends();
            match side {
                Side::Left => &left.interface,
                Side::Right => &right.interface,
            }
        })
    }

    /// The node and the interface at one end of a link.
    ///
    /// # Errors
    /// [`Error::NoLink`].
    pub(crate) fn end(&self, link: u8, side: Side) -> Result<(Node, String), Error> {
        let [left, right] = &self.testers;
        let row: Vec<&Node> = [left].into_iter().chain(&self.nodes).chain([right]).collect();
        let at = usize::from(link) + usize::from(side == Side::Right);
        let node = row.get(at).filter(|_| usize::from(link) < self.links.len());
        let node = node.ok_or(Error::NoLink { link, hops: self.topology.hops })?;
        Ok(((*node).clone(), self.interface(link, side).to_owned()))
    }

    /// The interfaces of a path's node: towards the left and towards the right.
    pub(crate) fn interfaces(&self, node: u8) -> [&str; 2] {
        [self.interface(node, Side::Right), self.interface(node.saturating_add(1), Side::Left)]
    }

    /// Where the testers stand.
    pub(crate) fn ends(&self) -> [End; 2] {
        let [left, right] = self.testers.clone();
        let link = |side| match side {
            Side::Left => 0,
            Side::Right => self.topology.hops.saturating_add(1),
        };
        let end = |node: Node, side: Side| End {
            node,
            interface: self.interface(link(side), side).to_owned(),
            mac: ends::tester_mac(&self.topology, side),
            ip: ends::tester_ip(side),
            next_hop: ends::next_hop(&self.topology, side),
        };
        [end(left, Side::Left), end(right, Side::Right)]
    }

    /// Takes the links away, as far as the lab still stands.
    pub(crate) fn take_away(&self) {
        let [first, _] = &self.testers;
        for (node, link) in [first].into_iter().chain(&self.nodes).zip(&self.links) {
            let [left, _] = link.ends();
            // A lab that is gone has taken them along.
            if let Err(error) = node.remove_device(&left.interface) {
                tracing::debug!(interface = left.interface, %error, "a link was not taken away");
            }
        }
    }

    /// What passed a link of the path (1 to hops), both ways, by the statistics of its left end.
    ///
    /// # Errors
    /// [`Error::NoLink`]; [`Error::Counters`].
    pub(crate) fn passed(&self, link: u8) -> Result<Counted, Error> {
        let hops = self.topology.hops;
        let node = link.checked_sub(1).filter(|node| *node < hops);
        let node = node.and_then(|node| self.nodes.get(usize::from(node)));
        let node = node.ok_or(Error::NoLink { link, hops })?;
        let [received, sent] = statistics(node, self.interface(link, Side::Left))?;
        Ok(Counted {
            frames: received.frames.saturating_add(sent.frames),
            bytes: received.bytes.saturating_add(sent.bytes),
        })
    }
}

fn connect(lab: &mut Lab, left: &Node, right: &Node, link: u8) -> Result<Link, Error> {
    let options = LinkOptions {
        backend: Backend::Direct,
        mtu: MTU,
        addresses: Addresses::none(),
        macs: Some(ends::macs(link).map(|mac| mac.0)),
        ..LinkOptions::default()
    };
    let made = lab.connect_with(left, right, &Path::default(), &options)?;
    for (node, end) in [left, right].into_iter().zip(made.ends()) {
        let interface = end.interface.clone();
        // A tag that is left to the device is not counted.
        node.run(move || packet::offload::disable_vlan_insertion(&interface))??;
    }
    Ok(made)
}

/// What an interface of a node has received and sent.
pub(crate) fn statistics(node: &Node, interface: &str) -> Result<[Counted; 2], Error> {
    let wrong = |problem: String| Error::Counters { node: node.name().to_owned(), problem };
    // Of the thread's own namespace, unlike /proc/net.
    let text = node.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))?;
    let text = text.map_err(|error| wrong(error.to_string()))?;
    find(&text, interface).ok_or_else(|| wrong(format!("there is no interface {interface}")))
}

/// An interface's line in /proc/net/dev: bytes, frames and six more of what was received, then of what was sent.
fn find(text: &str, interface: &str) -> Option<[Counted; 2]> {
    let line = text.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = line.into_iter().find(|(name, _)| name.trim() == interface)?;
    let numbers = numbers.split_whitespace().map(|number| number.parse().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    let counted =
        |at: usize| Some(Counted { bytes: *numbers.get(at)?, frames: *numbers.get(at + 1)? });
    Some([counted(0)?, counted(8)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_by_their_interface() {
        let text = "Inter-|   Receive                            |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes\n\
                    \u{20}   lo:       0       0    0    0    0\n\
                    link12: 1000 2 3 4 5 6 7 8 9000 10 11 12 13 14 15 16\n";
        let received = Counted { frames: 2, bytes: 1000 };
        let sent = Counted { frames: 10, bytes: 9000 };
        assert_eq!(find(text, "link12"), Some([received, sent]));
        assert_eq!(find(text, "link1"), None);
        assert_eq!(find(text, "lo"), None);
    }
}
