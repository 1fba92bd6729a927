//! A handoff in a guest: its times repeat, its phases add up, and what is resumed repeats nothing. This program is its own
//! guest, too.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fault::Explain as _;
use lab_test::{Need, Test, TestResult, skip};
use record::{Outcome, Sample};
use roam_study::Plan;
use study::{Plan as _, unattended};

fn main() -> ExitCode {
    guest::init_if_guest(roam_study::workers);
    let repeats = Test::new("a_handoff_repeats_and_its_phases_add_up", repeats);
    lab_test::main(&[repeats.within(Duration::from_secs(900))])
}

/// Measures the smallest plan into a folder, or what the folder lacks of it.
fn measured(folder: &Path) -> TestResult<Vec<Sample>> {
    let mut plan = Plan::built_in("smoke").map_err(|problem| problem.to_string())?;
    let samples = unattended("roam", &plan.value(), folder, |session| plan.measure(session));
    Ok(samples.map_err(|problem| problem.to_string())?)
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
