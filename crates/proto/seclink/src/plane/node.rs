//! A node of a path, in both directions.

use units::Time;
use wire::macsec::Sci;

use super::{
    ESP_WINDOW, Gateway, GatewayOptions, KeyId, Lan, MACSEC_WINDOW, Opener, PPPOE_SESSION, Plan,
    PlaneError, Reason, Sealer, WIREGUARD_PORT, Way,
};
use crate::esp::{self, Inbound, Outbound};
use crate::macsec::{
    Association, Confidentiality, Extended, Naming, Receive, ReceiveAssociation, Transmit,
    TransmitAssociation, Validation,
};
use crate::path::{Carrier, Protection, Reach, Topology};
use crate::underlay::{Station, Underlay};
use crate::vpws::{Label, Link, Pop, Push, Swap};
use crate::wireguard::{Receiver, Sender};
use crate::{KeyError, Secret, Slot};

/// One thing that a node does with a frame.
enum Step {
    Strip(Lan),
    Dress(Lan),
    Seal(Sealer),
    Open(Opener),
    Push(Push),
    Swap(Swap),
    Pop(Pop),
}

impl Step {
    fn apply(&mut self, slot: &mut Slot<'_>) -> Result<(), Reason> {
        match self {
            Step::Strip(lan) => lan.strip(slot),
            Step::Dress(lan) => Ok(lan.dress(slot)?),
            Step::Seal(sealer) => Ok(sealer.seal(slot)?),
            Step::Open(opener) => opener.open(slot),
            Step::Push(push) => Ok(push.apply(slot)?),
            Step::Swap(swap) => Ok(swap.apply(slot)?),
            Step::Pop(pop) => Ok(pop.apply(slot)?),
        }
    }
}

/// What a node has done in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopCounters {
    /// Frames that came.
    pub taken: u64,
    /// Frames that went on.
    pub given: u64,
    /// Their bytes as they went on.
    pub given_bytes: u64,
    drops: [u64; Reason::COUNT],
}

impl HopCounters {
    /// Frames dropped for this reason.
    #[must_use]
    pub fn dropped(&self, reason: Reason) -> u64 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    /// Frames dropped, by reason; those that dropped none are left out.
    pub fn drops(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let all = Reason::ALL.iter().map(|reason| (*reason, self.dropped(*reason)));
        all.filter(|(_, count)| *count > 0)
    }
}

/// A node in one direction.
pub struct Hop {
    steps: Vec<Step>,
    gateway: Option<Gateway>,
    counters: HopCounters,
}

/// A node of a path, both directions.
pub struct Node {
    /// What it does with frames from the first node to the last.
    pub forward: Hop,
    /// What it does with the others.
    pub backward: Hop,
}

impl Hop {
    fn new(steps: Vec<Step>, gateway: Option<Gateway>) -> Hop {
        let counters =
            HopCounters { taken: 0, given: 0, given_bytes: 0, drops: [0; Reason::COUNT] };
        Hop { steps, gateway, counters }
    }

    /// A hop that leaves frames as they are: a wire.
    #[must_use]
    pub fn wire() -> Hop {
        Hop::new(Vec::new(), None)
    }

    /// A hop that seals frames, or of what is routed, the packets of a LAN.
    #[must_use]
    pub fn sealing(from: Option<Lan>, sealer: Sealer) -> Hop {
        let strip = from.map(Step::Strip);
        Hop::new(strip.into_iter().chain([Step::Seal(sealer)]).collect(), None)
    }

    /// A hop that opens frames, and of what is routed, hands the packets to a LAN.
    #[must_use]
    pub fn opening(opener: Opener, to: Option<Lan>) -> Hop {
        Hop::new([Step::Open(opener)].into_iter().chain(to.map(Step::Dress)).collect(), None)
    }

    /// Has a slow gateway behind all else that the hop does.
    #[must_use]
    pub fn behind(self, gateway: Gateway) -> Hop {
        Hop { gateway: Some(gateway), ..self }
    }

    /// What it has done.
    #[must_use]
    pub const fn counters(&self) -> &HopCounters {
        &self.counters
    }

