//! A file that is yet to get its name.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
use rustix::io::Errno;
use tempfile::{Builder, NamedTempFile};

use crate::place::{check_name, not_a_file};

/// Longer names (in bytes) leave no room for the rest of a temporary file's.
const MAX_STEM: usize = 200;
/// The mode of a new file before the umask.
const NEW: u32 = 0o666;

/// A file beside its target, which becomes the target or nothing.
#[derive(Debug)]
pub(crate) enum New {
    /// It has no name: the kernel removes it, whatever ends this process (open(2), `O_TMPFILE`).
    Nameless(File),
    /// The file system needs a name.
    Named(NamedTempFile),
}

impl New {
    pub(crate) fn beside(target: &Path) -> io::Result<New> {
        let (folder, _) = split(target)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match open(folder, flags, Mode::from_raw_mode(NEW)) {
            Ok(file) => Ok(New::Nameless(file.into())),
            // A file with a name fails for the same reason, and the error would have that name.
            Err(
                error @ (Errno::NOENT
                | Errno::NOTDIR
                | Errno::ACCESS
                | Errno::ROFS
                | Errno::NOSPC
                | Errno::DQUOT
                | Errno::MFILE
                | Errno::NFILE),
            ) => Err(error.into()),
            // The file system has no files without names.
            Err(_) => named(target, |builder, folder| {
                builder.permissions(Permissions::from_mode(NEW)).tempfile_in(folder)
            })
            .map(New::Named),
        }
    }

    pub(crate) fn file(&self) -> &File {
        match self {
            New::Nameless(file) => file,
            New::Named(named) => named.as_file(),
        }
    }

    /// Gives it the target's name.
    pub(crate) fn publish(self, target: &Path) -> io::Result<()> {
        let file = match self {
            New::Nameless(file) => file,
            New::Named(named) => return persist(named, target),
        };
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = |path: &Path| -> io::Result<()> {
            Ok(linkat(CWD, own.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
        };
        match link(target) {
            Ok(()) => Ok(()),
            // A link replaces nothing, and a rename needs a name.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                persist(named(target, |builder, folder| builder.make_in(folder, link))?, target)
            }
            // No /proc, or a file of root's after a change of the user (proc_sys_fs(5), protected_hardlinks).
            Err(_) => copy(file, target),
        }
    }
}

pub(crate) fn copy(mut file: File, target: &Path) -> io::Result<()> {
    let mut copy = named(target, |builder, folder| builder.tempfile_in(folder))?;
    file.rewind()?;
    io::copy(&mut file, copy.as_file_mut())?;
    copy.as_file().set_permissions(file.metadata()?.permissions())?;
    copy.as_file().sync_all()?;
    persist(copy, target)
}

fn persist<F>(named: NamedTempFile<F>, target: &Path) -> io::Result<()> {
    named.persist(target).map(drop).map_err(|error| error.error)
}

/// A file beside the target that `make` makes, under a name that nothing has.
fn named<F>(
    target: &Path,
    make: impl FnOnce(&mut Builder<'_, '_>, &Path) -> io::Result<NamedTempFile<F>>,
) -> io::Result<NamedTempFile<F>> {
    let (folder, mut prefix) = split(target)?;
    if prefix.len() > MAX_STEM {
        prefix = OsString::from("output");
    }
    prefix.push(".");
    make(Builder::new().prefix(&prefix).suffix(".partial"), folder)
}

pub(crate) fn split(target: &Path) -> io::Result<(&Path, OsString)> {
    check_name(target)?;
    let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(not_a_file());
    };
    Ok((folder, name.to_owned()))
}
