//! A function of the test program in a process of its own.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::need::Skip;
use crate::{TestResult, until};

/// The argument that makes the test program run one function.
pub(crate) const FLAG: &str = "--scenario";

/// Exit status of a function that cannot run here; its reason is the last line of its output.
pub(crate) const SKIPPED: u8 = 77;

/// The longest that a scenario may take, on a busy machine too.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A process to be started that runs one of the test program's functions.
#[derive(Debug)]
pub struct Scenario {
    /// What is started: a test adds variables or rights to it.
    pub command: Command,
    limit: Duration,
}

/// A scenario that runs. Killed when dropped.
#[derive(Debug)]
pub struct Running {
    /// The process in which it runs.
    pub child: Child,
    output: File,
    limit: Duration,
}

/// How a scenario ended.
#[derive(Debug)]
pub struct Ended {
    /// Its process's status.
    pub status: ExitStatus,
    /// What it printed, on either stream.
    pub output: String,
}

impl Scenario {
    /// The function of this name in the running test program.
    #[must_use]
    pub fn new(name: &str) -> Scenario {
        Scenario::of(&std::env::current_exe().expect("the test program's path"), name)
    }

    /// The function of this name in a copy of the test program.
    #[must_use]
    pub fn of(program: &Path, name: &str) -> Scenario {
        let mut command = Command::new(program);
        command.args([FLAG, name]).stdin(Stdio::null());
        // A shell's background jobs ignore SIGINT, and so would what they start.
        child::with_default_signals(&mut command);
        Scenario { command, limit: LIMIT }
    }

    /// The same with another time limit than two minutes.
    #[must_use]
    pub fn within(self, limit: Duration) -> Scenario {
        Scenario { limit, ..self }
    }

    /// Starts it.
    ///
    /// # Errors
    /// There is no room for its output, or no process to be had.
    pub fn start(mut self) -> TestResult<Running> {
        let output = tempfile::tempfile()?;
        self.command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        Ok(Running { child: self.command.spawn()?, output, limit: self.limit })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// As for [`Scenario::start`]; or it took too long, with its output.
    pub fn run(self) -> TestResult<Ended> {
        self.start()?.wait()
    }
}

impl Running {
    /// What it printed so far.
    pub fn output(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.output.rewind().and_then(|()| self.output.read_to_end(&mut bytes));
        read.expect("a temporary file can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It took too long, with its output.
    pub fn wait(mut self) -> TestResult<Ended> {
        match until("the scenario's end", self.limit, || Ok(self.child.try_wait()?)) {
            Ok(status) => Ok(Ended { status, output: self.output() }),
            Err(error) => Err(format!("{error}; its output:\n{}", self.output()).into()),
        }
    }

    /// Waits for a line that begins with `start`; what follows it.
    ///
    /// # Errors
    /// It ended without one, or printed none in time.
    pub fn wait_for(&mut self, start: &str) -> TestResult<String> {
        until(start, self.limit, || {
            let output = self.output();
            let found = output.lines().find_map(|line| line.strip_prefix(start).map(str::to_owned));
            // Only whole lines: the next one must have begun, or the text end in a newline.
            if found.is_some() && output.ends_with('\n') {
                return Ok(found);
            }
            match self.child.try_wait()? {
                Some(status) => Err(format!("{status} before `{start}`:\n{output}").into()),
                None => Ok(None),
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scenario's end as that of a test.
///
/// # Errors
/// It was skipped or failed.
pub fn judge(ended: Ended) -> TestResult {
    match ended.status.code() {
        Some(0) => Ok(()),
        Some(code) if code == i32::from(SKIPPED) => {
            let reason = ended.output.lines().last().unwrap_or("no reason given");
            Err(Box::new(Skip(reason.to_owned())))
        }
        _ => Err(format!("{}\n{}", ended.status, ended.output).into()),
    }
}
