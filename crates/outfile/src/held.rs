//! Outputs that a process begins with rights which it then gives up.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::ACCESS;
use crate::new::{New, split};

/// An output in a folder that others may write to, held by descriptor: no link is followed in it, whatever
/// its names come to stand for.
#[derive(Debug)]
pub struct Held {
    new: New,
    /// By the folder's descriptor.
    target: PathBuf,
    _folder: File,
}

impl Held {
    /// Begins to write to `path`. The file belongs to `owner` (user, group), or to whom the file belongs
    /// that it replaces.
    ///
    /// # Errors
    /// As [`crate::OutFile::create`]; or the name stands for something else than a file, such as a link.
    pub fn create(path: &Path, owner: (u32, u32)) -> io::Result<Held> {
        let path = std::path::absolute(path)?;
        let (folder, name) = split(&path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = File::from(open(folder, flags, Mode::empty())?);
        let target = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        let found = match fs::symlink_metadata(&target) {
            Ok(found) if found.is_file() => Some(found),
            Ok(_) => return Err(io::Error::other("root writes to regular files only")),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let new = New::beside(&target)?;
        let give = |(user, group)| fchown(new.file(), Some(user), Some(group));
        match found {
            None => give(owner)?,
            Some(found) => {
                give((found.uid(), found.gid())).or_else(|_| give(owner))?;
                let mode = Permissions::from_mode(found.permissions().mode() & ACCESS);
                new.file().set_permissions(mode)?;
            }
        }
        Ok(Held { new, target, _folder: folder })
    }

    /// The file to write to.
    ///
    /// # Errors
    /// No descriptor is to be had.
    pub fn file(&self) -> io::Result<File> {
        self.new.file().try_clone()
    }

    /// Gives the file its name, with the rights that creating it needed.
    ///
    /// # Errors
    /// It cannot be given; what was there before still is.
    pub fn publish(self) -> io::Result<()> {
        self.new.publish(&self.target)
    }
}
