//! Two sessions joined in memory, and keys that are made once.

#![allow(dead_code)] // each test file uses a part

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tls::{
    Client, ClientConfig, Facts, Group, Identity, KeyExchange, KeyType, Library, Server,
    ServerConfig, Session, Ticket, Trust, Version,
};

pub const NAME: &str = "server.test";
pub const REQUEST: &[u8] = b"?";
pub const RESPONSE: &[u8] = b"the answer";

/// An identity for [`NAME`], made once in a process.
pub fn identity(key_type: KeyType, chain: usize) -> Arc<Identity> {
    static MADE: Mutex<BTreeMap<(KeyType, usize), Arc<Identity>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    let make = || Arc::new(Identity::generate(key_type, chain, &[NAME]).unwrap());
    Arc::clone(made.entry((key_type, chain)).or_insert_with(make))
}

/// A pair of libraries, client first.
pub fn library_pairs() -> impl Iterator<Item = (Library, Library)> {
    Library::ALL.iter().flat_map(|&client| Library::ALL.iter().map(move |&server| (client, server)))
}

/// What both ends agree on.
#[derive(Clone)]
pub struct Setup {
    pub client: ClientConfig,
    pub server: ServerConfig,
}

impl Setup {
    pub fn new(client: Library, server: Library, version: Version, key_type: KeyType) -> Self {
        let identity = identity(key_type, 1);
        let mut setup = Self {
            client: ClientConfig::new(client, NAME, Trust::Roots(identity.roots())),
            server: ServerConfig::new(server, identity),
        };
        setup.client.versions = vec![version];
        setup.server.versions = vec![version];
        setup
    }

    pub fn key_exchange(mut self, key_exchange: KeyExchange) -> Self {
        self.client.key_exchange = key_exchange;
        self.server.key_exchange = key_exchange;
        self
    }

    pub fn groups(mut self, client: &[Group], server: &[Group]) -> Self {
        self.client.groups = client.to_vec();
        self.server.groups = server.to_vec();
        self
    }

    pub fn early_data(mut self, bytes: u32) -> Self {
        self.client.early_data = true;
        self.server.max_early_data = bytes;
        self
    }

    pub fn endpoints(&self) -> Endpoints {
        Endpoints {
            client: Client::new(&self.client).unwrap(),
            server: Server::new(&self.server).unwrap(),
        }
    }
}

pub struct Endpoints {
    pub client: Client,
    pub server: Server,
}

impl Endpoints {
    /// One whole connection: the request as soon as may be, the response, and the ticket.
    pub fn exchange(&self, ticket: Option<&Ticket>) -> Exchange {
        let client = self.client.start(ticket).unwrap();
        let server = self.server.accept().unwrap();
        Exchange::run(client, server)
    }
}

/// What one connection came to. A flight is one write.
pub struct Exchange {
    /// Every write, in order: whether the client wrote it, and its bytes.
    pub flights: Vec<(bool, Vec<u8>)>,
    /// Flights before the client could send application data (early data included).
    pub flights_until_ready: usize,
    /// Flights before the server had the request.
    pub flights_until_request: usize,
    /// Flights before the client had the response.
    pub flights_until_response: usize,
    pub client: Facts,
    pub server: Facts,
    pub ticket: Option<Ticket>,
    pub resent: bool,
}

impl Exchange {
    pub fn run(mut client: Box<dyn Session>, mut server: Box<dyn Session>) -> Self {
        let mut flights = Vec::new();
        let (mut ready, mut requested, mut responded) = (None, None, None);
        let (mut at_server, mut at_client) = (Vec::new(), Vec::new());
        let mut resent = false;
        let early = client.early_data_room() >= REQUEST.len();
        if early {
            assert_eq!(client.send_early(REQUEST).unwrap(), REQUEST.len());
            ready = Some(0);
        }
        for _ in 0..8 {
            let before = flights.len();
            if client.may_send() && !early && ready.is_none() {
                ready = Some(flights.len());
                client.send(REQUEST).unwrap();
            }
            if early && !resent && client.facts().early_data == tls::EarlyData::Rejected {
                resent = true;
                client.send(REQUEST).unwrap();
            }
            let mut flight = Vec::new();
            if client.write_tls(&mut flight).unwrap() > 0 {
                server.read_tls(&flight).unwrap();
                flights.push((true, flight));
            }
            server.receive(&mut at_server).unwrap();
            if at_server == REQUEST && requested.is_none() {
                requested = Some(flights.len());
                server.send(RESPONSE).unwrap();
            }
            let mut flight = Vec::new();
            if server.write_tls(&mut flight).unwrap() > 0 {
                client.read_tls(&flight).unwrap();
                flights.push((false, flight));
            }
            client.receive(&mut at_client).unwrap();
            if at_client == RESPONSE && responded.is_none() {
                responded = Some(flights.len());
            }
            if flights.len() == before {
                break;
            }
        }
        assert_eq!(at_server, REQUEST);
        assert_eq!(at_client, RESPONSE);
        assert!(!client.is_handshaking() && !server.is_handshaking());
        let exchange = Self {
            flights,
            flights_until_ready: ready.expect("the client may send"),
            flights_until_request: requested.expect("the server has the request"),
            flights_until_response: responded.expect("the client has the response"),
            client: client.facts(),
            server: server.facts(),
            ticket: client.take_ticket(),
            resent,
        };
        assert!(client.take_ticket().is_none(), "a ticket is taken once");
        finish(client, server);
        exchange
    }

    /// What both sides tell must be the same.
    pub fn assert_sides_agree(&self) {
        let (client, server) = (&self.client, &self.server);
        assert_eq!(client.version, server.version);
        assert_eq!(client.cipher_suite, server.cipher_suite);
        assert_eq!(client.group, server.group);
        assert_eq!(client.resumed, server.resumed);
        assert_eq!(client.early_data, server.early_data);
        assert_eq!(client.hello_retry_request, server.hello_retry_request);
        assert_eq!(client.alpn, server.alpn);
        assert_eq!(client.server_name, server.server_name);
        assert_eq!(client.key_shares, server.key_shares);
        assert_eq!(client.client_hello_len, server.client_hello_len);
        assert!(client.client_hello_len > 100, "{}", client.client_hello_len);
    }
}

/// close_notify both ways.
fn finish(mut client: Box<dyn Session>, mut server: Box<dyn Session>) {
    client.close();
    let mut last = Vec::new();
    assert!(client.write_tls(&mut last).unwrap() > 0);
    server.read_tls(&last).unwrap();
    assert!(server.peer_closed() && !client.peer_closed());
    server.close();
    last.clear();
    assert!(server.write_tls(&mut last).unwrap() > 0);
    client.read_tls(&last).unwrap();
    assert!(client.peer_closed());
    assert!(client.send(b"late").is_err());
}
