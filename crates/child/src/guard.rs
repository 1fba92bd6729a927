//! The process group of a program, which ends with this process.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

/// A process group and the small process that leads it: when this process is gone, whatever ended it,
/// the leader kills the group. Dropping it ends the leader alone.
#[derive(Debug)]
pub(crate) struct Guard {
    leader: Pid,
    /// The leader waits for this pipe's end, which comes with ours.
    _life_line: OwnedFd,
}

impl Guard {
    pub(crate) fn start() -> io::Result<Guard> {
        let (watched, life_line) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the new process makes system calls only, and never returns.
        let leader = match unsafe { libc::fork() } {
            0 => watch(watched.as_raw_fd()),
            number => Pid::from_raw(number).filter(|_| number > 0),
        };
        let Some(leader) = leader else { return Err(io::Error::last_os_error()) };
        let guard = Guard { leader, _life_line: life_line };
        // The leader does the same: whoever is first, the group is there before a program joins it.
        rustix::process::setpgid(Some(leader), Some(leader))?;
        Ok(guard)
    }

    /// The number of the group: nobody else's as long as this lives.
    pub(crate) fn group(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Sends a signal to all of the group. The leader takes SIGKILL alone.
    pub(crate) fn signal(&self, signal: Signal) {
        // None left to take it is as good.
        let _ = kill_process_group(self.leader, signal);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = kill_process(self.leader, Signal::KILL);
        let _ = waitpid(Some(self.leader), WaitOptions::empty());
    }
}

/// The leader: waits for the end of the pipe, and kills its group with itself.
fn watch(pipe: RawFd) -> ! {
    // SAFETY: system calls on live values. What is closed is a copy that this process does not use.
    unsafe {
        if libc::setpgid(0, 0) != 0 {
            libc::_exit(1);
        }
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        close(0, pipe - 1);
        close(pipe + 1, RawFd::MAX);
        let mut byte = 0u8;
        loop {
            let read = libc::read(pipe, (&raw mut byte).cast(), 1);
            let interrupted = read < 0 && *libc::__errno_location() == libc::EINTR;
            if !interrupted {
                break;
            }
        }
        libc::kill(0, libc::SIGKILL);
        libc::_exit(0)
    }
}

/// Closes descriptors, in a process that has none of use among them.
fn close(first: RawFd, last: RawFd) {
    if last < first {
        return;
    }
    // SAFETY: nothing uses them any more.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
        // Before Linux 5.9: one by one, up to the usual limit.
        for descriptor in first..=last.min(first.saturating_add(4096)) {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}
