//! The pages of a plan: those that have a name, and the user's own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fault::{Explain, Fault, Problem, WhileDoing};
use page::{Page, har, paper};
use study::Options;
use thiserror::Error;

use crate::folder;

/// A page by its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageName(String);

/// A text that cannot name a page. The caller's fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` cannot name a page")]
pub struct BadName(String);

impl Explain for BadName {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("write letters, digits, `-`, `_` and `.`".into())
    }
}

impl FromStr for PageName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<PageName, BadName> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = (1..=80).contains(&text.len()) && text.chars().all(allowed);
        if good { Ok(PageName(text.to_owned())) } else { Err(BadName(text.to_owned())) }
    }
}

impl fmt::Display for PageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The user's own pages, in TOML by name: a manifest has them, so that results can be measured again
/// without the files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pages(pub(crate) BTreeMap<String, String>);

impl Pages {
    /// The page of a name. Named pages are made anew from `seed`.
    ///
    /// # Errors
    /// No page has this name; the user's does not read.
    pub fn page(&self, name: &PageName, seed: u64) -> Result<Page, Problem> {
        match self.0.get(&name.0) {
            Some(text) => Ok(Page::from_toml(text).while_doing(|| format!("the page {name}"))?),
            None => Ok(paper::page(&name.0, seed)?),
        }
    }

    /// Reads a page from a file: HAR, or Wiretax's own form in TOML or JSON; or from a folder with its files. Its name
    /// is the file's, without its ending, or the folder's.
    ///
    /// # Errors
    /// The file or the folder cannot be read, or makes no page.
    pub fn read(&mut self, file: &Path, options: &Options<'_>) -> Result<Read, Problem> {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let legible =
            |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let stem: String = stem.unwrap_or_default().chars().map(legible).take(60).collect();
        let name = if stem.is_empty() { "page".to_owned() } else { stem };
        let shown = || file.display().to_string();
        if file.is_dir() {
            let (page, skipped) = folder::page(&name, file).while_doing(shown)?;
            self.0.insert(name.clone(), page.to_toml());
            return Ok(Read { name: PageName(name), skipped });
        }
        let text = options.text_of(file, "page")?;
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        let (page, skipped) = match ending.as_deref() {
            Some("toml") => (Page::from_toml(&text).while_doing(shown)?, 0),
            Some("json") => (Page::from_json(&text).while_doing(shown)?, 0),
            _ => {
                let har::Read { page, skipped } = har::read(&name, &text).while_doing(shown)?;
                (page, skipped)
            }
        };
        self.0.insert(name.clone(), page.to_toml());
        Ok(Read { name: PageName(name), skipped })
    }
}

/// A page that was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// By which it is known from now on.
    pub name: PageName,
    /// Entries of a HAR file that were left out, or files of a folder that nothing refers to.
    pub skipped: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_pages_and_the_users_own_are_found() {
        let mut pages = Pages::default();
        let play = pages.page(&"google-play".parse().unwrap(), 1).unwrap();
        assert_eq!(play.objects().len(), 52);
        pages.0.insert("mine".to_owned(), play.to_toml());
        assert_eq!(pages.page(&"mine".parse().unwrap(), 9).unwrap().bytes(), play.bytes());
        let unknown = pages.page(&"gogle".parse().unwrap(), 1).unwrap_err();
        assert_eq!(unknown.fault(), Fault::Caller);
        assert!("a b".parse::<PageName>().is_err() && "".parse::<PageName>().is_err());
    }

    #[test]
    fn a_file_is_read_by_its_ending() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my site.toml");
        let page = paper::page("small-objects", 1).unwrap();
        std::fs::write(&file, page.to_toml()).unwrap();
        let mut pages = Pages::default();
        let read = pages.read(&file, &Options::none()).unwrap();
        assert_eq!(read.name.to_string(), "my-site");
        assert_eq!(pages.page(&read.name, 1).unwrap().bytes(), page.bytes());
        let site = folder.path().join("my.files");
        std::fs::create_dir(&site).unwrap();
        std::fs::write(site.join("index.html"), "<img src=a.png>").unwrap();
        std::fs::write(site.join("a.png"), "1").unwrap();
        let read = pages.read(&site, &Options::none()).unwrap();
        assert_eq!((read.name.to_string().as_str(), read.skipped), ("my", 0));
        assert_eq!(pages.page(&read.name, 1).unwrap().objects().len(), 2);
        let wrong = folder.path().join("broken.har");
        std::fs::write(&wrong, "{").unwrap();
        let problem = pages.read(&wrong, &Options::none()).unwrap_err();
        assert_eq!(problem.fault(), Fault::Caller);
        assert!(problem.to_string().contains("broken.har"), "{problem}");
    }
}
