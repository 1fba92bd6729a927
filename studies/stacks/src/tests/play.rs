//! Hosts that answer from a script, who watches, and what is measured with them.

use std::cell::{Cell as Flag, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use record::{Finished, Manifest, Recorder, Run};
use study::{Findings as _, Session, Watcher};
use tls_drivers::hosts::{Contended, Counted, HostFailure, Hosts, LOAD_CLIENT, ProgramJob};
use tls_drivers::{
    Contexts, Described, Extent, Footprint, Identity, Job, Key, LockCounts, Locks, Outcome, Reply,
    Sessions, Side, Version, Wire, Workload,
};

use super::profile;
use crate::plan::BUILT_IN;
use crate::roster::tests::roster;
use crate::{Bench, Ended, Findings, Plan, Roster, Summary, summarise};

/// What a library does in this play.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    /// CPU of a full handshake on the server, in microseconds.
    pub(super) cpu_us: f64,
    /// Locks a full handshake.
    pub(super) locks: u64,
    /// What goes wrong.
    pub(super) fault: Fault,
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Fault {
    #[default]
    None,
    Crashes,
    Hangs,
    Rubbish,
    Misreports,
    NeverResumes,
    /// Of a chain only the client's legs are resumed.
    ResumesInFront,
    /// Fails in every third slice.
    Stumbles,
    No13,
    NoIds,
}

/// Hosts that answer from a script.
pub(super) struct Play {
    pub(super) parts: BTreeMap<&'static str, Part>,
    pub(super) runs: RefCell<Vec<Job>>,
    pub(super) calls: Flag<u32>,
    pub(super) slices: Flag<u32>,
    pub(super) callgrind: bool,
    /// Whether the machine has one core only.
    pub(super) lonely: bool,
    /// Set while lock costs are measured.
    pub(super) stops_at_locks: Option<Rc<Flag<bool>>>,
}

impl Play {
    pub(super) fn new(parts: &[(&'static str, Part)]) -> Play {
        let parts = parts.iter().copied().collect();
        Play {
            parts,
            runs: RefCell::default(),
            calls: Flag::new(0),
            slices: Flag::new(0),
            callgrind: true,
            lonely: false,
            stops_at_locks: None,
        }
    }

    pub(super) fn part(&self, object: &Path) -> (&'static str, Part) {
        let name = object.file_stem().unwrap().to_string_lossy().into_owned();
        let found = self.parts.iter().find(|(other, _)| **other == name);
        found.map_or(("null", Part { cpu_us: 1.0, ..Part::default() }), |(name, part)| {
            (*name, *part)
        })
    }
}

pub(super) fn described(name: &str) -> Described {
    Described {
        library: name.to_owned(),
        version: format!("{name} in its own words"),
        build_flags: "-O2".to_owned(),
        cpu_features: "aes avx2".to_owned(),
        functions: 0b1000_1100,
    }
}

impl Hosts for Play {
    fn identity(&self, _: Key) -> Result<Identity, String> {
        let text = String::new;
        Ok(Identity { chain: text(), key: text(), roots: text(), name: "a.example".to_owned() })
    }

    fn run(&self, job: &Job, limit: Duration, _: &dyn Fn() -> bool) -> Result<Reply, HostFailure> {
        self.runs.borrow_mut().push(job.clone());
        self.calls.set(self.calls.get() + 1);
        let (name, part) = self.part(&job.server);
        match part.fault {
            Fault::Crashes => return Err(HostFailure::Crashed("signal 11".to_owned())),
            Fault::Hangs => return Err(HostFailure::Hung(limit)),
            Fault::Rubbish => return Err(HostFailure::Rubbish("\u{1b}[31mno JSON".to_owned())),
            Fault::No13 if job.suite.version == Version::Tls13 => {
                return Ok(Reply::Unsupported("no TLS 1.3".to_owned()));
            }
            Fault::NoIds if job.sessions != Sessions::Tickets => {
                return Ok(Reply::Unsupported("no session IDs".to_owned()));
            }
            _ => {}
        }
        let resumes = matches!(job.workload, Workload::Resume | Workload::Chain { .. });
        let share = if resumes { 0.3 } else { 1.0 };
        let signing = match job.suite.key {
            Key::Rsa2048 => 600.0,
            Key::Rsa4096 => 4000.0,
            Key::EcdsaP256 => 0.0,
        };
        // A little noise, so that medians have intervals.
        let noise = 1.0 + f64::from(self.calls.get() % 7) * 1e-3;
        // Its own cache is a little dearer than tickets, a store outside much; the locks that they take.
        let (dearer, stored) = match job.sessions {
            Sessions::Tickets => (1.0, 0),
            Sessions::Cache => (1.01, 3),
            Sessions::External => (1.5, 2),
        };
        let cpu = (part.cpu_us * share * dearer + if resumes { 0.0 } else { signing }) * noise;
        let threads = job.threads as f64;
        let slower = match (job.contexts, job.locks) {
            (Contexts::Shared, Locks::Pthread) if job.threads > 1 => {
                1.0 + part.locks as f64 / 1000.0
            }
            _ => 1.0,
        };
        let wall_ns = 200_000_000u64;
        let done = (0.2e6 * threads.min(2.0) / (1.6 * cpu * slower)).max(1.0) as u64;
        let done = match job.extent {
            Extent::Connections(count) => count,
            Extent::Milliseconds(_) => done,
        };
        let counts = (job.locks == Locks::Count).then(|| LockCounts {
            read: part.locks * done,
            write: done,
            mutex: (2 + stored) * done,
            ..LockCounts::default()
        });
        let footprint = matches!(job.workload, Workload::Footprint { .. })
            .then_some(Footprint { idle_bytes: 20_000, handshaking_bytes: 30_000 });
        let side = |cpu_ns: f64| Side {
            described: described(name),
            cpu_ns: cpu_ns as u64,
            locks: counts.clone(),
            footprint,
        };
        let hops = match job.workload {
            Workload::Chain { proxies } => proxies as u64,
            _ => 0,
        };
        let (resumed, full_legs) = match part.fault {
            _ if !resumes => (0, 0),
            Fault::NeverResumes => (0, done * hops),
            Fault::ResumesInFront => (done, done * hops),
            _ => (done * (hops + 1), 0),
        };
        let failed = u64::from(part.fault == Fault::Stumbles && self.calls.get().is_multiple_of(3));
        Ok(Reply::Done(Box::new(Outcome {
            done,
            failed,
            failure: None,
            wall_ns,
            waited_ns: Some(if self.calls.get().is_multiple_of(4) { wall_ns / 10 } else { 0 }),
            resumed,
            full_legs,
            misreported: if part.fault == Fault::Misreports { 3 } else { 0 },
            bytes: if matches!(job.workload, Workload::Bulk { .. }) { 1 << 28 } else { 0 },
            server: side(cpu * 1e3 * done as f64),
            client: side(cpu * 0.6 * 1e3 * done as f64),
        })))
    }

    fn run_program(&self, job: &ProgramJob) -> Result<Reply, HostFailure> {
        assert!(job.warm_up > 0 && (job.client == "go" || job.client == LOAD_CLIENT), "{job:?}");
        let object = |name: &str| PathBuf::from(format!("{name}.so"));
        let drivers = Job {
            server: object(&job.server),
            client: object(&job.client),
            workload: job.workload,
            wire: Wire::Loopback,
            suite: job.suite,
            threads: job.threads,
            tickets: 1,
            sessions: Sessions::Tickets,
            contexts: Contexts::Shared,
            locks: Locks::Pthread,
            extent: job.extent,
            identity: job.identity.clone(),
        };
        self.run(&drivers, Duration::ZERO, &|| false)
    }

    fn describe_program(&self, name: &str) -> Result<Described, HostFailure> {
        self.describe(Path::new(name))
    }

    fn describe(&self, driver: &Path) -> Result<Described, HostFailure> {
        let (name, part) = self.part(driver);
        match part.fault {
            Fault::Crashes => Err(HostFailure::Crashed("signal 11".to_owned())),
            _ => Ok(described(name)),
        }
    }

    fn count(&self, job: &Job, _limit: Duration) -> Result<Counted, HostFailure> {
        if !self.callgrind {
            return Err(HostFailure::Missing {
                what: "there is no valgrind".to_owned(),
                remedy: "install it",
            });
        }
        let (_, part) = self.part(&job.server);
        Ok(Counted {
            server_instructions: part.cpu_us * 3000.0,
            server_atomics: Some(part.locks as f64 * 2.0),
            client_instructions: Some(1e6),
            client_atomics: None,
            server_graph: profile::where_to(part.locks),
            ..Counted::default()
        })
    }

    fn run_slice(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostFailure> {
        self.slices.set(self.slices.get() + 1);
        self.run(job, limit, stop)
    }

    fn contended(&self) -> Result<Contended, String> {
        if let Some(stop) = &self.stops_at_locks {
            stop.set(true);
            return Err("it was ended".to_owned());
        }
        if self.lonely {
            return Err("two processors are needed and this process may use 1".to_owned());
        }
        Ok(Contended { read_ns: 100.0, write_ns: 100.0, mutex_ns: 50.0, atomic_ns: 20.0 })
    }

    /// The hypervisor takes 10 ms in every fifth slice.
    fn stolen(&self) -> Option<Duration> {
        Some(Duration::from_millis(10) * (self.calls.get() / 5))
    }
}

/// Watches, and stops after so many measurements.
#[derive(Default)]
pub(super) struct Audience {
    pub(super) warnings: Vec<String>,
    pub(super) stop_after: Option<u32>,
    pub(super) steps: u32,
    pub(super) asked: Flag<u32>,
    /// Set by somebody else.
    pub(super) stopped: Rc<Flag<bool>>,
}

impl Watcher for Audience {
    fn progress(&mut self, _step: &str, done: Duration, total: Duration) {
        assert!(done <= total);
        self.steps += 1;
    }

    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.stopped.get() || self.stop_after.is_some_and(|most| self.steps >= most)
    }

    fn warning(&mut self, what: &str, _: Option<&str>) {
        self.warnings.push(what.to_owned());
    }

    fn note(&mut self, _: &str) {}
}

pub(super) const THREE: [(&str, Part); 4] = [
    ("openssl-1.1.1w", Part { cpu_us: 300.0, locks: 36, fault: Fault::None }),
    ("openssl-3.0.2", Part { cpu_us: 700.0, locks: 741, fault: Fault::None }),
    ("boringssl", Part { cpu_us: 200.0, locks: 1, fault: Fault::None }),
    ("go", Part { cpu_us: 400.0, locks: 0, fault: Fault::None }),
];

pub(super) fn there() -> Roster {
    let names = ["openssl-1.1.1w+", "openssl-3.0.2+", "boringssl+", "go", "!java", "null"];
    let mut there = roster(&names);
    for library in &mut there.libraries {
        library.facts = vec![crate::Fact {
            what: "lts".to_owned(),
            says: "until 2030".to_owned(),
            source: "https://example.org/policy".to_owned(),
        }];
    }
    there
}

/// Measures a scale of the built-in plan in a folder.
pub(super) fn measured(
    folder: &Path,
    play: &Play,
    scale: &str,
    audience: &mut Audience,
) -> (Ended, Summary) {
    measured_by(&Plan::parse(BUILT_IN, scale).unwrap(), folder, play, audience)
}

pub(super) fn measured_by(
    plan: &Plan,
    folder: &Path,
    play: &Play,
    audience: &mut Audience,
) -> (Ended, Summary) {
    let expanded = plan.expand(&there(), 2).unwrap();
    let json = serde_json::json!({ "stacks": plan.value() });
    let begin = || record::Session::begin(false);
    let (mut recorder, finished) = if Run::is_results(folder) {
        let resumed = Recorder::resume(folder, &json, begin()).unwrap();
        (resumed.recorder, resumed.finished)
    } else {
        let manifest = Manifest::new(json, begin());
        (Recorder::create(folder, manifest).unwrap(), Finished::default())
    };
    let bench = Bench { hosts: play, roster: &there(), seed: 1, cores: 2 };
    let mut session = Session::new(crate::STUDY, &mut recorder, &finished, audience);
    let ended = bench.run(&expanded, &mut session).unwrap();
    recorder.finish().unwrap();
    (ended, summarise(Run::open(folder).unwrap().samples))
}

pub(super) fn text_of(findings: &Findings) -> String {
    let mut report = report::Report::new("t");
    report.answer = findings.answer();
    report.key_figures = findings.key_figures();
    report.cautions = findings.cautions();
    report.sections = findings.sections().unwrap();
    let html = report::render(&report);
    assert!(html.len() > 1000);
    report.to_text(200)
}
