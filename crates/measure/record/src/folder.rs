//! Files of a results folder: names, the lock, atomic replacement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::{Error, Manifest, Problem, parse_manifest};

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const SAMPLES: &str = "samples.jsonl";
const LOCK: &str = "lock";
const TEMPORARY: &str = "manifest.json.new";

/// A manifest is some kilobytes.
const MAX_MANIFEST: u64 = 16 << 20;

/// The lock of a folder: held as long as this lives, let go by the kernel when the process dies.
/// The file stays: removing it would let two processes lock two different files.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    pub(crate) path: PathBuf,
}

impl Drop for Lock {
    /// Closing the file would not do: a process that is being started holds a copy of it until its
    /// exec, and the lock with it.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl Lock {
    /// Takes the lock and writes down who holds it.
    pub(crate) fn take(dir: &Path, holder: &str) -> Result<Self, Error> {
        let path = dir.join(LOCK);
        let io = |action| move |error| Error::io(dir, action, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io("opening the lock file"))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut text = String::new();
                // Whoever holds the lock may be writing this very line: then it is not known.
                let read = file.take(4096).read_to_string(&mut text);
                let known = read.is_ok() && !text.trim().is_empty();
                let holder = if known { text.trim() } else { "a process that did not say which" };
                let holder = fault::one_line(holder).into_owned();
                return Err(Error::new(dir, Problem::Locked { holder }));
            }
            Err(errno) => return Err(Error::io(dir, "locking the folder", errno.into())),
        }
        file.set_len(0).map_err(io("writing the lock file"))?;
        // Who holds it is a courtesy; the lock is the flock.
        let line = format!("process {}, {holder}\n", std::process::id());
        file.write_all(line.as_bytes()).map_err(io("writing the lock file"))?;
        Ok(Self { file, path })
    }
}

/// Reads the manifest of a folder.
pub(crate) fn read_manifest(dir: &Path) -> Result<Manifest, Error> {
    let path = dir.join(MANIFEST);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::new(dir, Problem::NotResults { missing: MANIFEST }));
        }
        Err(error) => return Err(reading(&path, "opening it", error)),
    };
    let mut text = Vec::new();
    let limit = MAX_MANIFEST;
    file.take(limit + 1)
        .read_to_end(&mut text)
        .map_err(|error| reading(&path, "reading it", error))?;
    if text.len() as u64 > limit {
        let problem = Problem::TooLarge {
            what: "the manifest's length in bytes",
            have: text.len() as u64,
            limit,
            verb: "read",
            remedy: "check that this is the right folder",
        };
        return Err(Error::new(&path, problem));
    }
    parse_manifest(&text).map_err(|problem| Error::new(&path, problem))
}

/// An error of reading: "no permission to write" would be the wrong advice.
pub(crate) fn reading(path: &Path, action: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::NotADirectory {
        return Error::new(path, Problem::NotAFolder);
    }
    Error::new(path, Problem::Io { action, error: source })
}

/// Replaces the manifest: at any moment, a crash included, there is the old one or the new one.
pub(crate) fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let (temporary, path) = (dir.join(TEMPORARY), dir.join(MANIFEST));
    let text = manifest
        .to_json()
        .map_err(|error| Error::io(&path, "writing the manifest as JSON", error.into()))?;
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(&text)?;
        // The name may only point to bytes that are on the disk.
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&temporary);
        return Err(Error::io(&path, "writing it", error));
    }
    sync_folder(dir)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(dir: &Path) -> Result<(), Error> {
    match File::open(dir).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot sync a folder; theirs is then as safe as it gets.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other.map_err(|error| Error::io(dir, "syncing the folder", error)),
    }
}
