//! The nodes, the servers of each variant, and the clients' means to reach them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use conn::{
    Attempt, ClientPlan, ClientTransport, Running, Server, ServerLog, ServerPlan, ServerRecord,
    ServerTransport,
};
use futures_util::future::join_all;
use lab::{CaptureOptions, JoinHandle, Lab, LabOptions, Link, Node};
use linkmodel::Path;
use tls::{Identity, KeyType, Ticket};

use crate::{Capture, Endpoints, Error, SERVER_NAME, Way};

/// Longer than any attempt of a client, so that it is the client who gives up.
const SERVER_PATIENCE: Duration = Duration::from_secs(300);
/// A link that carried nothing for this long beside a round trip has nothing more to carry.
const SILENCE: Duration = Duration::from_millis(10);
/// Looks at a link until it is silent, at most.
const SETTLE_LOOKS: usize = 100;

/// A server node with a server for each variant `V`, and nodes of clients, each joined to it by a link.
pub struct Testbed<V> {
    // The servers first, so that they end before the lab does.
    servers: BTreeMap<V, Running>,
    /// Variants that another one's server answers.
    shared: BTreeMap<V, V>,
    endpoints: Option<Endpoints>,
    pub(crate) clients: Vec<Client<V>>,
    identities: BTreeMap<(KeyType, usize), Arc<Identity>>,
    server: Node,
    lab: Lab,
}

/// A node of clients.
pub(crate) struct Client<V> {
    node: Node,
    link: Link,
    way: Way,
    means: BTreeMap<V, Means>,
}

/// A client's means to reach one server.
pub(crate) struct Means {
    transport: ClientTransport,
    early_data: bool,
    /// Each is used once, TLS 1.2's too.
    pub(crate) tickets: VecDeque<Ticket>,
}

impl<V: Copy + Ord + Display> Testbed<V> {
    /// A lab with a node `server`, and a node of clients for each name, whose link is such a path. The
    /// process must be in the lab already ([`lab::enter`]).
    ///
    /// # Errors
    /// The lab's own.
    pub fn new(options: LabOptions, clients: &[(&str, Path)]) -> Result<Testbed<V>, Error> {
        let mut lab = Lab::new(options)?;
        let server = lab.add_node("server")?;
        // 1: data in the SYN of a client; 2: of a server (RFC 7413; Linux ip-sysctl).
        server.sysctl("net.ipv4.tcp_fastopen", "2")?;
        let mut nodes = Vec::new();
        for (name, path) in clients {
            let node = lab.add_node(name)?;
            node.sysctl("net.ipv4.tcp_fastopen", "1")?;
            let link = lab.connect(&node, &server, path)?;
            nodes.push(Client { node, link, way: Way::of(path), means: BTreeMap::new() });
        }
        Ok(Testbed {
            servers: BTreeMap::new(),
            shared: BTreeMap::new(),
            endpoints: None,
            clients: nodes,
            identities: BTreeMap::new(),
            server,
            lab,
        })
    }

    /// What carries the frames of the links.
    #[must_use]
    pub fn backend(&self) -> lab::Backend {
        self.lab.backend()
    }

    /// The servers' node.
    #[must_use]
    pub fn server(&self) -> &Node {
        &self.server
    }

    /// A node of clients, by its place in what [`Testbed::new`] was given.
    ///
    /// # Errors
    /// There is no such node.
    pub fn client(&self, client: usize) -> Result<&Node, Error> {
        Ok(&self.at(client)?.node)
    }

    /// What a client's link has carried so far.
    ///
    /// # Errors
    /// The lab's own.
    pub fn link_stats(&self, client: usize) -> Result<pump::Stats, Error> {
        Ok(self.at(client)?.link.stats()?)
    }

    /// Changes what a client's link is like from now on.
    ///
    /// # Errors
    /// The lab's own.
    pub fn set_path(&mut self, client: usize, path: &Path) -> Result<(), Error> {
        self.at(client)?.link.set_path(path)?;
        if let Some(client) = self.clients.get_mut(client) {
            client.way = Way::of(path);
        }
        Ok(())
    }

    /// Sets how many segments TCP may send at first on a client's link, at both ends; the kernel's own with
    /// `None`.
    ///
    /// # Errors
    /// The lab's own.
    pub fn set_initial_window(&self, client: usize, segments: Option<u32>) -> Result<(), Error> {
        Ok(self.at(client)?.link.set_initial_window(segments)?)
    }