    /// Does with the frame in the slot, which came at `now`, what the node does. The frame then goes on: at once,
    /// or at the time that is returned, by a slow gateway.
    ///
    /// # Errors
    /// The frame is dropped, which is counted; what the slot then holds means nothing.
    pub fn handle(&mut self, now: Time, slot: &mut Slot<'_>) -> Result<Option<Time>, Reason> {
        self.counters.taken += 1;
        let handled = self.try_handle(now, slot);
        match handled {
            Ok(_) => {
                self.counters.given += 1;
                self.counters.given_bytes += slot.len() as u64;
            }
            Err(reason) => {
                if let Some(count) = self.counters.drops.get_mut(reason as usize) {
                    *count += 1;
                }
            }
        }
        handled
    }

    fn try_handle(&mut self, now: Time, slot: &mut Slot<'_>) -> Result<Option<Time>, Reason> {
        for step in &mut self.steps {
            step.apply(slot)?;
        }
        match &mut self.gateway {
            None => Ok(None),
            Some(gateway) => gateway.admit(now, slot.len()).map(Some).ok_or(Reason::GatewayFull),
        }
    }
}

/// The nodes of a path, from the first to the last. Keys come from `keys`, which gives the same key each time that
/// the same is asked for: once to seal and once to open.
///
/// # Errors
/// There is no such path, the plan does not fit it, or a key has the wrong length.
pub fn nodes(
    topology: &Topology,
    plan: &Plan,
    mut keys: impl FnMut(KeyId) -> Secret,
) -> Result<Vec<Node>, PlaneError> {
    topology.check()?;
    let misfit = PlaneError::Plan { links: plan.links.len(), hops: topology.hops };
    if plan.links.len() != usize::from(topology.hops) {
        return Err(misfit);
    }
    let mut half = |way: Way, at: u8| {
        let mut making = Making { topology, plan, way, keys: &mut keys };
        making.hop(at)
    };
    let both = |node: u8| -> Result<Node, PlaneError> {
        let backward = topology.hops.saturating_sub(node);
        Ok(Node { forward: half(Way::Forward, node)?, backward: half(Way::Backward, backward)? })
    };
    (0..topology.nodes()).map(both).collect()
}

/// A hop in the making.
struct Making<'m, K> {
    topology: &'m Topology,
    plan: &'m Plan,
    way: Way,
    keys: &'m mut K,
}

