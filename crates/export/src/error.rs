//! What can go wrong.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use outfile::Refused;

/// What can go wrong when rows are written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's prefix lengths are too long.
    #[error("no addresses have prefixes of {v4} (IPv4) and {v6} (IPv6) bits")]
    Prefixes {
        /// Bits asked for of IPv4.
        v4: u8,
        /// Bits asked for of IPv6.
        v6: u8,
    },
    /// The caller's text is no way to hide addresses.
    #[error("`{0}` is not a way to hide addresses")]
    Addresses(String),
    /// The caller's key is none.
    #[error("the key is not {} hexadecimal digits", 2 * crate::Key::LEN)]
    Key,
    /// The system gives no random bytes, or its cryptography refuses to work.
    #[error("no key could be drawn or set up")]
    Cryptography,
    /// Another process writes to the same data set.
    #[error("another process writes to {}", .0.display())]
    Busy(PathBuf),
    /// The data set has the rows of this capture.
    #[error("the records of {file} are in this folder already{}", same(.file, .before))]
    ReadBefore {
        /// The capture's file.
        file: String,
        /// Its file's name when it was read before.
        before: String,
    },
    /// A part of an hour has the highest number.
    #[error("{} has a part with the highest number that a part can have", .0.display())]
    NoNumber(PathBuf),
    /// A file or folder cannot be written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder that cannot be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A link, a pipe or a device stands in the place of a file or folder.
    #[error("{} is {what}, to which no rows are written", .path.display())]
    Irregular {
        /// Its path.
        path: PathBuf,
        /// Its kind.
        what: &'static str,
    },
    /// The Parquet library refused.
    #[error("{}: {source}", .path.display())]
    Parquet {
        /// The file that was being written.
        path: PathBuf,
        /// What the Parquet writer said.
        source: parquet::errors::ParquetError,
    },
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Prefixes { .. }
            | Error::Addresses(_)
            | Error::Key
            | Error::ReadBefore { .. } => Fault::Caller,
            Error::Cryptography => Fault::Machine,
            Error::Busy(_)
            | Error::NoNumber(_)
            | Error::Io { .. }
            | Error::Irregular { .. }
            | Error::Parquet { .. } => Fault::Results,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Error::Prefixes { .. } => "give 32 and 128 at most",
            Error::Addresses(_) => "give none, truncate, truncate:24/48 or hash",
            Error::ReadBefore { .. } => "name another folder, or add --again to count it twice",
            Error::Busy(_) => "wait until it ends or name another folder",
            Error::NoNumber(_) => "rename that part, or name another folder",
            Error::Irregular { .. } => "remove it, or name another folder",
            Error::Io { .. } | Error::Parquet { .. } => "make room, or name another folder",
            _ => return None,
        };
        Some(remedy.into())
    }
}

/// Says under which other name a capture was read.
fn same(file: &str, before: &str) -> String {
    if file == before { String::new() } else { format!(": it begins as {before}") }
}

impl Error {
    /// Whether a disk is full, or a quota or a file's largest size is reached.
    #[must_use]
    pub fn is_lack_of_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
        let Error::Io { source, .. } = self else { return false };
        matches!(source.kind(), FileTooLarge | QuotaExceeded | StorageFull | WriteZero)
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }

    pub(crate) fn refused(path: &Path) -> impl FnOnce(Refused) -> Error {
        let path = path.to_owned();
        move |refused| match refused {
            Refused::Irregular(what) => Error::Irregular { path, what },
            Refused::Io(source) => Error::Io { path, source },
        }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let path = path.to_owned();
        move |source| Error::Parquet { path, source }
    }
}
