//! Nodes in a row, taken apart into what a thread works on.

use packet::{OpenPort, Outlet};
use seclink::plane::{Hop, Node, Way};

use crate::Error;

/// What is between two nodes.
#[derive(Debug)]
pub enum Link {
    /// Nothing: the one hands frames to the other in place.
    InThread,
    /// Two ports that are joined, such as the ends of a veth pair.
    Ports {
        /// That of the node nearer to the first.
        left: OpenPort,
        /// That of the node nearer to the last.
        right: OpenPort,
    },
}

/// Nodes in a row.
pub struct Chain {
    /// The ports at the testers: of the first node and of the last.
    pub ends: [OpenPort; 2],
    /// The nodes, from the first to the last.
    pub nodes: Vec<Node>,
    /// The links between them: one fewer than nodes.
    pub links: Vec<Link>,
}

/// From a port to a port: the nodes between them without ports of their own.
pub(crate) struct Part<I = OpenPort, O = Outlet> {
    pub(crate) way: Way,
    /// The number of the node at which frames come in.
    pub(crate) first: usize,
    pub(crate) input: I,
    pub(crate) hops: Vec<Hop>,
    pub(crate) output: O,
}

impl<I, O> Part<I, O> {
    /// The number of the node at the place `at`.
    pub(crate) fn node(&self, at: usize) -> usize {
        match self.way {
            Way::Forward => self.first + at,
            Way::Backward => self.first.saturating_sub(at),
        }
    }
}

/// A link on one way: the port that its near node sends by, and the one that its far node receives by.
type Crossing<I = OpenPort, O = Outlet> = Option<(O, I)>;

impl Chain {
    /// What there is to do each way, in the order in which frames come to it.
    pub(crate) fn parts(self) -> Result<[Vec<Part>; 2], Error> {
        let (nodes, links) = (self.nodes.len(), self.links.len());
        if nodes == 0 || nodes != links + 1 {
            return Err(Error::Chain { nodes, links });
        }
        let [first, last] = self.ends;
        let (first_out, last_out) = (first.outlet()?, last.outlet()?);
        let (mut forward, mut backward): (Vec<Crossing>, Vec<Crossing>) = (vec![], vec![]);
        for link in self.links {
            let (there, back) = match link {
                Link::InThread => (None, None),
                Link::Ports { left, right } => {
                    let (left_out, right_out) = (left.outlet()?, right.outlet()?);
                    (Some((left_out, right)), Some((right_out, left)))
                }
            };
            forward.push(there);
            backward.push(back);
        }
        let (hops, mut hops_back): (Vec<Hop>, Vec<Hop>) =
            self.nodes.into_iter().map(|node| (node.forward, node.backward)).unzip();
        backward.reverse();
        hops_back.reverse();
        Ok([
            parts(Way::Forward, first, hops, forward, last_out),
            parts(Way::Backward, last, hops_back, backward, first_out),
        ])
    }
}

/// The parts of one way, whose hops and crossings are in the order of the way.
fn parts<I, O>(
    way: Way,
    input: I,
    hops: Vec<Hop>,
    crossings: Vec<Crossing<I, O>>,
    output: O,
) -> Vec<Part<I, O>> {
    let count = hops.len();
    let number = |at: usize| match way {
        Way::Forward => at,
        Way::Backward => count.saturating_sub(at + 1),
    };
    let mut parts = Vec::new();
    let (mut input, mut first, mut joined) = (input, number(0), Vec::new());
    let crossings = crossings.into_iter().chain([None]);
    for (at, (hop, crossing)) in hops.into_iter().zip(crossings).enumerate() {
        joined.push(hop);
        if let Some((output, next)) = crossing {
            let hops = std::mem::take(&mut joined);
            parts.push(Part { way, first, input, hops, output });
            (input, first) = (next, number(at + 1));
        }
    }
    parts.push(Part { way, first, input, hops: joined, output });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of four nodes with ports between the second and the third: input, nodes, output.
    fn shape(way: Way) -> Vec<(char, usize, usize, char)> {
        let hops = (0..4).map(|_| Hop::wire()).collect();
        let parts = parts(way, 'a', hops, vec![None, Some(('b', 'c')), None], 'd');
        let shape =
            |part: &Part<char, char>| (part.first, part.node(part.hops.len() - 1), part.output);
        parts
            .iter()
            .map(|part| {
                let (first, last, output) = shape(part);
                (part.input, first, last, output)
            })
            .collect()
    }

    #[test]
    fn nodes_without_ports_between_them_are_one_part() {
        assert_eq!(shape(Way::Forward), [('a', 0, 1, 'b'), ('c', 2, 3, 'd')]);
        assert_eq!(shape(Way::Backward), [('a', 3, 2, 'b'), ('c', 1, 0, 'd')]);
    }
}
