//! Connections of rustls with itself in memory, and what a capture of them holds.
#![allow(dead_code, missing_docs)] // Each test file uses a part.

use std::sync::{Arc, Mutex};

use rustls::client::Resumption as Sessions;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use tracker::{Connection, Limits, Tracker};

use crate::talk::{Talk, talk_with};

/// Gathers the lines of a key log.
#[derive(Debug, Default)]
pub struct Lines(pub Mutex<String>);

impl rustls::KeyLog for Lines {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().unwrap().push_str(&line);
    }
}

/// What both sides are set up with.
pub struct Ends {
    pub client: ClientConfig,
    pub server: ServerConfig,
    pub lines: Arc<Lines>,
}

pub fn certificate() -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["example.org".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    (vec![made.cert.der().clone()], key.into())
}

pub fn provider(suite: u16) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|one| u16::from(one.suite()) == suite);
    Arc::new(provider)
}

/// Both under one suite; the server asks for a certificate or not.
pub fn ends(suite: u16, client_certificate: bool, trusted: bool) -> Ends {
    let lines = Arc::new(Lines::default());
    let versions = [&rustls::version::TLS13];
    let (chain, key) = certificate();
    let mut roots = RootCertStore::empty();
    let (other, _) = certificate();
    roots.add(if trusted { chain[0].clone() } else { other[0].clone() }).unwrap();
    let mut known = RootCertStore::empty();
    let (client_chain, client_key) = certificate();
    known.add(client_chain[0].clone()).unwrap();
    let server = ServerConfig::builder_with_provider(provider(suite))
        .with_protocol_versions(&versions)
        .unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(known.into(), provider(suite));
    let server = if client_certificate {
        server.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        server.with_no_client_auth()
    };
    let mut server = server.with_single_cert(chain, key).unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = ClientConfig::builder_with_provider(provider(suite))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut client = if client_certificate {
        client.with_client_auth_cert(client_chain, client_key).unwrap()
    } else {
        client.with_no_client_auth()
    };
    client.alpn_protocols = vec![b"h2".to_vec()];
    client.key_log = lines.clone();
    client.resumption = Sessions::in_memory_sessions(8);
    Ends { client, server, lines }
}

/// What went over the wire: millisecond, side, bytes. A turn of either side takes 10 ms.
pub type Wire = Vec<(u64, usize, Vec<u8>)>;

pub struct Pair {
    pub client: ClientConnection,
    pub server: ServerConnection,
    pub at: u64,
    pub wire: Wire,
}

impl Pair {
    pub fn new(ends: &Ends) -> Self {
        let name = "example.org".try_into().unwrap();
        let client = ClientConnection::new(Arc::new(ends.client.clone()), name).unwrap();
        let server = ServerConnection::new(Arc::new(ends.server.clone())).unwrap();
        Pair { client, server, at: 10, wire: Wire::new() }
    }

    /// One flight of the client or the server; whether there was any.
    pub fn flight(&mut self, side: usize) -> bool {
        use std::io::Read;
        let mut bytes = Vec::new();
        while if side == 0 { self.client.wants_write() } else { self.server.wants_write() } {
            let sent = if side == 0 {
                self.client.write_tls(&mut bytes)
            } else {
                self.server.write_tls(&mut bytes)
            };
            sent.unwrap();
        }
        let mut input = &bytes[..];
        while !input.is_empty() {
            // A peer that refuses has its alert to send.
            let mut read = Vec::new();
            let refused = if side == 0 {
                self.server.read_tls(&mut input).unwrap();
                let refused = self.server.process_new_packets().is_err();
                let _ = self.server.reader().read_to_end(&mut read);
                refused
            } else {
                self.client.read_tls(&mut input).unwrap();
                let refused = self.client.process_new_packets().is_err();
                let _ = self.client.reader().read_to_end(&mut read);
                refused
            };
            if refused {
                break;
            }
        }
        let any = !bytes.is_empty();
        if any {
            self.wire.push((self.at, side, bytes));
            self.at += 10;
        }
        any
    }

    /// Until nobody has anything to send.
    pub fn run(&mut self) {
        while self.flight(0) | self.flight(1) {}
    }

    /// A request of `up` bytes, answered by `down` bytes in one write each.
    pub fn exchange(&mut self, up: usize, down: usize) {
        use std::io::Write;
        self.client.writer().write_all(&vec![b'u'; up]).unwrap();
        self.flight(0);
        self.server.writer().write_all(&vec![b'd'; down]).unwrap();
        self.run();
    }
}

/// The connection as captured, in segments of so many bytes, with the lines of a key log or without.
pub fn replay(wire: &Wire, segment: usize, lines: Option<&str>) -> Connection {
    captured(wire, segment, lines).finish()
}

/// The capture of what went over the wire, in segments of so many bytes, with the key log's lines.
pub fn captured(wire: &Wire, segment: usize, lines: Option<&str>) -> Talk {
    let mut tracker = Tracker::new(Limits::default());
    if let Some(lines) = lines {
        tracker.add_keys(lines.as_bytes());
        assert_eq!(tracker.key_log().counters().malformed, 0);
    }
    let mut t = talk_with(tracker);
    t.syn().at(5).syn_ack().ack();
    for (at, side, bytes) in wire {
        for piece in bytes.chunks(segment) {
            t.at(*at).send(*side, piece);
        }
    }
    t
}
