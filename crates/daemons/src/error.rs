//! Why a daemon does not do what it is to do.

use std::borrow::Cow;
use std::io;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why a daemon does not do what it is to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be started, or was not ready in time.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// It has ended.
    #[error("{daemon} on node {node} ended by {status}")]
    Ended {
        /// The daemon's program name, as `hostapd`.
        daemon: &'static str,
        /// Name of the lab node that it runs on.
        node: String,
        /// How it ended, as the system says.
        status: String,
    },
    /// Its control socket.
    #[error("asking {daemon} on node {node} to {command}")]
    Control {
        /// The daemon's program name, as `hostapd`.
        daemon: &'static str,
        /// Name of the lab node that it runs on.
        node: String,
        /// What it was to do; without secrets.
        command: String,
        /// Why it could not be asked.
        source: io::Error,
    },
    /// A daemon was asked to do something, and answered that it does not.
    #[error("{daemon} on node {node} does not {command}: {answer}")]
    Refused {
        /// The daemon's program name, as `hostapd`.
        daemon: &'static str,
        /// Name of the lab node that it runs on.
        node: String,
        /// What it was to do; without secrets.
        command: String,
        /// What it said.
        answer: String,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Lab(error) => error.fault(),
            Error::Ended { .. } | Error::Control { .. } | Error::Refused { .. } => {
                Fault::Measurement
            }
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::Lab(error) => error.remedy(),
            _ => None,
        }
    }
}
