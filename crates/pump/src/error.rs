//! What can go wrong with a pump.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// A pump that cannot do what it is asked.
#[derive(Debug, Error)]
pub enum Error {
    /// An interface or a TAP device cannot be opened.
    #[error("a link cannot be opened: {0}")]
    Port(#[from] packet::Error),
    /// The link's configuration makes no sense.
    #[error("the link cannot be like that: {0}")]
    Config(#[from] linkmodel::ConfigError),
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
    /// No link has this number, or it was removed.
    #[error("the pump has no such link")]
    NoSuchLink,
    /// The pump's thread has ended, so links are down: a defect, or the pump was stopped.
    #[error("the link pump has stopped")]
    Stopped,
    /// A frame sent for calibration did not arrive.
    #[error("calibration: {lost} of {sent} frames did not arrive")]
    CalibrationLost {
        /// Frames sent for calibration.
        sent: usize,
        /// Frames that did not arrive in time.
        lost: usize,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Port(error) => error.fault(),
            Error::Config(error) => error.fault(),
            Error::NoSuchLink => Fault::Caller,
            Error::NoMemory { .. } | Error::System { .. } => Fault::Machine,
            Error::Stopped | Error::CalibrationLost { .. } => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Port(error) => return error.remedy(),
            Error::Config(error) => return error.remedy(),
            Error::NoMemory { .. } => "set a smaller number of buffers",
            Error::Stopped => "start a new one",
            Error::CalibrationLost { .. } => {
                "check that both far ends are up and that the rig's ports are joined to them"
            }
            Error::System { .. } | Error::NoSuchLink => return None,
        };
        Some(remedy.into())
    }
}
