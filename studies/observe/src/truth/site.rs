//! The testbed of this study: clients of each population behind a link of their own, a server for each
//! scenario, captures at the server's end of each link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conn::{ClientPlan, ClientTransport, ServerTransport};
use futures_util::future::join_all;
use lab::LabOptions;
use linkmodel::{Jitter, LinkConfig, Path};
use testbed::{Capture, Error, Testbed};
use tls::{Identity, KeyType};
use tracker::Connection;

use super::batch::{Ends, Logged};
use super::boxes::{self, FirstHello};
use super::dial::{Dial, Dialled};
use super::host::Host;
use super::point::Point;
use super::population::Population;
use super::scenario::Scenario;
use crate::digest::Frames;

/// How long any attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client over TCP waits for the server's end at most.
const LINGER: Duration = Duration::from_secs(1);

/// How often the wish to stop is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The name at which sessions begin that are resumed at another, where there is one name alone.
const ELSEWHERE: &str = "elsewhere.wiretax.test";

/// What is reached: a scenario's server, by one of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    pub scenario: Scenario,
    /// The name's place in [`Names`].
    pub name: usize,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (name {})", self.scenario, self.name + 1)
    }
}

/// The names that are asked for, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Vec<Host>);

impl Names {
    pub(super) fn of<'a>(hosts: impl Iterator<Item = &'a Host>) -> Names {
        let once: BTreeSet<&Host> = hosts.collect();
        Names(once.into_iter().cloned().collect())
    }

    /// What a point's clients reach.
    pub(super) fn target(&self, point: &Point) -> Target {
        let name = self.0.binary_search(&point.host).unwrap_or_default();
        Target { scenario: point.scenario, name }
    }

    fn name(&self, target: Target) -> &str {
        self.0.get(target.name).map_or(ELSEWHERE, Host::name)
    }

    /// Where a session begins that is resumed at this name: the next one.
    fn elsewhere(&self, target: Target) -> &str {
        let next = (target.name + 1).checked_rem(self.0.len()).unwrap_or_default();
        let other = self.0.get(next).filter(|_| next != target.name);
        other.map_or(ELSEWHERE, Host::name)
    }

    /// All names of the servers' certificates.
    fn certified(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(Host::name).collect();
        if names.len() < 2 {
            names.push(ELSEWHERE);
        }
        names
    }
}

pub(super) struct Site {
    // First, so that they end before the lab does.
    captures: Vec<Capture>,
    bed: Testbed<Target>,
    populations: Vec<Population>,
    /// How clients reach a target once they have a session of another name.
    crossings: Vec<(usize, Target, ClientTransport)>,
    /// The ports of the boxes that clients meet, and what each population's client says there at first.
    boxes: BTreeMap<Scenario, u16>,
    firsts: BTreeMap<(usize, Target), tls::Client>,
}

