//! Builds drivers: each by itself, into the cache, whole or not at all.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use child::{Child, End};
use fault::{Explain, Fault};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::Serialize;

use crate::catalog::{Catalog, Driver, OBJECT, State};
use crate::job::Described;
use crate::supervise::Supervisor;

/// How often a build is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How long what a build started has to end by itself once it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// Why a driver was not built. The next ones are built all the same.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There are no sources to build it of.
    #[error("{0}: its sources are not here")]
    NoSources(String),
    /// There is nothing to build it with.
    #[error("{driver}: {} could not be started: {source}", .cargo.display())]
    NoCargo {
        /// Name of the driver, as `openssl-3.5.5`.
        driver: String,
        /// The program that should have built it.
        cargo: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The build failed.
    #[error("{driver}: {reason}")]
    Failed {
        /// Name of the driver, as `openssl-3.5.5`.
        driver: String,
        /// The line that says why.
        reason: String,
        /// What the build said.
        log: PathBuf,
    },
    /// What was built is not what it should be.
    #[error("{driver}: {what}")]
    NotIt {
        /// Name of the driver, as `openssl-3.5.5`.
        driver: String,
        /// What is wrong.
        what: String,
    },
    /// A file or folder.
    #[error("{driver}: {}: {source}", .path.display())]
    File {
        /// Name of the driver, as `openssl-3.5.5`.
        driver: String,
        /// Which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// It was ended half way.
    #[error("{0}: interrupted; what was built before is kept")]
    Ended(String),
}

impl Explain for BuildError {
    fn fault(&self) -> Fault {
        Fault::Machine
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            BuildError::NoSources(_) => {
                Some("run `make drivers` in a checkout, or give --drivers".into())
            }
            BuildError::NoCargo { .. } => Some("install a Rust toolchain".into()),
            BuildError::Failed { log, .. } => {
                Some(format!("read the rest in {}", log.display()).into())
            }
            BuildError::NotIt { .. } | BuildError::File { .. } | BuildError::Ended(_) => None,
        }
    }
}

/// A driver that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The shared object.
    pub object: PathBuf,
    /// What it says of its library.
    pub described: Described,
    /// How long it took.
    pub took: Duration,
}

/// What is written beside a built driver.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    name: &'a str,
    library: &'a str,
    version: &'a str,
    described: &'a Described,
    seconds: u64,
}

/// Builds one driver, unless it is built already. `ended` is asked from time to time whether to stop.
///
/// # Errors
/// Why there is no driver now.
pub fn build(
    catalog: &Catalog,
    driver: &Driver,
    supervisor: &Supervisor,
    ended: &dyn Fn() -> bool,
) -> Result<Built, BuildError> {
    let began = Instant::now();
    if let State::Built { object } = &driver.state {
        let described = describe(driver, supervisor, object)?;
        return Ok(Built { object: object.clone(), described, took: Duration::ZERO });
    }
    let Some(sources) = &catalog.folders().sources else {
        return Err(BuildError::NoSources(driver.name.clone()));
    };
    let file = |path: &Path| {
        let (driver, path) = (driver.name.clone(), path.to_path_buf());
        move |source| BuildError::File { driver, path, source }
    };
    let work = catalog.folders().cache.join("building").join(&driver.name);
    fs::create_dir_all(&work).map_err(file(&work))?;
    // Two programs do not build the same driver at once.
    let lock_path = work.join("lock");
    let lock = File::create(&lock_path).map_err(file(&lock_path))?;
    wait_for(&lock, ended)
        .map_err(file(&lock_path))?
        .then_some(())
        .ok_or_else(|| BuildError::Ended(driver.name.clone()))?;
    if driver.place.join(OBJECT).is_file() {
        let object = driver.place.join(OBJECT);
        let described = describe(driver, supervisor, &object)?;
        return Ok(Built { object, described, took: began.elapsed() });
    }
    let staged = Staged(work.join("staged"));
    let _ = fs::remove_dir_all(&staged.0);
    fs::create_dir_all(&staged.0).map_err(file(&staged.0))?;
    let log = staged.0.join("build.log");
    if !compile(catalog, driver, sources, &work, &log, ended)? {
        let reason = reason(&fs::read_to_string(&log).unwrap_or_default());
        return Err(failed(driver, &log, reason));
    }
    let object = work.join("target/release/libdriver.so");
    fs::copy(&object, staged.0.join(OBJECT)).map_err(file(&object))?;
    let described = match describe(driver, supervisor, &staged.0.join(OBJECT)) {
        Ok(described) => described,
        Err(_) if ended() => return Err(BuildError::Ended(driver.name.clone())),
        Err(BuildError::NotIt { what, .. }) => return Err(failed(driver, &log, what)),
        Err(error) => return Err(error),
    };
    let description = sources.join(&driver.name).join("driver.toml");
    fs::copy(&description, staged.0.join("driver.toml")).map_err(file(&description))?;
    let manifest = Manifest {
        name: &driver.name,
        library: &driver.library,
        version: &driver.version,
        described: &described,
        seconds: began.elapsed().as_secs(),
    };
    let text =
        serde_json::to_string_pretty(&manifest).map_err(|error| file(&staged.0)(error.into()))?;
    fs::write(staged.0.join("manifest.json"), text + "\n").map_err(file(&staged.0))?;
    // Published beside the build, not into what is thrown away: a build script that is through does not
    // run again when an interrupted build is resumed.
    let sdk = work.join("sdk");
    if sdk.is_dir() {
        fs::rename(&sdk, staged.0.join("sdk")).map_err(file(&sdk))?;
    }
    fs::create_dir_all(catalog.folders().built()).map_err(file(&driver.place))?;
    let _ = fs::remove_dir_all(driver.failure());
    fs::rename(&staged.0, &driver.place).map_err(file(&driver.place))?;
    drop(lock);
    // Some hundred megabytes that nobody needs again.
    let _ = fs::remove_dir_all(&work);
    Ok(Built { object: driver.place.join(OBJECT), described, took: began.elapsed() })
}

