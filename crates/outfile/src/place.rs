//! The place to which a path leads.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, fcntl_getfl, fstatfs, open, openat, readlinkat};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, geteuid, getpid, pidfd_getfd, pidfd_open};

use crate::new::split;

/// As the kernel's limit (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// Sticky and writable by all, as /tmp is.
const SHARED: u32 = STICKY | 0o002;
const STICKY: u32 = 0o1000;

/// The end of a path, links followed.
#[derive(Debug)]
pub(crate) enum Found {
    /// A device, a FIFO or a folder.
    Special(PathBuf),
    /// A link of /proc, whose text need not be the name of its target (proc_pid_fd(5)).
    OfProc(PathBuf),
    /// A regular file, by a path without links at its end.
    File(PathBuf, Metadata),
    /// A new file.
    Nothing(PathBuf),
}

/// Follows links as the kernel does with `fs.protected_symlinks` (proc_sys_fs(5)), whatever its value is.
pub(crate) fn resolve(path: &Path) -> io::Result<Found> {
    check_name(path)?;
    let mut at = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        // The system follows the links in a folder's path: none is cut off here, nor is `..`.
        let (parent, name) = split(&at)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let folder = File::from(open(parent, flags | OFlags::DIRECTORY, Mode::empty())?);
        // Checked and read by descriptor: no other link takes its place in between.
        let opened = match openat(&folder, &name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(opened) => File::from(opened),
            Err(rustix::io::Errno::NOENT) => return Ok(Found::Nothing(at)),
            Err(errno) => return Err(errno.into()),
        };
        let found = opened.metadata()?;
        if found.is_file() {
            return match is_kept(&found, &folder.metadata()?, geteuid().as_raw()) {
                true => Err(io::Error::new(ErrorKind::PermissionDenied, PLANTED)),
                false => Ok(Found::File(at, found)),
            };
        }
        if found.is_symlink() && fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC {
            return Ok(Found::OfProc(at));
        }
        if is_planted(&found, &folder.metadata()?) {
            return Err(io::Error::new(ErrorKind::PermissionDenied, PLANTED));
        }
        if !found.is_symlink() {
            return Ok(Found::Special(at));
        }
        // The kernel knows owners that this user namespace has no numbers for.
        match fs::metadata(&at) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let text = readlinkat(&opened, "", Vec::new())?;
        let text = PathBuf::from(OsString::from_vec(text.into_bytes()));
        check_name(&text)?;
        at = parent.join(text);
    }
    Err(io::Error::other("too many links lead to one another"))
}

const PLANTED: &str = "it belongs to another user, in a folder that several users write to";

/// Whether a user other than root may write to a file and not replace it: in a sticky folder only its owner
/// and the folder's may (unlink(2)).
pub(crate) fn is_kept(found: &Metadata, folder: &Metadata, user: u32) -> bool {
    let is_sticky = folder.mode() & STICKY != 0;
    is_sticky && ![0, found.uid(), folder.uid()].contains(&user)
}

/// Whether a link or a FIFO is of a user who may have planted it for this one to write through
/// (`may_follow_link` of the kernel).
fn is_planted(found: &Metadata, folder: &Metadata) -> bool {
    let is_trusted = found.uid() == geteuid().as_raw() || found.uid() == folder.uid();
    folder.mode() & SHARED == SHARED && !is_trusted
}

/// Checks that a path can be the name of a file: it ends neither in `/` nor in `.` or `..`.
///
/// # Errors
/// It can only be a folder's.
pub fn check_name(path: &Path) -> io::Result<()> {
    let last = path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next();
    match last {
        None | Some(b"" | b"." | b"..") => Err(not_a_file()),
        Some(_) => Ok(()),
    }
}

pub(crate) fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "not the name of a file")
}

/// Opens a device or a FIFO; a FIFO waits for its reader.
pub(crate) fn open_special(path: &Path) -> io::Result<File> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    let file = File::options().write(true).custom_flags(no_follow).open(path)?;
    match file.metadata()?.is_file() {
        // It took the name just now.
        true => Err(io::Error::other("another file took its name")),
        false => Ok(file),
    }
}

/// Opens the target of a link of /proc. It is written to from the position of this process's descriptor,
/// as by `>&N` of a shell, and any other file behind its end.
pub(crate) fn open_of_proc(path: &Path) -> io::Result<File> {
    let Some(descriptor) = descriptor(path)?.and_then(|number| duplicate(number).ok()) else {
        return File::options().append(true).open(path);
    };
    let mode = fcntl_getfl(&descriptor)? & OFlags::RWMODE;
    match mode == OFlags::WRONLY || mode == OFlags::RDWR {
        true => Ok(descriptor.into()),
        false => Err(io::Error::new(ErrorKind::PermissionDenied, "it is open to be read only")),
    }
}

/// The number of this process's descriptor that a link of /proc stands for.
fn descriptor(path: &Path) -> io::Result<Option<RawFd>> {
    let (folder, name) = split(path)?;
    let folder = fs::canonicalize(folder)?;
    let is_own = folder.starts_with(fs::canonicalize("/proc/self")?);
    let is_number = is_own && folder.file_name() == Some(OsStr::new("fd"));
    Ok(name.to_str().filter(|_| is_number).and_then(|name| name.parse().ok()))
}

fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    match number {
        1 => io::stdout().as_fd().try_clone_to_owned(),
        2 => io::stderr().as_fd().try_clone_to_owned(),
        other => {
            let own = pidfd_open(getpid(), PidfdFlags::empty())?;
            Ok(pidfd_getfd(own, other, PidfdGetfdFlags::empty())?)
        }
    }
}

/// Whether two paths lead to one regular file, or to one name that no file has yet. Devices, pipes and
/// folders are never the same.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (Identity::of(one), Identity::of(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// An output by device and inode number: its own, or its folder's and a name.
#[derive(PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    New(u64, u64, OsString),
}

impl Identity {
    fn of(path: &Path) -> Option<Identity> {
        if let Ok(found) = fs::metadata(path) {
            return found.is_file().then(|| Identity::File(found.dev(), found.ino()));
        }
        let Ok(Found::Nothing(path)) = resolve(path) else { return None };
        let (folder, name) = split(&path).ok()?;
        let folder = fs::metadata(folder).ok()?;
        Some(Identity::New(folder.dev(), folder.ino(), name))
    }
}
