//! Chains of others: read, verified, shown without their keys; their flights' lengths against the pure
//! model's, to the byte.

use std::sync::Arc;

use fault::Explain;
use flight::{Flight, Framing, Hello, PostQuantum};
use tls::chain::Chain;
use tls::{
    Client, ClientConfig, Compression, Error, Identity, KeyType, Library, Server, ServerConfig,
    Trust, Version,
};

use crate::common::NAME;

/// 2026-11-23, in seconds since 1970.
const NOW: i64 = 1_795_392_000;

/// The ClientHello's flight, and the server's first.
fn first_flight(client: &ClientConfig, server: &ServerConfig) -> (usize, usize, bool) {
    let mut here = Client::new(client).unwrap().start(None).unwrap();
    let mut there = Server::new(server).unwrap().accept().unwrap();
    let (mut hello, mut flight) = (Vec::new(), Vec::new());
    here.write_tls(&mut hello).unwrap();
    there.read_tls(&hello).unwrap();
    there.write_tls(&mut flight).unwrap();
    here.read_tls(&flight).unwrap();
    (hello.len(), flight.len(), here.may_send())
}

/// What shows a chain without its key, and who looks at it.
fn stand_in(chain: &Chain, version: Version) -> (ClientConfig, ServerConfig) {
    let mut server = ServerConfig::new(Library::Rustls, Arc::new(chain.stand_in().unwrap()));
    let mut client = ClientConfig::new(Library::Rustls, NAME, Trust::Unchecked);
    server.versions = vec![version];
    client.versions = vec![version];
    server.tickets = false;
    (client, server)
}

fn chain_of(identity: &Identity) -> Chain {
    Chain::from_der(identity.chain_der()).unwrap()
}

fn classical(key: KeyType, length: usize) -> Chain {
    chain_of(&Identity::generate(key, length, &[NAME]).unwrap())
}

#[test]
fn a_flight_without_the_key_is_as_long_as_the_model_says() {
    for key in [KeyType::EcdsaP256, KeyType::Rsa2048] {
        for length in [1, 3] {
            let chain = classical(key, length);
            let (client, server) = stand_in(&chain, Version::Tls13);
            let (_, flight, done) = first_flight(&client, &server);
            let model = Flight::tls13(&chain.lengths(), Hello::default(), Framing::Coalesced);
            assert_eq!(flight, model.bytes(), "{key}, {length}");
            assert!(done);

            let (client, server) = stand_in(&chain, Version::Tls12);
            let (_, flight, _) = first_flight(&client, &server);
            let hello = Hello { key_share: 32, session_id: 0, extensions: 13 };
            let model = Flight::tls12(&chain.lengths(), hello, Framing::Coalesced);
            assert_eq!(flight, model.bytes(), "{key}, {length}, TLS 1.2");
        }
    }
}

#[test]
fn compression_is_on_the_wire_and_as_long_as_the_model_says() {
    let chain = classical(KeyType::Rsa2048, 3);
    let body = chain.certificate_body().unwrap();
    assert_eq!(body.len(), chain.lengths().certificate_body());
    for compression in Compression::ALL {
        let (mut client, mut server) = stand_in(&chain, Version::Tls13);
        let plain = first_flight(&client, &server);
        client.compression = vec![*compression];
        // A server that does not know it sends the chain as it is.
        assert_eq!(first_flight(&client, &server).1, plain.1);
        server.compression = vec![*compression];
        let (_, flight, done) = first_flight(&client, &server);
        let packed = chain.lengths().compressed_to(compression.pack(&body).unwrap().len());
        let model = Flight::tls13(&packed, Hello::default(), Framing::Coalesced);
        assert_eq!(flight, model.bytes(), "{compression}");
        assert!(done && flight < plain.1, "{compression}: {flight} of {}", plain.1);
    }
}

#[test]
fn openssl_has_neither_compression_nor_stand_ins() {
    let chain = classical(KeyType::EcdsaP256, 1);
    let (mut client, mut server) = stand_in(&chain, Version::Tls13);
    (client.library, server.library) = (Library::OpenSsl, Library::OpenSsl);
    for error in [Client::new(&client).unwrap_err(), Server::new(&server).unwrap_err()] {
        assert!(error.to_string().contains("openssl does not support"), "{error}");
    }
    client.trust = Trust::Insecure;
    client.compression = vec![Compression::Zlib];
    assert!(Client::new(&client).is_err());
}

#[test]
fn a_chain_without_its_key_is_refused_by_whoever_checks() {
    let chain = classical(KeyType::EcdsaP256, 1);
    let (mut client, server) = stand_in(&chain, Version::Tls13);
    client.trust = Trust::Insecure;
    let mut here = Client::new(&client).unwrap().start(None).unwrap();
    let mut there = Server::new(&server).unwrap().accept().unwrap();
    let (mut hello, mut flight) = (Vec::new(), Vec::new());
    here.write_tls(&mut hello).unwrap();
    there.read_tls(&hello).unwrap();
    there.write_tls(&mut flight).unwrap();
    let error = here.read_tls(&flight).unwrap_err();
    assert!(matches!(error, Error::Certificate(_)), "{error}");
}

