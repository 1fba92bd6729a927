//! Who measures: host processes, and programs of runtimes, behind a trait, so that a test can play them.

mod processes;
mod programs;
mod stolen;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Described, Extent, Identity, Job, Key, Reply, Suite, Workload};

pub use callgrind::{Call, Frame, Function, Graph};
pub use processes::{CLIENT_TURNS, HOST, Processes, SERVER_TURNS};

/// The client beside a runtime's server that is this program's load generator: a driver knows only
/// servers that are in one process with it.
pub const LOAD_CLIENT: &str = "load";

/// What is done with a runtime's server.
#[derive(Debug, Clone)]
pub struct ProgramJob {
    /// The server: a runtime by its name.
    pub server: String,
    /// The client: a runtime by its name, or [`LOAD_CLIENT`].
    pub client: String,
    /// Full handshakes or resumed ones.
    pub workload: Workload,
    /// What is pinned.
    pub suite: Suite,
    /// Threads of either side: processors of Go's at once, threads of Java's with a connection each.
    pub threads: usize,
    /// Connections before the measured time.
    pub warm_up: u32,
    /// Whether a server that was warmed up for the last job serves this one too, where all but the extent
    /// is the same.
    pub keep: bool,
    /// How long, after that.
    pub extent: Extent,
    /// Who the server is.
    pub identity: Identity,
}

/// A host process that gave no answer, or none that can be believed. The library's fault, but for
/// [`HostFailure::Missing`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostFailure {
    /// The process died; how, and what it wrote last.
    #[error("crashed: {0}")]
    Crashed(String),
    /// It had not answered when its time was up.
    #[error("hung: no answer within {} s", .0.as_secs())]
    Hung(Duration),
    /// It answered what is no answer.
    #[error("gave an invalid answer: {0}")]
    Rubbish(String),
    /// Something else about it.
    #[error("{0}")]
    Other(String),
    /// This machine lacks what the measurement needs: the same for every library.
    #[error("{what}")]
    Missing {
        /// What it lacks.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl HostFailure {
    /// The failure in a word, for the sample.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            HostFailure::Crashed(_) => "crashed",
            HostFailure::Hung(_) => "hung",
            HostFailure::Rubbish(_) => "rubbish",
            HostFailure::Other(_) => "failed",
            HostFailure::Missing { .. } => "missing",
        }
    }
}

/// What callgrind counted, a handshake and side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counted {
    /// Instructions of the server's side.
    pub server_instructions: f64,
    /// Atomic read-modify-write instructions of the server's side.
    pub server_atomics: Option<f64>,
    /// Instructions of the client's side.
    pub client_instructions: Option<f64>,
    /// Atomic read-modify-write instructions of the client's side.
    pub client_atomics: Option<f64>,
    /// The server's functions, and who calls whom.
    pub server_graph: Graph,
    /// The client's functions, and who calls whom.
    pub client_graph: Graph,
}

/// Who runs jobs: host processes, or what stands in for them in tests.
pub trait Hosts {
    /// A server's identity with this key, made anew.
    ///
    /// # Errors
    /// Why none could be made.
    fn identity(&self, key: Key) -> Result<Identity, String>;

    /// Runs a job in a process of its own, which is ended after `limit`, or as soon as `stop` says so.
    ///
    /// # Errors
    /// [`HostFailure`]; a library that fails in order is a [`Reply`].
    fn run(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostFailure>;

    /// Runs a slice of a measurement: as [`Hosts::run`], in a process that stays for the next jobs that
    /// differ in their extent only, until [`Hosts::end_kept`].
    ///
    /// # Errors
    /// As [`Hosts::run`]. A process that failed so does not stay.
    fn run_slice(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostFailure> {
        self.run(job, limit, stop)
    }

    /// Ends the processes that stay.
    fn end_kept(&self) {}

    /// What a driver says of its library.
    ///
    /// # Errors
    /// [`HostFailure`].
    fn describe(&self, driver: &Path) -> Result<Described, HostFailure>;

    /// Runs a job with a runtime's server, in a process of its own. The server's CPU time is to be that
    /// of its whole process, as a share of the connections that the client counts.
    ///
    /// # Errors
    /// [`HostFailure`]; a runtime that fails in order is a [`Reply`].
    fn run_program(&self, job: &ProgramJob) -> Result<Reply, HostFailure> {
        Err(HostFailure::Other(format!("there is no program of {}", job.server)))
    }

    /// What a runtime says of its library.
    ///
    /// # Errors
    /// [`HostFailure`].
    fn describe_program(&self, name: &str) -> Result<Described, HostFailure> {
        Err(HostFailure::Other(format!("there is no program of {name}")))
    }

    /// Counts instructions of a job whose extent is a number of connections.
    ///
    /// # Errors
    /// [`HostFailure::Missing`] where there is no callgrind.
    fn count(&self, job: &Job, limit: Duration) -> Result<Counted, HostFailure>;

    /// What locks cost that two cores fight over.
    ///
    /// # Errors
    /// Why it could not be measured: a machine of one core, or a busy one.
    fn contended(&self) -> Result<Contended, String>;

    /// Time that the hypervisor has taken from this machine's processors so far, all together; `None`
    /// where the kernel does not say. It is counted in steps of 10 ms.
    fn stolen(&self) -> Option<Duration> {
        None
    }

    /// Energy that the processor has used so far, in joules, where it can be read.
    fn joules(&self) -> Option<f64> {
        None
    }
}

/// What an operation costs that two cores fight over, in nanoseconds each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Contended {
    /// A rwlock taken for reading: its word is written twice, though nobody waits.
    pub read_ns: f64,
    /// A rwlock taken for writing.
    pub write_ns: f64,
    /// A mutex taken and given back.
    pub mutex_ns: f64,
    /// One atomic addition to a shared word.
    pub atomic_ns: f64,
}
