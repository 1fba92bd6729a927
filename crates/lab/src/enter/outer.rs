//! The process that the user started.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use packet::realtime;

use super::signals::{Arrived, Signals, reap};
use super::{Denied, EnterError, EnterOptions, MARKER, init, setup};

/// How init ends when the set-up failed before the program ran; the reason is in the pipe.
const SETUP_FAILED: u8 = 125;

/// What init needs; made before it is cloned, so that nothing can fail for lack of it later.
pub(super) struct Plan {
    /// The arguments that the program was started with.
    pub(super) arguments: Vec<CString>,
    /// Its environment without the marker.
    pub(super) environment: Vec<CString>,
    /// Whether a user namespace was made.
    pub(super) user_namespace: bool,
    /// The number of this process.
    pub(super) outer: u32,
    /// The network namespace that the user works in; `None` where the program will have no rights to
    /// it.
    pub(super) network: Option<OwnedFd>,
    /// Signals as they are to be in the program.
    pub(super) signals: Signals,
    /// Closed when the outer process is gone.
    pub(super) life_line: OwnedFd,
    /// One byte arrives when the user namespace's maps are written.
    pub(super) go: OwnedFd,
    /// Takes [`Report`]s to the outer process.
    pub(super) report: OwnedFd,
}

/// What init tells the outer process: how the program ended, or what failed before it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The raw wait status.
    Ended(i32),
    /// A step of init and the error number.
    Failed(u8, i32),
}

impl Report {
    pub(crate) const LENGTH: usize = 6;

    pub(crate) fn to_bytes(self) -> [u8; Self::LENGTH] {
        let (kind, step, number) = match self {
            Report::Ended(status) => (0, 0, status),
            Report::Failed(step, errno) => (1, step, errno),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, step, a, b, c, d]
    }

    pub(crate) fn from_bytes([kind, step, a, b, c, d]: [u8; Self::LENGTH]) -> Report {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            0 => Report::Ended(number),
            _ => Report::Failed(step, number),
        }
    }
}

/// Runs the program inside and ends as it ends. Returns only with an error.
pub(super) fn run(options: &EnterOptions) -> Result<Infallible, EnterError> {
    let may_do_without = may_administer();
    let mut user_namespace = makes_user_namespace(options);
    let pipe = |step| {
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|e| EnterError::Setup { step, source: e.into() })
    };
    let terminal = Terminal::of_foreground();
    let (life_line, _held_by_outer) = pipe("making the life line")?;
    let (go, go_sender) = pipe("making a pipe")?;
    let (report_reader, report) = pipe("making a pipe")?;
    let arguments = std::env::args_os().filter_map(|a| CString::new(a.into_vec()).ok()).collect();
    let environment = std::env::vars_os()
        .filter(|(name, _)| name != MARKER)
        .filter_map(|(name, value)| entry(name, value))
        .collect();
    let signals = Signals::block()
        .map_err(|source| EnterError::Setup { step: "blocking signals", source })?;
    // Without it all works, but for the adoption of devices.
    let network = fs::File::open("/proc/self/ns/net").ok().filter(|_| options.keep_rights);
    let network = network.map(OwnedFd::from).filter(|_| !user_namespace);
    let outer = std::process::id();
    let mut plan = Plan {
        arguments,
        environment,
        user_namespace,
        outer,
        network,
        signals,
        life_line,
        go,
        report,
    };
    // Init and the program inherit it. Without the namespace, root's rights grant it as well.
    let is_realtime = user_namespace && realtime::begin();
    let mut cloned = clone_into_namespaces(user_namespace);
    if user_namespace && may_do_without && matches!(cloned, Err(EnterError::UserNamespaces(_))) {
        // A system without user namespaces still lets root make the others.
        tracing::debug!("no user namespace is to be had: the lab keeps root's rights");
        (user_namespace, plan.user_namespace) = (false, false);
        cloned = clone_into_namespaces(false);
    }
    if is_realtime && !matches!(cloned, Ok(0)) {
        realtime::leave();
    }
    let child = match cloned {
        Ok(0) => {
            // The child. What only the outer process may hold is closed here.
            drop((_held_by_outer, go_sender, report_reader));
            init::run(plan);
        }
        Ok(child) => child,
        Err(error) => {
            plan.signals.restore();
            return Err(error);
        }
    };
    let Plan { signals, life_line, go, report, .. } = plan;
    // Init's ends: held here too, the pipes would never end.
    drop((life_line, go, report));
    if user_namespace && let Err(error) = write_maps(child) {
        // Init waits for the byte that now never comes, sees the end of the pipe and ends.
        drop(go_sender);
        wait_for_end(child, &signals);
        signals.restore();
        return Err(error);
    }
    let go_written = rustix::io::write(&go_sender, &[1]);
    drop(go_sender);
    if let Err(error) = go_written {
        tracing::debug!(%error, "init ended before it began");
    }
    let status = wait_for_end(child, &signals);
    if let Some(terminal) = terminal {
        terminal.take_back();
    }
    let report = read_report(&report_reader);
    signals.restore();
    match report {
        Some(Report::Ended(status)) => end_as(status),
        Some(Report::Failed(step, errno)) => Err(init::failure(step, errno, user_namespace)),
        // Killed before it could tell: end in the same way.
        None => end_as(status),
    }
}

