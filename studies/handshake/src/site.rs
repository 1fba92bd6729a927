//! Who talks to whom: a server for each variant of a handshake, and the client's means to reach it.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use conn::{ClientTransport, FastOpen, Running, Server, ServerLog, ServerPlan, ServerTransport};
use lab::Node;
use sslmtcp::Embedding;
use tls::{Group, Identity, KeyExchange, KeyType, Library, Ticket, Trust, Version};

use crate::error::StudyError;
use crate::mode::{Mode, Security, Transport};
use crate::point::{Peer, Point, Visit};
use crate::stacks::Stacks;

/// The name that the servers' certificates carry.
pub(crate) const SERVER_NAME: &str = "server.wiretax.test";
/// Early data that a server takes: more than the one byte that the study sends.
const MAX_EARLY_DATA: u32 = 16_384;

/// What sets two servers apart: a point without its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Variant {
    pub mode: Mode,
    pub key: KeyType,
    pub group: Group,
    pub library: Library,
    pub chain: usize,
    pub peer: Peer,
    pub visit: Visit,
}

impl From<&Point> for Variant {
    fn from(point: &Point) -> Variant {
        let Point { mode, key, group, library, chain, peer, visit, .. } = *point;
        Variant { mode, key, group, library, chain, peer, visit }
    }
}

impl Variant {
    fn version(&self) -> Version {
        match self.mode.security {
            Security::Tls12Rsa | Security::Tls12 | Security::Tls12Resumed => Version::Tls12,
            _ => Version::Tls13,
        }
    }

    fn key_exchange(&self) -> KeyExchange {
        match self.mode.security {
            Security::Tls12Rsa => KeyExchange::Rsa,
            _ => KeyExchange::Ecdhe,
        }
    }

    /// A group that is not the variant's.
    fn other_group(&self) -> Group {
        if self.group == Group::X25519 { Group::Secp256r1 } else { Group::X25519 }
    }

    /// What the client offers, and for how many of these, from the first, it sends a key share.
    fn client_groups(&self) -> (Vec<Group>, usize) {
        match (self.mode.security, self.group) {
            // The one share is for a group that the server does not take.
            (Security::Tls13HelloRetry, group) => (vec![self.other_group(), group], 1),
            // As browsers and libraries do by default: a classical share beside the hybrid one.
            (_, Group::X25519MlKem768) => (vec![Group::X25519MlKem768, Group::X25519], 2),
            _ if self.needs_curve_of_key() => (vec![self.group, Group::Secp256r1], 1),
            _ => (vec![self.group], 1),
        }
    }

    /// In TLS 1.2 the curve of an ECDSA key must be among the groups (RFC 8422 §5.1).
    fn needs_curve_of_key(&self) -> bool {
        self.version() == Version::Tls12
            && self.key == KeyType::EcdsaP256
            && self.group != Group::Secp256r1
    }

    fn client_config(&self, identity: &Identity) -> tls::ClientConfig {
        let trust = Trust::Roots(identity.roots());
        let mut config = tls::ClientConfig::new(self.library, SERVER_NAME, trust);
        config.versions = vec![self.version()];
        config.key_exchange = self.key_exchange();
        (config.groups, config.key_shares) = self.client_groups();
        config.early_data = self.mode.early_data();
        config
    }

    fn server_config(&self, identity: Arc<Identity>) -> tls::ServerConfig {
        let mut config = tls::ServerConfig::new(self.library, identity);
        config.versions = vec![self.version()];
        config.key_exchange = self.key_exchange();
        config.groups = match self.needs_curve_of_key() {
            true => vec![self.group, Group::Secp256r1],
            false => vec![self.group],
        };
        config.max_early_data = if self.mode.early_data() { MAX_EARLY_DATA } else { 0 };
        config
    }

    /// What of the TLS handshake rides in TCP's, over our TCP.
    pub(crate) fn embedding(&self) -> Embedding {
        match (self.mode.transport, self.mode.security) {
            (Transport::SslmTcp, Security::Tls12Rsa) => Embedding::Paper,
            (Transport::SslmTcp, Security::Tls13EarlyData) => Embedding::ZeroRtt,
            (Transport::SslmTcp, _) => Embedding::Tls13,
            _ => Embedding::None,
        }
    }

    /// The same of an ordinary server.
    fn server_fast_open(&self) -> FastOpen {
        match self.peer {
            Peer::Same => self.fast_open(),
            Peer::Plain => FastOpen::Off,
        }
    }

    pub(crate) fn fast_open(&self) -> FastOpen {
        match self.mode.transport {
            Transport::TcpFastOpen => FastOpen::Cookie,
            Transport::TcpFastOpenNoCookie => FastOpen::Cookieless,
            Transport::Tcp | Transport::Quic | Transport::UserTcp | Transport::SslmTcp => {
                FastOpen::Off
            }
        }
    }
}

/// One server and the way to it.
pub(crate) struct Place {
    pub variant: Variant,
    pub address: SocketAddr,
    pub log: ServerLog,
    pub transport: ClientTransport,
    /// Each is used once, TLS 1.2's too.
    pub tickets: VecDeque<Ticket>,
    /// The server stops when this goes.
    _running: Running,
}

/// All servers of a run, on one node, and the client node that reaches them.
pub(crate) struct Site {
    pub client: Node,
    server: Node,
    identities: BTreeMap<(KeyType, usize), Arc<Identity>>,
    places: BTreeMap<Variant, Place>,
    /// Our own TCP on both nodes, once it is needed.
    stacks: Option<Stacks>,
}

