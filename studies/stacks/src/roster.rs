//! Which libraries there are, as a plan sees them.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use runtimes::Runtime;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tls_drivers::{BUILT_IN, Catalog, Driver, State};

/// The driver without cryptography: what it costs is the harness's own.
pub const NULL: &str = "null";

/// Something that a test cannot show, with the page that says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Of what: `lts`, `fips`, `maintainer`.
    pub what: String,
    /// What is the case.
    pub says: String,
    /// A public page.
    pub source: String,
}

/// Whether a library can be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Build {
    /// Here it is.
    Built(PathBuf),
    /// Nobody has built it yet.
    NotBuilt,
    /// It was tried, and failed: why.
    Failed(String),
    /// A runtime's own, in a program that runs in a process of its own.
    Program {
        /// Why it cannot be run here; nothing where it can.
        absent: Option<String>,
    },
}

/// A library that can be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Library {
    /// Its driver's name: `openssl-3.5.5`.
    pub name: String,
    /// The family: `OpenSSL`.
    pub family: String,
    /// Its version: `3.5.5`.
    pub version: String,
    /// Whether it belongs to the default set.
    pub default: bool,
    /// Licence as an SPDX expression.
    pub licence: String,
    /// What a test cannot show.
    pub facts: Vec<Fact>,
    /// Whether it can be measured.
    pub build: Build,
}

impl Library {
    /// One of a driver.
    #[must_use]
    pub fn of(driver: &Driver) -> Library {
        let facts = driver.facts.iter().map(|fact| Fact {
            what: fact.what.clone(),
            says: fact.says.clone(),
            source: fact.source.clone(),
        });
        Library {
            name: driver.name.clone(),
            family: driver.library.clone(),
            version: driver.version.clone(),
            default: driver.default,
            licence: driver.licence.clone(),
            facts: facts.collect(),
            build: match &driver.state {
                State::Built { object } => Build::Built(object.clone()),
                State::NotBuilt => Build::NotBuilt,
                State::Failed { reason, .. } => Build::Failed(reason.clone()),
            },
        }
    }

    /// A runtime's; one whose toolchain is not here says why.
    fn of_runtime(runtime: &Runtime) -> Library {
        let found = runtime.available();
        let version = found.as_ref().map_or("", |toolchain| toolchain.number()).to_owned();
        let fact = |fact: &runtimes::Fact| Fact {
            what: fact.what.to_owned(),
            says: fact.says.to_owned(),
            source: fact.source.to_owned(),
        };
        Library {
            name: runtime.name().to_owned(),
            family: runtime.family().to_owned(),
            default: false,
            licence: runtime.licence().to_owned(),
            facts: runtime.facts(&version).iter().map(fact).collect(),
            build: Build::Program { absent: found.err().map(|error| error.to_string()) },
            version,
        }
    }

    /// Its shared object, where it is built.
    #[must_use]
    pub fn object(&self) -> Option<&PathBuf> {
        match &self.build {
            Build::Built(object) => Some(object),
            Build::NotBuilt | Build::Failed(_) | Build::Program { .. } => None,
        }
    }

    /// Whether it lives in a program of its own: a runtime's, that no process of ours can load.
    #[must_use]
    pub fn is_program(&self) -> bool {
        matches!(self.build, Build::Program { .. })
    }

    /// Whether it can be measured.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self.build, Build::Built(_) | Build::Program { absent: None })
    }

    /// Family and version, for people.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.family, self.version).trim().to_owned()
    }
}

/// A name that matches nothing. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no library is called `{name}`")]
pub struct UnknownLibrary {
    /// The name as given.
    pub name: String,
    /// The names that there are.
    pub known: String,
}

impl Explain for UnknownLibrary {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(format!("choose from {}", self.known).into())
    }
}

/// All libraries that there are, in the order to show them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Roster {
    /// The libraries, in that order.
    pub libraries: Vec<Library>,
}

