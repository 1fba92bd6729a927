//! What can go wrong with a stack, whose fault it is and what to do.

use std::borrow::Cow;
use std::io;
use std::net::IpAddr;

use fault::{Explain, Fault};
use thiserror::Error;

/// A failure to open a stack, to listen or to connect.
#[derive(Debug, Error)]
pub enum Error {
    /// The device cannot be had.
    #[error(transparent)]
    Device(#[from] packet::Error),
    /// A text or number that is no address of a host.
    #[error("`{text}` is not an address for a stack: {problem}")]
    Address {
        /// The address as given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No address was given.
    #[error("a stack needs an address of its own")]
    NoAddress,
    /// The gateway is in none of the stack's networks.
    #[error("the gateway {gateway} is not in any network of the stack")]
    Gateway {
        /// The gateway as given.
        gateway: IpAddr,
    },
    /// The kernel has this address itself, and would answer too.
    #[error("{address} is the kernel's own (on {interface}), which would reset our connections")]
    OwnedByKernel {
        /// The address, as it was given.
        address: IpAddr,
        /// The kernel's interface that has it.
        interface: String,
    },
    /// The interface carries no Ethernet frames.
    #[error("{interface} is not an Ethernet interface")]
    NotEthernet {
        /// The interface's name, as `ip link` shows it.
        interface: String,
    },
    /// The interface is down.
    #[error("{interface} is down")]
    Down {
        /// The interface's name, as `ip link` shows it.
        interface: String,
    },
    /// There is no tokio runtime with IO and time to drive the stack.
    #[error("there is no tokio runtime with IO and time enabled")]
    NoRuntime,
    /// The stack has been shut down, or the runtime that drove it has ended.
    #[error("the stack has been shut down")]
    Closed,
    /// Listening on, or connecting from, an address that is not the stack's.
    #[error("{address} is not an address of this stack")]
    NotOurs {
        /// The address as given.
        address: IpAddr,
    },
    /// The destination cannot be reached.
    #[error("there is no route to {destination}")]
    NoRoute {
        /// The address to connect to.
        destination: IpAddr,
    },
    /// The listener was refused.
    #[error(transparent)]
    Listen(#[from] tcp::ListenError),
    /// The connection was refused before anything was sent.
    #[error(transparent)]
    Connect(#[from] tcp::ConnectError),
    /// Any other call that the kernel refused.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Device(error) => error.fault(),
            Error::Address { .. }
            | Error::NoAddress
            | Error::Gateway { .. }
            | Error::OwnedByKernel { .. }
            | Error::NoRuntime
            | Error::NotOurs { .. }
            | Error::NoRoute { .. } => Fault::Caller,
            Error::NotEthernet { .. } | Error::Down { .. } | Error::System { .. } => Fault::Machine,
            Error::Closed => Fault::Measurement,
            Error::Listen(error) => error.fault(),
            Error::Connect(error) => error.fault(),
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Device(error) => return error.remedy(),
            Error::Address { .. } => {
                "give an address that another host can reach, as 192.0.2.7 or 192.0.2.7/24"
            }
            Error::NoAddress => "give one that no other host of the link has",
            Error::Gateway { .. } => "give an address with the network's prefix, as 192.0.2.7/24",
            Error::OwnedByKernel { .. } => "take another address of the network, or a TUN device",
            Error::NotEthernet { .. } => "take one that is, or a TUN device",
            Error::Down { interface } => {
                return Some(format!("bring it up with `ip link set {interface} up`").into());
            }
            Error::NoRuntime => "open the stack within one",
            Error::NoRoute { .. } => "give the stack an address of its family, or a gateway",
            Error::Listen(error) => return error.remedy(),
            Error::Connect(error) => return error.remedy(),
            Error::Closed | Error::NotOurs { .. } | Error::System { .. } => return None,
        };
        Some(remedy.into())
    }
}

impl Error {
    /// The last error of this thread, for `doing`.
    pub(crate) fn last(doing: &'static str) -> Self {
        Error::System { doing, source: io::Error::last_os_error() }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::System { source, .. } => source.kind(),
            Error::Closed => io::ErrorKind::NotConnected,
            Error::NoRoute { .. } => io::ErrorKind::NetworkUnreachable,
            Error::NotOurs { .. } => io::ErrorKind::AddrNotAvailable,
            Error::Device(packet::Error::RawSocketsForbidden { .. }) => {
                io::ErrorKind::PermissionDenied
            }
            Error::Listen(_) => io::ErrorKind::AddrInUse,
            _ => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}
