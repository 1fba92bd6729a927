//! TLS configurations, identities made once, and two carriers joined in memory.
#![allow(dead_code)] // Each test file uses a part.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sslmtcp::{Carrier, CarrierError, Embedding, Engine, Plan};
use tls::{
    Client, ClientConfig, Identity, KeyExchange, KeyType, Library, Server, ServerConfig, Session,
    Ticket, Trust, Version,
};
use units::Time;

pub const NAME: &str = "server.test";
pub const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";
pub const RESPONSE: &[u8] = b"the answer";
/// What a SYN holds at an MTU of 1500 bytes with IPv6 and all options that we send.
pub const SYN_ROOM: usize = 1500 - 40 - 20 - 40;

pub type Tls = Box<dyn Session>;

/// An identity for [`NAME`], made once in a process.
pub fn identity(key_type: KeyType, chain: usize) -> Arc<Identity> {
    static MADE: Mutex<BTreeMap<(KeyType, usize), Arc<Identity>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    let make = || Arc::new(Identity::generate(key_type, chain, &[NAME]).unwrap());
    Arc::clone(made.entry((key_type, chain)).or_insert_with(make))
}

/// A client and a server of TLS that trust each other.
pub struct Ends {
    pub client: Client,
    pub server: Server,
    server_config: ServerConfig,
}

impl Ends {
    /// What `embedding` is meant for: TLS 1.2 with RSA key exchange, or TLS 1.3 with early data.
    pub fn new(
        embedding: Embedding,
        client: Library,
        server: Library,
        key_type: KeyType,
        chain: usize,
    ) -> Ends {
        let identity = identity(key_type, chain);
        let mut client = ClientConfig::new(client, NAME, Trust::Roots(identity.roots()));
        let mut server = ServerConfig::new(server, identity);
        if embedding == Embedding::Paper {
            client.library = Library::OpenSsl;
            server.library = Library::OpenSsl;
            client.versions = vec![Version::Tls12];
            server.versions = vec![Version::Tls12];
            client.key_exchange = KeyExchange::Rsa;
            server.key_exchange = KeyExchange::Rsa;
        }
        if embedding == Embedding::ZeroRtt {
            client.early_data = true;
            server.max_early_data = 16 << 10;
        }
        Ends {
            client: Client::new(&client).unwrap(),
            server: Server::new(&server).unwrap(),
            server_config: server,
        }
    }

    /// The server starts again: it knows none of its tickets.
    pub fn restart_server(&mut self) {
        self.server = Server::new(&self.server_config).unwrap();
    }

    /// A ticket of an ordinary connection in memory.
    pub fn ticket(&self) -> Ticket {
        let plan = Plan { request: REQUEST.to_vec(), ..plan(Embedding::None) };
        let mut wire =
            Wire::new(self.client.start(None).unwrap(), self.server.accept().unwrap(), plan);
        wire.run().unwrap();
        wire.client.take_ticket().expect("a ticket")
    }

    pub fn wire(&self, plan: Plan, ticket: Option<&Ticket>) -> Wire<Tls, Tls> {
        Wire::new(self.client.start(ticket).unwrap(), self.server.accept().unwrap(), plan)
    }
}

pub fn plan(embedding: Embedding) -> Plan {
    Plan { embedding, syn_room: SYN_ROOM, ..Plan::default() }
}

/// What a server does with a SYN's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynFate {
    Taken,
    Refused,
}

/// Two carriers joined in memory; each flight is one delivery.
pub struct Wire<C, S> {
    pub client: Carrier<C>,
    pub server: Carrier<S>,
    pub syn: Vec<u8>,
    pub fate: SynFate,
    /// Every write: whether the client wrote it, and its bytes.
    pub flights: Vec<(bool, Vec<u8>)>,
    pub at_server: Vec<u8>,
    pub at_client: Vec<u8>,
    /// Flights before the client was ready, the server had the request, the client the response.
    pub ready: Option<usize>,
    pub requested: Option<usize>,
    pub responded: Option<usize>,
    answered: bool,
    wanted: usize,
}

impl<C: Engine, S: Engine> Wire<C, S> {
    pub fn new(client: C, server: S, plan: Plan) -> Self {
        let wanted = plan.early_data.len() + plan.request.len();
        let mut client = Carrier::client(Time::ZERO, client, plan).unwrap();
        let syn = client.syn();
        let segment = if syn.is_empty() { 0 } else { syn.len() + 20 };
        Wire {
            client,
            server: Carrier::server(server, segment),
            syn,
            fate: SynFate::Taken,
            flights: Vec::new(),
            at_server: Vec::new(),
            at_client: Vec::new(),
            ready: None,
            requested: None,
            responded: None,
            answered: false,
            wanted,
        }
    }

    /// The SYN and its answer, then flights until the response is there.
    pub fn run(&mut self) -> Result<(), CarrierError> {
        let now = Time::ZERO;
        self.note();
        let syn = self.syn.clone();
        self.flights.push((true, syn.clone()));
        if !syn.is_empty() && self.fate == SynFate::Taken {
            self.server.read(now, &syn)?;
            self.serve()?;
        }
        let answer = take(&mut self.server);
        self.flights.push((false, answer.clone()));
        self.client.syn_answered(now, !syn.is_empty() && self.fate == SynFate::Taken)?;
        if !answer.is_empty() {
            self.client.read(now, &answer)?;
        }
        self.note();
        for _ in 0..8 {
            if self.client.is_holding() {
                self.client.release(now)?;
            }
            let flight = take(&mut self.client);
            if !flight.is_empty() {
                self.server.read(now, &flight)?;
                self.flights.push((true, flight));
            }
            self.serve()?;
            let flight = take(&mut self.server);
            if !flight.is_empty() {
                self.client.read(now, &flight)?;
                self.flights.push((false, flight));
            }
            self.note();
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<(), CarrierError> {
        self.server.receive(&mut self.at_server)?;
        if self.at_server.len() == self.wanted && self.wanted > 0 && !self.answered {
            self.answered = true;
            self.requested = Some(self.flights.len());
            assert!(self.server.is_ready());
            assert_eq!(self.server.send(Time::ZERO, RESPONSE)?, RESPONSE.len());
        }
        Ok(())
    }

    fn note(&mut self) {
        self.client.receive(&mut self.at_client).unwrap();
        let count = self.flights.len();
        if self.client.is_ready() {
            self.ready.get_or_insert(count);
        }
        if self.at_client == RESPONSE {
            self.responded.get_or_insert(count);
        }
    }
}

/// All that a carrier wants to send.
pub fn take<E: Engine>(carrier: &mut Carrier<E>) -> Vec<u8> {
    let out = carrier.outgoing().to_vec();
    carrier.consume(out.len());
    out
}
