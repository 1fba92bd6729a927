//! Where a path's stations are, and what its keys are called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fault::{Explain, Fault};
use thiserror::Error;
use units::named;
use wire::ethernet::Address;

use super::Lan;
use crate::KeyError;
use crate::path::{IpVersion, Topology, TopologyError};
use crate::underlay::Station;

named! {
    /// Which way frames go.
    pub enum Way: "way" {
        /// From the first node to the last.
        Forward = "forward",
        /// From the last to the first.
        Backward = "backward",
    }
}

/// The VLAN that the tester's frames are tagged with.
pub const VLAN: u16 = 10;

/// Which key is asked for: a protected stretch has one for each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId {
    /// The stretch's link; 0 where it goes from end to end.
    pub link: u8,
    /// Which way the frames go that are sealed with it.
    pub way: Way,
    /// Bytes of the key.
    pub len: usize,
}

/// Where the stations of a path are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Of each link, its left end and its right end: as many as the path has hops.
    pub links: Vec<[Station; 2]>,
    /// The addresses of the ends of a tunnel from the first node to the last.
    pub through: [IpAddr; 2],
    /// The first and the last node's ends at the testers.
    pub lans: [Lan; 2],
}

impl Plan {
    /// Addresses by number: link k has the stations 02:00:00:00:k:1 and 2, 10.9.k.1 and 2 or fd09:0:0:k::1 and 2, a tunnel
    /// from end to end 10.9.0.1 and 2 or fd09::1 and 2; the first tester's link is the number 0, whose station 1 is the tester, and the second's
    /// that after the last, whose station 2 is the tester.
    #[must_use]
    pub fn numbered(topology: &Topology) -> Plan {
        let mac = |link: u8, side: u8| Address([2, 0, 0, 0, link, side]);
        let ip = |link, side| address(topology.carrier.ip, link, side);
        let station = |link, side| Station { mac: mac(link, side), ip: ip(link, side) };
        let vlan = topology.tagged.then_some(VLAN);
        let beyond = topology.hops.saturating_add(1);
        Plan {
            links: (1..=topology.hops).map(|link| [station(link, 1), station(link, 2)]).collect(),
            through: [1, 2].map(|side| ip(0, side)),
            lans: [
                Lan { own: mac(0, 2), host: mac(0, 1), vlan },
                Lan { own: mac(beyond, 1), host: mac(beyond, 2), vlan },
            ],
        }
    }

    /// The lan at which frames of this way enter, or leave.
    pub(super) const fn lan(&self, way: Way, at_end: bool) -> Lan {
        let [first, last] = self.lans;
        match (way, at_end) {
            (Way::Forward, false) | (Way::Backward, true) => first,
            (Way::Forward, true) | (Way::Backward, false) => last,
        }
    }

    /// The number and the sending and the receiving station of the link that is the `at`th on the way, from 1.
    pub(super) fn link(&self, way: Way, at: u8) -> Option<(u8, Station, Station)> {
        let count = u8::try_from(self.links.len()).ok()?;
        let number = match way {
            Way::Forward => at,
            Way::Backward => count.checked_sub(at)?.checked_add(1)?,
        };
        let [left, right] = *self.links.get(usize::from(number.checked_sub(1)?))?;
        Some(match way {
            Way::Forward => (number, left, right),
            Way::Backward => (number, right, left),
        })
    }
}

/// The address of one side of a link, 1 or 2; of link 0, of a tunnel from end to end.
#[must_use]
pub const fn address(version: IpVersion, link: u8, side: u8) -> IpAddr {
    match version {
        IpVersion::V4 => IpAddr::V4(Ipv4Addr::new(10, 9, link, side)),
        IpVersion::V6 => IpAddr::V6(Ipv6Addr::new(0xfd09, 0, 0, link as u16, 0, 0, 0, side as u16)),
    }
}

/// Why a path's nodes cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlaneError {
    /// There is no such path.
    #[error("{0}")]
    Topology(#[from] TopologyError),
    /// A key does not fit.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The plan has not as many links as the path, or too many for its labels.
    #[error("a plan of {links} links for a path of {hops}")]
    Plan {
        /// Links of the plan.
        links: usize,
        /// Links of the path.
        hops: u8,
    },
}

impl Explain for PlaneError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<std::borrow::Cow<'static, str>> {
        match self {
            PlaneError::Topology(error) => error.remedy(),
            PlaneError::Key(error) => error.remedy(),
            PlaneError::Plan { .. } => None,
        }
    }
}
