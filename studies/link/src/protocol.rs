//! A protection with its cipher, as the command line names it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use fault::{Explain, Fault};
use seclink::path::{Cipher, Protection};
use thiserror::Error;

/// Protection of the frames and its cipher: `macsec`, `esp:aes-cbc-128-sha1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol {
    /// What protects the frames.
    pub protection: Protection,
    /// With what they are protected.
    pub cipher: Cipher,
}

impl Protocol {
    /// A protection with its usual cipher.
    #[must_use]
    pub const fn usual(protection: Protection) -> Protocol {
        Protocol { protection, cipher: protection.usual_cipher() }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cipher == self.protection.usual_cipher() {
            true => f.pad(self.protection.name()),
            false => f.pad(&format!("{}:{}", self.protection, self.cipher)),
        }
    }
}

/// A text that names no protocol. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnknownProtocol {
    /// No such protection.
    #[error("no protocol is called `{0}`")]
    Protection(String),
    /// No such cipher, or it is not the protection's.
    #[error("{0} has no cipher `{1}`")]
    Cipher(Protection, String),
}

impl Explain for UnknownProtocol {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(
            match self {
                UnknownProtocol::Protection(_) => {
                    let names: Vec<&str> = Protection::ALL.iter().map(|one| one.name()).collect();
                    format!(
                        "choose from {}; a cipher may follow, as in esp:aes-cbc-128-sha1",
                        names.join(", ")
                    )
                }
                UnknownProtocol::Cipher(protection, _) => {
                    let can = Cipher::ALL.iter().filter(|cipher| protection.can(**cipher));
                    let names: Vec<&str> = can.map(|cipher| cipher.name()).collect();
                    format!("choose from {}", names.join(", "))
                }
            }
            .into(),
        )
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let (name, cipher) = match text.split_once(':') {
            Some((name, cipher)) => (name, Some(cipher)),
            None => (text, None),
        };
        let unknown = || UnknownProtocol::Protection(name.to_owned());
        let protection: Protection = name.parse().map_err(|_| unknown())?;
        let Some(word) = cipher else { return Ok(Protocol::usual(protection)) };
        let wrong = || UnknownProtocol::Cipher(protection, word.to_owned());
        let cipher: Cipher = word.parse().map_err(|_| wrong())?;
        if protection.can(cipher) { Ok(Protocol { protection, cipher }) } else { Err(wrong()) }
    }
}
