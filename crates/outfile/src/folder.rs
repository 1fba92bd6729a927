//! A folder that strangers may have written to, reached below its descriptor.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

/// The mode of a new folder before the umask.
const NEW_FOLDER: u32 = 0o777;
/// The end of the name of a file that is not whole yet. Such names begin with a dot.
const PARTIAL: &str = ".partial";
/// A name that another process takes at the same time is drawn anew, this often.
const DRAWS: usize = 16;

/// An open folder.
///
/// It follows links in the name that the user gave, and none inside the folder. It opens regular files only:
/// a link, a device or a pipe in the place of a file is [`Refused::Irregular`].
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// Purpose of an opened file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read.
    Read,
    /// To write behind its end.
    Append,
    /// As [`Access::Append`]; a missing file is made with this mode.
    AppendOrMake(u32),
    /// To read and write; a missing file is made with this mode.
    ReadWriteOrMake(u32),
}

/// A file or folder inside a [`Folder`] was not opened.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The name stands for something that is never opened.
    #[error("it is {0}")]
    Irregular(&'static str),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Refused {
        Refused::Io(errno.into())
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> io::Error {
        match refused {
            Refused::Io(error) => error,
            irregular @ Refused::Irregular(_) => io::Error::other(irregular),
        }
    }
}

impl Folder {
    /// Opens the folder that the user named.
    ///
    /// # Errors
    /// The system's: nothing has this name, or no folder has it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Folder> {
        let path = path.as_ref();
        let handle = rustix::fs::open(path, folder_flags(), Mode::empty())?;
        Ok(Folder { handle, path: path.to_owned() })
    }

    /// Makes the folder that the user named, and its parents. Follows no link at its name. Returns whether it
    /// is new.
    ///
    /// # Errors
    /// The system's; [`Refused::Irregular`] for a link.
    pub fn make(path: impl AsRef<Path>) -> Result<(Folder, bool), Refused> {
        let shown = path.as_ref();
        let path = std::path::absolute(shown)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            let no_name = io::Error::new(io::ErrorKind::InvalidInput, "it has no name");
            return Err(no_name.into());
        };
        std::fs::create_dir_all(parent)?;
        let (made, is_new) = Folder::open(parent)?.folder_or_new(name)?;
        // Another folder may have taken the name of a new one.
        let is_ours =
            made.owner()? == rustix::process::geteuid().as_raw() && made.names()?.is_empty();
        Ok((Folder { path: shown.to_owned(), ..made }, is_new && is_ours))
    }

    /// Returns the user number of its owner.
    ///
    /// # Errors
    /// The system's.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(rustix::fs::fstat(&self.handle)?.st_uid)
    }

    /// Gives it to a user and a group.
    ///
    /// # Errors
    /// The system's.
    pub fn give(&self, user: u32, group: u32) -> io::Result<()> {
        std::os::unix::fs::fchown(&self.handle, Some(user), Some(group))
    }

    /// The name by which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in this one.
    ///
    /// # Errors
    /// [`Refused::Irregular`] for a link; the system's.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> Result<Folder, Refused> {
        let name = name.as_ref();
        let path = self.path_of(name)?;
        let flags = folder_flags() | OFlags::NOFOLLOW;
        match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Folder { handle, path }),
            Err(Errno::LOOP | Errno::NOTDIR) if self.kind(name) == Some(FileType::Symlink) => {
                Err(Refused::Irregular(LINK))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens the folder `name` in this one, and makes it if it is missing.
    ///
    /// # Errors
    /// As for [`Folder::folder`].
    pub fn make_folder(&self, name: impl AsRef<OsStr>) -> Result<Folder, Refused> {
        self.folder_or_new(name.as_ref()).map(|(folder, _)| folder)
    }

    /// As [`Folder::make_folder`], and whether it was missing.
    fn folder_or_new(&self, name: &OsStr) -> Result<(Folder, bool), Refused> {
        self.path_of(name)?;
        let is_new = match rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(NEW_FOLDER))
        {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        Ok((self.folder(name)?, is_new))
    }

    /// Opens a regular file. One that is to be written must have no second name elsewhere.
    ///
    /// # Errors
    /// [`Refused::Irregular`]; the system's.
    pub fn file(&self, name: impl AsRef<OsStr>, access: Access) -> Result<File, Refused> {
        let name = name.as_ref();
        self.path_of(name)?;
        let (flags, mode) = access.flags();
        // A pipe is opened without waiting for its other end.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(mode))
            .map_err(refused)?;
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if access != Access::Read && stat.st_nlink > 1 => {
                Err(Refused::Irregular(SHARED))
            }
            FileType::RegularFile => Ok(file.into()),
            FileType::Directory => Err(Refused::Irregular(FOLDER)),
            _ => Err(Refused::Irregular(DEVICE)),
        }
    }

    /// Makes a file whose drawn name nobody can know before, and locks it while it is open.
    /// [`Folder::rename`] or [`Folder::rename_new`] gives it the name `for_name`; [`Folder::clear_partial`] removes what a killed
    /// process left.
    ///
    /// # Errors
    /// The system's.
    pub fn new_partial(&self, for_name: &str, mode: u32) -> Result<(String, File), Refused> {
        self.path_of(for_name.as_ref())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        for _ in 0..DRAWS {
            let drawn = RandomState::new().hash_one(for_name);
            let partial = format!(".{for_name}.{drawn:016x}{PARTIAL}");
            let flags = flags | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(mode);
            match rustix::fs::openat(&self.handle, &partial, flags, mode) {
                Ok(file) => {
                    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    return Ok((partial, file.into()));
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::Error::from(io::ErrorKind::AlreadyExists).into())
    }

    /// Writes a whole new file and gives it the name: a link or a FIFO of that name is replaced itself.
    ///
    /// # Errors
    /// The system's; what was there before still is.
    pub fn replace(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), Refused> {
        let (partial, mut file) = self.new_partial(name, mode)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Refused::from);
        let named = written.and_then(|()| self.rename(&partial, name));
        if named.is_err() {
            self.remove(&partial);
        }
        named
    }

    /// Gives `from` the name `to`. A link of that name is replaced itself.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Refused> {
        self.path_of(from.as_ref())?;
        self.path_of(to.as_ref())?;
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Gives `from` the name `to`, which nothing may have yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], also for a link; the system's.
    pub fn rename_new(&self, from: &str, to: &str) -> Result<(), Refused> {
        self.path_of(from.as_ref())?;
        self.path_of(to.as_ref())?;
        let (handle, flags) = (&self.handle, RenameFlags::NOREPLACE);
        match rustix::fs::renameat_with(handle, from, handle, to, flags) {
            // Some file systems lack the flag. A second name never replaces a file either.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(handle, from, handle, to, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(handle, from, AtFlags::empty())?)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Removes what killed processes left of [`Folder::new_partial`].
    pub fn clear_partial(&self) {
        for name in self.names().unwrap_or_default() {
            let bytes = name.as_bytes();
            if !(bytes.starts_with(b".") && bytes.ends_with(PARTIAL.as_bytes())) {
                continue;
            }
            // Its writer holds a lock on it.
            let left = self.file(&name, Access::Read).is_ok_and(|file| {
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
            });
            if left {
                self.remove(name);
            }
        }
    }

    /// Returns the names in it, in no order.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        Ok(names)
    }

    /// Returns the kind and facts of a name, of a link itself; `None` if nothing has it.
    #[must_use]
    pub fn stat(&self, name: impl AsRef<OsStr>) -> Option<Stat> {
        rustix::fs::statat(&self.handle, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns the kind of file that has a name; `None` if nothing has it.
    #[must_use]
    pub fn kind(&self, name: impl AsRef<OsStr>) -> Option<FileType> {
        self.stat(name).map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// Removes a file, or a link itself.
    pub fn remove(&self, name: impl AsRef<OsStr>) {
        let _ = rustix::fs::unlinkat(&self.handle, name.as_ref(), AtFlags::empty());
    }

    /// Removes the folder `name` if it is empty.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) {
        let _ = rustix::fs::unlinkat(&self.handle, name.as_ref(), AtFlags::REMOVEDIR);
    }

    /// Makes the names in it durable.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.handle) {
            // Some file systems cannot sync a folder; theirs is then as safe as it gets.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns the path of a name in it. A name is one component: nothing outside the folder has one.
    ///
    /// # Errors
    /// [`Refused::Irregular`] for every other text.
    pub fn path_of(&self, name: &OsStr) -> Result<PathBuf, Refused> {
        let bytes = name.as_bytes();
        let is_name = !matches!(bytes, b"" | b"." | b"..") && !bytes.contains(&b'/');
        match is_name && !bytes.contains(&0) {
            true => Ok(self.path.join(name)),
            false => Err(Refused::Irregular("a place outside")),
        }
    }
}

impl Access {
    fn flags(self) -> (OFlags, u32) {
        match self {
            Access::Read => (OFlags::RDONLY, 0),
            Access::Append => (OFlags::WRONLY | OFlags::APPEND, 0),
            Access::AppendOrMake(mode) => (OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE, mode),
            Access::ReadWriteOrMake(mode) => (OFlags::RDWR | OFlags::CREATE, mode),
        }
    }
}

const LINK: &str = "a link";
const FOLDER: &str = "a folder";
const DEVICE: &str = "a device, a pipe or a socket";
const SHARED: &str = "a file that has another name, too";

fn refused(errno: Errno) -> Refused {
    match errno {
        Errno::LOOP => Refused::Irregular(LINK),
        Errno::ISDIR => Refused::Irregular(FOLDER),
        // A pipe or a socket with nobody at its other end.
        Errno::NXIO => Refused::Irregular(DEVICE),
        errno => errno.into(),
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}
