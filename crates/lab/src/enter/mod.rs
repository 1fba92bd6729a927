//! Entering the lab: the program runs itself again, in namespaces of its own.
//!
//! Three processes take part, each with one job:
//!
//! - **outer**, which the user started: it makes the namespaces, waits, passes signals on and ends
//!   as the inner program ended.
//! - **init**, process 1 of the new process namespace: it reaps orphans and passes signals on.
//!   When it ends, the kernel kills all that is left in the namespace, and with the last process
//!   go network namespaces and devices. It ends when the program ends and when the outer process
//!   is gone, `kill -9` included.
//! - the **program**, executed again with the same arguments. It is process 2, so that signals
//!   do by default what they do everywhere, which they do not for a process 1.

mod error;
mod init;
mod outer;
mod program;
mod signals;

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use error::{Denied, EnterError};
pub(crate) use init::{attend, loopback_up, mount, mount_proc, send};
pub(crate) use outer::{Report, makes_user_namespace, may_administer, token};
pub(crate) use signals::Signals;

/// The variable that marks the program run inside the lab.
const MARKER: &str = "WIRETAX_LAB_INNER";

/// How to enter the lab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnterOptions {
    /// Keep root's rights over the machine, for what the kernel grants in no user namespace: its own
    /// network, and its MACsec.
    pub keep_rights: bool,
}

impl EnterOptions {
    /// In a user namespace, in which root has rights over the lab alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether root keeps its rights over the machine. An ordinary user has none to keep.
    #[must_use]
    pub fn keep_rights(mut self, keep: bool) -> Self {
        self.keep_rights = keep;
        self
    }
}

/// The lab that this process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// In a user namespace of its own: it has no rights outside.
    pub user_namespace: bool,
    /// `/proc` shows the lab's processes. A container that masks parts of `/proc` forbids it, and
    /// the outer `/proc` stays: all works, but process numbers found there are the outer ones.
    pub own_proc: bool,
    /// The number of the process that the user started, as they see it.
    pub outer: u32,
}

static ENTERED: OnceLock<Entered> = OnceLock::new();
/// The network namespace that the program was started in, if it may go back to it.
static OUTER_NETWORK: OnceLock<OwnedFd> = OnceLock::new();

/// The network namespace that the program was started in, if it may go back to it.
pub(crate) fn outer_network() -> Option<&'static OwnedFd> {
    OUTER_NETWORK.get()
}

/// Whether this is the program that [`enter`] runs inside, known before it calls `enter`: what needs
/// the system's network is for the outer process to do.
#[must_use]
pub fn inside() -> bool {
    entered().is_some() || std::env::var_os(MARKER).is_some()
}

/// The lab that this process is in, if it is in one.
#[must_use]
pub fn entered() -> Option<Entered> {
    ENTERED.get().copied()
}

/// Enters the lab: to be called first thing in `main`, before any thread is started.
///
/// The process that calls it first does not return from it: it runs the program again inside,
/// waits, passes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 on, and ends with the inner
/// program's exit status or signal. In the program run inside, it returns.
///
/// # Errors
/// Threads are running; the system forbids namespaces (with the remedy); a step failed. Nothing
/// is left behind then.
pub fn enter(options: &EnterOptions) -> Result<Entered, EnterError> {
    if let Some(entered) = entered() {
        return Ok(entered);
    }
    match std::env::var_os(MARKER) {
        Some(marker) => {
            let (entered, network) = program::arrive(&marker)?;
            packet::realtime::keep();
            if let Some(network) = network {
                OUTER_NETWORK.get_or_init(|| network);
            }
            Ok(*ENTERED.get_or_init(|| entered))
        }
        None => {
            single_threaded()?;
            match outer::run(options)? {}
        }
    }
}

/// Takes this process to be in a lab already: it has a machine to itself, as in a guest of the crate `guest`.
/// Nothing is made but the loopback interface's being up, and what is left over is left to the machine's end.
///
/// # Errors
/// The interface cannot be set up.
pub fn alone() -> Result<Entered, EnterError> {
    if !loopback_up() {
        return Err(setup("bringing the loopback interface up"));
    }
    Ok(*ENTERED.get_or_init(|| Entered {
        user_namespace: false,
        own_proc: true,
        outer: std::process::id(),
    }))
}

/// How long a thread that has ended may stay in the kernel's list: it leaves that after who waited for it goes on.
const REAPED: Duration = Duration::from_secs(2);

fn single_threaded() -> Result<(), EnterError> {
    let deadline = Instant::now() + REAPED;
    loop {
        let tasks = std::fs::read_dir("/proc/self/task")
            .map_err(|source| EnterError::Setup { step: "reading /proc/self/task", source })?;
        match tasks.count() {
            1 => return Ok(()),
            threads if Instant::now() >= deadline => {
                return Err(EnterError::NotSingleThreaded { threads });
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// An error of the last system call, at this step.
fn setup(step: &'static str) -> EnterError {
    EnterError::Setup { step, source: std::io::Error::last_os_error() }
}
