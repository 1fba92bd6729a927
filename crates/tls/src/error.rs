//! What goes wrong, and whose fault it is.

use core::fmt;
use std::borrow::Cow;

use fault::{Explain, Fault};

use wire::tls::Alert;

use crate::{Group, Library, Version};

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration or the call cannot work. Change it.
    #[error("{0}")]
    Caller(#[from] CallerError),
    /// The server's certificate does not verify.
    #[error("the server's certificate does not verify: {0}")]
    Certificate(#[from] CertificateError),
    /// The peer sent an alert, or bytes that break the protocol, or offers nothing in common.
    #[error("{0}")]
    Peer(#[from] PeerError),
    /// The system has no trusted roots, or they cannot be read.
    #[error("the system has no trusted roots{cause}")]
    NoRoots {
        /// Why, after a colon, if the system says.
        cause: String,
    },
    /// The library or the environment failed, by nobody's input: out of memory, no randomness.
    #[error("{library} failed: {detail}")]
    Library {
        /// The library that failed.
        library: Library,
        /// What it said.
        detail: String,
    },
    /// AWS-LC failed, which [`crate::ech`] runs beside these libraries: on the peer's bytes, or without.
    #[error("AWS-LC failed: {detail}")]
    AwsLc {
        /// What it said.
        detail: String,
    },
}

/// What the caller asked for and cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallerError {
    /// The library has no such mechanism.
    #[error("{library} does not support {feature}")]
    Unsupported {
        /// The library asked.
        library: Library,
        /// The mechanism, in the words of its specification.
        feature: &'static str,
        /// What to choose instead.
        hint: &'static str,
    },
    /// The configuration contradicts itself.
    #[error("wrong TLS configuration: {0}")]
    Config(String),
    /// A certificate or key that was given cannot be used.
    #[error("{problem}")]
    Identity {
        /// What is wrong with it.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The server name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The ticket was taken by another [`crate::Client`], and a library refuses it under another configuration.
    #[error("the ticket belongs to another client")]
    ForeignTicket,
    /// The ticket was offered before. A TLS 1.3 ticket is for one use (RFC 8446 Appendix C.4).
    #[error("the ticket was used before")]
    UsedTicket,
    /// More early data than [`crate::Session::early_data_room`] allows, or none is allowed.
    #[error("{wanted} bytes of early data do not fit: there is room for {room}")]
    EarlyData {
        /// Bytes that were to be sent early.
        wanted: usize,
        /// Bytes that fit.
        room: usize,
    },
    /// Data after [`crate::Session::close`].
    #[error("the session is closed")]
    Closed,
    /// More unsent data than the session buffers.
    #[error("{0} bytes are waiting already")]
    BufferFull(usize),
}

/// Why a certificate does not verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateError {
    /// The kind of failure.
    pub reason: CertificateFault,
    /// The library's own words.
    pub detail: String,
}

impl core::error::Error for CertificateError {}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason.text(), self.detail)
    }
}

/// The kinds of certificate failure that both libraries tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateFault {
    /// No path to a trusted root.
    UnknownIssuer,
    /// The certificate is for another name.
    WrongName,
    /// Past its end.
    Expired,
    /// Before its beginning.
    NotYetValid,
    /// It is that of a CA, which may be no server's own (RFC 5280 §4.2.1.9).
    CaAsServer,
    /// Anything else: bad signature, wrong purpose, weak key.
    Other,
}

impl CertificateFault {
    fn text(self) -> &'static str {
        match self {
            Self::UnknownIssuer => "it leads to no trusted root",
            Self::WrongName => "it is for another name",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::CaAsServer => "it is the certificate of a CA, and not a server's own",
            Self::Other => "it is refused",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::UnknownIssuer => {
                "trust the root that signed it, or let the server send its intermediates"
            }
            Self::WrongName => "ask for a name that the certificate carries",
            Self::Expired => "renew the server's certificate, or check this machine's date",
            Self::NotYetValid => "check this machine's date",
            Self::CaAsServer => {
                "make it without the rights of a CA (`openssl req -x509 … -addext \
                 basicConstraints=critical,CA:FALSE`)"
            }
            Self::Other => "look at the certificate with `openssl s_client -showcerts`",
        }
    }
}

/// What the peer did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// A fatal alert arrived.
    #[error("the peer refused: alert {name} ({code})")]
    Alert {
        /// The alert's code (IANA TLS Alerts).
        code: u8,
        /// Its registered name.
        name: &'static str,
    },
    /// Bytes that are no record of TLS.
    #[error("the peer does not speak TLS: its bytes are no record")]
    NotTls,
    /// Bytes that break the rules of TLS.
    #[error("the peer broke the protocol: {0}")]
    Misbehaved(String),
    /// No version, cipher suite, group or signature scheme in common.
    #[error("the peer has nothing in common with this side: {0}")]
    Incompatible(String),
    /// No application protocol in common (RFC 7301 §3.2).
    #[error("the peer supports none of the application protocols (ALPN) of this side")]
    NoApplicationProtocol,
    /// A handshake message, in practice the certificates, beyond rustls's limit of 64 KiB.
    #[error("the peer sent a handshake message of more than 64 KiB")]
    LongMessage,
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Caller(error) => error.fault(),
            Error::Certificate(error) => error.fault(),
            Error::Peer(error) => error.fault(),
            Error::NoRoots { .. } | Error::Library { .. } | Error::AwsLc { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Caller(error) => error.remedy(),
            Error::Certificate(error) => error.remedy(),
            Error::Peer(error) => error.remedy(),
            Error::NoRoots { .. } => Some("install ca-certificates".into()),
            Error::Library { .. } | Error::AwsLc { .. } => None,
        }
    }
}

impl Explain for CallerError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            CallerError::Unsupported { hint, .. } => hint,
            CallerError::Identity { remedy, .. } => remedy,
            CallerError::ServerName(_) => "give the name that the certificate carries",
            CallerError::ForeignTicket => "start the client that took it",
            CallerError::UsedTicket => "take a new one from the last connection",
            CallerError::BufferFull(_) => "write what is queued before sending more",
            CallerError::Config(_) | CallerError::EarlyData { .. } | CallerError::Closed => {
                return None;
            }
        };
        Some(remedy.into())
    }
}

impl Explain for CertificateError {
    fn fault(&self) -> Fault {
        Fault::Peer
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(self.reason.remedy().into())
    }
}

impl Explain for PeerError {
    fn fault(&self) -> Fault {
        Fault::Peer
    }
}

pub(crate) fn config(text: impl Into<String>) -> Error {
    CallerError::Config(text.into()).into()
}

pub(crate) fn identity(problem: impl Into<String>, remedy: &'static str) -> Error {
    CallerError::Identity { problem: problem.into(), remedy }.into()
}

pub(crate) fn no_group_for(version: Version, groups: &[Group]) -> Error {
    let names: Vec<_> = groups.iter().map(|group| group.name()).collect();
    config(format!("none of the groups [{}] can be used with {version}", names.join(", ")))
}

/// The registered name of an alert (IANA TLS Alerts).
pub(crate) fn alert_name(code: u8) -> &'static str {
    Alert { level: 2, description: code }.name().unwrap_or("unknown alert")
}
