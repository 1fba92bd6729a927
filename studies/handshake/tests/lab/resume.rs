//! A run that was stopped, and goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use handshake::{Bench, Plan};
use record::Finished;
use study::{End, Session};

use crate::common::{Follower, Results, run_on, sweep};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("a_stopped_run_goes_on_with_what_is_missing", goes_on),
        Test::inside("a_run_keeps_to_its_time_and_says_what_it_left_out", keeps_to_its_time),
    ]
}

fn plan() -> TestResult<Plan> {
    let modes = ["tcp", "tfo+tls13-resumed", "quic-0rtt"];
    let mut plan = Plan::new(vec![sweep(&modes, "2ms", 3), {
        let mut second = sweep(&["tcp+tls13"], "2ms", 2);
        second.name = "second".to_owned();
        second
    }])?;
    plan.seed = 61;
    Ok(plan)
}

fn captured(folder: &Path) -> Result<Vec<(String, u64)>, std::io::Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()));
    }
    files.sort();
    Ok(files)
}

fn goes_on() -> TestResult {
    let plan = plan()?;
    let results = Results::new(&plan);
    let captures = tempfile::tempdir()?;
    let study = "handshake";
    let folder = || Some(captures.path().to_owned());

    // Asked once for each of three points prepared, then before each connection: after four.
    let mut recorder = results.recorder()?;
    let mut follower = Follower::stopping_after(3 + 4);
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let none = Finished::default();
    let session = Session::new(study, &mut recorder, &none, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.keeping_captures(folder()))?;
    assert_eq!(end, End::Interrupted);
    drop((recorder, bench));
    let before = results.samples()?;
    assert_eq!(before.len(), 4);
    let files = captured(captures.path())?;
    assert_eq!(files.len(), 1);

    // Another process would find the same: the folder says what is there.
    let (mut recorder, finished) = results.resume()?;
    assert_eq!(finished.len(), 4);
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let mut follower = Follower::default();
    let session = Session::new(study, &mut recorder, &finished, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.keeping_captures(folder()))?;
    assert_eq!(end, End::Complete);
    drop((recorder, bench));
    let after = results.samples()?;
    assert_eq!(after[..4], before);
    let keys: BTreeSet<String> = after.iter().map(record::Sample::key).collect();
    assert_eq!((after.len(), keys.len()), (3 * 3 + 2, 3 * 3 + 2));

    // What was captured before is still there.
    let now = captured(captures.path())?;
    assert!(files.iter().all(|file| now.contains(file)), "{files:?} {now:?}");
    assert_eq!(now.len(), 3);

    // All is there: nothing is measured, and nothing captured is lost.
    let (mut recorder, finished) = results.resume()?;
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let mut follower = Follower::default();
    let session = Session::new(study, &mut recorder, &finished, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.keeping_captures(folder()))?;
    assert_eq!(end, End::Complete);
    drop(recorder);
    assert_eq!(results.samples()?, after);
    assert_eq!(captured(captures.path())?, now);
    Ok(())
}

fn keeps_to_its_time() -> TestResult {
    let plan = plan()?;
    let results = Results::new(&plan);
    let (mut recorder, none) = (results.recorder()?, Finished::default());
    let mut follower = Follower::default();
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let session = Session::new("handshake", &mut recorder, &none, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.within(Some(Duration::ZERO)))?;
    assert_eq!(end, End::OutOfTime);
    drop(recorder);
    assert!(results.samples()?.is_empty());
    assert_eq!(follower.warnings, ["out of time: 11 connections of the plan are left out"]);
    Ok(())
}
