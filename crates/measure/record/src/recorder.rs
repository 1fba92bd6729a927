//! Writing results.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::attachment;
use crate::folder::{LOCK, Lock, MANIFEST, SAMPLES};
use crate::line::write_line;
use crate::plan::{differences, with_keys_renamed};
use crate::run::Taken;
use crate::{
    Attachment, AttachmentKind, Error, Finished, Folder, Manifest, PlanFiles, Problem, Run, Sample,
    Session, TornLine, plan_hash,
};

/// Writes the samples of a run. Holds the folder's lock until it is dropped.
#[derive(Debug)]
pub struct Recorder {
    folder: Folder,
    manifest: Manifest,
    log: Log<File>,
    _lock: Lock,
    /// The folders that were made for it, the deepest first; `None` where it has content worth keeping.
    made: Option<Vec<PathBuf>>,
}

/// A recorder that goes on where another ended.
#[derive(Debug)]
pub struct Resumed {
    /// Writes what is measured from now on, into the same folder.
    pub recorder: Recorder,
    /// What need not be measured again.
    pub finished: Finished,
    /// A last line that was cut off.
    pub torn: Option<TornLine>,
}

impl Recorder {
    /// While samples come, they reach the disk within this time.
    pub const SYNC_INTERVAL: Duration = Duration::from_secs(2);

    /// Begins a results folder; it and its parents are made if need be. On an error nothing that
    /// was made stays.
    ///
    /// # Errors
    /// [`Problem::HasResults`], [`Problem::Locked`], and what can be wrong with the folder:
    /// [`Problem::NotWritable`], [`Problem::ReadOnly`], [`Problem::DiskFull`],
    /// [`Problem::NotAFolder`], [`Problem::Io`].
    pub fn create(dir: impl AsRef<Path>, manifest: Manifest) -> Result<Self, Error> {
        Self::create_with(dir, manifest, &PlanFiles::new())
    }

    /// As [`Recorder::create`], with the files that the plan names.
    ///
    /// # Errors
    /// As for [`Recorder::create`].
    pub fn create_with(
        dir: impl AsRef<Path>,
        manifest: Manifest,
        files: &PlanFiles,
    ) -> Result<Self, Error> {
        let dir = dir.as_ref();
        let made = make_folder(dir).map_err(Error::at_the_start)?;
        match Self::begin(dir, manifest, files) {
            Ok(mut recorder) => {
                recorder.made = Some(made);
                Ok(recorder)
            }
            Err(error) => {
                remove(&made);
                Err(error.at_the_start())
            }
        }
    }

    /// As [`Recorder::create`], in a folder that is there.
    fn begin(dir: &Path, mut manifest: Manifest, files: &PlanFiles) -> Result<Self, Error> {
        let folder = Folder::open(dir)?;
        let was_empty = folder.is_empty()?;
        let clear = || {
            if was_empty {
                folder.remove(LOCK);
            }
        };
        let lock = folder.lock(&holder(&manifest)).inspect_err(|error| {
            if !matches!(error.problem, Problem::Locked { .. }) {
                clear();
            }
        })?;
        // Samples without a manifest and without content: a `create` that was killed.
        if folder.has_content(SAMPLES) || folder.holds(MANIFEST) {
            return Err(Error::new(dir, Problem::HasResults));
        }
        folder.clear_partial();
        let file = folder.append(SAMPLES, true).inspect_err(|_| clear())?;
        let written = attachment::write_plan_files(&folder, &mut manifest, files)
            .and_then(|()| folder.write_manifest(&manifest));
        if let Err(error) = written {
            attachment::remove_plan_files(&folder, files);
            folder.remove(SAMPLES);
            clear();
            return Err(error);
        }
        let log = Log::new(file, dir.join(SAMPLES), 0, Taken::default());
        Ok(Self { folder, manifest, log, _lock: lock, made: Some(Vec::new()) })
    }

    /// Goes on with a folder that [`Recorder::create`] began with the same plan. A line that was cut
    /// short is cut off. The session is added to the manifest, with a warning when its build,
    /// kernel or processor differs from the first one's.
    ///
    /// # Errors
    /// [`Problem::NotResults`], [`Problem::Locked`], [`Problem::OtherPlan`] with what differs,
    /// [`Problem::NewerSchema`], [`Problem::CorruptManifest`], [`Problem::Corrupt`], and what can be
    /// wrong with the folder.
    pub fn resume(dir: impl AsRef<Path>, plan: &Value, session: Session) -> Result<Resumed, Error> {
        let dir = dir.as_ref();
        let folder = Folder::open(dir)?;
        // Before the lock, so that a folder that holds no results does not get a lock file.
        check_plan(dir, &folder.manifest()?, plan)?;
        let lock = folder.lock(&session_holder(&session))?;
        // Again, now that nobody else writes it.
        let (mut manifest, mut samples) = Run::stream_in(&folder)?;
        check_plan(dir, &manifest, plan)?;
        let mut finished = Finished::default();
        for sample in samples.by_ref() {
            finished.insert(&sample?);
        }
        let (torn, good, taken) = (samples.torn(), samples.good(), samples.into_taken());
        let path = dir.join(SAMPLES);
        let file = folder.append(SAMPLES, false)?;
        folder.clear_partial();
        attachment::clear_partial(&folder);
        if torn.is_some() {
            file.set_len(good)
                .and_then(|()| file.sync_data())
                .map_err(|error| Error::io(&path, "cutting off a torn line", error))?;
        }
        manifest.resume_with(session);
        folder.write_manifest(&manifest)?;
        let log = Log::new(file, path, good, taken);
        let recorder = Self { folder, manifest, log, _lock: lock, made: None };
        Ok(Resumed { recorder, finished, torn })
    }

