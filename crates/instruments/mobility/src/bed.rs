//! The bed.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daemons::{Daemon, dhcpcd, dnsmasq, kernel};
use handoff::{Address, Event, Run, Scenario, Source, What};
use l2vpn::kernel::Script;
use lab::{Lab, Node};
use packet::clock::monotonic;
use units::{Delay, Time};

use crate::events::{self, Filter};
use crate::layout::{self, BRIDGE, Layout, Site};
use crate::mover::{self, Mover};
use crate::traffic::{Ends, FRAME, since};
use crate::tunnel::{Keepers, Pipes};
use crate::wiring::{self, Nodes};
use crate::{Error, holds, radio, sites, tcp, tunnel, wait};

/// How long the host and its peer may take to hear each other once the host is attached.
const REACHED: Duration = Duration::from_secs(60);
/// How long everything is left alone before a run: announcements are over, and nothing is on its way.
const CALM: Duration = Duration::from_secs(3);
/// How long a security association may take to follow the host before another is made.
const FOLLOWED: Duration = Duration::from_secs(20);
/// The trigger is moved within a beacon's interval, so that runs do not all meet the same beacon.
const BEACON: Duration = Duration::from_micros(102_400);

/// An address of documentation (RFC 5737) that nobody talks to.
const STAYS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Two sites, what joins them, and a host that moves. It goes before its lab.
#[derive(Debug)]
pub struct Bed {
    scenario: Scenario,
    layout: Layout,
    ends: Ends,
    mover: Mover,
    clients: Vec<Daemon>,
    keepers: Keepers,
    watchers: Vec<Daemon>,
    servers: Vec<Daemon>,
    pipes: Pipes,
    filter: Filter,
    nodes: Nodes,
    has_moved: bool,
}

impl Bed {
    /// Whether a scenario can be stood up at all.
    ///
    /// # Errors
    /// [`Error::Scenario`]: what cannot be, and what can.
    pub fn check(scenario: &Scenario) -> Result<(), Error> {
        layout::check(scenario)
    }

    /// Stands it up in a lab that has no other bed. Keys and addresses are made of `seed`.
    ///
    /// # Errors
    /// [`Error::Scenario`]; what the kernel or a daemon refuses.
    pub fn stand(lab: &mut Lab, scenario: &Scenario, seed: u64) -> Result<Bed, Error> {
        layout::check(scenario)?;
        radio::prepare()?;
        let layout = Layout::of(scenario);
        let cables = [0, 1].map(|at| {
            let place = scenario.attachments.get(at);
            place.is_some_and(|place| place.access == handoff::Access::Lan)
        });
        let nodes = wiring::build(lab, scenario.core_delay, cables)?;
        let pipes = tunnel::pipes(&nodes, scenario, seed)?;
        for site in Site::ALL {
            let at = site.index();
            sites::near(layout, scenario.measures, site, &pipes.near[at], cables[at])
                .apply(nodes.site(site))?;
            if scenario.measures.proxy_arp && layout.is_flat() {
                sites::known_behind(nodes.site(site), &pipes.near[at])?;
            }
        }
        sites::far(layout, scenario.measures, &pipes.far).apply(&nodes.far)?;
        sites::peer(layout).apply(&nodes.peer)?;
        let mover = Mover::stand(&nodes, scenario, seed)?;
        let servers = servers(&nodes, layout, scenario, &mover)?;
        holds::watch()?;
        let keepers = Keepers::start(&nodes, scenario, seed)?;
        let clients = addresses(&nodes, layout, scenario, &mover)?;
        let watchers = vec![
            kernel::routes(&nodes.host)?,
            kernel::radios(&nodes.host)?,
            kernel::bridges(&nodes.far)?,
        ];
        let (interfaces, macs) = mover.interfaces()?.into_iter().unzip();
        let next_hops = Site::ALL.iter().map(|site| layout.next_hop(*site).to_string()).collect();
        let filter = Filter { interfaces, macs, next_hops };
        let ends = Ends::open(&nodes.host, &nodes.peer, layout.peer())?;
        let scenario = scenario.clone();
        Ok(Bed {
            scenario,
            layout,
            ends,
            mover,
            clients,
            keepers,
            watchers,
            servers,
            pipes,
            filter,
            nodes,
            has_moved: false,
        })
    }

