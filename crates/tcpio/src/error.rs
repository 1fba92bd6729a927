//! What can go wrong with a stack, whose fault it is and what to do.

use std::io;
use std::net::IpAddr;

use thiserror::Error;

/// A failure to open a stack, to listen or to connect.
#[derive(Debug, Error)]
pub enum Error {
    /// The device cannot be had; the message says what to do.
    #[error(transparent)]
    Device(#[from] packet::Error),
    /// The caller's fault: a text or number that is no address of a host.
    #[error("`{text}` is not an address for a stack: {problem}")]
    Address {
        /// The address as given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The caller's fault: no address was given.
    #[error("a stack needs an address of its own: give one that no other host of the link has")]
    NoAddress,
    /// The caller's fault: the gateway is in none of the stack's networks.
    #[error(
        "the gateway {gateway} is in no network of the stack: give an address with the network's \
         prefix, as 192.0.2.7/24"
    )]
    Gateway {
        /// The gateway as given.
        gateway: IpAddr,
    },
    /// The caller's fault: the kernel has this address itself, and would answer too.
    #[error(
        "{address} is the kernel's own (on {interface}), which would reset our connections: take \
         another address of the network, or a TUN device"
    )]
    OwnedByKernel {
        /// The address.
        address: IpAddr,
        /// The kernel's interface that has it.
        interface: String,
    },
    /// The environment's fault: the interface carries no Ethernet frames.
    #[error("{interface} is no Ethernet interface: take one that is, or a TUN device")]
    NotEthernet {
        /// The interface.
        interface: String,
    },
    /// The environment's fault: the interface is down.
    #[error("{interface} is down; `ip link set {interface} up` brings it up")]
    Down {
        /// The interface.
        interface: String,
    },
    /// The caller's fault: there is no tokio runtime with IO and time to drive the stack.
    #[error("a stack is opened within a tokio runtime that has IO and time enabled")]
    NoRuntime,
    /// The stack has been shut down, or the runtime that drove it has ended.
    #[error("the stack has been shut down")]
    Closed,
    /// The caller's fault: listening on, or connecting from, an address that is not the stack's.
    #[error("{address} is no address of this stack")]
    NotOurs {
        /// The address as given.
        address: IpAddr,
    },
    /// The caller's fault, or the configuration's: the destination cannot be reached.
    #[error(
        "there is no way to {destination}: give the stack an address of its family, or a gateway"
    )]
    NoRoute {
        /// The destination.
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
