//! What cannot be had: wrong configurations, nothing in common, tickets of others, early data beyond.

use fault::Explain;

use crate::common::{NAME, Setup, identity, library_pairs};
use tls::{
    CallerError, Client, ClientConfig, Error, Group, KeyExchange, KeyType, Library, PeerError,
    Server, ServerConfig, Session, Trust, Version,
};

fn client_config(library: Library) -> ClientConfig {
    ClientConfig::new(library, NAME, Trust::Insecure)
}

fn server_config(library: Library) -> ServerConfig {
    ServerConfig::new(library, identity(KeyType::EcdsaP256, 1))
}

#[test]
fn rustls_has_no_rsa_key_exchange_and_says_what_to_do() {
    let mut client = client_config(Library::Rustls);
    client.versions = vec![Version::Tls12];
    client.key_exchange = KeyExchange::Rsa;
    let mut server = server_config(Library::Rustls);
    server.identity = identity(KeyType::Rsa2048, 1);
    server.versions = vec![Version::Tls12];
    server.key_exchange = KeyExchange::Rsa;
    for error in [Client::new(&client).unwrap_err(), Server::new(&server).unwrap_err()] {
        assert!(matches!(error, Error::Caller(CallerError::Unsupported { .. })), "{error}");
        assert!(error.in_one_text().contains("use OpenSSL"), "{error}");
    }
    // With TLS 1.3 alone the field says nothing.
    client.versions = vec![Version::Tls13];
    assert!(Client::new(&client).is_ok());
}

