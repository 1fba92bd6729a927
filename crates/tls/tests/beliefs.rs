//! What Wiretax assumes of the libraries, each assumption by name.

use crate::common::{Exchange, Setup, identity, library_pairs};
use tls::{Group, KeyType, Library, Trust, Version};

/// What fits the SYN of a cookie-less Fast Open at an MTU of 1500 bytes.
const SYN_PAYLOAD: usize = 1420;
/// TCP payload of one segment with timestamps, and the initial window of ten (RFC 6928).
const SEGMENT: usize = 1448;
const INITIAL_WINDOW: usize = 10 * SEGMENT;

fn exchange(setup: &Setup) -> Exchange {
    setup.endpoints().exchange(None)
}

/// Client libraries and groups with the length of the ClientHello: first without, then with a ticket.
fn hello_lengths() -> Vec<(Library, Group, usize, usize)> {
    let mut lengths = Vec::new();
    for &library in Library::ALL {
        for &group in Group::ALL {
            let setup = Setup::new(library, library, Version::Tls13, KeyType::EcdsaP256)
                .groups(&[group], &[group]);
            let endpoints = setup.endpoints();
            let full = endpoints.exchange(None);
            let resumed = endpoints.exchange(full.ticket.as_ref());
            let hello = |exchange: &Exchange| exchange.client.client_hello_len;
            println!("{library}, {group}: {} bytes, with ticket {}", hello(&full), hello(&resumed));
            lengths.push((library, group, hello(&full), hello(&resumed)));
        }
    }
    lengths
}

#[test]
fn a_client_hello_with_a_hybrid_share_fills_a_syn() {
    for (library, group, full, resumed) in hello_lengths() {
        if group == Group::X25519MlKem768 {
            // 1216 bytes of share (1184 of ML-KEM-768, 32 of X25519) leave 204 for the rest: with a short
            // name and nothing else it just fits, with a ticket it does not.
            assert!((1350..=SYN_PAYLOAD).contains(&full), "{library}");
            assert!(resumed > SYN_PAYLOAD, "{library}");
        } else {
            assert!(full < 300 && resumed < 600, "{library}, {group}");
        }
    }
}

#[test]
fn a_client_hello_with_ticket_and_early_data_fits_one_syn() {
    for (client, server) in library_pairs() {
        let setup = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256).early_data(4096);
        let endpoints = setup.endpoints();
        let ticket = endpoints.exchange(None).ticket;
        let resumed = endpoints.exchange(ticket.as_ref());
        let first = resumed.flights[0].1.len();
        println!("{client} to {server}: {first} bytes with early data");
        assert!(first < SYN_PAYLOAD);
        assert!(first > resumed.client.client_hello_len);
    }
}

#[test]
fn the_longest_chain_fits_the_initial_window() {
    for &server in Library::ALL {
        let identity = identity(KeyType::Rsa4096, 3);
        let mut setup = Setup::new(Library::Rustls, server, Version::Tls13, KeyType::EcdsaP256);
        setup.client.trust = Trust::Roots(identity.roots());
        setup.server.identity = identity;
        let length = exchange(&setup).flights[1].1.len();
        println!("{server}: server's flight of {length} bytes, RSA-4096, chain of 3");
        assert!((3 * SEGMENT..INITIAL_WINDOW).contains(&length));
    }
}

#[test]
fn a_ticket_of_tls_1_3_comes_after_the_clients_finished() {
    for (client, server) in library_pairs() {
        let setup = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256);
        let endpoints = setup.endpoints();
        let mut client = endpoints.client.start(None).unwrap();
        let mut server = endpoints.server.accept().unwrap();
        let mut flight = Vec::new();
        client.write_tls(&mut flight).unwrap();
        server.read_tls(&flight).unwrap();
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        client.read_tls(&flight).unwrap();
        assert!(client.may_send() && !server.may_send());
        assert!(client.take_ticket().is_none());
        flight.clear();
        client.write_tls(&mut flight).unwrap();
        server.read_tls(&flight).unwrap();
        assert!(server.may_send());
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        // One record: one ticket.
        let length = usize::from(u16::from_be_bytes([flight[3], flight[4]]));
        assert_eq!(flight.len(), 5 + length);
        client.read_tls(&flight).unwrap();
        assert!(client.take_ticket().is_some());
    }
}

#[test]
fn finished_and_first_request_go_out_in_one_write() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            let done = exchange(&setup);
            // The client's flights: with TLS 1.3 hello, then Finished and request; with TLS 1.2 hello,
            // then key exchange and Finished, then the request.
            let wanted = if version == Version::Tls13 { 2 } else { 3 };
            let from_client = done.flights.iter().filter(|(from_client, _)| *from_client).count();
            assert_eq!(from_client, wanted, "{client} to {server}, {version}");
        }
    }
}

#[test]
fn data_queued_before_the_handshake_waits_for_it() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            let endpoints = setup.endpoints();
            let mut client = endpoints.client.start(None).unwrap();
            let mut server = endpoints.server.accept().unwrap();
            client.send(b"early bird").unwrap();
            server.send(b"worm").unwrap();
            let (mut at_server, mut at_client) = (Vec::new(), Vec::new());
            for round in 0..3 {
                let mut flight = Vec::new();
                client.write_tls(&mut flight).unwrap();
                if round == 0 {
                    assert_eq!(flight.len(), client.facts().client_hello_len);
                }
                server.read_tls(&flight).unwrap();
                server.receive(&mut at_server).unwrap();
                flight.clear();
                server.write_tls(&mut flight).unwrap();
                client.read_tls(&flight).unwrap();
                client.receive(&mut at_client).unwrap();
            }
            assert_eq!((&at_server[..], &at_client[..]), (&b"early bird"[..], &b"worm"[..]));
        }
    }
}
