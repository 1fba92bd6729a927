//! A run that was stopped, and goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use handshake::{Bench, Plan, label};
use host::Launch;
use record::Finished;
use study::{End, Session};

use crate::common::{Follower, Results, intended, name, run_on, sweep, text};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![
        Test::inside("a_stopped_run_goes_on_with_what_is_missing", goes_on),
        Test::inside("a_process_of_its_own_measures_a_cell", in_a_process),
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

    let mut recorder = results.recorder()?;
    let mut follower = Follower::stopping_after(4);
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let none = Finished::default();
    let session = Session::new(study, &mut recorder, &none, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.keeping_captures(folder()))?;
    assert_eq!(end, End::Interrupted);
    drop((recorder, bench));
    let before = results.samples()?;
    // One more may have been under way.
    assert!((4..=5).contains(&before.len()), "{}", before.len());
    let files = captured(captures.path())?;
    assert_eq!(files.len(), 1);

    // Another process would find the same: the folder says what is there.
    let (mut recorder, finished) = results.resume()?;
    assert_eq!(finished.len(), before.len() as u64);
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let mut follower = Follower::default();
    let session = Session::new(study, &mut recorder, &finished, &mut follower);
    let end = run_on(&mut bench, &plan, &mut session.keeping_captures(folder()))?;
    assert_eq!(end, End::Complete);
    drop((recorder, bench));
    let after = results.samples()?;
    assert_eq!(after[..before.len()], before);
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
    assert_eq!(follower.warnings, ["out of time: 11 connections of the plan left out"]);
    Ok(())
}

/// The argument by which this program measures cells for another process.
pub const HOST: &str = "measure-cells";

pub fn host() -> ExitCode {
    let entered = lab::enter(&lab::EnterOptions::new());
    let served = entered.is_ok() && host::serve_stdio(&handshake::workers()).is_ok();
    if served { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A job goes to a process with a lab of its own; its samples come back as they end, and a process that
/// cannot measure is an error that names the cell.
fn in_a_process() -> TestResult {
    let plan = plan()?;
    let launch = |argument: &str| Launch {
        program: std::env::current_exe().unwrap(),
        arguments: vec![argument.into()],
        environment: Vec::new(),
    };
    let results = Results::new(&plan);
    let mut recorder = results.recorder()?;
    let none = Finished::default();
    let mut follower = Follower::default();
    let mut session = Session::new("handshake", &mut recorder, &none, &mut follower);
    let mut bench = Bench::in_processes(sleeping(plan.seed), launch(HOST));
    assert_eq!(run_on(&mut bench, &plan, &mut session)?, End::Complete);
    let mut bench = Bench::in_processes(sleeping(plan.seed), launch("--no-such-option"));
    let mut other = self::plan()?;
    other.sweeps[0].name = "other".to_owned();
    let error = run_on(&mut bench, &other, &mut session).expect_err("no host");
    assert!(error.to_string().starts_with("RTT 2ms: cell: its host "), "{error}");
    drop(recorder);
    let samples = results.samples()?;
    assert_eq!(samples.len(), 3 * 3 + 2);
    for sample in &samples {
        assert_eq!(text(sample, label::ACTUAL), intended(sample), "{}", name(sample));
    }
    Ok(())
}
