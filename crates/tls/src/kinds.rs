//! The choices that a handshake is measured by.

use units::named;
pub use wire::tls::CipherSuite;
pub use wire::tls::choice::{Group, KeyType, Version};

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
    /// How TLS 1.2 agrees on the premaster secret. TLS 1.3 is always (EC)DHE.
    pub enum KeyExchange: "key exchange" {
        /// The client encrypts the premaster secret to the server's RSA key (RFC 5246 §7.4.7.1). No
        /// forward secrecy; OpenSSL only.
        Rsa = "rsa",
        /// Ephemeral elliptic curve Diffie-Hellman (RFC 8422).
        Ecdhe = "ecdhe",
    }
}
