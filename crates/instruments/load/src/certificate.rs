//! The client's own certificate, and whether the server asks for one.
//!
//! In TLS 1.3 a server's refusal of the client's certificate comes after the client's Finished, when the handshake
//! is complete on this side (RFC 8446 §4.4.2.4). A connection whose server has asked for a certificate, given
//! one or not, is made only when something shows that the server has gone on.

use std::cell::Cell;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use tls::ClientIdentity;

thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a server has asked this thread for a certificate since the last call.
pub(crate) fn take_asked() -> bool {
    ASKED.replace(false)
}

/// Shows the certificate to servers that ask, and notes that they ask.
#[derive(Debug)]
pub(crate) struct Shown(Option<Arc<dyn ResolvesClientCert>>);

impl Shown {
    pub(crate) fn new(identity: Option<&ClientIdentity>) -> Shown {
        Shown(identity.map(ClientIdentity::resolver))
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        ASKED.set(true);
        self.0.as_ref()?.resolve(issuers, schemes)
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}
