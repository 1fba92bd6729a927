//! Output files: whole or not at all under the name that the user gave. [`Scratch`] is a folder for work
//! that may be cut off, [`Folder`] a folder in which no link is followed.
//!
//! | at the name is | what happens |
//! |---|---|
//! | nothing | a file without a name takes the name at the end; its mode is 0666 without the umask |
//! | a regular file | the same, with the mode of the old file |
//! | a link to one of these, or to nothing | what it leads to is replaced; the link stays |
//! | a device, a FIFO | it is opened and written to as it is; a FIFO waits for a reader |
//! | a descriptor of this process, as /dev/stdout | it is written to from its position; a regular file at the end |
//! | another link of /proc | what it leads to is appended to; a regular file at the end |
//! | a link or a FIFO of another user in a folder like /tmp | it is refused |
//!
//! A folder like /tmp is sticky and writable by all. The owner's links are followed there.
//! Where the file system has no files without names, the new file is called `NAME.*.partial`.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod folder;
mod held;
mod new;
mod place;
mod scratch;

use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::SpooledTempFile;

pub use folder::{Access, Folder, Refused};
pub use held::Held;
use new::New;
use place::{Found, open_of_proc, open_special, resolve};
pub use place::{check_name, is_same_file};
pub use scratch::Scratch;

/// Bytes for an open descriptor that are held in memory; more are in a file without a name.
const IN_MEMORY: usize = 1024 * 1024;
/// Read, write and execute, without setuid and the like.
const ACCESS: u32 = 0o777;

/// An output being written. Dropped before [`OutFile::finish`], a file has the content that it had.
#[derive(Debug)]
pub struct OutFile(Kind);

#[derive(Debug)]
enum Kind {
    /// No regular file: written to as it is.
    InPlace(File),
    /// A regular file that another has opened: written to at the end.
    Opened {
        file: File,
        text: SpooledTempFile,
    },
    Beside {
        new: New,
        target: PathBuf,
    },
}

impl OutFile {
    /// Begins to write to `path`, which may be relative to the folder of now.
    ///
    /// # Errors
    /// It cannot be written: it is the name of a folder, its folder is missing, it or its folder may not be
    /// written to, or another user planted it.
    pub fn create(path: &Path) -> io::Result<OutFile> {
        let (target, found) = match resolve(path)? {
            Found::Special(path) => return Ok(OutFile(Kind::InPlace(open_special(&path)?))),
            Found::OfProc(path) => return Ok(OutFile(Kind::opened(open_of_proc(&path)?)?)),
            Found::File(target, metadata) => (target, Some(metadata)),
            Found::Nothing(target) => (target, None),
        };
        if found.is_some() {
            // A file that may not be written is not replaced either, whoever owns the folder.
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            File::options().write(true).custom_flags(flags).open(&target)?;
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

    /// Gives the file its name, or writes to the descriptor.
    ///
    /// # Errors
    /// It cannot be given; what was there before still is.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::InPlace(_) => Ok(()),
            Kind::Opened { mut file, mut text } => {
                text.rewind()?;
                io::copy(&mut text, &mut file).map(drop)
            }
            Kind::Beside { new, target } => new.publish(&target),
        }
    }

    /// As [`OutFile::finish`], with the content on the disk first: a crash of the machine leaves the
    /// name on a whole file.
    ///
    /// # Errors
    /// As [`OutFile::finish`].
    pub fn finish_synced(self) -> io::Result<()> {
        let opened = match &self.0 {
            Kind::InPlace(_) => None,
            Kind::Opened { file, .. } => Some(file.try_clone()?),
            Kind::Beside { new, .. } => {
                new.file().sync_all()?;
                None
            }
        };
        self.finish()?;
        opened.map_or(Ok(()), |file| file.sync_all())
    }
}

impl Kind {
    fn opened(file: File) -> io::Result<Kind> {
        Ok(match file.metadata()?.is_file() {
            true => Kind::Opened { file, text: SpooledTempFile::new(IN_MEMORY) },
            false => Kind::InPlace(file),
        })
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::InPlace(file) => file.write(bytes),
            Kind::Opened { text, .. } => text.write(bytes),
            Kind::Beside { new, .. } => new.file().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::InPlace(file) => file.flush(),
            Kind::Opened { text, .. } => text.flush(),
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

#[cfg(test)]
mod tests;
