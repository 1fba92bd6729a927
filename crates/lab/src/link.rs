//! A link between two nodes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linkmodel::Path;

use crate::address::Prefix;
use crate::node::Node;
use crate::options::LinkOptions;
use crate::wiring::{self, Joint};
use crate::{Error, netem, netlink};

/// One end of a link: an interface of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The node's name.
    pub node: String,
    /// The interface's name in the node's namespace: `link` and the link's number.
    pub interface: String,
    /// The interface's index in the node's namespace.
    pub index: u32,
    /// Bytes of the longest IP packet.
    pub mtu: u32,
    /// IPv4 and IPv6 addresses of the interface.
    pub addresses: Vec<Prefix>,
    /// Its Ethernet address, locally administered.
    pub mac: [u8; 6],
}

impl End {
    /// The end `side` (1 or 2) of link `number` on `node`.
    pub(crate) fn new(
        node: &Node,
        number: u8,
        side: u8,
        options: &LinkOptions,
    ) -> Result<End, Error> {
        let addresses = options.addresses_of(number, side, node.has_ipv6());
        if !node.has_ipv6() && addresses.iter().any(|prefix| prefix.address().is_ipv6()) {
            return Err(Error::NoIpv6 { node: node.name().to_owned() });
        }
        let given = options.macs.map(|[first, second]| if side == 1 { first } else { second });
        Ok(End {
            node: node.name().to_owned(),
            interface: format!("link{number}"),
            index: 0,
            mtu: options.mtu,
            addresses,
            // The second-lowest bit of the first octet: locally administered (IEEE 802 §8.4).
            mac: given.unwrap_or([0x02, 0x77, 0, 0, number, side]),
        })
    }

    /// Its first IPv4 address.
    ///
    /// # Errors
    /// [`Error::NoAddress`].
    pub fn addr4(&self) -> Result<Ipv4Addr, Error> {
        let found = self.addresses.iter().find_map(|prefix| match prefix.address() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        found.ok_or_else(|| self.no_address("IPv4"))
    }

    /// Its first IPv6 address.
    ///
    /// # Errors
    /// [`Error::NoAddress`], as on every link where the kernel has no IPv6.
    pub fn addr6(&self) -> Result<Ipv6Addr, Error> {
        let found = self.addresses.iter().find_map(|prefix| match prefix.address() {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address),
        });
        found.ok_or_else(|| self.no_address("IPv6"))
    }

    fn no_address(&self, family: &'static str) -> Error {
        Error::NoAddress { node: self.node.clone(), interface: self.interface.clone(), family }
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
        ports: [pump::Port; 2],
        mtu: u32,
        path: &Path,
        seed: u64,
    ) -> Result<pump::LinkId, Error> {
        match self.lock().as_ref() {
            Some(handle) => Ok(handle.add_link_with_mtu(ports, mtu, path, seed)?),
            None => Err(pump::Error::Stopped.into()),
        }
    }

