//! The lab: a server node, a client node and a link for each population, captures at the server.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use conn::{ClientTransport, Running, Server, ServerPlan, ServerTransport};
use futures_util::future::join_all;
use lab::{CaptureOptions, Lab, LabOptions, Link, Node};
use linkmodel::{Jitter, LinkConfig, Path};
use tls::{Identity, KeyType, Ticket};
use tracker::{Connection, Limits, LinkType, Tracker};

use super::TruthError;
use super::batch::{Ends, Logged};
use super::dial::{Dial, Dialled};
use super::population::Population;
use super::scenario::{SERVER_NAME, Scenario};

/// Longer than any attempt of a client.
const SERVER_PATIENCE: Duration = Duration::from_secs(60);
/// How long the last frames of the connections for tickets may be on the way.
const SETTLE: Duration = Duration::from_millis(300);

/// A capture that is read as it comes, and one that is kept.
struct Captures {
    tracker: Arc<Mutex<Tracker>>,
    live: lab::Capture,
    file: Option<lab::Capture>,
}

/// The clients of one population.
struct Clients {
    node: Node,
    link: Link,
    means: BTreeMap<Scenario, ClientTransport>,
    tickets: BTreeMap<Scenario, VecDeque<Ticket>>,
    population: Population,
}

pub(super) struct Site {
    // First, so that they end before the lab does.
    servers: Vec<(Scenario, Running)>,
    captures: Vec<Captures>,
    clients: Vec<Clients>,
    server: Node,
    _lab: Lab,
}

impl Site {
    /// A server for each scenario, and the clients of each population behind a link of their own.
    pub(super) fn new(
        options: LabOptions,
        populations: &[Population],
        scenarios: &[Scenario],
    ) -> Result<Site, TruthError> {
        let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[SERVER_NAME])?);
        let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[SERVER_NAME])?;
        let mut lab = Lab::new(options)?;
        let server = lab.add_node("server")?;
        let mut clients = Vec::new();
        for population in populations.iter().copied() {
            let node = lab.add_node(population.name())?;
            let link = lab.connect(&node, &server, &path(population))?;
            let mut means = BTreeMap::new();
            for scenario in scenarios.iter().copied() {
                means.insert(scenario, client_means(scenario, population, &identity, &stranger)?);
            }
            clients.push(Clients { node, link, means, tickets: BTreeMap::new(), population });
        }
        let mut servers = Vec::new();
        for scenario in scenarios.iter().copied() {
            servers.push((scenario, serve(&server, scenario, &identity)?));
        }
        Ok(Site { servers, captures: Vec::new(), clients, server, _lab: lab })
    }

    /// As many connections of each scenario that resumes, for their tickets, by each population. The
    /// ends of these connections, which are none that count.
    pub(super) fn fetch_tickets(
        &mut self,
        counts: &BTreeMap<Scenario, u32>,
    ) -> Result<Vec<Ends>, TruthError> {
        let mut ends = Vec::new();
        for (scenario, count) in counts.iter().filter(|(scenario, _)| scenario.resumes()) {
            let nodes: Vec<Node> = self.clients.iter().map(|own| own.node.clone()).collect();
            let dials = |at| {
                (0..*count).filter_map(|_| self.prepare(at, *scenario, true)).collect::<Vec<_>>()
            };
            let dials: Vec<Vec<Dial>> = (0..nodes.len()).map(dials).collect();
            let waves: Vec<_> =
                nodes.iter().zip(dials).map(|(node, dials)| start(node, dials)).collect();
            for (clients, wave) in self.clients.iter_mut().zip(waves) {
                for dialled in wave.join()? {
                    let (server, local) = (dialled.server, dialled.local);
                    ends.extend(local.map(|local| (local, server.port())));
                    let ticket = dialled.tickets.into_iter().next_back();
                    let detail = dialled.failure.unwrap_or_else(|| "the server sent none".into());
                    let ticket =
                        ticket.ok_or(TruthError::Ticket { scenario: *scenario, detail })?;
                    clients.tickets.entry(*scenario).or_default().push_back(ticket);
                }
            }
        }
        std::thread::sleep(SETTLE);
        Ok(ends)
    }

    /// A dial of a population's client; `None` of a kind that was not set up.
    fn prepare(&mut self, at: usize, scenario: Scenario, priming: bool) -> Option<Dial> {
        let (_, running) = self.servers.iter().find(|(own, _)| *own == scenario)?;
        let clients = self.clients.get_mut(at)?;
        let [_, far] = clients.link.ends();
        let server = SocketAddr::new(IpAddr::V4(far.addr4().ok()?), running.address().port());
        let ticket = match priming {
            true => None,
            false => clients.tickets.get_mut(&scenario).and_then(VecDeque::pop_front),
        };
        let transport = clients.means.get(&scenario)?.clone();
        Some(Dial { scenario, server, transport, ticket, after: Duration::ZERO, priming })
    }

    /// Makes a batch of connections for each population, all together.
    pub(super) fn dial(
        &mut self,
        batches: Vec<Vec<(Scenario, Duration)>>,
    ) -> Result<Vec<Vec<Dialled>>, TruthError> {
        let nodes: Vec<Node> = self.clients.iter().map(|own| own.node.clone()).collect();
        let mut waves = Vec::new();
        for ((at, batch), node) in batches.into_iter().enumerate().zip(&nodes) {
            let dials = batch.into_iter().filter_map(|(scenario, after)| {
                self.prepare(at, scenario, false).map(|dial| Dial { after, ..dial })
            });
            let dials = dials.collect();
            waves.push(start(node, dials));
        }
        waves.into_iter().map(|wave| Ok(wave.join()?)).collect()
    }

    /// Captures at the server's end of each link. What an earlier session kept in the folder stays.
    pub(super) fn start_captures(&mut self, folder: Option<&FilePath>) -> Result<(), TruthError> {
        for clients in &self.clients {
            let mut options = CaptureOptions::default();
            options.link = Some(clients.link.number());
            let tracker = Arc::new(Mutex::new(Tracker::new(Limits::default())));
            let filled = Arc::clone(&tracker);
            // All times on one clock, the nodes'.
            let offset = packet::clock::RealtimeOffset::measure();
            let live = self.server.capture_with(&options, move |frame| {
                let mut tracker = filled.lock().unwrap_or_else(PoisonError::into_inner);
                let at = offset.to_monotonic(frame.at);
                tracker.handle_packet(at, LinkType::Ethernet, frame.bytes, frame.original_len);
            })?;
            let file = folder.map(|folder| new_file(folder, clients.population.name()));
            let file = file.map(|file| self.server.capture_file(file, &options)).transpose()?;
            self.captures.push(Captures { tracker, live, file });
        }
        Ok(())
    }

    /// What the servers have logged since they were last asked.
    pub(super) fn logs(&self) -> Vec<Logged> {
        let of = |(scenario, running): &(Scenario, Running)| {
            let (scenario, port) = (*scenario, running.address().port());
            let logged = running.log().drain().into_iter();
            logged.map(move |record| Logged { scenario, port, record }).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of).collect()
    }

    /// Frames of connections that were captured until now.
    pub(super) fn frames(&self) -> u64 {
        let of = |captures: &Captures| captures.tracker().counters().followed;
        self.captures.iter().map(of).sum()
    }

    /// Each population's records since they were last asked for, of connections that go on too.
    pub(super) fn records(&self) -> Vec<Vec<Connection>> {
        let of = |captures: &Captures| {
            let mut tracker = captures.tracker();
            tracker.close();
            std::iter::from_fn(|| tracker.poll_connection()).collect()
        };
        self.captures.iter().map(of).collect()
    }

    /// Ends the captures. Frames that they lost.
    pub(super) fn finish(mut self) -> Result<u64, TruthError> {
        let mut lost = 0;
        for captures in std::mem::take(&mut self.captures) {
            lost += captures.live.stop()?.kernel_drops;
            if let Some(file) = captures.file {
                file.stop()?;
            }
        }
        Ok(lost)
    }
}

