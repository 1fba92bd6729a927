//! What can go wrong, whose fault it is, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why HAProxy could not be built, run or measured.
#[derive(Debug, Error)]
pub enum Error {
    /// The caller's fault: a name that stands for nothing here.
    #[error("there is no {what} `{given}`; hint: choose from {}", .known.join(", "))]
    Unknown {
        /// What was to be named.
        what: &'static str,
        /// The name.
        given: String,
        /// All that there are.
        known: Vec<String>,
    },
    /// The caller's fault: a plan that cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// HAProxy has no code for the library.
    #[error("HAProxy {haproxy} does not work with {library}: {reason}")]
    Unsupported {
        /// HAProxy's version.
        haproxy: &'static str,
        /// The library.
        library: String,
        /// Why not.
        reason: &'static str,
    },
    /// The library was not built, or without its headers.
    #[error(
        "there are no headers (include/) and static libraries (lib/) of {library}{}; hint: `wiretax \
         drivers build {library}` makes them, --sdk {library}=DIR names a folder that has them",
        looked(.sdk)
    )]
    NoSdk {
        /// The library.
        library: String,
        /// Where they were looked for; empty where its driver has none.
        sdk: PathBuf,
    },
    /// HAProxy's source is not to be had.
    #[error(
        "{url} could not be fetched: {reason}; hint: without a network put the file at {}, its \
         SHA-256 is {sha256}", .file.display()
    )]
    Fetch {
        /// From where.
        url: String,
        /// What curl said.
        reason: String,
        /// Where the file belongs.
        file: PathBuf,
        /// What it must hash to.
        sha256: String,
    },
    /// What came is something else than was pinned.
    #[error(
        "{url} gave a file whose SHA-256 is {found}, not {wanted}; it was removed; hint: something \
         on the way changes files"
    )]
    WrongSum {
        /// From where.
        url: String,
        /// The file's sum.
        found: String,
        /// The pinned sum.
        wanted: String,
    },
    /// A program that a build needs is not there.
    #[error("the program `{program}` cannot be run: {reason}; hint: {}", install(.program))]
    Missing {
        /// Its name.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// A step of a build failed.
    #[error("{what} failed: {reason}; its log: {}", .log.display())]
    Build {
        /// The step.
        what: String,
        /// The log's last telling line, with a hint where one is known.
        reason: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The program that was built is not what was asked for.
    #[error("the HAProxy built for {library} runs on `{runs_on}`; hint: remove {} and build again", .sdk.display())]
    OtherLibrary {
        /// What it was built for.
        library: String,
        /// What `haproxy -vv` says.
        runs_on: String,
        /// What it was built against.
        sdk: PathBuf,
    },
    /// HAProxy ended, or does not answer.
    #[error("HAProxy with {library} {what}: {said}")]
    Process {
        /// The library.
        library: String,
        /// What happened.
        what: &'static str,
        /// Its last words.
        said: String,
    },
    /// What HAProxy answered is not what it documents.
    #[error("HAProxy's answer to `{command}` cannot be read: {reason}")]
    Answer {
        /// The command.
        command: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The load generator failed.
    #[error("the load generator: {0}")]
    Load(String),
    /// A certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] tls::Error),
    /// A sample could not be written.
    #[error(transparent)]
    Record(#[from] record::Error),
    /// The file system's fault.
    #[error("{}: {what}: {source}", .path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An error of the file system, for `map_err`.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }
}

fn looked(sdk: &Path) -> String {
    if sdk.as_os_str().is_empty() { String::new() } else { format!(" in {}", sdk.display()) }
}

/// How a program that a build needs is installed on Debian and its like.
fn install(program: &str) -> String {
    let package = match program {
        "cc" | "gcc" => "gcc",
        "xz" => "xz-utils",
        other => other,
    };
    format!("apt install {package}")
}
