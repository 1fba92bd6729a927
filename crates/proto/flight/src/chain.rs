//! What a server shows of itself.

use serde::Serialize;

/// The lengths of what a server proves its name by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Bytes of each certificate that is sent, in DER, the leaf first.
    pub certificates: Vec<usize>,
    /// Bytes of a signature by the leaf's key.
    pub signature: usize,
    /// Bytes of the Certificate message's body after compression (RFC 8879 §4); `None` sends it as it is.
    pub compressed: Option<usize>,
}

/// Bytes of a handshake message's header (RFC 8446 §4).
pub(crate) const HEADER: usize = 4;

impl Chain {
    /// A chain that is sent as it is.
    #[must_use]
    pub fn new(certificates: Vec<usize>, signature: usize) -> Chain {
        Chain { certificates, signature, compressed: None }
    }

    /// The same, compressed to so many bytes.
    #[must_use]
    pub fn compressed_to(&self, bytes: usize) -> Chain {
        Chain { compressed: Some(bytes), ..self.clone() }
    }

    /// Bytes of all certificates.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.certificates.iter().sum()
    }

    /// Bytes of the body of TLS 1.3's Certificate message: what compression takes in (RFC 8446 §4.4.2, no
    /// OCSP answer and no other extension).
    #[must_use]
    pub fn certificate_body(&self) -> usize {
        let entry = |der: &usize| 3 + der + 2;
        1 + 3 + self.certificates.iter().map(entry).sum::<usize>()
    }

    /// Bytes of TLS 1.3's Certificate message, or of CompressedCertificate in its place.
    #[must_use]
    pub fn certificate13(&self) -> usize {
        match self.compressed {
            None => HEADER + self.certificate_body(),
            // The algorithm, the length before, and the length of what follows.
            Some(bytes) => HEADER + 2 + 3 + 3 + bytes,
        }
    }

    /// Bytes of TLS 1.2's Certificate message, which is never compressed (RFC 5246 §7.4.2).
    #[must_use]
    pub fn certificate12(&self) -> usize {
        HEADER + 3 + self.certificates.iter().map(|der| 3 + der).sum::<usize>()
    }

    /// Bytes of CertificateVerify (RFC 8446 §4.4.3).
    pub(crate) fn certificate_verify(&self) -> usize {
        HEADER + 2 + 2 + self.signature
    }
}
