//! One study being measured: what it records, what it knows, and who follows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fault::Problem;
use lab::LabOptions;
use record::{AttachmentKind, Finished, Manifest, Recorder, Sample};
use units::counted;

/// Time that a thread gets, where the user wants to stop, for samples that have just ended. A sample under way
/// is dropped: it may take minutes yet.
pub const GRACE: Duration = Duration::from_millis(500);

/// Who follows the measuring, and may stop it.
pub trait Watcher {
    /// `step` is under way; `done` of `total` expected time has passed.
    fn progress(&mut self, step: &str, done: Duration, total: Duration);
    /// `step` is under way, for a time that nobody knows.
    fn progress_without_end(&mut self, _step: &str) {}
    /// Whether to stop. Asked before each measurement.
    fn interrupted(&self) -> bool;
    /// Something makes the result worth less, and what to do about it.
    fn warning(&mut self, what: &str, remedy: Option<&str>);
    /// Something that the user may want to know.
    fn note(&mut self, what: &str);
}

/// How measuring a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it is measured.
    Complete,
    /// Its time was used up; the rest is left out.
    OutOfTime,
    /// The watcher stopped it; what was measured is recorded.
    Interrupted,
}

/// One study being measured.
pub struct Session<'a> {
    study: &'static str,
    recorder: &'a mut Recorder,
    finished: &'a Finished,
    watcher: &'a mut dyn Watcher,
    lab: LabOptions,
    captures: Option<PathBuf>,
    until: Option<Instant>,
}

impl End {
    /// The end of a plan of which `left` things are not measured: time that runs out after the last
    /// leaves nothing out. Otherwise the watcher hears how many.
    #[must_use]
    pub fn with_left(self, left: usize, thing: &str, watcher: &mut dyn Watcher) -> End {
        match (self, left) {
            (End::OutOfTime, 0) => End::Complete,
            (End::OutOfTime, left) => {
                let what = format!("out of time: {} of the plan left out", counted(left, thing));
                watcher.warning(&what, Some("measure them by --resume with this folder"));
                self
            }
            _ => self,
        }
    }
}

impl<'a> Session<'a> {
    /// A session of a study that writes to `recorder` what is not `finished`. Its time is not limited.
    pub fn new(
        study: &'static str,
        recorder: &'a mut Recorder,
        finished: &'a Finished,
        watcher: &'a mut dyn Watcher,
    ) -> Session<'a> {
        let lab = LabOptions::default();
        Session { study, recorder, finished, watcher, lab, captures: None, until: None }
    }

    /// The same in a lab with these options.
    #[must_use]
    pub fn in_lab(self, lab: LabOptions) -> Session<'a> {
        Session { lab, ..self }
    }

    /// The same with a folder for packet captures; it exists.
    #[must_use]
    pub fn keeping_captures(self, folder: Option<PathBuf>) -> Session<'a> {
        Session { captures: folder, ..self }
    }

    /// The same with this long to measure, from now.
    #[must_use]
    pub fn within(self, budget: Option<Duration>) -> Session<'a> {
        Session { until: budget.map(|budget| Instant::now() + budget), ..self }
    }

    /// How the lab is to be made.
    #[must_use]
    pub fn lab(&self) -> LabOptions {
        self.lab
    }

    /// Where packet captures are to be kept, if they are.
    #[must_use]
    pub fn captures(&self) -> Option<&Path> {
        self.captures.as_deref()
    }

    /// Whether a repeat at a point was recorded before.
    #[must_use]
    pub fn is_finished(&self, point: &BTreeMap<String, String>, repeat: u32) -> bool {
        self.finished.contains(self.study, point, repeat)
    }

    /// Records a sample, as soon as its measurement has ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn record(&mut self, sample: &Sample) -> Result<(), Problem> {
        debug_assert_eq!(sample.study, self.study, "a study records its own samples");
        Ok(self.recorder.record(sample)?)
    }

    /// Writes what a sample has beside its numbers, and puts it into the sample; before the sample is
    /// recorded.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn attach(
        &mut self,
        sample: &mut Sample,
        name: &str,
        kind: AttachmentKind,
        content: &[u8],
    ) -> Result<(), Problem> {
        let attached = self.recorder.attach(sample, name, kind, content)?;
        sample.attachments.push(attached);
        Ok(())
    }

    /// Changes the manifest of the results.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn update_manifest(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), Problem> {
        Ok(self.recorder.update_manifest(change)?)
    }

    /// Why to stop now, if there is a reason: asked before each measurement.
    #[must_use]
    pub fn stop(&self) -> Option<End> {
        if self.watcher.interrupted() {
            return Some(End::Interrupted);
        }
        let out_of_time = self.until.is_some_and(|until| Instant::now() >= until);
        out_of_time.then_some(End::OutOfTime)
    }

    /// Whether the watcher wants to stop.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.watcher.interrupted()
    }

    /// Who follows the session's progress, and may stop it.
    pub fn watcher(&mut self) -> &mut dyn Watcher {
        self.watcher
    }

    /// Tells what is under way, and how far the whole is.
    pub fn progress(&mut self, step: &str, expected: &Expected) {
        self.watcher.progress(step, expected.done, expected.total);
    }
}

