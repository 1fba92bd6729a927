//! What was fetched for guests, and where it is.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use units::named;

use crate::Error;

named! {
    /// What is fetched by itself.
    pub enum Part: "part" {
        /// What this machine lacks of QEMU and of the programs that jobs use: `ip`, `tc`, `wpa_supplicant`.
        Programs = "programs",
        /// Debian's kernel for virtual machines.
        CloudKernel = "cloud-kernel",
        /// Debian's kernel for every machine: with Wi-Fi, too.
        FullKernel = "full-kernel",
        /// What this machine lacks of the daemons of networks: `hostapd`, `charon`, `dnsmasq`, `dhcpcd`.
        Daemons = "daemons",
    }
}

/// Where packages put programs that no user calls: strongSwan's, with their libraries.
const DAEMONS: &str = "usr/lib/ipsec";

/// A package that was unpacked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Package {
    /// Its name in Debian.
    pub name: String,
    /// Its version in Debian.
    pub version: String,
}

/// The list of a part's packages, in its folder: it is written last, so that where it is the part is whole.
const PACKAGES: &str = "packages.json";

#[derive(Serialize, Deserialize)]
struct Packages {
    packages: Vec<Package>,
}

/// The folder of what was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// A kernel that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// What QEMU starts.
    pub(crate) image: PathBuf,
    /// The folder of its modules.
    pub(crate) modules: PathBuf,
    /// Its release: `6.1.0-50-cloud-amd64`.
    pub(crate) release: String,
}

impl Cache {
    /// The user's: `wiretax/guest` below `XDG_CACHE_HOME`, else below `~/.cache`.
    ///
    /// # Errors
    /// [`Error::NoCache`]: a place that others can guess and write to is none for what is run.
    pub fn find() -> Result<Cache, Error> {
        Ok(Cache { folder: folder(|name| std::env::var_os(name))?.join("guest") })
    }

    /// The cache in another folder than the user's.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The packages of a part; `None` if it was not fetched.
    #[must_use]
    pub fn packages(&self, part: Part) -> Option<Vec<Package>> {
        let text = fs::read(self.part(part).join(PACKAGES)).ok()?;
        serde_json::from_slice::<Packages>(&text).ok().map(|list| list.packages)
    }

    /// Writes the list that makes a folder a part.
    pub(crate) fn seal(folder: &Path, packages: Vec<Package>) -> Result<(), Error> {
        let file = folder.join(PACKAGES);
        let text = serde_json::to_vec_pretty(&Packages { packages }).unwrap_or_default();
        fs::write(&file, text).map_err(Error::file("writing", &file))
    }

    /// The folder of a part.
    pub(crate) fn part(&self, part: Part) -> PathBuf {
        self.folder.join(part.name())
    }

    /// The kernel of a part.
    pub(crate) fn kernel(&self, part: Part) -> Result<Kernel, Error> {
        let root = self.part(part);
        if self.packages(part).is_none() {
            return Err(Error::NotFetched(part));
        }
        let missing = |what: &str| Error::Incomplete { part, what: what.to_owned() };
        let found = ["lib/modules", "usr/lib/modules"].iter().find_map(|modules| {
            let folder = fs::read_dir(root.join(modules)).ok()?.filter_map(Result::ok).next()?;
            Some((folder.path(), folder.file_name().to_string_lossy().into_owned()))
        });
        let (modules, release) = found.ok_or_else(|| missing("modules"))?;
        let image = root.join("boot").join(format!("vmlinuz-{release}"));
        if !image.is_file() {
            return Err(missing("kernel image"));
        }
        Ok(Kernel { image, modules, release })
    }

    /// A program: of this machine, else of what was fetched.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        let fetched = || {
            let mut folders = ["usr/bin", "usr/sbin", "bin", "sbin", DAEMONS].iter();
            folders.find_map(|folder| self.fetched(&Path::new(folder).join(name)))
        };
        on_this_machine(name).or_else(fetched)
    }

    /// A file that packages put at this path: of this machine, else of what was fetched.
    pub(crate) fn file(&self, path: &str) -> Option<PathBuf> {
        let here = Path::new("/").join(path);
        if here.is_file() { Some(here) } else { self.fetched(path.as_ref()) }
    }

    fn fetched(&self, path: &Path) -> Option<PathBuf> {
        let parts = [Part::Programs, Part::Daemons].iter();
        parts.map(|part| self.part(*part).join(path)).find(|file| file.is_file())
    }

    /// Folders in which the fetched programs of a part find their libraries.
    pub(crate) fn library_folders(&self, part: Part) -> Vec<PathBuf> {
        let root = self.part(part);
        let folders =
            ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib", "lib", DAEMONS];
        folders.iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir()).collect()
    }
}

/// A program of this machine, in the administrator's folders too.
pub(crate) fn on_this_machine(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(others).chain([Path::new("/").join(DAEMONS)]);
    // An empty entry would be the current folder.
    let folders = folders.filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The user's cache, by the variables that say where it is (XDG Base Directory Specification).
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    // A relative path is to be ignored; so would be one below whatever folder is the current one.
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    Ok(cache.ok_or(Error::NoCache)?.join("wiretax"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_the_users_or_none() {
        let cache = |xdg: Option<&str>, home: Option<&str>| {
            let found = folder(|name| match name {
                "XDG_CACHE_HOME" => xdg.map(OsString::from),
                _ => home.map(OsString::from),
            });
            found.ok()
        };
        assert_eq!(cache(Some("/c"), Some("/h")).as_deref(), Some(Path::new("/c/wiretax")));
        assert_eq!(cache(Some("c"), Some("/h")).as_deref(), Some(Path::new("/h/.cache/wiretax")));
        assert_eq!(cache(None, Some("")), None);
    }

    #[test]
    fn a_part_is_there_once_its_list_is() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let part = Part::CloudKernel;
        assert!(matches!(cache.kernel(part), Err(Error::NotFetched(_))));
        let root = cache.part(part);
        fs::create_dir_all(root.join("lib/modules/6.1.0-1-cloud-amd64")).unwrap();
        let packages = vec![Package { name: "linux".to_owned(), version: "1:2".to_owned() }];
        Cache::seal(&root, packages.clone()).unwrap();
        assert_eq!(cache.packages(part), Some(packages));
        assert!(matches!(cache.kernel(part), Err(Error::Incomplete { .. })));
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::write(root.join("boot/vmlinuz-6.1.0-1-cloud-amd64"), "x").unwrap();
        assert_eq!(cache.kernel(part).unwrap().release, "6.1.0-1-cloud-amd64");
    }
}
