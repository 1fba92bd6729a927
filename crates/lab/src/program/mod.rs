//! Programs that run inside a node.
//!
//! Four processes take part:
//!
//! - this one, whose thread reads what the program writes;
//! - a **guard**, its child, which passes signals on and ends when the next one has;
//! - **process 1** of a process namespace of the program's own: it reaps, and when it ends, the kernel
//!   kills all that the program has left behind, daemons in sessions of their own included. It ends
//!   with the program, and when this process closes a pipe or is gone;
//! - the **program**, in the node's network namespace and a mount namespace of its own, where `/run`
//!   is an empty tmpfs that this process can reach, too, and `/proc` and `/sys` are of its namespaces.

mod foreground;
mod launch;
mod ready;
mod running;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

pub use foreground::HeldSignals;
pub use ready::Ready;
pub(crate) use running::Shared;
pub use running::{Event, Running, Stream};

use crate::Error;
use crate::node::Node;

/// How long a program may take to be ready unless something else is said.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// What a program reads; it may be keys, and so is neither printed nor left behind.
#[derive(Clone)]
struct Input(Arc<Zeroizing<Vec<u8>>>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({} bytes)", self.0.len())
    }
}

/// A program to be run inside a node, by [`Node::launch`].
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    files: Vec<(String, Vec<u8>)>,
    input: Option<Input>,
    name_server: Option<IpAddr>,
    hosts: Option<String>,
    /// It has this process's standard streams, and its terminal.
    foreground: bool,
    /// It has no capabilities, and is not root where there is another user.
    unprivileged: bool,
    ready: Ready,
    limit: Duration,
}

impl Program {
    /// The program at a path, or of a name that `PATH` has. Its environment is empty but for `PATH`.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Program {
        Program {
            path: path.as_ref().to_path_buf(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
            files: Vec::new(),
            input: None,
            name_server: None,
            hosts: None,
            foreground: false,
            unprivileged: false,
            ready: Ready::Started,
            limit: READY_LIMIT,
        }
    }

    /// The same with these arguments, after those that it has.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Program {
        self.arguments.extend(arguments.into_iter().map(|a| a.as_ref().to_os_string()));
        self
    }

    /// The same with a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Program {
        self.environment.push((name.as_ref().to_os_string(), value.as_ref().to_os_string()));
        self
    }

    /// The same in this working directory; this process's own if not given.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Program {
        self.folder = Some(folder.as_ref().to_path_buf());
        self
    }

    /// The same with a file in its `/run`, which is there when it starts.
    #[must_use]
    pub fn run_file(mut self, name: &str, contents: impl Into<Vec<u8>>) -> Program {
        self.files.push((name.to_owned(), contents.into()));
        self
    }

    /// The same with this on its standard input, which is empty if not given. It goes by way of no file and no
    /// command line, so that keys can be among it.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Program {
        self.input = Some(Input(Arc::new(Zeroizing::new(bytes.into()))));
        self
    }

    /// The same with this name server alone, at DNS's port: it has an `/etc/resolv.conf` of its own.
    #[must_use]
    pub fn name_server(mut self, address: IpAddr) -> Program {
        self.name_server = Some(address);
        self
    }

    /// The same with an `/etc/hosts` of its own, of these lines (hosts(5)).
    #[must_use]
    pub fn hosts(mut self, lines: impl Into<String>) -> Program {
        self.hosts = Some(lines.into());
        self
    }

    /// The same with this process's environment, besides what is given.
    #[must_use]
    pub fn inherit_env(mut self) -> Program {
        drop(self.environment.splice(0..0, std::env::vars_os()));
        self
    }

    /// The same in the foreground: with this process's own standard streams and terminal, whose Ctrl-C
    /// reaches it directly. It has no lines to be read then, and [`HeldSignals`] are for it.
    #[must_use]
    pub fn in_foreground(mut self) -> Program {
        self.foreground = true;
        self
    }

    /// The same without rights: no capabilities, and as the user who called sudo or `nobody` where root
    /// started this process ([`packet::privileges`]). Its `/run` is that user's.
    #[must_use]
    pub fn unprivileged(mut self) -> Program {
        self.unprivileged = true;
        self
    }

    /// The same with what shows that it is ready, and how long that may take: 10 s if not given.
    #[must_use]
    pub fn ready_when(mut self, ready: Ready, limit: Duration) -> Program {
        (self.ready, self.limit) = (ready, limit);
        self
    }

    /// What it is called in errors.
    fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}

impl Node {
    /// Runs a program inside the node, and waits until it is ready. It dies when what this returns is
    /// dropped, when the lab ends and when this process does, whatever ends it; all that it has
    /// started dies with it.
    ///
    /// # Errors
    /// [`Error::Program`] if it cannot be started; [`Error::ProgramEnded`] if it ends before it is
    /// ready, [`Error::NotReady`] if it is not ready in time: with the last lines that it wrote.
    pub fn launch(&self, program: &Program) -> Result<Running, Error> {
        let running = launch::start(self, program)?;
        self.note_program(&running);
        ready::wait(self, program, &running)?;
        Ok(running)
    }
}
