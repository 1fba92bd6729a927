//! A virtual capture: what every node sent and received, at exact times.

use std::fmt;

use linkmodel::{DropCause, Frame};
use units::Time;

use crate::node::NodeId;

/// What happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The node sent it.
    Sent,
    /// The node received it.
    Received,
    /// It was dropped on its way to the node.
    Dropped(DropCause),
    /// The node sent it on an interface that is not connected.
    NoInterface,
}

/// A captured frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured<F> {
    /// The time of it, by the clock of who saw it.
    pub at: Time,
    /// At which node: the sender of a frame sent, the receiver of one received or dropped.
    pub node: NodeId,
    /// The node's interface.
    pub interface: usize,
    /// Whether it was sent, received or dropped.
    pub what: What,
    /// A copy of the frame.
    pub frame: F,
}

impl<F: fmt::Debug> fmt::Display for Captured<F> {
    /// One line of a transcript: time, node and interface, what, frame.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{} ", self.at, self.node, self.interface)?;
        match self.what {
            What::Sent => write!(f, "sent")?,
            What::Received => write!(f, "received")?,
            What::Dropped(cause) => write!(f, "dropped ({cause})")?,
            What::NoInterface => write!(f, "sent to nowhere")?,
        }
        write!(f, " {:?}", self.frame)
    }
}

/// The frames captured so far, of a bounded number.
#[derive(Debug, Clone)]
pub struct Capture<F> {
    frames: Vec<Captured<F>>,
    limit: usize,
    missed: u64,
}

impl<F: Frame> Capture<F> {
    /// A capture of at most `limit` frames; zero captures nothing.
    pub(crate) fn new(limit: usize) -> Self {
        Capture { frames: Vec::new(), limit, missed: 0 }
    }

    /// The frames, in the order of the events.
    #[must_use]
    pub fn frames(&self) -> &[Captured<F>] {
        &self.frames
    }

    /// Frames not captured, since the limit was reached or they could not be copied.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    pub(crate) fn add(
        &mut self,
        at: Time,
        (node, interface): (NodeId, usize),
        what: What,
        frame: &F,
    ) {
        if self.limit == 0 {
            return;
        }
        let copy = if self.frames.len() < self.limit { frame.try_clone() } else { None };
        match copy {
            Some(frame) => self.frames.push(Captured { at, node, interface, what, frame }),
            None => self.missed += 1,
        }
    }
}
