//! A run that was stopped, and goes on.

use std::collections::BTreeSet;
use std::path::Path;

use handshake::{Bench, End, Plan};
use record::Finished;

use crate::common::{Follower, Results, sweep};
use lab_test::net::sleeping;
use lab_test::{Test, TestResult};

pub fn tests() -> Vec<Test> {
    vec![Test::inside("a_stopped_run_goes_on_with_what_is_missing", goes_on)]
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
    let folder = || Some(captures.path().to_owned());

    // Asked once for each of three points prepared, then before each connection: after four.
    let mut recorder = results.recorder()?;
    let mut follower = Follower::stopping_after(3 + 4);
    let mut bench = Bench::new(sleeping(plan.seed))?;
    let end = bench.run(&plan, folder(), &Finished::default(), &mut recorder, &mut follower)?;
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
    let end = bench.run(&plan, folder(), &finished, &mut recorder, &mut Follower::default())?;
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
    let end = bench.run(&plan, folder(), &finished, &mut recorder, &mut Follower::default())?;
    assert_eq!(end, End::Complete);
    drop(recorder);
    assert_eq!(results.samples()?, after);
    assert_eq!(captured(captures.path())?, now);
    Ok(())
}
