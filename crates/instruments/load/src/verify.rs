//! Verification of the server's certificate, done once for each chain.
//!
//! Every connection of a run meets the same chain, and path building is a large part of a client's
//! handshake. A chain that was verified is known again by all its bytes. The signature in
//! CertificateVerify, which proves that the server holds the key, is checked every time.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Chains remembered by each thread: a server behind a balancer may show several.
const REMEMBERED: usize = 16;
/// After this many seconds a chain is verified anew: it may have expired.
const VALID_FOR: u64 = 60;

struct Verified {
    chain: Vec<Vec<u8>>,
    until: u64,
}

impl Verified {
    fn is(&self, end_entity: &[u8], intermediates: &[CertificateDer<'_>]) -> bool {
        let Some((first, rest)) = self.chain.split_first() else { return false };
        first == end_entity
            && rest.len() == intermediates.len()
            && rest.iter().zip(intermediates).all(|(known, der)| known.as_slice() == der.as_ref())
    }
}

thread_local! {
    static VERIFIED: RefCell<Vec<Verified>> = const { RefCell::new(Vec::new()) };
}

/// Remembers what another verifier found valid. A worker thread belongs to one run, so that the name
/// and the roots are always the same ones.
#[derive(Debug)]
pub(crate) struct Remembering(pub(crate) Arc<dyn ServerCertVerifier>);

impl ServerCertVerifier for Remembering {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let time = now.as_secs();
        let known = VERIFIED.with_borrow(|all| {
            all.iter().any(|one| time < one.until && one.is(end_entity, intermediates))
        });
        if known {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = self.0.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
        VERIFIED.with_borrow_mut(|all| {
            all.retain(|one| time < one.until);
            if all.len() >= REMEMBERED {
                all.remove(0);
            }
            let mut chain = vec![end_entity.to_vec()];
            chain.extend(intermediates.iter().map(|der| der.to_vec()));
            all.push(Verified { chain, until: time.saturating_add(VALID_FOR) });
        });
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