impl Site {
    pub(crate) fn new(client: Node, server: Node) -> Result<Site, StudyError> {
        // 1: data in the SYN of a client; 2: of a server (RFC 7413; Linux ip-sysctl).
        client.sysctl("net.ipv4.tcp_fastopen", "1")?;
        server.sysctl("net.ipv4.tcp_fastopen", "2")?;
        let (identities, places) = (BTreeMap::new(), BTreeMap::new());
        Ok(Site { client, server, identities, places, stacks: None })
    }

    /// The server of a variant, if it stands.
    pub(crate) fn place(&mut self, variant: &Variant) -> Option<&mut Place> {
        self.places.get_mut(variant)
    }

    /// Sets up the server of a variant, unless it stands already.
    pub(crate) fn set_up(&mut self, variant: Variant) -> Result<(), StudyError> {
        if self.places.contains_key(&variant) {
            return Ok(());
        }
        let identity = self.identity(variant.key, variant.chain)?;
        let address = SocketAddr::new(IpAddr::V4(self.server.addr4()?), 0);
        let place = match variant.mode.transport {
            Transport::Quic => self.quic(variant, address, identity)?,
            Transport::UserTcp | Transport::SslmTcp => {
                let stacks = self.stacks()?;
                self.ours(&stacks, variant, address, identity)?
            }
            _ => self.tcp(variant, address, identity)?,
        };
        self.places.insert(variant, place);
        Ok(())
    }

    /// Puts another server in the place of a variant's: one that knows none of its tickets.
    pub(crate) fn replace_server(&mut self, variant: Variant) -> Result<(), StudyError> {
        let Some(old) = self.places.remove(&variant) else { return Ok(()) };
        self.set_up(variant)?;
        if let Some(new) = self.places.get_mut(&variant) {
            new.tickets = old.tickets;
            new.transport = old.transport;
        }
        Ok(())
    }

    /// Our own TCP, opened when it is first asked for.
    fn stacks(&mut self) -> Result<Stacks, StudyError> {
        if let Some(stacks) = &self.stacks {
            return Ok(stacks.clone());
        }
        let stacks = Stacks::open(&self.client, &self.server)?;
        Ok(self.stacks.insert(stacks).clone())
    }

    fn identity(&mut self, key: KeyType, chain: usize) -> Result<Arc<Identity>, StudyError> {
        if let Some(identity) = self.identities.get(&(key, chain)) {
            return Ok(Arc::clone(identity));
        }
        let identity = Arc::new(Identity::generate(key, chain, &[SERVER_NAME])?);
        self.identities.insert((key, chain), Arc::clone(&identity));
        Ok(identity)
    }

    fn tcp(
        &self,
        variant: Variant,
        address: SocketAddr,
        identity: Arc<Identity>,
    ) -> Result<Place, StudyError> {
        let plain = variant.mode.security == Security::Plain;
        let client = tls::Client::new(&variant.client_config(&identity))?;
        let server = tls::Server::new(&variant.server_config(identity))?;
        let server = ServerTransport::Tcp {
            tls: (!plain).then_some(server),
            fast_open: variant.server_fast_open(),
        };
        let running = self.serve(address, server)?;
        let tls = (!plain).then_some(client);
        let transport = ClientTransport::Tcp { fast_open: variant.fast_open(), tls };
        Ok(Place::new(variant, running, transport))
    }

    fn serve(
        &self,
        address: SocketAddr,
        transport: ServerTransport,
    ) -> Result<Running, StudyError> {
        let plan = ServerPlan { timeout: SERVER_PATIENCE, ..ServerPlan::new(transport) };
        let bound = self
            .server
            .spawn(move || async move { Server::bind(address, plan).map(Server::spawn) });
        Ok(bound.join()??)
    }

    /// A client over our TCP, and a server over it too, or an ordinary one.
    fn ours(
        &self,
        stacks: &Stacks,
        variant: Variant,
        kernel: SocketAddr,
        identity: Arc<Identity>,
    ) -> Result<Place, StudyError> {
        let tls = tls::Client::new(&variant.client_config(&identity))?;
        let server = tls::Server::new(&variant.server_config(identity))?;
        let running = match variant.peer {
            Peer::Plain => self.serve(kernel, ServerTransport::tls(server))?,
            Peer::Same => {
                let stack = stacks.server.clone();
                let transport = ServerTransport::UserTcp { stack, tls: server };
                self.serve(stacks.next_server_address(), transport)?
            }
        };
        let stack = stacks.client(variant.visit).clone();
        let transport = ClientTransport::UserTcp { stack, embedding: variant.embedding(), tls };
        Ok(Place::new(variant, running, transport))
    }

    fn quic(
        &self,
        variant: Variant,
        address: SocketAddr,
        identity: Arc<Identity>,
    ) -> Result<Place, StudyError> {
        let client = tls::quic::client_config(&variant.client_config(&identity))?;
        let server = variant.server_config(identity);
        let running = self.serve(address, ServerTransport::quic(server))?;
        Ok(Place::new(variant, running, ClientTransport::Quic { tls: client }))
    }
}

/// Longer than any attempt of a client, so that it is the client who gives up.
const SERVER_PATIENCE: Duration = Duration::from_secs(300);

impl Place {
    fn new(variant: Variant, running: Running, transport: ClientTransport) -> Place {
        let (address, log) = (running.address(), running.log().clone());
        let tickets = VecDeque::new();
        Place { variant, address, log, transport, tickets, _running: running }
    }
}
