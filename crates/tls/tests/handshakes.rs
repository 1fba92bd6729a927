//! Every kind of handshake between every pair of libraries: flights counted, facts compared.

use crate::common::{Endpoints, Exchange, Setup, library_pairs};
use tls::{CipherSuite, EarlyData, Group, KeyExchange, KeyType, Library, Server, Version};

const KEY_TYPES: [KeyType; 2] = [KeyType::EcdsaP256, KeyType::Rsa2048];

/// (flights before the client may send, before the server has the request, before the response)
fn flights(exchange: &Exchange) -> (usize, usize, usize) {
    (exchange.flights_until_ready, exchange.flights_until_request, exchange.flights_until_response)
}

fn ecdhe_suite(key_type: KeyType) -> CipherSuite {
    match key_type {
        KeyType::EcdsaP256 => CipherSuite::ECDHE_ECDSA_AES_128_GCM_SHA256,
        _ => CipherSuite::ECDHE_RSA_AES_128_GCM_SHA256,
    }
}

fn check(exchange: &Exchange, what: &str, version: Version, suite: CipherSuite) {
    println!("{what}: {:?}", exchange.client);
    exchange.assert_sides_agree();
    assert_eq!(exchange.client.version, Some(version), "{what}");
    assert_eq!(exchange.client.cipher_suite, Some(suite), "{what}");
    assert_eq!(exchange.client.server_name.as_deref(), Some(crate::common::NAME), "{what}");
    assert_eq!(exchange.client.certificates, usize::from(!exchange.client.resumed), "{what}");
}

#[test]
fn tls12_rsa_key_exchange_needs_two_round_trips() {
    let (client, server) = (Library::OpenSsl, Library::OpenSsl);
    let setup =
        Setup::new(client, server, Version::Tls12, KeyType::Rsa2048).key_exchange(KeyExchange::Rsa);
    let endpoints = setup.endpoints();
    let full = endpoints.exchange(None);
    check(&full, "rsa", Version::Tls12, CipherSuite::RSA_AES_128_GCM_SHA256);
    assert_eq!(flights(&full), (4, 5, 6));
    assert_eq!((full.client.group, full.client.resumed), (None, false));

    let resumed = endpoints.exchange(full.ticket.as_ref());
    check(&resumed, "rsa resumed", Version::Tls12, CipherSuite::RSA_AES_128_GCM_SHA256);
    assert_eq!(flights(&resumed), (2, 3, 4));
    assert_eq!((resumed.client.group, resumed.client.resumed), (None, true));
}

#[test]
fn tls12_ecdhe_needs_two_round_trips_and_one_when_resumed() {
    for (client, server) in library_pairs() {
        for key_type in KEY_TYPES {
            for group in [Group::X25519, Group::Secp256r1] {
                let what = format!("1.2 {client} to {server}, {key_type}, {group}");
                let setup = Setup::new(client, server, Version::Tls12, key_type)
                    .groups(&[group, other(group)], &[group, other(group)]);
                let endpoints = setup.endpoints();
                let full = endpoints.exchange(None);
                check(&full, &what, Version::Tls12, ecdhe_suite(key_type));
                assert_eq!(flights(&full), (4, 5, 6), "{what}");
                assert_eq!((full.client.group, full.client.resumed), (Some(group), false));
                assert!(full.client.key_shares.is_empty(), "{what}");

                let ticket = full.ticket.expect("a ticket");
                assert_eq!((ticket.version(), ticket.library()), (Version::Tls12, client));
                assert!(!ticket.allows_early_data());
                // RFC 5077: a ticket of TLS 1.2 may be offered again.
                for _ in 0..2 {
                    let resumed = endpoints.exchange(Some(&ticket));
                    check(&resumed, &what, Version::Tls12, ecdhe_suite(key_type));
                    assert_eq!(flights(&resumed), (2, 3, 4), "{what}");
                    assert_eq!((resumed.client.group, resumed.client.resumed), (None, true));
                }
            }
        }
    }
}

#[test]
fn tls13_needs_one_round_trip_resumed_or_not() {
    for (client, server) in library_pairs() {
        for key_type in KEY_TYPES {
            for &group in Group::ALL {
                let what = format!("1.3 {client} to {server}, {key_type}, {group}");
                let setup = Setup::new(client, server, Version::Tls13, key_type)
                    .groups(&[group, other(group)], &[other(group), group]);
                let endpoints = setup.endpoints();
                let full = endpoints.exchange(None);
                check(&full, &what, Version::Tls13, CipherSuite::TLS13_AES_128_GCM_SHA256);
                assert_eq!(flights(&full), (2, 3, 4), "{what}");
                assert_eq!((full.client.group, full.client.resumed), (Some(group), false));
                assert_eq!(full.client.key_shares, [group], "{what}");
                assert!(!full.client.hello_retry_request, "{what}");

                let ticket = full.ticket.expect("a ticket");
                assert_eq!((ticket.version(), ticket.library()), (Version::Tls13, client));
                let resumed = endpoints.exchange(Some(&ticket));
                check(&resumed, &what, Version::Tls13, CipherSuite::TLS13_AES_128_GCM_SHA256);
                assert_eq!(flights(&resumed), (2, 3, 4), "{what}");
                assert_eq!((resumed.client.group, resumed.client.resumed), (Some(group), true));
                assert!(endpoints.client.start(Some(&ticket)).is_err(), "a ticket is for one use");
            }
        }
    }
}

