//! Why the testbed failed.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why the testbed failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A TLS library refused what was asked of it.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A server could not be set up.
    #[error("a server could not be set up: {0}")]
    Server(#[from] conn::Failure),
    /// Our own TCP could not be had on a node.
    #[error("our TCP could not be opened on node {node}: {source}")]
    UserTcp {
        /// Name of the lab node.
        node: String,
        /// What went wrong.
        source: tcpio::Error,
    },
    /// A ticket or cookie could not be fetched.
    #[error("{variant}: priming failed: {failure}")]
    Priming {
        /// What needs it.
        variant: String,
        /// What went wrong.
        failure: conn::Failure,
    },
    /// The download beside what is measured broke.
    #[error("the concurrent download failed: {source}")]
    Beside {
        /// What went wrong.
        source: std::io::Error,
    },
    /// A handshake that shows a chain failed.
    #[error("{showing}: the handshake failed: {failure}")]
    Shown {
        /// What was shown, and how.
        showing: String,
        /// What went wrong.
        failure: Box<conn::Failure>,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Lab(error) => error.fault(),
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let Error::Lab(error) = self else { return None };
        error.remedy()
    }
}
