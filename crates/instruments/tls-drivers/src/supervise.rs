//! Host processes that measure with drivers.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ::host::{Host, HostError, KeptHost, Launch, Place};
use child::MemoryFile;

use crate::catalog::name_of;
use crate::ech::{Ech, EchJob, EchReply};
use crate::host::{Describe, Measure};
use crate::job::{Described, Job, Locks, Reply};

/// How long a driver may take to say what it is.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(20);

/// How long a pair of libraries may take for its handshakes with ECH, which are some twenty.
const ECH_LIMIT: Duration = Duration::from_secs(60);

/// How hosts are started.
#[derive(Debug, Clone)]
pub struct SupervisorOptions {
    /// This program, or one that answers as it does (see [`crate::host::workers`]).
    pub program: PathBuf,
    /// What stands before that command's own arguments.
    pub arguments: Vec<String>,
}

/// Starts hosts, with what a job has under its locks.
#[derive(Clone)]
pub struct Supervisor {
    options: SupervisorOptions,
    light: Arc<MemoryFile>,
    count: Arc<MemoryFile>,
    stop: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Starts nothing yet; makes ready the objects that go under a library's locks.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn new(options: SupervisorOptions) -> Result<Self, locks::ObjectError> {
        let light = Arc::new(locks::Object::Light.in_memory()?);
        let count = Arc::new(locks::Object::Count.in_memory()?);
        Ok(Self { options, light, count, stop: Arc::new(|| false) })
    }

    /// Ends the host that is running as soon as `stop` says so. Hosts have a process group of their
    /// own, so that a terminal's Ctrl-C does not reach them.
    #[must_use]
    pub fn stopping_when(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Arc::new(stop);
        self
    }

    /// Asks a driver what it is.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn describe(&self, object: &Path) -> Result<Described, HostError> {
        let host = self.host(Locks::Pthread);
        host.run::<Describe>(&name_of(object), &object.to_path_buf(), DESCRIBE_LIMIT, drop)
    }

    /// Has a pair of libraries make handshakes with ECH.
    ///
    /// # Errors
    /// If the host does not answer, or a library cannot be used for it.
    pub fn ech(&self, job: &EchJob) -> Result<EchReply, HostError> {
        let built_in = "a built-in library".to_owned();
        let called = |object: Option<&Path>| object.map_or_else(|| built_in.clone(), name_of);
        let (server, client) = crate::ech::objects(job);
        let who = pair(called(server), called(client));
        self.host(Locks::Pthread).run::<Ech>(&who, job, ECH_LIMIT, drop)
    }

    /// Has something measured.
    ///
    /// # Errors
    /// If the host does not answer: it crashed, hung, or said what cannot be read.
    pub fn run(&self, job: &Job, limit: Duration) -> Result<Reply, HostError> {
        self.run_until(job, limit, &*self.stop)
    }

    /// The same, ended as soon as `stop` says so, in place of what [`Supervisor::stopping_when`] was
    /// given.
    ///
    /// # Errors
    /// As [`Supervisor::run`], and [`HostError::Stopped`].
    pub fn run_until(
        &self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostError> {
        let who = who(job);
        let host = Host::new(Place::Process(self.launch(job.locks)));
        host.run_until::<Measure>(&who, job, limit, stop, drop)
    }

    /// Starts a host that stays for jobs which differ from this one in their extent only: libraries,
    /// contexts and certificates are ready for the next.
    ///
    /// # Errors
    /// [`HostError::Start`].
    pub fn keep(&self, job: &Job) -> Result<KeptDrivers, HostError> {
        Ok(KeptDrivers { host: KeptHost::start(&self.launch(job.locks))?, who: who(job) })
    }

    /// The command that a host is started by, for those who run it under another program.
    #[must_use]
    pub fn command(&self, locks: Locks) -> Command {
        self.launch(locks).command()
    }

    fn host(&self, locks: Locks) -> Host {
        let stop = Arc::clone(&self.stop);
        Host::new(Place::Process(self.launch(locks))).stopping_when(move || stop())
    }

    fn launch(&self, locks: Locks) -> Launch {
        let preload = match locks {
            Locks::Pthread => None,
            Locks::Light => Some(&self.light),
            Locks::Count => Some(&self.count),
        };
        Launch {
            program: self.options.program.clone(),
            arguments: self.options.arguments.iter().map(OsString::from).collect(),
            environment: preload
                .map(|object| ("LD_PRELOAD".into(), object.path().into()))
                .into_iter()
                .collect(),
        }
    }
}

/// A host that stays; see [`Supervisor::keep`]. Dropping it ends it.
#[derive(Debug)]
pub struct KeptDrivers {
    host: KeptHost,
    who: String,
}

impl KeptDrivers {
    /// Whether it can be asked again.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.host.is_usable()
    }

    /// Has something measured, as [`Supervisor::run_until`] does.
    ///
    /// # Errors
    /// As there.
    pub fn run_until(
        &mut self,
        job: &Job,
        limit: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Reply, HostError> {
        self.host.run_until::<Measure>(&self.who, job, limit, stop, drop)
    }
}

/// Whose host it is, for errors.
fn who(job: &Job) -> String {
    pair(name_of(&job.server), name_of(&job.client))
}

fn pair(server: String, client: String) -> String {
    if server == client { server } else { format!("{server} with {client}") }
}

/// What a host is to read on its standard input for this job, for those who start it themselves.
///
/// # Errors
/// If the job is longer than a host takes.
pub fn question(job: &Job) -> io::Result<Vec<u8>> {
    ::host::question::<Measure>(job)
}

/// The reply in what such a host wrote to its standard output.
///
/// # Errors
/// Why there is none.
pub fn reply(output: &[u8]) -> Result<Reply, String> {
    ::host::answer_in::<Measure>(output)
}
