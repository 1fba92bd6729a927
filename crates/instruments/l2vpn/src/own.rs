//! A path out of our own engine.

use std::time::Duration;

use dataplane::{Chain, Handle, Link};
use packet::{OpenPort, Port, PortOptions, interface_index};
use seclink::path::{MOST_HOPS, Topology};
use seclink::plane::{self, KeyId, Plan, Way};
use units::named;

use crate::ends::{Direction, Side};
use crate::stage::Stage;
use crate::standing::Counted;
use crate::{Error, keys};

named! {
    /// What is between two nodes of our engine.
    #[derive(Default)]
    pub enum Between: "kind of link" {
        /// A veth pair, over which frames really go.
        #[default]
        Veth = "veth",
        /// Nothing: one node hands frames to the next in place, so that a hop is the nodes' own work alone.
        InThread = "in-thread",
    }
}

/// How a path of our own engine is stood up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnOptions {
    /// What the keys are made of.
    pub seed: u64,
    /// What is between the nodes, link by link from the first; the testers' links are always veth pairs.
    pub links: [Between; MOST_HOPS as usize],
    /// How the engine runs.
    pub engine: dataplane::Options,
}

/// The engine's part of a path. The engine ends before its nodes do.
#[derive(Debug)]
pub(crate) struct Own {
    engine: Handle,
    links: [Between; MOST_HOPS as usize],
    stage: Stage,
}

impl Own {
    pub(crate) fn stand(
        stage: Stage,
        topology: &Topology,
        options: &OwnOptions,
    ) -> Result<Own, Error> {
        let OwnOptions { seed, links, engine } = *options;
        let key = |id: KeyId| {
            let direction = match id.way {
                Way::Forward => Direction::Forward,
                Way::Backward => Direction::Backward,
            };
            keys(seed, topology.protection, id.link, direction, id.len).into_secret()
        };
        let nodes = plane::nodes(topology, &Plan::numbered(topology), key)?;
        let ports = engine.ports();
        let beyond = topology.hops.saturating_add(1);
        let ends = [open(&stage, 0, Side::Right, ports)?, open(&stage, beyond, Side::Left, ports)?];
        let join = |(number, between): (u8, &Between)| -> Result<Link, Error> {
            if *between == Between::InThread {
                return Ok(Link::InThread);
            }
            let left = open(&stage, number, Side::Left, ports)?;
            Ok(Link::Ports { left, right: open(&stage, number, Side::Right, ports)? })
        };
        let joined = (1..=topology.hops).zip(&links).map(join).collect::<Result<Vec<_>, _>>()?;
        let engine = dataplane::start(Chain { ends, nodes, links: joined }, &engine)?;
        Ok(Own { engine, links, stage })
    }

    /// By the statistics of an interface; where a link has none, by the nodes at its ends.
    pub(crate) fn link_bytes(&self, link: u8) -> Result<Counted, Error> {
        let place = usize::from(link).checked_sub(1);
        let between = place.and_then(|place| self.links.get(place));
        if between == Some(&Between::InThread)
            && let Some((frames, bytes)) = self.engine.stats().on_link(link.into())
        {
            return Ok(Counted { frames, bytes });
        }
        self.stage.passed(link)
    }

    pub(crate) fn drops(&self) -> Result<Vec<(String, u64)>, Error> {
        let drops = self.engine.stats().drops();
        Ok(drops.into_iter().map(|(name, count)| (name.to_owned(), count)).collect())
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        // What it spins is no work.
        let stats = self.engine.stats();
        Some(stats.cpu.saturating_sub(stats.spun))
    }
}

/// Opens the path's end of a link (0 to hops + 1) in its node's namespace: of links 1 to hops, either end.
fn open(stage: &Stage, link: u8, side: Side, options: PortOptions) -> Result<OpenPort, Error> {
    let hops = u8::try_from(stage.nodes().len().saturating_sub(1)).unwrap_or(u8::MAX);
    let number = match side {
        Side::Left => link.checked_sub(1),
        Side::Right => Some(link),
    };
    let node = number.and_then(|number| stage.nodes().get(usize::from(number)));
    let node = node.ok_or(Error::NoLink { link, hops })?;
    let interface = stage.interface(link, side).to_owned();
    let opened = node.run(move || {
        OpenPort::open(Port::Packet { interface: interface_index(&interface)? }, &options)
    })?;
    Ok(opened?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::{self, VLAN, gateway_mac, link_ip, mac, tester_mac};
    use seclink::path::Protection;
    use std::net::IpAddr;

    #[test]
    fn the_engine_has_the_plan_that_the_kernels_paths_have() {
        for tagged in [false, true] {
            let topology = Topology { tagged, ..Topology::default() };
            let plan = Plan::numbered(&topology);
            for (number, link) in (1..).zip(&plan.links) {
                for (station, side) in link.iter().zip(Side::ALL) {
                    assert_eq!(station.mac, mac(number, *side));
                    assert_eq!(station.ip, IpAddr::V4(link_ip(number, *side)));
                }
            }
            for (side, (lan, through)) in Side::ALL.iter().zip(plan.lans.iter().zip(plan.through)) {
                assert_eq!(lan.own, gateway_mac(&topology, *side));
                assert_eq!(lan.host, tester_mac(&topology, *side));
                assert_eq!(lan.vlan, tagged.then_some(VLAN));
                assert_eq!(through, IpAddr::V4(link_ip(0, *side)));
            }
        }
        assert_eq!(plane::VLAN, VLAN);
    }

    #[test]
    fn keys_are_those_of_the_span() {
        let protection = Protection::MacSec;
        let path = Topology {
            protection,
            cipher: protection.usual_cipher(),
            pseudowire: false,
            ..Topology::default()
        };
        let every = Topology { reach: seclink::path::Reach::EveryHop, ..path };
        for topology in [path, every] {
            let mut asked = std::collections::BTreeSet::new();
            let keys = |id: KeyId| {
                asked.insert(id.link);
                seclink::Secret::new(vec![1; id.len])
            };
            plane::nodes(&topology, &Plan::numbered(&topology), keys).unwrap();
            let spans: Vec<u8> = ends::spans(&topology).iter().map(|span| span.number).collect();
            assert_eq!(asked.into_iter().collect::<Vec<_>>(), spans);
        }
    }
}