    /// Attaches the host to its first place, sends frames both ways for `trial`, has the host move after a quarter of
    /// it, and says what was seen. `seed` moves the trigger by up to a beacon interval.
    ///
    /// # Errors
    /// The host cannot be attached; a daemon died.
    pub fn run(&mut self, frames_per_second: u32, trial: Delay, seed: u64) -> Result<Run, Error> {
        self.ends.connect(None);
        self.home()?;
        self.has_moved = true;
        self.mover.prepare()?;
        std::thread::sleep(CALM);
        self.forget_leases()?;
        let addresses = self.connection()?;
        // What was said until now is of no run.
        self.said()?;
        let began = monotonic();
        let pulled_at = trial.duration() / 4 + jitter(seed);
        let mover = &self.mover;
        let (ends, host) = (&mut self.ends, &self.nodes.host);
        let over = AtomicBool::new(false);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (outcome, pulled) = std::thread::scope(|scope| {
            let pull = move || {
                std::thread::sleep(pulled_at);
                mover.pull(monotonic)
            };
            if let Some(addresses) = &addresses {
                let manage = || tcp::manage(host, addresses, &over);
                thread("addresses").spawn_scoped(scope, manage).map_err(lab::Error::Thread)?;
            }
            let puller = thread("trigger").spawn_scoped(scope, pull);
            let puller = puller.map_err(|error| {
                over.store(true, Ordering::Relaxed);
                lab::Error::Thread(error)
            })?;
            let outcome = ends.run(frames_per_second, trial.duration(), began);
            over.store(true, Ordering::Relaxed);
            Ok::<_, Error>((outcome, puller.join()))
        })?;
        let outcome = outcome?;
        let pulled = pulled.unwrap_or_else(|_| Err(wait::vain("the trigger", Duration::ZERO)));
        let (at, detail) = pulled?;
        let triggered =
            Event { at: since(at, began), source: Source::Control, what: What::Triggered, detail };
        let ended = Event {
            at: Time::ZERO + trial.duration(),
            source: Source::Control,
            what: What::Ended,
            detail: String::new(),
        };
        let mut more = outcome.events;
        more.extend([triggered, ended]);
        let events = events::events(self.said()?, more, &self.filter, began);
        let (up, down, busy) = (outcome.up, outcome.down, outcome.busy);
        Ok(Run { frames_per_second, frame: FRAME, trial, events, up, down, busy })
    }

    /// Opens a connection where frames are to go by one; who says which addresses the host gets later.
    fn connection(&mut self) -> Result<Option<Daemon>, Error> {
        if !self.scenario.measures.mptcp {
            return Ok(None);
        }
        let (host, peer) = (&self.nodes.host, &self.nodes.peer);
        self.ends.connect(Some(tcp::open(host, peer, self.layout.peer())?));
        Ok(Some(tcp::watch(host)?))
    }

    /// Attaches the host to its first place, until it and its peer hear each other.
    fn home(&mut self) -> Result<(), Error> {
        self.mover.leave()?;
        self.ends.forget();
        self.mover.home()?;
        self.fix_neighbours()?;
        let began = monotonic();
        let deadline = began + REACHED;
        // An association that is there already has time to follow the host.
        let mut initiate_at = Some(if self.has_moved { began + FOLLOWED } else { began });
        while !self.ends.hear_each_other()? {
            let is_time = initiate_at.is_some_and(|at| monotonic() >= at);
            if is_time && self.has_address()? {
                initiate_at = None;
                self.keepers.initiate()?;
            }
            if monotonic() >= deadline {
                let last = self.state();
                let what = "the host and its peer to hear each other".to_owned();
                return Err(Error::Vain { what, seconds: REACHED.as_secs(), last });
            }
        }
        Ok(())
    }

    /// Whether the host can reach the far edge.
    fn has_address(&self) -> Result<bool, Error> {
        let said = mover::described(&self.nodes.host);
        let lan = self.layout.lan(Site::First, 0).to_string();
        let network = lan.trim_end_matches('0').to_owned();
        Ok(said.iter().any(|line| line.contains(&format!("inet {network}"))))
    }

