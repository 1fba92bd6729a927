//! Files that are written at the end.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use capture::Identity;
use fault::{Fault, OrProblem, Problem, WhileDoing};

/// A file that is written at the end: claimed at the beginning, so that one that cannot be written is
/// known before time is spent.
pub struct Late {
    path: PathBuf,
    file: Option<File>,
}

impl Late {
    /// Looks whether the file can be written. `keep_open`: rights are given up before it is, so it is
    /// opened now.
    ///
    /// # Errors
    /// It cannot be.
    pub fn claim(path: &Path, keep_open: bool) -> Result<Late, Problem> {
        let was_there = path.exists();
        let opened = File::options().write(true).create(true).truncate(keep_open).open(path);
        let file = opened.map_err(|error| {
            let what = format!("{} cannot be written", path.display());
            Problem::of(Fault::Results, error).while_doing(what).with_remedy("name another file")
        })?;
        if !was_there && !keep_open {
            // Nothing half-written is left if the program is killed.
            let _ = std::fs::remove_file(path);
        }
        Ok(Late { path: path.to_owned(), file: keep_open.then_some(file) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it; whole or not at all, unless it was kept open.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, text: &str) -> Result<(), Problem> {
        let written = match self.file {
            Some(mut file) => file.write_all(text.as_bytes()),
            None => replace(&self.path, text),
        };
        let doing = || format!("{} cannot be written", self.path.display());
        written.blame(Fault::Results).while_doing(doing)
    }
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut new = tempfile::NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.persist(path)?;
    Ok(())
}

/// Gives a folder for rows that root has just made to whom the process will run as. `is_new`: it was not
/// there before.
///
/// # Errors
/// It belongs to root and was there before, or cannot be given.
pub fn hand_over(folder: &Path, is_new: bool) -> Result<(), Problem> {
    let failed = || format!("{} cannot be given to the user who called", folder.display());
    let owner = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.uid());
    let Some(Identity { user, group }) = capture::identity_after() else { return Ok(()) };
    if !is_new && owner(folder).blame(Fault::Results).while_doing(failed)? == 0 {
        let shown = folder.display();
        let what = format!("{shown} belongs to root, and a capture continues as user {user}");
        let remedy = format!("name a new folder, or `chown -R {user} {shown}`");
        return Err(Problem::new(Fault::Results, what).with_remedy(remedy));
    }
    for entry in ["", "connections", "endings"] {
        let path = folder.join(entry);
        if owner(&path).is_ok_and(|owner| owner == 0) {
            let given = chown(&path, Some(user), Some(group));
            given.blame(Fault::Results).while_doing(failed)?;
        }
    }
    Ok(())
}
