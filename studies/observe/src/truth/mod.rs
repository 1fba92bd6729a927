//! The generator of truth: connections in the lab of which all is known beforehand, captured at the
//! server, and every record beside the logs of both ends.

mod agreement;
mod batch;
mod dial;
mod measure;
mod plan;
mod point;
mod population;
mod said;
mod sample;
mod scenario;
mod site;

use std::borrow::Cow;

use fault::{Explain, Fault};
use record::Sample;
use thiserror::Error;

use crate::digest::{Digest, Options, OptionsError};
use crate::findings::{Findings, findings};

pub use agreement::{Agreement, Misclassified, RoundTripAgreement, TimeAgreement};
pub use plan::{Lab, LabPlan};
pub use point::{AXES, NUMBERS, Point};
pub use population::Population;
pub use said::Said;
pub use scenario::Scenario;

/// The study's name in samples.
pub const STUDY: &str = "observe";

/// Why the truth cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TruthError {
    /// The lab failed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A TLS library refused what was asked of it.
    #[error(transparent)]
    Tls(#[from] tls::Error),
    /// A server could not be set up.
    #[error("a server could not be set up: {0}")]
    Server(#[from] conn::Failure),
    /// A ticket could not be fetched.
    #[error("{scenario}: no ticket could be fetched: {detail}")]
    Ticket {
        /// What needs it.
        scenario: Scenario,
        /// What went wrong.
        detail: String,
    },
}

impl Explain for TruthError {
    fn fault(&self) -> Fault {
        match self {
            TruthError::Lab(lab::Error::CaptureFile { .. }) => Fault::Results,
            TruthError::Lab(_) => Fault::Machine,
            _ => Fault::Measurement,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let lab = matches!(self, TruthError::Lab(_)) && self.fault() == Fault::Machine;
        lab.then(|| "`wiretax doctor` says what is missing".into())
    }
}

/// Findings and agreement of recorded samples: the picture, modes, difference and classes are those of
/// the records; what clients offered is not in samples. Samples of other studies are passed over.
/// `None` if there are none of this one.
///
/// # Errors
/// The options make no sense.
pub fn again(
    samples: &[Sample],
    options: Options,
) -> Result<Option<(Findings, Agreement)>, OptionsError> {
    if !samples.iter().any(|sample| sample.study == STUDY) {
        return Ok(None);
    }
    let mut digest = Digest::new(options)?;
    sample::digest_again(samples, &mut digest);
    let findings = findings(&digest);
    let agreement = Agreement::of(samples, &findings);
    Ok(Some((findings, agreement)))
}
