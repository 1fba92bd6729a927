//! Libraries of runtimes, each in a program of its own: Go's crypto/tls and Java's JSSE.

use fault::Explain;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use load::{Close, Control, Options, Report};
use runtimes::{ClientPlan, Counts, Error, Pins, Program, Runtime, ServerPlan, Serving};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tls::CipherSuite;

use super::{HostFailure, LOAD_CLIENT, ProgramJob};
use crate::{
    Cipher, Described, Extent, Group, Key, Outcome, Reply, Side, Suite, Version, Workload,
};

/// Connections that each thread of a client keeps going, as the drivers' clients do.
const CONCURRENT: usize = 8;
/// Bytes of a response's body, as the drivers' servers give.
const BODY: usize = 16;
/// The load generator's beginning, in which tickets are got. It tells how far it is ten times a second.
const RAMP: Duration = Duration::from_millis(100);

/// Programs, built when they are first wanted.
pub(super) struct Programs {
    cache: PathBuf,
    built: RefCell<BTreeMap<Runtime, Program>>,
    /// Each runtime's server that is warm, and what it serves: runtimes take turns.
    kept: RefCell<BTreeMap<Runtime, (Served, Serving)>>,
}

/// What two jobs must have in common for one server: the workload that it is warm for, the suite,
/// threads, certificate.
type Served = (Workload, Suite, usize, String);

impl Programs {
    /// Those in `cache`.
    pub(super) fn new(cache: PathBuf) -> Programs {
        Programs { cache, built: RefCell::default(), kept: RefCell::default() }
    }

    fn program(&self, name: &str) -> Result<Program, HostFailure> {
        let runtime: Runtime = name
            .parse()
            .map_err(|error: units::UnknownName| HostFailure::Other(error.in_one_text()))?;
        if let Some(program) = self.built.borrow().get(&runtime) {
            return Ok(program.clone());
        }
        crate::check_cache(&self.cache).map_err(|error| HostFailure::Other(error.in_one_text()))?;
        let built = runtime.available().and_then(|toolchain| toolchain.build(&self.cache));
        let program = built.map_err(failure)?;
        self.built.borrow_mut().insert(runtime, program.clone());
        Ok(program)
    }

    /// What a runtime says of its library.
    pub(super) fn describe(&self, name: &str) -> Result<Described, HostFailure> {
        self.program(name)?.describe().map(described).map_err(failure)
    }

    /// Measures a runtime's server, by its own client, another runtime's, or the load generator.
    pub(super) fn run(&self, job: &ProgramJob) -> Result<Reply, HostFailure> {
        let server = self.program(&job.server)?;
        let measured = if job.client == LOAD_CLIENT {
            self.by_load(&server, job)
        } else {
            let client = self.program(&job.client)?;
            by_program(&server, &client, job)
        };
        match measured {
            Ok(outcome) => Ok(Reply::Done(Box::new(outcome))),
            Err(Failure::Program(Error::Unsupported { runtime, why })) => {
                Ok(Reply::Unsupported(format!("{runtime}: {why}")))
            }
            Err(Failure::Program(error @ Error::Failed { .. })) => {
                Ok(Reply::Failed(error.to_string()))
            }
            Err(Failure::Program(error)) => Err(failure(error)),
            Err(Failure::Load(why)) => Ok(Reply::Failed(format!("the load generator: {why}"))),
            Err(Failure::Unsupported(why)) => Ok(Reply::Unsupported(why.to_owned())),
        }
    }
}

impl Programs {
    /// This program's load generator as the client.
    fn by_load(&self, program: &Program, job: &ProgramJob) -> Result<Outcome, Failure> {
        let key = (job.workload, job.suite, job.threads, job.identity.chain.clone());
        let runtime = program.runtime();
        // One of another point ends here.
        let warm = self.kept.borrow_mut().remove(&runtime);
        let warm = warm.filter(|(kept, _)| job.keep && *kept == key);
        let mut serving = match warm {
            Some((_, serving)) => serving,
            None => {
                let serving = program.serve(&server_plan(job))?;
                let warm_up = Options {
                    duration: None,
                    count: Some(u64::from(job.warm_up.max(1))),
                    ramp: Duration::ZERO,
                    ..options(&serving, job)?
                };
                load_with(&warm_up, |_| {})?;
                serving
            }
        };
        // A server of which something went wrong is not kept: it ends when it is dropped.
        let outcome = measure_by_load(&mut serving, job)?;
        if job.keep {
            self.kept.borrow_mut().insert(runtime, (key, serving));
        } else {
            serving.stop()?;
        }
        Ok(outcome)
    }
}

