//! Hosts as processes of this program, and programs of runtimes.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgrind::{Invocation, Options};
use fault::{Explain, Fault, OrProblem, Problem};
use locks::Operation;
use outfile::Scratch;

use super::programs::Programs;
use super::{Contended, Counted, HostFailure, Hosts, ProgramJob};
use crate::{
    Described, Driver, Extent, HostError, Identity, Job, KeptDrivers, Key, Locks, Outcome, Reply,
    Supervisor, SupervisorOptions, Workload,
};

/// Begins the name of the folder of what is counted.
const SCRATCH: &str = "wiretax-callgrind-";

/// The hidden command by which this program is a host: see [`crate::host::workers`].
pub const HOST: &str = "__host";

/// What the host runs on the server's side while callgrind counts: the root of its graph.
pub const SERVER_TURNS: &str = "wiretax_server_turns";
/// The same on the client's side.
pub const CLIENT_TURNS: &str = "wiretax_client_turns";
/// Connections of the run that is taken off, so that start-up is no part of the count.
const FEW: u64 = 5;

/// Hosts that are processes of their own.
pub struct Processes {
    supervisor: Supervisor,
    programs: Programs,
    /// Hosts that stay, each with its job but for the extent.
    kept: RefCell<Vec<(Job, KeptDrivers)>>,
    built_in: Vec<Driver>,
}

impl Processes {
    /// Hosts that are this program; programs of runtimes are built into `cache`.
    ///
    /// # Errors
    /// There is no memory for what hosts load.
    pub fn new(cache: PathBuf) -> Result<Processes, Problem> {
        let options = SupervisorOptions {
            program: std::env::current_exe().blame(Fault::Machine)?,
            arguments: vec![HOST.to_owned()],
        };
        let supervisor = Supervisor::new(options).blame(Fault::Machine)?;
        let (programs, kept) = (Programs::new(cache), RefCell::default());
        let built_in = crate::built_in::drivers();
        Ok(Processes { supervisor, programs, kept, built_in })
    }

    /// The driver without cryptography, which comes with the program.
    #[must_use]
    pub fn null(&self) -> &Path {
        Path::new(crate::built_in::NULL_DRIVER)
    }

    /// Drivers of the libraries that this program has in it: they need no build.
    #[must_use]
    pub fn built_in(&self) -> &[Driver] {
        &self.built_in
    }

    fn instructions(
        &self,
        job: &Job,
        symbol: &str,
        limit: Duration,
    ) -> Result<callgrind::PerHandshake, HostFailure> {
        let Extent::Connections(more) = job.extent else {
            let what = "instructions are counted over a number of connections, not a time";
            return Err(HostFailure::Other(what.to_owned()));
        };
        let other = |error: &dyn std::fmt::Display| HostFailure::Other(error.to_string());
        let scratch = Scratch::new_in(&std::env::temp_dir(), SCRATCH);
        let scratch = scratch.map_err(|error| other(&format!("a temporary folder: {error}")))?;
        // Symbols are read of files with names.
        let named = |object: &Path| {
            crate::built_in::file_in(scratch.path(), object).map_err(|error| other(&error))
        };
        let job = Job { server: named(&job.server)?, client: named(&job.client)?, ..job.clone() };
        // What counts locks would be counted with them.
        let mut command = self.supervisor.command(Locks::Pthread);
        if job.locks == Locks::Light {
            let preloaded = locks::Object::Light.preload(scratch.path(), &mut command);
            preloaded.map_err(|error| other(&error))?;
        }
        let invocation = |connections: u64| -> Result<Invocation, HostFailure> {
            let job = Job { extent: Extent::Connections(connections), ..job.clone() };
            let input = crate::question(&job).map_err(|error| other(&error))?;
            let variables = command.get_envs();
            Ok(Invocation {
                program: command.get_program().into(),
                arguments: command.get_args().map(Into::into).collect(),
                environment: variables
                    .filter_map(|(name, value)| Some((name.into(), value?.into())))
                    .collect(),
                input,
                handshakes: connections,
            })
        };
        let options = Options { timeout: limit, ..Options::default() };
        callgrind::per_handshake(
            &invocation(FEW)?,
            &invocation(FEW + more)?,
            symbol,
            &options,
            |answer| accept(job.workload, answer),
        )
        .map_err(|error| match error {
            callgrind::Error::NoValgrind { .. } => HostFailure::Missing {
                what: format!("instructions are not counted: {error}"),
                remedy: "install valgrind",
            },
            other => HostFailure::Other(other.to_string()),
        })
    }
}