    /// What can be seen of the host and of those who watch, for an error.
    fn state(&self) -> Vec<String> {
        let mut lines = mover::described(&self.nodes.host);
        let said = self.said().map(|said| said.into_iter().map(|seen| seen.line).collect());
        let said: Vec<String> = said.unwrap_or_else(|error: Error| vec![error.to_string()]);
        lines.extend(said.into_iter().rev().take(40).rev());
        lines
    }

    /// What all who watch have said since they were last asked.
    fn said(&self) -> Result<Vec<daemons::Seen>, Error> {
        let mut all = holds::take()?;
        for daemon in self.watchers.iter().chain(self.mover.daemons()).chain(&self.clients) {
            all.extend(daemon.take()?);
        }
        all.extend(self.keepers.host().map(Daemon::take).transpose()?.unwrap_or_default());
        // Nobody reads these, but they must run, and their words must not pile up.
        let others = self.servers.iter().chain(&self.pipes.daemons).chain(self.mover.others());
        for daemon in others.chain(self.keepers.daemons()) {
            daemon.take()?;
        }
        Ok(all)
    }

    /// Leases of other networks than the host's: at each attachment elsewhere it begins anew.
    fn forget_leases(&self) -> Result<(), Error> {
        let but_for = self.mover.ssid(Site::First);
        let mut all = self.clients.iter().map(|client| dhcpcd::forget(client, but_for));
        let forgotten = all.try_for_each(|forgotten| forgotten);
        forgotten.map_err(|source| Error::Traffic { doing: "forgetting leases", source })
    }

    /// Has the host and whom it sends through know each other for good.
    fn fix_neighbours(&self) -> Result<(), Error> {
        if !self.scenario.measures.fixed_neighbours {
            return Ok(());
        }
        let (layout, nodes) = (self.layout, &self.nodes);
        let (interfaces, macs): (Vec<_>, Vec<_>) = self.mover.interfaces()?.into_iter().unzip();
        let mut of_host = Script::new();
        for site in Site::ALL {
            let (node, device, mac) = neighbour(layout, site, nodes)?;
            let address = layout.next_hop(site);
            for interface in &interfaces {
                forever(&mut of_host, address, &mac, interface);
            }
            let mut of_other = Script::new();
            for (address, mac) in of_host_at(layout, self.scenario.address, site, &macs) {
                forever(&mut of_other, address, mac, &device);
            }
            of_other.apply(node)?;
        }
        Ok(of_host.apply(&nodes.host)?)
    }
}

/// An entry of a neighbour table that stays.
fn forever(script: &mut Script, address: Ipv4Addr, mac: &str, device: &str) {
    script.ip(format_args!("neighbour replace {address} lladdr {mac} dev {device} nud permanent"));
}

/// The addresses that the host will have at a site, and the Ethernet address of each.
fn of_host_at(
    layout: Layout,
    address: Address,
    site: Site,
    macs: &[String],
) -> Vec<(Ipv4Addr, &str)> {
    match (address, macs) {
        (Address::Kept, [only]) => vec![(layout.kept(), only.as_str())],
        // All interfaces have it: whose Ethernet address goes with it changes with the move.
        (Address::Kept, _) => Vec::new(),
        _ => (0..).zip(macs).map(|(at, mac)| (layout.reserved(site, at), mac.as_str())).collect(),
    }
}

/// Whom the host sends through at a site: its node, its interface and that one's Ethernet address.
fn neighbour(layout: Layout, site: Site, nodes: &Nodes) -> Result<(&Node, String, String), Error> {
    let (node, device) = match (layout.is_flat(), layout.one) {
        (true, _) => (&nodes.peer, layout::link::name(layout::link::PEER)),
        (false, true) => (&nodes.far, BRIDGE.to_owned()),
        (false, false) => (nodes.site(site), BRIDGE.to_owned()),
    };
    let devices = node.devices()?;
    let found = devices.iter().find(|found| found.name == device);
    let mac = found.map(|device| radio::written(&device.mac)).unwrap_or_default();
    Ok((node, device, mac))
}

