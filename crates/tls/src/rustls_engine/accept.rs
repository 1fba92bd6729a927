//! Who accepts any certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Dangerous: any certificate passes. Also for who only wants to look at a certificate.
#[derive(Debug)]
pub struct AcceptAnyCertificate {
    provider: Arc<CryptoProvider>,
    checks_signatures: bool,
}

impl AcceptAnyCertificate {
    /// The verifier of [`crate::Trust::Insecure`]: the server must hold its certificate's key.
    #[must_use]
    pub fn new(provider: Arc<CryptoProvider>) -> AcceptAnyCertificate {
        AcceptAnyCertificate { provider, checks_signatures: true }
    }

    /// The verifier of [`crate::Trust::Unchecked`]: any signature passes, too.
    pub(crate) fn with_any_signature(provider: Arc<CryptoProvider>) -> AcceptAnyCertificate {
        AcceptAnyCertificate { provider, checks_signatures: false }
    }

    fn check(
        &self,
        signature: impl FnOnce() -> Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.checks_signatures { signature() } else { Ok(HandshakeSignatureValid::assertion()) }
    }
}

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.check(|| {
            rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
        })
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        self.check(|| {
            rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let mut schemes = self.provider.signature_verification_algorithms.supported_schemes();
        if !self.checks_signatures {
            // A stand-in for a post-quantum key says that it signs by this.
            schemes.push(SignatureScheme::ML_DSA_65);
        }
        schemes
    }
}
