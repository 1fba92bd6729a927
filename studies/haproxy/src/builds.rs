//! Which libraries there are to build HAProxy on, and what was built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fault::{Fault, Problem};
use haproxy::{Builder, Built, Error, Library, Release};
use study::{End, Watcher};
use tls_drivers::{Catalog, Driver};

use crate::point::Point;

/// Where libraries come from: folders that the user names, and drivers.
#[derive(Debug)]
pub struct Sources {
    own: Vec<(String, PathBuf)>,
    catalog: Catalog,
}

impl Sources {
    /// Folders of the user's own, `NAME=DIR` each, before a catalogue's drivers.
    ///
    /// # Errors
    /// One is no such pair.
    pub fn new(own: &[String], catalog: Catalog) -> Result<Sources, Problem> {
        let pair = |text: &String| {
            let (name, folder) = text.split_once('=').ok_or_else(|| {
                Problem::new(Fault::Caller, "--sdk is NAME=DIR")
                    .with_remedy("--sdk openssl-3.5.5=/opt/openssl")
            })?;
            Ok((name.to_owned(), PathBuf::from(folder)))
        };
        let own = own.iter().map(pair).collect::<Result<_, Problem>>()?;
        Ok(Sources { own, catalog })
    }

    /// All that are built and that HAProxy works with.
    #[must_use]
    pub fn built(&self) -> Vec<String> {
        let mut names: Vec<String> = self.own.iter().map(|(name, _)| name.clone()).collect();
        let drivers = self.catalog.drivers().iter();
        let usable = drivers.filter(|one| one.sdk().is_some() && Library::is_known(&one.name));
        for driver in usable {
            if !names.contains(&driver.name) {
                names.push(driver.name.clone());
            }
        }
        names
    }

    /// # Errors
    /// There is none of this name.
    pub fn must_know(&self, name: &str) -> Result<(), Problem> {
        let drivers = self.catalog.drivers();
        let known = self.own.iter().any(|(own, _)| own == name)
            || drivers.iter().any(|driver| driver.name == name);
        if known {
            return Ok(());
        }
        let known = drivers.iter().map(|driver| driver.name.as_str());
        let known: Vec<&str> = known.filter(|name| Library::is_known(name)).collect();
        let remedy = match known.as_slice() {
            [] => "--sdk NAME=DIR gives one, since no drivers' sources are here".to_owned(),
            known => format!("choose from {}", known.join(", ")),
        };
        let what = format!("there is no library `{name}`");
        Err(Problem::new(Fault::Caller, what).with_remedy(remedy))
    }

    fn library(&self, name: &str) -> Result<Library, Error> {
        if let Some((_, folder)) = self.own.iter().find(|(own, _)| own == name) {
            return Library::at(name, folder);
        }
        let driver = self.catalog.drivers().iter().find(|driver| driver.name == name);
        Library::at(name, &driver.and_then(Driver::sdk).unwrap_or_default())
    }

    /// The options that give the same sources again.
    pub(crate) fn options(&self) -> String {
        let pair = |(name, folder): &(String, PathBuf)| {
            format!(" --sdk {}", study::quoted(&format!("{name}={}", folder.display())))
        };
        self.own.iter().map(pair).collect()
    }
}

/// What is to be built: a release on a library, perhaps with QUIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) release: &'static Release,
    pub(crate) library: String,
    pub(crate) quic: bool,
}

impl Wanted {
    /// What a point takes.
    ///
    /// # Errors
    /// There is no such release.
    pub(crate) fn of(point: &Point) -> Result<Wanted, Error> {
        let release = Release::find(&point.release)?;
        Ok(Wanted { release, library: point.library.clone(), quic: point.needs_quic() })
    }

    fn key(&self) -> Key {
        (self.release.version, self.library.clone(), self.quic)
    }

    /// Its library with its headers and archives.
    fn found(&self, sources: &Sources) -> Result<Library, Error> {
        let library = sources.library(&self.library)?;
        if self.quic { self.release.with_quic(library) } else { Ok(library) }
    }
}

