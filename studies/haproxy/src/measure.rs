//! Measuring a plan's runs, each recorded as it ends.

use std::collections::BTreeMap;
use std::time::Duration;

use fault::Problem;
use haproxy::Release;
use study::{End, Expected, Session};
use tls::Identity;

use crate::builds::Builds;
use crate::plan::Run;
use crate::run::{Bench, Measured, NAME};
use crate::sample::sample;

/// Measures all runs that are not recorded yet, and records them. A library of which there is no build
/// is left out.
///
/// # Errors
/// What keeps everything from being measured: a certificate that cannot be made, a sample that cannot be
/// written. What happens to one run is recorded with it.
pub fn measure(runs: &[Run], builds: &Builds, session: &mut Session<'_>) -> Result<End, Problem> {
    let mut identities: BTreeMap<String, Identity> = BTreeMap::new();
    let left = |run: &&Run| !session.is_finished(&run.point.fields(), run.repeat);
    let left: Vec<&Run> =
        runs.iter().filter(|run| builds.find(&run.point).is_some()).filter(left).collect();
    let mut expected = Expected::of(left.iter().map(|run| run.expected()).sum::<Duration>());
    for run in left {
        if let Some(end) = session.stop() {
            return Ok(end);
        }
        let step = run.point.title();
        session.progress(&step, &expected);
        expected.done += run.expected();
        let Some(built) = builds.find(&run.point) else { continue };
        let key = run.point.key;
        let identity = match identities.get(key.name()) {
            Some(identity) => identity,
            None => {
                let made = Identity::generate(key, 1, &[NAME]).map_err(haproxy::Error::from)?;
                identities.entry(key.name().to_owned()).or_insert(made)
            }
        };
        let release = Release::find(&run.point.release)?;
        let bench = Bench { release, built, identity, run };
        let sample = match bench.run(&|| session.interrupted()) {
            Ok(None) => return Ok(End::Interrupted),
            Ok(Some(Measured { values, problem: None })) => sample(run, built, Ok(()), values),
            Ok(Some(Measured { values, problem: Some(problem) })) => {
                session.watcher().warning(&format!("{step}: {problem}"), None);
                sample(run, built, Err(problem), values)
            }
            // What ended since the user stops is no result.
            Err(_) if session.interrupted() => return Ok(End::Interrupted),
            Err(problem) => {
                session.watcher().warning(&format!("{step}: {problem}"), problem.remedy());
                sample(run, built, Err(problem.to_string()), BTreeMap::new())
            }
        };
        session.record(&sample)?;
    }
    Ok(End::Complete)
}