/// Expected time, done and in all: for progress, which tells the time left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// What is done.
    pub done: Duration,
    /// All of it.
    pub total: Duration,
}

impl Expected {
    /// Nothing done yet.
    #[must_use]
    pub fn of(total: Duration) -> Expected {
        Expected { done: Duration::ZERO, total }
    }
}

/// About how long something takes, in words: tens of seconds up to two minutes, then minutes, from two hours on hours.
#[must_use]
pub fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{} seconds", seconds.div_ceil(10) * 10),
        seconds @ 120..7200 => format!("{} minutes", (seconds + 30) / 60),
        seconds => format!("{:.1} hours", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use record::Outcome;
    use serde_json::json;

    #[derive(Default)]
    struct Silent {
        stop: bool,
        warned: Vec<String>,
    }

    impl Watcher for Silent {
        fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
        fn interrupted(&self) -> bool {
            self.stop
        }
        fn warning(&mut self, what: &str, _: Option<&str>) {
            self.warned.push(what.to_owned());
        }
        fn note(&mut self, _: &str) {}
    }

    #[test]
    fn the_grace_leaves_time_for_the_rest_of_the_end() {
        // docs/output.md: two seconds in all.
        assert!(GRACE <= Duration::from_secs(1));
    }

    #[test]
    fn time_that_runs_out_after_the_last_leaves_nothing_out() {
        let mut silent = Silent::default();
        let mut end = |end: End, left| end.with_left(left, "load", &mut silent);
        assert_eq!(end(End::OutOfTime, 0), End::Complete);
        assert_eq!(end(End::Interrupted, 3), End::Interrupted);
        assert_eq!([1, 2].map(|left| end(End::OutOfTime, left)), [End::OutOfTime; 2]);
        let said =
            ["1 load", "2 loads"].map(|left| format!("out of time: {left} of the plan left out"));
        assert_eq!(silent.warned, said);
    }

    #[test]
    fn a_time_is_told_in_tens_of_seconds_in_minutes_or_in_hours() {
        let told = [0, 41, 119, 120, 150].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(told, ["0 seconds", "50 seconds", "120 seconds", "2 minutes", "3 minutes"]);
        let told = [7199, 7200, 9000].map(|seconds| about(Duration::from_secs(seconds)));
        assert_eq!(told, ["120 minutes", "2.0 hours", "2.5 hours"]);
    }

    pub(crate) fn sample(repeat: u32) -> Sample {
        Sample {
            study: "demo".to_owned(),
            point: [("mode".to_owned(), "a".to_owned())].into(),
            repeat,
            seed: 1,
            at_unix_ms: 0,
            outcome: Outcome::Completed,
            values: BTreeMap::new(),
            labels: BTreeMap::new(),
            attachments: Vec::new(),
            command: String::new(),
        }
    }

    #[test]
    fn what_a_session_recorded_another_knows() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("results");
        let begin = || record::Session::begin(false);
        let mut recorder =
            Recorder::create(&folder, Manifest::new(json!({ "demo": 1 }), begin())).unwrap();
        let (finished, mut silent) = (Finished::default(), Silent::default());
        let mut session = Session::new("demo", &mut recorder, &finished, &mut silent);
        session.record(&sample(0)).unwrap();
        recorder.finish().unwrap();
        let resumed = Recorder::resume(&folder, &json!({ "demo": 1 }), begin()).unwrap();
        let (mut recorder, finished) = (resumed.recorder, resumed.finished);
        let session = Session::new("demo", &mut recorder, &finished, &mut silent);
        assert!(session.is_finished(&sample(0).point, 0));
        assert!(!session.is_finished(&sample(0).point, 1));
    }

    #[test]
    fn a_wish_to_stop_goes_before_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = Manifest::new(json!({}), record::Session::begin(false));
        let mut recorder = Recorder::create(folder.path().join("r"), manifest).unwrap();
        let finished = Finished::default();
        let mut watcher = Silent { stop: true, ..Silent::default() };
        let session = Session::new("demo", &mut recorder, &finished, &mut watcher);
        assert_eq!(session.within(Some(Duration::ZERO)).stop(), Some(End::Interrupted));
        let mut watcher = Silent::default();
        let session = Session::new("demo", &mut recorder, &finished, &mut watcher);
        assert_eq!(session.stop(), None);
        assert_eq!(session.within(Some(Duration::ZERO)).stop(), Some(End::OutOfTime));
    }
}