/// The terminal at standard input, where this process's group is its foreground. A shell inside gives it to
/// groups of its own; the process group out here is none that it could give it back to.
struct Terminal(libc::pid_t);

impl Terminal {
    fn of_foreground() -> Option<Terminal> {
        // SAFETY: plain calls.
        let (group, foreground) = unsafe { (libc::getpgrp(), libc::tcgetpgrp(0)) };
        (group == foreground).then_some(Terminal(group))
    }

    fn take_back(&self) {
        // SAFETY: plain calls. A group in the background that does this is stopped otherwise.
        unsafe {
            let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
            libc::tcsetpgrp(0, self.0);
            libc::signal(libc::SIGTTOU, before);
        }
    }
}

/// Whether the lab gets a user namespace: always for an ordinary user; for root unless it is to keep its
/// rights. In a container that mounts `/proc/sys` read-only, only root's rights reach the settings of a
/// network namespace.
pub(crate) fn makes_user_namespace(options: &EnterOptions) -> bool {
    !may_administer() || !(options.keep_rights || settings_are_read_only())
}

fn settings_are_read_only() -> bool {
    let flags = rustix::fs::statvfs("/proc/sys/net").map(|found| found.f_flag);
    flags.is_ok_and(|flags| flags.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Whether this process may make namespaces without a user namespace.
pub(crate) fn may_administer() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    const CAP_NET_ADMIN: u32 = 12;
    const CAP_NET_RAW: u32 = 13;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    [CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW].iter().all(|cap| effective & (1 << cap) != 0)
}

fn entry(name: OsString, value: OsString) -> Option<CString> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    CString::new(bytes).ok()
}

/// Like `fork`, with the child in new namespaces: 0 in the child.
fn clone_into_namespaces(user: bool) -> Result<i32, EnterError> {
    let mut flags = libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::SIGCHLD;
    if user {
        flags |= libc::CLONE_NEWUSER;
    }
    // `clone` and not `clone3`, which the seccomp filters of containers refuse altogether.
    // SAFETY: without a new stack this is `fork`; the process has one thread (checked by `enter`),
    // so that no lock can be held by another. Four zeros stand for "no stack, no thread fields"
    // whatever their order on this architecture is.
    let child = unsafe { libc::syscall(libc::SYS_clone, i64::from(flags), 0, 0, 0, 0) };
    if child >= 0 {
        return Ok(child as i32);
    }
    let error = io::Error::last_os_error();
    let errno = error.raw_os_error().unwrap_or(0);
    Err(if user {
        EnterError::UserNamespaces(Denied::diagnose(errno))
    } else {
        EnterError::Namespaces(error)
    })
}

