//! A study that nobody follows.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use fault::{Fault, Problem};
use record::{Finished, Manifest, Recorder, Run, Sample};
use serde_json::{Value, json};

use crate::{End, Session, Watcher};

/// Follows nothing, and keeps the first warning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nobody {
    /// What makes the result worth less.
    pub warning: Option<String>,
    /// How many times more it is asked before it stops the measuring; none: it never does.
    looks: Cell<Option<u32>>,
}

impl Watcher for Nobody {
    fn progress(&mut self, _: &str, done: Duration, total: Duration) {
        if done > total {
            self.warning(&format!("{done:?} of {total:?} are said to have passed"), None);
        }
    }

    fn interrupted(&self) -> bool {
        let left = self.looks.get().map(|looks| looks.saturating_sub(1));
        self.looks.set(left);
        left == Some(0)
    }

    fn warning(&mut self, what: &str, _: Option<&str>) {
        self.warning.get_or_insert_with(|| what.to_owned());
    }

    fn note(&mut self, _: &str) {}
}

/// Measures what a folder lacks of a plan, and gives all samples in it: for tests. A warning is a problem.
///
/// # Errors
/// Those of `measure` and of the folder; a warning; the plan was not measured to its end.
pub fn unattended(
    study: &'static str,
    plan: &Value,
    folder: &Path,
    measure: impl FnOnce(&mut Session<'_>) -> Result<End, Problem>,
) -> Result<Vec<Sample>, Problem> {
    let end = unattended_until(study, plan, folder, None, |mut session| measure(&mut session))?;
    match end {
        End::Complete => Ok(Run::open(folder)?.samples),
        End::OutOfTime | End::Interrupted => {
            Err(Problem::new(Fault::Measurement, "not all of the plan was measured"))
        }
    }
}

/// Measures what a folder lacks of a plan, stopped when it has looked so many times whether it is: for tests.
///
/// # Errors
/// Those of `measure` and of the folder; a warning.
pub fn unattended_until(
    study: &'static str,
    plan: &Value,
    folder: &Path,
    looks: Option<u32>,
    measure: impl FnOnce(Session<'_>) -> Result<End, Problem>,
) -> Result<End, Problem> {
    let (plan, begun) = (json!({ study: plan }), record::Session::begin(false));
    let (mut recorder, finished) = if Run::is_results(folder) {
        let resumed = Recorder::resume(folder, &plan, begun)?;
        (resumed.recorder, resumed.finished)
    } else {
        (Recorder::create(folder, Manifest::new(plan, begun))?, Finished::default())
    };
    let mut nobody = Nobody { looks: Cell::new(looks), ..Nobody::default() };
    let end = measure(Session::new(study, &mut recorder, &finished, &mut nobody))?;
    recorder.finish()?;
    match nobody.warning {
        None => Ok(end),
        Some(warning) => Err(Problem::new(Fault::Measurement, warning)),
    }
}
