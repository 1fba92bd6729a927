//! What keeps a gateway from running, and what to do about it. What befalls single connections is
//! logged and counted instead.

use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use fault::{Explain, Fault};

/// Why a gateway cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Options that contradict each other or the machine.
    #[error("{problem}")]
    Options {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// A file that cannot be used.
    #[error("{}: {problem}", .path.display())]
    File {
        /// Path of the file, as given.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// TLS cannot work with what it was given.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// The address or port cannot be had.
    #[error("{address} cannot be listened on: {source}")]
    Listen {
        /// The address and port that were asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The stack cannot be had.
    #[error(transparent)]
    Stack(#[from] tcpio::Error),
    /// The listener on our TCP was refused.
    #[error(transparent)]
    SslmTcp(#[from] sslmtcp::Error),
    /// The kernel took no such rule.
    #[error("the kernel's packet filter refused the redirect: {source}")]
    Redirect {
        /// What the kernel said.
        source: io::Error,
    },
    /// Rights that are no longer needed cannot be given up.
    #[error("rights that are no longer needed could not be given up: {0}")]
    Privileges(#[source] packet::Error),
    /// A setting of the network cannot be written.
    #[error("{name} cannot be set to {value}: {source}")]
    Setting {
        /// The setting's name, as `net.ipv4.conf.all.forwarding`.
        name: String,
        /// The value that it should get.
        value: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The machine knows no way to this address, or no interface for it.
    #[error("no interface of this machine leads to {address}")]
    NoInterface {
        /// The address that no route leads to.
        address: IpAddr,
    },
    /// Any other call that the kernel refused.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn listen(address: SocketAddr, source: io::Error) -> Error {
        Error::Listen { address, source }
    }

    pub(crate) fn options(problem: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::Options { problem: problem.into(), hint: hint.into() }
    }
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Options { .. }
            | Error::File { .. }
            | Error::Tls(tls::Error::Caller(_))
            | Error::NoInterface { .. } => Fault::Caller,
            Error::Tls(_)
            | Error::Listen { .. }
            | Error::Stack(_)
            | Error::SslmTcp(_)
            | Error::Redirect { .. }
            | Error::Privileges(_)
            | Error::Setting { .. }
            | Error::System { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Options { hint, .. } | Error::File { hint, .. } => {
                return Some(hint.clone().into());
            }
            Error::Tls(error) => return error.remedy(),
            Error::Stack(error) => return error.remedy(),
            Error::SslmTcp(error) => return error.remedy(),
            Error::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => "stop the program that has this port, or take another",
                io::ErrorKind::AddrNotAvailable => "give an address that this machine has",
                io::ErrorKind::PermissionDenied => {
                    "take a port above 1023, or give the program CAP_NET_BIND_SERVICE"
                }
                _ => return None,
            },
            Error::Privileges(error) => return error.remedy(),
            Error::Redirect { .. } => {
                "check that it has CAP_NET_ADMIN, and the kernel nf_tables with fwd in the netdev \
                 family (Linux 5.12 or later)"
            }
            Error::Setting { .. } => "check that it has CAP_NET_ADMIN, and /proc/sys is writable",
            Error::NoInterface { .. } => "name one with --interface",
            Error::System { .. } => return None,
        };
        Some(remedy.into())
    }
}
