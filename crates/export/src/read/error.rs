//! What can be wrong with what is read.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use outfile::Refused;

/// Why records cannot be read: the file is not what was asked for, or is damaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system cannot read it.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// In a folder a link, a pipe or a device stands in the place of a file or folder.
    #[error("{} is {what}, which is not read", .path.display())]
    Irregular {
        /// Its path.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// It is neither JSON lines nor Parquet.
    #[error("{} holds no records: it is neither JSON lines nor Parquet", .0.display())]
    NotRecords(PathBuf),
    /// It is a capture.
    #[error("{} is a capture, not the records of one", .0.display())]
    Capture(PathBuf),
    /// It is compressed.
    #[error("{} is compressed", .0.display())]
    Packed(PathBuf),
    /// No Parquet file is in the folder.
    #[error("{} holds no records", .0.display())]
    NoRecords(PathBuf),
    /// A line is no record.
    #[error("{}, line {line}: {source}", .path.display())]
    Line {
        /// The file that the line is in.
        path: PathBuf,
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A line of JSON does not say what it is.
    #[error("{}, line {line}: this is not a record of `wiretax observe`", .path.display())]
    Strange {
        /// The file that the line is in.
        path: PathBuf,
        /// Its number, from 1.
        line: u64,
    },
    /// A line is longer than any record.
    #[error("{}, line {line}: it is longer than {limit} bytes", .path.display())]
    Long {
        /// The file that the line is in.
        path: PathBuf,
        /// Its number, from 1.
        line: u64,
        /// How long a record may be.
        limit: usize,
    },
    /// A newer program wrote it.
    #[error("{}: its schema has version {schema}, which this program does not know", .path.display())]
    Newer {
        /// The file that states a newer schema.
        path: PathBuf,
        /// The schema's version that the file states.
        schema: u32,
    },
    /// A Parquet file is not one of `observe`.
    #[error("{} is not a table of `wiretax observe`", .0.display())]
    NotTable(PathBuf),
    /// A column holds something else than it should.
    #[error("{}: column `{column}` does not hold what its name says", .path.display())]
    Column {
        /// The Parquet file.
        path: PathBuf,
        /// The column's name.
        column: String,
    },
    /// The Parquet library cannot read it.
    #[error("{}: {source}", .path.display())]
    Parquet {
        /// The Parquet file.
        path: PathBuf,
        /// What the Parquet reader said.
        source: parquet::errors::ParquetError,
    },
}

impl Explain for ReadError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            ReadError::Io { .. } => return None,
            ReadError::Irregular { .. } => "remove it, or name the folder that it leads to",
            ReadError::NotRecords(_) | ReadError::NoRecords(_) => {
                "give what `wiretax observe` wrote with --parquet or --json"
            }
            ReadError::Strange { .. } | ReadError::NotTable(_) => {
                "give what `wiretax observe` wrote with --parquet or --json, and nothing else"
            }
            ReadError::Capture(_) => {
                "make records of it: `wiretax observe CAPTURE --parquet FOLDER`"
            }
            ReadError::Packed(_) => "unpack it first",
            ReadError::Newer { .. } => "read it with the program that wrote it, or a newer one",
            ReadError::Line { .. }
            | ReadError::Long { .. }
            | ReadError::Column { .. }
            | ReadError::Parquet { .. } => "the file is damaged: write it again from the capture",
        };
        Some(remedy.into())
    }
}

impl ReadError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> ReadError {
        let path = path.to_owned();
        move |source| ReadError::Io { path, source }
    }

    pub(super) fn refused(path: &Path) -> impl FnOnce(Refused) -> ReadError {
        let path = path.to_owned();
        move |refused| match refused {
            Refused::Irregular(what) => ReadError::Irregular { path, what },
            Refused::Io(source) => ReadError::Io { path, source },
        }
    }

    pub(super) fn parquet(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> ReadError {
        let path = path.to_owned();
        move |source| ReadError::Parquet { path: path.clone(), source }
    }
}
