//! Why there is no guest, and what to do about it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use thiserror::Error;

use crate::Part;

/// Why a guest cannot be fetched, made or started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The user has no folder for what is fetched.
    #[error("neither HOME nor XDG_CACHE_HOME is set to a folder for what is fetched")]
    NoCache,
    /// A part was not fetched yet.
    #[error("the guest's part `{0}` is not fetched")]
    NotFetched(Part),
    /// A part is there, and something is not in it that must be.
    #[error("the guest's part `{part}` has no {what}")]
    Incomplete {
        /// The part that is not whole: fetch it again.
        part: Part,
        /// What is missing.
        what: String,
    },
    /// A program of this machine that fetching takes is missing.
    #[error("there is no program `{0}` here, with which packages are fetched")]
    NoProgram(&'static str),
    /// A program failed.
    #[error("{doing}: `{program}` failed{}", said(.last_words))]
    Command {
        /// What was being done.
        doing: String,
        /// The program's name, without folder.
        program: &'static str,
        /// The end of what it said.
        last_words: String,
    },
    /// What a program said cannot be understood.
    #[error("{doing}: {what}")]
    Unclear {
        /// What was being done.
        doing: String,
        /// What is wrong with it.
        what: String,
    },
    /// The user wanted to stop.
    #[error("interrupted while fetching {0}")]
    Interrupted(String),
    /// A program for the guest is nowhere.
    #[error("there is no program `{0}` for the guest, here or among what is fetched")]
    NoGuestProgram(String),
    /// A library of a program is nowhere.
    #[error("{} needs the library {library}, which is not found", .needed_by.display())]
    NoLibrary {
        /// The library's file name, as `needed_by` states it.
        library: String,
        /// The program or library that needs it.
        needed_by: PathBuf,
    },
    /// A program is none that the guest can run.
    #[error("{} is not a 64-bit program", .0.display())]
    NotAProgram(PathBuf),
    /// A guest of another architecture than x86-64.
    #[error("guests run programs of x86-64, and this is one of another architecture")]
    Architecture,
    /// A file or folder.
    #[error("{doing} {}", .path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl Error {
    /// An error of a file or folder, at this step.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::File { doing, path: path.to_owned(), source }
    }
}

fn said(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; it last said: {last_words}") }
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        Fault::Machine
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Error::NoCache => "set one of them to a folder that only you can write to".into(),
            Error::NotFetched(Part::FullKernel) => {
                "fetch it once with `wiretax guest fetch --with full-kernel`".into()
            }
            Error::NotFetched(Part::Daemons) => {
                "fetch it once with `wiretax guest fetch --with daemons`".into()
            }
            Error::NotFetched(_) => {
                "fetch it once with `make guest`, or `wiretax guest fetch`".into()
            }
            Error::Incomplete { .. } | Error::NoGuestProgram(_) => {
                "fetch it again with `wiretax guest fetch --again`".into()
            }
            Error::NoProgram("apt-get" | "apt-cache" | "dpkg-deb") => {
                "fetch on Debian 12 or later: QEMU, kernel and programs come from its packages"
                    .into()
            }
            Error::NoProgram(_) => "install it".into(),
            Error::Command { program: "apt-get" | "apt-cache", .. } | Error::Unclear { .. } => {
                "update the package lists (`apt-get update`, as root), check that the network works, and try again"
                    .into()
            }
            Error::NoLibrary { .. } => "install the package that has it".into(),
            Error::Interrupted(_) => "run the same command to resume".into(),
            Error::Command { .. }
            | Error::NotAProgram(_)
            | Error::Architecture
            | Error::File { .. } => return None,
        })
    }
}
