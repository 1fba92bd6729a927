//! The pages of a plan: those that have a name, and the user's own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use fault::{Explain, Fault, Problem, WhileDoing};
use page::har::{self, HarError};
use page::{Page, paper};
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

    /// Reads a page from a file: HAR (packed too), or Wiretax's own form in TOML or JSON; or from a folder with its files. Its name
    /// is the file's, without its ending, or the folder's. What was left out stands as comments before its TOML.
    ///
    /// # Errors
    /// The file or the folder cannot be read, or makes no page.
    pub fn read(&mut self, file: &Path, options: &Options<'_>) -> Result<Read, Problem> {
        let mut stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        // `site.har.gz` is a page `site`.
        if let Some(short) = stem.as_deref().and_then(|stem| stem.strip_suffix(".har")) {
            stem = Some(short.to_owned());
        }
        let legible =
            |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let stem: String = stem.unwrap_or_default().chars().map(legible).take(60).collect();
        let name = if stem.is_empty() { "page".to_owned() } else { stem };
        let (page, notes) = if file.is_dir() {
            let shown = || file.display().to_string();
            (folder::page(&name, file).while_doing(shown)?.0, Vec::new())
        } else {
            of_file(&name, file, options)?
        };
        let comments: String = notes.iter().map(|note| format!("# {note}\n")).collect();
        self.0.insert(name.clone(), comments + &page.to_toml());
        Ok(Read { name: PageName(name), notes })
    }
}

/// The page of a file, and what is to be said of it.
fn of_file(name: &str, file: &Path, options: &Options<'_>) -> Result<(Page, Vec<String>), Problem> {
    let shown = || file.display().to_string();
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if ending.as_deref() == Some("toml") {
        let text = options.text_of(file, "page")?;
        return Ok((Page::from_toml(&text).while_doing(shown)?, Vec::new()));
    }
    // A larger one is not read to learn so.
    let length = std::fs::metadata(file).map_or(0, |data| data.len());
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > har::MAX_TEXT {
        return Err(Problem::from(HarError::TooLong(length)).while_doing(shown()));
    }
    let bytes = options.bytes_of(har::MAX_TEXT as u64, file, "page")?;
    let text = har::text(&bytes).while_doing(shown)?;
    if ending.as_deref() == Some("json") && !har::is_har(&text) {
        return Ok((Page::from_json(&text).while_doing(shown)?, Vec::new()));
    }
    let read = har::read(name, &text).while_doing(shown)?;
    let notes = read.notes();
    Ok((read.page, notes))
}

/// A page that was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// By which it is known from now on.
    pub name: PageName,
    /// What of a HAR file is not in it, a sentence each.
    pub notes: Vec<String>,
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
        assert_eq!((read.name.to_string().as_str(), read.notes.len()), ("my", 0));
        assert_eq!(pages.page(&read.name, 1).unwrap().objects().len(), 2);
        let wrong = folder.path().join("broken.har");
        std::fs::write(&wrong, "{").unwrap();
        let problem = pages.read(&wrong, &Options::none()).unwrap_err();
        assert_eq!(problem.fault(), Fault::Caller);
        assert!(problem.to_string().contains("broken.har"), "{problem}");
    }
    const HAR: &str = r#"{ "log": { "entries": [
        { "request": { "url": "https://a.example/" }, "response": { "status": 200 } },
        { "request": { "url": "data:,a" }, "response": { "status": 200 } } ] } }"#;

    #[test]
    fn a_har_is_known_by_its_content_and_says_what_it_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let mut pages = Pages::default();
        let said = "1 entry was left out: data:, blob: or another URL that is not HTTP: 1";
        for ending in ["har", "json", "HAR", "JSON", "txt"] {
            let file = folder.path().join(format!("saved.{ending}"));
            std::fs::write(&file, HAR).unwrap();
            let read = pages.read(&file, &Options::none()).unwrap();
            assert_eq!(read.notes, [said], "{ending}");
            assert_eq!(pages.page(&read.name, 1).unwrap().objects().len(), 1);
            assert!(pages.0["saved"].starts_with(&format!("# {said}\nname = ")));
        }
        let own = folder.path().join("own.json");
        let page = paper::page("small-objects", 1).unwrap();
        std::fs::write(&own, serde_json::to_string(&page).unwrap()).unwrap();
        assert_eq!(pages.read(&own, &Options::none()).unwrap().notes.len(), 0);
    }

    #[test]
    fn a_packed_har_or_one_with_odd_values_is_read() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let mut pages = Pages::default();
        let odd = HAR.replace("\"status\": 200", "\"status\": 200, \"bodySize\": NaN");
        let mut latin = odd.into_bytes();
        latin.splice(0..1, *b"{ \"comment\": \"\xe9 \\ud800\",");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&latin).unwrap();
        for (name, bytes) in [("site.har", latin), ("site.har.gz", gzip.finish().unwrap())] {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).unwrap();
            let read = pages.read(&file, &Options::none()).unwrap();
            assert_eq!(read.name.to_string(), "site");
            assert_eq!(pages.page(&read.name, 1).unwrap().objects().len(), 1);
        }
    }

    #[test]
    fn a_har_may_be_larger_than_a_plan_and_not_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut pages = Pages::default();
        let file = folder.path().join("large.har");
        let body = "A".repeat(17 << 20);
        let entry = format!("\"response\": {{ \"content\": {{ \"text\": \"{body}\" }},");
        std::fs::write(&file, HAR.replace("\"response\": {", &entry)).unwrap();
        pages.read(&file, &Options::none()).unwrap();
        // Without blocks on the disk.
        let length = har::MAX_TEXT as u64 + 1;
        std::fs::File::create(&file).unwrap().set_len(length).unwrap();
        let problem = pages.read(&file, &Options::none()).unwrap_err();
        assert!(problem.to_string().contains(&format!("has {length} bytes")), "{problem}");
        assert_eq!(problem.remedy(), Some("save it without content"));
    }
}
