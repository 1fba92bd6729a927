//! The messages of a server's first flight, and the records around them.

use serde::Serialize;

use crate::chain::{Chain, HEADER};

/// A record's header (RFC 8446 §5.1).
const RECORD: usize = 5;
/// What encryption adds to a record beside its header: the content type, and AES-GCM's tag (RFC 8446 §5.2).
const SEALED: usize = 1 + 16;
/// Most plaintext in a record (RFC 8446 §5.1).
const FRAGMENT: usize = 1 << 14;
/// SHA-256's length: that of Finished in TLS_AES_128_GCM_SHA256 (RFC 8446 §4.4.4).
const HASH: usize = 32;
/// ChangeCipherSpec with its header, which middleboxes want to see (RFC 8446 appendix D.4).
const CHANGE_CIPHER_SPEC: usize = RECORD + 1;

/// What of the hellos decides the flight's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Bytes of the server's key share: 32 of X25519, 65 of P-256, 1120 of X25519MLKEM768.
    pub key_share: usize,
    /// Bytes of the session identifier, which TLS 1.3 sends back as it came: 32 over TCP, none over QUIC.
    pub session_id: usize,
    /// Bytes of the extensions in EncryptedExtensions, or of TLS 1.2's ServerHello.
    pub extensions: usize,
}

impl Default for Hello {
    /// X25519, a session identifier, and the answer to server_name (RFC 6066 §3).
    fn default() -> Hello {
        Hello { key_share: 32, session_id: 32, extensions: 4 }
    }
}

/// How a library puts handshake messages into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As many messages in a record as fit: rustls.
    Coalesced,
    /// A record for each message: OpenSSL.
    PerMessage,
}

/// A server's first flight, by its messages; bytes with their headers, without those of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flight {
    /// ServerHello, 4 bytes of header included.
    pub server_hello: usize,
    /// EncryptedExtensions; none in TLS 1.2.
    pub encrypted_extensions: usize,
    /// Certificate or CompressedCertificate.
    pub certificate: usize,
    /// CertificateVerify; in TLS 1.2 ServerKeyExchange, which is signed.
    pub signed: usize,
    /// Finished; in TLS 1.2 ServerHelloDone.
    pub last: usize,
    /// Bytes on the wire, with the headers and tags of records; over QUIC those of CRYPTO frames are
    /// counted by [`crate::QuicPath`].
    pub wire: usize,
}

impl Flight {
    /// TLS 1.3 over TCP, a full handshake with AES-128-GCM (RFC 8446 §2).
    #[must_use]
    pub fn tls13(chain: &Chain, hello: Hello, framing: Framing) -> Flight {
        let mut flight = Flight::messages13(chain, hello);
        let sealed = [flight.encrypted_extensions, flight.certificate, flight.signed, flight.last];
        let sealed = records(&sealed, framing, SEALED);
        flight.wire = RECORD + flight.server_hello + CHANGE_CIPHER_SPEC + sealed;
        flight
    }

    /// TLS 1.3 inside QUIC, whose packets take the place of records (RFC 9001 §4.1.3).
    #[must_use]
    pub fn quic(chain: &Chain, hello: Hello) -> Flight {
        let mut flight = Flight::messages13(chain, Hello { session_id: 0, ..hello });
        flight.wire = flight.server_hello + flight.handshake_level();
        flight
    }

    /// TLS 1.2 with ECDHE over TCP, a full handshake (RFC 5246 §7.3, RFC 8422 §5.4).
    #[must_use]
    pub fn tls12(chain: &Chain, hello: Hello, framing: Framing) -> Flight {
        let mut flight = Flight {
            server_hello: HEADER + 2 + 32 + 1 + hello.session_id + 2 + 1 + 2 + hello.extensions,
            encrypted_extensions: 0,
            certificate: chain.certificate12(),
            // The named curve, the point, the scheme, the signature.
            signed: HEADER + 3 + 1 + hello.key_share + 2 + 2 + chain.signature,
            last: HEADER,
            wire: 0,
        };
        let messages = [flight.server_hello, flight.certificate, flight.signed, flight.last];
        flight.wire = records(&messages, framing, 0);
        flight
    }

    /// Bytes that the server sends before it waits for the client.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.wire
    }

    /// Bytes of what is encrypted under the handshake's keys, without records.
    #[must_use]
    pub fn handshake_level(&self) -> usize {
        self.encrypted_extensions + self.certificate + self.signed + self.last
    }

    fn messages13(chain: &Chain, hello: Hello) -> Flight {
        // supported_versions, and key_share with its group and length (RFC 8446 §4.2.1, §4.2.8).
        let extensions = 6 + 8 + hello.key_share;
        Flight {
            server_hello: HEADER + 2 + 32 + 1 + hello.session_id + 2 + 1 + 2 + extensions,
            encrypted_extensions: HEADER + 2 + hello.extensions,
            certificate: chain.certificate13(),
            signed: chain.certificate_verify(),
            last: HEADER + HASH,
            wire: 0,
        }
    }
}

/// Bytes of records that hold these messages, each with so many bytes beside its header.
fn records(messages: &[usize], framing: Framing, sealed: usize) -> usize {
    let in_records = |bytes: usize| bytes + bytes.div_ceil(FRAGMENT) * (RECORD + sealed);
    match framing {
        Framing::Coalesced => in_records(messages.iter().sum()),
        Framing::PerMessage => messages.iter().map(|bytes| in_records(*bytes)).sum(),
    }
}
