//! What can go wrong with a results folder, and what to do.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
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
    /// The user may not write there.
    #[error("no permission to write")]
    NotWritable,
    /// A read-only file system.
    #[error("the file system is read-only")]
    ReadOnly,
    /// No room, or above a quota or file size limit. What was recorded before stays.
    #[error("the disk is full or a quota is reached")]
    DiskFull,
    /// The same before anything was recorded: nothing stays.
    #[error("the disk is full or a quota is reached")]
    NoRoom,
    /// A process writes this folder.
    #[error("another run writes it: {holder}")]
    Locked {
        /// Process id, command and start, as that process wrote them down.
        holder: String,
    },
    /// `create` on a folder with results.
    #[error("it already holds results")]
    HasResults,
    /// Something else than a folder is in the way.
    #[error("it is not a folder")]
    NotAFolder,
    /// No results to read or to continue.
    #[error("it is not a results folder: {missing} is missing")]
    NotResults {
        /// The file that should be there.
        missing: &'static str,
    },
    /// Written by a newer program.
    #[error("its schema is {found} and this program reads up to {}.x", Schema::CURRENT.major)]
    NewerSchema {
        /// The version in the manifest.
        found: Schema,
    },
    /// A manifest that does not read.
    #[error("line {line}, column {column}: {problem}")]
    CorruptManifest {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// A line before the last that does not read; a torn last line is no error.
    #[error("line {line}: {problem}")]
    Corrupt {
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// `resume` with another plan.
    #[error("it was measured by another plan ({found}, now {wanted}): {}", listed(differences))]
    OtherPlan {
        /// The hash in the manifest.
        found: String,
        /// The hash of the plan given.
        wanted: String,
        /// Where they differ; the first few.
        differences: Vec<Difference>,
    },
    /// Something else than a regular file of these results has the name of one.
    #[error("it is {what}, where a file of these results should be")]
    Irregular {
        /// What it is.
        what: &'static str,
    },
    /// A sample or a manifest names an attachment that is none, or another one.
    #[error("{file} is not the attachment that these results name")]
    NotAttachment {
        /// Where it should lie.
        file: String,
    },
    /// A sample that cannot be written.
    #[error("the sample {key} cannot be recorded: {problem}")]
    BadSample {
        /// The key that the sample is found by.
        key: String,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// More than is held in memory or in a table.
    #[error("{what} exceeds {limit}, the most that can be {verb}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The most that is allowed.
        limit: u64,
        /// What is done with it.
        verb: &'static str,
        /// The way out.
        remedy: &'static str,
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
        /// The value: NaN or infinite.
        value: f64,
    },
    /// More values, labels, axes and attachments than a sample can have.
    #[error("it has more than {limit} values, labels, axes and attachments")]
    TooMany {
        /// The most that it may have.
        limit: usize,
    },
    /// Longer than a sample can be.
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The most bytes that a line may have.
        limit: usize,
    },
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        Fault::Results
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        self.problem.remedy()
    }
}

impl Explain for Problem {
    fn fault(&self) -> Fault {
        Fault::Results
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        self.advice().map(Cow::Borrowed)
    }
}

impl Problem {
    /// What to do about it.
    fn advice(&self) -> Option<&'static str> {
        match self {
            Problem::NotWritable => Some("choose another folder or change its owner"),
            Problem::ReadOnly => Some("choose a folder on another file system"),
            Problem::DiskFull => Some("make room, then continue with --resume"),
            Problem::NoRoom => Some("make room, then start again"),
            Problem::Locked { .. } => Some("wait for it, stop it, or choose another folder"),
            Problem::HasResults => Some("continue them with --resume or choose another folder"),
            Problem::NotAFolder => Some("choose another name"),
            Problem::NotResults { .. } => Some("give the folder that a run wrote"),
            Problem::NewerSchema { .. } => Some("use a newer wiretax"),
            Problem::CorruptManifest { .. } => {
                Some("restore the file from a copy, or measure again into another folder")
            }
            Problem::Corrupt { .. } => Some(
                "restore the file from a copy, or remove that line: its sample is then measured \
                 again by --resume",
            ),
            Problem::OtherPlan { .. } => Some("use the same options, or another folder"),
            Problem::TooLarge { remedy, .. } => Some(remedy),
            Problem::Irregular { .. } => Some("put a file of its own in its place"),
            Problem::NotAttachment { .. } | Problem::BadSample { .. } | Problem::Io { .. } => None,
        }
    }
}

impl Error {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem }
    }

    /// The same error before anything was recorded: there is nothing to go on with.
    pub(crate) fn at_the_start(self) -> Self {
        match self.problem {
            Problem::DiskFull => Self { problem: Problem::NoRoom, ..self },
            _ => self,
        }
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
            assert!(error.to_string().starts_with("results: "), "{errno:?}: {error}");
            let text = error.in_one_text();
            assert!(text.contains(advice), "{errno:?}: {text}");
        }
    }
}