fn load_with(
    options: &Options,
    mut reported: impl FnMut(load::Progress),
) -> Result<Report, Failure> {
    let control = Control::default();
    let reported = |progress| {
        if child::stopping() {
            control.stop();
        }
        reported(progress);
    };
    load::run_with(options, &control, reported).map_err(|error| Failure::Load(error.in_one_text()))
}

/// Why nothing came of a measurement.
enum Failure {
    /// A runtime's program failed.
    Program(Error),
    /// The load generator's.
    Load(String),
    /// It cannot be.
    Unsupported(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Program(error)
    }
}

fn failure(error: Error) -> HostFailure {
    match error {
        Error::Crashed { runtime, status, stderr } => {
            HostFailure::Crashed(format!("{runtime}, {status}: {stderr}"))
        }
        Error::Hung { after, .. } => HostFailure::Hung(after),
        Error::Rubbish { line, .. } => HostFailure::Rubbish(line),
        other => HostFailure::Other(other.in_one_text()),
    }
}

fn described(of: runtimes::Described) -> Described {
    Described {
        library: of.library,
        version: of.version,
        build_flags: of.build_flags,
        cpu_features: of.cpu_features,
        functions: of.functions,
    }
}

fn pins(job: &ProgramJob) -> Pins {
    Pins {
        version: job.suite.version.id(),
        cipher: job.suite.cipher_suite(),
        group: job.suite.group.id(),
        signature: job.suite.signature(),
    }
}

fn identity(job: &ProgramJob) -> runtimes::Identity {
    let crate::Identity { chain, key, roots, name } = job.identity.clone();
    runtimes::Identity { chain, key, roots, name }
}

fn server_plan(job: &ProgramJob) -> ServerPlan {
    ServerPlan {
        pins: pins(job),
        identity: identity(job),
        threads: job.threads,
        tickets: true,
        body: BODY,
    }
}

/// Connections in all, where they are counted.
fn connections(each: u64, job: &ProgramJob) -> u64 {
    each.saturating_mul(job.threads as u64)
}

/// A runtime's client, the server's own or another's.
fn by_program(server: &Program, client: &Program, job: &ProgramJob) -> Result<Outcome, Failure> {
    let aes_128 = job.suite.cipher == Cipher::Aes128Gcm;
    if client.runtime() == Runtime::Go && job.suite.version == Version::Tls13 && !aes_128 {
        let why = "Go's client cannot pin a suite of TLS 1.3, and asks for AES-128-GCM first";
        return Err(Failure::Unsupported(why));
    }
    let plan = ClientPlan {
        pins: pins(job),
        identity: identity(job),
        threads: job.threads,
        at_once: job.threads * CONCURRENT,
        workload: match job.workload {
            Workload::Resume => runtimes::Workload::Resume,
            _ => runtimes::Workload::Full,
        },
        warm: job.warm_up,
        extent: match job.extent {
            Extent::Milliseconds(ms) => runtimes::Extent::Time(Duration::from_millis(ms)),
            Extent::Connections(each) => {
                let all = connections(each, job);
                runtimes::Extent::Connections(u32::try_from(all).unwrap_or(u32::MAX))
            }
        },
    };
    let runtimes::Measured { server, client, served, made } =
        runtimes::measure(server, &server_plan(job), client, &plan)?;
    Ok(Outcome {
        done: made.done,
        // Each side sees failures that the other does not.
        failed: made.failed.max(served.failed),
        failure: first(&made.failure, &served.failure),
        wall_ns: made.wall_ns,
        resumed: resumed(job, &served, made.resumed),
        misreported: made.misreported + served.misreported,
        bytes: 0,
        waited_ns: None,
        full_legs: 0,
        server: side(server, share(&served, made.done)),
        client: side(client, made.cpu_ns),
    })
}