fn other(group: Group) -> Group {
    if group == Group::X25519 { Group::Secp256r1 } else { Group::X25519 }
}

#[test]
fn hello_retry_request_costs_one_more_round_trip() {
    for (client, server) in library_pairs() {
        let what = format!("HRR {client} to {server}");
        let setup = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256)
            .groups(&[Group::X25519, Group::Secp256r1], &[Group::Secp256r1]);
        let endpoints = setup.endpoints();
        let mut ticket = None;
        // Resumption does not spare it: the client has no memory of the server's group.
        for resumed in [false, true] {
            let exchange = endpoints.exchange(ticket.as_ref());
            check(&exchange, &what, Version::Tls13, CipherSuite::TLS13_AES_128_GCM_SHA256);
            assert_eq!(flights(&exchange), (4, 5, 6), "{what}");
            assert!(exchange.client.hello_retry_request, "{what}");
            assert_eq!(exchange.client.group, Some(Group::Secp256r1), "{what}");
            assert_eq!(exchange.client.key_shares, [Group::X25519], "{what}");
            assert_eq!(exchange.client.resumed, resumed, "{what}");
            ticket = exchange.ticket;
        }
    }
}

fn with_ticket(client: Library, server: Library) -> (Setup, Endpoints, tls::Ticket) {
    let setup = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256).early_data(4096);
    let endpoints = setup.endpoints();
    let full = endpoints.exchange(None);
    assert_eq!(full.client.early_data, EarlyData::NotOffered);
    assert_eq!(flights(&full), (2, 3, 4));
    let ticket = full.ticket.expect("a ticket");
    assert_eq!(ticket.max_early_data(), 4096);
    (setup, endpoints, ticket)
}

#[test]
fn early_data_is_answered_in_the_servers_first_flight() {
    for (client, server) in library_pairs() {
        let what = format!("0-RTT {client} to {server}");
        let (_, endpoints, mut ticket) = with_ticket(client, server);
        for _ in 0..3 {
            let exchange = endpoints.exchange(Some(&ticket));
            check(&exchange, &what, Version::Tls13, CipherSuite::TLS13_AES_128_GCM_SHA256);
            // One write holds ClientHello and request, the next the answer: half a round trip each.
            assert_eq!(flights(&exchange), (0, 1, 2), "{what}");
            assert_eq!(exchange.client.early_data, EarlyData::Accepted, "{what}");
            assert!(exchange.client.resumed && !exchange.resent, "{what}");
            ticket = exchange.ticket.expect("a new ticket");
        }
    }
}

#[test]
fn rejected_early_data_is_sent_again_by_the_caller() {
    for (client, server) in library_pairs() {
        let what = format!("0-RTT rejected {client} to {server}");
        let (setup, endpoints, ticket) = with_ticket(client, server);
        // Another server of the same certificate knows nothing of the ticket.
        let restarted =
            Endpoints { client: endpoints.client, server: Server::new(&setup.server).unwrap() };
        let exchange = restarted.exchange(Some(&ticket));
        check(&exchange, &what, Version::Tls13, CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(flights(&exchange), (0, 3, 4), "{what}");
        assert_eq!(exchange.client.early_data, EarlyData::Rejected, "{what}");
        assert!(!exchange.client.resumed && exchange.resent, "{what}");
    }
}

#[test]
fn a_server_without_early_data_rejects_it() {
    for (client, server) in library_pairs() {
        let what = format!("no 0-RTT {client} to {server}");
        let (mut setup, endpoints, ticket) = with_ticket(client, server);
        setup.server.max_early_data = 0;
        let server = Server::new(&setup.server).unwrap();
        let exchange = Endpoints { client: endpoints.client, server }.exchange(Some(&ticket));
        assert_eq!(flights(&exchange), (0, 3, 4), "{what}");
        assert_eq!(exchange.client.early_data, EarlyData::Rejected, "{what}");
        exchange.assert_sides_agree();
    }
}

#[test]
fn hello_retry_request_rejects_early_data() {
    // RFC 8446 §4.1.2: the second ClientHello has no early data.
    for (client, server) in library_pairs() {
        let what = format!("0-RTT, HRR {client} to {server}");
        let mut setup = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256)
            .groups(&[Group::X25519, Group::Secp256r1], &[Group::Secp256r1]);
        setup = setup.early_data(4096);
        let endpoints = setup.endpoints();
        let ticket = endpoints.exchange(None).ticket;
        let exchange = endpoints.exchange(ticket.as_ref());
        assert_eq!(flights(&exchange), (0, 5, 6), "{what}");
        assert_eq!(exchange.client.early_data, EarlyData::Rejected, "{what}");
        assert!(exchange.client.hello_retry_request, "{what}");
        // OpenSSL's guard against replay takes the session out at the first ClientHello, so that it is
        // gone when the second comes.
        assert_eq!(exchange.client.resumed, server == Library::Rustls, "{what}");
        exchange.assert_sides_agree();
    }
}