/// Makes root's user namespace one with all users by their own numbers, so that its files stay within reach
/// and programs can run as another user. Anyone else is root in theirs, and nobody else known there.
fn write_maps(child: i32) -> Result<(), EnterError> {
    // SAFETY: these calls cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    if uid == 0 && write_own_numbers(child).is_ok() {
        return Ok(());
    }
    // user_namespaces(7): without CAP_SETGID outside, setgroups must be denied before gid_map is
    // written.
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/{child}/{file}"), text).map_err(|source| {
            match source.raw_os_error() {
                Some(errno @ (libc::EPERM | libc::EACCES)) => {
                    EnterError::UserNamespaces(Denied::diagnose(errno))
                }
                _ => EnterError::Setup { step: "writing the user namespace's maps", source },
            }
        })
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

/// Maps every number that this process's user namespace has to itself.
fn write_own_numbers(child: i32) -> io::Result<()> {
    ["gid_map", "uid_map"].into_iter().try_for_each(|file| {
        let ours = fs::read_to_string(format!("/proc/self/{file}"))?;
        fs::write(format!("/proc/{child}/{file}"), own_numbers(&ours))
    })
}

/// A map (user_namespaces(7)) of the numbers on the left side of another, each to itself.
fn own_numbers(map: &str) -> String {
    let lines = map.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (first, length) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {length}\n"))
    });
    lines.collect()
}

/// Passes signals on until init has ended; its raw wait status.
fn wait_for_end(child: i32, signals: &Signals) -> i32 {
    loop {
        while let Some(arrived) = signals.next() {
            if let Arrived::PassOn(signal) = arrived {
                // SAFETY: plain call; the child is not reaped yet, so that the number is its own.
                unsafe { libc::kill(child, signal) };
            }
        }
        while let Some((pid, status)) = reap() {
            if pid == child {
                return status;
            }
        }
        signals.wait(None);
    }
}

fn read_report(pipe: &OwnedFd) -> Option<Report> {
    let mut bytes = [0; Report::LENGTH];
    // Six bytes are written at once, and the writer is gone: one read gets all or nothing.
    // SAFETY: the buffer is as long as stated.
    let read = unsafe { libc::read(pipe.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    (read == bytes.len() as isize).then(|| Report::from_bytes(bytes))
}

/// Ends this process as the program ended.
fn end_as(status: i32) -> ! {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // A shell sees the signal itself. The program has dumped its core, if any: not twice.
        // SAFETY: plain calls; the process ends either way.
        unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::signal(signal, libc::SIG_DFL);
            let mut only = std::mem::zeroed();
            libc::sigemptyset(&raw mut only);
            libc::sigaddset(&raw mut only, signal);
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
            libc::raise(signal);
        }
        // Only if the signal does not kill.
        std::process::exit(128 + signal);
    }
    std::process::exit(libc::WEXITSTATUS(status))
}

/// Ends init after a failure.
pub(super) fn end_init() -> ! {
    // Not `exit`: what the outer process had buffered is not ours to flush.
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(i32::from(SETUP_FAILED)) }
}

/// The random token that only a program started by init can know.
pub(crate) fn token() -> Result<[u8; 16], EnterError> {
    let mut token = [0; 16];
    // SAFETY: fills a buffer of the stated length; 16 bytes come at once or not at all.
    let got = unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
    if got == token.len() as isize { Ok(token) } else { Err(setup("drawing a token")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_of_own_numbers_has_the_ranges_that_the_process_has() {
        let all = "         0          0 4294967295\n";
        assert_eq!(own_numbers(all), "0 0 4294967295\n");
        let container = "0 100000 65536\n70000 1000 1\n";
        assert_eq!(own_numbers(container), "0 0 65536\n70000 70000 1\n");
        assert_eq!(own_numbers("nonsense"), "");
    }

    #[test]
    fn reports_survive_the_pipe() {
        for report in [Report::Ended(0), Report::Ended(0x7f00), Report::Failed(3, libc::EPERM)] {
            assert_eq!(Report::from_bytes(report.to_bytes()), report);
        }
    }
}
