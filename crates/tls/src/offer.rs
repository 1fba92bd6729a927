//! The cipher suites and groups of a client's hello, and notes of what came of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use wire::tls::Group as NamedGroup;
pub use wire::tls::Version as WireVersion;

use crate::CipherSuite;

/// Cipher suites and groups that a client offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// AES-128-GCM and [`ClientConfig::groups`](crate::ClientConfig::groups): equal in both libraries.
    #[default]
    Pinned,
    /// The library's usual suites, and these groups in place of `ClientConfig::groups`, preferred first. The
    /// first gets a key share.
    Usual(Vec<NamedGroup>),
    /// The suites and signature schemes that browsers offer, older ones among them (CBC, RSA key exchange),
    /// and these groups. The first gets a key share, and X25519 beside its hybrid. OpenSSL only.
    Browser(Vec<NamedGroup>),
    /// All suites and signature schemes that OpenSSL has, at its security level 0, and these groups. Only to
    /// find out what a server has. OpenSSL only.
    Everything {
        /// The groups, preferred first. The first gets a key share.
        groups: Vec<NamedGroup>,
        /// Whether TLS 1.0 and 1.1 are offered beside `ClientConfig::versions`.
        old_versions: bool,
    },
}

/// The group with this name, as IANA, NIST or browsers write it: `x25519`, `p384`, `P-256`, `secp521r1`,
/// `ffdhe2048`.
#[must_use]
pub fn named_group(text: &str) -> Option<NamedGroup> {
    let text = text.to_ascii_lowercase();
    let name = match text.as_str() {
        "p256" | "p-256" | "prime256v1" => "secp256r1",
        "p384" | "p-384" => "secp384r1",
        "p521" | "p-521" => "secp521r1",
        other => other,
    };
    (0..=u16::MAX)
        .map(NamedGroup)
        .find(|group| group.name().is_some_and(|known| known.eq_ignore_ascii_case(name)))
}

/// The server's choice, as its ServerHello or HelloRetryRequest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerChoice {
    /// The version: SSL 3.0 to TLS 1.3.
    pub version: WireVersion,
    /// The cipher suite.
    pub cipher_suite: CipherSuite,
    /// The group: of TLS 1.3's key share, of TLS 1.2 when the handshake is over.
    pub group: Option<NamedGroup>,
    /// Whether the server asked for another key share (RFC 8446 §4.1.4).
    pub hello_retry_request: bool,
    /// Whether a ticket of TLS 1.2 is promised (RFC 5077 §3.2).
    pub session_ticket: bool,
}

/// Notes of one connection that outlive its failure: give it to one [`Client`](crate::Client) for one
/// connection.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Notes>>);

/// Notes of a [`Witness`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// The server's certificates (DER), leaf first.
    pub chain: Vec<Vec<u8>>,
    /// Whether the server asked for a client certificate (rustls only).
    pub asked_for_certificate: bool,
}

impl Witness {
    /// The notes so far.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.lock().clone()
    }

    pub(crate) fn note_chain(&self, chain: Vec<Vec<u8>>) {
        if !chain.is_empty() {
            self.lock().chain = chain;
        }
    }

    pub(crate) fn note_request(&self) {
        self.lock().asked_for_certificate = true;
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_as_people_write_them() {
        for (text, code) in [
            ("x25519", 0x1d),
            ("P-256", 0x17),
            ("p384", 0x18),
            ("secp521r1", 0x19),
            ("X448", 0x1e),
            ("ffdhe2048", 0x100),
            ("X25519MLKEM768", 0x11ec),
        ] {
            assert_eq!(named_group(text), Some(NamedGroup(code)), "{text}");
        }
        assert_eq!(named_group("curve of mine"), None);
    }
}