    /// Writes a sample, whole or not at all: when the disk is full, the part that was written is
    /// cut off again, what was recorded before stays, and a later call may succeed.
    ///
    /// # Errors
    /// [`Problem::BadSample`] for a value that is not finite or a sample longer than a line;
    /// [`Problem::TooLarge`] where the samples could not be read back with this one;
    /// [`Problem::DiskFull`], [`Problem::Io`].
    pub fn record(&mut self, sample: &Sample) -> Result<(), Error> {
        self.made = None;
        self.log.append(sample)?;
        self.log.sync_after(Self::SYNC_INTERVAL)
    }

    /// Writes what `sample` has beside its numbers, whole or not at all; to be put into the sample before
    /// it is recorded. `name` says what it shows, and is the only one of this sample.
    ///
    /// # Errors
    /// [`Problem::TooLarge`], [`Problem::DiskFull`], [`Problem::Io`].
    pub fn attach(
        &mut self,
        sample: &Sample,
        name: &str,
        kind: AttachmentKind,
        content: &[u8],
    ) -> Result<Attachment, Error> {
        self.made = None;
        attachment::write(&self.folder, &sample.key(), name, kind, content)
    }

    /// The manifest as it stands in the folder.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Changes the manifest (a calibration, a warning, library versions) and replaces the file. On
    /// an error both stay as they were.
    ///
    /// # Errors
    /// [`Problem::DiskFull`], [`Problem::Io`].
    pub fn update_manifest(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), Error> {
        let mut manifest = self.manifest.clone();
        change(&mut manifest);
        self.folder.write_manifest(&manifest)?;
        self.manifest = manifest;
        Ok(())
    }

    /// The results folder.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Ends after a failure. A folder that was begun by this recorder and got no sample is removed again, with
    /// what was made for it: there is nothing to resume.
    pub fn abandon(mut self) {
        let Some(made) = self.made.take() else { return };
        attachment::remove_files_of(&self.folder, &self.manifest);
        self.folder.remove_folder("captures");
        for name in [SAMPLES, MANIFEST, LOCK] {
            self.folder.remove(name);
        }
        remove(&made);
    }

    /// Syncs the samples and writes down that the session ended in order. Gives the manifest.
    ///
    /// # Errors
    /// [`Problem::DiskFull`], [`Problem::Io`].
    pub fn finish(mut self) -> Result<Manifest, Error> {
        self.log.sync_after(Duration::ZERO)?;
        self.update_manifest(|manifest| {
            if let Some(session) = manifest.sessions.last_mut() {
                session.ended = Some(Timestamp::now());
            }
        })?;
        Ok(self.manifest.clone())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Nobody is left to tell; the samples are with the kernel already.
        let _ = self.log.sync_after(Duration::ZERO);
    }
}

fn holder(manifest: &Manifest) -> String {
    manifest.sessions.last().map_or_else(String::new, session_holder)
}

fn session_holder(session: &Session) -> String {
    let process = Session::process();
    format!("process {process}, `{}`, since {:.0}\n", session.command, session.started)
}

fn check_plan(dir: &Path, manifest: &Manifest, plan: &Value) -> Result<(), Error> {
    let (was, is) = (with_keys_renamed(&manifest.plan), with_keys_renamed(plan));
    // The plan itself is hashed again: the file's own hash may have been edited, or be of a form
    // of hash that a later minor version uses.
    let (found, wanted) = (plan_hash(&was), plan_hash(&is));
    if found == wanted {
        return Ok(());
    }
    let differences = differences(&was, &is);
    Err(Error::new(dir, Problem::OtherPlan { found, wanted, differences }))
}

/// Makes `dir` and its parents; gives those that were made, the deepest first.
fn make_folder(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let made: Vec<PathBuf> = dir
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .map(Path::to_owned)
        .collect();
    if let Err(error) = fs::create_dir_all(dir) {
        remove(&made);
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => Error::new(dir, Problem::NotAFolder),
            _ => Error::io(dir, "making the folder", error),
        });
    }
    Ok(made)
}

/// Removes folders that are empty, the deepest first.
fn remove(made: &[PathBuf]) {
    for folder in made {
        let _ = fs::remove_dir(folder);
    }
}

