//! What keeps a gateway from running, and what to do about it. What befalls single connections is
//! logged and counted instead.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Why a gateway cannot run. The variant says whose fault it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's fault: options that contradict each other or the machine.
    #[error("{problem}; hint: {hint}")]
    Options {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The caller's fault: a file that cannot be used.
    #[error("{}: {problem}; hint: {hint}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do.
        hint: String,
    },
    /// The caller's fault, by and large: TLS cannot work with what it was given.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// The environment's fault: the address or port cannot be had.
    #[error("{address} cannot be listened on: {source}{}", listen_hint(.source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The environment's fault, as a rule: the stack cannot be had.
    #[error(transparent)]
    Stack(#[from] tcpio::Error),
    /// The listener on our TCP was refused.
    #[error(transparent)]
    SslmTcp(#[from] sslmtcp::Error),
    /// The environment's fault: the program `nft` cannot be started.
    #[error(
        "the program nft, by which one port is given to the gateway, cannot be started: {source}; \
         hint: install it (Debian: apt-get install nftables), or give the gateway an address of \
         its own (--interface)"
    )]
    NoNft {
        /// What the kernel said.
        source: io::Error,
    },
    /// The environment's fault: the kernel took no such rule.
    #[error(
        "the kernel's packet filter refused the redirect: {said}; hint: it needs CAP_NET_ADMIN and \
         nf_tables with fwd in the netdev family (Linux 5.12 or later)"
    )]
    Nft {
        /// What nft said.
        said: String,
    },
    /// The environment's fault: the redirect is gone while the gateway runs.
    #[error("the redirect of the port is gone, since nft ended; hint: start the gateway again")]
    RedirectLost,
    /// The environment's fault: a setting of the network cannot be written.
    #[error(
        "{name} cannot be set to {value}: {source}; hint: it needs CAP_NET_ADMIN, and /proc/sys writable"
    )]
    Setting {
        /// The setting.
        name: String,
        /// Its value.
        value: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The caller's fault: the machine knows no way to this address, or no interface for it.
    #[error("no interface of this machine leads to {address}; hint: name one with --interface")]
    NoInterface {
        /// The address.
        address: IpAddr,
    },
    /// The environment's fault: any other call that the kernel refused.
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

    /// Whether the command line or a file is to be changed, not the machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Options { .. }
                | Error::File { .. }
                | Error::Tls(tls::Error::Caller(_))
                | Error::NoInterface { .. }
        )
    }
}

fn listen_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "; hint: another program has this port: stop it, or take another"
        }
        io::ErrorKind::AddrNotAvailable => "; hint: this machine has no such address",
        io::ErrorKind::PermissionDenied => "; hint: ports below 1024 need CAP_NET_BIND_SERVICE",
        _ => "",
    }
}
