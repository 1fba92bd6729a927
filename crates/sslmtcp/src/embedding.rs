//! Which messages of TLS ride in TCP's handshake.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a client carries the TLS handshake. A server takes all of them on one port.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub enum Embedding {
    /// None of it: TCP, then TLS, over our TCP. The control of every comparison.
    None,
    /// As the document has it: ClientHello in the SYN, the server's flight in the SYN+ACK, the
    /// client's in the ACK, each in an envelope of at least 1024 bytes (document §4.2). Meant for
    /// TLS 1.2 with RSA key exchange, which only OpenSSL has.
    Paper,
    /// The first bytes of an ordinary TLS stream ride in the SYN, and the server's answer in the
    /// SYN+ACK. Meant for TLS 1.3: the first request leaves with the ACK.
    #[default]
    Tls13,
    /// As [`Embedding::Tls13`], with a ticket's early data in the SYN too (RFC 8446 §2.3).
    ZeroRtt,
}

/// A text that names no embedding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an embedding: write one of none, paper, tls13, 0rtt")]
pub struct UnknownEmbedding(pub String);

impl Embedding {
    /// Every value, the plainest first.
    pub const ALL: &'static [Self] = &[Self::None, Self::Paper, Self::Tls13, Self::ZeroRtt];

    /// The name that it is printed, parsed and serialised by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Paper => "paper",
            Self::Tls13 => "tls13",
            Self::ZeroRtt => "0rtt",
        }
    }
}

impl fmt::Display for Embedding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Embedding {
    type Err = UnknownEmbedding;

    fn from_str(text: &str) -> Result<Self, UnknownEmbedding> {
        let lower = text.to_ascii_lowercase();
        let found = Self::ALL.iter().copied().find(|embedding| embedding.name() == lower);
        found.ok_or_else(|| UnknownEmbedding(text.to_owned()))
    }
}

impl From<Embedding> for String {
    fn from(embedding: Embedding) -> String {
        embedding.name().to_owned()
    }
}

impl TryFrom<String> for Embedding {
    type Error = UnknownEmbedding;

    fn try_from(text: String) -> Result<Self, UnknownEmbedding> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_printed() {
        for &embedding in Embedding::ALL {
            assert_eq!(embedding.to_string().parse(), Ok(embedding));
            assert_eq!(Embedding::try_from(String::from(embedding)), Ok(embedding));
        }
        assert_eq!("TLS13".parse(), Ok(Embedding::Tls13));
        let error = "sslmtcp".parse::<Embedding>().unwrap_err();
        assert!(error.to_string().contains("0rtt"), "{error}");
    }
}