    /// The server's address on a client's link.
    ///
    /// # Errors
    /// The lab's own.
    pub fn server_address(&self, client: usize) -> Result<Ipv4Addr, Error> {
        self.at(client)?.server_address()
    }

    /// Waits until each link has been silent for a moment: what priming connections have still to say
    /// when they close is not to meet the next path, where it would take the fate of another frame.
    ///
    /// # Errors
    /// The lab's own.
    pub fn settle(&self) -> Result<(), Error> {
        self.clients.iter().try_for_each(Client::settle)
    }

    /// The certificates of all servers with such a key and so many of them, made when they are first
    /// asked for.
    ///
    /// # Errors
    /// [`Error::Tls`].
    pub fn identity(&mut self, key: KeyType, chain: usize) -> Result<Arc<Identity>, Error> {
        if let Some(identity) = self.identities.get(&(key, chain)) {
            return Ok(Arc::clone(identity));
        }
        let identity = Arc::new(Identity::generate(key, chain, &[SERVER_NAME])?);
        self.identities.insert((key, chain), Arc::clone(&identity));
        Ok(identity)
    }

    /// Our own TCP on the first link, opened when it is first asked for.
    ///
    /// # Errors
    /// [`Error::UserTcp`], or the lab's own.
    pub fn endpoints(&mut self) -> Result<&Endpoints, Error> {
        let opened = match self.endpoints.take() {
            Some(opened) => opened,
            None => {
                let client = self.at(0)?;
                Endpoints::open(&client.node, &self.server, &client.link)?
            }
        };
        Ok(self.endpoints.insert(opened))
    }

    /// Whether a variant has its server.
    #[must_use]
    pub fn serves(&self, variant: &V) -> bool {
        self.server_of(variant).is_some()
    }

    /// Starts the server of a variant, in place of the one that it may have: one that knows none of the
    /// tickets that are there. It sends one byte back for one byte.
    ///
    /// # Errors
    /// [`Error::Server`], or the lab's own.
    pub fn serve(&mut self, variant: V, transport: ServerTransport) -> Result<(), Error> {
        let address = match (&transport, self.clients.as_slice()) {
            (ServerTransport::UserTcp { .. }, _) => self.endpoints()?.next_server_address(),
            (_, [only]) => SocketAddr::from((only.server_address()?, 0)),
            // Reached by every link.
            _ => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        };
        let plan = ServerPlan { timeout: SERVER_PATIENCE, ..ServerPlan::new(transport) };
        let bound = self
            .server
            .spawn(move || async move { Server::bind(address, plan).map(Server::spawn) });
        self.servers.insert(variant, bound.join()??);
        Ok(())
    }

    /// Has the server of variant `of` answer for `variant` too: connections of both are in its log, and tickets
    /// of the one are good for the other. A server of `variant`'s own would be reached no more.
    pub fn share(&mut self, variant: V, of: V) {
        self.shared.insert(variant, of);
    }

    fn server_of(&self, variant: &V) -> Option<&Running> {
        self.servers.get(self.shared.get(variant).unwrap_or(variant))
    }

    /// Changes how a client reaches the server of a variant from now on; the tickets that it has stay. They
    /// are of use to the same [`tls::Client`] alone, or to one of another name
    /// ([`tls::Client::with_name`]).
    pub fn reach_by(&mut self, client: usize, variant: &V, transport: ClientTransport) {
        let client = self.clients.get_mut(client);
        if let Some(means) = client.and_then(|client| client.means.get_mut(variant)) {
            means.transport = transport;
        }
    }

    /// Says how a client reaches the server of a variant, and whether it sends its request as early data
    /// where it has a ticket. The tickets that it may have are gone.
    pub fn reach(
        &mut self,
        client: usize,
        variant: V,
        transport: ClientTransport,
        early_data: bool,
    ) {
        if let Some(client) = self.clients.get_mut(client) {
            let means = Means { transport, early_data, tickets: VecDeque::new() };
            client.means.insert(variant, means);
        }
    }