#[test]
fn post_quantum_chains_serve_and_are_as_long_as_the_model_says() {
    for scheme in [PostQuantum::MlDsa44, PostQuantum::MlDsa65, PostQuantum::MlDsa87] {
        let identity = Arc::new(Identity::post_quantum(scheme, scheme, 2, &[NAME]).unwrap());
        let chain = chain_of(&identity);
        assert_eq!(chain.leaf_key().signature, scheme.signature());
        let named = chain.certificates().iter().map(|one| one.key.to_lowercase());
        assert_eq!(named.collect::<Vec<_>>(), [scheme.name(), scheme.name()]);
        let trust = Trust::Roots(identity.roots());
        let client = ClientConfig::new(Library::OpenSsl, NAME, trust.clone());
        let server = ServerConfig::new(Library::OpenSsl, identity);
        let (_, flight, done) = first_flight(&client, &server);
        let hello = Hello { extensions: 0, ..Hello::default() };
        let model = Flight::tls13(&chain.lengths(), hello, Framing::PerMessage);
        assert_eq!(flight, model.bytes(), "{scheme}");
        assert!(done, "{scheme}");
        // The same chain without its key, by rustls.
        let (client, server) = stand_in(&chain, Version::Tls13);
        let model = Flight::tls13(&chain.lengths(), Hello::default(), Framing::Coalesced);
        assert_eq!(first_flight(&client, &server).1, model.bytes(), "{scheme}");
        // A belief about rustls on aws-lc-rs: it verifies none of them yet.
        let verdicts = chain.verify(&trust, NAME, NOW).unwrap();
        let refused =
            |library| verdicts.iter().find(|one| one.library == library).unwrap().refused.clone();
        assert_eq!(refused(Library::OpenSsl), None, "{scheme}");
        println!("{scheme}: rustls says {:?}", refused(Library::Rustls));
    }
}

#[test]
fn an_authority_of_slh_dsa_signs_a_leaf_of_ml_dsa() {
    let (leaf, authority) = (PostQuantum::MlDsa44, PostQuantum::SlhDsa128f);
    let identity = Arc::new(Identity::post_quantum(leaf, authority, 1, &[NAME]).unwrap());
    let chain = chain_of(&identity);
    let one = &chain.certificates()[0];
    assert_eq!(one.signed_by.to_lowercase(), authority.name());
    assert!(one.bytes > authority.signature() + leaf.public_key());
    let client = ClientConfig::new(Library::OpenSsl, NAME, Trust::Roots(identity.roots()));
    let server = ServerConfig::new(Library::OpenSsl, identity);
    assert!(first_flight(&client, &server).2);
}

#[test]
fn both_verifiers_say_what_they_think() {
    let identity = Identity::generate(KeyType::EcdsaP256, 2, &[NAME]).unwrap();
    let (chain, trust) = (chain_of(&identity), Trust::Roots(identity.roots()));
    for verdict in chain.verify(&trust, NAME, NOW).unwrap() {
        assert_eq!(verdict.refused, None, "{}", verdict.library);
    }
    let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap();
    let long_ago = 86_400;
    for (trust, name, now) in [
        (Trust::Roots(stranger.roots()), NAME, NOW),
        (trust.clone(), "other.test", NOW),
        (trust, NAME, long_ago),
    ] {
        for verdict in chain.verify(&trust, name, now).unwrap() {
            assert!(verdict.refused.is_some(), "{}: {name} at {now}", verdict.library);
        }
    }
}

fn oddities(chain: &Chain) -> String {
    let lines = chain.oddities(NOW).into_iter();
    lines.map(|one| format!("{} ({})", one.what, one.remedy)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_odd_about_a_chain_is_said() {
    let identity = Identity::generate(KeyType::EcdsaP256, 3, &["*.example.test"]).unwrap();
    let der = identity.chain_der().to_vec();
    let good = Chain::from_der(&der).unwrap();
    assert_eq!(oddities(&good), "");
    assert_eq!(good.name().as_deref(), Some("www.example.test"));
    assert!(good.without_roots().is_none());
    assert_eq!(Chain::from_file(&good.to_pem().unwrap()).unwrap().der().unwrap(), der);

    let swapped = Chain::from_der(&[der[0].clone(), der[2].clone(), der[1].clone()]).unwrap();
    assert!(oddities(&swapped).contains("out of order"), "{}", oddities(&swapped));
    let stranger = Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap();
    let mixed = Chain::from_der(&[der[0].clone(), stranger.chain_der()[0].clone()]).unwrap();
    assert!(oddities(&mixed).contains("nor by another"), "{}", oddities(&mixed));

    let with_root = Chain::from_der(&[&der[..], &identity.roots()].concat()).unwrap();
    assert!(oddities(&with_root).contains("certificate 4"), "{}", oddities(&with_root));
    let without = with_root.without_roots().unwrap();
    assert_eq!(without.der().unwrap(), der);

    let validity = tls::Validity::Expired;
    let old = Identity::generate_with(KeyType::EcdsaP256, 1, &[NAME], validity).unwrap();
    assert!(oddities(&chain_of(&old)).contains("has expired"), "{}", oddities(&chain_of(&old)));
}

#[test]
fn what_is_no_chain_is_refused_with_a_reason() {
    let identity = Identity::generate(KeyType::EcdsaP256, 1, &[NAME]).unwrap();
    let (pem, key) = (identity.chain_pem().unwrap(), identity.private_key_pem().unwrap());
    let refused = |bytes: &[u8]| Chain::from_file(bytes).unwrap_err().in_one_text();
    for nonsense in [&b""[..], b"x", key.as_bytes()] {
        assert!(refused(nonsense).contains("no certificate in it"), "{}", refused(nonsense));
    }
    let large = vec![b'x'; (1 << 20) + 1];
    assert!(refused(&large).contains("MiB"), "{}", refused(&large));
    let broken = pem.replacen("MII", "NII", 1);
    assert!(
        refused(broken.as_bytes()).contains("cannot be read"),
        "{}",
        refused(broken.as_bytes())
    );
    assert!(refused(pem.repeat(11).as_bytes()).contains("11 certificates"));
    // What else stands in the file is passed over.
    let both = [key.as_bytes(), b"words\n", pem.as_bytes()].concat();
    assert_eq!(Chain::from_file(&both).unwrap().certificates().len(), 1);
}
