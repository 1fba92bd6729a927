//! A protocol machine in the simulation.

use std::fmt;

use linkmodel::Frame;
use units::Time;

/// Number of a node, in the order in which nodes were added, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) usize);

impl NodeId {
    /// The number, from 0.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A protocol machine: it is told the time and what arrives, and asked what to send and when to be
/// woken. It has no clock, and no randomness but the seed that [`Sim::add_node`] hands out.
///
/// Interfaces are numbered from 0 in the order in which the node was connected.
///
/// [`Sim::add_node`]: crate::Sim::add_node
pub trait Node {
    /// The frames it speaks.
    type Frame: Frame;

    /// A frame has arrived on `interface`.
    fn handle_frame(&mut self, now: Time, interface: usize, frame: Self::Frame);

    /// The next frame to send at `now` and the interface to send it on; asked until there is none.
    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Self::Frame)>;

    /// When to call [`Node::handle_timeout`], if at all. A time that has passed means at once.
    fn next_timeout(&self) -> Option<Time>;

    /// The time that [`Node::next_timeout`] named has come.
    fn handle_timeout(&mut self, now: Time);
}

impl<N: Node + ?Sized> Node for Box<N> {
    type Frame = N::Frame;

    fn handle_frame(&mut self, now: Time, interface: usize, frame: Self::Frame) {
        (**self).handle_frame(now, interface, frame);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Self::Frame)> {
        (**self).poll_transmit(now)
    }

    fn next_timeout(&self) -> Option<Time> {
        (**self).next_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        (**self).handle_timeout(now);
    }
}
