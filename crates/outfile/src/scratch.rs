//! Folders for work that may be cut off.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use tempfile::TempDir;

/// How often a folder is made anew that another process took for left over.
const TRIES: usize = 8;

/// A folder that only this user may read. It is removed when this is dropped. If its process is killed,
/// the next [`Scratch::new_in`] with its parent and prefix removes it.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    /// Locked as long as the folder is in use. The kernel frees the lock, whatever ends the process.
    _lock: File,
}

impl Scratch {
    /// A new folder in `parent` whose name begins with `prefix`.
    ///
    /// # Errors
    /// It cannot be made or locked.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<Scratch> {
        clear(parent, prefix);
        for _ in 0..TRIES {
            let mut builder = tempfile::Builder::new();
            builder.prefix(prefix).permissions(Permissions::from_mode(0o700));
            let folder = builder.tempdir_in(parent)?;
            if let Some(lock) = lock(folder.path())? {
                return Ok(Scratch { folder, _lock: lock });
            }
        }
        Err(io::Error::other("another process removes what is new"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Moves the folder to its place: it stays.
    ///
    /// # Errors
    /// It cannot be moved, and is removed.
    pub fn publish(self, place: &Path) -> io::Result<()> {
        fs::rename(self.path(), place)?;
        let _ = self.folder.keep();
        Ok(())
    }
}

/// Locks a new folder; `None` if another process has it, or has removed it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let opened = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if flock(&opened, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    let (found, ours) = (fs::symlink_metadata(path), opened.metadata()?);
    Ok(found.is_ok_and(|found| found.ino() == ours.ino()).then_some(opened))
}

/// Opens a folder, and no link to one.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    File::options().read(true).custom_flags(flags).open(path)
}

/// Removes this user's folders of that prefix that no process uses.
fn clear(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let Ok(folder) = open(&entry.path()) else { continue };
        let ours = folder.metadata().is_ok_and(|found| found.uid() == geteuid().as_raw());
        if ours && flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // One that cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_of_a_killed_process_goes_and_all_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["new-killed", "old-other", "aside"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "").unwrap();
        }
        symlink("aside", at("new-link")).unwrap();
        fs::write(at("new-file"), "").unwrap();
        let used = Scratch::new_in(parent.path(), "new-").unwrap();
        let name = used.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(used.path().metadata().unwrap().mode() & 0o777, 0o700);
        let second = Scratch::new_in(parent.path(), "new-").unwrap();
        assert!(used.path().is_dir() && second.path().is_dir());
        drop(second);
        let mut left = ["aside", "new-file", "new-link", "old-other", &name];
        left.sort_unstable();
        assert_eq!(names(parent.path()), left);
        assert!(at("aside/file").exists());
        used.publish(&at("done")).unwrap();
        assert_eq!(names(parent.path()), ["aside", "done", "new-file", "new-link", "old-other"]);
    }
}
