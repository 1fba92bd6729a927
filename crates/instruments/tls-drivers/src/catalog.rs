//! Which drivers there are, and which of them are built.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{Error, key};

/// The file of a driver's shared object, in its place.
pub(crate) const OBJECT: &str = "driver.so";
/// The drivers of the tree that this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers");

/// Where drivers come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Their sources, if this program can find them.
    pub sources: Option<PathBuf>,
    /// What was built, and what was fetched for it.
    pub cache: PathBuf,
}

/// The cache of a user without one: nothing is there, and nobody can put anything there.
const NOWHERE: &str = "/dev/null/wiretax";

/// Whether a cache can hold what is built.
///
/// # Errors
/// [`Error::NoCache`]: neither `HOME` nor `XDG_CACHE_HOME` said where.
pub fn check_cache(cache: &Path) -> Result<(), Error> {
    if cache.starts_with(NOWHERE) { Err(Error::NoCache) } else { Ok(()) }
}

impl Folders {
    /// Sources: as given, or `drivers` beside the program's build or where it was built from, never in the current
    /// folder; cache: below the user's (`XDG_CACHE_HOME`, else `~/.cache`). Without one of these variables nothing
    /// is built or found ([`check_cache`]): a place that others can guess and write to is none for what is loaded.
    ///
    /// # Errors
    /// If the folder given holds no drivers.
    pub fn find(given: Option<&Path>) -> Result<Self, Error> {
        let is_there = |folder: &Path| folder.join("include/wiretax_driver.h").is_file();
        let sources = match given {
            Some(folder) if is_there(folder) => Some(folder.to_path_buf()),
            Some(folder) => return Err(Error::NoSources(folder.to_path_buf())),
            None => {
                let beside = std::env::current_exe().ok();
                let beside = beside.iter().flat_map(|program| program.ancestors().skip(1).take(4));
                beside
                    .map(|folder| folder.join("drivers"))
                    .chain([PathBuf::from(BUILT_FROM)])
                    .find(|folder| is_there(folder) && is_ours(folder))
            }
        };
        Ok(Self { sources, cache: cache(|name| std::env::var_os(name)) })
    }

    /// Built drivers, a folder each.
    #[must_use]
    pub fn built(&self) -> PathBuf {
        self.cache.join("drivers")
    }
}

/// Whether a folder belongs to root, to this user or to the owner of this program, and strangers cannot write to it:
/// what it builds is run.
fn is_ours(folder: &Path) -> bool {
    let program = fs::metadata("/proc/self/exe").map_or(0, |program| program.uid());
    let trusted = [0, rustix::process::geteuid().as_raw(), program];
    fs::metadata(folder).is_ok_and(|is| trusted.contains(&is.uid()) && is.mode() & 0o002 == 0)
}

/// The user's cache, by the variables that say where it is (XDG Base Directory Specification).
fn cache(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    // A relative path is to be ignored; so would be one below whatever folder is the current one.
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    cache.map_or_else(|| NOWHERE.into(), |cache| cache.join("wiretax"))
}

/// A fact about a library that no test can show.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Which: `lts`, `fips`, `maintainer`.
    pub what: String,
    /// What is so.
    pub says: String,
    /// A public page that says so.
    pub source: String,
}

/// Whether a driver can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It can: there is its shared object.
    Built {
        /// The shared object.
        object: PathBuf,
    },
    /// Nobody has built it from these sources yet.
    NotBuilt,
    /// Its last build failed.
    Failed {
        /// Why, in a line.
        reason: String,
        /// What the build said.
        log: PathBuf,
    },
}

/// A driver that there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Its name in the catalogue.
    pub name: String,
    /// The family of its library.
    pub library: String,
    /// The version that its library's own string must hold.
    pub version: String,
    /// Whether it is of the set that is built and measured by default.
    pub default: bool,
    /// Where it comes from.
    pub about: String,
    /// Its library's licence (SPDX).
    pub licence: String,
    /// What no test can show.
    pub facts: Vec<Fact>,
    /// Whether it can be used.
    pub state: State,
    /// Where it goes when it is built.
    pub(crate) place: PathBuf,
}

impl Driver {
    /// The shared object, if it is built.
    #[must_use]
    pub fn object(&self) -> Option<&Path> {
        match &self.state {
            State::Built { object } => Some(object),
            _ => None,
        }
    }

    /// Whether it is the same driver, also where one of the two has been renamed.
    fn is(&self, other: &Driver) -> bool {
        self.place == other.place && self.state == other.state
    }

    /// Gives a driver of the user's own another name where its own is taken: another build of the same
    /// library. Its folder's, key included, or its path.
    fn rename(&mut self, is_taken: impl Fn(&str) -> bool) {
        let Some(object) = self.object().filter(|_| is_taken(&self.name)) else { return };
        let folder = folder_of(object).filter(|folder| !is_taken(folder));
        self.name = folder.unwrap_or_else(|| object.display().to_string());
    }

