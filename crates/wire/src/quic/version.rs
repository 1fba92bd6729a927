//! Versions of QUIC and their names.

use std::fmt;

/// A version of QUIC, as in long headers (RFC 9000 §15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(pub u32);

impl Version {
    /// Not a version: the packet negotiates one (RFC 9000 §17.2.1).
    pub const NEGOTIATION: Version = Version(0);
    /// Version 1 (RFC 9000 §15).
    pub const V1: Version = Version(1);
    /// Version 2 (RFC 9369 §3.1).
    pub const V2: Version = Version(0x6b33_43cf);

    /// The number of a draft of version 1: versions 0xff000000 + number (draft-ietf-quic-transport
    /// §15).
    #[must_use]
    pub const fn draft(self) -> Option<u8> {
        if self.0 >> 8 == 0x00ff_0000 { Some(self.0 as u8) } else { None }
    }

    /// Whether the packets after the common part of the header can be read here: versions 1 and 2, and
    /// drafts 23 to 34, whose long headers are those of version 1.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(self, Version::V1 | Version::V2) || matches!(self.draft(), Some(23..=34))
    }

    /// Whether it is reserved to exercise version negotiation (RFC 9000 §15).
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }
}

/// The version's name: "1", "draft 29", Google's as "Q046", or the number.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(draft) = self.draft() {
            return write!(f, "draft {draft}");
        }
        match (*self, self.0.to_be_bytes()) {
            (Version::NEGOTIATION, _) => f.write_str("negotiation"),
            (Version::V1, _) => f.write_str("1"),
            (Version::V2, _) => f.write_str("2"),
            (_, [letter @ (b'Q' | b'T'), a, b, c]) if [a, b, c].iter().all(u8::is_ascii_digit) => {
                let [letter, a, b, c] = [letter, a, b, c].map(char::from);
                write!(f, "{letter}{a}{b}{c}")
            }
            _ => write!(f, "0x{:08x}", self.0),
        }
    }
}
