//! A handoff in a guest: its times repeat, its phases add up, and what is resumed repeats nothing. This program is its own
//! guest, too.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fault::Explain as _;
use lab_test::{Need, Test, TestResult, skip};
use record::{Finished, Manifest, Outcome, Recorder, Run, Sample};
use roam_study::Plan;
use serde_json::json;
use study::{End, Plan as _, Session, Watcher};

fn main() -> ExitCode {
    guest::init_if_guest(roam_study::workers);
    let repeats = Test::new("a_handoff_repeats_and_its_phases_add_up", repeats);
    lab_test::main(&[repeats.within(Duration::from_secs(900))])
}

/// Follows nothing.
struct Silent;

impl Watcher for Silent {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}

    fn interrupted(&self) -> bool {
        false
    }

    fn warning(&mut self, what: &str, _: Option<&str>) {
        panic!("{what}");
    }

    fn note(&mut self, _: &str) {}
}

/// Measures the smallest plan into a folder, or what the folder lacks of it.
fn measured(folder: &Path) -> TestResult<Vec<Sample>> {
    let mut plan = Plan::built_in("smoke").map_err(|problem| problem.to_string())?;
    let whole = json!({ "roam": plan.value() });
    let begin = || record::Session::begin(false);
    let (mut recorder, finished) = if folder.join("manifest.json").exists() {
        let resumed = Recorder::resume(folder, &whole, begin())?;
        (resumed.recorder, resumed.finished)
    } else {
        let recorder = Recorder::create(folder, Manifest::new(whole, begin()))?;
        (recorder, Finished::default())
    };
    let mut silent = Silent;
    let mut session = Session::new("roam", &mut recorder, &finished, &mut silent);
    let end = plan.measure(&mut session).map_err(|problem| problem.to_string())?;
    assert_eq!(end, End::Complete);
    recorder.finish()?;
    Ok(Run::open(folder)?.samples)
}

fn repeats() -> TestResult {
    if let Err(error) = mobility::guest() {
        return skip(Need::Guest, error.in_one_text());
    }
    let (once, again) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (once, again) = (once.path().join("r"), again.path().join("r"));
    let (first, second) = (measured(&once)?, measured(&again)?);
    assert_eq!((first.len(), second.len()), (1, 1));
    let (sample, other) = (&first[0], &second[0]);
    assert_eq!((&sample.point, &sample.outcome), (&other.point, &Outcome::Completed));
    assert_eq!((&sample.values, &sample.labels), (&other.values, &other.labels));
    for direction in ["up", "down"] {
        let value = |name: &str| sample.values[&format!("{direction}_{name}")];
        assert!(value("outage_ms") > 0.0 && value("t1_ms") > 0.0, "{:?}", sample.values);
        assert!(value("unexplained_ms") <= 0.05 * value("gap_ms"), "{:?}", sample.values);
    }
    // What is there is not measured again.
    assert_eq!(measured(&once)?.len(), 1);
    Ok(())
}
