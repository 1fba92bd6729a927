//! The lab: a server node, a client node and a link for each population, captures at the server.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path as FilePath;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use conn::Running;
use futures_util::future::join_all;
use lab::{CaptureOptions, Lab, Link, Node};
use linkmodel::{Jitter, LinkConfig, Path};
use tls::{Identity, KeyType, Ticket};
use tracker::{Connection, Counters, Limits, LinkType, Tracker};

use super::dial::{Dial, Dialled, Means};
use super::sample::Logged;
use super::visit::{SERVER_NAME, Visit};
use super::{Plan, Population, TruthError};

/// Longer than any attempt of a client.
const SERVER_PATIENCE: Duration = Duration::from_secs(60);
/// How long the servers' records of finished connections may take to appear.
const RECORD_PATIENCE: Duration = Duration::from_secs(8);
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
    means: BTreeMap<Visit, Means>,
    tickets: BTreeMap<Visit, VecDeque<Ticket>>,
    name: String,
}

pub(super) struct Site {
    // First, so that they end before the lab does.
    servers: Vec<(Visit, Running)>,
    captures: Vec<Captures>,
    clients: Vec<Clients>,
    server: Node,
    _lab: Lab,
}

impl Site {
    pub(super) fn new(plan: &Plan) -> Result<Site, TruthError> {
        let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[SERVER_NAME])?);
        let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[SERVER_NAME])?;
        let mut lab = Lab::new(plan.lab)?;
        let server = lab.add_node("server")?;
        let mut clients = Vec::new();
        for population in &plan.populations {
            let node = lab.add_node(&population.name)?;
            let link = lab.connect(&node, &server, &path(population))?;
            let mut means = BTreeMap::new();
            for (visit, _) in &plan.visits {
                means.insert(*visit, client_means(*visit, population, &identity, &stranger)?);
            }
            let (tickets, name) = (BTreeMap::new(), population.name.clone());
            clients.push(Clients { node, link, means, tickets, name });
        }
        let mut servers = Vec::new();
        for (visit, _) in &plan.visits {
            servers.push((*visit, serve(&server, *visit, &identity)?));
        }
        Ok(Site { servers, captures: Vec::new(), clients, server, _lab: lab })
    }

    /// A connection of each that resumes, for its ticket.
    pub(super) fn fetch_tickets(&mut self, visits: &[(Visit, u32)]) -> Result<(), TruthError> {
        for (visit, count) in visits.iter().filter(|(visit, _)| visit.resumes()) {
            let nodes: Vec<Node> = self.clients.iter().map(|own| own.node.clone()).collect();
            let dials =
                |at| (0..*count).filter_map(|_| self.prepare(at, *visit, true)).collect::<Vec<_>>();
            let dials: Vec<Vec<Dial>> = (0..nodes.len()).map(dials).collect();
            let waves: Vec<_> =
                nodes.iter().zip(dials).map(|(node, dials)| start(node, dials)).collect();
            for (clients, wave) in self.clients.iter_mut().zip(waves) {
                for dialled in wave.join()? {
                    let ticket = dialled.tickets.into_iter().next_back();
                    let detail = dialled.failure.unwrap_or_else(|| "the server sent none".into());
                    let ticket = ticket.ok_or(TruthError::Ticket { visit: *visit, detail })?;
                    clients.tickets.entry(*visit).or_default().push_back(ticket);
                }
            }
        }
        std::thread::sleep(SETTLE);
        for (_, running) in &self.servers {
            // The connections for tickets are none that count.
            drop(running.log().drain());
        }
        Ok(())
    }

    /// A dial of a population's client; `None` of a kind that was not set up.
    fn prepare(&mut self, at: usize, visit: Visit, priming: bool) -> Option<Dial> {
        let (_, running) = self.servers.iter().find(|(own, _)| *own == visit)?;
        let clients = self.clients.get_mut(at)?;
        let [_, far] = clients.link.ends();
        let server = SocketAddr::new(IpAddr::V4(far.addr4().ok()?), running.address().port());
        let ticket = match priming {
            true => None,
            false => clients.tickets.get_mut(&visit).and_then(VecDeque::pop_front),
        };
        let means = clients.means.get(&visit)?.clone();
        Some(Dial { visit, server, means, ticket, after: Duration::ZERO, priming })
    }

    /// Makes a batch of connections for each population, all together.
    pub(super) fn dial(
        &mut self,
        batches: Vec<Vec<(Visit, Duration)>>,
    ) -> Result<Vec<Vec<Dialled>>, TruthError> {
        let nodes: Vec<Node> = self.clients.iter().map(|own| own.node.clone()).collect();
        let mut waves = Vec::new();
        for ((at, batch), node) in batches.into_iter().enumerate().zip(&nodes) {
            let dials = batch.into_iter().filter_map(|(visit, after)| {
                self.prepare(at, visit, false).map(|dial| Dial { after, ..dial })
            });
            let dials = dials.collect();
            waves.push(start(node, dials));
        }
        waves.into_iter().map(|wave| Ok(wave.join()?)).collect()
    }

    /// Captures at the server's end of each link.
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
            let name = folder.map(|folder| folder.join(format!("{}.pcapng", clients.name)));
            let file = name.map(|name| self.server.capture_file(name, &options)).transpose()?;
            self.captures.push(Captures { tracker, live, file });
        }
        Ok(())
    }

    /// The servers' logs of `expected` connections, and each population's records.
    #[allow(clippy::type_complexity)]
    pub(super) fn finish(
        mut self,
        expected: usize,
    ) -> Result<(Vec<Logged>, Vec<(Vec<Connection>, Counters)>), TruthError> {
        let until = Instant::now() + RECORD_PATIENCE;
        let mut logs = Vec::new();
        while logs.len() < expected && Instant::now() < until {
            for (visit, running) in &self.servers {
                let (visit, port) = (*visit, running.address().port());
                let logged = running.log().drain().into_iter();
                logs.extend(logged.map(|record| Logged { visit, port, record }));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // What ends the last connections may still be on the way.
        std::thread::sleep(SETTLE);
        let mut records = Vec::new();
        for captures in std::mem::take(&mut self.captures) {
            let stats = captures.live.stop()?;
            if let Some(file) = captures.file {
                file.stop()?;
            }
            if stats.kernel_drops > 0 {
                return Err(TruthError::Lost(stats.kernel_drops));
            }
            let mut tracker = captures.tracker.lock().unwrap_or_else(PoisonError::into_inner);
            let tracker = std::mem::replace(&mut *tracker, Tracker::new(Limits::default()));
            let counters = *tracker.counters();
            records.push((tracker.finish(), counters));
        }
        Ok((logs, records))
    }
}

/// Makes connections, all together, at a node.
fn start(node: &Node, dials: Vec<Dial>) -> lab::JoinHandle<Vec<Dialled>> {
    node.spawn(move || async move { join_all(dials.into_iter().map(Dial::run)).await })
}

fn path(population: &Population) -> Path {
    let mut path = Path::symmetric(population.round_trip);
    let with_jitter =
        |link: &mut LinkConfig| link.jitter = Jitter::Normal(population.jitter.into());
    with_jitter(&mut path.forward);
    with_jitter(&mut path.backward);
    path
}

fn client_means(
    visit: Visit,
    population: &Population,
    identity: &Identity,
    stranger: &Identity,
) -> Result<Means, TruthError> {
    if visit.is_quic() {
        let config = visit.client_config(tls::Library::Rustls, identity, stranger);
        return Ok(Means::Quic(tls::quic::client_config(&config)?));
    }
    let config = visit.client_config(population.library, identity, stranger);
    Ok(Means::Tcp(tls::Client::new(&config)?))
}

/// A server of a kind, reached by every link.
fn serve(server: &Node, visit: Visit, identity: &Arc<Identity>) -> Result<Running, TruthError> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let config = visit.server_config(identity);
    if visit.is_quic() {
        let plan = conn::quic::ServerPlan {
            timeout: SERVER_PATIENCE,
            ..conn::quic::ServerPlan::new(config)
        };
        let bound = server.spawn(move || async move {
            conn::quic::Server::bind(address, plan).map(conn::quic::Server::spawn)
        });
        return Ok(bound.join()??);
    }
    let plan = conn::tcp::ServerPlan {
        tls: Some(tls::Server::new(&config)?),
        timeout: SERVER_PATIENCE,
        ..conn::tcp::ServerPlan::default()
    };
    let bound = server.spawn(move || async move {
        conn::tcp::Server::bind(address, plan).map(conn::tcp::Server::spawn)
    });
    Ok(bound.join()??)
}
