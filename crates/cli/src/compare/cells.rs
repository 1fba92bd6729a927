//! What one folder of results has of each cell.

use std::collections::BTreeMap;
use std::fmt;

use record::{Outcome, Run};
use serde::Serialize;

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
    pub(super) fn of(run: &Run, study: &str, value: &str) -> Cells {
        let mut cells = Cells::default();
        for sample in run.samples.iter().filter(|sample| sample.study == study) {
            let cell = sample.cell();
            let attempts = cells.attempts.entry(cell.clone()).or_default();
            attempts.attempts += 1;
            match (&sample.outcome, sample.values.get(value)) {
                (Outcome::Completed, Some(found)) => {
                    cells.values.entry(cell).or_default().push(*found);
                }
                (Outcome::Completed, None) => {}
                _ => attempts.failed += 1,
            }
        }
        cells
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