impl<K: FnMut(KeyId) -> Secret> Making<'_, K> {
    /// The node that is the `at`th on the way, from 0.
    fn hop(&mut self, at: u8) -> Result<Hop, PlaneError> {
        let Topology { protection, reach, hops, pseudowire, gateway, .. } = *self.topology;
        let (is_first, is_last) = (at == 0, at == hops);
        let is_routed = !self.topology.carries_ethernet();
        let is_wrapped = protection != Protection::Plain || is_routed;
        let every = reach == Reach::EveryHop;
        let mut steps = Vec::with_capacity(3);
        if is_wrapped && !is_first && (every || is_last) {
            steps.push(Step::Open(self.opener(at)?));
        }
        if is_routed && is_first {
            steps.push(Step::Strip(self.plan.lan(self.way, false)));
        }
        if is_routed && is_last {
            steps.push(Step::Dress(self.plan.lan(self.way, true)));
        }
        if pseudowire && !is_first && !is_last {
            steps.push(self.switch(at)?);
        }
        if is_wrapped && !is_last && (every || is_first) {
            steps.push(Step::Seal(self.sealer(at.saturating_add(1))?));
        }
        let gateway =
            gateway.filter(|_| is_last).map(|rate| Gateway::new(GatewayOptions::of(rate)));
        Ok(Hop::new(steps, gateway))
    }

    /// What a provider's router does with the pseudowire.
    fn switch(&self, at: u8) -> Result<Step, PlaneError> {
        let outgoing = at.saturating_add(1);
        Ok(if at == 1 {
            Step::Push(Push { link: self.labelled(outgoing)? })
        } else if outgoing == self.topology.hops {
            Step::Pop(Pop { link: self.labelled(at)? })
        } else {
            let (incoming, outgoing) = (self.labelled(at)?, self.labelled(outgoing)?);
            Step::Swap(Swap { incoming, outgoing })
        })
    }

    fn link(&self, at: u8) -> Result<(u8, Station, Station), PlaneError> {
        let misfit = PlaneError::Plan { links: self.plan.links.len(), hops: self.topology.hops };
        self.plan.link(self.way, at).ok_or(misfit)
    }

    /// The link that is the `at`th on the way, with the pseudowire's label on it.
    fn labelled(&self, at: u8) -> Result<Link, PlaneError> {
        let (number, from, to) = self.link(at)?;
        let base = if self.way == Way::Forward { 100 } else { 200 };
        let misfit = PlaneError::Plan { links: self.plan.links.len(), hops: self.topology.hops };
        let label = Label::new(base + u32::from(number)).ok_or(misfit)?;
        Ok(Link { from: from.mac, to: to.mac, label })
    }

    /// The protected stretch that the link which is the `at`th on the way belongs to: its number, 0 from end to end,
    /// and its ends as the sender sees them.
    fn stretch(&self, at: u8) -> Result<(u8, Underlay), PlaneError> {
        if self.topology.reach == Reach::EveryHop {
            let (number, own, peer) = self.link(at)?;
            return Ok((number, self.underlay(own, peer)));
        }
        let ((_, first, _), (_, _, last)) = (self.link(1)?, self.link(self.topology.hops)?);
        let [left, right] = self.plan.through;
        let (own, peer) = if self.way == Way::Forward { (left, right) } else { (right, left) };
        let (own, peer) = (Station { ip: own, ..first }, Station { ip: peer, ..last });
        Ok((0, self.underlay(own, peer)))
    }

    /// The network under a tunnel between two stations.
    fn underlay(&self, own: Station, peer: Station) -> Underlay {
        let Carrier { pppoe, nat_traversal, .. } = self.topology.carrier;
        Underlay { own, peer, session: pppoe.then_some(PPPOE_SESSION), nat_traversal }
    }

    /// A number of its own for each stretch and way, from `base` on and not 0.
    fn index(&self, base: u32, stretch: u8) -> u32 {
        let way = if self.way == Way::Forward { 1 } else { 2 };
        base + 0x10 * u32::from(stretch) + way
    }

    fn key(&mut self, link: u8, len: usize) -> Secret {
        (self.keys)(KeyId { link, way: self.way, len })
    }

    fn association(&mut self, stretch: u8) -> Result<Association, PlaneError> {
        let suite = self.topology.cipher.macsec().ok_or_else(|| self.cannot("MACsec"))?;
        let key = self.key(stretch, suite.key_len());
        let ssci = u32::from(self.way == Way::Backward) + 1;
        let extended = suite.is_extended().then_some(Extended { ssci, salt: SALT });
        let confidentiality = Confidentiality::All;
        Ok(Association { number: 0, suite, key, extended, confidentiality })
    }

    fn cannot(&self, what: &'static str) -> PlaneError {
        PlaneError::Key(KeyError::Unable { cipher: self.topology.cipher.name(), what })
    }

    fn parameters(&mut self, stretch: u8) -> Result<esp::Parameters, PlaneError> {
        let suite = self.topology.cipher.esp().ok_or_else(|| self.cannot("ESP"))?;
        let key = self.key(stretch, suite.key_material());
        Ok(esp::Parameters { spi: self.index(ASSOCIATIONS, stretch), suite, key, extended: false })
    }

    fn transmit(&mut self, stretch: u8, underlay: Underlay) -> Result<Box<Transmit>, PlaneError> {
        let sci = sci(underlay.own);
        let association = TransmitAssociation::new(self.association(stretch)?, sci, 1)?;
        let mut transmit = Transmit::new(sci, Naming::Explicit);
        transmit.install(association);
        Ok(Box::new(transmit))
    }

    /// `underlay` as the sender sees it.
    fn receive(&mut self, stretch: u8, underlay: Underlay) -> Result<Box<Receive>, PlaneError> {
        let sci = sci(underlay.own);
        let association = ReceiveAssociation::new(self.association(stretch)?, sci)?;
        let mut receive = Receive::new(Validation::Strict, Some(MACSEC_WINDOW));
        receive.install(sci, association);
        Ok(Box::new(receive))
    }

    fn sealer(&mut self, at: u8) -> Result<Sealer, PlaneError> {
        let (stretch, underlay) = self.stretch(at)?;
        let (session, port) = (self.index(SESSIONS, stretch), port(stretch));
        Ok(match self.topology.protection {
            Protection::Plain if self.topology.carries_ethernet() => Sealer::Plain,
            Protection::Plain => Sealer::Routed { underlay },
            Protection::MacSec => Sealer::MacSec(self.transmit(stretch, underlay)?),
            Protection::Esp => {
                let outbound = Box::new(Outbound::new(self.parameters(stretch)?)?);
                Sealer::Esp { outbound, underlay }
            }
            Protection::L2tp => {
                let outbound = Box::new(Outbound::new(self.parameters(stretch)?)?);
                Sealer::L2tp { outbound, underlay, session }
            }
            Protection::WireGuard => {
                let index = self.index(ASSOCIATIONS, stretch);
                let sender = Box::new(Sender::new(index, self.key(stretch, WIREGUARD_KEY))?);
                Sealer::WireGuard { sender, underlay, port }
            }
            Protection::MacSecVxlan => {
                let transmit = self.transmit(stretch, underlay)?;
                Sealer::MacSecVxlan { transmit, underlay, network: network(stretch) }
            }
        })
    }

    fn opener(&mut self, at: u8) -> Result<Opener, PlaneError> {
        let (stretch, sender) = self.stretch(at)?;
        let (session, underlay) = (self.index(SESSIONS, stretch), sender.turned());
        let port = port(stretch);
        Ok(match self.topology.protection {
            Protection::Plain if self.topology.carries_ethernet() => Opener::Plain,
            Protection::Plain => Opener::Routed { underlay },
            Protection::MacSec => Opener::MacSec(self.receive(stretch, sender)?),
            Protection::Esp => {
                let inbound = Inbound::new(self.parameters(stretch)?, Some(ESP_WINDOW))?;
                Opener::Esp { inbound: Box::new(inbound), underlay }
            }
            Protection::L2tp => {
                let inbound = Inbound::new(self.parameters(stretch)?, Some(ESP_WINDOW))?;
                Opener::L2tp { inbound: Box::new(inbound), underlay, session }
            }
            Protection::WireGuard => {
                let index = self.index(ASSOCIATIONS, stretch);
                let receiver = Receiver::new(index, self.key(stretch, WIREGUARD_KEY))?;
                Opener::WireGuard { receiver: Box::new(receiver), underlay, port }
            }
            Protection::MacSecVxlan => {
                let receive = self.receive(stretch, sender)?;
                Opener::MacSecVxlan { receive, underlay, network: network(stretch) }
            }
        })
    }
}

/// Bytes of WireGuard's keys.
const WIREGUARD_KEY: usize = 32;
/// From where ESP's and WireGuard's indices are numbered; up to 255 are reserved (RFC 4303 §2.1).
const ASSOCIATIONS: u32 = 0x1000;
/// From where L2TP's sessions are numbered.
const SESSIONS: u32 = 0x100;
/// The salt of MACsec's extended numbers: each way has a key of its own, so that it need not differ.
const SALT: [u8; 12] = [0x5a; 12];

/// The VXLAN network of a stretch.
fn network(stretch: u8) -> u32 {
    1000 + u32::from(stretch)
}

/// The port of both ends of a WireGuard tunnel.
fn port(stretch: u8) -> u16 {
    WIREGUARD_PORT + u16::from(stretch)
}

/// The channel of a station.
fn sci(station: Station) -> Sci {
    Sci::new(station.mac, Sci::END_STATION_PORT)
}
