//! The choices that handshakes are measured by: each has one name that people write, and the code
//! point that goes over the wire.

use units::named;

use super::SignatureScheme;

named! {
    /// A version of TLS.
    pub enum Version: "TLS version" {
        /// TLS 1.2 (RFC 5246).
        Tls12 = "tls1.2" | "1.2" | "tls12" | "tlsv1.2",
        /// TLS 1.3 (RFC 8446).
        Tls13 = "tls1.3" | "1.3" | "tls13" | "tlsv1.3",
    }
}

named! {
    /// The group of the ephemeral key exchange.
    pub enum Group: "group" {
        /// Curve25519, RFC 7748.
        X25519 = "x25519",
        /// NIST P-256 (RFC 8422 §5.1.1).
        Secp256r1 = "secp256r1" | "p-256" | "p256" | "prime256v1",
        /// The hybrid of ML-KEM-768 and X25519 (draft-ietf-tls-ecdhe-mlkem). TLS 1.3 only.
        X25519MlKem768 = "x25519mlkem768",
    }
}

named! {
    /// The key of the server's certificate, and of every certificate above it in the chain.
    pub enum KeyType: "key" {
        /// RSA, 2048 bits.
        Rsa2048 = "rsa-2048" | "rsa2048",
        /// RSA, 4096 bits.
        Rsa4096 = "rsa-4096" | "rsa4096",
        /// ECDSA over NIST P-256.
        EcdsaP256 = "ecdsa-p256" | "ecdsap256" | "p256" | "p-256",
    }
}

named! {
    /// The cipher of records.
    pub enum Cipher: "cipher" {
        /// AES-128-GCM with SHA-256.
        Aes128Gcm = "aes-128-gcm",
        /// AES-256-GCM with SHA-384.
        Aes256Gcm = "aes-256-gcm",
        /// ChaCha20-Poly1305 with SHA-256.
        ChaCha20Poly1305 = "chacha20-poly1305",
    }
}

impl Version {
    /// As on the wire.
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Version::Tls12 => super::Version::TLS12.0,
            Version::Tls13 => super::Version::TLS13.0,
        }
    }
}

impl Group {
    /// The code point (IANA TLS Supported Groups).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Group::X25519 => 0x001d,
            Group::Secp256r1 => 0x0017,
            Group::X25519MlKem768 => 0x11ec,
        }
    }

    /// The group of a code point, if it is one of ours.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.iter().copied().find(|group| group.id() == id)
    }
}

impl KeyType {
    /// Whether the key is an RSA key.
    #[must_use]
    pub const fn is_rsa(self) -> bool {
        matches!(self, KeyType::Rsa2048 | KeyType::Rsa4096)
    }

    /// The scheme by which it signs in TLS 1.3 (RFC 8446 §4.2.3).
    #[must_use]
    pub const fn signature_scheme(self) -> SignatureScheme {
        SignatureScheme(if self.is_rsa() { 0x0804 } else { 0x0403 })
    }
}

impl Cipher {
    /// Its suite in TLS 1.3 (RFC 8446 §B.4).
    #[must_use]
    pub const fn tls13_suite(self) -> u16 {
        match self {
            Cipher::Aes128Gcm => 0x1301,
            Cipher::Aes256Gcm => 0x1302,
            Cipher::ChaCha20Poly1305 => 0x1303,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super as points;
    use super::*;

    #[test]
    fn code_points_are_iana_s() {
        for group in Group::ALL {
            assert_eq!(Group::from_id(group.id()), Some(*group));
            assert_eq!(points::Group(group.id()).name().unwrap().parse(), Ok(*group));
        }
        assert_eq!(Group::from_id(0), None);
        let schemes = KeyType::ALL.iter().map(|key| key.signature_scheme().to_string());
        let registered = ["rsa_pss_rsae_sha256", "rsa_pss_rsae_sha256", "ecdsa_secp256r1_sha256"];
        assert!(schemes.eq(registered));
        for (cipher, name) in Cipher::ALL.iter().zip(["AES_128_GCM", "AES_256_GCM", "CHACHA20"]) {
            let suite = points::CipherSuite(cipher.tls13_suite());
            assert!(suite.name().unwrap().contains(name), "{suite}");
        }
    }

    #[test]
    fn keys_are_written_one_way_and_read_as_they_were() {
        for (old, new) in
            [("rsa2048", "rsa-2048"), ("RSA4096", "rsa-4096"), ("P-256", "ecdsa-p256")]
        {
            assert_eq!(old.parse().map(KeyType::name), Ok(new));
        }
    }
}
