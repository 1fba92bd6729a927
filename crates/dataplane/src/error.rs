//! What can go wrong with an engine.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// An engine that cannot do what it is asked.
#[derive(Debug, Error)]
pub enum Error {
    /// A port or a processor cannot be had.
    #[error(transparent)]
    Packet(#[from] packet::Error),
    /// Between so many nodes there are other links.
    #[error("{links} links between {nodes} nodes")]
    Chain {
        /// Nodes of the chain.
        nodes: usize,
        /// Links of the chain.
        links: usize,
    },
    /// No memory for the buffers.
    #[error("no memory for {buffers} buffers ({source})")]
    NoMemory {
        /// Buffers asked for.
        buffers: u32,
        /// What the system said.
        source: io::Error,
    },
    /// A system call was refused.
    #[error("{doing} failed: {source}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The engine's thread has ended of itself: a defect.
    #[error("the engine stopped unexpectedly")]
    Stopped,
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Packet(error) => error.fault(),
            Error::Chain { .. } => Fault::Caller,
            Error::NoMemory { .. } | Error::System { .. } => Fault::Machine,
            Error::Stopped => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Packet(error) => error.remedy(),
            Error::Chain { .. } => Some("give one link fewer than nodes".into()),
            Error::NoMemory { .. } => Some("set a smaller number of buffers".into()),
            Error::System { .. } | Error::Stopped => None,
        }
    }
}