/// DHCP's servers: one for each layer-2 domain.
fn servers(
    nodes: &Nodes,
    layout: Layout,
    scenario: &Scenario,
    mover: &Mover,
) -> Result<Vec<Daemon>, Error> {
    if scenario.address == Address::Kept {
        return Ok(Vec::new());
    }
    let is_fixed = scenario.measures.fixed_neighbours;
    let macs = if is_fixed { mover.interfaces()? } else { Vec::new() };
    let macs: Vec<String> = macs.into_iter().map(|(_, mac)| mac).collect();
    let server = |site: Site| {
        let (first, last) = layout.pool(site);
        dnsmasq::Server {
            interface: BRIDGE.to_owned(),
            first,
            last,
            router: layout.gateway(site),
            reserved: of_host_at(layout, scenario.address, site, &macs)
                .into_iter()
                .map(|(address, mac)| (mac.to_owned(), address))
                .collect(),
            rapid_commit: scenario.address == Address::DhcpRapidCommit,
        }
    };
    if layout.one {
        return Ok(vec![server(Site::First).start(&nodes.far)?]);
    }
    Site::ALL.iter().map(|site| Ok(server(*site).start(nodes.site(*site))?)).collect()
}

/// Gives the host its address, or has it ask for one by each interface.
fn addresses(
    nodes: &Nodes,
    layout: Layout,
    scenario: &Scenario,
    mover: &Mover,
) -> Result<Vec<Daemon>, Error> {
    let interfaces: Vec<String> = mover.interfaces()?.into_iter().map(|(name, _)| name).collect();
    if scenario.measures.announce {
        for interface in &interfaces {
            nodes.host.sysctl(&format!("net.ipv4.conf.{interface}.arp_notify"), "1")?;
        }
    }
    if scenario.measures.fixed_neighbours && scenario.address != Address::Kept {
        // An interface that loses its last address forgets all neighbours (Linux: fib_disable_ip): it keeps this one.
        let mut script = Script::new();
        for interface in &interfaces {
            script.ip(format_args!("address add {STAYS}/32 dev {interface} scope link"));
        }
        script.apply(&nodes.host)?;
    }
    if scenario.address == Address::Kept {
        let mut script = Script::new();
        for interface in &interfaces {
            script.ip(format_args!("address add {}/24 dev {interface}", layout.kept()));
        }
        if !layout.is_flat()
            && let Some(interface) = interfaces.first()
        {
            let gateway = layout.gateway(Site::First);
            script.ip(format_args!("link set dev {interface} up"));
            script.ip(format_args!("route add default via {gateway} dev {interface}"));
        }
        script.apply(&nodes.host)?;
        return Ok(Vec::new());
    }
    let client = |interface| dhcpcd::Client {
        interface,
        rapid_commit: scenario.address == Address::DhcpRapidCommit,
        checks: !scenario.measures.no_duplicate_detection,
    };
    interfaces.into_iter().map(|name| Ok(client(name).start(&nodes.host)?)).collect()
}

/// A duration within a beacon's interval, by a seed.
fn jitter(seed: u64) -> Duration {
    // The odd number nearest to 2^64 divided by the golden ratio: neighbours get far apart.
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let interval = BEACON.as_nanos() as u64;
    Duration::from_nanos(mixed.saturating_mul(interval) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_at_each_site_by_each_of_its_interfaces() {
        let macs = ["02:a".to_owned(), "02:b".to_owned()];
        let each = Layout { one: false, host: false };
        for site in Site::ALL {
            let known = of_host_at(each, Address::Dhcp, site, &macs);
            let (first, last) = each.pool(site);
            assert!(known.iter().all(|(address, _)| (first..=last).contains(address)));
            let of: Vec<&str> = known.iter().map(|(_, mac)| *mac).collect();
            assert_eq!(of, macs);
        }
        let flat = Layout { one: true, host: false };
        let kept = |macs| of_host_at(flat, Address::Kept, Site::Second, macs);
        assert_eq!(kept(&macs[..1]), [(flat.kept(), "02:a")]);
        assert_eq!(kept(&macs), []);
    }

    #[test]
    fn triggers_are_spread_over_a_beacons_interval() {
        let all: Vec<Duration> = (0..100).map(jitter).collect();
        assert!(all.iter().all(|jitter| *jitter < BEACON));
        let late = all.iter().filter(|jitter| **jitter > BEACON / 2).count();
        assert!((35..65).contains(&late), "{late}");
        assert_eq!(jitter(5), jitter(5));
    }
}
