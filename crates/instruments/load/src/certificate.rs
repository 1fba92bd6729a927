//! The client's own certificate, and whether the server asks for one.
//!
//! In TLS 1.3 a server's refusal of the client's certificate comes after the client's Finished, when the handshake
//! is complete on this side (RFC 8446 §4.4.2.4). A connection whose server has asked for a certificate, given
//! one or not, is made only when something shows that the server has gone on.

use std::cell::Cell;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::Error;

/// A certificate with its chain and its private key, for servers that ask clients for one.
#[derive(Debug, Clone)]
pub struct ClientCertificate(Arc<CertifiedKey>);

impl ClientCertificate {
    /// The certificate that these files hold: a chain in DER, the client's own first, and the text of a PEM file
    /// with its private key (PKCS #8, PKCS #1 or SEC 1).
    ///
    /// # Errors
    /// [`Error::ClientCertificate`], with the reason.
    pub fn new(chain: Vec<Vec<u8>>, key: &[u8]) -> Result<ClientCertificate, Error> {
        let wrong = |text: &str| Error::ClientCertificate(text.to_owned());
        if chain.is_empty() {
            return Err(wrong("there is no certificate in the certificate file"));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| wrong("there is no private key without a passphrase in the key file"))?;
        let signing = aws_lc_rs::default_provider().key_provider.load_private_key(key);
        let signing =
            signing.map_err(|_| wrong("the private key is of a kind that is not supported"))?;
        // Old certificates, of version 1, are shown too: what rustls cannot read is not read.
        let key_is_in = |public: &[u8], certificate: &[u8]| {
            certificate.windows(public.len().max(1)).any(|window| window == public)
        };
        if let (Some(public), Some(first)) = (signing.public_key(), chain.first())
            && !key_is_in(&public, first)
        {
            return Err(wrong("the private key is not that of the first certificate"));
        }
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        Ok(ClientCertificate(Arc::new(CertifiedKey::new(chain, signing))))
    }
}

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a server has asked this thread for a certificate since the last call.
pub(crate) fn take_asked() -> bool {
    ASKED.replace(false)
}

/// Shows the certificate to servers that ask, and notes that they ask.
#[derive(Debug)]
pub(crate) struct Shown(pub(crate) Option<ClientCertificate>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        ASKED.set(true);
        self.0.as_ref().map(|certificate| Arc::clone(&certificate.0))
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}
