//! What can go wrong with a source, and what to do about it.

use std::io;

use thiserror::Error;

use crate::format::Problem;

/// A failure to read a capture. The message says what to do. Frames handed out before stay good.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's or the environment's fault: a file cannot be opened.
    #[error("{name} cannot be opened: {source}")]
    Open {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The environment's fault: a file cannot be read on.
    #[error("{name} cannot be read after byte {offset}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Bytes of it that were read.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file's fault: it cannot be decompressed.
    #[error(
        "{name} is damaged: it cannot be decompressed beyond byte {offset} of what was in it: {source}"
    )]
    Compressed {
        /// The file.
        name: String,
        /// Where what is missing begins, in the uncompressed file.
        offset: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// The file's fault: it is no capture, or damaged.
    #[error("{name} cannot be read from byte {offset} on: {problem}")]
    Format {
        /// The file.
        name: String,
        /// Where the record begins that cannot be, in the uncompressed file.
        offset: u64,
        /// What is wrong with it.
        problem: Problem,
    },
    /// The environment's fault: this process may not capture.
    #[error(
        "capturing from an interface is not permitted ({source}); hint: run it by sudo, or give \
         the program the right once (`setcap cap_net_raw+ep PROGRAM`), or read a capture file"
    )]
    NotPermitted {
        /// What the kernel said.
        source: packet::Error,
    },
    /// The caller's fault: an interface whose frames have a header that is not known.
    #[error(
        "interface {interface} is of a kind that is not read (ARPHRD {kind}); hint: capture to a \
         file with tcpdump and read that"
    )]
    InterfaceKind {
        /// Its name.
        interface: String,
        /// Its ARPHRD number.
        kind: u16,
    },
    /// The caller's fault: a filter that cannot be.
    #[error("{count} ports are too many for a filter: the most are {}", crate::filter::MAX_PORTS)]
    TooManyPorts {
        /// How many were given.
        count: usize,
    },
    /// The caller's fault: nothing to capture from.
    #[error("no interface was named; hint: `ip link` shows those there are")]
    NoInterface,
    /// Any other failure of an interface.
    #[error("interface {interface}: {source}")]
    Interface {
        /// Its name.
        interface: String,
        /// What went wrong.
        source: packet::Error,
    },
    /// The environment's fault: waiting failed.
    #[error("waiting for frames failed: {0}")]
    Wait(io::Error),
}