#[test]
fn contradictions_are_the_callers_fault() {
    type Change = fn(&mut ClientConfig);
    let changes: [(Change, &str); 8] = [
        (|config| config.versions.clear(), "no TLS version"),
        (|config| config.groups.clear(), "no group"),
        (|config| config.groups = vec![Group::X25519; 2], "named twice"),
        (|config| config.key_shares = 0, "key_shares is 0"),
        (|config| config.key_shares = 3, "key_shares is 3, and it can be 1 to 2"),
        (|config| config.alpn = vec![Vec::new()], "1 to 255 bytes"),
        (|config| config.server_name = "a b".to_owned(), "neither a DNS name"),
        (
            |config| {
                config.versions = vec![Version::Tls12];
                config.groups = vec![Group::X25519MlKem768];
            },
            "[x25519mlkem768] can be used with tls1.2",
        ),
    ];
    for &library in Library::ALL {
        for (change, wanted) in changes {
            let mut config = client_config(library);
            change(&mut config);
            let error = Client::new(&config).unwrap_err();
            assert!(matches!(error, Error::Caller(_)), "{error}");
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}

#[test]
fn wrong_servers_are_the_callers_fault() {
    type Change = fn(&mut ServerConfig);
    let changes: [(Change, &str); 4] = [
        (|config| config.versions.clear(), "no TLS version"),
        (
            |config| {
                config.max_early_data = 1;
                config.tickets = false;
            },
            "early data needs tickets",
        ),
        (
            |config| {
                config.max_early_data = 1;
                config.versions = vec![Version::Tls12];
            },
            "early data needs tickets and TLS 1.3",
        ),
        (
            |config| {
                config.versions = vec![Version::Tls12];
                config.key_exchange = KeyExchange::Rsa;
            },
            "needs an RSA key",
        ),
    ];
    for &library in Library::ALL {
        for (change, wanted) in changes {
            let mut config = server_config(library);
            change(&mut config);
            let error = Server::new(&config).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
    let mut config = server_config(Library::OpenSsl);
    config.versions = vec![Version::Tls12];
    config.groups = vec![Group::X25519];
    let error = Server::new(&config).unwrap_err();
    assert!(error.to_string().contains("secp256r1"), "{error}");
}

#[test]
fn rustls_sends_one_key_share_or_the_hybrid_pair() {
    let mut config = client_config(Library::Rustls);
    config.key_shares = 2;
    let error = Client::new(&config).unwrap_err();
    assert!(error.in_one_text().contains("set key_shares to 1"), "{error}");

    for &library in Library::ALL {
        let mut setup = Setup::new(library, Library::Rustls, Version::Tls13, KeyType::EcdsaP256)
            .groups(&[Group::X25519MlKem768, Group::X25519], &[Group::X25519]);
        setup.client.key_shares = 2;
        let exchange = setup.endpoints().exchange(None);
        assert_eq!(exchange.client.key_shares, [Group::X25519MlKem768, Group::X25519]);
        assert_eq!(exchange.client.group, Some(Group::X25519));
        assert!(!exchange.client.hello_retry_request);
    }
}

/// Runs a handshake to its end or first error: (at the client, at the server).
fn outcome(setup: &Setup) -> (Result<(), Error>, Result<(), Error>) {
    let mut client = Client::new(&setup.client).unwrap().start(None).unwrap();
    let mut server = Server::new(&setup.server).unwrap().accept().unwrap();
    let (mut at_client, mut at_server) = (Ok(()), Ok(()));
    for _ in 0..6 {
        let mut flight = Vec::new();
        client.write_tls(&mut flight).unwrap();
        if at_server.is_ok() {
            at_server = server.read_tls(&flight);
        }
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        if at_client.is_ok() {
            at_client = client.read_tls(&flight);
        }
    }
    (at_client, at_server)
}

fn assert_alert(at: &Result<(), Error>, wanted: u8, what: &str) {
    match at {
        Err(Error::Peer(PeerError::Alert { code, .. })) => assert_eq!(*code, wanted, "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn nothing_in_common_is_the_peers_fault() {
    for (client, server) in library_pairs() {
        let what = format!("{client} to {server}");
        let base = Setup::new(client, server, Version::Tls13, KeyType::EcdsaP256);

        let mut versions = base.clone();
        versions.client.versions = vec![Version::Tls12];
        let (at_client, at_server) = outcome(&versions);
        assert_alert(&at_client, 70, &what); // protocol_version
        assert!(matches!(at_server, Err(Error::Peer(PeerError::Incompatible(_)))), "{at_server:?}");

        let groups = base.clone().groups(&[Group::X25519], &[Group::Secp256r1]);
        let (at_client, at_server) = outcome(&groups);
        assert_alert(&at_client, 40, &what); // handshake_failure
        assert!(matches!(at_server, Err(Error::Peer(PeerError::Incompatible(_)))), "{at_server:?}");

        let mut protocols = base.clone();
        protocols.client.alpn = vec![b"h2".to_vec()];
        protocols.server.alpn = vec![b"http/1.1".to_vec()];
        let (at_client, at_server) = outcome(&protocols);
        assert_alert(&at_client, 120, &what); // no_application_protocol, RFC 7301 §3.2
        let wanted = Error::Peer(PeerError::NoApplicationProtocol);
        assert_eq!(at_server, Err(wanted), "{what}");
    }
}

#[test]
fn a_ticket_belongs_to_its_client() {
    for (library, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(library, server, version, KeyType::EcdsaP256);
            let endpoints = setup.endpoints();
            let ticket = endpoints.exchange(None).ticket.unwrap();
            for &other in Library::ALL {
                let stranger = ClientConfig { library: other, ..setup.client.clone() };
                let error = Client::new(&stranger).unwrap().start(Some(&ticket)).err().unwrap();
                assert_eq!(error, CallerError::ForeignTicket.into());
            }
            // A clone is the same client, and the refusals used nothing up.
            assert!(endpoints.client.clone().start(Some(&ticket)).is_ok());
            let again = endpoints.client.start(Some(&ticket)).err();
            let wanted = (version == Version::Tls13).then(|| CallerError::UsedTicket.into());
            assert_eq!(again, wanted);
        }
    }
}

#[test]
fn early_data_needs_a_ticket_that_allows_it_and_the_will() {
    for (library, server) in library_pairs() {
        let mut setup =
            Setup::new(library, server, Version::Tls13, KeyType::EcdsaP256).early_data(100);
        let endpoints = setup.endpoints();
        let mut fresh = endpoints.client.start(None).unwrap();
        let refused = fresh.send_early(b"x").unwrap_err();
        assert_eq!(refused, CallerError::EarlyData { wanted: 1, room: 0 }.into());
        let mut accepted = endpoints.server.accept().unwrap();
        assert!(accepted.send_early(b"x").is_err(), "a server has no early data to send");

        setup.client.early_data = false;
        let endpoints = setup.endpoints();
        let ticket = endpoints.exchange(None).ticket.unwrap();
        assert!(ticket.allows_early_data());
        let exchange = endpoints.exchange(Some(&ticket));
        assert_eq!(exchange.client.early_data, tls::EarlyData::NotOffered);
        assert_eq!((exchange.client.resumed, exchange.flights_until_ready), (true, 2));
    }
}

#[test]
fn what_waits_is_bounded() {
    for &library in Library::ALL {
        let mut session = Client::new(&client_config(library)).unwrap().start(None).unwrap();
        let megabyte = vec![0; tls::MAX_BUFFERED];
        session.send(&megabyte).unwrap();
        let error = session.send(b"x").unwrap_err();
        assert!(matches!(error, Error::Caller(CallerError::BufferFull(_))), "{error}");
    }
}

#[test]
fn a_megabyte_goes_through_and_more_at_once_is_refused() {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            let endpoints = setup.endpoints();
            let mut client = endpoints.client.start(None).unwrap();
            let mut server = endpoints.server.accept().unwrap();
            complete(client.as_mut(), server.as_mut());
            let megabyte: Vec<u8> = (0..tls::MAX_BUFFERED).map(|at| (at % 251) as u8).collect();
            let mut received = Vec::new();
            for _ in 0..2 {
                let mut flight = Vec::new();
                client.send(&megabyte).unwrap();
                client.write_tls(&mut flight).unwrap();
                for part in flight.chunks(1447) {
                    server.read_tls(part).unwrap();
                }
                received.clear();
                server.receive(&mut received).unwrap();
                assert!(received == megabyte);
            }
            let mut flight = Vec::new();
            client.send(&megabyte).unwrap();
            client.write_tls(&mut flight).unwrap();
            client.send(b"x").unwrap();
            client.write_tls(&mut flight).unwrap();
            let error = server.read_tls(&flight).unwrap_err();
            assert!(matches!(error, Error::Peer(PeerError::Misbehaved(_))), "{error}");
        }
    }
}

fn complete(client: &mut dyn Session, server: &mut dyn Session) {
    for _ in 0..4 {
        let mut flight = Vec::new();
        client.write_tls(&mut flight).unwrap();
        server.read_tls(&flight).unwrap();
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        client.read_tls(&flight).unwrap();
    }
    assert!(client.may_send() && server.may_send());
}