    /// A client's connection to the server of a variant, with one of its tickets if there are any; `None`
    /// if the one or the other was not set up.
    #[must_use]
    pub fn plan(&mut self, client: usize, variant: &V) -> Option<ClientPlan> {
        let plan = self.plan_without_ticket(client, variant)?;
        let means = self.clients.get_mut(client)?.means.get_mut(variant)?;
        let (ticket, early_data) = (means.tickets.pop_front(), means.early_data);
        Some(ClientPlan { ticket, early_data, ..plan })
    }

    pub(crate) fn plan_without_ticket(&self, client: usize, variant: &V) -> Option<ClientPlan> {
        let mut address = self.server_of(variant)?.address();
        let client = self.clients.get(client)?;
        if address.ip().is_unspecified() {
            address.set_ip(client.server_address().ok()?.into());
        }
        let means = client.means.get(variant)?;
        let linger = client.way.linger();
        Some(ClientPlan { linger, ..ClientPlan::new(address, means.transport.clone()) })
    }

    /// Makes connections, all together, from a client's node.
    ///
    /// # Errors
    /// There is no such node.
    pub fn connect(
        &self,
        client: usize,
        plans: Vec<ClientPlan>,
    ) -> Result<JoinHandle<Vec<Attempt>>, Error> {
        let together = move || join_all(plans.into_iter().map(conn::connect));
        Ok(self.at(client)?.node.spawn(together))
    }

    /// The log of a variant's server.
    #[must_use]
    pub fn log(&self, variant: &V) -> Option<&ServerLog> {
        self.server_of(variant).map(Running::log)
    }

    /// What all servers have logged since they were last asked: the variant, the server's port, the
    /// record.
    #[must_use]
    pub fn logged(&self) -> Vec<(V, u16, ServerRecord)> {
        let of = |(variant, running): (&V, &Running)| {
            let (variant, port) = (*variant, running.address().port());
            let records = running.log().drain().into_iter();
            records.map(move |record| (variant, port, record)).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of).collect()
    }

    /// Takes the record of the client at `peer` from a variant's log; waits for it so long at most.
    ///
    /// # Errors
    /// The lab's own.
    pub fn server_record(
        &self,
        variant: &V,
        peer: SocketAddr,
        patience: Duration,
    ) -> Result<Option<ServerRecord>, Error> {
        let Some(log) = self.log(variant) else { return Ok(None) };
        if let Some(record) = log.take(peer) {
            return Ok(Some(record));
        }
        let log = log.clone();
        let waiting = self.server.spawn(move || async move { log.wait_for(peer, patience).await });
        Ok(waiting.join()?)
    }

    /// Captures at a client's end of its link.
    ///
    /// # Errors
    /// The lab's own.
    pub fn capture_at_client(&self, client: usize) -> Result<Capture, Error> {
        Capture::start(&self.at(client)?.node, &CaptureOptions::default(), None)
    }

    /// Captures at the server's end of a client's link, into a file too if there is one.
    ///
    /// # Errors
    /// The lab's own.
    pub fn capture_at_server(
        &self,
        client: usize,
        file: Option<PathBuf>,
    ) -> Result<Capture, Error> {
        let mut options = CaptureOptions::default();
        options.link = Some(self.at(client)?.link.number());
        Capture::start(&self.server, &options, file)
    }

    fn at(&self, client: usize) -> Result<&Client<V>, Error> {
        let no_link = || lab::Error::NoLink { node: format!("of clients {client}") };
        Ok(self.clients.get(client).ok_or_else(no_link)?)
    }
}

impl<V: Ord> Client<V> {
    fn server_address(&self) -> Result<Ipv4Addr, Error> {
        let [_, far] = self.link.ends();
        Ok(far.addr4()?)
    }

    pub(crate) fn tickets(&mut self, variant: &V) -> Option<&mut VecDeque<Ticket>> {
        self.means.get_mut(variant).map(|means| &mut means.tickets)
    }

    fn settle(&self) -> Result<(), Error> {
        let mut before = None;
        for _ in 0..SETTLE_LOOKS {
            let carried = match self.link.stats() {
                Ok(stats) => [stats.forward, stats.backward].map(|way| way.link.received.frames),
                // Nobody counts there.
                Err(lab::Error::NoStats) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if before.replace(carried) == Some(carried) {
                break;
            }
            std::thread::sleep(SILENCE + self.way.round_trip());
        }
        Ok(())
    }
}