/// What a log is written to; a trait so that tests can make it fail at any byte.
trait Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Sink for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file of whole lines.
#[derive(Debug)]
struct Log<S> {
    sink: S,
    path: PathBuf,
    line: Vec<u8>,
    /// Bytes of whole lines.
    length: u64,
    /// What reading their samples takes.
    taken: Taken,
    /// There may be part of a line behind them.
    torn: bool,
    unsynced: bool,
    synced_at: Instant,
}

impl<S: Sink> Log<S> {
    fn new(sink: S, path: PathBuf, length: u64, taken: Taken) -> Self {
        let (torn, unsynced, synced_at) = (false, false, Instant::now());
        Self { sink, path, line: Vec::new(), length, taken, torn, unsynced, synced_at }
    }

    fn append(&mut self, sample: &Sample) -> Result<(), Error> {
        write_line(sample, &mut self.line).map_err(|problem| {
            Error::new(&self.path, Problem::BadSample { key: sample.key(), problem })
        })?;
        let line = self.line.len() as u64;
        self.taken.add(sample, line).map_err(|problem| Error::new(&self.path, problem))?;
        self.cut().map_err(|error| Error::io(&self.path, "cutting off a torn line", error))?;
        if let Err(error) = self.write() {
            // If this fails too, the next call tries again, and readers know a torn line.
            let _ = self.cut();
            return Err(Error::io(&self.path, "writing a sample", error));
        }
        self.length += line;
        self.torn = false;
        self.unsynced = true;
        Ok(())
    }

    /// One write of the whole line. A short one (no room for the rest) is followed by another, which
    /// says why, or succeeds because room was made.
    fn write(&mut self) -> io::Result<()> {
        self.torn = true;
        let mut written = 0;
        while written < self.line.len() {
            match self.sink.write(&self.line[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.torn {
            self.sink.truncate(self.length)?;
            self.torn = false;
        }
        Ok(())
    }

    fn sync_after(&mut self, interval: Duration) -> Result<(), Error> {
        if self.unsynced && self.synced_at.elapsed() >= interval {
            self.sink
                .sync()
                .map_err(|error| Error::io(&self.path, "syncing it to the disk", error))?;
            self.unsynced = false;
            self.synced_at = Instant::now();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Samples;
    use crate::sample::tests::example;

    /// A disk with little room.
    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
        truncates: bool,
    }

    impl Sink for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.bytes.len());
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn truncate(&mut self, length: u64) -> io::Result<()> {
            if !self.truncates {
                return Err(io::ErrorKind::Other.into());
            }
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line_len() -> usize {
        let mut line = Vec::new();
        write_line(&example(0), &mut line).unwrap();
        line.len()
    }

    #[test]
    fn a_full_disk_costs_no_whole_line_and_leaves_no_half() {
        let one = line_len();
        for room in 2 * one..3 * one {
            let disk = Disk { room, truncates: true, ..Disk::default() };
            let mut log = Log::new(disk, "s".into(), 0, Taken::default());
            log.append(&example(0)).unwrap();
            log.append(&example(1)).unwrap();
            let error = log.append(&example(2)).unwrap_err();
            assert!(matches!(error.problem, Problem::DiskFull), "{error}");
            assert_eq!(log.sink.bytes.len(), 2 * one);
            // Room is made: it goes on.
            log.sink.room = 10 * one;
            log.append(&example(3)).unwrap();
            let read: Vec<Sample> =
                Samples::new(&log.sink.bytes[..], "s").map(Result::unwrap).collect();
            assert_eq!(read, [example(0), example(1), example(3)]);
        }
    }

    #[test]
    fn what_cannot_be_cut_now_is_cut_later() {
        let one = line_len();
        let mut log =
            Log::new(Disk { room: one + 5, ..Disk::default() }, "s".into(), 0, Taken::default());
        log.append(&example(0)).unwrap();
        assert!(log.append(&example(1)).is_err());
        assert_eq!(log.sink.bytes.len(), one + 5);
        let mut reader = Samples::new(&log.sink.bytes[..], "s");
        assert_eq!(reader.by_ref().map(Result::unwrap).count(), 1);
        assert_eq!(reader.torn(), Some(TornLine { line: 2, bytes: 5 }));
        // As long as it cannot be cut, nothing is written behind it.
        log.sink.room = 10 * one;
        assert!(log.append(&example(2)).is_err());
        log.sink.truncates = true;
        log.append(&example(3)).unwrap();
        let read: Vec<Sample> =
            Samples::new(&log.sink.bytes[..], "s").map(Result::unwrap).collect();
        assert_eq!(read, [example(0), example(3)]);
    }

    #[test]
    fn a_sync_comes_when_it_is_due_and_only_then() {
        let mut log =
            Log::new(Disk { room: 1 << 20, ..Disk::default() }, "s".into(), 0, Taken::default());
        log.append(&example(0)).unwrap();
        log.sync_after(Duration::from_secs(3600)).unwrap();
        assert!(log.unsynced);
        log.sync_after(Duration::ZERO).unwrap();
        assert!(!log.unsynced);
    }
}
