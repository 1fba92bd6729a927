//! Probing servers that demand a client's certificate, over TCP and QUIC.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use conn::probe::{Mode, Options, Target, probe};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, SignatureScheme};
use tls::{ClientIdentity, Identity, KeyType, Trust};

use crate::common::{NAME, PATIENCE, identity, loopback};

/// Demands one certificate, and counts the handshakes that it came in.
#[derive(Debug)]
struct Only {
    wanted: Vec<u8>,
    seen: AtomicUsize,
}

impl ClientCertVerifier for Only {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.seen.fetch_add(1, Ordering::SeqCst);
        match own.as_ref() == self.wanted {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let known = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, own, signature, &known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let known = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, own, signature, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        known.supported_schemes()
    }
}

/// The client's certificate and key.
fn own() -> &'static Identity {
    static OWN: OnceLock<Identity> = OnceLock::new();
    OWN.get_or_init(|| Identity::generate(KeyType::EcdsaP256, 1, &["client.test"]).unwrap())
}

fn config(verifier: &Arc<Only>) -> rustls::ServerConfig {
    let chain = identity().chain_der().iter().cloned().map(Into::into).collect();
    let key = PrivatePkcs8KeyDer::from(identity().private_key_der().to_vec());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::clone(verifier) as Arc<dyn ClientCertVerifier>)
        .with_single_cert(chain, key.into())
        .unwrap()
}

/// A server over TCP, on threads.
fn over_tcp(config: rustls::ServerConfig) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let mut session = rustls::ServerConnection::new(config).unwrap();
                let mut tls = rustls::Stream::new(&mut session, &mut stream);
                let _ = tls.flush();
                let _ = tls.read(&mut [0]);
            });
        }
    });
    address
}

/// A server over QUIC at the same port, if it is free.
fn over_quic(address: SocketAddr, mut config: rustls::ServerConfig) -> Option<quinn::Endpoint> {
    config.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::crypto::rustls::QuicServerConfig::try_from(config).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(config));
    let endpoint = quinn::Endpoint::server(config, address).ok()?;
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            tokio::spawn(async move {
                if let Ok(connection) = incoming.await {
                    connection.closed().await;
                }
            });
        }
    });
    Some(endpoint)
}

fn target(address: SocketAddr, identity: Option<ClientIdentity>) -> Target {
    let trust = Trust::Roots(crate::common::identity().roots());
    let server_name = Some(NAME.to_owned());
    let port = address.port();
    Target { port, server_name, trust, identity, ..Target::new("127.0.0.1") }
}

#[tokio::test]
async fn a_certificate_is_shown_in_every_mode() {
    let wanted = own().chain_der().first().unwrap().clone();
    let verifier = Arc::new(Only { wanted, seen: AtomicUsize::new(0) });
    let address = over_tcp(config(&verifier));
    let quic = over_quic(address, config(&verifier));
    let (chain, key) = (own().chain_pem().unwrap(), own().private_key_pem().unwrap());
    let identity = ClientIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    for library in tls::Library::ALL {
        let pause = Duration::from_millis(1);
        let (timeout, deadline) = (PATIENCE, 3 * PATIENCE);
        let options = Options {
            repeats: 1,
            timeout,
            pause,
            deadline,
            library: *library,
            ..Options::default()
        };
        verifier.seen.store(0, Ordering::SeqCst);
        let report =
            probe(&target(address, Some(identity.clone())), &options, |_| {}).await.unwrap();
        let modes = [Mode::Tls12, Mode::Tls12Resumed, Mode::Tls13, Mode::Tls13Resumed];
        let with_quic = quic.is_some().then_some(Mode::Quic);
        for mode in modes.into_iter().chain(with_quic) {
            let verdict = &report.mode(mode).unwrap().verdict;
            assert!(verdict.is_supported(), "{library} {mode:?}: {verdict:?}");
        }
        assert!(report.offer.is_some(), "{library}");
        // Each of two versions in full and for its ticket, and once to look.
        assert!(verifier.seen.load(Ordering::SeqCst) >= 5, "{library}");
    }
}

#[tokio::test]
async fn without_it_tls_1_2_is_refused() {
    let wanted = own().chain_der().first().unwrap().clone();
    let verifier = Arc::new(Only { wanted, seen: AtomicUsize::new(0) });
    let address = over_tcp(config(&verifier));
    let options = Options { repeats: 1, timeout: Duration::from_secs(2), ..Options::default() };
    let report = probe(&target(address, None), &options, |_| {}).await.unwrap();
    assert!(!report.versions.tls12.is_supported(), "{:?}", report.versions.tls12);
    assert_eq!(verifier.seen.load(Ordering::SeqCst), 0);
}
