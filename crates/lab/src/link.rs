//! A link between two nodes.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linkmodel::Path;

use crate::node::Node;
use crate::{Error, netem};

/// One end of a link: an interface of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The node's name.
    pub node: String,
    /// The interface's name in the node's namespace: `link` and the link's number.
    pub interface: String,
    /// The interface's index in the node's namespace.
    pub index: u32,
    /// Its IPv4 address, of a network with prefix length 24.
    pub addr4: Ipv4Addr,
    /// Its IPv6 address, of a network with prefix length 64; `None` where the kernel has no IPv6.
    pub addr6: Option<Ipv6Addr>,
    /// Its Ethernet address, locally administered.
    pub mac: [u8; 6],
}

impl End {
    /// The end `side` (1 or 2) of link `number` on `node`.
    pub(crate) fn new(node: &Node, number: u8, side: u8) -> End {
        let addr6 = Ipv6Addr::new(0xfd77, u16::from(number), 0, 0, 0, 0, 0, u16::from(side));
        End {
            node: node.name().to_owned(),
            interface: format!("link{number}"),
            index: 0,
            addr4: Ipv4Addr::new(10, 77, number, side),
            addr6: node.has_ipv6().then_some(addr6),
            // The second-lowest bit of the first octet: locally administered (IEEE 802 §8.4).
            mac: [0x02, 0x77, 0, 0, number, side],
        }
    }
}

/// The pump that carries a lab's links, shared by them and the lab.
#[derive(Debug, Clone)]
pub(crate) struct Pump(Arc<Mutex<Option<pump::Handle>>>);

impl Pump {
    pub(crate) fn new(handle: pump::Handle) -> Pump {
        Pump(Arc::new(Mutex::new(Some(handle))))
    }

    /// Locked for control only: frames never wait for it.
    fn lock(&self) -> MutexGuard<'_, Option<pump::Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a link, between ports of the calling thread's namespace.
    pub(crate) fn add_link(
        &self,
        a: pump::Port,
        b: pump::Port,
        path: &Path,
        seed: u64,
    ) -> Result<pump::LinkId, Error> {
        match self.lock().as_ref() {
            Some(handle) => Ok(handle.add_link(a, b, path, seed)?),
            None => Err(pump::Error::Stopped.into()),
        }
    }

    /// Ends the pump. Frames on the way are lost.
    pub(crate) fn stop(&self) {
        drop(self.lock().take());
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Carrier {
    /// The link model, in a thread of this process.
    Pump { pump: Pump, id: pump::LinkId },
    /// The kernel's netem, at the egress of both ends.
    Netem { nodes: [Node; 2], seed: u64 },
    /// Nothing.
    Direct,
}

/// A link between two nodes. Clones are the same link. It ends with its lab.
#[derive(Debug, Clone)]
pub struct Link {
    number: u8,
    ends: [End; 2],
    carrier: Carrier,
}

impl Link {
    pub(crate) fn new(number: u8, ends: [End; 2], carrier: Carrier) -> Link {
        Link { number, ends, carrier }
    }

    /// The link's number, from 1: the N of its addresses 10.77.N.1 and 10.77.N.2.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Its ends: that of the first node that `connect` was given, then that of the second.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.ends
    }

    /// Changes what the link is like from now on. Frames on the way arrive as they would have.
    ///
    /// # Errors
    /// The configuration makes no sense, the backend cannot express it, or the lab is shut down.
    pub fn set_path(&self, path: &Path) -> Result<(), Error> {
        path.validate()?;
        match &self.carrier {
            Carrier::Pump { pump, id } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.set_path(*id, path)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem { nodes, seed } => netem::apply(nodes, &self.ends, path, *seed),
            Carrier::Direct if *path == Path::default() => Ok(()),
            Carrier::Direct => Err(Error::NotDirect),
        }
    }

    /// What the link has carried and dropped in each direction, how exact its releases were, and
    /// the CPU time that they took.
    ///
    /// # Errors
    /// [`Error::NoStats`] for a link without a pump; [`Error::NodeStopped`] after shutdown.
    pub fn stats(&self) -> Result<pump::Stats, Error> {
        match &self.carrier {
            Carrier::Pump { pump, id } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.stats(*id)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem { .. } | Carrier::Direct => Err(Error::NoStats),
        }
    }

    fn stopped(&self) -> Error {
        Error::NodeStopped { node: self.ends[0].node.clone() }
    }
}
