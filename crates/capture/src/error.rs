//! What can go wrong with a source, and what to do about it.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

use crate::format::Problem;

/// A failure to read a capture. Frames handed out before stay good.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be opened.
    #[error("{name} cannot be opened: {source}")]
    Open {
        /// Path of the file, or `standard input`.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be read on.
    #[error("{name} cannot be read after byte {offset}: {source}")]
    Read {
        /// Path of the file, or `standard input`.
        name: String,
        /// Bytes of it that were read.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be decompressed.
    #[error(
        "{name} is damaged: it cannot be decompressed beyond byte {offset} of what was in it: {source}"
    )]
    Compressed {
        /// Path of the file, or `standard input`.
        name: String,
        /// Where what is missing begins, in the uncompressed file.
        offset: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// It is no capture, or damaged.
    #[error("{name} cannot be read beyond byte {offset}: {problem}")]
    Format {
        /// Path of the file, or `standard input`.
        name: String,
        /// Where the record begins that cannot be, in the uncompressed file.
        offset: u64,
        /// What is wrong with it.
        problem: Problem,
    },
    /// This process may not capture.
    #[error("capturing from an interface is not permitted ({source})")]
    NotPermitted {
        /// What the kernel said.
        source: packet::Error,
    },
    /// An interface whose frames have a header that is not known.
    #[error("interface {interface} has an unsupported link type (ARPHRD {kind})")]
    InterfaceKind {
        /// The interface's name, as `ip link` shows it.
        interface: String,
        /// Its ARPHRD number.
        kind: u16,
    },
    /// A filter that cannot be.
    #[error("{count} ports are too many for a filter")]
    TooManyPorts {
        /// How many were given.
        count: usize,
    },
    /// Nothing to capture from.
    #[error("no interface was named")]
    NoInterface,
    /// Any other failure of an interface.
    #[error("interface {interface}: {source}")]
    Interface {
        /// The interface's name, as `ip link` shows it.
        interface: String,
        /// What went wrong.
        source: packet::Error,
    },
    /// The system call that waits for frames failed.
    #[error("waiting for frames failed: {0}")]
    Wait(io::Error),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NotPermitted { .. } | Error::Wait(_) => Fault::Machine,
            Error::Interface { source, .. } => source.fault(),
            Error::Open { .. }
            | Error::Read { .. }
            | Error::Compressed { .. }
            | Error::Format { .. }
            | Error::InterfaceKind { .. }
            | Error::TooManyPorts { .. }
            | Error::NoInterface => Fault::Caller,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Open { .. } => "name a file that you may read",
            Error::Format { problem, .. } => return problem.remedy(),
            Error::NotPermitted { .. } => {
                "run it by sudo, or give the program the right once (`setcap cap_net_raw+ep \
                 PROGRAM`), or read a capture file"
            }
            Error::InterfaceKind { .. } => "capture to a file with tcpdump and read that",
            Error::TooManyPorts { .. } => {
                return Some(format!("give at most {}", crate::filter::MAX_PORTS).into());
            }
            Error::NoInterface => "name one that `ip link` shows",
            Error::Interface { source, .. } => return source.remedy(),
            Error::Read { .. } | Error::Compressed { .. } | Error::Wait(_) => return None,
        };
        Some(remedy.into())
    }
}