#[test]
fn a_replayed_first_flight_is_not_read_twice() {
    // RFC 8446 §8.1
    for (client, server) in library_pairs() {
        let what = format!("replay {client} to {server}");
        let (_, endpoints, ticket) = with_ticket(client, server);
        let exchange = endpoints.exchange(Some(&ticket));
        let (from_client, first) = &exchange.flights[0];
        assert!(from_client);
        let mut second = endpoints.server.accept().unwrap();
        second.read_tls(first).unwrap();
        let mut received = Vec::new();
        assert_eq!(second.receive(&mut received).unwrap(), 0, "{what}");
        assert_eq!(second.facts().early_data, EarlyData::Rejected, "{what}");
        assert!(!second.may_send(), "{what}");
    }
}

#[test]
fn early_data_has_a_limit() {
    for (client, server) in library_pairs() {
        let (_, endpoints, ticket) = with_ticket(client, server);
        let mut session = endpoints.client.start(Some(&ticket)).unwrap();
        assert_eq!(session.early_data_room(), 4096);
        assert!(session.send_early(&[1; 4097]).is_err());
        assert_eq!(session.send_early(&[1; 4000]).unwrap(), 4000);
        assert_eq!(session.early_data_room(), 96);
        assert_eq!(session.send_early(&[1; 96]).unwrap(), 96);
        assert_eq!(session.early_data_room(), 0);
        let mut peer = endpoints.server.accept().unwrap();
        let mut flight = Vec::new();
        session.write_tls(&mut flight).unwrap();
        peer.read_tls(&flight).unwrap();
        let mut received = Vec::new();
        assert_eq!(peer.receive(&mut received).unwrap(), 4096, "{client} to {server}");
        assert_eq!(received, [1; 4096]);
    }
}

#[test]
fn without_tickets_there_is_none() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let mut setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            setup.server.tickets = false;
            let exchange = setup.endpoints().exchange(None);
            assert!(exchange.ticket.is_none(), "{client} to {server}, {version}");
        }
    }
}

#[test]
fn a_client_and_a_server_of_both_versions_agree_on_1_3() {
    for (client, server) in library_pairs() {
        let mut setup = Setup::new(client, server, Version::Tls13, KeyType::Rsa2048);
        setup.client.versions = vec![Version::Tls12, Version::Tls13];
        setup.server.versions = vec![Version::Tls13, Version::Tls12];
        let exchange = setup.endpoints().exchange(None);
        assert_eq!(exchange.client.version, Some(Version::Tls13));
        setup.server.versions = vec![Version::Tls12];
        let exchange = setup.endpoints().exchange(None);
        assert_eq!(exchange.client.version, Some(Version::Tls12));
        exchange.assert_sides_agree();
    }
}

#[test]
fn application_protocol_is_the_servers_preference() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let mut setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            setup.client.alpn = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
            setup.server.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            let exchange = setup.endpoints().exchange(None);
            assert_eq!(exchange.client.alpn.as_deref(), Some(&b"h2"[..]), "{client} to {server}");
            exchange.assert_sides_agree();
        }
    }
}

#[test]
fn a_connection_dropped_without_close_keeps_its_session() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let mut setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            if version == Version::Tls13 {
                setup = setup.early_data(100);
            }
            let endpoints = setup.endpoints();
            let mut ticket = None;
            for _ in 0..3 {
                let mut here = endpoints.client.start(ticket.as_ref()).unwrap();
                let mut there = endpoints.server.accept().unwrap();
                for _ in 0..3 {
                    let mut flight = Vec::new();
                    here.write_tls(&mut flight).unwrap();
                    there.read_tls(&flight).unwrap();
                    flight.clear();
                    there.write_tls(&mut flight).unwrap();
                    here.read_tls(&flight).unwrap();
                }
                assert_eq!(
                    here.facts().resumed,
                    ticket.is_some(),
                    "{client} to {server}, {version}"
                );
                ticket = here.take_ticket().or(ticket);
                drop(there);
            }
        }
    }
}
