//! Certificates: what is made, what is sent, what is refused and in which words.

use std::sync::Arc;

use crate::common::{Exchange, NAME, Setup, identity, library_pairs};
use fault::Explain;
use tls::{
    CertificateFault, Client, ClientConfig, Error, Identity, KeyType, Library, PeerError, Server,
    Trust, Validity, Version,
};

/// Runs the handshake until the client fails, then lets the server read the alert.
fn refused(setup: &Setup) -> (Error, Error) {
    let mut client = Client::new(&setup.client).unwrap().start(None).unwrap();
    let mut server = Server::new(&setup.server).unwrap().accept().unwrap();
    let mut flight = Vec::new();
    for _ in 0..4 {
        flight.clear();
        client.write_tls(&mut flight).unwrap();
        server.read_tls(&flight).unwrap();
        flight.clear();
        server.write_tls(&mut flight).unwrap();
        if let Err(error) = client.read_tls(&flight) {
            flight.clear();
            client.write_tls(&mut flight).unwrap();
            assert!(!client.may_send() && client.is_handshaking());
            return (error, server.read_tls(&flight).unwrap_err());
        }
    }
    panic!("the client does not refuse: {:?}", client.facts());
}

fn fault(error: &Error) -> CertificateFault {
    match error {
        Error::Certificate(certificate) => {
            assert_eq!(error.remedy().as_deref(), Some(certificate.reason.remedy()), "{error}");
            certificate.reason
        }
        other => panic!("not a certificate error: {other}"),
    }
}

fn assert_refused(setup: &Setup, wanted: CertificateFault, what: &str) {
    let (at_client, at_server) = refused(setup);
    assert_eq!(fault(&at_client), wanted, "{what}: {at_client}");
    assert!(matches!(at_server, Error::Peer(PeerError::Alert { .. })), "{what}: {at_server}");
}

fn each(mut test: impl FnMut(Setup, &str)) {
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            test(setup, &format!("{client} to {server}, {version}"));
        }
    }
}

#[test]
fn a_root_that_is_not_trusted_is_refused() {
    let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap();
    each(|mut setup, what| {
        setup.client.trust = Trust::Roots(stranger.roots());
        assert_refused(&setup, CertificateFault::UnknownIssuer, what);
        setup.client.trust = Trust::Roots(Vec::new());
        assert!(matches!(Client::new(&setup.client), Err(Error::Caller(_))));
    });
}

#[test]
fn the_system_trusts_none_of_ours() {
    each(|mut setup, what| {
        setup.client.trust = Trust::System;
        // A machine may have no roots at all: then the client says so.
        match Client::new(&setup.client) {
            Ok(_) => assert_refused(&setup, CertificateFault::UnknownIssuer, what),
            Err(error) => assert!(matches!(error, Error::Library { .. }), "{what}: {error}"),
        }
    });
}

#[test]
fn another_name_is_refused() {
    each(|mut setup, what| {
        for name in ["other.test", "10.77.1.2"] {
            setup.client.server_name = name.to_owned();
            assert_refused(&setup, CertificateFault::WrongName, what);
        }
    });
}

#[test]
fn an_expired_certificate_is_refused() {
    let expired = Validity::Expired;
    let identity = Identity::generate_with(KeyType::EcdsaP256, 1, &[NAME], expired).unwrap();
    let identity = Arc::new(identity);
    each(|mut setup, what| {
        setup.server.identity = Arc::clone(&identity);
        setup.client.trust = Trust::Roots(identity.roots());
        assert_refused(&setup, CertificateFault::Expired, what);
    });
}

#[test]
fn insecure_accepts_anything() {
    each(|mut setup, _| {
        setup.client.server_name = "other.test".to_owned();
        setup.client.trust = Trust::Insecure;
        setup.endpoints().exchange(None).assert_sides_agree();
    });
}

#[test]
fn an_address_can_be_the_name() {
    let addresses = ["10.77.1.2", "fd77:1::2"];
    let identity = Arc::new(Identity::generate(KeyType::EcdsaP256, 1, &addresses).unwrap());
    each(|mut setup, _| {
        setup.server.identity = Arc::clone(&identity);
        setup.client.trust = Trust::Roots(identity.roots());
        for address in addresses {
            setup.client.server_name = address.to_owned();
            let exchange = setup.endpoints().exchange(None);
            // RFC 6066 §3: an address is no server_name.
            assert_eq!(exchange.client.server_name, None);
            exchange.assert_sides_agree();
        }
    });
}

