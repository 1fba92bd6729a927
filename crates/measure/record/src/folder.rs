//! A results folder and the files in it, opened below its descriptor: no link in it is followed.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use outfile::{Access, Refused};
use rustix::fs::{FileType, FlockOperation};
use rustix::io::Errno;

use crate::{Error, Manifest, Problem, parse_manifest};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SAMPLES: &str = "samples.jsonl";
pub(crate) const LOCK: &str = "lock";

/// Most bytes of a manifest. It has some kilobytes.
pub const MAX_MANIFEST: u64 = 2 << 20;

/// The mode of a new file before the umask.
const NEW_FILE: u32 = 0o666;
/// Read, write and execute, without setuid and the like.
const ACCESS: u32 = 0o777;

/// An open folder of results: an [`outfile::Folder`] with a manifest, samples and a lock.
#[derive(Debug)]
pub struct Folder(outfile::Folder);

impl Folder {
    /// Opens the folder that the user named.
    ///
    /// # Errors
    /// [`Problem::NotResults`] where nothing has this name, [`Problem::NotAFolder`], [`Problem::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Folder, Error> {
        let path = path.as_ref();
        outfile::Folder::open(path).map(Folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::new(path, Problem::NotResults { missing: MANIFEST }),
            _ => reading(path, "opening it", error),
        })
    }

    /// The name that the user gave.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Opens the folder `name` in this one.
    ///
    /// # Errors
    /// [`Problem::Irregular`] for a link, [`Problem::NotAFolder`], [`Problem::Io`].
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        let opened = self.0.folder(name).map(Folder);
        opened.map_err(|refused| {
            self.error(name, refused, |path, error| reading(path, "opening it", error))
        })
    }

    /// As [`Folder::folder`]; the folder is made if there is none.
    ///
    /// # Errors
    /// As for [`Folder::folder`], and what forbids to make it.
    pub fn make_folder(&self, name: &str) -> Result<Folder, Error> {
        let made = self.0.make_folder(name).map(Folder);
        made.map_err(|refused| {
            self.error(name, refused, |path, error| match error.kind() {
                io::ErrorKind::NotADirectory => reading(path, "opening it", error),
                _ => Error::io(path, "making the folder", error),
            })
        })
    }

    /// Reads a file of at most `limit` bytes, which are counted while they are read.
    ///
    /// # Errors
    /// [`Problem::Irregular`], [`Problem::TooLarge`], [`Problem::Io`].
    pub fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let file = self.open_file(name)?;
        let path = self.path().join(name);
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| reading(&path, "reading it", error))?;
        if bytes.len() as u64 > limit {
            return Err(too_long(&path, limit, "read", "check that this is the right folder"));
        }
        Ok(bytes)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`Problem::Irregular`], [`Problem::Io`].
    pub fn open_file(&self, name: &str) -> Result<File, Error> {
        let opened = self.0.file(name, Access::Read);
        opened.map_err(|refused| {
            self.error(name, refused, |path, error| reading(path, "opening it", error))
        })
    }

    /// Opens a file whose end is written to; `new` makes one if there is none.
    pub(crate) fn append(&self, name: &str, new: bool) -> Result<File, Error> {
        let access = if new { Access::AppendOrMake(NEW_FILE) } else { Access::Append };
        self.written(name, access, "opening it for writing")
    }

    /// Replaces a file: at any moment, a crash included, there is the old one or the new one. A link of
    /// this name is replaced itself.
    ///
    /// # Errors
    /// [`Problem::DiskFull`], [`Problem::Irregular`] where a folder has this name, [`Problem::Io`].
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let failed = |refused: Refused| {
            self.error(name, refused, |path, error| match error.kind() {
                io::ErrorKind::IsADirectory => {
                    Error::new(path, Problem::Irregular { what: "a folder" })
                }
                _ => Error::io(path, "writing it", error),
            })
        };
        let before =
            self.0.stat(name).map(|stat| (FileType::from_raw_mode(stat.st_mode), stat.st_mode));
        let (partial, mut file) = self.0.new_partial(name, NEW_FILE).map_err(failed)?;
        let mut write = || -> Result<(), Refused> {
            if let Some((FileType::RegularFile, mode)) = before {
                file.set_permissions(Permissions::from_mode(mode & ACCESS))?;
            }
            file.write_all(bytes)?;
            // The name may only point to bytes that are on the disk.
            file.sync_all()?;
            self.0.rename(&partial, name)
        };
        if let Err(refused) = write() {
            self.remove(&partial);
            return Err(failed(refused));
        }
        self.sync()
    }

    /// Removes what killed processes left of [`Folder::replace`].
    pub fn clear_partial(&self) {
        self.0.clear_partial();
    }

    /// Whether anything has this name, a link included.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.0.stat(name).is_some()
    }

    /// Whether a file of this name has content.
    pub(crate) fn has_content(&self, name: &str) -> bool {
        self.0.stat(name).is_some_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size > 0
        })
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        let names = self.0.names();
        let names = names.map_err(|error| Error::io(self.path(), "looking into it", error))?;
        Ok(names.is_empty())
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove(&self, name: &str) {
        self.0.remove(name);
    }

    /// Removes the folder `name` if nothing is in it.
    pub(crate) fn remove_folder(&self, name: &str) {
        self.0.remove_folder(name);
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.0.sync().map_err(|error| Error::io(self.path(), "syncing the folder", error))
    }

    /// Reads the manifest.
    pub(crate) fn manifest(&self) -> Result<Manifest, Error> {
        let text = self.read(MANIFEST, MAX_MANIFEST).map_err(|error| match error.problem {
            Problem::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Error::new(self.path(), Problem::NotResults { missing: MANIFEST })
            }
            problem => Error { problem, ..error },
        })?;
        parse_manifest(&text).map_err(|problem| Error::new(&self.path().join(MANIFEST), problem))
    }

    /// Replaces the manifest. One that could not be read back is refused.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let path = self.path().join(MANIFEST);
        let text = manifest
            .to_json()
            .map_err(|error| Error::io(&path, "writing the manifest as JSON", error.into()))?;
        if text.len() as u64 > MAX_MANIFEST {
            return Err(too_long(&path, MAX_MANIFEST, "written", "make the plan smaller"));
        }
        parse_manifest(&text).map_err(|problem| Error::new(&path, problem))?;
        self.replace(MANIFEST, &text)
    }

    /// Takes the lock and writes down `holder`, who has it.
    pub(crate) fn lock(&self, holder: &str) -> Result<Lock, Error> {
        let mut file =
            self.written(LOCK, Access::ReadWriteOrMake(NEW_FILE), "opening the lock file")?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Whoever holds the lock may be writing this very line: then it is not known.
                let read = file.take(4096).read_to_string(&mut text);
                let known = read.is_ok() && !text.trim().is_empty();
                let holder = if known { text.trim() } else { "a process that did not say which" };
                let holder = fault::one_line(holder).into_owned();
                return Err(Error::new(self.path(), Problem::Locked { holder }));
            }
            Err(errno) => return Err(Error::io(self.path(), "locking the folder", errno.into())),
        }
        // Who holds it is a courtesy; the lock is the flock.
        file.set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(|error| Error::io(self.path(), "writing the lock file", error))?;
        Ok(Lock(file))
    }

    /// Opens a file to write to it.
    fn written(&self, name: &str, access: Access, action: &'static str) -> Result<File, Error> {
        let opened = self.0.file(name, access);
        opened.map_err(|refused| {
            self.error(name, refused, |path, error| Error::io(path, action, error))
        })
    }

    fn error(
        &self,
        name: &str,
        refused: Refused,
        io: impl FnOnce(&Path, io::Error) -> Error,
    ) -> Error {
        // A text that is no name is told by its folder.
        let path = self.0.path_of(name.as_ref()).unwrap_or_else(|_| self.path().to_owned());
        match refused {
            Refused::Irregular(what) => Error::new(&path, Problem::Irregular { what }),
            Refused::Io(error) => io(&path, error),
        }
    }
}

fn too_long(path: &Path, limit: u64, verb: &'static str, remedy: &'static str) -> Error {
    let what = "the length in bytes";
    Error::new(path, Problem::TooLarge { what, limit, verb, remedy })
}

/// The lock of a folder: held as long as this lives, let go by the kernel when the process dies.
/// The file stays: removing it would let two processes lock two different files.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    /// Closing the file would not do: a process that is being started holds a copy of it until its
    /// exec, and the lock with it.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// An error of reading: "no permission to write" would be the wrong advice.
pub(crate) fn reading(path: &Path, action: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotADirectory {
        return Error::new(path, Problem::NotAFolder);
    }
    Error::new(path, Problem::Io { action, error: source })
}
