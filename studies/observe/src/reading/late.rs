//! Files that are written at the end.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use capture::{Identity, Keeper};
use fault::{Fault, OrProblem, Problem, WhileDoing};
use outfile::{Held, OutFile};

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

/// Gives a folder for rows that root has just made to whom the process will run as. `is_new`: it was not
/// there before.
///
/// # Errors
/// It belongs to root and was there before, or cannot be given.
pub fn hand_over(folder: &Path, is_new: bool) -> Result<(), Problem> {
    let failed = || format!("{} cannot be given to the user who called", folder.display());
    // By descriptor: a name may stand for something else by the time that it is given away.
    let folder_at = |path: &Path| {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        File::options().read(true).custom_flags(flags).open(path)
    };
    let Some(Identity { user, group }) = capture::identity_after() else { return Ok(()) };
    let owner = std::fs::metadata(folder).map(|metadata| metadata.uid());
    if !is_new && owner.blame(Fault::Results).while_doing(failed)? == 0 {
        let shown = folder.display();
        let what = format!("{shown} belongs to root, and a capture continues as user {user}");
        let remedy = format!("name a new folder, or `chown -R {user} {shown}`");
        return Err(Problem::new(Fault::Results, what).with_remedy(remedy));
    }
    for entry in ["", "connections", "endings"] {
        let opened = match folder_at(&folder.join(entry)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened.blame(Fault::Results).while_doing(failed)?,
        };
        let owner = opened.metadata().map(|metadata| metadata.uid());
        if owner.is_ok_and(|owner| owner == 0) {
            let given = fchown(&opened, Some(user), Some(group));
            given.blame(Fault::Results).while_doing(failed)?;
        }
    }
    Ok(())
}