/// Whether a host under callgrind did what it was asked.
fn accept(workload: Workload, answer: &[u8]) -> Result<(), String> {
    match crate::reply(answer)? {
        Reply::Done(outcome) => as_asked(workload, &outcome),
        Reply::Unsupported(why) | Reply::Failed(why) => Err(why),
    }
}

/// Whether all connections ended well, and the wire shows those resumed that were to be: a full handshake
/// among them has a signature that a count per connection would hide.
fn as_asked(workload: Workload, outcome: &Outcome) -> Result<(), String> {
    let Outcome { done, failed, resumed, .. } = outcome;
    if *done == 0 || *failed > 0 {
        return Err(outcome.failure.clone().unwrap_or_else(|| "it failed".to_owned()));
    }
    let as_asked = match workload {
        Workload::Full => *resumed == 0,
        Workload::Resume => resumed >= done,
        Workload::Chain { .. } => outcome.full_legs == 0,
        Workload::Bulk { .. } | Workload::Footprint { .. } => true,
    };
    if as_asked { Ok(()) } else { Err(format!("the wire shows {resumed} of {done} resumed")) }
}

impl Hosts for Processes {
    fn identity(&self, key: Key) -> Result<Identity, String> {
        identity(key).map_err(|error| error.to_string())
    }

    fn run(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostFailure> {
        self.supervisor.run_until(job, limit, stop).map_err(failure)
    }

    fn run_slice(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostFailure> {
        let mut kept = self.kept.borrow_mut();
        let same = |other: &Job| *other == Job { extent: other.extent, ..job.clone() };
        kept.retain(|(_, host)| host.is_usable());
        let at = match kept.iter().position(|(other, _)| same(other)) {
            Some(at) => at,
            None => {
                kept.push((job.clone(), self.supervisor.keep(job).map_err(failure)?));
                kept.len() - 1
            }
        };
        let Some((_, host)) = kept.get_mut(at) else { return self.run(job, limit, stop) };
        host.run_until(job, limit, stop).map_err(failure)
    }

    fn end_kept(&self) {
        self.kept.borrow_mut().clear();
    }

    fn describe(&self, driver: &Path) -> Result<Described, HostFailure> {
        self.supervisor.describe(driver).map_err(failure)
    }

    fn run_program(&self, job: &ProgramJob) -> Result<Reply, HostFailure> {
        self.programs.run(job)
    }

    fn describe_program(&self, name: &str) -> Result<Described, HostFailure> {
        self.programs.describe(name)
    }

    fn count(&self, job: &Job, limit: Duration) -> Result<Counted, HostFailure> {
        let server = self.instructions(job, SERVER_TURNS, limit)?;
        let client = self.instructions(job, CLIENT_TURNS, limit)?;
        Ok(Counted {
            server_instructions: server.instructions,
            server_atomics: server.atomic_rmw,
            client_instructions: Some(client.instructions),
            client_atomics: client.atomic_rmw,
            server_graph: server.graph,
            client_graph: client.graph,
        })
    }

    fn contended(&self) -> Result<Contended, String> {
        let cost = |operation| {
            let cost = locks::cost::measure(operation);
            cost.map(|cost| cost.handed_over.value).map_err(|error| error.in_one_text())
        };
        Ok(Contended {
            read_ns: cost(Operation::Read)?,
            write_ns: cost(Operation::Write)?,
            mutex_ns: cost(Operation::Mutex)?,
            atomic_ns: cost(Operation::FetchAdd)?,
        })
    }

    fn stolen(&self) -> Option<Duration> {
        super::stolen::stolen()
    }

    fn joules(&self) -> Option<f64> {
        rapl(Path::new("/sys/class/powercap"))
    }
}

fn failure(error: HostError) -> HostFailure {
    match error {
        HostError::Crashed { how, last_words, .. } if last_words.is_empty() => {
            HostFailure::Crashed(how)
        }
        HostError::Crashed { how, last_words, .. } => {
            HostFailure::Crashed(format!("{how}; it last wrote: {last_words}"))
        }
        HostError::Hung { limit, .. } => HostFailure::Hung(limit),
        HostError::Rubbish { what, .. } => HostFailure::Rubbish(what),
        HostError::Stopped { .. } => HostFailure::Other("it was ended: you stopped".to_owned()),
        HostError::Failed { problem, .. } => HostFailure::Other(problem.to_string()),
        HostError::Start(error) => HostFailure::Other(format!("its host was not started: {error}")),
        other => HostFailure::Other(other.to_string()),
    }
}

/// Energy of all processor packages so far (the kernel's powercap interface); `None` where it
/// cannot be read.
fn rapl(folder: &Path) -> Option<f64> {
    let packages = std::fs::read_dir(folder).ok()?.flatten().filter(|entry| {
        // `intel-rapl:0` is a package, `intel-rapl:0:0` a part of it.
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("intel-rapl:") && name.matches(':').count() == 1
    });
    let energy = packages.map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("energy_uj")).ok()?;
        Some(text.trim().parse::<f64>().ok()? / 1e6)
    });
    let energies: Vec<f64> = energy.collect::<Option<_>>()?;
    (!energies.is_empty()).then(|| energies.iter().sum())
}