impl Captures {
    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A capture file that is not there yet: `wifi.pcapng`, or with a number behind the name.
fn new_file(folder: &FilePath, name: &str) -> PathBuf {
    let numbered = (2u32..1000).map(|number| format!("{name}-{number}.pcapng"));
    let files = std::iter::once(format!("{name}.pcapng")).chain(numbered);
    let mut paths = files.map(|file| folder.join(file));
    paths.find(|path| !path.exists()).unwrap_or_else(|| folder.join(name))
}

/// Makes connections, all together, at a node.
fn start(node: &Node, dials: Vec<Dial>) -> lab::JoinHandle<Vec<Dialled>> {
    node.spawn(move || async move { join_all(dials.into_iter().map(Dial::run)).await })
}

fn path(population: Population) -> Path {
    let mut path = Path::symmetric(population.round_trip().into());
    let with_jitter =
        |link: &mut LinkConfig| link.jitter = Jitter::Normal(population.jitter().into());
    with_jitter(&mut path.forward);
    with_jitter(&mut path.backward);
    path
}

fn client_means(
    scenario: Scenario,
    population: Population,
    identity: &Identity,
    stranger: &Identity,
) -> Result<ClientTransport, TruthError> {
    if scenario.is_quic() {
        let config = scenario.client_config(tls::Library::Rustls, identity, stranger);
        return Ok(ClientTransport::Quic { tls: tls::quic::client_config(&config)? });
    }
    let config = scenario.client_config(population.library(), identity, stranger);
    Ok(ClientTransport::tls(&tls::Client::new(&config)?))
}

/// A server of a kind, reached by every link.
fn serve(
    server: &Node,
    scenario: Scenario,
    identity: &Arc<Identity>,
) -> Result<Running, TruthError> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let config = scenario.server_config(identity);
    let transport = match scenario.is_quic() {
        true => ServerTransport::quic(config),
        false => ServerTransport::tls(tls::Server::new(&config)?),
    };
    let plan = ServerPlan { timeout: SERVER_PATIENCE, ..ServerPlan::new(transport) };
    let bound = server.spawn(move || async move { Server::bind(address, plan).map(Server::spawn) });
    Ok(bound.join()??)
}
