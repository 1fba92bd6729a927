//! Clients with a certificate against rustls servers that demand one.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConnection};
use tls::{
    Client, ClientConfig, ClientIdentity, KeyType, Library, Session, Ticket, Trust, Version,
};

use crate::common::{NAME, identity};

/// A root, and a client's chain and key signed by it.
fn certified() -> (RootCertStore, ClientIdentity) {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
    let mut leaf = CertificateParams::new(vec!["client.test".to_owned()]).unwrap();
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = leaf.signed_by(&key, &ca).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let pem = key.serialize_pem();
    (roots, ClientIdentity::from_pem(certificate.pem().as_bytes(), pem.as_bytes()).unwrap())
}

/// A server that demands a certificate of `roots`.
fn demanding(roots: RootCertStore) -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let own = identity(KeyType::EcdsaP256, 1);
    let chain = own.chain_der().iter().cloned().map(Into::into).collect();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.private_key_der().to_vec());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(chain, key.into());
    Arc::new(config.unwrap())
}

/// A connection until both sides are done; the error is the server's.
fn handshake(
    client: &Client,
    server: &Arc<rustls::ServerConfig>,
    ticket: Option<&Ticket>,
) -> Result<(ServerConnection, Box<dyn Session>), rustls::Error> {
    let mut here = client.start(ticket).unwrap();
    let mut there = ServerConnection::new(Arc::clone(server)).unwrap();
    for _ in 0..6 {
        let mut flight = Vec::new();
        here.write_tls(&mut flight).unwrap();
        let mut bytes = flight.as_slice();
        while !bytes.is_empty() {
            there.read_tls(&mut bytes).unwrap();
            there.process_new_packets()?;
        }
        if !there.is_handshaking() {
            there.writer().write_all(b"!").unwrap();
        }
        let mut flight = Vec::new();
        while there.wants_write() {
            there.write_tls(&mut flight).unwrap();
        }
        here.read_tls(&flight).unwrap();
    }
    let mut byte = [0];
    let _ = there.reader().read(&mut byte);
    assert!(!here.is_handshaking() && !there.is_handshaking());
    Ok((there, here))
}

fn client(library: Library, version: Version, identity: Option<&ClientIdentity>) -> Client {
    let trust = Trust::Roots(crate::common::identity(KeyType::EcdsaP256, 1).roots());
    let config = ClientConfig::new(library, NAME, trust);
    let (versions, identity) = (vec![version], identity.cloned());
    Client::new(&ClientConfig { versions, identity, ..config }).unwrap()
}

#[test]
fn a_server_gets_the_certificate_and_resumes_with_it() {
    let (roots, identity) = certified();
    let server = demanding(roots);
    for &library in Library::ALL {
        for version in [Version::Tls12, Version::Tls13] {
            let client = client(library, version, Some(&identity));
            let (there, mut here) = handshake(&client, &server, None).unwrap();
            let sent: Vec<_> =
                there.peer_certificates().unwrap().iter().map(|one| one.to_vec()).collect();
            assert_eq!(sent, identity.chain_der().unwrap(), "{library} {version}");
            let ticket = here.take_ticket().unwrap();
            let (_, here) = handshake(&client, &server, Some(&ticket)).unwrap();
            assert!(here.facts().resumed, "{library} {version}");
        }
    }
}

#[test]
fn without_a_certificate_such_a_server_refuses() {
    let (roots, _) = certified();
    let server = demanding(roots);
    for &library in Library::ALL {
        for version in [Version::Tls12, Version::Tls13] {
            let refused = handshake(&client(library, version, None), &server, None);
            let refused = refused.err();
            assert_eq!(
                refused,
                Some(rustls::Error::NoCertificatesPresented),
                "{library} {version}"
            );
        }
    }
}