impl Roster {
    /// What the catalogue has, what is built in, the runtimes, and the null driver, whose object lies at
    /// `null`. A library that is built in stands in for its family in the default set as long as no driver
    /// of the family is built.
    #[must_use]
    pub fn of(catalog: &Catalog, built_in: &[Driver], null: &Path) -> Roster {
        let mut libraries: Vec<Library> = catalog.drivers().iter().map(Library::of).collect();
        for driver in built_in {
            let library = Library::of(driver);
            let of_family = |other: &&Library| other.family == library.family;
            let default = !libraries.iter().filter(of_family).any(Library::is_there);
            libraries.push(Library { default, ..library });
        }
        libraries.extend(Runtime::ALL.iter().map(Library::of_runtime));
        libraries.push(Library {
            name: NULL.to_owned(),
            family: "no".to_owned(),
            version: "cryptography".to_owned(),
            default: false,
            licence: String::new(),
            facts: Vec::new(),
            build: Build::Built(null.to_path_buf()),
        });
        Roster { libraries }
    }

    /// The library of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Library> {
        self.libraries.iter().find(|library| library.name == name)
    }

    /// Family and version of this name; the name itself where it is not in the roster.
    #[must_use]
    pub fn title(&self, name: &str) -> String {
        self.find(name).map_or_else(|| name.to_owned(), Library::title)
    }

    /// The libraries that these names mean, in the roster's order: a name, a pattern with `*`,
    /// `default`, `built` (whatever can be measured here: drivers that are built, and runtimes whose
    /// toolchain is on the machine) or `all`. The null driver is meant only by its own name.
    ///
    /// # Errors
    /// [`UnknownLibrary`] for a name or a pattern that matches nothing.
    pub fn select(&self, names: &[String]) -> Result<Vec<&Library>, UnknownLibrary> {
        let mut wanted = vec![false; self.libraries.len()];
        for name in names {
            let mut known = matches!(name.as_str(), "default" | "built" | "all");
            for (library, wanted) in self.libraries.iter().zip(&mut wanted) {
                if library.is_meant_by(name) {
                    (*wanted, known) = (true, true);
                }
            }
            if !known {
                let known: Vec<&str> = self.libraries.iter().map(|one| one.name.as_str()).collect();
                let words = "default, built, all, a pattern such as openssl-*";
                let known = format!("{words}, {}", known.join(", "));
                return Err(UnknownLibrary { name: name.clone(), known });
            }
        }
        let all = self.libraries.iter().zip(wanted);
        Ok(all.filter_map(|(library, wanted)| wanted.then_some(library)).collect())
    }
}

impl Library {
    fn is_meant_by(&self, name: &str) -> bool {
        if name == self.name {
            return true;
        }
        if self.name == NULL {
            return false;
        }
        match name {
            // One that is built in where a driver of its family is, too, is meant only by name.
            "all" | "built" if self.name.ends_with(BUILT_IN) => self.default,
            "all" => true,
            "default" => self.default,
            "built" => self.is_there(),
            pattern => pattern.contains('*') && matches(pattern, &self.name),
        }
    }
}

