//! Puts a report in a file: the whole of it or nothing.

use std::borrow::Cow;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};

use crate::{Report, render};

/// Why a report could not be written. Nothing half-written is left behind, and a report that stood there
/// before still stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path names no file, or names a folder.
    #[error("{} is not the name of a file", path.display())]
    NotAFile {
        /// The path given.
        path: PathBuf,
    },
    /// The folder does not exist.
    #[error("the folder of {} does not exist", path.display())]
    NoFolder {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder may not be written to.
    #[error("no permission to write {}", path.display())]
    NotPermitted {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system is read-only.
    #[error("{} is on a read-only file system", path.display())]
    ReadOnly {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk or the quota is full.
    #[error("no space left for {} ({needed} bytes needed)", path.display())]
    Full {
        /// The path given.
        path: PathBuf,
        /// The size of the report in bytes.
        needed: usize,
        /// What the system said.
        source: io::Error,
    },
    /// Any other error of the system.
    #[error("cannot write {}: {source}", path.display())]
    Other {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Explain for WriteError {
    fn fault(&self) -> Fault {
        Fault::Results
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            WriteError::NotAFile { .. } => "give one such as report.html",
            WriteError::NoFolder { .. } => "create it or choose another",
            WriteError::NotPermitted { .. } => "choose another folder or change its permissions",
            WriteError::ReadOnly { .. } => "choose another folder",
            WriteError::Full { .. } => "free some or choose another disk",
            WriteError::Other { .. } => return None,
        };
        Some(remedy.into())
    }
}

impl WriteError {
    fn new(path: &Path, needed: usize, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::NoFolder { path, source },
            ErrorKind::PermissionDenied => Self::NotPermitted { path, source },
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path, source },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::Full { path, needed, source }
            }
            ErrorKind::IsADirectory => Self::NotAFile { path },
            _ => Self::Other { path, source },
        }
    }
}

impl Report {
    /// Renders the report and writes it to `path`: into a new file beside it that then takes its
    /// name, so that a reader never sees half a report (`outfile`). Returns the size in bytes.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write_to(&self, path: &Path) -> Result<usize, WriteError> {
        let html = render(self);
        write_whole(path, html.as_bytes())?;
        Ok(html.len())
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    if path.file_name().is_none() || path.is_dir() {
        return Err(WriteError::NotAFile { path: path.to_path_buf() });
    }
    outfile::write(path, bytes).map_err(|source| WriteError::new(path, bytes.len(), source))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        fs::write(&path, "old").expect("written");
        write_whole(&path, b"new").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"new");
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn a_missing_folder_and_a_file_for_a_folder_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("nowhere/report.html");
        assert!(matches!(write_whole(&missing, b""), Err(WriteError::NoFolder { .. })));
        fs::write(folder.path().join("file"), "").expect("written");
        let below_a_file = folder.path().join("file/report.html");
        assert!(matches!(write_whole(&below_a_file, b""), Err(WriteError::NoFolder { .. })));
        assert!(matches!(write_whole(folder.path(), b""), Err(WriteError::NotAFile { .. })));
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_folder_that_may_not_be_written_keeps_what_it_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.html");
        fs::write(&path, "old").expect("written");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o555)).expect("set");
        let result = write_whole(&path, b"new");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("set");
        // Root may write wherever it likes.
        if let Err(error) = result {
            assert!(matches!(error, WriteError::NotPermitted { .. }), "{error}");
            assert_eq!(fs::read(&path).expect("read"), b"old");
        }
        assert_eq!(names(folder.path()), ["report.html"]);
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        for (kind, words) in [
            (ErrorKind::StorageFull, "free some"),
            (ErrorKind::QuotaExceeded, "free some"),
            (ErrorKind::ReadOnlyFilesystem, "choose another folder"),
            (ErrorKind::PermissionDenied, "change its permissions"),
            (ErrorKind::NotFound, "create it"),
            (ErrorKind::IsADirectory, "give one such as"),
        ] {
            let error = WriteError::new(Path::new("out/r.html"), 7, kind.into());
            assert!(error.to_string().contains("out/r.html"), "{error}");
            assert!(error.remedy().is_some_and(|remedy| remedy.contains(words)), "{error}");
        }
    }
}
