//! Building HAProxy on a library: one entry of the cache a library, named by all that went into it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::command::{output, run};
use crate::recipe::{arguments, key};
use crate::source::{fetch, unpack};
use crate::{Error, Library, Locks, Quic, Release};

/// The record of an entry; written last, so that an entry without one is none.
const RECORD: &str = "built.json";
const LOG: &str = "build.log";
/// The end of the name of a folder in which an entry is made.
const PARTIAL: &str = ".partial";
/// How long an interrupted build is kept, to be resumed.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// What most builds take, in seconds of one processor: for the time left only.
const SECONDS: u64 = 160;

/// HAProxy on a library, built. It is in the cache, and whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Built {
    /// The library's driver.
    pub library: String,
    /// HAProxy's version, as its own `-v` prints it.
    pub haproxy: String,
    /// Debian's version of the source.
    pub debian: String,
    /// The library that it says it runs on.
    pub runs_on: String,
    /// Whether it was built with light locks as well.
    pub light: bool,
    /// Whether it has QUIC, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quic: Option<Quic>,
    /// The hash of all that went into it.
    pub key: String,
    /// How long the build took, in seconds.
    pub seconds: f64,
    /// The folder in the cache.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Built {
    /// The program with these locks; none where the release has no such.
    #[must_use]
    pub fn program(&self, locks: Locks) -> Option<PathBuf> {
        match locks {
            Locks::Pthread => Some(self.folder.join("haproxy")),
            Locks::Light => self.light.then(|| self.folder.join("haproxy-light")),
        }
    }
}

/// Builds into, and finds in, a cache.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The folder of the cache.
    pub cache: PathBuf,
    /// Compilers at once.
    pub jobs: usize,
    /// Set from outside to stop a build.
    pub stop: Arc<AtomicBool>,
}

