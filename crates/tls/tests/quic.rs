//! The QUIC configurations, by rustls' own QUIC handshake in memory.

use std::sync::Arc;

use crate::common::{NAME, Setup};
use rustls::quic;
use tls::quic::{client_config, server_config};
use tls::{CallerError, Error, Group, KeyType, Library, Ticket, Version};

struct Handshake {
    client: quic::ClientConnection,
    ticket: Option<Ticket>,
    flights: usize,
    early_keys: (bool, bool),
}

fn setup() -> Setup {
    let both = Library::Rustls;
    let mut setup = Setup::new(both, both, Version::Tls13, KeyType::EcdsaP256).early_data(1);
    setup.client.alpn = vec![b"test".to_vec()];
    setup.server.alpn = vec![b"test".to_vec()];
    setup
}

fn run(
    client: &tls::quic::Client,
    server: &Arc<rustls::ServerConfig>,
    ticket: Option<&Ticket>,
) -> Handshake {
    let started = client.start(ticket).unwrap();
    let version = quic::Version::V1;
    let name = NAME.try_into().unwrap();
    let mut client =
        quic::ClientConnection::new(started.tls, version, name, b"client".to_vec()).unwrap();
    let mut server =
        quic::ServerConnection::new(Arc::clone(server), version, b"server".to_vec()).unwrap();
    let mut flights = 0;
    let mut early_keys = (false, false);
    for _ in 0..8 {
        let flight = written(|buffer| client.write_hs(buffer).is_some());
        flights += usize::from(!flight.is_empty());
        early_keys.0 |= client.zero_rtt_keys().is_some();
        for part in &flight {
            server.read_hs(part).unwrap();
        }
        early_keys.1 |= server.zero_rtt_keys().is_some();
        let flight = written(|buffer| server.write_hs(buffer).is_some());
        flights += usize::from(!flight.is_empty());
        for part in &flight {
            client.read_hs(part).unwrap();
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    assert_eq!(client.alpn_protocol(), Some(&b"test"[..]));
    let ticket = started.tickets.take_ticket();
    assert!(started.tickets.take_ticket().is_none());
    Handshake { client, ticket, flights, early_keys }
}

/// All that a connection writes now, a part for each level of keys (RFC 9001 §4.1.3).
fn written(mut write: impl FnMut(&mut Vec<u8>) -> bool) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    loop {
        let mut part = Vec::new();
        let more = write(&mut part);
        let wrote = !part.is_empty();
        parts.extend(wrote.then_some(part));
        if !more && !wrote {
            return parts;
        }
    }
}

#[test]
fn quic_resumes_with_early_data_from_the_ticket_given() {
    let setup = setup();
    let client = client_config(&setup.client).unwrap();
    let server = server_config(&setup.server).unwrap();
    assert_eq!(server.max_early_data_size, u32::MAX); // RFC 9001 §4.6.1
    let full = run(&client, &server, None);
    assert_eq!(full.early_keys, (false, false));
    assert_eq!(full.client.handshake_kind(), Some(rustls::HandshakeKind::Full));
    assert_eq!(full.flights, 4); // ClientHello, the server's flight, Finished, NewSessionTicket

    let ticket = full.ticket.unwrap();
    assert_eq!(ticket.max_early_data(), u32::MAX);
    let resumed = run(&client, &server, Some(&ticket));
    assert_eq!(resumed.early_keys, (true, true));
    assert!(resumed.client.is_early_data_accepted());
    assert_eq!(resumed.client.handshake_kind(), Some(rustls::HandshakeKind::Resumed));

    // Another connection without a ticket remembers nothing, and a ticket is for one use.
    let again = run(&client, &server, None);
    assert_eq!(again.client.handshake_kind(), Some(rustls::HandshakeKind::Full));
    let used = client.start(Some(&ticket)).unwrap_err();
    assert_eq!(used, CallerError::UsedTicket.into());
}

#[test]
fn without_the_wish_there_is_no_early_data() {
    let mut setup = setup();
    setup.server.max_early_data = 0;
    setup.client.early_data = false;
    let client = client_config(&setup.client).unwrap();
    let server = server_config(&setup.server).unwrap();
    assert_eq!(server.max_early_data_size, 0);
    let full = run(&client, &server, None);
    let resumed = run(&client, &server, full.ticket.as_ref());
    assert_eq!(resumed.early_keys, (false, false));
    assert_eq!(resumed.client.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
}

#[test]
fn groups_are_respected() {
    let setup = setup().groups(&[Group::X25519, Group::Secp256r1], &[Group::Secp256r1]);
    let client = client_config(&setup.client).unwrap();
    let server = server_config(&setup.server).unwrap();
    let full = run(&client, &server, None);
    let retried = Some(rustls::HandshakeKind::FullWithHelloRetryRequest);
    assert_eq!((full.client.handshake_kind(), full.flights), (retried, 6));
}

#[test]
fn the_suite_of_initial_packets_is_there() {
    let setup = setup();
    let client = client_config(&setup.client).unwrap().start(None).unwrap();
    let suites = client.tls.crypto_provider().cipher_suites.iter();
    let quic: Vec<_> = suites.filter_map(|suite| suite.tls13()?.quic_suite()).collect();
    assert_eq!(quic.len(), 1); // RFC 9001 §5.2: AES-128-GCM
}

#[test]
fn openssl_and_tls_1_2_are_refused() {
    let mut setup = setup();
    setup.client.library = Library::OpenSsl;
    let error = client_config(&setup.client).unwrap_err();
    assert!(matches!(error, Error::Caller(CallerError::Unsupported { .. })), "{error}");
    setup.server.versions = vec![Version::Tls12];
    let error = server_config(&setup.server).unwrap_err();
    assert!(error.to_string().contains("QUIC needs TLS 1.3"), "{error}");
}
