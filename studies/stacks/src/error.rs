//! What can stop the study as a whole. A library that fails is no such thing: it is a sample.

use thiserror::Error;

use crate::plan::PlanError;

/// Why the study could not go on.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The plan asks for what cannot be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A sample could not be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// No certificate could be made.
    #[error("no certificate with a {key} key could be made: {reason}")]
    Identity {
        /// The key.
        key: tls_drivers::Key,
        /// Why.
        reason: String,
    },
}
