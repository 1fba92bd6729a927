//! The choices that a handshake is measured by: library, version, key exchange, group, key type.

use core::fmt;
use serde::Serialize;
use units::named;

named! {
    /// The TLS library that an endpoint runs.
    pub enum Library: "TLS library" {
        /// rustls over aws-lc-rs.
        Rustls = "rustls",
        /// OpenSSL 3.5 LTS, linked statically.
        OpenSsl = "openssl",
    }
}

named! {
    /// The protocol version.
    pub enum Version: "TLS version" {
        /// TLS 1.2, RFC 5246.
        Tls12 = "tls1.2" | "1.2" | "tls12" | "tlsv1.2",
        /// TLS 1.3, RFC 8446.
        Tls13 = "tls1.3" | "1.3" | "tls13" | "tlsv1.3",
    }
}

named! {
    /// How TLS 1.2 agrees on the premaster secret. TLS 1.3 is always (EC)DHE.
    pub enum KeyExchange: "key exchange" {
        /// The client encrypts the premaster secret to the server's RSA key (RFC 5246 §7.4.7.1). No
        /// forward secrecy; OpenSSL only.
        Rsa = "rsa",
        /// Ephemeral elliptic curve Diffie-Hellman (RFC 8422).
        Ecdhe = "ecdhe",
    }
}

named! {
    /// The group of the ephemeral key exchange (IANA TLS Supported Groups).
    pub enum Group: "group" {
        /// Curve25519, RFC 7748.
        X25519 = "x25519",
        /// NIST P-256.
        Secp256r1 = "secp256r1" | "p-256" | "p256" | "prime256v1",
        /// The hybrid of ML-KEM-768 and X25519 (draft-ietf-tls-ecdhe-mlkem). TLS 1.3 only.
        X25519MlKem768 = "x25519mlkem768",
    }
}

named! {
    /// The type of the server's key, and of every key above it in the chain.
    pub enum KeyType: "key type" {
        /// RSA, 2048 bits.
        Rsa2048 = "rsa2048" | "rsa-2048",
        /// RSA, 4096 bits.
        Rsa4096 = "rsa4096" | "rsa-4096",
        /// ECDSA over NIST P-256.
        EcdsaP256 = "ecdsa-p256" | "ecdsap256" | "p256" | "p-256",
    }
}

impl Group {
    /// The code point (IANA TLS Supported Groups).
    pub const fn id(self) -> u16 {
        match self {
            Group::X25519 => 0x001d,
            Group::Secp256r1 => 0x0017,
            Group::X25519MlKem768 => 0x11ec,
        }
    }

    /// The group of a code point, if it is one of ours.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|group| group.id() == id)
    }
}

impl KeyType {
    /// Whether the key is an RSA key.
    pub const fn is_rsa(self) -> bool {
        matches!(self, KeyType::Rsa2048 | KeyType::Rsa4096)
    }
}

/// A cipher suite by its code point and name (IANA TLS Cipher Suites).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct CipherSuite {
    /// The code point.
    pub id: u16,
    /// The registered name.
    pub name: &'static str,
}

impl CipherSuite {
    /// The only TLS 1.3 suite that is offered.
    pub const TLS13_AES_128_GCM_SHA256: Self = Self { id: 0x1301, name: "TLS_AES_128_GCM_SHA256" };
    /// TLS 1.2 ECDHE under an ECDSA key.
    pub const ECDHE_ECDSA_AES_128_GCM_SHA256: Self =
        Self { id: 0xc02b, name: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" };
    /// TLS 1.2 ECDHE under an RSA key.
    pub const ECDHE_RSA_AES_128_GCM_SHA256: Self =
        Self { id: 0xc02f, name: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" };
    /// TLS 1.2 RSA key exchange.
    pub const RSA_AES_128_GCM_SHA256: Self =
        Self { id: 0x009c, name: "TLS_RSA_WITH_AES_128_GCM_SHA256" };

    /// Every suite that this crate lets a library negotiate.
    pub const ALL: &'static [Self] = &[
        Self::TLS13_AES_128_GCM_SHA256,
        Self::ECDHE_ECDSA_AES_128_GCM_SHA256,
        Self::ECDHE_RSA_AES_128_GCM_SHA256,
        Self::RSA_AES_128_GCM_SHA256,
    ];

    /// The suite of a code point, if it is one of ours.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|suite| suite.id == id)
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_iana_s() {
        for group in Group::ALL {
            assert_eq!(Group::from_id(group.id()), Some(*group));
        }
        assert_eq!(Group::X25519MlKem768.id(), 4588);
        assert_eq!(Group::from_id(0), None);
        for suite in CipherSuite::ALL {
            assert_eq!(CipherSuite::from_id(suite.id), Some(*suite));
        }
        assert_eq!(CipherSuite::from_id(0x009c).unwrap().name, "TLS_RSA_WITH_AES_128_GCM_SHA256");
    }
}
