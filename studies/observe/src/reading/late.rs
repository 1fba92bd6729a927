//! Files that are written at the end.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use capture::{Identity, Keeper};
use fault::{Fault, OrProblem, Problem, WhileDoing};
use outfile::{Held, OutFile};
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// A file that is written at the end: claimed at the beginning, so that one that cannot be written is
/// known before time is spent.
pub struct Late {
    path: PathBuf,
    open: Open,
}

/// What is kept of it until then.
enum Open {
    /// Begun as root. A process that stays root gives it its name.
    Kept(File, Keeper),
    /// A device or a FIFO: who reads it is there.
    InPlace(OutFile),
    /// Nothing half-written is left if the program is killed.
    Not,
}

impl Late {
    /// Looks whether the file can be written. `keep_open`: rights are given up before it is, so it is
    /// opened now, and a process is started that keeps them; call it before any other thread is started.
    ///
    /// # Errors
    /// It cannot be.
    pub fn claim(path: &Path, keep_open: bool) -> Result<Late, Problem> {
        let opened = match capture::identity_after().filter(|_| keep_open) {
            Some(identity) => keep(path, identity),
            None => OutFile::create(path).map(|file| match file.is_in_place() {
                true => Open::InPlace(file),
                false => Open::Not,
            }),
        };
        let open = opened.map_err(|error| {
            let what = format!("{} cannot be written", path.display());
            Problem::of(Fault::Results, error).while_doing(what).with_remedy("name another file")
        })?;
        Ok(Late { path: path.to_owned(), open })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it; whole or not at all, unless it is a device or a FIFO.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, text: &str) -> Result<(), Problem> {
        let written = match self.open {
            Open::Kept(mut file, keeper) => file
                .write_all(text.as_bytes())
                .and_then(|()| file.sync_all())
                .and_then(|()| keeper.finish()),
            Open::InPlace(mut file) => file.write_all(text.as_bytes()),
            Open::Not => outfile::write(&self.path, text.as_bytes()),
        };
        let doing = || format!("{} cannot be written", self.path.display());
        written.blame(Fault::Results).while_doing(doing)
    }
}

/// Begins an output as root, for whom the process will run as.
fn keep(path: &Path, Identity { user, group }: Identity) -> io::Result<Open> {
    let held = Held::create(path, (user, group))?;
    let file = held.file()?;
    Ok(Open::Kept(file, Keeper::begin(move || held.publish())?))
}

/// A folder of results that root makes, for whom the process will run as.
pub struct HandOver {
    /// By descriptor: the name may stand for something else by the time that it is given away.
    folder: File,
    shown: PathBuf,
    identity: Identity,
}

impl HandOver {
    /// Makes the folder if it is not there. `None` where no rights are going to be given up.
    ///
    /// # Errors
    /// It cannot be made, is a link, or belongs to root and was there before.
    pub fn begin(folder: &Path) -> Result<Option<HandOver>, Problem> {
        let Some(identity) = capture::identity_after() else { return Ok(None) };
        let made = make(folder).blame(Fault::Results);
        let (opened, is_new) =
            made.while_doing(|| format!("the folder {} cannot be made", folder.display()))?;
        let shown = folder.to_owned();
        let hand_over = HandOver { folder: opened, shown, identity };
        let owner = hand_over.folder.metadata().map(|metadata| metadata.uid());
        if !is_new && owner.blame(Fault::Results).while_doing(|| hand_over.failed())? == 0 {
            let (shown, user) = (folder.display(), identity.user);
            let what = format!("{shown} belongs to root, and a capture continues as user {user}");
            let remedy = format!("name a new folder, or `chown -R {user} {shown}`");
            return Err(Problem::new(Fault::Results, what).with_remedy(remedy));
        }
        Ok(Some(hand_over))
    }

    /// Gives the folder, and the folders of rows that root made in it.
    ///
    /// # Errors
    /// One cannot be given.
    pub fn finish(self) -> Result<(), Problem> {
        self.give(&self.folder)?;
        for name in ["connections", "endings"] {
            match openat(&self.folder, name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) => {}
                opened => {
                    let opened = opened.map_err(io::Error::from).blame(Fault::Results);
                    self.give(&opened.while_doing(|| self.failed())?.into())?;
                }
            }
        }
        Ok(())
    }

    fn give(&self, folder: &File) -> Result<(), Problem> {
        let Identity { user, group } = self.identity;
        if folder.metadata().is_ok_and(|metadata| metadata.uid() == 0) {
            let given = fchown(folder, Some(user), Some(group));
            given.blame(Fault::Results).while_doing(|| self.failed())?;
        }
        Ok(())
    }

    fn failed(&self) -> String {
        format!("{} cannot be given to the user who called", self.shown.display())
    }
}

/// A folder, and no link to one.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes and opens a folder below its parent's descriptor. Whether it was not there before.
fn make(folder: &Path) -> io::Result<(File, bool)> {
    let whole = std::path::absolute(folder)?;
    let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name"));
    };
    std::fs::create_dir_all(parent)?;
    let parent = File::open(parent)?;
    let is_new = match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno.into()),
    };
    let opened = File::from(openat(&parent, name, FOLDER, Mode::empty())?);
    // What took the name of a folder just made is not that folder.
    let is_ours =
        opened.metadata()?.uid() == 0 && std::fs::read_dir(fd_path(&opened))?.next().is_none();
    Ok((opened, is_new && is_ours))
}

fn fd_path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
