//! Code points and what follows from them.

use std::fmt;

use super::extension::ExtensionKind;
use super::iana;
use super::suites::SUITES;

/// Whether a code point is one of GREASE's (RFC 8701 §2): 0x0a0a, 0x1a1a, ..., 0xfafa.
#[must_use]
pub const fn is_grease(code: u16) -> bool {
    code & 0x0f0f == 0x0a0a && code >> 8 == code & 0xff
}

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u16);

impl Version {
    /// SSL 3.0 (RFC 6101).
    pub const SSL30: Version = Version(0x0300);
    /// TLS 1.0 (RFC 2246).
    pub const TLS10: Version = Version(0x0301);
    /// TLS 1.1 (RFC 4346).
    pub const TLS11: Version = Version(0x0302);
    /// TLS 1.2 (RFC 5246).
    pub const TLS12: Version = Version(0x0303);
    /// TLS 1.3 (RFC 8446).
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

    /// TLS 1.3's suite that every implementation has (RFC 8446 §9.1).
    pub const TLS13_AES_128_GCM_SHA256: CipherSuite = CipherSuite(0x1301);
    /// TLS 1.2, ECDHE under an ECDSA key.
    pub const ECDHE_ECDSA_AES_128_GCM_SHA256: CipherSuite = CipherSuite(0xc02b);
    /// TLS 1.2, ECDHE under an RSA key.
    pub const ECDHE_RSA_AES_128_GCM_SHA256: CipherSuite = CipherSuite(0xc02f);
    /// TLS 1.2, RSA key exchange.
    pub const RSA_AES_128_GCM_SHA256: CipherSuite = CipherSuite(0x009c);
}

/// A group for key exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group(pub u16);

/// A signature scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignatureScheme(pub u16);

/// Names a code point by its registry.
macro_rules! registered {
    ($($type:ty, $table:expr;)+) => {$(
        impl $type {
            /// The name that IANA registered.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                iana::name($table, self.0)
            }
        }

        /// The registered name, or the number where there is none.
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.pad(name),
                    None => write!(f, "0x{:04x}", self.0),
                }
            }
        }
    )+};
}

registered! {
    CipherSuite, SUITES;
    Group, iana::GROUPS;
    SignatureScheme, iana::SIGNATURE_SCHEMES;
    ExtensionKind, iana::EXTENSIONS;
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
