//! Code points and what follows from them.

use std::fmt;

/// Whether a code point is one of GREASE's (RFC 8701 §2): 0x0a0a, 0x1a1a, ..., 0xfafa.
#[must_use]
pub const fn is_grease(code: u16) -> bool {
    code & 0x0f0f == 0x0a0a && code >> 8 == code & 0xff
}

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u16);

impl Version {
    /// SSL 3.0.
    pub const SSL30: Version = Version(0x0300);
    /// TLS 1.0.
    pub const TLS10: Version = Version(0x0301);
    /// TLS 1.1.
    pub const TLS11: Version = Version(0x0302);
    /// TLS 1.2.
    pub const TLS12: Version = Version(0x0303);
    /// TLS 1.3.
    pub const TLS13: Version = Version(0x0304);

    /// The number of a TLS 1.3 draft: versions 0x7f00 + number (RFC 8446 drafts, §4.2.1).
    #[must_use]
    pub const fn draft(self) -> Option<u8> {
        if self.0 >> 8 == 0x7f { Some(self.0 as u8) } else { None }
    }

    /// The draft that a version number of Facebook's stands for: 0xfb00 + number.
    #[must_use]
    pub const fn facebook_draft(self) -> Option<u8> {
        if self.0 >> 8 == 0xfb { Some(self.0 as u8) } else { None }
    }

    /// The number of an experiment of Google's with TLS 1.3: 0x7e00 + number.
    #[must_use]
    pub const fn google_experiment(self) -> Option<u8> {
        if self.0 >> 8 == 0x7e { Some(self.0 as u8) } else { None }
    }

    /// Whether this is TLS 1.3, a draft of it, or what a vendor used for one.
    #[must_use]
    pub const fn is_tls13(self) -> bool {
        self.0 == Version::TLS13.0
            || self.draft().is_some()
            || self.facebook_draft().is_some()
            || self.google_experiment().is_some()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(draft) = self.facebook_draft() {
            return write!(f, "TLS 1.3 fb{draft}");
        }
        if let Some(number) = self.google_experiment() {
            return write!(f, "TLS 1.3 experiment {number}");
        }
        match (self.0, self.draft()) {
            (0x0002, _) => f.write_str("SSL 2.0"),
            (0x0300, _) => f.write_str("SSL 3.0"),
            (0x0301, _) => f.write_str("TLS 1.0"),
            (0x0302, _) => f.write_str("TLS 1.1"),
            (0x0303, _) => f.write_str("TLS 1.2"),
            (0x0304, _) => f.write_str("TLS 1.3"),
            (_, Some(draft)) => write!(f, "TLS 1.3 draft {draft}"),
            (other, None) => write!(f, "0x{other:04x}"),
        }
    }
}

/// A cipher suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CipherSuite(pub u16);

/// What a TLS 1.3 suite fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuiteFacts {
    /// Bytes of the hash, hence of a Finished message's body.
    pub hash_len: usize,
    /// Bytes by which the AEAD lengthens what it encrypts.
    pub tag_len: usize,
}

impl CipherSuite {
    /// What the suite fixes, for the suites of TLS 1.3 (RFC 8446 §B.4); `None` for others.
    #[must_use]
    pub const fn tls13(self) -> Option<SuiteFacts> {
        Some(match self.0 {
            0x1301 | 0x1303 | 0x1304 => SuiteFacts { hash_len: 32, tag_len: 16 },
            0x1302 => SuiteFacts { hash_len: 48, tag_len: 16 },
            0x1305 => SuiteFacts { hash_len: 32, tag_len: 8 },
            _ => return None,
        })
    }

    /// The IANA name, for the suites that TLS libraries negotiate today.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x0004 => "TLS_RSA_WITH_RC4_128_MD5",
            0x0005 => "TLS_RSA_WITH_RC4_128_SHA",
            0x000a => "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
            0x002f => "TLS_RSA_WITH_AES_128_CBC_SHA",
            0x0033 => "TLS_DHE_RSA_WITH_AES_128_CBC_SHA",
            0x0035 => "TLS_RSA_WITH_AES_256_CBC_SHA",
            0x0039 => "TLS_DHE_RSA_WITH_AES_256_CBC_SHA",
            0x003c => "TLS_RSA_WITH_AES_128_CBC_SHA256",
            0x003d => "TLS_RSA_WITH_AES_256_CBC_SHA256",
            0x009c => "TLS_RSA_WITH_AES_128_GCM_SHA256",
            0x009d => "TLS_RSA_WITH_AES_256_GCM_SHA384",
            0x009e => "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
            0x009f => "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
            0x1301 => "TLS_AES_128_GCM_SHA256",
            0x1302 => "TLS_AES_256_GCM_SHA384",
            0x1303 => "TLS_CHACHA20_POLY1305_SHA256",
            0x1304 => "TLS_AES_128_CCM_SHA256",
            0x1305 => "TLS_AES_128_CCM_8_SHA256",
            0xc009 => "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
            0xc00a => "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
            0xc013 => "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
            0xc014 => "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
            0xc023 => "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
            0xc024 => "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
            0xc027 => "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
            0xc028 => "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
            0xc02b => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            0xc02c => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            0xc02f => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            0xc030 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            0xcca8 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            0xcca9 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            _ => return None,
        })
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "0x{:04x}", self.0),
        }
    }
}

/// A group for key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group(pub u16);

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0x0017 => "secp256r1",
            0x0018 => "secp384r1",
            0x0019 => "secp521r1",
            0x001d => "x25519",
            0x001e => "x448",
            0x0100 => "ffdhe2048",
            0x0101 => "ffdhe3072",
            0x11eb => "SecP256r1MLKEM768",
            0x11ec => "X25519MLKEM768",
            0x11ed => "SecP384r1MLKEM1024",
            0x0200 => "MLKEM512",
            0x0201 => "MLKEM768",
            0x0202 => "MLKEM1024",
            0x6399 => "X25519Kyber768Draft00",
            other => return write!(f, "0x{other:04x}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grease_has_sixteen_values() {
        let all: Vec<u16> = (0..=u16::MAX).filter(|code| is_grease(*code)).collect();
        assert_eq!(all.len(), 16);
        assert_eq!((all[0], all[15]), (0x0a0a, 0xfafa));
    }

    #[test]
    fn drafts_have_names() {
        assert_eq!(Version(0x7f17).to_string(), "TLS 1.3 draft 23");
        assert!(Version(0x7f17).is_tls13());
        assert_eq!(Version::TLS12.to_string(), "TLS 1.2");
        for (code, name) in [(0xfb17, "TLS 1.3 fb23"), (0x7e02, "TLS 1.3 experiment 2")] {
            assert_eq!(Version(code).to_string(), name);
            assert!(Version(code).is_tls13());
        }
        assert!(!Version(0xfafa).is_tls13() && !Version(0x0002).is_tls13());
    }
}
