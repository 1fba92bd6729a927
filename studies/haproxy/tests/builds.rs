//! HAProxy built on a library and run in both scenarios. It takes minutes and a network, so it only
//! runs when it is told where headers and static libraries are:
//!
//! ```sh
//! WIRETAX_HAPROXY_TEST=openssl-1.1.1w=/path/to/sdk cargo test -p haproxy-study --test builds
//! ```
//!
//! Without libtest: the lab must be entered before any thread is started.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haproxy::{Builder, Built, Library, RELEASES};
use haproxy_study::{Builds, Plan, STUDY, Scenario, Summary, measure, table};
use lab_test::{Need, Test, TestResult, skip};
use record::{Finished, Manifest, Recorder};
use study::{End, Session, Watcher};

const VARIABLE: &str = "WIRETAX_HAPROXY_TEST";

struct Quiet;

impl Watcher for Quiet {
    fn progress(&mut self, step: &str, done: Duration, total: Duration) {
        eprintln!("{step} ({:.0} of {:.0} s)", done.as_secs_f64(), total.as_secs_f64());
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn warning(&mut self, what: &str, _: Option<&str>) {
        eprintln!("warning: {what}");
    }

    fn note(&mut self, what: &str) {
        eprintln!("{what}");
    }
}

fn main() -> std::process::ExitCode {
    let test = Test::new("haproxy_is_built_and_measured", built_and_measured);
    lab_test::main(&[test.within(Duration::from_secs(1800))])
}

fn built_and_measured() -> TestResult {
    let Ok(wanted) = std::env::var(VARIABLE) else {
        return skip(Need::Named, format!("{VARIABLE} names no library"));
    };
    let pairs = wanted.split(',').filter_map(|pair| pair.split_once('='));
    let libraries: Vec<Library> =
        pairs.map(|(name, sdk)| Library::at(name, Path::new(sdk)).unwrap()).collect();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(std::env::temp_dir, PathBuf::from);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = Builder { cache: cache.join("wiretax/haproxy"), jobs, stop: Arc::default() };
    let release = &RELEASES[0];
    // Outside the lab there is a network; inside all is in the cache.
    let builds: Vec<Built> = libraries
        .iter()
        .map(|library| builder.build(release, library, &mut |_, _| {}).unwrap())
        .inspect(|built| println!("{} in {:.0} s: {}", built.library, built.seconds, built.runs_on))
        .collect();
    lab::enter(&lab::EnterOptions::new()).unwrap();
    for built in &builds {
        // A second time nothing is built.
        let library = libraries.iter().find(|library| library.name == built.library).unwrap();
        assert_eq!(builder.find(release, library).unwrap().as_ref(), Some(built));
        assert!(built.runs_on.contains(&library.version), "{}", built.runs_on);
    }
    let names: Vec<String> = builds.iter().map(|built| built.library.clone()).collect();
    let text = format!(
        "[scale.x]\nsweep = [{{ name = \"a\", library = {names:?}, locks = [\"pthread\", \"light\"], \
         tls = [\"tls1.2\", \"tls1.3\"], threads = 2, proxies = 3, repeat = 1, milliseconds = 500, \
         connections = 8 }}]\n"
    );
    let plan = Plan::parse(&text, "x").unwrap();
    let runs = plan.runs(jobs).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let begin = record::Session::begin(false);
    let manifest = Manifest::new(serde_json::json!({ "haproxy": plan.value() }), begin);
    let mut recorder = Recorder::create(folder.path().join("results"), manifest).unwrap();
    let (finished, mut quiet) = (Finished::default(), Quiet);
    let mut session = Session::new(STUDY, &mut recorder, &finished, &mut quiet);
    let builds = Builds::of(builds.into_iter().map(|built| (release, built)));
    assert_eq!(measure(&runs, &builds, &mut session).unwrap(), End::Complete);
    drop(recorder);
    let samples = record::Run::open(folder.path().join("results")).unwrap().samples;
    assert_eq!(samples.len(), runs.len());
    let summary = Summary::of(&samples);
    for scenario in &[Scenario::Full, Scenario::Chain] {
        println!("{}", table(&summary, *scenario).unwrap().to_text(200));
    }
    for row in &summary.rows {
        assert_eq!((row.runs, row.failed), (1, 0), "{row:?}");
        let chain = row.cell.scenario == Scenario::Chain;
        let resumed = [row.client_resumed, row.front_resumed];
        assert!(resumed.iter().all(|share| share.is_some_and(|share| (share > 0.9) == chain)));
        assert_eq!(row.back_resumed.is_some(), chain);
    }
    Ok(())
}