impl Builder {
    /// About how long a build takes.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let jobs = u32::try_from(self.jobs.max(1)).unwrap_or(u32::MAX);
        Duration::from_secs(SECONDS) / jobs + Duration::from_secs(5)
    }

    /// What is in the cache for this release and library, without building. None where nothing is;
    /// the last failure where a build failed.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::Io`], [`Error::Build`] as it was told before.
    pub fn find(&self, release: &Release, library: &Library) -> Result<Option<Built>, Error> {
        release.supports(library)?;
        let key = key(release, library)?;
        if let Some(built) = self.entry(&key) {
            return Ok(Some(built));
        }
        match fs::read_to_string(self.failed(&key).join("reason")) {
            Ok(reason) => Err(Error::Build {
                what: format!("building HAProxy {} on {}", release.version, library.name),
                reason,
                log: self.failed(&key).join(LOG),
            }),
            Err(_) => Ok(None),
        }
    }

    /// Builds, or finds what was built. `watch` is told a step and its share done, now and then.
    /// Nothing half-built stays in the cache.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::Fetch`], [`Error::WrongSum`], [`Error::Missing`],
    /// [`Error::Build`], [`Error::OtherLibrary`], [`Error::Interrupted`], [`Error::Io`].
    pub fn build(
        &self,
        release: &Release,
        library: &Library,
        watch: &mut dyn FnMut(&str, f64),
    ) -> Result<Built, Error> {
        release.supports(library)?;
        let key = key(release, library)?;
        if let Some(built) = self.entry(&key) {
            return Ok(built);
        }
        fs::create_dir_all(&self.cache).map_err(Error::io("making it", &self.cache))?;
        self.remove_left_over();
        let work = self.cache.join(format!("{key}{PARTIAL}"));
        fs::create_dir_all(&work).map_err(Error::io("making it", &work))?;
        let _lock = self.lock(&work, watch)?;
        // Whoever had the lock may have built it.
        if let Some(built) = self.entry(&key) {
            return Ok(built);
        }
        let made = self.make(release, library, &key, &work, watch);
        if let Err(error) = &made {
            self.keep_failure(error, &key, &work);
        }
        // An interrupted build is resumed; a failed one begins again.
        if !matches!(made, Err(Error::Interrupted)) {
            let _ = fs::remove_dir_all(&work);
        }
        made.map_err(|error| self.with_kept_log(error, &key))
    }

    /// One process at a time works in a folder; the kernel frees the lock whatever ends it.
    fn lock(&self, work: &Path, watch: &mut dyn FnMut(&str, f64)) -> Result<File, Error> {
        let path = work.join("lock");
        let file = File::create(&path).map_err(Error::io("making it", &path))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(error) if error != rustix::io::Errno::WOULDBLOCK => {
                    return Err(Error::io("locking it", &path)(error.into()));
                }
                Err(_) if self.stop.load(Ordering::Relaxed) => return Err(Error::Interrupted),
                Err(_) => {
                    watch("waiting for another process that builds the same", 0.0);
                    std::thread::sleep(Duration::from_millis(500));
                }
            }
        }
    }

    fn make(
        &self,
        release: &Release,
        library: &Library,
        key: &str,
        work: &Path,
        watch: &mut dyn FnMut(&str, f64),
    ) -> Result<Built, Error> {
        let began = Instant::now();
        let sources = self.cache.join("sources");
        watch("fetching HAProxy's source", 0.0);
        fetch(release, &sources, &self.stop)?;
        let log = work.join(LOG);
        let source = work.join(format!("haproxy-{}", release.version));
        let unpacked = work.join("unpacked");
        if !unpacked.exists() {
            let _ = fs::remove_dir_all(&source);
            unpack(release, &sources, work, &source, &log, &self.stop)?;
            fs::write(&unpacked, "").map_err(Error::io("writing it", &unpacked))?;
        }
        let entry = work.join("entry");
        fs::create_dir_all(&entry).map_err(Error::io("making it", &entry))?;
        let what = format!("building HAProxy {} on {}", release.version, library.name);
        let mut compiled = Compiled::new(&source);
        if !entry.join("haproxy").exists() {
            self.compile(&what, library, Locks::Pthread, &source, &log, &mut || {
                watch(&what, compiled.share());
            })?;
            keep(&source, &entry, "haproxy")?;
        }
        if release.has_light_locks() {
            // Only these two depend on the locks: what replaces them, and what `-vv` says.
            for object in ["src/thread.o", "src/haproxy.o", "haproxy"] {
                let _ = fs::remove_file(source.join(object));
            }
            self.compile(&what, library, Locks::Light, &source, &log, &mut || watch(&what, 0.98))?;
            keep(&source, &entry, "haproxy-light")?;
        }
        let built = Built {
            library: library.name.clone(),
            haproxy: String::new(),
            debian: release.debian.to_owned(),
            runs_on: String::new(),
            light: release.has_light_locks(),
            quic: library.quic,
            key: key.to_owned(),
            seconds: began.elapsed().as_secs_f64(),
            folder: entry.clone(),
        };
        let built = verified(built, library)?;
        let record = serde_json::to_vec_pretty(&built).map_err(std::io::Error::other);
        let path = entry.join(RECORD);
        record.and_then(|text| fs::write(&path, text)).map_err(Error::io("writing it", &path))?;
        let _ = fs::copy(&log, entry.join(LOG));
        let place = self.cache.join(key);
        // Another process may have been faster with the same.
        if let Err(error) = fs::rename(&entry, &place) {
            return self
                .entry(key)
                .ok_or(error)
                .map_err(Error::io("putting a build there", &place));
        }
        let _ = fs::remove_dir_all(self.failed(key));
        Ok(Built { folder: place, ..built })
    }

    fn compile(
        &self,
        what: &str,
        library: &Library,
        locks: Locks,
        source: &Path,
        log: &Path,
        look: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let mut make = Command::new("make");
        make.current_dir(source).arg(format!("-j{}", self.jobs.max(1)));
        if locks == Locks::Light {
            // What was compiled with the other locks is taken as it is.
            make.args(["-o", ".build_opts"]);
        }
        make.args(arguments(library, locks)).arg("haproxy");
        // What a compiler leaves when it is killed goes with the folder of the build.
        make.env("TMPDIR", source);
        // Nothing that make was given from outside reaches this one.
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "CFLAGS", "LDFLAGS"] {
            make.env_remove(variable);
        }
        run(what, &mut make, log, &self.stop, look)
    }

    fn entry(&self, key: &str) -> Option<Built> {
        let folder = self.cache.join(key);
        let text = fs::read_to_string(folder.join(RECORD)).ok()?;
        let built: Built = serde_json::from_str(&text).ok()?;
        let built = Built { folder, ..built };
        let programs = [Locks::Pthread, Locks::Light].map(|locks| built.program(locks));
        programs.iter().flatten().all(|program| program.is_file()).then_some(built)
    }

    fn failed(&self, key: &str) -> PathBuf {
        self.cache.join(format!("{key}.failed"))
    }

    /// The log of a failure stays, and why, so that it can be told again without building again.
    fn keep_failure(&self, error: &Error, key: &str, work: &Path) {
        let reason = match error {
            Error::Build { reason, .. } => reason.clone(),
            Error::OtherLibrary { .. } => error.to_string(),
            _ => return,
        };
        let folder = self.failed(key);
        let _ = fs::create_dir_all(&folder);
        let _ = fs::copy(work.join(LOG), folder.join(LOG));
        let _ = fs::write(folder.join("reason"), reason);
    }

    fn with_kept_log(&self, error: Error, key: &str) -> Error {
        match error {
            Error::Build { what, reason, .. } => {
                Error::Build { what, reason, log: self.failed(key).join(LOG) }
            }
            other => other,
        }
    }

    /// What was interrupted long ago, and nobody went on with.
    fn remove_left_over(&self) {
        let Ok(entries) = fs::read_dir(&self.cache) else { return };
        for entry in entries.filter_map(Result::ok) {
            let partial = entry.file_name().to_string_lossy().ends_with(PARTIAL);
            let age = entry.metadata().and_then(|meta| meta.modified()).ok();
            let age = age.and_then(|modified| modified.elapsed().ok());
            if partial && age.is_some_and(|age| age > KEPT) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

fn keep(source: &Path, entry: &Path, name: &str) -> Result<(), Error> {
    let to = entry.join(name);
    let partial = entry.join("copying");
    let copied = fs::copy(source.join("haproxy"), &partial);
    let copied = copied.and_then(|_| fs::rename(&partial, &to));
    copied.map_err(Error::io("copying the program to it", &to))
}

/// Asks the programs what they are.
fn verified(mut built: Built, library: &Library) -> Result<Built, Error> {
    for locks in [Locks::Pthread, Locks::Light] {
        let Some(program) = built.program(locks) else { continue };
        let said = output(Command::new(&program).arg("-vv"))?;
        let line = |start: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(start));
            line.map(|rest| rest.trim().to_owned()).unwrap_or_default()
        };
        built.haproxy = line("HAProxy version ").split(' ').next().unwrap_or_default().to_owned();
        built.runs_on = line("Running on OpenSSL version :");
        let light = said.contains("+PTHREAD_EMULATION");
        let right = built.runs_on.contains(&library.version) && !built.runs_on.is_empty();
        let quic = said.contains("+QUIC ");
        if !right || light != (locks == Locks::Light) || quic != library.quic.is_some() {
            let runs_on = match (right, quic == library.quic.is_some()) {
                (true, false) => "it with other QUIC".to_owned(),
                (true, true) => "other locks".to_owned(),
                (false, _) => built.runs_on,
            };
            return Err(Error::OtherLibrary {
                library: library.name.clone(),
                runs_on,
                sdk: library.sdk.clone(),
            });
        }
    }
    Ok(built)
}

