//! A results folder and the files in it, opened below its descriptor: no link in it is followed.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{Error, Manifest, Problem, parse_manifest};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SAMPLES: &str = "samples.jsonl";
pub(crate) const LOCK: &str = "lock";

/// Most bytes of a manifest. It has some kilobytes.
pub const MAX_MANIFEST: u64 = 2 << 20;

/// The end of the name of a file that is not whole yet. Such names begin with a dot.
const PARTIAL: &str = ".partial";
/// The mode of a new file and of a new folder before the umask.
const NEW_FILE: u32 = 0o666;
const NEW_FOLDER: u32 = 0o777;
/// Read, write and execute, without setuid and the like.
const ACCESS: u32 = 0o777;
/// A name that another process takes at the same time is drawn anew, this often.
const DRAWS: usize = 16;

/// An open folder of results.
///
/// Links in the name that the user gave are followed. Links in the folder are not, and only regular
/// files in it are read or written: a link, a device or a pipe in the place of a file is an error.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens the folder that the user named.
    ///
    /// # Errors
    /// [`Problem::NotResults`] where nothing has this name, [`Problem::NotAFolder`], [`Problem::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Folder, Error> {
        let path = path.as_ref();
        match rustix::fs::open(path, folder_flags(), Mode::empty()) {
            Ok(handle) => Ok(Folder { handle, path: path.to_owned() }),
            Err(Errno::NOENT) => Err(Error::new(path, Problem::NotResults { missing: MANIFEST })),
            Err(errno) => Err(reading(path, "opening it", errno.into())),
        }
    }

    /// The name that the user gave.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in this one.
    ///
    /// # Errors
    /// [`Problem::Irregular`] for a link, [`Problem::NotAFolder`], [`Problem::Io`].
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        let path = self.path_of(name)?;
        let flags = folder_flags() | OFlags::NOFOLLOW;
        match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Folder { handle, path }),
            Err(Errno::LOOP | Errno::NOTDIR) if self.is_link(name) => Err(irregular(&path, LINK)),
            Err(errno) => Err(reading(&path, "opening it", errno.into())),
        }
    }

    /// As [`Folder::folder`]; the folder is made if there is none.
    ///
    /// # Errors
    /// As for [`Folder::folder`], and what forbids to make it.
    pub fn make_folder(&self, name: &str) -> Result<Folder, Error> {
        let path = self.path_of(name)?;
        match rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(NEW_FOLDER)) {
            Ok(()) | Err(Errno::EXIST) => self.folder(name),
            Err(errno) => Err(Error::io(&path, "making the folder", errno.into())),
        }
    }

    /// Reads a file of at most `limit` bytes, which are counted while they are read.
    ///
    /// # Errors
    /// [`Problem::Irregular`], [`Problem::TooLarge`], [`Problem::Io`].
    pub fn read(&self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let path = self.path_of(name)?;
        let mut bytes = Vec::new();
        self.open_file(name)?
            .take(limit.saturating_add(1))
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
        self.regular(name, OFlags::RDONLY, "opening it")
    }

    /// Opens a file whose end is written to; `new` makes one if there is none.
    pub(crate) fn append(&self, name: &str, new: bool) -> Result<File, Error> {
        let create = if new { OFlags::CREATE } else { OFlags::empty() };
        self.regular(name, OFlags::WRONLY | OFlags::APPEND | create, "opening it for writing")
    }

    /// Replaces a file: at any moment, a crash included, there is the old one or the new one. A link of
    /// this name is replaced itself.
    ///
    /// # Errors
    /// [`Problem::DiskFull`], [`Problem::Irregular`] where a folder has this name, [`Problem::Io`].
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path_of(name)?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::IsADirectory => irregular(&path, FOLDER),
            _ => Error::io(&path, "writing it", error),
        };
        let before = self.stat(name).filter(|stat| kind(stat) == FileType::RegularFile);
        let (partial, mut file) = self.new_partial(name).map_err(failed)?;
        let mut write = || {
            if let Some(before) = before {
                file.set_permissions(Permissions::from_mode(before.st_mode & ACCESS))?;
            }
            file.write_all(bytes)?;
            // The name may only point to bytes that are on the disk.
            file.sync_all()?;
            Ok(rustix::fs::renameat(&self.handle, &partial, &self.handle, name)?)
        };
        if let Err(error) = write() {
            self.remove(&partial);
            return Err(failed(error));
        }
        self.sync()
    }

    /// Removes what killed processes left of [`Folder::replace`].
    pub fn clear_partial(&self) {
        let Ok(entries) = Dir::read_from(&self.handle) else { return };
        for entry in entries.flatten() {
            let bytes = entry.file_name().to_bytes();
            if !(bytes.starts_with(b".") && bytes.ends_with(PARTIAL.as_bytes())) {
                continue;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            // Who writes it holds a lock on it.
            let left = self.regular(name, OFlags::RDONLY, "opening it").is_ok_and(|file| {
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            });
            if left {
                self.remove(name);
            }
        }
    }

    /// Whether anything has this name, a link included.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        self.stat(name).is_some()
    }

    /// Whether a file of this name has content.
    pub(crate) fn has_content(&self, name: &str) -> bool {
        self.stat(name).is_some_and(|stat| kind(&stat) == FileType::RegularFile && stat.st_size > 0)
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        let failed = |errno: Errno| Error::io(&self.path, "looking into it", errno.into());
        for entry in Dir::read_from(&self.handle).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
    }

    /// Removes the folder `name` if nothing is in it.
    pub(crate) fn remove_folder(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR);
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        match rustix::fs::fsync(&self.handle) {
            // Some file systems cannot sync a folder; theirs is then as safe as it gets.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(Error::io(&self.path, "syncing the folder", errno.into())),
        }
    }

    /// Reads the manifest.
    pub(crate) fn manifest(&self) -> Result<Manifest, Error> {
        let text = self.read(MANIFEST, MAX_MANIFEST).map_err(|error| match error.problem {
            Problem::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Error::new(&self.path, Problem::NotResults { missing: MANIFEST })
            }
            problem => Error { problem, ..error },
        })?;
        parse_manifest(&text).map_err(|problem| Error::new(&self.path.join(MANIFEST), problem))
    }

    /// Replaces the manifest. One that could not be read back is refused.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let path = self.path.join(MANIFEST);
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
        let flags = OFlags::RDWR | OFlags::CREATE;
        let mut file = self.regular(LOCK, flags, "opening the lock file")?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Whoever holds the lock may be writing this very line: then it is not known.
                let read = file.take(4096).read_to_string(&mut text);
                let known = read.is_ok() && !text.trim().is_empty();
                let holder = if known { text.trim() } else { "a process that did not say which" };
                let holder = fault::one_line(holder).into_owned();
                return Err(Error::new(&self.path, Problem::Locked { holder }));
            }
            Err(errno) => return Err(Error::io(&self.path, "locking the folder", errno.into())),
        }
        // Who holds it is a courtesy; the lock is the flock.
        file.set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(|error| Error::io(&self.path, "writing the lock file", error))?;
        Ok(Lock(file))
    }

    /// Opens a regular file that has no other name elsewhere if it is to be written.
    fn regular(&self, name: &str, flags: OFlags, action: &'static str) -> Result<File, Error> {
        let path = self.path_of(name)?;
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let failed = |errno: Errno| match errno {
            Errno::LOOP => irregular(&path, LINK),
            Errno::ISDIR => irregular(&path, FOLDER),
            // A pipe or a socket with nobody at its other end.
            Errno::NXIO => irregular(&path, DEVICE),
            errno if writes => Error::io(&path, action, errno.into()),
            errno => reading(&path, action, errno.into()),
        };
        // A pipe is opened without waiting for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mode = Mode::from_raw_mode(NEW_FILE);
        let file = rustix::fs::openat(&self.handle, name, flags, mode).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        match kind(&stat) {
            FileType::RegularFile if writes && stat.st_nlink > 1 => Err(irregular(&path, SHARED)),
            FileType::RegularFile => Ok(file.into()),
            FileType::Directory => Err(irregular(&path, FOLDER)),
            _ => Err(irregular(&path, DEVICE)),
        }
    }

    /// A new file beside `name`, under a name that nobody can know before; locked while it is open.
    fn new_partial(&self, name: &str) -> io::Result<(String, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(NEW_FILE);
        for _ in 0..DRAWS {
            let drawn = RandomState::new().hash_one(name);
            let partial = format!(".{name}.{drawn:016x}{PARTIAL}");
            match rustix::fs::openat(&self.handle, &partial, flags | OFlags::NOFOLLOW, mode) {
                Ok(file) => {
                    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok((partial, file.into()));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn stat(&self, name: &str) -> Option<Stat> {
        rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn is_link(&self, name: &str) -> bool {
        self.stat(name).is_some_and(|stat| kind(&stat) == FileType::Symlink)
    }

    /// Where a file of this name lies. A name is one component: nothing outside the folder has one.
    fn path_of(&self, name: &str) -> Result<PathBuf, Error> {
        let is_name = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
        match is_name {
            true => Ok(self.path.join(name)),
            false => Err(irregular(&self.path, "a place outside")),
        }
    }
}

const LINK: &str = "a link";
const FOLDER: &str = "a folder";
const DEVICE: &str = "a device, a pipe or a socket";
const SHARED: &str = "a file that has another name, too";

fn irregular(path: &Path, what: &'static str) -> Error {
    Error::new(path, Problem::Irregular { what })
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
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