    /// The folder with its library's headers (`include`) and static archives (`lib`), if it has any.
    #[must_use]
    pub fn sdk(&self) -> Option<PathBuf> {
        self.object()?;
        let sdk = self.place.join("sdk");
        sdk.is_dir().then_some(sdk)
    }

    /// Where it is kept why its build failed.
    pub(crate) fn failure(&self) -> PathBuf {
        failure(&self.place)
    }
}

/// Beside a driver's place. The name has dots of its own: nothing of it is an extension to replace.
fn failure(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(".failed");
    PathBuf::from(name)
}

/// What `driver.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    library: String,
    version: String,
    default: bool,
    kind: String,
    about: String,
    licence: String,
    #[serde(default)]
    fact: Vec<Fact>,
}

/// All drivers, by name.
#[derive(Debug, Clone)]
pub struct Catalog {
    drivers: Vec<Driver>,
    folders: Folders,
}

impl Catalog {
    /// Reads what there is: the sources, and what was built of them; without sources, what was built.
    ///
    /// # Errors
    /// If a description cannot be read.
    pub fn read(folders: &Folders) -> Result<Self, Error> {
        let mut drivers = match &folders.sources {
            Some(sources) => from_sources(sources, folders)?,
            None => from_cache(folders)?,
        };
        drivers.sort_by_key(|driver| order(&driver.name));
        Ok(Self { drivers, folders: folders.clone() })
    }

    /// A catalogue of these drivers, with no folders to build them in.
    #[must_use]
    pub fn of(drivers: Vec<Driver>) -> Self {
        let folders = Folders { sources: None, cache: PathBuf::new() };
        Self { drivers, folders }
    }

    /// All of them.
    #[must_use]
    pub fn drivers(&self) -> &[Driver] {
        &self.drivers
    }

    /// Where they are.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.folders
    }

    /// Those of these names: a name, a beginning with a star (`openssl-*`), `default`, `all`, or the
    /// path of a shared object of the user's own.
    ///
    /// # Errors
    /// A name that fits none, with a list of what there is.
    pub fn select(&self, names: &[&str]) -> Result<Vec<Driver>, Error> {
        let mut chosen: Vec<Driver> = Vec::new();
        for name in names {
            let found = self.fitting(name);
            if found.is_empty() {
                return Err(Error::Unknown {
                    kind: "library",
                    given: (*name).to_owned(),
                    known: self.drivers.iter().map(|driver| driver.name.clone()).collect(),
                });
            }
            for mut driver in found {
                if chosen.iter().any(|other| other.is(&driver)) {
                    continue;
                }
                if !self.drivers.contains(&driver) {
                    let all = || self.drivers.iter().chain(&chosen);
                    driver.rename(|name| all().any(|other| other.name == name));
                }
                chosen.push(driver);
            }
        }
        Ok(chosen)
    }

    /// The catalogue's driver of the same shared object, or the driver itself.
    fn known(&self, own: Driver) -> Driver {
        let is_own = |driver: &&Driver| {
            let object = driver.object().and_then(|object| fs::canonicalize(object).ok());
            object.is_some() && object.as_deref() == own.object()
        };
        self.drivers.iter().find(is_own).cloned().unwrap_or(own)
    }

    fn fitting(&self, name: &str) -> Vec<Driver> {
        if name.contains('/') {
            return own(Path::new(name)).map(|own| self.known(own)).into_iter().collect();
        }
        let fits = |driver: &&Driver| match name {
            "all" => true,
            "default" => driver.default,
            _ => match name.strip_suffix('*') {
                Some(beginning) => driver.name.starts_with(beginning),
                None => driver.name == name,
            },
        };
        self.drivers.iter().filter(fits).cloned().collect()
    }
}

/// A driver of the user's own, by its canonical path.
fn own(path: &Path) -> Option<Driver> {
    let object = fs::canonicalize(path).ok().filter(|path| path.is_file())?;
    Some(Driver {
        name: name_of(&object),
        library: String::new(),
        version: String::new(),
        default: false,
        about: format!("{}", object.display()),
        licence: String::new(),
        facts: Vec::new(),
        place: object.parent()?.to_path_buf(),
        state: State::Built { object },
    })
}

/// The name of the folder of a shared object that is called as the cache calls them.
fn folder_of(object: &Path) -> Option<String> {
    let folder = object.parent()?.file_name().filter(|_| object.ends_with(OBJECT))?;
    Some(folder.to_string_lossy().into_owned())
}

