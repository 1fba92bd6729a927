//! Files that are written at the end.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use capture::{Identity, Keeper};
use fault::{Fault, OrProblem, Problem, WhileDoing};
use outfile::{Folder, Held, OutFile};

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
    /// Looks whether the file can be written. `as_root`: rights are given up before it is. If nobody called
    /// root, the file is opened now, and a process is started that keeps them; call it before any other thread
    /// is started. For a caller of root, call it after rights are given up.
    ///
    /// # Errors
    /// It cannot be.
    pub fn claim(path: &Path, as_root: bool) -> Result<Late, Problem> {
        let opened = match capture::heir().filter(|_| as_root) {
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

/// Makes a folder of results if nobody called root, and gives it to whom the process will run as. Write below
/// its descriptor: its name may stand for something else by then. `None` where the folder is to be made after
/// rights are given up.
///
/// # Errors
/// It cannot be made, is a link, or belongs to root and was there before.
pub fn hand_over(folder: &Path) -> Result<Option<Folder>, Problem> {
    let Some(identity) = capture::heir() else { return Ok(None) };
    let made = Folder::make(folder).map_err(io::Error::from).blame(Fault::Results);
    let (made, is_new) =
        made.while_doing(|| format!("the folder {} cannot be made", folder.display()))?;
    let given = match is_new {
        true => made.give(identity.user, identity.group).map(|()| identity.user),
        false => made.owner(),
    };
    let failed = || format!("{} cannot be given to the user who measures", folder.display());
    if given.blame(Fault::Results).while_doing(failed)? == 0 {
        return Err(of_root(folder, identity));
    }
    Ok(Some(made))
}

/// Looks whether a folder of results that is there, if it is, may be written to after rights are given up.
///
/// # Errors
/// It belongs to root.
pub fn may_continue_in(folder: &Path) -> Result<(), Problem> {
    match capture::heir() {
        Some(identity) if std::fs::metadata(folder).is_ok_and(|found| found.uid() == 0) => {
            Err(of_root(folder, identity))
        }
        _ => Ok(()),
    }
}

fn of_root(folder: &Path, Identity { user, .. }: Identity) -> Problem {
    let shown = folder.display();
    let what = format!("{shown} belongs to root, and a capture continues as user {user}");
    let remedy = format!("name a new folder, or `chown -R {user} {shown}`");
    Problem::new(Fault::Results, what).with_remedy(remedy)
}