/// What a driver is put together in; whatever ends the build, nothing half of it stays.
struct Staged(PathBuf);

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Keeps why a build failed, and its log, where the catalogue finds them.
fn failed(driver: &Driver, log: &Path, reason: String) -> BuildError {
    let folder = driver.failure();
    let kept = folder.join("build.log");
    let _ = fs::remove_dir_all(&folder);
    let keep = || {
        fs::create_dir_all(&folder)?;
        fs::rename(log, &kept)?;
        fs::write(folder.join("reason"), &reason)
    };
    let name = driver.name.clone();
    match keep() {
        Ok(()) => BuildError::Failed { driver: name, reason, log: kept },
        Err(source) => {
            let _ = fs::remove_dir_all(&folder);
            BuildError::File { driver: name, path: folder, source }
        }
    }
}

/// Takes the lock, or gives up when told to.
fn wait_for(lock: &File, ended: &dyn Fn() -> bool) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if ended() => return Ok(false),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(LOOK),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs cargo on the driver's package; whether it succeeded.
fn compile(
    catalog: &Catalog,
    driver: &Driver,
    sources: &Path,
    work: &Path,
    log: &Path,
    ended: &dyn Fn() -> bool,
) -> Result<bool, BuildError> {
    let file = |path: &Path| {
        let (driver, path) = (driver.name.clone(), path.to_path_buf());
        move |source| BuildError::File { driver, path, source }
    };
    let output = File::create(log).map_err(file(log))?;
    let errors = output.try_clone().map_err(file(log))?;
    let cargo = std::env::var_os("CARGO").filter(|cargo| !cargo.is_empty());
    let cargo = PathBuf::from(cargo.unwrap_or_else(|| "cargo".into()));
    let manifest = sources.join(&driver.name).join("Cargo.toml");
    let manifest = fs::canonicalize(&manifest).map_err(file(&manifest))?;
    let mut command = Command::new(&cargo);
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(&manifest);
    command.env("CARGO_TARGET_DIR", work.join("target"));
    command.env("WIRETAX_SDK", work.join("sdk"));
    command.env("WIRETAX_DOWNLOADS", catalog.folders().cache.join("downloads"));
    // What this program was built with is not for the drivers.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    // What compilers and linkers leave when they are killed goes with the folder.
    let temporary = work.join("tmp");
    fs::create_dir_all(&temporary).map_err(file(&temporary))?;
    command.env("TMPDIR", &temporary);
    let mut child = Child::spawn(&mut command).map_err(|source| {
        let driver = driver.name.clone();
        BuildError::NoCargo { driver, cargo, source }
    })?;
    match child.wait(None, &mut || ended()).map_err(file(&manifest))? {
        End::Exited(status) => Ok(status.success()),
        End::Stopped | End::Late => {
            child.end(GRACE);
            Err(BuildError::Ended(driver.name.clone()))
        }
    }
}

/// The line of a build's log that says most.
fn reason(log: &str) -> String {
    let telling = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ["error", "panicked at", "failed", "not found", "hint:"]
            .iter()
            .any(|word| line.contains(word))
    };
    // A build script's sentence follows the place where it panicked.
    let panic = log.lines().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = panic.or_else(|| log.lines().find(telling)).or_else(|| log.lines().last());
    line.unwrap_or("its build said nothing").trim().chars().take(300).collect()
}

/// Loads a built driver and checks that it is what it should be.
fn describe(
    driver: &Driver,
    supervisor: &Supervisor,
    object: &Path,
) -> Result<Described, BuildError> {
    let wrong = |what: String| BuildError::NotIt { driver: driver.name.clone(), what };
    let described = supervisor.describe(object).map_err(|error| wrong(error.to_string()))?;
    if !described.version.contains(&driver.version) {
        return Err(wrong(format!(
            "version {} was wanted, the library says `{}`",
            driver.version, described.version
        )));
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_reason_is_the_line_that_says_most() {
        let log =
            "Compiling\n  thread 'main' panicked at build.rs:1:\n  curl failed: 404\n error: x";
        assert_eq!(reason(log), "curl failed: 404");
        assert_eq!(reason("a\nerror: linker `cc` not found\nb"), "error: linker `cc` not found");
        assert_eq!(reason(""), "its build said nothing");
    }
}