/// Bytes of the server's first flight.
fn first_server_flight(exchange: &Exchange) -> &[u8] {
    &exchange.flights.iter().find(|(from_client, _)| !from_client).unwrap().1
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn the_chain_is_on_the_wire_without_the_root() {
    for (client, server) in library_pairs() {
        for length in [1, 3] {
            let identity = identity(KeyType::EcdsaP256, length);
            let mut setup = Setup::new(client, server, Version::Tls12, KeyType::EcdsaP256);
            setup.server.identity = Arc::clone(&identity);
            setup.client.trust = Trust::Roots(identity.roots());
            let exchange = setup.endpoints().exchange(None);
            assert_eq!(exchange.client.certificates, length);
            assert_eq!(identity.chain_der().len(), length);
            // TLS 1.2 sends its certificates in the clear.
            let flight = first_server_flight(&exchange);
            let mut at = Vec::new();
            for certificate in identity.chain_der() {
                assert!(contains(flight, certificate), "{client} to {server}, {length}");
                at.push(flight.windows(certificate.len()).position(|part| part == certificate));
            }
            assert!(at.is_sorted(), "leaf first, RFC 5246 §7.4.2");
            assert!(!contains(flight, &identity.roots()[0]), "the root is not sent");
        }
    }
}

#[test]
fn a_longer_chain_and_larger_keys_make_a_longer_flight() {
    let length = |key_type, chain| {
        let identity = identity(key_type, chain);
        let mut setup =
            Setup::new(Library::Rustls, Library::Rustls, Version::Tls13, KeyType::EcdsaP256);
        setup.client.trust = Trust::Roots(identity.roots());
        setup.server.identity = identity;
        first_server_flight(&setup.endpoints().exchange(None)).len()
    };
    let lengths = [
        length(KeyType::EcdsaP256, 1),
        length(KeyType::EcdsaP256, 3),
        length(KeyType::Rsa2048, 3),
        length(KeyType::Rsa4096, 3),
    ];
    println!("bytes of the server's first flight: {lengths:?}");
    assert!(lengths.is_sorted_by(|a, b| a < b), "{lengths:?}");
}

#[test]
fn rsa_4096_chains_of_three_work_everywhere() {
    let identity = identity(KeyType::Rsa4096, 3);
    for (client, server) in library_pairs() {
        for &version in Version::ALL {
            let mut setup = Setup::new(client, server, version, KeyType::EcdsaP256);
            setup.server.identity = Arc::clone(&identity);
            setup.client.trust = Trust::Roots(identity.roots());
            let exchange = setup.endpoints().exchange(None);
            assert_eq!(exchange.client.certificates, 3);
        }
    }
}

#[test]
fn debug_hides_the_key() {
    let identity = identity(KeyType::EcdsaP256, 1);
    let shown = format!("{identity:?}");
    assert!(shown.contains("EcdsaP256") && shown.len() < 120, "{shown}");
    let setup = Setup::new(Library::OpenSsl, Library::OpenSsl, Version::Tls13, KeyType::EcdsaP256);
    let ticket = setup.endpoints().exchange(None).ticket.unwrap();
    assert!(format!("{ticket:?}").len() < 80, "{ticket:?}");
}

#[test]
fn wrong_identities_are_refused() {
    for chain in [0, tls::MAX_CHAIN + 1] {
        let error = Identity::generate(KeyType::EcdsaP256, chain, &[NAME]).unwrap_err();
        assert!(error.to_string().contains("1 to 10 certificates"), "{error}");
    }
    assert!(Identity::generate(KeyType::EcdsaP256, 1, &[]).is_err());
    assert!(Identity::generate(KeyType::EcdsaP256, 1, &["näme"]).is_err());
    let bad = ClientConfig::new(Library::Rustls, NAME, Trust::Roots(vec![vec![1, 2, 3]]));
    for library in Library::ALL {
        let error = Client::new(&ClientConfig { library: *library, ..bad.clone() }).unwrap_err();
        assert!(matches!(error, Error::Caller(_)), "{error}");
    }
}

#[test]
fn pem_holds_the_same_certificates() {
    let identity = identity(KeyType::EcdsaP256, 3);
    let chain = identity.chain_pem().unwrap();
    let read = openssl::x509::X509::stack_from_pem(chain.as_bytes()).unwrap();
    let der: Vec<_> = read.iter().map(|certificate| certificate.to_der().unwrap()).collect();
    assert_eq!(der, identity.chain_der());
    let root = openssl::x509::X509::from_pem(identity.root_pem().unwrap().as_bytes()).unwrap();
    assert_eq!(root.to_der().unwrap(), identity.roots()[0]);
    let key = identity.private_key_pem().unwrap();
    let key = openssl::pkey::PKey::private_key_from_pem(key.as_bytes()).unwrap();
    assert!(key.public_eq(&read[0].public_key().unwrap()));
    assert_eq!(read[0].public_key().unwrap().bits(), 256);
}

#[test]
fn every_key_of_a_chain_is_of_the_type() {
    for (key_type, bits) in [(KeyType::Rsa2048, 2048), (KeyType::Rsa4096, 4096)] {
        let identity = identity(key_type, 3);
        for der in identity.chain_der().iter().chain(&identity.roots()) {
            let certificate = openssl::x509::X509::from_der(der).unwrap();
            assert_eq!(certificate.public_key().unwrap().bits(), bits);
        }
    }
}
