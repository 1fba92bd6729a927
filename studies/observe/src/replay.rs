//! Handshakes of real libraries, replayed at exact times to a tracker: what a capture at the server
//! would hold.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tls::{Group, Identity, KeyType, Library, Session, Ticket, Trust, Version};
use tracker::{Connection, Limits, LinkType, Tracker};
use units::Time;
use wire::ethernet::{self, EtherType};
use wire::ipv4;
use wire::tcp::{Flags, OptionList, Repr};

const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// What both sides are set to.
#[derive(Clone)]
pub(crate) struct Setting {
    pub client_versions: Vec<Version>,
    pub server_versions: Vec<Version>,
    /// The server takes the group of the client's second choice only.
    pub retry: bool,
    pub early_data: bool,
}

impl Setting {
    pub(crate) fn of(version: Version) -> Setting {
        Setting {
            client_versions: vec![version],
            server_versions: vec![version],
            retry: false,
            early_data: false,
        }
    }
}

/// Two ends that know each other.
pub(crate) struct Pair {
    identity: Arc<Identity>,
    client: tls::Client,
    server: tls::Server,
}

impl Pair {
    pub(crate) fn new(setting: &Setting) -> Pair {
        let name = "server.wiretax.test";
        let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &[name]).unwrap());
        let trust = Trust::Roots(identity.roots());
        let mut client = tls::ClientConfig::new(Library::OpenSsl, name, trust);
        client.versions = setting.client_versions.clone();
        client.early_data = setting.early_data;
        client.alpn = vec![b"h2".to_vec()];
        let client = tls::Client::new(&client).unwrap();
        let server = server_of(setting, Arc::clone(&identity));
        Pair { identity, client, server }
    }

    /// The same client, and a server that knows none of its tickets.
    pub(crate) fn with_new_server(self, setting: &Setting) -> Pair {
        let server = server_of(setting, Arc::clone(&self.identity));
        Pair { server, ..self }
    }

    /// The flights of one handshake with a request and its answer, and the ticket that it gave. The
    /// flag: the client's.
    pub(crate) fn talk(&self, ticket: Option<&Ticket>) -> (Vec<(bool, Vec<u8>)>, Option<Ticket>) {
        let (mut client, mut server) =
            (self.client.start(ticket).unwrap(), self.server.accept().unwrap());
        let mut flights = Vec::new();
        let (mut asked, mut answered, mut ticket) = (false, false, None);
        if client.early_data_room() > 0 {
            client.send_early(b"?").unwrap();
            asked = true;
        }
        for _ in 0..10 {
            if !asked && client.may_send() {
                client.send(b"?").unwrap();
                asked = true;
            }
            pass(client.as_mut(), server.as_mut(), true, &mut flights);
            let mut data = Vec::new();
            server.receive(&mut data).unwrap();
            if !data.is_empty() && server.may_send() && !answered {
                server.send(b"!").unwrap();
                answered = true;
            }
            pass(server.as_mut(), client.as_mut(), false, &mut flights);
            client.receive(&mut data).unwrap();
            ticket = client.take_ticket().or(ticket);
        }
        (flights, ticket)
    }
}

fn server_of(setting: &Setting, identity: Arc<Identity>) -> tls::Server {
    let mut server = tls::ServerConfig::new(Library::OpenSsl, identity);
    server.versions = setting.server_versions.clone();
    if setting.retry {
        server.groups = vec![Group::Secp256r1];
    }
    server.max_early_data = if setting.early_data { 4096 } else { 0 };
    tls::Server::new(&server).unwrap()
}

/// Moves one flight; an error of the reader has its alert in the reader's next.
fn pass(
    from: &mut dyn Session,
    to: &mut dyn Session,
    client: bool,
    flights: &mut Vec<(bool, Vec<u8>)>,
) {
    let mut bytes = Vec::new();
    let _ = from.write_tls(&mut bytes);
    if !bytes.is_empty() {
        let _ = to.read_tls(&bytes);
        flights.push((client, bytes));
    }
}