/// Release, library, and whether it has QUIC.
type Key = (&'static str, String, bool);

/// What could be built, and what could not.
#[derive(Debug, Default)]
pub struct Builds {
    built: BTreeMap<Key, Built>,
    failed: Vec<(String, String)>,
}

impl Builds {
    /// These, by release and library.
    #[must_use]
    pub fn of(built: impl IntoIterator<Item = (&'static Release, Built)>) -> Builds {
        let keyed = |(release, built): (&'static Release, Built)| {
            ((release.version, built.library.clone(), built.quic.is_some()), built)
        };
        Builds { built: built.into_iter().map(keyed).collect(), failed: Vec::new() }
    }

    /// What the cache holds, without building.
    pub(crate) fn cached(wanted: &[Wanted], sources: &Sources, cache: &Path) -> Builds {
        let builder = Builder { cache: cache.to_owned(), jobs: 1, stop: Arc::default() };
        let mut builds = Builds::default();
        for one in wanted {
            let found = one.found(sources).and_then(|library| builder.find(one.release, &library));
            match found {
                Ok(Some(built)) => builds.add(one, Ok(built)),
                Ok(None) => {
                    builds.failed.push((one.library.clone(), "it was not built".to_owned()));
                }
                Err(error) => builds.add(one, Err(&error)),
            }
        }
        builds
    }

    fn add(&mut self, wanted: &Wanted, made: Result<Built, &Error>) {
        match made {
            Ok(built) => {
                self.built.insert(wanted.key(), built);
            }
            Err(error) => self.failed.push((wanted.library.clone(), error.to_string())),
        }
    }

    /// The build for a point.
    #[must_use]
    pub fn find(&self, point: &Point) -> Option<&Built> {
        let same = |((release, library, quic), _): &(&Key, &Built)| {
            *release == point.release && *library == point.library && *quic == point.needs_quic()
        };
        self.built.iter().find(same).map(|(_, built)| built)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.built.is_empty()
    }

    /// All that there are.
    pub fn iter(&self) -> impl Iterator<Item = &Built> {
        self.built.values()
    }

    /// What could not be built, and why.
    #[must_use]
    pub fn failed(&self) -> &[(String, String)] {
        &self.failed
    }

    /// The builds, one line each.
    pub(crate) fn listing(&self) -> String {
        let line = |built: &Built| {
            let Built { library, haproxy, runs_on, folder, .. } = built;
            format!("{library}: HAProxy {haproxy} on {runs_on} in {}\n", folder.display())
        };
        self.iter().map(line).collect()
    }
}

/// How to build.
#[derive(Debug, Clone)]
pub(crate) struct Workshop {
    /// The folder of the cache.
    pub(crate) cache: PathBuf,
    /// Compilers at once.
    pub(crate) jobs: usize,
    /// Whether to build again what failed before.
    pub(crate) retry: bool,
}

impl Workshop {
    /// Builds what is not built yet; one that fails is reported, and the others go on.
    pub(crate) fn build(
        &self,
        wanted: &[Wanted],
        sources: &Sources,
        watcher: &mut dyn Watcher,
    ) -> (Builds, End) {
        let stop = Arc::new(AtomicBool::new(false));
        let builder =
            Builder { cache: self.cache.clone(), jobs: self.jobs, stop: Arc::clone(&stop) };
        let mut builds = Builds::default();
        let each = builder.expected();
        let total = each * u32::try_from(wanted.len()).unwrap_or(u32::MAX);
        for (done, one) in (0u32..).zip(wanted) {
            let Wanted { release, library: name, .. } = one;
            let found = one.found(sources).and_then(|library| {
                match builder.find(release, &library) {
                    Ok(Some(built)) => return Ok(built),
                    Err(error @ Error::Build { .. }) if !self.retry => return Err(error),
                    _ => {}
                }
                builder.build(release, &library, &mut |step, share| {
                    watcher.progress(step, each * done + each.mul_f64(share), total);
                    stop.fetch_or(watcher.interrupted(), Ordering::Relaxed);
                })
            });
            match found {
                Err(Error::Interrupted) => return (builds, End::Interrupted),
                Err(error) => {
                    builds.add(one, Err(&error));
                    let problem = Problem::from(error);
                    watcher.warning(&format!("{name}: {problem}"), problem.remedy());
                }
                Ok(built) => builds.add(one, Ok(built)),
            }
            if watcher.interrupted() {
                return (builds, End::Interrupted);
            }
        }
        (builds, End::Complete)
    }
}
