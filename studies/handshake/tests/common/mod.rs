//! A small test program for what needs the lab: entering it wants a process without threads, so that
//! libtest cannot run these tests. The program enters once, and runs its tests one after another. A
//! test that cannot run here says SKIPPED and why.

// Each test program uses a part.
#![allow(dead_code)]

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use handshake::{Bench, End, Plan, Sweep, Watcher};
use lab::LabOptions;
use record::{Finished, Manifest, Recorder, Run, Sample, Session};
use units::Delay;

pub type TestResult = Result<(), Box<dyn Error>>;

/// One test: its name, and what it does.
pub type Test = (&'static str, fn() -> TestResult);

/// The longest that all tests together may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Why a test was not run.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Skip {}

/// Ends a test as skipped.
pub fn skip<T>(reason: impl Into<String>) -> Result<T, Box<dyn Error>> {
    Err(Box::new(Skip(reason.into())))
}

/// The test program: runs the tests whose names contain an argument, as libtest does.
pub fn run(program: &str, tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<_> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let exact = arguments.iter().any(|a| a == "--exact");
    let matches =
        |name: &str, filter: &str| if exact { name == filter } else { name.contains(filter) };
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| matches(name, f));
    let chosen: Vec<&Test> = tests.iter().filter(|(name, _)| wanted(name)).collect();
    if arguments.iter().any(|a| a == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    // Nothing is printed before: the program is run a second time, inside.
    let forbidden = lab::enter(&lab::EnterOptions::new()).err();
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT);
        println!("test result: FAILED. The tests are not over after {} s.", LIMIT.as_secs());
        std::process::exit(1);
    });
    println!("\nrunning {} tests", chosen.len());
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for (name, test) in &chosen {
        let began = Instant::now();
        let result = match &forbidden {
            Some(error) => skip(format!("the lab cannot be entered: {error}")),
            None => std::panic::catch_unwind(AssertUnwindSafe(test))
                .unwrap_or_else(|_| Err("it panicked; the message stands above".into())),
        };
        match result {
            Ok(()) => {
                passed += 1;
                println!("test {name} ... ok ({:.1} s)", began.elapsed().as_secs_f64());
            }
            Err(error) if error.is::<Skip>() => {
                skipped += 1;
                println!("test {name} ... SKIPPED: {error}");
            }
            Err(error) => {
                failed += 1;
                println!("test {name} ... FAILED\n{error}");
                println!("again: cargo test -p handshake --test {program} -- --exact {name}\n");
            }
        }
    }
    let state = if failed == 0 { "ok" } else { "FAILED" };
    let filtered = tests.len() - chosen.len();
    println!(
        "\ntest result: {state}. {passed} passed; {failed} failed; {skipped} skipped; {filtered} filtered out\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A lab whose pump sleeps rather than spins, since several run at once.
pub fn options(seed: u64) -> LabOptions {
    let pump = pump::Options { timing: pump::Timing::Block, ..pump::Options::default() };
    LabOptions { seed, backend: lab::Backend::Veth, pump, node_cpu: None }
}

pub fn delay(text: &str) -> Delay {
    text.parse().unwrap()
}

/// A sweep of these modes at one RTT; the rest has its defaults.
pub fn sweep(modes: &[&str], rtt: &str, repeat: u32) -> Sweep {
    Sweep {
        mode: modes.iter().map(|mode| (*mode).to_owned()).collect(),
        rtt: vec![delay(rtt)],
        repeat,
        ..Plan::single_sweep("test")
    }
}

/// Follows a measuring: keeps its warnings, and stops it when asked the nth time.
#[derive(Debug, Default)]
pub struct Follower {
    pub warnings: Vec<String>,
    pub stop_after: Option<u32>,
    asked: std::cell::Cell<u32>,
}

impl Follower {
    pub fn stopping_after(asked: u32) -> Follower {
        Follower { stop_after: Some(asked), ..Follower::default() }
    }
}

impl Watcher for Follower {
    fn progress(&mut self, _: &str, done: Duration, total: Duration) {
        assert!(done <= total, "{done:?} of {total:?}");
    }

    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.stop_after.is_some_and(|after| self.asked.get() > after)
    }

    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
}

