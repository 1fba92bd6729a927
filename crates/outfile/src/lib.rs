//! Output files: whole or not at all under the name that the user gave. [`Scratch`] is a folder for work
//! that may be cut off, [`Folder`] a folder in which no link is followed.
//!
//! | at the name is | what happens |
//! |---|---|
//! | nothing | a file without a name takes the name at the end; its mode is 0666 without the umask |
//! | a regular file | the same, with the mode of the old file |
//! | a link to one of these, or to nothing | what it leads to is replaced; the link stays |
//! | a device, a FIFO | it is opened and written to as it is; a FIFO waits for a reader |
//! | a link of /proc, as /dev/stdout is | what it leads to is opened and written to as it is |
//!
//! Where the file system has no files without names, the new file is called `NAME.*.partial`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod folder;
mod held;
mod new;
mod scratch;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

pub use folder::{Access, Folder, Refused};
pub use held::Held;
use new::New;
pub use scratch::Scratch;

/// As the kernel's limit (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Read, write and execute, without setuid and the like.
const ACCESS: u32 = 0o777;

/// An output being written. Dropped before [`OutFile::finish`], a file has the content that it had.
#[derive(Debug)]
pub struct OutFile(Kind);

#[derive(Debug)]
enum Kind {
    /// No regular file: written to as it is.
    InPlace(File),
    Beside {
        new: New,
        target: PathBuf,
    },
}

impl OutFile {
    /// Begins to write to `path`, which may be relative to the folder of now.
    ///
    /// # Errors
    /// It cannot be written: its folder is missing, or it or its folder may not be written to.
    pub fn create(path: &Path) -> io::Result<OutFile> {
        let (target, found) = match resolve(path)? {
            Found::Opened(file) => return Ok(OutFile(Kind::InPlace(file))),
            Found::File(target, metadata) => (target, Some(metadata)),
            Found::Nothing(target) => (target, None),
        };
        if found.is_some() {
            // A file that may not be written is not replaced either, whoever owns the folder.
            File::options().write(true).open(&target)?;
        }
        let new = New::beside(&target)?;
        if let Some(found) = found {
            // Root keeps the owner. Others may keep the group at most.
            let give = |user| fchown(new.file(), user, Some(found.gid()));
            let _ = give(Some(found.uid())).or_else(|_| give(None));
            let mode = found.permissions().mode() & ACCESS;
            new.file().set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(OutFile(Kind::Beside { new, target }))
    }

    /// As [`OutFile::create`], for a name that the user did not type: whatever has it, a link included, is
    /// replaced itself.
    ///
    /// # Errors
    /// As for [`OutFile::create`].
    pub fn create_in_place_of(path: &Path) -> io::Result<OutFile> {
        let target = std::path::absolute(path)?;
        Ok(OutFile(Kind::Beside { new: New::beside(&target)?, target }))
    }

    /// Whether it is no regular file, and so written to as it is.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        matches!(self.0, Kind::InPlace(_))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It cannot be given; what was there before still is.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::InPlace(_) => Ok(()),
            Kind::Beside { new, target } => new.publish(&target),
        }
    }

    /// As [`OutFile::finish`], with the content on the disk first: a crash of the machine leaves the
    /// name on a whole file.
    ///
    /// # Errors
    /// As [`OutFile::finish`].
    pub fn finish_synced(self) -> io::Result<()> {
        if let Kind::Beside { new, .. } = &self.0 {
            new.file().sync_all()?;
        }
        self.finish()
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::InPlace(file) => file.write(bytes),
            Kind::Beside { new, .. } => new.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::InPlace(file) => file.flush(),
            Kind::Beside { new, .. } => new.file().flush(),
        }
    }
}

/// Writes all of `bytes` to `path`.
///
/// # Errors
/// It cannot be written; a file has the content that it had.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutFile::create(path)?;
    file.write_all(bytes)?;
    file.finish_synced()
}

/// What a path leads to.
enum Found {
    /// No regular file, opened.
    Opened(File),
    /// A regular file, by a path without links at its end.
    File(PathBuf, Metadata),
    /// Where a new file would be.
    Nothing(PathBuf),
}

fn resolve(path: &Path) -> io::Result<Found> {
    let mut at = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        let found = match fs::symlink_metadata(&at) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing(at)),
            found => found?,
        };
        let folder = at.parent().unwrap_or(Path::new("/"));
        if !found.is_symlink() {
            return if found.is_file() { Ok(Found::File(at, found)) } else { open_as_it_is(&at) };
        }
        // Such a link's text need not be the name of what it leads to (proc_pid_fd(5)).
        if fs::canonicalize(folder)?.starts_with("/proc") {
            return open_as_it_is(&at);
        }
        // The system follows the links in a folder's path: none is cut off here, nor is `..`.
        at = folder.join(fs::read_link(&at)?);
    }
    Err(io::Error::other("too many links lead to one another"))
}

fn open_as_it_is(path: &Path) -> io::Result<Found> {
    let file = File::options().write(true).open(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(Found::Opened(file))
}

#[cfg(test)]
mod tests;
