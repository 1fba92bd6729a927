//! What the tests share: plans, followers, results, what the textbooks say.

use std::time::Duration;

use handshake::{Bench, Plan};
use lab_test::TestResult;
use lab_test::net::sleeping;
use record::{Finished, Manifest, Recorder, Run, Sample};
use study::{End, Session, Sweep, Watcher};
use units::Delay;

pub fn delay(text: &str) -> Delay {
    text.parse().unwrap()
}

/// A sweep of these modes at one RTT; the rest has its defaults.
pub fn sweep(modes: &[&str], rtt: &str, repeat: u32) -> Sweep {
    let mut sweep = with(with(Plan::single_sweep("test"), "mode", modes), "rtt", &[rtt]);
    sweep.numbers.insert("repeat".to_owned(), repeat.into());
    sweep
}

/// A sweep with these values of an axis.
pub fn with(mut sweep: Sweep, axis: &str, values: &[&str]) -> Sweep {
    sweep.lists.insert(axis.to_owned(), values.iter().map(|value| (*value).to_owned()).collect());
    sweep
}

/// Follows a measuring: keeps its warnings, and stops it after some connections.
#[derive(Debug, Default)]
pub struct Follower {
    pub warnings: Vec<String>,
    stop_after: Option<u32>,
    steps: u32,
}

impl Follower {
    pub fn stopping_after(connections: u32) -> Follower {
        Follower { stop_after: Some(connections), ..Follower::default() }
    }
}

impl Watcher for Follower {
    fn progress(&mut self, _: &str, done: Duration, total: Duration) {
        self.steps += 1;
        assert!(done <= total, "{done:?} of {total:?}");
    }

    fn interrupted(&self) -> bool {
        // The first step is the preparation.
        self.stop_after.is_some_and(|after| self.steps > after)
    }

    fn warning(&mut self, what: &str, _: Option<&str>) {
        self.warnings.push(what.to_owned());
    }

    fn note(&mut self, _: &str) {}
}

/// Where results go: a folder that is removed in the end.
pub struct Results {
    pub folder: tempfile::TempDir,
    plan: serde_json::Value,
}

impl Results {
    pub fn new(plan: &Plan) -> Results {
        let folder = tempfile::tempdir().unwrap();
        Results { folder, plan: serde_json::json!({ "handshake": plan.value() }) }
    }

    pub fn recorder(&self) -> TestResult<Recorder> {
        let manifest = Manifest::new(self.plan.clone(), record::Session::begin(false));
        Ok(Recorder::create(self.folder.path(), manifest)?)
    }

    pub fn resume(&self) -> TestResult<(Recorder, Finished)> {
        let resumed =
            Recorder::resume(self.folder.path(), &self.plan, record::Session::begin(false))?;
        Ok((resumed.recorder, resumed.finished))
    }

    pub fn samples(&self) -> TestResult<Vec<Sample>> {
        Ok(Run::open(self.folder.path())?.samples)
    }
}

/// Measures a plan in a session, on a lab that is there.
pub fn run_on(bench: &mut Bench, plan: &Plan, session: &mut Session<'_>) -> TestResult<End> {
    bench.run(plan, session).map_err(|problem| problem.to_string().into())
}

/// Measures a plan wholly, on a lab that is there.
pub fn measure_on(bench: &mut Bench, plan: &Plan) -> TestResult<Vec<Sample>> {
    let results = Results::new(plan);
    let mut recorder = results.recorder()?;
    let (finished, mut follower) = (Finished::default(), Follower::default());
    let mut session = Session::new("handshake", &mut recorder, &finished, &mut follower);
    assert_eq!(run_on(bench, plan, &mut session)?, End::Complete);
    recorder.finish()?;
    results.samples()
}

/// Measures a plan wholly, on a lab of its own.
pub fn measure(plan: &Plan) -> TestResult<Vec<Sample>> {
    measure_on(&mut Bench::new(sleeping(plan.seed))?, plan)
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
        // The SSLmTCP paper: the client may send after the server's Finished, at the end of the second
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
