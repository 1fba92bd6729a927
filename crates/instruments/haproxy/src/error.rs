//! What can go wrong, whose fault it is, and what to do.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use thiserror::Error;

/// Why HAProxy could not be built or run.
#[derive(Debug, Error)]
pub enum Error {
    /// The caller's fault: a name that stands for nothing here.
    #[error("there is no {what} `{given}`")]
    Unknown {
        /// What was to be named.
        what: &'static str,
        /// The name as the user gave it.
        given: String,
        /// All that there are.
        known: Vec<String>,
    },
    /// The caller's fault: a release without light locks is asked for them.
    #[error("HAProxy {haproxy} has no light locks")]
    NoLightLocks {
        /// Version of the release, as `2.6.12`.
        haproxy: String,
    },
    /// HAProxy cannot have its files in this folder.
    #[error("HAProxy cannot have its files in {}", .0.display())]
    Folder(PathBuf),
    /// HAProxy has no code for the library.
    #[error("HAProxy {haproxy} does not work with {library}: {reason}")]
    Unsupported {
        /// Version of the release, as `2.6.12`.
        haproxy: &'static str,
        /// The library's driver name, as `openssl-3.5.5`.
        library: String,
        /// Why HAProxy cannot use it.
        reason: &'static str,
    },
    /// The library was not built, or without its headers.
    #[error(
        "there are no headers (include/) and static libraries (lib/) of {library}{}",
        looked(.sdk)
    )]
    NoSdk {
        /// The library's driver name, as `openssl-3.5.5`.
        library: String,
        /// Where they were looked for; empty where its driver has none.
        sdk: PathBuf,
    },
    /// HAProxy's source is not to be had.
    #[error("{url} could not be fetched: {reason}")]
    Fetch {
        /// The URL that was fetched.
        url: String,
        /// What curl said.
        reason: String,
        /// Where the file belongs.
        file: PathBuf,
        /// What it must hash to.
        sha256: String,
    },
    /// What came is something else than was pinned.
    #[error("{url} gave a file whose SHA-256 is {found}, not {wanted}; it was removed")]
    WrongSum {
        /// The URL that was fetched.
        url: String,
        /// The file's sum.
        found: String,
        /// The pinned sum.
        wanted: String,
    },
    /// A program that a build needs is not there.
    #[error("the program `{program}` cannot be run: {reason}")]
    Missing {
        /// The program's name, looked up in PATH.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// A step of a build failed.
    #[error("{what} failed: {reason} ({})", .log.display())]
    Build {
        /// The step of the build, as it is said to the user.
        what: String,
        /// The log's last telling line.
        reason: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The program that was built is not what was asked for.
    #[error("the HAProxy built for {library} runs on `{runs_on}`")]
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
        /// The library's driver name, as `openssl-3.5.5`.
        library: String,
        /// What became of it.
        what: &'static str,
        /// Its last words.
        said: String,
    },
    /// What HAProxy answered is not what it documents.
    #[error("HAProxy's answer to `{command}` cannot be read: {reason}")]
    Answer {
        /// The command that the runtime socket was given.
        command: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] tls::Error),
    /// There is no room for a process's files.
    #[error("the temporary folder {} cannot be used: {source}", .path.display())]
    Temporary {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Unknown { .. } | Error::NoLightLocks { .. } | Error::Unsupported { .. } => {
                Fault::Caller
            }
            Error::Process { .. } | Error::Answer { .. } | Error::Certificate(_) => {
                Fault::Measurement
            }
            _ => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Error::Unknown { known, .. } => format!("choose from {}", known.join(", ")).into(),
            Error::NoLightLocks { .. } => "--locks pthread".into(),
            Error::Temporary { .. } => "set TMPDIR to a folder that you may write to".into(),
            Error::Folder(_) => "set TMPDIR to a short path without spaces".into(),
            Error::NoSdk { library, .. } => format!(
                "`wiretax drivers build {library}` makes them, --sdk {library}=DIR names a folder that \
                 has them"
            )
            .into(),
            Error::Fetch { file, sha256, .. } => format!(
                "without a network, put the file at {} (SHA-256 {sha256})",
                file.display()
            )
            .into(),
            Error::WrongSum { .. } => "look for a proxy or a mirror that changes files".into(),
            Error::Missing { program, .. } => install(program).into(),
            Error::Build { reason, .. } => {
                crate::command::hint(reason).unwrap_or("--retry builds again").into()
            }
            Error::OtherLibrary { sdk, .. } => {
                format!("remove {} and build again", sdk.display()).into()
            }
            _ => return None,
        })
    }
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
