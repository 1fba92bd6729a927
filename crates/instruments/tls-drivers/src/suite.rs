//! What a handshake is to use: versions, keys, groups and cipher suites by their standard names.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::named;

named! {
    /// A version of TLS; the number as on the wire.
    pub enum Version: "TLS version" {
        /// RFC 5246.
        Tls12 = "tls1.2",
        /// RFC 8446.
        Tls13 = "tls1.3",
    }
}

impl Version {
    /// The number in IANA's registry.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Version::Tls12 => 0x0303,
            Version::Tls13 => 0x0304,
        }
    }
}

named! {
    /// The key of the server's certificate; the number is that of its signature scheme in TLS 1.3.
    pub enum Key: "key" {
        /// RSA with 2048 bits.
        Rsa2048 = "rsa-2048",
        /// RSA with 4096 bits.
        Rsa4096 = "rsa-4096",
        /// ECDSA on P-256.
        EcdsaP256 = "ecdsa-p256",
    }
}

impl Key {
    /// The number in IANA's registry.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Key::Rsa2048 => 0x0804,
            Key::Rsa4096 => 0x0804,
            Key::EcdsaP256 => 0x0403,
        }
    }
}

named! {
    /// The group of the key exchange.
    pub enum Group: "group" {
        /// RFC 7748.
        X25519 = "x25519",
        /// P-256.
        Secp256r1 = "secp256r1",
        /// The hybrid with ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem); TLS 1.3 only.
        X25519MlKem768 = "x25519mlkem768",
    }
}

impl Group {
    /// The number in IANA's registry.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Group::X25519 => 29,
            Group::Secp256r1 => 23,
            Group::X25519MlKem768 => 0x11ec,
        }
    }
}

named! {
    /// The record cipher; the number is that of its TLS 1.3 suite.
    pub enum Cipher: "cipher" {
        /// AES-128-GCM with SHA-256.
        Aes128Gcm = "aes-128-gcm",
        /// AES-256-GCM with SHA-384.
        Aes256Gcm = "aes-256-gcm",
        /// ChaCha20-Poly1305 with SHA-256.
        ChaCha20Poly1305 = "chacha20-poly1305",
    }
}

impl Cipher {
    /// The number in IANA's registry.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Cipher::Aes128Gcm => 0x1301,
            Cipher::Aes256Gcm => 0x1302,
            Cipher::ChaCha20Poly1305 => 0x1303,
        }
    }
}

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
    pub const fn cipher_suite(self) -> u32 {
        match (self.version, self.key, self.cipher) {
            (Version::Tls13, _, cipher) => cipher.number(),
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
    pub const fn signature(self) -> u32 {
        self.key.number()
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