impl Site {
    /// A server for each scenario, and the clients of each population behind a link of their own.
    pub(super) fn new(
        options: LabOptions,
        populations: &[Population],
        targets: &BTreeMap<Target, u32>,
        names: Names,
    ) -> Result<Site, Error> {
        let links = populations.iter().map(|population| (population.name(), path(*population)));
        let mut bed = Testbed::new(options, &links.collect::<Vec<_>>())?;
        let certified = names.certified();
        let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &certified)?);
        let stranger = Identity::generate(KeyType::EcdsaP256, 1, &certified)?;
        let (mut crossings, mut boxes) = (Vec::new(), BTreeMap::new());
        let mut firsts = BTreeMap::new();
        let mut serving: BTreeMap<Scenario, Target> = BTreeMap::new();
        for target in targets.keys().copied() {
            let scenario = target.scenario;
            match serving.get(&scenario) {
                Some(first) => bed.share(target, *first),
                None => {
                    bed.serve(target, server_transport(scenario, &identity)?)?;
                    serving.insert(scenario, target);
                    if let Some(met) = scenario.meets_box() {
                        boxes.insert(scenario, boxes::set_up(bed.server(), met.fate)?);
                    }
                }
            }
            for (client, population) in populations.iter().enumerate() {
                let transport = |name: &str| {
                    client_transport(scenario, *population, name, &identity, &stranger)
                };
                let first = if scenario.crosses_names() {
                    let elsewhere = transport(names.elsewhere(target))?;
                    let here = at_name(&elsewhere, names.name(target))?;
                    crossings.push((client, target, here));
                    elsewhere
                } else {
                    transport(names.name(target))?
                };
                if let ClientTransport::Tcp { tls: Some(second), .. } = &first
                    && let Some(config) = scenario.first_config(second.config())
                {
                    firsts.insert((client, target), tls::Client::new(&config)?);
                }
                bed.reach(client, target, first, scenario.early_data());
            }
        }
        let (captures, populations) = (Vec::new(), populations.to_vec());
        Ok(Site { captures, bed, populations, crossings, boxes, firsts })
    }

    /// As many connections to each target that is brought tickets, for these, by each population. The
    /// ends of these connections, which are not counted; `None` once `stop` says so.
    pub(super) fn fetch_tickets(
        &mut self,
        counts: &BTreeMap<Target, u32>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Ends>>, Error> {
        let mut ends = Vec::new();
        for (target, count) in counts.iter().filter(|(target, _)| target.scenario.brings_ticket()) {
            if stop() {
                return Ok(None);
            }
            let count = *count as usize;
            let made = self.bed.prime(target, count, count)?;
            ends.extend(made.into_iter().map(|(client, server)| (client, server.port())));
        }
        for (client, target, transport) in std::mem::take(&mut self.crossings) {
            self.bed.reach_by(client, &target, transport);
        }
        self.bed.settle()?;
        Ok(Some(ends))
    }

    /// Makes a batch of connections for each population, all clients together: each has a target and the
    /// time to wait before it. `None` once `stop` says so.
    pub(super) fn dial(
        &mut self,
        batches: Vec<Vec<Vec<(Target, Duration)>>>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<Vec<Dialled>>>>, Error> {
        let mut waves = Vec::new();
        for (number, clients) in batches.into_iter().enumerate() {
            let mut all: Vec<Vec<Dial>> = Vec::with_capacity(clients.len());
            for series in clients {
                let dials = series.into_iter().filter_map(|(target, after)| {
                    let (scenario, plan) = (target.scenario, self.plan(number, target)?);
                    let first = self.first_hello(number, target, plan.server);
                    Some(Dial { scenario, plan, first, after })
                });
                all.push(dials.collect());
            }
            let together = move || join_all(all.into_iter().map(Dial::series));
            waves.push(self.bed.client(number)?.spawn(together));
        }
        while !waves.iter().all(lab::JoinHandle::is_finished) {
            if stop() {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
        waves.into_iter().map(|wave| Ok(wave.join()?)).collect::<Result<_, Error>>().map(Some)
    }

    /// A connection of a population's client; `None` to a target that was not set up.
    fn plan(&mut self, client: usize, target: Target) -> Option<ClientPlan> {
        let (plan, scenario) = (self.bed.plan(client, &target)?, target.scenario);
        let linger = if scenario.is_quic() { plan.linger } else { LINGER };
        Some(ClientPlan { think: scenario.think(), timeout: PATIENCE, linger, ..plan })
    }

    /// What a client says to the box on its way to a server, if there is one.
    fn first_hello(&self, client: usize, target: Target, server: SocketAddr) -> Option<FirstHello> {
        let port = *self.boxes.get(&target.scenario)?;
        let fate = target.scenario.meets_box()?.fate;
        let client = self.firsts.get(&(client, target))?.clone();
        Some(FirstHello { server: SocketAddr::new(server.ip(), port), client, fate })
    }

    /// Captures at the server's end of each link. What an earlier session kept in the folder stays.
    pub(super) fn start_captures(&mut self, folder: Option<&FilePath>) -> Result<(), Error> {
        for (client, population) in self.populations.iter().enumerate() {
            let file = folder.map(|folder| new_file(folder, population.name()));
            self.captures.push(self.bed.capture_at_server(client, file)?);
        }
        Ok(())
    }

    /// What the servers have logged since they were last asked.
    pub(super) fn logs(&self) -> Vec<Logged> {
        let logged = self.bed.logged().into_iter();
        logged
            .map(|(target, port, record)| Logged { scenario: target.scenario, port, record })
            .collect()
    }

    /// Frames of connections that were captured until now.
    pub(super) fn frames(&self) -> u64 {
        self.captures.iter().map(Capture::followed).sum()
    }

    /// What each population's capture has counted until now, in the order of the populations.
    pub(super) fn counted(&self) -> Vec<Frames> {
        self.captures.iter().map(|capture| Frames::from(&capture.counters())).collect()
    }

    /// Each population's records since they were last asked for, of connections that go on too.
    pub(super) fn records(&self) -> Vec<Vec<Connection>> {
        self.captures.iter().map(Capture::connections).collect()
    }

    /// Ends the captures. Frames that they lost.
    pub(super) fn finish(mut self) -> Result<u64, Error> {
        let stopped = std::mem::take(&mut self.captures).into_iter().map(Capture::stop);
        stopped.map(|stopped| Ok(stopped?.1)).sum()
    }
}

/// A capture file that is not there yet: `wifi.pcapng`, or with a number behind the name.
fn new_file(folder: &FilePath, name: &str) -> PathBuf {
    let numbered = (2u32..1000).map(|number| format!("{name}-{number}.pcapng"));
    let files = std::iter::once(format!("{name}.pcapng")).chain(numbered);
    let mut paths = files.map(|file| folder.join(file));
    paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| folder.join(name))
}

fn path(population: Population) -> Path {
    let mut path = Path::symmetric(population.round_trip().into());
    let with_jitter =
        |link: &mut LinkConfig| link.jitter = Jitter::Normal(population.jitter().into());
    with_jitter(&mut path.forward);
    with_jitter(&mut path.backward);
    path
}

fn client_transport(
    scenario: Scenario,
    population: Population,
    name: &str,
    identity: &Identity,
    stranger: &Identity,
) -> Result<ClientTransport, Error> {
    if scenario.is_quic() {
        let config = scenario.client_config(tls::Library::Rustls, name, identity, stranger);
        return Ok(ClientTransport::Quic { tls: tls::quic::client_config(&config)? });
    }
    let config = scenario.client_config(population.library(), name, identity, stranger);
    Ok(ClientTransport::tls(&tls::Client::new(&config)?))
}

/// The same client, with the tickets that it will have, at another name; over TCP alone.
fn at_name(transport: &ClientTransport, name: &str) -> Result<ClientTransport, Error> {
    match transport {
        ClientTransport::Tcp { tls: Some(client), .. } => {
            Ok(ClientTransport::tls(&client.with_name(name)?))
        }
        other => Ok(other.clone()),
    }
}

fn server_transport(
    scenario: Scenario,
    identity: &Arc<Identity>,
) -> Result<ServerTransport, Error> {
    let config = scenario.server_config(identity);
    Ok(match scenario.is_quic() {
        true => ServerTransport::quic(config),
        false => ServerTransport::tls(tls::Server::new(&config)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_begins_at_the_next_name() {
        let names = |all: &[&str]| {
            let hosts: Vec<Host> = all.iter().map(|name| name.parse().unwrap()).collect();
            Names::of(hosts.iter())
        };
        let two = names(&["b.test", "a.test", "b.test"]);
        let at = |host: &str| {
            let point = Point { host: host.parse().unwrap(), ..Point::default() };
            two.target(&point)
        };
        assert_eq!((two.name(at("b.test")), two.elsewhere(at("b.test"))), ("b.test", "a.test"));
        assert_eq!((two.name(at("a.test")), two.elsewhere(at("a.test"))), ("a.test", "b.test"));
        assert_eq!(two.certified(), ["a.test", "b.test"]);
        let one = names(&["a.test"]);
        let target = Target { scenario: Scenario::Tls13CrossName, name: 0 };
        assert_eq!((one.name(target), one.elsewhere(target)), ("a.test", ELSEWHERE));
        assert_eq!(one.certified(), ["a.test", ELSEWHERE]);
    }
}
