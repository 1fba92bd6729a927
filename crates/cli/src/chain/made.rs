//! Chains that are made here, to compare with.

use std::fmt;
use std::str::FromStr;

use flight::PostQuantum;
use tls::{Identity, KeyType};
use units::UnknownName;

/// What keys a chain has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// All of one classical kind.
    Classical(KeyType),
    /// A leaf, and its issuers.
    PostQuantum(PostQuantum, PostQuantum),
}

/// What a leaf can have.
const KNOWN: &[&str] =
    &["ecdsa-p256", "rsa-2048", "rsa-4096", "ml-dsa-44", "ml-dsa-65", "ml-dsa-87"];
/// What issuers of such a leaf can have.
const ISSUERS: &[&str] = &[
    "ml-dsa-44",
    "ml-dsa-65",
    "ml-dsa-87",
    "slh-dsa-sha2-128s",
    "slh-dsa-sha2-128f",
    "slh-dsa-sha2-192s",
    "slh-dsa-sha2-256s",
];

impl FromStr for Recipe {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Recipe, UnknownName> {
        let unknown = |known| UnknownName { what: "key", text: text.to_owned(), known };
        let (leaf, issuer) = match text.split_once('/') {
            Some((leaf, issuer)) => (leaf, Some(issuer)),
            None => (text, None),
        };
        if let (Ok(key), None) = (leaf.parse(), issuer) {
            return Ok(Recipe::Classical(key));
        }
        // TLS has no code point by which a key of SLH-DSA could sign a handshake.
        let serves = |key: &PostQuantum| key.scheme().is_some();
        let own: PostQuantum = leaf.parse().ok().filter(serves).ok_or_else(|| unknown(KNOWN))?;
        match issuer {
            None => Ok(Recipe::PostQuantum(own, own)),
            Some(issuer) => {
                let issuer = issuer.parse().map_err(|_| unknown(ISSUERS))?;
                Ok(Recipe::PostQuantum(own, issuer))
            }
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recipe::Classical(key) => write!(f, "{key}"),
            Recipe::PostQuantum(leaf, issuer) if leaf == issuer => write!(f, "{leaf}"),
            Recipe::PostQuantum(leaf, issuer) => write!(f, "{leaf}/{issuer}"),
        }
    }
}

impl Recipe {
    /// The chain, with its keys and its root, for this name.
    pub fn make(self, length: usize, name: &str) -> Result<Identity, tls::Error> {
        match self {
            Recipe::Classical(key) => Identity::generate(key, length, &[name]),
            Recipe::PostQuantum(leaf, issuer) => {
                Identity::post_quantum(leaf, issuer, length, &[name])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_read_as_they_are_written() {
        for text in ["ecdsa-p256", "rsa-4096", "ml-dsa-65", "ml-dsa-44/slh-dsa-sha2-128s"] {
            assert_eq!(text.parse::<Recipe>().unwrap().to_string(), text);
        }
        // A leaf must sign the handshake; issuers of classical leaves are of the same kind.
        for wrong in ["", "slh-dsa-sha2-128s", "rsa-4096/ml-dsa-65", "ml-dsa-44/rsa", "dsa"] {
            assert!(wrong.parse::<Recipe>().is_err(), "{wrong}");
        }
    }
}