/// Resumed connections by both ends' wires. Of the server's, as many as go at once may have fetched a
/// ticket and ended late, when its window had begun; what else it has seen counts against the client's word.
fn resumed(job: &ProgramJob, served: &Counts, by_client: u64) -> u64 {
    let late = (job.threads * CONCURRENT) as u64;
    match job.workload {
        Workload::Full => by_client.max(served.resumed),
        _ => {
            let full = served.done.saturating_sub(served.resumed);
            by_client.saturating_sub(full.saturating_sub(late))
        }
    }
}

/// The server's CPU time for so many connections: its own window is a little another than the client's.
fn share(served: &Counts, done: u64) -> u64 {
    let each = served.cpu_ns as f64 / served.done.max(1) as f64;
    (each * done as f64) as u64
}

fn side(of: runtimes::Described, cpu_ns: u64) -> Side {
    Side { described: described(of), cpu_ns, locks: None, footprint: None }
}

fn first(one: &str, other: &str) -> Option<String> {
    [one, other].into_iter().find(|text| !text.is_empty()).map(str::to_owned)
}

fn measure_by_load(serving: &mut Serving, job: &ProgramJob) -> Result<Outcome, Failure> {
    let options = options(serving, job)?;
    // Those that fetch tickets are over when twice as many as go at once have ended.
    let primed = 2 * options.connections as u64;
    serving.restart()?;
    let mut begun = None;
    let report = load_with(&options, |progress| {
        if begun.is_none() && progress.elapsed >= RAMP && progress.completed >= primed {
            begun = Some(serving.restart());
        }
    })?;
    begun.unwrap_or(Ok(()))?;
    let served = serving.counts()?;
    outcome(job, serving.described().clone(), &served, &report)
}

fn options(serving: &Serving, job: &ProgramJob) -> Result<Options, Failure> {
    let wrong = |why: String| Failure::Load(why);
    let mut options = Options::new(serving.address(), &job.identity.name);
    options.get(&job.identity.name, "/", 1);
    options.threads = job.threads;
    options.connections = job.threads * CONCURRENT;
    options.resume = if job.workload == Workload::Resume { 1.0 } else { 0.0 };
    options.versions = vec![job.suite.version];
    options.groups = vec![job.suite.group];
    // RFC 8422 §5.1: in TLS 1.2 a client's groups are those of the server's certificate too.
    if job.suite.version == Version::Tls12
        && job.suite.key == Key::EcdsaP256
        && job.suite.group != Group::Secp256r1
    {
        options.groups.push(Group::Secp256r1);
    }
    let suite = CipherSuite(job.suite.cipher_suite()).to_string().parse::<load::Suite>();
    options.suites = vec![suite.map_err(|error| wrong(error.in_one_text()))?];
    let roots: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(job.identity.roots.as_bytes()).collect();
    let roots = roots.map_err(|error| wrong(format!("the roots: {error}")))?;
    options.trust = tls::Trust::Roots(roots.iter().map(|root| root.to_vec()).collect());
    // The server closes first, as with the drivers' clients.
    options.close = Close::Server;
    match job.extent {
        Extent::Milliseconds(ms) => {
            options.ramp = RAMP;
            options.duration = Some(RAMP + Duration::from_millis(ms));
        }
        Extent::Connections(each) => {
            options.duration = None;
            options.count = Some(connections(each, job) + options.connections as u64);
        }
    }
    Ok(options)
}

