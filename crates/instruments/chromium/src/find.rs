//! Where the program is.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use thiserror::Error;

/// The package of Debian that has it.
pub const PACKAGE: &str = "chromium-headless-shell";
/// How the program is called, by Debian, by those who make it, and as it is built.
const NAMES: [&str; 3] = ["chromium-headless-shell", "chrome-headless-shell", "headless_shell"];
/// Where Debian has it, for who has a short `PATH`.
const DEBIAN: &str = "/usr/lib/chromium/chromium-headless-shell";

/// There is no headless Chromium.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotInstalled {
    /// Where it was said to be.
    #[error("there is no program {}", .0.display())]
    Given(PathBuf),
    /// No place that was looked at has one.
    #[error("no headless Chromium is installed")]
    Anywhere,
}

impl Explain for NotInstalled {
    fn fault(&self) -> Fault {
        match self {
            NotInstalled::Given(_) => Fault::Caller,
            NotInstalled::Anywhere => Fault::Machine,
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            NotInstalled::Given(_) => "give the path of Chromium's headless shell".into(),
            NotInstalled::Anywhere => {
                format!("install Debian's package {PACKAGE}: apt install {PACKAGE}").into()
            }
        })
    }
}

/// The program: the one that is given, or the first of the names that it goes by.
///
/// # Errors
/// [`NotInstalled`].
pub fn find(given: Option<&Path>) -> Result<PathBuf, NotInstalled> {
    if let Some(given) = given {
        let there = given.is_file().then(|| given.to_owned());
        return there.ok_or_else(|| NotInstalled::Given(given.to_owned()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    first(&folders).ok_or(NotInstalled::Anywhere)
}

fn first(folders: &[PathBuf]) -> Option<PathBuf> {
    let named = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    named.chain([PathBuf::from(DEBIAN)]).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_given_is_taken_or_missed() {
        let this = std::env::current_exe().unwrap();
        assert_eq!(find(Some(&this)), Ok(this.clone()));
        let missing = find(Some(Path::new("/nowhere/chromium"))).unwrap_err();
        assert_eq!(missing.to_string(), "there is no program /nowhere/chromium");
        assert_eq!(missing.fault(), Fault::Caller);
        let none = NotInstalled::Anywhere;
        assert!(none.remedy().unwrap().contains("apt install chromium-headless-shell"));
    }
}
