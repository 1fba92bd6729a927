//! Why the study could not go on.

use std::borrow::Cow;

use fault::{Explain, Fault};
use thiserror::Error;

/// Why the study could not go on. What had been measured by then is kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A TLS library refused what the study asked of it.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A server could not be set up.
    #[error("a server could not be set up: {0}")]
    Server(#[from] conn::Failure),
    /// Our own TCP could not be had on a node.
    #[error("our TCP could not be opened on node {node}: {source}")]
    Stack {
        /// The node.
        node: String,
        /// What went wrong.
        source: tcpio::Error,
    },
    /// A ticket or cookie could not be fetched on a path without delay or loss.
    #[error("{mode}: priming failed: {failure}")]
    Priming {
        /// The mode that needs it.
        mode: String,
        /// What went wrong.
        failure: conn::Failure,
    },
}

impl Explain for StudyError {
    fn fault(&self) -> Fault {
        match self {
            StudyError::Lab(error) if error.fault() == Fault::Results => Fault::Results,
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            StudyError::Lab(error) => error.remedy(),
            _ => None,
        }
    }
}
