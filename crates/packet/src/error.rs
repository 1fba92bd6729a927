//! What can go wrong with raw frames, and what to do about it.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// A failure to get at raw frames.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not open AF_PACKET sockets here.
    #[error("raw packet sockets are not permitted ({source})")]
    RawSocketsForbidden {
        /// What the kernel said.
        source: io::Error,
    },
    /// A TAP device cannot be had.
    #[error("/dev/net/tun cannot be used ({source})")]
    NoTun {
        /// What the kernel said.
        source: io::Error,
    },
    /// There is no such interface in the calling thread's namespace.
    #[error("there is no interface `{name}` in this network namespace")]
    NoInterface {
        /// The name, or the index as text.
        name: String,
    },
    /// The name is empty, too long or has a NUL or slash in it.
    #[error("`{name}` cannot name an interface")]
    InvalidName {
        /// The name as given.
        name: String,
    },
    /// The kernel lacks something.
    #[error("this kernel does not support {what} ({source})")]
    Unsupported {
        /// What is missing.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Sizes that no ring can have.
    #[error("a receive ring of {frames} frames of {frame_bytes} bytes is not possible: {problem}")]
    RingSize {
        /// Frames asked for.
        frames: u32,
        /// Bytes of a frame asked for.
        frame_bytes: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// A TAP device has a `virtio_net_hdr` where none is wanted, or has none.
    #[error(
        "this TAP device {} virtio_net_hdr but the port's frames {}",
        if *.device { "has a" } else { "has no" },
        if *.device { "have none" } else { "have one" },
    )]
    HeaderMismatch {
        /// Whether the device has a header.
        device: bool,
    },
    /// A right could not be given up.
    #[error("this process still has {what}, which was to be given up")]
    RightsKept {
        /// What it has.
        what: &'static str,
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

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NoInterface { .. }
            | Error::InvalidName { .. }
            | Error::RingSize { .. }
            | Error::HeaderMismatch { .. } => Fault::Caller,
            Error::RawSocketsForbidden { .. }
            | Error::NoTun { .. }
            | Error::Unsupported { .. }
            | Error::RightsKept { .. }
            | Error::System { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::RawSocketsForbidden { .. } => {
                "enter a user and network namespace first, run as root, or give the program \
                 CAP_NET_RAW"
            }
            Error::NoTun { .. } => {
                "run as root with the `tun` module loaded (`modprobe tun`), or use veth links, \
                 which need neither"
            }
            Error::NoInterface { .. } => "choose one that `ip link` shows",
            Error::InvalidName { .. } => "give 1 to 15 bytes without slash, space or NUL",
            Error::Unsupported { remedy, .. } => remedy,
            Error::HeaderMismatch { device: true } => "make it with packet::Tap::create",
            Error::HeaderMismatch { device: false } => {
                "make it with packet::Tap::create_with_vnet_header"
            }
            Error::RightsKept { .. } => "give it up before any thread is started",
            Error::RingSize { .. } | Error::System { .. } => return None,
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
