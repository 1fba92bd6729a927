//! A server that shows a chain whose key it does not have: all lengths are right, the signature is not.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::{Identity, Library};

/// A key that signs by bytes of the right number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// What kind of key it stands for.
    pub kind: SignatureKind,
    /// Bytes of each signature.
    pub signature: usize,
}

/// What a signature is called in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// RSA: RSASSA-PSS in TLS 1.3.
    Rsa,
    /// ECDSA: goes under the scheme of P-256 with SHA-256.
    Ecdsa,
    /// Ed25519 or Ed448: goes under the scheme of Ed25519.
    EdDsa,
    /// ML-DSA, or what TLS has no code point for: TLS 1.3 only.
    PostQuantum,
}

impl StandIn {
    /// Schemes under which the signature may go, TLS 1.3's first.
    fn schemes(self) -> &'static [SignatureScheme] {
        match self.kind {
            SignatureKind::Rsa => {
                &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PKCS1_SHA256]
            }
            SignatureKind::Ecdsa => &[SignatureScheme::ECDSA_NISTP256_SHA256],
            SignatureKind::EdDsa => &[SignatureScheme::ED25519],
            SignatureKind::PostQuantum => &[SignatureScheme::ML_DSA_65],
        }
    }
}

impl SigningKey for StandIn {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = self.schemes().iter().find(|scheme| offered.contains(scheme))?;
        Some(Box::new(Signing { scheme: *scheme, signature: self.signature }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.kind {
            SignatureKind::Rsa => SignatureAlgorithm::RSA,
            SignatureKind::Ecdsa => SignatureAlgorithm::ECDSA,
            SignatureKind::EdDsa => SignatureAlgorithm::ED25519,
            // The code that ML-DSA's schemes end with is none of TLS 1.2's algorithms.
            SignatureKind::PostQuantum => SignatureAlgorithm::Unknown(0x05),
        }
    }
}

#[derive(Debug)]
struct Signing {
    scheme: SignatureScheme,
    signature: usize,
}

impl Signer for Signing {
    fn sign(&self, _: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        Ok(vec![0; self.signature])
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

/// Always this chain.
#[derive(Debug)]
pub(crate) struct Always(Arc<CertifiedKey>);

impl Always {
    pub(crate) fn new(identity: &Identity, key: StandIn) -> Always {
        Always(Arc::new(CertifiedKey::new(identity.rustls_chain(), Arc::new(key))))
    }
}

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// What only rustls can do.
pub(crate) fn unsupported(feature: &'static str) -> crate::Error {
    let hint = "use rustls";
    crate::CallerError::Unsupported { library: Library::OpenSsl, feature, hint }.into()
}
