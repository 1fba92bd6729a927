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
    /// When it stops the measuring; none: it never does.
    until: Cell<Option<Until>>,
}

/// When a study that nobody follows is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// At this look at the wish to stop.
    Looks(u32),
    /// At the first look after so many steps were told.
    Steps(u32),
}

impl Until {
    fn counted(self, is_look: bool) -> Until {
        match self {
            Until::Looks(left) if is_look => Until::Looks(left.saturating_sub(1)),
            Until::Steps(left) if !is_look => Until::Steps(left.saturating_sub(1)),
            same => same,
        }
    }
}

impl Watcher for Nobody {
    fn progress(&mut self, _: &str, done: Duration, total: Duration) {
        self.until.set(self.until.get().map(|until| until.counted(false)));
        if done > total {
            self.warning(&format!("{done:?} of {total:?} are said to have passed"), None);
        }
    }

    fn interrupted(&self) -> bool {
        let left = self.until.get().map(|until| until.counted(true));
        self.until.set(left);
        matches!(left, Some(Until::Looks(0) | Until::Steps(0)))
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

/// Measures what a folder lacks of a plan, stopped as `until` says: for tests.
///
/// # Errors
/// Those of `measure` and of the folder; a warning.
pub fn unattended_until(
    study: &'static str,
    plan: &Value,
    folder: &Path,
    until: Option<Until>,
    measure: impl FnOnce(Session<'_>) -> Result<End, Problem>,
) -> Result<End, Problem> {
    let (plan, begun) = (json!({ study: plan }), record::Session::begin(false));
    let (mut recorder, finished) = if Run::is_results(folder) {
        let resumed = Recorder::resume(folder, &plan, begun)?;
        (resumed.recorder, resumed.finished)
    } else {
        (Recorder::create(folder, Manifest::new(plan, begun))?, Finished::default())
    };
    let mut nobody = Nobody { until: Cell::new(until), ..Nobody::default() };
    let end = measure(Session::new(study, &mut recorder, &finished, &mut nobody))?;
    recorder.finish()?;
    match nobody.warning {
        None => Ok(end),
        Some(warning) => Err(Problem::new(Fault::Measurement, warning)),
    }
}
