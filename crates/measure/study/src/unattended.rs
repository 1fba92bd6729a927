//! A study that nobody follows.

use std::path::Path;
use std::time::Duration;

use fault::{Fault, Problem};
use record::{Finished, Manifest, Recorder, Run, Sample};
use serde_json::{Value, json};

use crate::{End, Session, Watcher};

/// Follows nothing, stops nothing, and keeps the first warning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nobody {
    /// What makes the result worth less.
    pub warning: Option<String>,
}

impl Watcher for Nobody {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}

    fn interrupted(&self) -> bool {
        false
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
    let (plan, begun) = (json!({ study: plan }), record::Session::begin(false));
    let (mut recorder, finished) = if folder.join("manifest.json").exists() {
        let resumed = Recorder::resume(folder, &plan, begun)?;
        (resumed.recorder, resumed.finished)
    } else {
        (Recorder::create(folder, Manifest::new(plan, begun))?, Finished::default())
    };
    let mut nobody = Nobody::default();
    let end = measure(&mut Session::new(study, &mut recorder, &finished, &mut nobody))?;
    recorder.finish()?;
    match (nobody.warning, end) {
        (None, End::Complete) => Ok(Run::open(folder)?.samples),
        (Some(warning), _) => Err(Problem::new(Fault::Measurement, warning)),
        (None, End::OutOfTime | End::Interrupted) => {
            Err(Problem::new(Fault::Measurement, "not all of the plan was measured"))
        }
    }
}