pub(super) fn identity(key: Key) -> Result<Identity, tls::Error> {
    const NAME: &str = "server.example";
    let made = tls::Identity::generate(key, 1, &[NAME])?;
    Ok(Identity {
        chain: made.chain_pem()?,
        key: made.private_key_pem()?,
        roots: made.root_pem()?,
        name: NAME.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Side;

    #[test]
    fn energy_is_the_sum_of_the_packages_or_not_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(rapl(folder.path()), None);
        assert_eq!(rapl(&folder.path().join("none")), None);
        for (name, energy) in [
            ("intel-rapl:0", "1500000\n"),
            ("intel-rapl:1", "500000\n"),
            ("intel-rapl:0:0", "7000000\n"),
        ] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("energy_uj"), energy).unwrap();
        }
        assert_eq!(rapl(folder.path()), Some(2.0));
        std::fs::write(folder.path().join("intel-rapl:0/energy_uj"), "?").unwrap();
        assert_eq!(rapl(folder.path()), None);
    }

    fn outcome(done: u64, resumed: u64, full_legs: u64) -> Outcome {
        let side = || Side {
            described: Described {
                library: "a".to_owned(),
                version: "1".to_owned(),
                build_flags: String::new(),
                cpu_features: String::new(),
                functions: 0,
            },
            cpu_ns: 1,
            locks: None,
            footprint: None,
        };
        Outcome {
            done,
            failed: 0,
            failure: None,
            wall_ns: 1,
            waited_ns: None,
            resumed,
            full_legs,
            misreported: 0,
            bytes: 0,
            server: side(),
            client: side(),
        }
    }

    #[test]
    fn instructions_of_connections_that_were_not_resumed_as_asked_are_refused() {
        let chain = Workload::Chain { proxies: 2 };
        for (workload, outcome) in [
            (Workload::Full, outcome(5, 0, 0)),
            (Workload::Resume, outcome(5, 5, 0)),
            (chain, outcome(5, 15, 0)),
            (Workload::Bulk { record: 16_384 }, outcome(5, 0, 0)),
        ] {
            assert_eq!(as_asked(workload, &outcome), Ok(()), "{workload}");
        }
        for (workload, outcome) in [
            (Workload::Full, outcome(5, 1, 0)),
            (Workload::Resume, outcome(5, 4, 0)),
            (chain, outcome(5, 14, 1)),
        ] {
            let why = as_asked(workload, &outcome).unwrap_err();
            let resumed = outcome.resumed;
            assert_eq!(why, format!("the wire shows {resumed} of 5 resumed"), "{workload}");
        }
    }

    #[test]
    fn instructions_of_connections_that_failed_are_refused_with_the_reason() {
        let why = Some("no certificate".to_owned());
        let failed = Outcome { failed: 1, failure: why.clone(), ..outcome(4, 4, 0) };
        assert_eq!(as_asked(Workload::Resume, &failed).err(), why);
        assert_eq!(as_asked(Workload::Full, &outcome(0, 0, 0)), Err("it failed".to_owned()));
        // No answer at all.
        assert!(accept(Workload::Full, b"").is_err());
    }

    #[test]
    fn every_key_has_an_identity() {
        for key in [Key::EcdsaP256, Key::Rsa2048] {
            let made = identity(key).unwrap();
            assert!(made.chain.contains("BEGIN CERTIFICATE") && made.key.contains("PRIVATE KEY"));
            assert!(made.roots.contains("BEGIN CERTIFICATE"));
        }
    }
}
