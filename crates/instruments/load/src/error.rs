//! Why a run cannot be made. What happens to connections is no error, but data.

use std::net::IpAddr;

/// Why a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's fault: options that make no sense.
    #[error("{0}")]
    Options(String),
    /// The caller's fault: a server elsewhere.
    #[error(
        "{0} is not on this machine or a private network, and load on a server that is not yours is \
         an attack on it; hint: if its owner agrees, say so by --allow-remote"
    )]
    Remote(IpAddr),
    /// The caller's fault: not a DNS name or an address.
    #[error("`{0}` is no name that a certificate can carry")]
    ServerName(String),
    /// The roots cannot be used.
    #[error("trust: {0}")]
    Trust(String),
    /// This machine cannot do it.
    #[error("{0}")]
    System(String),
}
