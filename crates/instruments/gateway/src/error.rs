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
        /// The file.
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
        /// The address.
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
    /// The program `nft` cannot be started.
    #[error(
        "the program nft, by which one port is given to the gateway, cannot be started: {source}"
    )]
    NoNft {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel took no such rule.
    #[error("the kernel's packet filter refused the redirect: {said}")]
    Nft {
        /// What nft said.
        said: String,
    },
    /// The redirect is gone while the gateway runs.
    #[error("the redirect of the port is gone, since nft ended")]
    RedirectLost,
    /// A setting of the network cannot be written.
    #[error("{name} cannot be set to {value}: {source}")]
    Setting {
        /// The setting.
        name: String,
        /// Its value.
        value: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The machine knows no way to this address, or no interface for it.
    #[error("no interface of this machine leads to {address}")]
    NoInterface {
        /// The address.
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
            | Error::NoNft { .. }
            | Error::Nft { .. }
            | Error::RedirectLost
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
            Error::NoNft { .. } => {
                "install it (Debian: apt-get install nftables), or give the gateway an address of \
                 its own (--interface)"
            }
            Error::Nft { .. } => {
                "see that it has CAP_NET_ADMIN, and the kernel nf_tables with fwd in the netdev \
                 family (Linux 5.12 or later)"
            }
            Error::RedirectLost => "start the gateway again",
            Error::Setting { .. } => "see that it has CAP_NET_ADMIN, and /proc/sys is writable",
            Error::NoInterface { .. } => "name one with --interface",
            Error::System { .. } => return None,
        };
        Some(remedy.into())
    }
}