/// Where results go: a folder that is removed in the end.
pub struct Results {
    pub folder: tempfile::TempDir,
    plan: serde_json::Value,
}

impl Results {
    pub fn new(plan: &Plan) -> Results {
        let folder = tempfile::tempdir().unwrap();
        Results { folder, plan: serde_json::json!({ "handshake": plan }) }
    }

    pub fn recorder(&self) -> Result<Recorder, Box<dyn Error>> {
        let manifest = Manifest::new(self.plan.clone(), Session::begin(false));
        Ok(Recorder::create(self.folder.path(), manifest)?)
    }

    pub fn resume(&self) -> Result<(Recorder, Finished), Box<dyn Error>> {
        let resumed = Recorder::resume(self.folder.path(), &self.plan, Session::begin(false))?;
        Ok((resumed.recorder, resumed.finished))
    }

    pub fn samples(&self) -> Result<Vec<Sample>, Box<dyn Error>> {
        Ok(Run::open(self.folder.path())?.samples)
    }
}

/// Measures a plan wholly, on a lab that is there.
pub fn measure_on(bench: &mut Bench, plan: &Plan) -> Result<Vec<Sample>, Box<dyn Error>> {
    let results = Results::new(plan);
    let mut recorder = results.recorder()?;
    let mut follower = Follower::default();
    let end = bench.run(plan, None, &Finished::default(), &mut recorder, &mut follower)?;
    assert_eq!(end, End::Complete);
    recorder.finish()?;
    results.samples()
}

/// Measures a plan wholly, on a lab of its own.
pub fn measure(plan: &Plan) -> Result<Vec<Sample>, Box<dyn Error>> {
    measure_on(&mut Bench::new(options(plan.seed))?, plan)
}

/// A sample's name in failures: the point, and the command that measures it again.
pub fn name(sample: &Sample) -> String {
    format!(
        "{} #{}\nagain: {}\n{:?}\n{:?}",
        sample.cell(),
        sample.repeat,
        sample.command,
        sample.values,
        sample.labels
    )
}

/// The mode that a sample was meant to be.
pub fn intended(sample: &Sample) -> &str {
    sample.point.get("mode").map_or("", String::as_str)
}

/// A label of a sample; empty if it has none.
pub fn text<'a>(sample: &'a Sample, label: &str) -> &'a str {
    sample.labels.get(label).map_or("", String::as_str)
}

/// A value of a sample.
pub fn number(sample: &Sample, value: &str) -> f64 {
    *sample.values.get(value).unwrap_or_else(|| panic!("no {value} in {}", name(sample)))
}

/// A duration of a sample, in the nanoseconds that it was measured in.
pub fn nanos(sample: &Sample, value: &str) -> u64 {
    (number(sample, value) * 1e6).round() as u64
}

/// Round trips until ready and until the response, for small flights: written down by hand from the
/// specifications, beside `spec.rs`, that knows them by rule.
pub fn textbook(mode: &str) -> (u64, u64) {
    let (transport, security) = mode.split_once('+').unwrap_or((mode, ""));
    let over_tcp = match (transport, security) {
        ("quic", _) => return (1, 2),
        ("quic-0rtt", _) => return (0, 1),
        // The document: the client may send after the server's Finished, at the end of the second
        // round trip; with TLS 1.3 it comes on the SYN+ACK.
        ("sslmtcp-paper", _) => return (2, 3),
        ("sslmtcp-tls13" | "sslmtcp-resumed", _) => return (1, 2),
        ("sslmtcp-0rtt", _) => return (0, 1),
        (_, "") => (1, 2),
        (_, "tls12-rsa" | "tls12" | "tls13-hrr") => (3, 4),
        (_, "tls12-resumed" | "tls13" | "tls13-resumed") => (2, 3),
        (_, "tls13-0rtt") => (1, 2),
        _ => panic!("no mode {mode}"),
    };
    match transport {
        "tcp" | "usertcp" => over_tcp,
        _ => (over_tcp.0 - 1, over_tcp.1 - 1),
    }
}
