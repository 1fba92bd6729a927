//! What a handshake is to use: versions, keys, groups and cipher suites by their standard names.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use wire::tls::choice::{Cipher, Group, KeyType as Key, Version};

/// Everything that is pinned in a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Suite {
    /// The version, and no other.
    pub version: Version,
    /// The certificate's key.
    pub key: Key,
    /// The group of the key exchange.
    pub group: Group,
    /// The record cipher.
    pub cipher: Cipher,
}

impl Suite {
    /// The cipher suite's number (RFC 8446 §B.4, RFC 5289, RFC 7905).
    #[must_use]
    pub const fn cipher_suite(self) -> u16 {
        match (self.version, self.key, self.cipher) {
            (Version::Tls13, _, cipher) => cipher.tls13_suite(),
            (Version::Tls12, Key::EcdsaP256, Cipher::Aes128Gcm) => 0xc02b,
            (Version::Tls12, Key::EcdsaP256, Cipher::Aes256Gcm) => 0xc02c,
            (Version::Tls12, Key::EcdsaP256, Cipher::ChaCha20Poly1305) => 0xcca9,
            (Version::Tls12, _, Cipher::Aes128Gcm) => 0xc02f,
            (Version::Tls12, _, Cipher::Aes256Gcm) => 0xc030,
            (Version::Tls12, _, Cipher::ChaCha20Poly1305) => 0xcca8,
        }
    }

    /// The signature scheme's number (RFC 8446 §4.2.3). TLS 1.2 signs by PSS too.
    #[must_use]
    pub const fn signature(self) -> u16 {
        self.key.signature_scheme().0
    }

    /// Whether there is such a handshake: the hybrid group came with TLS 1.3.
    #[must_use]
    pub const fn exists(self) -> bool {
        !matches!((self.version, self.group), (Version::Tls12, Group::X25519MlKem768))
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.version, self.key, self.group, self.cipher)
    }
}
