//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong when rows are written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's prefix lengths are too long.
    #[error(
        "no addresses have prefixes of {v4} (IPv4) and {v6} (IPv6) bits; hint: 32 and 128 at most"
    )]
    Prefixes {
        /// Bits asked for of IPv4.
        v4: u8,
        /// Bits asked for of IPv6.
        v6: u8,
    },
    /// The caller's text is no way to hide addresses.
    #[error("`{0}` is no way to hide addresses; hint: none, truncate, truncate:24/48 or hash")]
    Addresses(String),
    /// The caller's key is none.
    #[error("the key is not {} hexadecimal digits", 2 * crate::Key::LEN)]
    Key,
    /// The system gives no random bytes, or its cryptography refuses to work.
    #[error("no key could be drawn or set up")]
    Cryptography,
    /// Another process writes to the same data set.
    #[error("another process writes to {}; hint: wait for its end or name another folder", .0.display())]
    Busy(PathBuf),
    /// A file or folder cannot be written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The Parquet library refused.
    #[error("{}: {source}", .path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let path = path.to_owned();
        move |source| Error::Parquet { path, source }
    }
}
