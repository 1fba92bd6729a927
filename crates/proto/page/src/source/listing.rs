//! A page from files: what their HTML and CSS refer to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use fault::{Explain, Fault};
use thiserror::Error;
use units::{Bytes, Delay};
use url::Url;

use crate::error::PageError;
use crate::har::kind_of_path;
use crate::page::{Kind, Object, ObjectId, Page};
use crate::share::Share;
use crate::source::markup::{self, Reference};
use crate::text::Hosts;

/// A file, as the caller found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// The host that it comes from.
    pub host: &'a str,
    /// Its path on that host, as a file system has it: `/images/a b.png`.
    pub path: &'a str,
    /// Bytes of the file: the size of the body.
    pub bytes: Bytes,
    /// What is in it; needed of HTML and CSS alone.
    pub content: Option<&'a [u8]>,
}

/// A page made of files.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The page that they make.
    pub page: Page,
    /// The files to which nothing refers, as host and path: no browser would fetch them.
    pub unreferenced: Vec<String>,
}

/// Files that make no page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ListingError {
    /// There is no such file.
    #[error("there is no file `{0}` to begin with")]
    NoDocument(String),
    /// The page that they make cannot be.
    #[error("the files make no page: {0}")]
    Page(#[from] PageError),
}

impl Explain for ListingError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            ListingError::NoDocument(_) => Some("name the HTML file of the page".into()),
            ListingError::Page(error) => error.remedy(),
        }
    }
}

/// The page whose document is the file with this path, on the host of the first file.
///
/// An object is found by the first HTML or CSS file that refers to it, once that file is there up to
/// the reference.
///
/// # Errors
/// There is no such file, or what it refers to makes no page.
pub fn page(name: &str, document: &str, files: &[File<'_>]) -> Result<Listed, ListingError> {
    let missing = || ListingError::NoDocument(document.chars().take(100).collect());
    let mut by_url = HashMap::new();
    for file in files {
        if let Some(url) = url_of(file.host, file.path) {
            by_url.entry(url.to_string()).or_insert(file);
        }
    }
    let root = files.first().and_then(|first| url_of(first.host, document)).ok_or_else(missing)?;
    let file = by_url.get(root.as_str()).ok_or_else(missing)?;
    let mut hosts = Hosts::default();
    let mut objects = vec![object(&root, file, Some(Kind::Document), &mut hosts)];
    let mut seen = HashSet::from([root.to_string()]);
    let mut unread = VecDeque::from([(ObjectId(0), root, *file)]);
    while let Some((by, base, file)) = unread.pop_front() {
        for Reference { end, url, kind, blocking } in references(file, &base) {
            let Some((url, found)) = look_up(&by_url, &base, &url) else { continue };
            if !seen.insert(url.to_string()) {
                continue;
            }
            let share = Share::new(end as f64 / file.bytes.count().max(1) as f64);
            let id = ObjectId(objects.len() as u32);
            let mut one = object(&url, found, kind, &mut hosts);
            one.blocking = blocking && by == ObjectId(0);
            objects.push(one.found_by(by, share.unwrap_or(Share::ALL), Delay::ZERO));
            unread.push_back((id, url, found));
        }
    }
    let unreferenced = files
        .iter()
        .filter(|file| url_of(file.host, file.path).is_none_or(|url| !seen.contains(url.as_str())));
    let unreferenced = unreferenced.map(|file| format!("{}{}", file.host, file.path)).collect();
    Ok(Listed { page: Page::new(name, hosts.names, objects)?, unreferenced })
}

/// The address of a file, with what an address cannot have encoded.
fn url_of(host: &str, path: &str) -> Option<Url> {
    let mut url = Url::parse(&format!("http://{host}/")).ok()?;
    url.set_path(path);
    Some(url)
}

/// The file that a reference leads to, with or without its query.
fn look_up<'f, 'a>(
    by_url: &HashMap<String, &'f File<'a>>,
    base: &Url,
    reference: &str,
) -> Option<(Url, &'f File<'a>)> {
    let mut url = base.join(reference).ok()?;
    url.set_fragment(None);
    // Files are listed without a scheme: both are the same here.
    url.set_scheme("http").ok()?;
    if !by_url.contains_key(url.as_str()) {
        url.set_query(None);
    }
    let file = by_url.get(url.as_str()).copied()?;
    Some((url, file))
}

fn references(file: &File<'_>, base: &Url) -> Vec<Reference> {
    let Some(content) = file.content else { return Vec::new() };
    match kind_of_path(base.path()) {
        Kind::Style => markup::css(content),
        Kind::Document => markup::html(content),
        _ if base.path().ends_with('/') => markup::html(content),
        _ => Vec::new(),
    }
}

fn object(url: &Url, file: &File<'_>, kind: Option<Kind>, hosts: &mut Hosts) -> Object {
    let host = hosts.number(url.host_str().unwrap_or_default());
    let kind = kind.unwrap_or_else(|| kind_of_path(url.path()));
    Object::new(host, &url[url::Position::BeforePath..], kind, file.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &[u8] = b"<head><link rel=stylesheet href=s/a.css></head>\
        <img src='/my%20image.png?v=1'><img src='https://cdn.example/b.png'><img src=gone.png>";

    fn file<'a>(host: &'a str, path: &'a str, content: &'a [u8]) -> File<'a> {
        File { host, path, bytes: Bytes(content.len() as u64), content: Some(content) }
    }

    #[test]
    fn files_make_the_page_that_they_refer_to() {
        let files = [
            file("www.example", "/index.html", INDEX),
            file("www.example", "/s/a.css", b"p { background: url(../c.png) }"),
            file("www.example", "/my image.png", b"12345"),
            file("cdn.example", "/b.png", b"1"),
            file("www.example", "/c.png", b"22"),
            file("www.example", "/old.png", b"333"),
        ];
        let Listed { page, unreferenced } = super::page("site", "/index.html", &files).unwrap();
        let found: Vec<_> = page
            .objects()
            .iter()
            .map(|object| (object.path.as_str(), object.found.map(|found| found.by.0)))
            .collect();
        let expected = [
            ("/index.html", None),
            ("/s/a.css", Some(0)),
            ("/my%20image.png", Some(0)),
            ("/b.png", Some(0)),
            ("/c.png", Some(1)),
        ];
        assert_eq!(found, expected);
        assert_eq!(page.hosts(), ["www.example", "cdn.example"]);
        assert!(page.objects()[1].blocking);
        // 40 bytes of the document's, rounded as a share is.
        let style = page.objects()[1].found.unwrap();
        assert_eq!(style.after, Share::new(40.0 / INDEX.len() as f64).unwrap());
        assert_eq!(unreferenced, ["www.example/old.png"]);
    }

    #[test]
    fn a_page_needs_its_document() {
        let files = [file("www.example", "/a.css", b"")];
        let error = super::page("site", "/index.html", &files).unwrap_err();
        assert_eq!(error, ListingError::NoDocument("/index.html".to_owned()));
        assert!(super::page("site", "/", &[]).is_err());
    }
}
