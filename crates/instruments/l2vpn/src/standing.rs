//! A path that stands.

use std::net::Ipv4Addr;
use std::time::Duration;

use lab::{Lab, Node};
use seclink::path::Topology;
use wire::ethernet::Address;

use crate::Error;
use crate::ends::{Side, VLAN};
use crate::kernel::{Kernel, KernelOptions};
use crate::own::{Own, OwnOptions};
use crate::stage::Stage;

/// Where the tester stands at one end of a path.
#[derive(Debug, Clone)]
pub struct End {
    /// The node that the tester is on.
    pub node: Node,
    /// The interface there that leads to the path. It has no addresses of the kernel's: frames are the tester's own
    /// matter.
    pub interface: String,
    /// The interface's Ethernet address.
    pub mac: Address,
    /// The address that its packets come from.
    pub ip: Ipv4Addr,
    /// The destination of its frames: the other tester where Ethernet is carried, the gateway where packets are
    /// routed.
    pub next_hop: Address,
}

/// Frames and bytes that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Frames, both ways.
    pub frames: u64,
    /// Their bytes, Ethernet's header and VLAN tags included, check sequence not.
    pub bytes: u64,
}

/// A path that stands; dropped, it is gone. Its lab holds no other: the nodes' names are taken.
#[derive(Debug)]
pub struct Standing {
    /// The testers' places, the left one first.
    pub ends: [End; 2],
    /// The VLAN of the tester's frames, where they are to be tagged.
    pub vlan: Option<u16>,
    inner: Inner,
    /// Dropped last: who works on the links ends first.
    stage: Ground,
}

/// Links that are taken away when this is dropped.
#[derive(Debug)]
struct Ground(Stage);

impl Drop for Ground {
    fn drop(&mut self) {
        self.0.take_away();
    }
}

#[derive(Debug)]
enum Inner {
    Own(Own),
    Kernel(Kernel),
}

impl Standing {
    /// A path out of our own engine.
    ///
    /// # Errors
    /// [`Error::Topology`]; what the machine refuses.
    pub fn of_own(
        lab: &mut Lab,
        topology: &Topology,
        options: &OwnOptions,
    ) -> Result<Standing, Error> {
        let stage = Stage::build(lab, topology)?;
        let (ends, vlan) = (stage.ends(), vlan(topology));
        let stage = Ground(stage);
        let inner = Inner::Own(Own::stand(stage.0.clone(), topology, options)?);
        Ok(Standing { ends, vlan, inner, stage })
    }

    /// A path out of the kernel's features.
    ///
    /// # Errors
    /// [`Error::Topology`]; [`Error::NoPppoe`]; [`Error::Lacking`] if the kernel has no such features; what it
    /// refuses.
    pub fn of_kernel(
        lab: &mut Lab,
        topology: &Topology,
        options: &KernelOptions,
    ) -> Result<Standing, Error> {
        topology.check()?;
        if topology.carrier.pppoe {
            return Err(Error::NoPppoe);
        }
        let lacking = crate::kernel::lacking(topology)?;
        if !lacking.is_empty() {
            return Err(Error::Lacking(lacking));
        }
        let stage = Stage::build(lab, topology)?;
        let (ends, vlan) = (stage.ends(), vlan(topology));
        let stage = Ground(stage);
        let inner = Inner::Kernel(Kernel::stand(stage.0.clone(), topology, options)?);
        Ok(Standing { ends, vlan, inner, stage })
    }

    /// One end of a link, from 0, the first tester's, to that after the path's hops: its node and the interface there,
    /// to watch frames at or to put others in.
    ///
    /// # Errors
    /// [`Error::NoLink`].
    pub fn link_end(&self, link: u8, side: Side) -> Result<(Node, String), Error> {
        self.stage.0.end(link, side)
    }

    /// What passed the middle of a link, both ways, since the path stands. Links are counted from 1 to the path's
    /// hops.
    ///
    /// # Errors
    /// [`Error::NoLink`]; [`Error::Counters`].
    pub fn link_bytes(&self, link: u8) -> Result<Counted, Error> {
        match &self.inner {
            Inner::Own(own) => own.link_bytes(link),
            Inner::Kernel(kernel) => kernel.link_bytes(link),
        }
    }

    /// What was dropped and why, by the names that the standard or the kernel has for it; counters of 0 are left
    /// out.
    ///
    /// # Errors
    /// [`Error::Counters`].
    pub fn drops(&self) -> Result<Vec<(String, u64)>, Error> {
        match &self.inner {
            Inner::Own(own) => own.drops(),
            Inner::Kernel(kernel) => kernel.drops(),
        }
    }

    /// CPU time of the data plane so far, where it has a thread of its own.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        match &self.inner {
            Inner::Own(own) => own.cpu_time(),
            // The kernel works in whatever context a frame arrives in.
            Inner::Kernel(_) => None,
        }
    }
}

fn vlan(topology: &Topology) -> Option<u16> {
    topology.tagged.then_some(VLAN)
}