fn outcome(
    job: &ProgramJob,
    server: runtimes::Described,
    served: &Counts,
    report: &Report,
) -> Result<Outcome, Failure> {
    let handshakes = report.handshakes;
    // What fetches a ticket is not what was asked for.
    let done = report.completed.saturating_sub(handshakes.without_ticket);
    // In TLS 1.2 a resumed handshake has no key exchange.
    let groups = report.agreed.iter().filter_map(|agreed| agreed.group.as_deref());
    if let Some(other) = groups.into_iter().find(|group| *group != job.suite.group.name()) {
        return Err(Failure::Load(format!("the group agreed on was {other}")));
    }
    let failure = report.failures.first();
    let failure = failure.map(|one| format!("{}: {}", one.kind.title(), one.detail));
    let client = Described {
        library: "rustls".to_owned(),
        version: format!("wiretax load {}", env!("CARGO_PKG_VERSION")),
        build_flags: String::new(),
        cpu_features: String::new(),
        functions: 0,
    };
    let per_connection = report.cpu.us_per_connection.unwrap_or_default() * 1e3;
    Ok(Outcome {
        done,
        failed: report.failed.max(served.failed),
        failure: failure.or_else(|| first(&served.failure, "")),
        wall_ns: (done as f64 / report.connections_per_second.max(f64::MIN_POSITIVE) * 1e9) as u64,
        resumed: resumed(job, served, handshakes.resumed),
        misreported: served.misreported,
        bytes: 0,
        waited_ns: None,
        full_legs: 0,
        server: side(server, share(served, done)),
        client: Side {
            described: client,
            cpu_ns: (per_connection * done as f64) as u64,
            locks: None,
            footprint: None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(server: &str, client: &str, workload: Workload, version: Version) -> ProgramJob {
        ProgramJob {
            server: server.to_owned(),
            client: client.to_owned(),
            workload,
            suite: Suite {
                version,
                key: Key::EcdsaP256,
                group: Group::X25519,
                cipher: Cipher::Aes128Gcm,
            },
            threads: 1,
            warm_up: 20,
            keep: false,
            extent: Extent::Milliseconds(300),
            identity: crate::hosts::processes::identity(Key::EcdsaP256).unwrap(),
        }
    }

    /// What is measured of Go where it is here: by the load generator and by its own client, full and
    /// resumed, and nothing else than asked for.
    #[test]
    fn go_is_measured_as_asked() {
        if let Err(why) = Runtime::Go.available() {
            eprintln!("SKIPPED: {why}");
            return;
        }
        // Beside the tests themselves, for the first build takes long.
        let programs = Programs::new(std::env::current_exe().unwrap().with_file_name("programs"));
        assert_eq!(programs.describe("go").unwrap().library, "Go crypto/tls");
        for version in [Version::Tls12, Version::Tls13] {
            for workload in [Workload::Full, Workload::Resume] {
                for client in [LOAD_CLIENT, "go"] {
                    let what = format!("{client} {workload:?} {version}");
                    let reply = programs.run(&job("go", client, workload, version)).unwrap();
                    let Reply::Done(outcome) = reply else { panic!("{what}: {reply:?}") };
                    assert!(outcome.done > 0 && outcome.wall_ns > 0, "{what}: {outcome:?}");
                    assert_eq!(
                        (outcome.failed, outcome.misreported),
                        (0, 0),
                        "{what}: {outcome:?}"
                    );
                    let resumed = if workload == Workload::Resume { outcome.done } else { 0 };
                    assert_eq!(outcome.resumed, resumed, "{what}: {outcome:?}");
                    assert!(outcome.server.cpu_ns > 0 && outcome.client.cpu_ns > 0, "{what}");
                }
            }
        }
        let mut other = job("go", "go", Workload::Full, Version::Tls13);
        other.suite.cipher = Cipher::ChaCha20Poly1305;
        assert!(matches!(programs.run(&other).unwrap(), Reply::Unsupported(_)));
        other.client = LOAD_CLIENT.to_owned();
        assert!(matches!(programs.run(&other).unwrap(), Reply::Done(_)));
    }

    #[test]
    fn what_is_no_runtime_is_reported() {
        let cache = tempfile::tempdir().unwrap();
        let programs = Programs::new(cache.path().to_path_buf());
        let error = programs.describe("schannel").unwrap_err().to_string();
        assert!(error.contains("choose from go, java"), "{error}");
    }

    #[test]
    fn only_connections_that_both_ends_saw_resumed_count() {
        let job = job("go", "go", Workload::Resume, Version::Tls13);
        let served = |done, resumed| Counts {
            done,
            failed: 0,
            failure: String::new(),
            resumed,
            misreported: 0,
            cpu_ns: 0,
            wall_ns: 0,
        };
        assert_eq!(resumed(&job, &served(100, 100), 98), 98);
        // Tickets were being fetched when the window began.
        assert_eq!(resumed(&job, &served(100, 92), 98), 98);
        assert_eq!(resumed(&job, &served(100, 50), 98), 98 - 42);
        let full = ProgramJob { workload: Workload::Full, ..job };
        assert_eq!(resumed(&full, &served(100, 3), 0), 3);
    }
}
