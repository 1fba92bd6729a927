//! Host processes: started for one question, watched, and ended.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Question;
use crate::job::{Described, Job, Locks, Reply};

/// More than any answer has: a driver that prints without end is rubbish.
const MOST_OUTPUT: u64 = 8 << 20;
/// How much of a host's last words is kept.
const LAST_WORDS: usize = 500;

/// How hosts are started.
#[derive(Debug, Clone)]
pub struct SupervisorOptions {
    /// This program, or one that answers as it does (see [`crate::host::answer`]).
    pub program: PathBuf,
    /// What stands before that command's own arguments.
    pub arguments: Vec<String>,
    /// Where objects are that go under a library's locks; see [`Supervisor::new`].
    pub scratch: PathBuf,
}

/// Starts hosts.
#[derive(Debug, Clone)]
pub struct Supervisor {
    options: SupervisorOptions,
    light: PathBuf,
    count: PathBuf,
    stop: Stop,
}

/// Whether hosts are to be ended at once.
#[derive(Clone)]
struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stop")
    }
}

/// What a host did instead of answering. Each names the driver.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It died.
    #[error("{driver}: its host crashed ({how}){}", words(.last_words))]
    Crashed {
        /// Which driver or drivers.
        driver: String,
        /// By which signal, or with which status.
        how: String,
        /// The end of what it wrote on standard error.
        last_words: String,
    },
    /// It did not answer in time.
    #[error("{driver}: its host did not answer within {} s and was ended{}", .limit.as_secs(), words(.last_words))]
    Hung {
        /// Which driver or drivers.
        driver: String,
        /// How long it had.
        limit: Duration,
        /// The end of what it wrote on standard error.
        last_words: String,
    },
    /// It answered what cannot be read.
    #[error("{driver}: its host answered rubbish: {what}")]
    Rubbish {
        /// Which driver or drivers.
        driver: String,
        /// What is wrong with it.
        what: String,
    },
    /// It was ended before it had answered, since the caller wanted to stop.
    #[error("{driver}: its host was ended before it had answered")]
    Stopped {
        /// Which driver or drivers.
        driver: String,
    },
    /// The driver cannot be used.
    #[error("{driver}: {what}")]
    Unusable {
        /// Which driver.
        driver: String,
        /// Why.
        what: String,
    },
    /// This machine would not start it.
    #[error("starting a host process: {0}")]
    Start(std::io::Error),
}

fn words(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; it last wrote: {last}") }
}

