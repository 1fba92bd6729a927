//! Why a run cannot be made. What happens to connections is no error, but data.

use std::borrow::Cow;
use std::net::IpAddr;

use fault::{Explain, Fault};

/// Why a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Options that make no sense.
    #[error("{0}")]
    Options(String),
    /// A server elsewhere.
    #[error(
        "{0} is not on this machine or a private network, and load on a server that is not yours is \
         an attack on it"
    )]
    Remote(IpAddr),
    /// Not a DNS name or an address.
    #[error("`{0}` is not a name that a certificate can carry")]
    ServerName(String),
    /// The roots cannot be used.
    #[error("trust: {0}")]
    Trust(String),
    /// The system has no trusted roots.
    #[error("the system has no trusted roots{cause}")]
    NoRoots {
        /// Why, after a colon, if the system says.
        cause: String,
    },
    /// This process may not have as many open files as connections need.
    #[error("{connections} connections need {wanted} open files, and this process may have {may}")]
    Files {
        /// Connections at once.
        connections: usize,
        /// Files that they need.
        wanted: usize,
        /// Files that the process may have.
        may: u64,
    },
    /// This machine cannot do it.
    #[error("{0}")]
    System(String),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Options(_) | Error::Remote(_) | Error::ServerName(_) | Error::Trust(_) => {
                Fault::Caller
            }
            Error::NoRoots { .. } | Error::Files { .. } | Error::System(_) => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Remote(_) => "if its owner agrees, add --allow-remote",
            Error::NoRoots { .. } => "install ca-certificates, or name the server's root",
            Error::Files { .. } => "raise `ulimit -n`, or use fewer connections",
            Error::Options(_) | Error::ServerName(_) | Error::Trust(_) | Error::System(_) => {
                return None;
            }
        };
        Some(remedy.into())
    }
}
