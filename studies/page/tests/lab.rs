//! The study measured in the lab: every load has its sample, a stop loses nothing, and what is resumed
//! repeats nothing.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use lab_test::net::sleeping;
use lab_test::{Test, TestResult};
use page_study::{PageStudy, Summary, value};
use record::{AttachmentKind, Finished, Manifest, Outcome, Recorder, Run};
use serde_json::{Value, json};
use study::{End, Options, Session, Study, Watcher};

/// Stops when it was asked so many times.
struct Follower {
    looks: Cell<u32>,
}

impl Watcher for Follower {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
    fn interrupted(&self) -> bool {
        self.looks.set(self.looks.get().saturating_sub(1));
        self.looks.get() == 0
    }
    fn warning(&mut self, what: &str, _: Option<&str>) {
        panic!("{what}");
    }
    fn note(&mut self, _: &str) {}
}

/// Measures a plan into a folder, or what a folder lacks.
fn measure(plan: &Value, folder: &Path, looks: u32) -> TestResult<End> {
    let mut plan = PageStudy.recorded_plan(plan, &Options::none()).map_err(|e| e.to_string())?;
    let whole = json!({ "page": plan.value() });
    let begin = || record::Session::begin(false);
    let (mut recorder, finished) = if folder.join("manifest.json").exists() {
        let resumed = Recorder::resume(folder, &whole, begin())?;
        (resumed.recorder, resumed.finished)
    } else {
        let recorder = Recorder::create(folder, Manifest::new(whole, begin()))?;
        (recorder, Finished::default())
    };
    let mut follower = Follower { looks: Cell::new(looks) };
    let session = Session::new("page", &mut recorder, &finished, &mut follower);
    let mut session = session.in_lab(sleeping(plan.seed()));
    let end = plan.measure(&mut session).map_err(|problem| problem.to_string())?;
    recorder.finish()?;
    Ok(end)
}

fn plan(sweep: Value) -> Value {
    json!({ "seed": 5, "timeout": "60s", "pages": {}, "page_options": "", "sweeps": [sweep] })
}

/// Every point of every protocol has its sample, with a HAR file beside the first, and the findings have
/// all of them.
fn every_load_has_its_sample() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["20ms@20mbit"],
        "protocol": ["http/1.1", "spdy/3.1", "h2", "h3"], "visit": ["first", "kept", "closed"], "repeat": 2 });
    assert_eq!(measure(&plan(sweep), &results, u32::MAX)?, End::Complete);
    let run = Run::open(&results)?;
    assert_eq!(run.samples.len(), 4 * 3 * 2);
    for sample in &run.samples {
        assert_eq!(sample.outcome, Outcome::Completed, "{}", sample.key());
        let value = |name: &str| sample.values.get(name).copied().ok_or(format!("no {name}"));
        let first = sample.point["visit"] == "first";
        if first {
            // The page's bytes, exactly.
            assert_eq!(value(value::BODY)?, 51_460.0);
            assert!(value(value::DOWN)? > 51_460.0);
            assert_eq!(value(value::REQUESTS)?, 11.0);
        }
        if sample.point["visit"] == "kept" {
            assert_eq!(value(value::CONNECTIONS)?, 0.0);
        }
        assert!(value(value::FIRST_BYTE)? <= value(value::HALF)?);
        assert!(value(value::HALF)? <= value(value::NINETY)?);
        assert!(value(value::NINETY)? <= value(value::LOAD)?);
        let hars = sample.attachments.iter().filter(|a| a.kind == AttachmentKind::Har);
        assert_eq!(hars.count(), usize::from(sample.repeat == 0));
    }
    let summary = Summary::of(&run.samples);
    assert_eq!(summary.groups.len(), 3);
    assert!(
        summary.groups.iter().all(|g| g.rows.len() == 4 && g.rows.iter().all(|r| r.loads == 2))
    );
    let question = PageStudy.question(&Options::none()).map_err(|problem| problem.to_string())?;
    let found = question.findings(run.samples, &run.manifest).map_err(|p| p.to_string())?;
    let found = found.ok_or("no findings")?;
    let sections = found.sections().map_err(|problem| problem.to_string())?;
    assert!(sections.iter().any(|section| section.id == "page-waterfall"));
    for table in found.tables() {
        print!("{}", table.to_text(100));
    }
    Ok(())
}

/// What is stopped is resumed without a load made twice.
fn a_stop_loses_nothing_and_what_follows_repeats_nothing() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = folder.path().join("results");
    let sweep = json!({ "name": "x", "page": ["site-gmail"], "link": ["5ms@50mbit"],
        "protocol": ["http/1.1", "h2"], "visit": ["first", "kept"], "repeat": 3 });
    let plan = plan(sweep);
    let end = measure(&plan, &results, 12)?;
    let before = Run::open(&results)?.samples;
    assert!(before.len() <= 12, "{}", before.len());
    assert!(end == End::Interrupted || before.len() == 12, "{end:?} with {}", before.len());
    assert_eq!(measure(&plan, &results, u32::MAX)?, End::Complete);
    let run = Run::open(&results)?;
    let keys: std::collections::BTreeSet<String> = run.samples.iter().map(|s| s.key()).collect();
    assert_eq!((run.samples.len(), keys.len()), (12, 12));
    assert_eq!(run.samples[..before.len()], before[..]);
    Ok(())
}

fn main() -> std::process::ExitCode {
    lab_test::main(&[
        Test::inside("every_load_has_its_sample", every_load_has_its_sample),
        Test::inside(
            "a_stop_loses_nothing_and_what_follows_repeats_nothing",
            a_stop_loses_nothing_and_what_follows_repeats_nothing,
        ),
    ])
}