impl Supervisor {
    /// Puts the objects for locks into `scratch`, which is to be there as long as hosts are started.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn new(options: SupervisorOptions) -> Result<Self, locks::ObjectError> {
        let light = locks::Object::Light.write_to(&options.scratch)?;
        let count = locks::Object::Count.write_to(&options.scratch)?;
        Ok(Self { options, light, count, stop: Stop(Arc::new(|| false)) })
    }

    /// Ends the host that is running as soon as `stop` says so. Hosts have a process group of their
    /// own, so that a terminal's Ctrl-C does not reach them.
    #[must_use]
    pub fn stopping_when(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Stop(Arc::new(stop));
        self
    }

    /// Asks a driver what it is.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn describe(&self, object: &Path) -> Result<Described, HostError> {
        let driver = name(object);
        let answer = self.ask(
            &driver,
            &Question::Describe(object.to_path_buf()),
            Locks::Pthread,
            Duration::from_secs(20),
        )?;
        let described: Result<Described, String> = parse(&driver, &answer)?;
        described.map_err(|what| HostError::Unusable { driver, what })
    }

    /// Has something measured.
    ///
    /// # Errors
    /// If the host does not answer: it crashed, hung, or said what cannot be read.
    pub fn run(&self, job: &Job, limit: Duration) -> Result<Reply, HostError> {
        let (server, client) = (name(&job.server), name(&job.client));
        let driver = if server == client { server } else { format!("{server} with {client}") };
        let answer =
            self.ask(&driver, &Question::Measure(Box::new(job.clone())), job.locks, limit)?;
        parse(&driver, &answer)
    }

    /// The command that a host is started by, for those who run it under another program.
    #[must_use]
    pub fn command(&self, locks: Locks) -> Command {
        let mut command = Command::new(&self.options.program);
        command.args(&self.options.arguments);
        // Variables steer libraries (OPENSSL_CONF, OPENSSL_ia32cap, SSL_CERT_FILE): none is passed on.
        command.env_clear();
        match locks {
            Locks::Pthread => {}
            Locks::Light => {
                command.env("LD_PRELOAD", &self.light);
            }
            Locks::Count => {
                command.env("LD_PRELOAD", &self.count);
            }
        }
        command
    }

    fn ask(
        &self,
        driver: &str,
        question: &Question,
        locks: Locks,
        limit: Duration,
    ) -> Result<Vec<u8>, HostError> {
        let mut command = self.command(locks);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What a driver starts, against the rules, is ended with it.
        command.process_group(0);
        // SAFETY: between fork and exec only prctl and setrlimit are called, which are safe there.
        unsafe {
            command.pre_exec(|| {
                // A host does not outlive us, and leaves no core file.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(HostError::Start)?;
        let line = serde_json::to_vec(question).map_err(|error| HostError::Start(error.into()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A host that is gone already is told by its status.
            let _ = stdin.write_all(&line).and_then(|()| stdin.write_all(b"\n"));
        }
        let ended = attend(&mut child, limit, &*self.stop.0).map_err(HostError::Start)?;
        let (driver, last_words) = (driver.to_owned(), tail(&ended.stderr));
        match ended.how {
            How::Late => Err(HostError::Hung { driver, limit, last_words }),
            How::Stopped => Err(HostError::Stopped { driver }),
            How::ByItself(status) if status.success() => Ok(ended.stdout),
            How::ByItself(status) => {
                Err(HostError::Crashed { driver, how: how(status), last_words })
            }
        }
    }
}

/// How a host ended.
enum How {
    ByItself(ExitStatus),
    Late,
    Stopped,
}

struct Ended {
    how: How,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// How long it takes at most until a wish to stop is noticed.
const STOP_CHECKED: Duration = Duration::from_millis(20);

/// Reads what a host writes until it ends, the time is up or the caller wants to stop; in the end
/// nothing of its process group is left.
fn attend(child: &mut Child, limit: Duration, stop: &dyn Fn() -> bool) -> std::io::Result<Ended> {
    let deadline = Instant::now() + limit;
    let (sender, closed) = channel();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let of_stdout = sender.clone();
    let out = thread::spawn(move || read_bounded(stdout, &of_stdout));
    let err = thread::spawn(move || read_bounded(stderr, &sender));
    let mut outcome = wait_for_output(child, &closed, deadline, stop);
    if outcome.is_none() {
        // Both ends closed: it ends at once, or never by itself.
        let grace = deadline.max(Instant::now() + Duration::from_secs(2));
        while !has_ended(child) {
            outcome = late_or_stopped(grace, stop);
            if outcome.is_some() {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    end_group(child);
    let status = child.wait()?;
    let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    Ok(Ended { how: outcome.unwrap_or(How::ByItself(status)), stdout, stderr })
}

/// Waits until both ends of the output are closed, or nobody is there any more to close them by
/// itself; gives why it was not waited for.
fn wait_for_output(
    child: &Child,
    closed: &Receiver<()>,
    deadline: Instant,
    stop: &dyn Fn() -> bool,
) -> Option<How> {
    let mut open = 2;
    while open > 0 && !has_ended(child) {
        match closed.recv_timeout(STOP_CHECKED) {
            Ok(()) => open -= 1,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                let outcome = late_or_stopped(deadline, stop);
                if outcome.is_some() {
                    return outcome;
                }
            }
        }
    }
    None
}

fn late_or_stopped(deadline: Instant, stop: &dyn Fn() -> bool) -> Option<How> {
    if stop() { Some(How::Stopped) } else { (Instant::now() >= deadline).then_some(How::Late) }
}

/// Whether it has ended; it stays a zombie, so that its number is nobody else's.
pub(crate) fn has_ended(child: &Child) -> bool {
    // SAFETY: a zeroed siginfo_t is a valid one, and the kernel writes one into it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: as above; `info` lives during the call.
    let done = unsafe { libc::waitid(libc::P_PID, child.id(), &raw mut info, flags) };
    // SAFETY: waitid sets the field, or leaves it zero.
    done != 0 || unsafe { info.si_pid() } != 0
}

/// Ends what is left of a child's process group. The child itself is not waited for yet, so that the
/// number cannot be another group's.
pub(crate) fn end_group(child: &Child) {
    let Ok(group) = libc::pid_t::try_from(child.id()) else { return };
    // SAFETY: a number and a signal.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// Reads to the end; what is beyond the bound is read and forgotten.
fn read_bounded(source: Option<impl Read>, closed: &Sender<()>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut source) = source {
        let _ = source.by_ref().take(MOST_OUTPUT).read_to_end(&mut kept);
        let _ = std::io::copy(&mut source, &mut std::io::sink());
    }
    let _ = closed.send(());
    kept
}

fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(LAST_WORDS);
    let text = String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned();
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => "for no known reason".to_owned(),
    }
}

fn parse<T: serde::de::DeserializeOwned>(driver: &str, answer: &[u8]) -> Result<T, HostError> {
    serde_json::from_slice(answer).map_err(|error| HostError::Rubbish {
        driver: driver.to_owned(),
        what: format!("{error}: {}", tail(answer)),
    })
}

/// What a driver is called in errors: the folder that it was built into, or its file.
fn name(object: &Path) -> String {
    let folder = object.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    match (object.file_name(), folder) {
        (Some(file), Some(folder)) if file == "driver.so" => {
            // Without the key.
            folder.rsplit_once('-').map_or_else(|| folder.to_string(), |(name, _)| name.to_owned())
        }
        (Some(file), _) => file.to_string_lossy().into_owned(),
        _ => object.display().to_string(),
    }
}
