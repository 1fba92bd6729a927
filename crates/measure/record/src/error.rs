//! What can go wrong with a results folder, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Difference, Schema};

/// What went wrong, and where. The path is of the folder or of the file in it.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct Error {
    /// The folder or file.
    pub path: PathBuf,
    /// What is wrong with it. Its text is part of this error's, so it is not its source as well:
    /// whoever prints the chain would print it twice.
    pub problem: Problem,
}

/// What is wrong with a results folder.
#[derive(Debug, Error)]
pub enum Problem {
    /// The user may not write there. Environment.
    #[error("no permission to write; choose another folder or change its owner")]
    NotWritable,
    /// A read-only file system. Environment.
    #[error("the file system is read-only; choose a folder on another one")]
    ReadOnly,
    /// No room, or above a quota or file size limit. What was recorded before stays.
    #[error("the disk is full or a quota is reached; make room, then continue with --resume")]
    DiskFull,
    /// A process writes this folder. Caller.
    #[error("another run writes it: {holder}; wait for it, stop it, or choose another folder")]
    Locked {
        /// Process id, command and start, as that process wrote them down.
        holder: String,
    },
    /// `create` on a folder with results. Caller.
    #[error("it already holds results; continue them with --resume or choose another folder")]
    HasResults,
    /// Something else than a folder is in the way. Caller.
    #[error("it is not a folder; choose another name")]
    NotAFolder,
    /// No results to read or to continue. Caller.
    #[error("it is not a results folder: {missing} is missing; give the folder that a run wrote")]
    NotResults {
        /// The file that should be there.
        missing: &'static str,
    },
    /// Written by a newer program. Caller.
    #[error("its schema is {found} and this program reads up to {}.x; use a newer wiretax", Schema::CURRENT.major)]
    NewerSchema {
        /// The version in the manifest.
        found: Schema,
    },
    /// A manifest that does not read.
    #[error(
        "line {line}, column {column}: {problem}; restore the file from a copy, or measure again into another folder"
    )]
    CorruptManifest {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// A line before the last that does not read; a torn last line is no error.
    #[error(
        "line {line}: {problem}; restore the file from a copy, or remove that line: its sample is then measured again by --resume"
    )]
    Corrupt {
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// `resume` with another plan. Caller.
    #[error(
        "it was measured by another plan ({found}, now {wanted}): {}; use the same options, or another folder",
        listed(differences)
    )]
    OtherPlan {
        /// The hash in the manifest.
        found: String,
        /// The hash of the plan given.
        wanted: String,
        /// Where they differ; the first few.
        differences: Vec<Difference>,
    },
    /// A sample names an attachment that is none. Results.
    #[error("{file} is not the attachment that a sample names")]
    NotAttachment {
        /// Where the sample says that it lies.
        file: String,
    },
    /// A sample that cannot be written. Caller.
    #[error("the sample {key} cannot be recorded: {problem}")]
    BadSample {
        /// Its name.
        key: String,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// More than is held in memory or in a table.
    #[error("{what} is {have}; at most {limit} are {verb}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large.
        have: u64,
        /// The limit.
        limit: u64,
        /// What is done with it, and the way out.
        verb: &'static str,
    },
    /// Anything else that the system says.
    #[error("{action}: {error}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

/// What is wrong with one line.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum LineProblem {
    /// Not the JSON of a sample.
    #[error("column {column}: {problem}")]
    Json {
        /// Column in bytes, from 1.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// JSON has no NaN and no infinity.
    #[error("{name} is {value}, not a finite number")]
    NotFinite {
        /// The value's name.
        name: String,
        /// The value.
        value: f64,
    },
    /// Longer than a sample can be.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Error {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem }
    }

    /// Sorts what the system says into what to do about it.
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        let problem = match source.kind() {
            io::ErrorKind::PermissionDenied => Problem::NotWritable,
            io::ErrorKind::ReadOnlyFilesystem => Problem::ReadOnly,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::WriteZero => Problem::DiskFull,
            io::ErrorKind::NotADirectory => Problem::NotAFolder,
            _ => Problem::Io { action, error: source },
        };
        Self::new(path, problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_the_system_says_becomes_what_to_do() {
        for (errno, advice) in [
            (Errno::ACCESS, "choose another folder or change its owner"),
            (Errno::PERM, "choose another folder or change its owner"),
            (Errno::ROFS, "the file system is read-only"),
            (Errno::NOSPC, "make room, then continue with --resume"),
            (Errno::DQUOT, "make room, then continue with --resume"),
            (Errno::FBIG, "make room, then continue with --resume"),
            (Errno::NOTDIR, "it is not a folder"),
            (Errno::IO, "writing a sample: Input/output error"),
        ] {
            let error = Error::io(Path::new("results"), "writing a sample", errno.into());
            let text = error.to_string();
            assert!(text.starts_with("results: ") && text.contains(advice), "{errno:?}: {text}");
        }
    }
}