/// What a shared object is called: as the driver that it was built from, or as its file.
pub(crate) fn name_of(object: &Path) -> String {
    if let Some(name) = crate::built_in::name_of(object) {
        return name.to_owned();
    }
    if let Some(folder) = folder_of(object) {
        // The cache's folders have the driver's name and its key.
        let named = folder.rsplit_once('-').filter(|(_, key)| key::is_key(key));
        return named.map_or(folder.as_str(), |(name, _)| name).to_owned();
    }
    object.file_stem().unwrap_or(object.as_os_str()).to_string_lossy().into_owned()
}

/// Families in alphabetical order, versions by number.
fn order(name: &str) -> Vec<(u64, String)> {
    name.split(['-', '.'])
        .map(|part| {
            let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
            (digits.parse().unwrap_or(0), part.to_owned())
        })
        .collect()
}

fn from_sources(sources: &Path, folders: &Folders) -> Result<Vec<Driver>, Error> {
    let mut drivers = Vec::new();
    for folder in subfolders(sources)? {
        let file = folder.join("driver.toml");
        if !file.is_file() {
            continue;
        }
        let description = read(&file)?;
        if folder.file_name().is_none_or(|name| name != description.name.as_str()) {
            let what = format!("its name `{}` is not its folder's", description.name);
            return Err(Error::Description { path: file, what });
        }
        let key = key::of(sources, &description.name, &description.kind)
            .map_err(|source| Error::File { doing: "reading", path: folder.clone(), source })?;
        let place = folders.built().join(format!("{}-{key}", description.name));
        drivers.push(described(description, place));
    }
    Ok(drivers)
}

fn from_cache(folders: &Folders) -> Result<Vec<Driver>, Error> {
    let mut drivers: Vec<Driver> = Vec::new();
    if !folders.built().is_dir() {
        return Ok(drivers);
    }
    for place in subfolders(&folders.built())? {
        let (file, object) = (place.join("driver.toml"), place.join(OBJECT));
        if !file.is_file() || !object.is_file() {
            continue;
        }
        let driver = described(read(&file)?, place);
        // Of several builds the newest.
        let age = |driver: &Driver| {
            fs::metadata(driver.place.join(OBJECT)).and_then(|file| file.modified()).ok()
        };
        match drivers.iter_mut().find(|other| other.name == driver.name) {
            Some(other) if age(other) < age(&driver) => *other = driver,
            Some(_) => {}
            None => drivers.push(driver),
        }
    }
    Ok(drivers)
}

fn subfolders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong = |source| Error::File { doing: "reading", path: folder.to_path_buf(), source };
    let entries = fs::read_dir(folder).map_err(wrong)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

fn read(file: &Path) -> Result<Description, Error> {
    let text = fs::read_to_string(file).map_err(|source| Error::File {
        doing: "reading",
        path: file.to_path_buf(),
        source,
    })?;
    toml::from_str(&text)
        .map_err(|error| Error::Description { path: file.to_path_buf(), what: error.to_string() })
}

