//! Files that are written at the end.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use capture::Identity;
use fault::{Fault, OrProblem, Problem, WhileDoing};
use outfile::OutFile;

/// A file that is written at the end: claimed at the beginning, so that one that cannot be written is
/// known before time is spent.
pub struct Late {
    path: PathBuf,
    open: Open,
}

/// What is kept of it until then.
enum Open {
    /// Opened while the process was root.
    AsRoot(File),
    /// A device or a FIFO: who reads it is there.
    InPlace(OutFile),
    /// Nothing half-written is left if the program is killed.
    Not,
}

impl Late {
    /// Looks whether the file can be written. `keep_open`: rights are given up before it is, so it is
    /// opened now.
    ///
    /// # Errors
    /// It cannot be.
    pub fn claim(path: &Path, keep_open: bool) -> Result<Late, Problem> {
        let opened = match capture::identity_after().filter(|_| keep_open) {
            Some(identity) => open_as_root(path, identity).map(Open::AsRoot),
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

    /// Writes it; whole or not at all, unless it was kept open.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, text: &str) -> Result<(), Problem> {
        let written = match self.open {
            Open::AsRoot(mut file) => file.write_all(text.as_bytes()),
            Open::InPlace(mut file) => file.write_all(text.as_bytes()),
            Open::Not => outfile::write(&self.path, text.as_bytes()),
        };
        let doing = || format!("{} cannot be written", self.path.display());
        written.blame(Fault::Results).while_doing(doing)
    }
}

/// Opens an output while the process is root, whoever can write to its folder: what is there must be a
/// regular file by one name, not a link to another. A new one is given to whom the process will run as.
fn open_as_root(path: &Path, Identity { user, group }: Identity) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).custom_flags(libc::O_NOFOLLOW);
    match options.clone().create_new(true).open(path) {
        Ok(new) => fchown(&new, Some(user), Some(group)).map(|()| new),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = options.open(path)?;
            let found = file.metadata()?;
            if !found.is_file() || found.nlink() != 1 {
                return Err(io::Error::other("root writes to regular files of one name only"));
            }
            file.set_len(0).map(|()| file)
        }
        Err(error) => Err(error),
    }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn root_follows_no_link_to_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = fs::metadata(folder.path()).unwrap();
        // Giving a file to oneself needs no right.
        let identity = Identity { user: own.uid(), group: own.gid() };
        fs::write(at("theirs"), "text").unwrap();
        symlink(at("theirs"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        fs::hard_link(at("theirs"), at("second")).unwrap();
        for name in ["link", "dangling", "second", "theirs"] {
            assert!(open_as_root(&at(name), identity).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "text");
        assert!(!at("nowhere").exists());
        fs::remove_file(at("second")).unwrap();
        for name in ["theirs", "new"] {
            let mut file = open_as_root(&at(name), identity).unwrap();
            file.write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "new");
        }
    }
}