/// Whether a text is what a pattern says, `*` standing for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, rest)) => text.strip_prefix(head).is_some_and(|tail| {
            let mut starts = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
            starts.any(|at| tail.get(at..).is_some_and(|tail| matches(rest, tail)))
        }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Libraries by name; those with `!` in front are not built, with `+` behind of the default set.
    /// `go` and `java` are programs.
    pub(crate) fn roster(names: &[&str]) -> Roster {
        let library = |given: &&str| {
            let name = given.trim_matches(['!', '+']).to_owned();
            let (family, version) = name.split_once('-').unwrap_or((&name, "1"));
            let absent = given.starts_with('!');
            let build = match (crate::programs::runtime(&name), absent) {
                (Some(_), _) => {
                    Build::Program { absent: absent.then(|| format!("{name} is not here")) }
                }
                (None, true) => Build::NotBuilt,
                (None, false) => Build::Built(PathBuf::from(format!("drivers/{name}.so"))),
            };
            Library {
                family: family.to_owned(),
                version: version.to_owned(),
                default: given.ends_with('+'),
                licence: "Apache-2.0".to_owned(),
                facts: Vec::new(),
                build,
                name,
            }
        };
        Roster { libraries: names.iter().map(library).collect() }
    }

    #[test]
    fn runtimes_are_libraries_whether_they_are_here_or_not() {
        let all: Vec<Library> = Runtime::ALL.iter().map(Library::of_runtime).collect();
        assert_eq!(all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["go", "java"]);
        assert!(all.iter().all(|one| one.is_program() && !one.licence.is_empty() && !one.default));
        assert!(all.iter().all(|one| one.facts.iter().any(|fact| fact.what == "fips")));
    }

    fn selected(names: &[&str]) -> Result<Vec<String>, UnknownLibrary> {
        let roster =
            roster(&["openssl-1.1.1w+", "openssl-3.0.2+", "!boringssl+", "gnutls", "null"]);
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(roster.select(&names)?.into_iter().map(|library| library.name.clone()).collect())
    }

    #[test]
    fn names_patterns_and_sets_are_understood() {
        let of = |names: &[&str]| selected(names).unwrap();
        assert_eq!(of(&["default"]), ["openssl-1.1.1w", "openssl-3.0.2", "boringssl"]);
        assert_eq!(of(&["built", "null"]), ["openssl-1.1.1w", "openssl-3.0.2", "gnutls", "null"]);
        assert_eq!(of(&["gnutls", "openssl-*2"]), ["openssl-3.0.2", "gnutls"]);
        assert_eq!(of(&["all"]).len(), 4);
        assert_eq!(of(&["*ssl*"]).len(), 3);
    }

    /// A driver, as the catalogue has it.
    fn driver(name: &str, library: &str, state: State) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("drivers");
        std::fs::create_dir_all(sources.join("include")).unwrap();
        std::fs::create_dir_all(sources.join(name)).unwrap();
        for empty in ["shim", "build"] {
            std::fs::create_dir_all(sources.join(empty)).unwrap();
        }
        let text = format!(
            "name = '{name}'\nlibrary = '{library}'\nversion = '1'\ndefault = false\nkind = 'k'\n\
             about = ''\nlicence = ''\n"
        );
        std::fs::write(sources.join(name).join("driver.toml"), text).unwrap();
        let cache = folder.path().join("cache");
        let folders = tls_drivers::Folders { sources: Some(sources), cache };
        let mut driver = Catalog::read(&folders).unwrap().drivers()[0].clone();
        driver.state = state;
        driver
    }

    #[test]
    fn what_is_built_in_stands_in_for_its_family() {
        let built = || State::Built { object: PathBuf::from("x.so") };
        let of = |state| {
            let catalog = Catalog::of(vec![driver("openssl-3.5.5", "OpenSSL", state)]);
            let built_in = [
                driver("openssl-built-in", "OpenSSL", built()),
                driver("rustls-built-in", "rustls", built()),
            ];
            let roster = Roster::of(&catalog, &built_in, Path::new("null.so"));
            let of = |name: &str| {
                let names = roster.select(&[name.to_owned()]).unwrap();
                let names = names.into_iter().filter(|library| !library.is_program());
                names.map(|library| library.name.clone()).collect::<Vec<_>>()
            };
            [of("built"), of("default"), of("openssl-built-in")]
        };
        let [meant, default, named] = of(State::NotBuilt);
        assert_eq!(meant, ["openssl-built-in", "rustls-built-in"]);
        assert_eq!((default, named), (meant.clone(), vec!["openssl-built-in".to_owned()]));
        let [meant, default, named] = of(built());
        assert_eq!(meant, ["openssl-3.5.5", "rustls-built-in"]);
        assert_eq!(default, ["rustls-built-in"]);
        assert_eq!(named, ["openssl-built-in"]);
    }

    #[test]
    fn a_runtime_is_built_where_its_toolchain_is() {
        let roster = roster(&["gnutls", "go", "!java", "null"]);
        let built = roster.select(&["built".to_owned()]).unwrap();
        assert_eq!(built.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["gnutls", "go"]);
        let all = roster.select(&["all".to_owned()]).unwrap();
        assert_eq!(all.iter().filter(|one| one.is_program()).count(), 2);
        assert!(all.iter().all(|one| one.object().is_none() || !one.is_program()));
    }

    #[test]
    fn what_there_is_not_is_answered_by_a_list() {
        let error = selected(&["default", "schannel"]).unwrap_err();
        assert_eq!(error.to_string(), "no library is called `schannel`");
        assert!(error.remedy().unwrap().contains("boringssl, gnutls"), "{error:?}");
        assert!(selected(&["libressl-*"]).is_err());
    }
}
