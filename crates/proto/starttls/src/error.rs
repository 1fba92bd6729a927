//! How a dialog before TLS fails.

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault, excerpt};
use thiserror::Error;

use crate::Protocol;

/// Characters of a peer's text that an error quotes.
const QUOTED: usize = 160;

/// Why a server did not change to TLS.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server does not know the command, or does not list it.
    #[error("the server offers no STARTTLS{}", after_colon(.reply))]
    NotOffered {
        /// The server's answer; empty if it only does not list STARTTLS.
        reply: String,
    },
    /// The server knows STARTTLS and refuses it now.
    #[error("the server refuses STARTTLS{}", after_colon(.reply))]
    Refused {
        /// The server's answer.
        reply: String,
    },
    /// The server refuses the connection.
    #[error("the server turns the connection away{}", after_colon(.reply))]
    TurnedAway {
        /// The server's words.
        reply: String,
    },
    /// The session is authenticated already, and STARTTLS is not allowed then (RFC 9051 §7.1.4).
    #[error("the server greets with PREAUTH, which forbids STARTTLS")]
    Preauthenticated,
    /// The server speaks another protocol.
    #[error("the server does not speak {}: it sent `{got}`", .protocol.title())]
    Malformed {
        /// The protocol that was expected.
        protocol: Protocol,
        /// The first bytes that do not fit.
        got: String,
    },
    /// The server answered in TLS.
    #[error("the server answered in TLS: it expects TLS at once")]
    Tls,
    /// The server answered in HTTP.
    #[error("the server answered in plain HTTP")]
    Http,
    /// The server went on before it was asked.
    #[error("the server sent `{got}` before it was asked")]
    OutOfTurn {
        /// The first of these bytes.
        got: String,
    },
    /// Plaintext followed the go-ahead for TLS.
    #[error("the server sent {bytes} bytes of plaintext after its go-ahead for TLS: `{got}`")]
    Injected {
        /// Number of bytes.
        bytes: usize,
        /// The first of these bytes.
        got: String,
    },
    /// More than [`crate::MAX_INPUT`] bytes came before TLS.
    #[error("the server sent more than {} KiB before TLS", crate::MAX_INPUT >> 10)]
    TooMuch,
    /// The server closed the connection.
    #[error("the server closed the connection before {awaited}")]
    Closed {
        /// The message that was awaited.
        awaited: &'static str,
    },
    /// The server was silent.
    #[error("{awaited} did not come within {after:?}")]
    Silent {
        /// The message that was awaited.
        awaited: &'static str,
        /// For how long.
        after: Duration,
    },
}

impl Error {
    /// The error of plaintext behind the go-ahead for TLS.
    #[must_use]
    pub fn injected(bytes: &[u8]) -> Error {
        Error::Injected { bytes: bytes.len(), got: quote(bytes) }
    }
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        Fault::Peer
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::NotOffered { .. } => {
                "enable TLS at the server; if the port expects TLS at once, leave out --starttls"
            }
            Error::Tls => "leave out --starttls",
            Error::Silent { .. } | Error::Closed { .. } => {
                "check port and protocol; if the port expects TLS at once, leave out --starttls"
            }
            Error::Malformed { .. } | Error::Http => "check port and protocol",
            Error::Injected { .. } => {
                "repair the server, or look for an attacker on the path: a client may take these bytes \
                 for protected ones, as in CVE-2011-0411"
            }
            Error::Preauthenticated => {
                "look for an attacker on the path, or turn PREAUTH off at the server"
            }
            Error::Refused { .. }
            | Error::TurnedAway { .. }
            | Error::OutOfTurn { .. }
            | Error::TooMuch => return None,
        };
        Some(remedy.into())
    }
}

/// A peer's text behind a colon, if there is one.
pub(crate) fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// A peer's bytes on one line, cut.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let few = bytes.get(..QUOTED * 4).unwrap_or(bytes);
    quote_text(&String::from_utf8_lossy(few))
}

/// A peer's text on one line, cut.
pub(crate) fn quote_text(text: &str) -> String {
    excerpt(text.trim(), QUOTED)
}
