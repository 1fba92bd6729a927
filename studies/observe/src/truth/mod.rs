//! The generator of truth: connections in the lab with known ground truth, captured at the
//! server, and every record beside the logs of both ends.

mod agreement;
mod batch;
mod boxes;
mod crossed;
mod dial;
mod host;
mod measure;
mod pause;
mod plan;
mod point;
mod population;
mod said;
mod sample;
mod scenario;
mod site;

use record::Sample;

use crate::digest::{Digest, Options, OptionsError};
use crate::findings::{Findings, PopulationRows, class_rows, findings};

pub use agreement::{Agreement, Misclassified, RoundTripAgreement, TimeAgreement};
pub use boxes::FallbackCost;
pub use crossed::{CrossedRow, HostRow, PauseRow, Series};
pub use host::{Host, NoHost};
pub use pause::{Law, NoPause, Pause};
pub use plan::{Lab, LabPlan};
pub use point::{AXES, NUMBERS, Point};
pub use population::Population;
pub use said::Said;
pub use scenario::Scenario;

/// The study's name in samples.
pub const STUDY: &str = "observe";

/// Findings and agreement of recorded samples. Samples of other studies are passed over. `None` if there are none of this one.
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
    let mut digest = Digest::new(options.clone())?;
    sample::digest_again(samples, &mut digest, |_| true);
    let mut findings = findings(&digest);
    for population in Population::ALL.iter().map(|population| population.name()) {
        let mut digest = Digest::new(options.clone())?;
        sample::digest_again(samples, &mut digest, |own| own == population);
        let classes = class_rows(&digest);
        if !classes.is_empty() {
            findings.populations.push(PopulationRows { name: population.to_owned(), classes });
        }
    }
    let agreement = Agreement::of(samples, &findings);
    Ok(Some((findings, agreement)))
}