/// Replays conversations into a tracker, as if they had been captured.
pub(crate) struct Replay {
    tracker: Tracker,
    next: u32,
}

impl Replay {
    pub(crate) fn new() -> Replay {
        Replay { tracker: Tracker::new(Limits::default()), next: 0 }
    }

    /// A conversation that begins at `start`, with a client `round_trip` microseconds away that waits
    /// `think` microseconds before its first data flight after Finished.
    pub(crate) fn add(&mut self, flights: &[(bool, Vec<u8>)], start: Time, round_trip: u64) {
        let number = self.next;
        self.next += 1;
        let [_, _, high, low] = number.to_be_bytes();
        let client = Ipv4Addr::new(192, 0, high % 4, low);
        let mut talk = Talk { tracker: &mut self.tracker, client, next: [1, 1], at: start };
        talk.segment(true, Flags::SYN, 0, None, &[]);
        talk.segment(false, Flags::SYN, 0, Some(1), &[]);
        talk.later(round_trip);
        talk.segment(true, Flags(0), 1, Some(1), &[]);
        let mut from_client = true;
        for (client, bytes) in flights {
            // At the server: its answers leave at once, the client's next words take a round trip.
            if *client && !from_client {
                talk.later(round_trip);
            }
            from_client = *client;
            for part in bytes.chunks(1400) {
                talk.send(*client, part);
            }
        }
        talk.later(round_trip);
        for client in [true, false] {
            let (own, other) = if client { (0, 1) } else { (1, 0) };
            let (seq, ack) = (talk.next[own], talk.next[other]);
            talk.segment(client, Flags::FIN, seq, Some(ack), &[]);
        }
    }

    pub(crate) fn finish(self) -> Vec<Connection> {
        self.tracker.finish()
    }
}

struct Talk<'a> {
    tracker: &'a mut Tracker,
    client: Ipv4Addr,
    next: [u32; 2],
    at: Time,
}

impl Talk<'_> {
    fn later(&mut self, micros: u64) {
        self.at = Time::from_nanos(self.at.as_nanos() + micros * 1000);
    }

    fn send(&mut self, client: bool, data: &[u8]) {
        let (own, other) = if client { (0, 1) } else { (1, 0) };
        let (seq, ack) = (self.next[own], self.next[other]);
        self.segment(client, Flags::PSH, seq, Some(ack), data);
        self.next[own] += data.len() as u32;
    }

    fn segment(&mut self, client: bool, flags: Flags, seq: u32, ack: Option<u32>, data: &[u8]) {
        let (source, destination) =
            if client { (self.client, SERVER) } else { (SERVER, self.client) };
        let (source_port, destination_port) = if client { (50_000, 443) } else { (443, 50_000) };
        let repr = Repr {
            source_port,
            destination_port,
            sequence: seq,
            acknowledgment: ack,
            flags,
            window: 65_535,
            options: OptionList::default(),
        };
        let len = repr.buffer_len(data.len());
        let ip = ipv4::Repr {
            source,
            destination,
            protocol: 6,
            traffic_class: 0,
            identification: 0,
            dont_fragment: true,
            time_to_live: 64,
            payload_len: len,
        };
        let link = ethernet::Repr {
            destination: ethernet::Address([2; 6]),
            source: ethernet::Address([4; 6]),
            ether_type: EtherType::IPV4,
        };
        let mut frame = vec![0; 34 + len];
        link.emit(&mut frame).unwrap();
        ip.emit(&mut frame[14..]).unwrap();
        let (from, to): (IpAddr, IpAddr) = (source.into(), destination.into());
        repr.emit(from, to, data, &mut frame[34..]).unwrap();
        self.tracker.handle_packet(self.at, LinkType::Ethernet, &frame, frame.len());
    }
}
