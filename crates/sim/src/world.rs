//! The event loop.

use std::cmp::Reverse;

use linkmodel::{ConfigError, Counters, Frame, Link, Output, Path, mix};
use units::Time;

use crate::capture::{Capture, What};
use crate::node::{Node, NodeId};

/// Number of a link, in the order in which links were made, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

/// A link between two nodes, and the interfaces that it has there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The link's number.
    pub link: LinkId,
    /// Interface of the node at the first end.
    pub first_interface: usize,
    /// Interface of the node at the second end.
    pub second_interface: usize,
}

/// How long a simulation may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Events later than this do not happen.
    pub until: Time,
    /// No more events than this in one run: frames sent, frames received or dropped, timeouts, and
    /// instants at which a link is looked at.
    pub events: u64,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Nothing is under way and no node waits for a timeout.
    Quiescent,
    /// The next event is later than [`Limits::until`].
    TimeBound,
    /// There were [`Limits::events`] events.
    EventBound,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub stopped: Stopped,
    /// The time at its end: of the last event, or [`Limits::until`] if that was the bound.
    pub at: Time,
    /// Events of this run.
    pub events: u64,
}

/// A frame on a link, with its number among all frames sent in the simulation.
#[derive(Debug)]
struct Numbered<F> {
    number: u64,
    frame: F,
}

impl<F: Frame> Frame for Numbered<F> {
    fn len(&self) -> usize {
        self.frame.len()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Numbered { number: self.number, frame: self.frame.try_clone()? })
    }

    fn flip_bit(&mut self, bit: usize) {
        self.frame.flip_bit(bit);
    }

    fn link_header(&self) -> usize {
        self.frame.link_header()
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.frame.bytes_mut()
    }

    fn shorten(&mut self, len: usize) {
        self.frame.shorten(len);
    }
}

/// One direction of a link and where it ends.
#[derive(Debug)]
struct Wire<F> {
    link: Link<Numbered<F>>,
    to: (NodeId, usize),
}

/// A frame that has arrived and is about to be handed over.
struct Arrival<F> {
    to: (NodeId, usize),
    number: u64,
    frame: F,
}

struct Slot<N> {
    node: N,
    /// For each interface, the number of the wire that leaves from it.
    wires: Vec<usize>,
}

/// A simulation: nodes, the links between them, and the time.
///
/// Add nodes, connect them, [`Sim::run`]; then look at the nodes, the counters and the capture, and
/// run on if need be. Numbers of nodes and links belong to the simulation that gave them; another
/// one panics on those that it has not.
pub struct Sim<N: Node> {
    seed: u64,
    now: Time,
    nodes: Vec<Slot<N>>,
    /// Wires 2n and 2n + 1 are link n, forward and backward.
    wires: Vec<Wire<N::Frame>>,
    frames_sent: u64,
    capture: Capture<N::Frame>,
    arrivals: Vec<Arrival<N::Frame>>,
}

/// Events left of a run.
struct Budget {
    used: u64,
    limit: u64,
}

impl Budget {
    /// Counts an event, if it may still happen.
    fn spend(&mut self) -> bool {
        let left = self.used < self.limit;
        self.used += u64::from(left);
        left
    }
}

