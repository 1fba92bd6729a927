//! What can go wrong with a tester.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why there is no trial.
#[derive(Debug, Error)]
pub enum Error {
    /// An interface cannot be used.
    #[error("the interface `{interface}` cannot be used by the tester: {source}")]
    Port {
        /// The interface's name, as `ip link` shows it.
        interface: String,
        /// What stands in the way.
        source: packet::Error,
    },
    /// A frame of this size has no room for what a tester's frame carries, or is longer than its interface
    /// takes.
    #[error("a frame of {0} bytes cannot be sent")]
    FrameSize(usize),
    /// Sending failed for good.
    #[error("the tester cannot send on `{interface}`: {source}")]
    Send {
        /// The interface's name, as `ip link` shows it.
        interface: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The plan of a search makes no sense.
    #[error("a search needs a highest load and a precision above 0")]
    Search,
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Port { source, .. } => source.fault(),
            Error::FrameSize(_) | Error::Search => Fault::Caller,
            Error::Send { .. } => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Port { source, .. } => source.remedy(),
            Error::FrameSize(_) => Some("take 64 bytes to the interface's MTU and 14".into()),
            Error::Send { .. } => Some("is the interface up? (`ip link`)".into()),
            Error::Search => None,
        }
    }
}