    /// Changes a link's configuration.
    pub(crate) fn set_path(&self, id: pump::LinkId, path: &Path) -> Result<(), Error> {
        match self.lock().as_ref() {
            Some(handle) => Ok(handle.set_path(id, path)?),
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
    /// The link model, in a thread of this process, between interfaces of the hub or TAP devices of
    /// the nodes.
    Pump { pump: Pump, id: pump::LinkId, hub: Option<Node> },
    /// The kernel's netem, at the egress of both ends.
    Netem,
    /// No link model: the nodes are joined directly.
    Direct,
}

/// A link between two nodes. Clones are the same link. It ends with its lab.
#[derive(Debug, Clone)]
pub struct Link {
    joint: Arc<Joint>,
    carrier: Carrier,
}

impl Link {
    pub(crate) fn new(joint: Joint, carrier: Carrier) -> Link {
        Link { joint: Arc::new(joint), carrier }
    }

    /// The link's number, from 1: the N of its addresses 10.77.N.1 and 10.77.N.2.
    #[must_use]
    pub fn number(&self) -> u8 {
        self.joint.number
    }

    /// Its ends: that of the first node that `connect` was given, then that of the second.
    #[must_use]
    pub fn ends(&self) -> &[End; 2] {
        &self.joint.ends
    }

    /// Changes what the link is like from now on. Frames on the way arrive as they would have.
    ///
    /// # Errors
    /// The configuration makes no sense, the backend cannot express it, or the lab is shut down.
    pub fn set_path(&self, path: &Path) -> Result<(), Error> {
        path.validate()?;
        match &self.carrier {
            Carrier::Pump { pump, id, .. } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.set_path(*id, path)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem => {
                netem::apply(&self.joint.nodes, &self.joint.ends, path, self.joint.seed)
            }
            Carrier::Direct if *path == Path::default() => Ok(()),
            Carrier::Direct => Err(Error::NotDirect),
        }
    }

    /// Begins the path's traces and outages anew: they count from now. Frames on the way arrive as they
    /// would have. A netem or direct link has neither.
    ///
    /// # Errors
    /// [`Error::NodeStopped`] after shutdown.
    pub fn restart(&self) -> Result<(), Error> {
        match &self.carrier {
            Carrier::Pump { pump, id, .. } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.restart(*id)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem | Carrier::Direct => Ok(()),
        }
    }

    /// Sets how many segments TCP may send at first to the other end's network, at both ends, for connections
    /// from now on (RFC 6928: the kernel's 10 is `None`). It is a metric of the route of each end's first
    /// IPv4 address, as by `ip route change … initcwnd`; [`Link::down`] forgets it where that takes the
    /// routes.
    ///
    /// # Errors
    /// [`Error::NoAddress`] for an end without an IPv4 address; what the kernel refuses.
    pub fn set_initial_window(&self, segments: Option<u32>) -> Result<(), Error> {
        for (node, end) in self.joint.nodes.iter().zip(self.joint.ends.clone()) {
            let own = end.addr4()?;
            let found = end.addresses.iter().find(|prefix| prefix.address() == IpAddr::V4(own));
            let len = found.map_or(32, |prefix| prefix.prefix_len());
            node.netlink(move |handle| {
                netlink::set_initial_window(handle, end, own, len, segments)
            })?;
        }
        Ok(())
    }

    /// Takes the link down: frames on the way are lost, and count as refused. When this returns, both
    /// nodes' kernels have noticed.
    ///
    /// Where a pump carries it, both ends lose their carrier as when a cable is pulled or a moving
    /// host leaves its cell: their interfaces stay up and keep addresses, neighbours and routes, the
    /// kernel says on netlink that they do not run, and drops what is sent. A netem or direct link
    /// has nothing between its ends, so that both are set down: they keep IPv4 addresses alone, and
    /// their routes are gone.
    ///
    /// # Errors
    /// What the kernel refuses; the lab is shut down.
    pub fn down(&self) -> Result<(), Error> {
        self.set_carrier(false)?;
        for (node, end) in self.joint.nodes.iter().zip(self.joint.ends.clone()) {
            node.netlink(move |handle| netlink::until_it_stops(handle, end))?;
        }
        Ok(())
    }

    /// Takes the link up again: it works when this returns. A netem or direct link has its addresses
    /// and neighbours then; routes that were added are to be added again.
    ///
    /// # Errors
    /// As [`Link::down`].
    pub fn up(&self) -> Result<(), Error> {
        self.set_carrier(true)?;
        match &self.carrier {
            Carrier::Pump { .. } => wiring::until_it_works(&self.joint),
            Carrier::Netem | Carrier::Direct => wiring::set_up(&self.joint),
        }
    }

    fn set_carrier(&self, up: bool) -> Result<(), Error> {
        if let Carrier::Pump { pump, id, .. } = &self.carrier {
            match pump.lock().as_ref() {
                Some(handle) => handle.set_connected(*id, up)?,
                None => return Err(self.stopped()),
            }
        }
        for (side, node) in self.joint.nodes.iter().enumerate() {
            let name = self.joint.ends[side].interface.clone();
            match &self.carrier {
                Carrier::Pump { hub: Some(hub), .. } => {
                    let name = self.joint.hub_interface(side);
                    hub.netlink(move |handle| netlink::set_up(handle, name, up))?;
                }
                Carrier::Pump { hub: None, .. } => {
                    node.netlink(move |handle| netlink::set_carrier(handle, name, up))?;
                }
                Carrier::Netem | Carrier::Direct => {
                    node.netlink(move |handle| netlink::set_up(handle, name, up))?;
                }
            }
        }
        Ok(())
    }

    /// What the link has carried and dropped in each direction, how exact its releases were, and
    /// the CPU time that they took.
    ///
    /// # Errors
    /// [`Error::NoStats`] for a link without a pump; [`Error::NodeStopped`] after shutdown.
    pub fn stats(&self) -> Result<pump::Stats, Error> {
        match &self.carrier {
            Carrier::Pump { pump, id, .. } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.stats(*id)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem | Carrier::Direct => Err(Error::NoStats),
        }
    }

    /// Says when frames last waited in the link's queues, forward then backward.
    ///
    /// # Errors
    /// As [`Link::stats`].
    pub fn queues(&self) -> Result<[pump::QueueWatch; 2], Error> {
        match &self.carrier {
            Carrier::Pump { pump, id, .. } => match pump.lock().as_ref() {
                Some(handle) => Ok(handle.queues(*id)?),
                None => Err(self.stopped()),
            },
            Carrier::Netem | Carrier::Direct => Err(Error::NoStats),
        }
    }

    fn stopped(&self) -> Error {
        Error::NodeStopped { node: self.joint.ends[0].node.clone() }
    }
}