impl<N: Node> Sim<N> {
    /// A simulation without nodes, at time zero. All seeds in it are derived from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Sim {
            seed,
            now: Time::ZERO,
            nodes: Vec::new(),
            wires: Vec::new(),
            frames_sent: 0,
            capture: Capture::new(0),
            arrivals: Vec::new(),
        }
    }

    /// Adds the node that `make` makes from a seed of its own.
    pub fn add_node(&mut self, make: impl FnOnce(u64) -> N) -> NodeId {
        let number = self.nodes.len();
        let seed = mix(mix(self.seed, 1), number as u64);
        self.nodes.push(Slot { node: make(seed), wires: Vec::new() });
        NodeId(number)
    }

    /// Connects `first` and `second` by a link; forward is from the first to the second. Each node
    /// has the link on a new interface. Traces and outages count from now.
    ///
    /// # Errors
    /// If the path makes no sense.
    pub fn connect(
        &mut self,
        first: NodeId,
        second: NodeId,
        path: &Path,
    ) -> Result<Connection, ConfigError> {
        let link = self.wires.len() / 2;
        let (forward, backward) = path.open(self.now, mix(mix(self.seed, 2), link as u64))?;
        let first_interface = self.add_interface(first, 2 * link);
        let second_interface = self.add_interface(second, 2 * link + 1);
        self.wires.push(Wire { link: forward, to: (second, second_interface) });
        self.wires.push(Wire { link: backward, to: (first, first_interface) });
        Ok(Connection { link: LinkId(link), first_interface, second_interface })
    }

    fn add_interface(&mut self, node: NodeId, wire: usize) -> usize {
        let wires = &mut self.nodes[node.0].wires;
        wires.push(wire);
        wires.len() - 1
    }

    /// Changes a link from now on; frames in flight keep their due times.
    ///
    /// # Errors
    /// If the path makes no sense; then nothing is changed.
    pub fn set_path(&mut self, link: LinkId, path: &Path) -> Result<(), ConfigError> {
        path.validate()?;
        let now = self.now;
        self.wires[2 * link.0].link.set_config(now, path.forward.clone())?;
        self.wires[2 * link.0 + 1].link.set_config(now, path.backward.clone())
    }

    /// Captures the next `limit` frames that are sent, received or dropped, in place of any capture
    /// before.
    pub fn capture(&mut self, limit: usize) {
        self.capture = Capture::new(limit);
    }

    /// What was captured.
    #[must_use]
    pub fn captured(&self) -> &Capture<N::Frame> {
        &self.capture
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The node of this number.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0].node
    }

    /// A node, to give it something to do before the next run.
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id.0].node
    }

    /// What happened on a link so far, forward and backward.
    #[must_use]
    pub fn counters(&self, link: LinkId) -> (&Counters, &Counters) {
        (self.wires[2 * link.0].link.counters(), self.wires[2 * link.0 + 1].link.counters())
    }

    /// Runs until nothing is left to happen or a limit is reached. A run that follows goes on where
    /// this one ended.
    pub fn run(&mut self, limits: Limits) -> Outcome {
        let mut budget = Budget { used: 0, limit: limits.events };
        let stopped = self.run_within(limits.until, &mut budget);
        Outcome { stopped, at: self.now, events: budget.used }
    }

    fn run_within(&mut self, until: Time, budget: &mut Budget) -> Stopped {
        // What was left undone when the events ran out, and what nodes were given since.
        if !self.hand_over(budget) {
            return Stopped::EventBound;
        }
        loop {
            let Some(next) = self.next_event() else { return Stopped::Quiescent };
            if next > until {
                self.now = self.now.max(until);
                return Stopped::TimeBound;
            }
            self.now = self.now.max(next);
            if !budget.spend() {
                return Stopped::EventBound;
            }
            self.poll_wires(budget);
            if !self.hand_over(budget) {
                return Stopped::EventBound;
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let frames = self.wires.iter().filter_map(|wire| wire.link.next_event());
        let timeouts = self.nodes.iter().filter_map(|slot| slot.node.next_timeout());
        frames.chain(timeouts).min()
    }

    /// Takes what has arrived off the wires and puts it in order.
    fn poll_wires(&mut self, budget: &mut Budget) {
        let now = self.now;
        for wire in &mut self.wires {
            while let Some(output) = wire.link.poll(now) {
                let to = wire.to;
                match output {
                    Output::Deliver { frame: Numbered { number, frame }, .. } => {
                        self.arrivals.push(Arrival { to, number, frame });
                    }
                    Output::Drop(dropped) => {
                        let what = What::Dropped(dropped.cause);
                        self.capture.add(now, to, what, &dropped.frame.frame);
                        budget.spend();
                    }
                }
            }
        }
        // Descending, so that the first is at the end; stable, so that a duplicate keeps its place.
        self.arrivals.reverse();
        self.arrivals.sort_by_key(|arrival| Reverse((arrival.to.0, arrival.number)));
    }

    /// Lets every node, in order, take its frames, its timeout, and transmit.
    fn hand_over(&mut self, budget: &mut Budget) -> bool {
        (0..self.nodes.len()).map(NodeId).all(|id| {
            self.take_frames(id, budget)
                && self.take_timeout(id, budget)
                && self.transmit(id, budget)
        })
    }

    fn take_frames(&mut self, id: NodeId, budget: &mut Budget) -> bool {
        while self.arrivals.last().is_some_and(|arrival| arrival.to.0 == id) {
            if !budget.spend() {
                return false;
            }
            let Some(Arrival { to, frame, .. }) = self.arrivals.pop() else { break };
            self.capture.add(self.now, to, What::Received, &frame);
            self.nodes[id.0].node.handle_frame(self.now, to.1, frame);
        }
        true
    }

    fn take_timeout(&mut self, id: NodeId, budget: &mut Budget) -> bool {
        let node = &mut self.nodes[id.0].node;
        if node.next_timeout().is_some_and(|at| at <= self.now) {
            if !budget.spend() {
                return false;
            }
            node.handle_timeout(self.now);
        }
        true
    }

    fn transmit(&mut self, id: NodeId, budget: &mut Budget) -> bool {
        let slot = &mut self.nodes[id.0];
        while budget.used < budget.limit {
            let Some((interface, frame)) = slot.node.poll_transmit(self.now) else { return true };
            budget.spend();
            let wire = slot.wires.get(interface).and_then(|wire| self.wires.get_mut(*wire));
            let Some(wire) = wire else {
                self.capture.add(self.now, (id, interface), What::NoInterface, &frame);
                continue;
            };
            self.capture.add(self.now, (id, interface), What::Sent, &frame);
            let number = self.frames_sent;
            self.frames_sent += 1;
            if let Err(dropped) = wire.link.handle_frame(self.now, Numbered { number, frame }) {
                let what = What::Dropped(dropped.cause);
                self.capture.add(self.now, wire.to, what, &dropped.frame.frame);
            }
        }
        false
    }
}
