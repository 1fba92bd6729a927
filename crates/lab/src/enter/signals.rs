//! Signals taken from a descriptor instead of by handlers.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What the user may send to the program, and what is passed on to it.
const PASSED_ON: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// One signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// A child ended.
    Child,
    /// To be passed on to the program.
    PassOn(i32),
    /// The terminal sent it to the whole foreground group: the program has it already.
    FromTerminal,
}

/// Signals blocked from ordinary delivery and read here, until [`Signals::restore`].
#[derive(Debug)]
pub(crate) struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks SIGCHLD and what is to be passed on. A signal that the user has set to be ignored
    /// (`nohup`, a shell's background job) stays ignored, here and in the program.
    pub(crate) fn block() -> io::Result<Signals> {
        let mut set = empty_set();
        // An ignored SIGCHLD would have children vanish without a status.
        // SAFETY: plain calls on a valid set and constant signal numbers.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
        }
        for signal in PASSED_ON.into_iter().filter(|signal| !is_ignored(*signal)) {
            // SAFETY: the set is valid, the signal number a constant.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        let mut before = empty_set();
        // SAFETY: both sets are valid and live.
        if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a valid set; the result is checked before it is owned.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nothing else owns.
        Ok(Signals { fd: unsafe { OwnedFd::from_raw_fd(fd) }, before })
    }

    /// The mask as it was before.
    pub(crate) fn before(&self) -> libc::sigset_t {
        self.before
    }

    /// The mask as it was before, for the program that is about to be executed.
    pub(crate) fn restore(&self) {
        // SAFETY: the set was filled by `sigprocmask`.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }

    /// The next signal, if one has arrived.
    pub(super) fn next(&self) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is as long as stated; a short read is treated as none.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if read != size as isize {
            return None;
        }
        // SAFETY: the kernel filled all of it.
        let info = unsafe { info.assume_init() };
        Some(match info.ssi_signo as i32 {
            libc::SIGCHLD => Arrived::Child,
            _ if info.ssi_code == libc::SI_KERNEL => Arrived::FromTerminal,
            signal => Arrived::PassOn(signal),
        })
    }

    /// The next signal to be passed on, if one has arrived.
    pub(crate) fn next_to_pass_on(&self) -> Option<i32> {
        loop {
            match self.next()? {
                Arrived::PassOn(signal) => return Some(signal),
                Arrived::Child | Arrived::FromTerminal => {}
            }
        }
    }

    /// The descriptor that signals are read from.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Waits for a signal, or until the other end of `line` is closed; says whether it is.
    pub(super) fn wait(&self, line: Option<RawFd>) -> bool {
        let event = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative number is passed over.
        let mut polled = [event(self.descriptor()), event(line.unwrap_or(-1))];
        // An interrupted or failed wait is a wake-up without an event: the caller looks again.
        // SAFETY: the array is live and as long as stated.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        line.is_some() && polled[1].revents != 0
    }
}

/// The end of one child, if one has ended: its process number and raw wait status.
pub(super) fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: writes one int.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` fills the set it is given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the present action into a live value.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
