//! Programs that are run: bounded in time and in what they say, and gone when they should be.
//!
//! A [`Child`] is killed with what it has started: when it is dropped, and when this process ends,
//! whatever ends it. [`run`] runs a program to its end and keeps a part of what it says; [`Talk`] speaks
//! with one in lines. [`stop_when`] ends every wait early, for bytes of an [`Input`] too.

mod guard;
mod input;
mod memory;
mod output;
mod signals;
mod talk;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use guard::Guard;
pub use input::{Input, Stopped, is_cut_short};
pub use memory::MemoryFile;
pub use output::{Kept, Output, keep_aside, last_words, run};
pub use signals::{is_ignored, stop_when, stopping, with_default_signals};
pub use talk::{Silence, Talk};

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    /// Its process group; `None` once it was waited for.
    group: Option<Guard>,
    /// Once it was waited for: its number may be another's from then on.
    status: Option<ExitStatus>,
}

/// How waiting for a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It runs on after its time.
    Late,
    /// It runs on, and the caller wants to stop.
    Stopped,
}

impl Child {
    /// Starts a program in a process group of its own: what it starts ends with it, all of them end with
    /// this process, and a terminal's Ctrl-C does not reach them.
    ///
    /// # Errors
    /// As [`Command::spawn`].
    pub fn spawn(command: &mut Command) -> io::Result<Child> {
        let group = Guard::start()?;
        let inner = command.process_group(group.group()).spawn()?;
        Ok(Child { inner, group: Some(group), status: None })
    }

    /// Its process number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Its standard input, once, if it was piped.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Its standard output, once, if it was piped.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Its standard error, once, if it was piped.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.inner.stderr.take()
    }

    /// Feeds its standard input from a thread, and closes it. One that ends without reading all of it
    /// is judged by its status.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn feed(&mut self, input: Vec<u8>) -> io::Result<()> {
        if let Some(mut stdin) = self.stdin() {
            beside(move || drop(io::Write::write_all(&mut stdin, &input)))?;
        }
        Ok(())
    }

    /// Whether it has ended. It stays a zombie until it is waited for, so that its number is nobody
    /// else's.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some(pid) = self.pid().filter(|_| self.status.is_none()) else { return true };
        !matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    }

    /// Waits until it has ended, its time is up, or `stop` or the wish of [`stop_when`] says so; both are
    /// asked every 10 ms. One that runs on is not ended by this. After its end, what is left of its
    /// process group is killed.
    ///
    /// # Errors
    /// As `waitpid`.
    pub fn wait(
        &mut self,
        patience: Option<Duration>,
        stop: &mut dyn FnMut() -> bool,
    ) -> io::Result<End> {
        self.wait_unless(patience, &mut || stop() || stopping())
    }

    fn wait_unless(
        &mut self,
        patience: Option<Duration>,
        stop: &mut dyn FnMut() -> bool,
    ) -> io::Result<End> {
        // A time beyond all clocks is none.
        let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
        while !self.has_ended() {
            if stop() {
                return Ok(End::Stopped);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(End::Late);
            }
            thread::sleep(LOOK);
        }
        self.finish().map(End::Exited)
    }

    /// Asks it to end, so that it can remove what it has half written, and kills what is left of it
    /// after `grace`.
    pub fn end(mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let _ = self.wait_unless(Some(grace), &mut || false);
    }

    /// Kills it and what it has started, and waits for its end.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            let _ = self.finish();
        }
    }

    /// Kills what is left of its group, and waits for it.
    fn finish(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.inner.wait();
        self.group = None;
        self.status = status.as_ref().ok().copied();
        status
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = &self.group {
            group.signal(signal);
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.id()).ok()?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Does work on a thread of its own, which nobody waits for.
///
/// # Errors
/// The thread cannot be started.
pub fn beside(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    /// Whether a process runs; a zombie does not.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(" Z ") && !stat.contains(" X "))
    }

    fn written(path: &Path) -> String {
        loop {
            match std::fs::read_to_string(path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => thread::sleep(LOOK),
            }
        }
    }

    #[test]
    fn a_child_ends_late_or_is_stopped() {
        let never = &mut || false;
        let mut child = Child::spawn(&mut shell("exit 3")).unwrap();
        let End::Exited(status) = child.wait(None, never).unwrap() else { panic!("it runs on") };
        assert_eq!(status.code(), Some(3));
        let mut child = Child::spawn(&mut shell("sleep 1000")).unwrap();
        assert_eq!(child.wait(Some(Duration::ZERO), never).unwrap(), End::Late);
        assert_eq!(child.wait(None, &mut || true).unwrap(), End::Stopped);
        let id = child.id().to_string();
        assert!(runs(&id));
        child.end(Duration::from_secs(60));
        assert!(!runs(&id));
    }

    #[test]
    fn what_a_child_has_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        for script in ["sleep 1000 & echo $! > pid; wait", "sleep 1000 & echo $! > pid"] {
            let mut child = Child::spawn(shell(script).current_dir(&folder)).unwrap();
            let pid = written(&folder.path().join("pid"));
            if !script.ends_with("wait") {
                child.wait(None, &mut || false).unwrap();
            }
            drop(child);
            // The signal is sent; the kernel delivers it in its own time.
            while runs(&pid) {
                thread::sleep(LOOK);
            }
            std::fs::remove_file(folder.path().join("pid")).unwrap();
        }
    }

    /// The test program again, which starts a program with a child and is killed.
    #[test]
    fn a_child_and_what_it_has_started_end_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "tests::starts_a_child_and_waits", "--ignored"]);
        let mut us = again.current_dir(&folder).stdout(Stdio::null()).spawn().unwrap();
        let pids = written(&folder.path().join("pids"));
        let pids: Vec<&str> = pids.split_whitespace().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)));
        us.kill().unwrap();
        us.wait().unwrap();
        while pids.iter().any(|pid| runs(pid)) {
            thread::sleep(LOOK);
        }
    }

    #[test]
    #[ignore = "run by a_child_and_what_it_has_started_end_with_us"]
    fn starts_a_child_and_waits() {
        // The second ignores what asks it to end.
        let script = "trap '' TERM; sleep 1000 & echo $$ $! > new; mv new pids; wait";
        let mut child = Child::spawn(&mut shell(script)).unwrap();
        child.wait(None, &mut || false).unwrap();
    }
}
