//! What can go wrong with raw frames, and what to do about it.

use std::io;

use thiserror::Error;

/// A failure to get at raw frames. The message says what to do.
#[derive(Debug, Error)]
pub enum Error {
    /// The environment's fault: the process may not open AF_PACKET sockets here.
    #[error(
        "raw packet sockets are not permitted ({source}); enter a user and network namespace \
         first, run as root, or give the program CAP_NET_RAW"
    )]
    RawSocketsForbidden {
        /// What the kernel said.
        source: io::Error,
    },
    /// The environment's fault: a TAP device cannot be had.
    #[error(
        "/dev/net/tun cannot be used ({source}); run as root with the `tun` module loaded \
         (`modprobe tun`), or use veth links, which need neither"
    )]
    NoTun {
        /// What the kernel said.
        source: io::Error,
    },
    /// The caller's fault: there is no such interface in the calling thread's namespace.
    #[error(
        "there is no interface `{name}` in this network namespace; `ip link` shows those there are"
    )]
    NoInterface {
        /// The name, or the index as text.
        name: String,
    },
    /// The caller's fault: the name is empty, too long or has a NUL or slash in it.
    #[error("`{name}` cannot name an interface: 1 to 15 bytes without slash, space or NUL")]
    InvalidName {
        /// The name as given.
        name: String,
    },
    /// The environment's fault: the kernel lacks something.
    #[error("this kernel does not support {what} ({source}); {remedy}")]
    Unsupported {
        /// What is missing.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The caller's fault: sizes that no ring can have.
    #[error("a receive ring of {frames} frames of {frame_bytes} bytes is not possible: {problem}")]
    RingSize {
        /// Frames asked for.
        frames: u32,
        /// Bytes of a frame asked for.
        frame_bytes: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// The environment's fault: a right could not be given up.
    #[error(
        "this process still has {what}, which was to be given up; do that before any thread is \
         started"
    )]
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

impl Error {
    /// The last error of this thread, for `doing`.
    pub(crate) fn last(doing: &'static str) -> Self {
        Error::System { doing, source: io::Error::last_os_error() }
    }
}
