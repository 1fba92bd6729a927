//! Encrypted Client Hello (RFC 9849), as far as it can be had: rustls has the client's side alone, OpenSSL 3.5
//! neither. What it makes of the hello's size, and what it costs where a server does not know it.

use std::sync::Arc;

use rustls::client::{EchConfig, EchGreaseConfig, EchMode, EchStatus};
use rustls::crypto::aws_lc_rs::{self, hpke, kx_group};
use rustls::crypto::hpke::{Hpke, HpkePublicKey};
use rustls::pki_types::{CertificateDer, EchConfigListBytes, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tls::{Group, KeyType, Library, Server};

use crate::common::{NAME, Setup, identity};

/// The name that the hello shows outside.
const PUBLIC: &str = "public.test";
/// What fits the SYN of a cookie-less Fast Open at an MTU of 1500 bytes.
const SYN_PAYLOAD: usize = 1420;

fn suite() -> &'static dyn Hpke {
    hpke::DH_KEM_X25519_HKDF_SHA256_AES_128
}

fn public_key() -> HpkePublicKey {
    suite().generate_key_pair().unwrap().0
}

/// An ECHConfigList (RFC 9849 §4) of one configuration.
fn configuration() -> Vec<u8> {
    let key = public_key().0;
    let mut contents = vec![7, 0x00, 0x20]; // the configuration's number, DHKEM(X25519, HKDF-SHA256)
    contents.extend((key.len() as u16).to_be_bytes());
    contents.extend(key);
    contents.extend([0, 4, 0, 1, 0, 1]); // HKDF-SHA256 and AES-128-GCM
    contents.extend([64, PUBLIC.len() as u8]);
    contents.extend(PUBLIC.as_bytes());
    contents.extend([0, 0]);
    let mut config = vec![0xfe, 0x0d];
    config.extend((contents.len() as u16).to_be_bytes());
    config.extend(contents);
    let mut list = (config.len() as u16).to_be_bytes().to_vec();
    list.extend(config);
    list
}

fn real() -> EchMode {
    EchConfig::new(EchConfigListBytes::from(configuration()), &[suite()]).unwrap().into()
}

fn grease() -> EchMode {
    EchMode::Grease(EchGreaseConfig::new(suite(), public_key()))
}

/// A client of TLS 1.3 whose one share is of this group, with ECH or without.
fn client(group: Group, ech: Option<EchMode>, root: &[u8]) -> ClientConnection {
    let group = match group {
        Group::X25519 => kx_group::X25519,
        Group::Secp256r1 => kx_group::SECP256R1,
        Group::X25519MlKem768 => kx_group::X25519MLKEM768,
    };
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![group];
    provider.cipher_suites = vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = match ech {
        Some(mode) => builder.with_ech(mode).unwrap(),
        None => builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap(),
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(root.to_vec())).unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    ClientConnection::new(Arc::new(config), ServerName::try_from(NAME).unwrap()).unwrap()
}

fn hello(group: Group, ech: Option<EchMode>) -> usize {
    let root = identity(KeyType::EcdsaP256, 1).roots().remove(0);
    let mut hello = Vec::new();
    client(group, ech, &root).write_tls(&mut hello).unwrap();
    hello.len()
}

#[test]
fn an_encrypted_hello_is_about_twice_as_long_and_with_a_hybrid_share_fits_no_syn() {
    for group in Group::ALL {
        let (plain, ech) = (hello(*group, None), hello(*group, Some(real())));
        let placeholder = hello(*group, Some(grease()));
        println!("{group}: {plain} bytes, {ech} with ECH, {placeholder} with a placeholder");
        // The inner hello, padded, its tag, and the key that it is sealed to.
        assert!(ech > plain + 200, "{group}");
        let fits = *group != Group::X25519MlKem768;
        assert_eq!(ech <= SYN_PAYLOAD, fits, "{group}");
        assert!(placeholder > plain + 100, "{group}");
    }
}

/// Flights until both are done, and what became of ECH. `Err` if the client gave up.
fn handshake(mut here: ClientConnection, server: &Server) -> (usize, EchStatus, bool) {
    let mut there = server.accept().unwrap();
    let mut flights = 0;
    for _ in 0..4 {
        let mut flight = Vec::new();
        while here.wants_write() {
            here.write_tls(&mut flight).unwrap();
        }
        if !flight.is_empty() {
            flights += 1;
        }
        let over = there.read_tls(&flight).is_err();
        flight.clear();
        there.write_tls(&mut flight).unwrap();
        if over || flight.is_empty() || !here.is_handshaking() {
            break;
        }
        flights += 1;
        let mut bytes = flight.as_slice();
        while !bytes.is_empty() {
            here.read_tls(&mut bytes).unwrap();
            if here.process_new_packets().is_err() {
                return (flights, here.ech_status(), false);
            }
        }
    }
    (flights, here.ech_status(), true)
}

#[test]
fn a_server_without_ech_costs_a_whole_handshake_more() {
    for &library in Library::ALL {
        let setup = Setup::new(Library::Rustls, library, tls::Version::Tls13, KeyType::EcdsaP256);
        let names = [NAME, PUBLIC];
        let identity = tls::Identity::generate(KeyType::EcdsaP256, 1, &names).unwrap();
        let root = identity.roots().remove(0);
        let mut config = setup.server.clone();
        config.identity = Arc::new(identity);
        let server = Server::new(&config).unwrap();
        let (flights, status, done) =
            handshake(client(Group::X25519, Some(real()), &root), &server);
        // RFC 9849 §6.1.6: the client authenticates the public name, then ends the connection, and may
        // begin another with what the server told it, here without ECH: two round trips more over TCP.
        assert!(!done, "{library}: {flights} flights");
        assert_eq!((flights, status), (2, EchStatus::Rejected), "{library}");
        let (flights, status, done) = handshake(client(Group::X25519, None, &root), &server);
        assert!(done && flights >= 3, "{library}");
        assert_eq!(status, EchStatus::NotOffered, "{library}");
        // A placeholder, which browsers send to everyone, costs bytes and nothing else.
        let (with, status, done) = handshake(client(Group::X25519, Some(grease()), &root), &server);
        assert!(done && with == flights, "{library}");
        assert_eq!(status, EchStatus::Grease, "{library}");
    }
}