fn described(description: Description, place: PathBuf) -> Driver {
    let (object, failed) = (place.join(OBJECT), failure(&place));
    let state = if object.is_file() {
        State::Built { object }
    } else if let Ok(reason) = fs::read_to_string(failed.join("reason")) {
        State::Failed { reason: reason.trim().to_owned(), log: failed.join("build.log") }
    } else {
        State::NotBuilt
    };
    let Description { name, library, version, default, about, licence, fact, .. } = description;
    Driver { name, library, version, default, about, licence, facts: fact, state, place }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folders) {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("drivers");
        for name in ["include", "shim", "build", "one-10.0", "one-9.1", "two"] {
            fs::create_dir_all(sources.join(name)).unwrap();
        }
        fs::write(sources.join("include/wiretax_driver.h"), "").unwrap();
        for (name, default) in [("one-10.0", true), ("one-9.1", false), ("two", true)] {
            let text = format!(
                "name = '{name}'\nlibrary = 'L'\nversion = '1'\ndefault = {default}\nkind = 'k'\n\
                 about = 'a'\nlicence = 'MIT'\n[[fact]]\nwhat = 'lts'\nsays = 's'\nsource = 'https://x'\n"
            );
            fs::write(sources.join(name).join("driver.toml"), text).unwrap();
        }
        let folders = Folders { sources: Some(sources), cache: folder.path().join("cache") };
        (folder, folders)
    }

    #[test]
    fn the_cache_is_the_users_or_none() {
        let cache = |xdg: Option<&str>, home: Option<&str>| {
            let found = super::cache(|name| match name {
                "XDG_CACHE_HOME" => xdg.map(OsString::from),
                _ => home.map(OsString::from),
            });
            check_cache(&found).ok().map(|()| found.display().to_string())
        };
        assert_eq!(cache(Some("/c"), Some("/h")).as_deref(), Some("/c/wiretax"));
        assert_eq!(cache(None, Some("/h")).as_deref(), Some("/h/.cache/wiretax"));
        assert_eq!(cache(Some(""), Some("/h")).as_deref(), Some("/h/.cache/wiretax"));
        assert_eq!(cache(Some("c"), Some("/h")).as_deref(), Some("/h/.cache/wiretax"));
        for (xdg, home) in [(None, None), (None, Some("")), (Some("c"), Some("h"))] {
            assert_eq!(cache(xdg, home), None, "{xdg:?} {home:?}");
        }
    }

    #[test]
    fn sources_that_strangers_can_write_to_are_not_the_programs() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (mode, is) in [(0o755, true), (0o775, true), (0o757, false), (0o1777, false)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_ours(folder.path()), is, "{mode:o}");
        }
        assert!(!is_ours(&folder.path().join("nowhere")));
        let found = Folders::find(None).unwrap().sources.unwrap();
        assert_eq!(found.canonicalize().unwrap(), Path::new(BUILT_FROM).canonicalize().unwrap());
    }

    #[test]
    fn names_beginnings_and_sets() {
        let (_folder, folders) = folder();
        let catalog = Catalog::read(&folders).unwrap();
        let names = |given: &[&str]| -> Vec<String> {
            catalog.select(given).unwrap().into_iter().map(|driver| driver.name).collect()
        };
        assert_eq!(names(&["all"]), ["one-9.1", "one-10.0", "two"]);
        assert_eq!(names(&["default"]), ["one-10.0", "two"]);
        assert_eq!(names(&["one-*", "one-9.1"]), ["one-9.1", "one-10.0"]);
        let error = catalog.select(&["three"]).unwrap_err();
        assert_eq!(error.to_string(), "there is no library `three`");
        let remedy = fault::Explain::remedy(&error);
        assert_eq!(remedy.as_deref(), Some("choose from one-9.1, one-10.0, two"));
        assert!(catalog.select(&["/none/such.so"]).is_err());
    }

    #[test]
    fn shared_objects_are_called_as_their_drivers_and_each_is_taken_once() {
        let (folder, folders) = folder();
        let catalog = Catalog::read(&folders).unwrap();
        let made = |path: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path.display().to_string()
        };
        let key = "0123456789abcdef";
        let (two, three) =
            (made(&format!("two-{key}/driver.so")), made(&format!("three-{key}/driver.so")));
        let (mine, again) = (made("my-own/driver.so"), made("else/my-own/driver.so"));
        let file = made("my-own/driver-b.so");
        let chosen = catalog.select(&[&two, "two", &three, &two, &mine, &again, &file]).unwrap();
        let names: Vec<&str> = chosen.iter().map(|driver| driver.name.as_str()).collect();
        let again = fs::canonicalize(&again).unwrap().display().to_string();
        let other_build = format!("two-{key}");
        assert_eq!(names, [&other_build, "two", "three", "my-own", &again, "driver-b"]);
        let place = catalog.select(&["two"]).unwrap().remove(0).place;
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(OBJECT), "").unwrap();
        let catalog = Catalog::read(&folders).unwrap();
        let path = place.join(OBJECT).display().to_string();
        assert_eq!(catalog.select(&[&path]).unwrap(), catalog.select(&["two"]).unwrap());
    }

    #[test]
    fn states_follow_the_cache() {
        let (_folder, folders) = folder();
        let at = |name: &str| {
            let catalog = Catalog::read(&folders).unwrap();
            catalog.select(&[name]).unwrap().remove(0)
        };
        assert_eq!(at("two").state, State::NotBuilt);
        for name in ["two", "one-9.1"] {
            let failed = at(name).failure();
            fs::create_dir_all(&failed).unwrap();
            fs::write(failed.join("reason"), "no compiler\n").unwrap();
            let state = at(name).state;
            assert!(matches!(state, State::Failed { reason, .. } if reason == "no compiler"));
        }
        let (a, b) = (at("one-9.1"), at("one-10.0"));
        assert!(a.failure().starts_with(folders.built()) && a.failure() != b.failure());
        assert!(a.failure().to_string_lossy().contains("one-9.1-"), "{:?}", a.failure());
        let place = at("two").place;
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(OBJECT), "").unwrap();
        assert_eq!(at("two").object(), Some(place.join(OBJECT).as_path()));
        // Without sources the built ones are known by what lies beside them.
        let from = folders.sources.clone().unwrap().join("two/driver.toml");
        fs::copy(from, place.join("driver.toml")).unwrap();
        let alone = Catalog::read(&Folders { sources: None, ..folders }).unwrap();
        assert_eq!(alone.drivers().len(), 1);
    }

    #[test]
    fn a_wrong_description_is_named() {
        let (_folder, folders) = folder();
        let file = folders.sources.clone().unwrap().join("two/driver.toml");
        fs::write(&file, "name = 3").unwrap();
        let error = Catalog::read(&folders).unwrap_err().to_string();
        assert!(error.contains("driver.toml"), "{error}");
    }
}
