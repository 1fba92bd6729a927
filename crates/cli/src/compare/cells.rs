//! What one folder of results has of each cell.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use fault::Problem;
use record::{Manifest, Outcome, Run, Sample};
use serde::Serialize;

use super::comparable::compared_value;
use crate::diagnostics::Diagnostics;
use crate::studies::STUDIES;

/// Attempts of a cell and how many of them failed or were given up.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Attempts {
    attempts: u64,
    failed: u64,
}

/// A study's cells in one folder.
#[derive(Default)]
pub(super) struct Cells {
    /// The compared value of the samples that completed.
    pub values: BTreeMap<String, Vec<f64>>,
    attempts: BTreeMap<String, Attempts>,
}

impl Cells {
    fn take(&mut self, sample: &Sample, value: Option<&str>) {
        let cell = sample.cell();
        let attempts = self.attempts.entry(cell.clone()).or_default();
        attempts.attempts += 1;
        match (&sample.outcome, value.and_then(|value| sample.values.get(value))) {
            (Outcome::Completed, Some(found)) => {
                self.values.entry(cell).or_default().push(*found);
            }
            (Outcome::Completed, None) => {}
            _ => attempts.failed += 1,
        }
    }
}

/// One folder of results, as far as it is compared.
pub(super) struct Side {
    pub manifest: Manifest,
    /// By the study's name; every study that it has samples of is there.
    pub cells: BTreeMap<&'static str, Cells>,
}

impl Side {
    /// Reads a folder, one sample after the other. `value` is what is compared, or each study's first.
    pub(super) fn read(
        folder: &Path,
        value: Option<&str>,
        diagnostics: &Diagnostics,
    ) -> Result<Side, Problem> {
        let (manifest, mut samples) = Run::stream(folder)?;
        let mut cells = BTreeMap::<&'static str, Cells>::new();
        let known = STUDIES.iter().map(|study| (study.name(), compared_value(*study, value)));
        let known: Vec<_> = known.collect();
        for sample in samples.by_ref() {
            let sample = sample?;
            if let Some((name, value)) = known.iter().find(|(name, _)| *name == sample.study) {
                let value = value.as_ref().map(|(value, _)| *value);
                cells.entry(name).or_default().take(&sample, value);
            }
        }
        if let Some(torn) = samples.torn() {
            let remedy = "continue with --resume";
            let what = format!("{}: {torn}", folder.display());
            diagnostics.warning_with_remedy(what, Some(remedy));
        }
        Ok(Side { manifest, cells })
    }
}

/// Whether a cell fails more often than before.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    cell: String,
    before: Attempts,
    after: Attempts,
    p_value: f64,
    pub worse: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { cell, before, after, .. } = self;
        write!(f, "{cell}: {} of {} failed, ", after.failed, after.attempts)?;
        write!(f, "before {} of {}", before.failed, before.attempts)
    }
}

/// The cells that fail in either, and which of them fail more often: `limit` is the share of false
/// alarms that is accepted over all of them.
pub(super) fn failures(
    before: &Cells,
    after: &Cells,
    limit: f64,
) -> Result<Vec<Failure>, stats::Error> {
    let mut failures = Vec::new();
    for (cell, a) in &before.attempts {
        let Some(b) = after.attempts.get(cell) else { continue };
        if a.failed + b.failed == 0 {
            continue;
        }
        let p_value = stats::fisher_exact((a.failed, a.attempts), (b.failed, b.attempts))?;
        let (cell, before, after) = (cell.clone(), *a, *b);
        failures.push(Failure { cell, before, after, p_value, worse: false });
    }
    let p_values: Vec<f64> = failures.iter().map(|failure| failure.p_value).collect();
    let q_values = stats::benjamini_hochberg(&p_values);
    for (failure, q_value) in failures.iter_mut().zip(q_values) {
        let share = |attempts: &Attempts| attempts.failed as f64 / attempts.attempts as f64;
        failure.worse = q_value < limit && share(&failure.after) > share(&failure.before);
    }
    Ok(failures)
}