/// How much of a source is compiled: objects by sources that are, roughly.
struct Compiled {
    folder: PathBuf,
    objects: usize,
}

impl Compiled {
    /// Objects of a build of 3.0 with TLS.
    const OBJECTS: usize = 152;

    fn new(source: &Path) -> Self {
        Self { folder: source.join("src"), objects: Self::OBJECTS }
    }

    fn share(&mut self) -> f64 {
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0.0 };
        let is_object = |path: PathBuf| path.extension().is_some_and(|kind| kind == "o");
        let done = entries.filter_map(Result::ok).filter(|entry| is_object(entry.path())).count();
        (done as f64 / self.objects as f64).min(0.97)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_its_program_is_none_and_one_process_works_at_a_time() {
        let cache = tempfile::tempdir().unwrap();
        let builder = Builder { cache: cache.path().to_owned(), jobs: 1, stop: Arc::default() };
        let folder = cache.path().join("k");
        fs::create_dir(&folder).unwrap();
        let built = Built {
            library: "openssl-3.5.5".into(),
            haproxy: "3.0.11".into(),
            debian: String::new(),
            runs_on: String::new(),
            light: false,
            quic: None,
            key: "k".into(),
            seconds: 1.0,
            folder: folder.clone(),
        };
        fs::write(folder.join(RECORD), serde_json::to_string(&built).unwrap()).unwrap();
        assert_eq!(builder.entry("k"), None);
        fs::write(folder.join("haproxy"), "").unwrap();
        assert_eq!(builder.entry("k"), Some(built));
        // What was interrupted lately is kept, and locked by one at a time.
        let partial = cache.path().join(format!("k{PARTIAL}"));
        fs::create_dir(&partial).unwrap();
        builder.remove_left_over();
        let held = builder.lock(&partial, &mut |_, _| {}).unwrap();
        builder.stop.store(true, Ordering::Relaxed);
        assert!(matches!(builder.lock(&partial, &mut |_, _| {}), Err(Error::Interrupted)));
        drop(held);
        builder.lock(&partial, &mut |_, _| {}).unwrap();
    }
}
