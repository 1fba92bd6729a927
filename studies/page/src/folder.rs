//! A page from a folder of files: what its `index.html` refers to, on one host.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fault::{Explain, Fault};
use page::{Page, listing};
use thiserror::Error;
use units::Bytes;

/// The host that the files come from.
const HOST: &str = "www.page.example";
/// What the document may be called.
const DOCUMENTS: [&str; 2] = ["index.html", "index.htm"];
/// Folders below folders.
const MOST_DEPTH: usize = 32;
/// Most bytes of an HTML or CSS file that are looked at for references.
const MOST_READ: u64 = 16 << 20;
/// What such files end with.
const READ: [&str; 4] = ["html", "htm", "xhtml", "css"];

/// A folder that makes no page. The caller's fault.
#[derive(Debug, Error)]
pub(crate) enum FolderError {
    /// It cannot be listed, or a file in it cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    /// It has no document.
    #[error("the folder has no index.html to begin with")]
    NoDocument,
    /// It has more files than a page has objects.
    #[error("the folder has more than {} files", Page::MAX_OBJECTS)]
    TooMany,
    /// It has folders below folders, too many of them.
    #[error("the folder has folders more than {MOST_DEPTH} deep")]
    TooDeep,
    /// Its files make no page.
    #[error(transparent)]
    Listing(#[from] listing::ListingError),
}

impl Explain for FolderError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            FolderError::Unreadable { .. } => Some("name a folder that you may read".into()),
            FolderError::NoDocument => {
                Some("name the folder that has the page's index.html, or save the page so".into())
            }
            FolderError::TooMany | FolderError::TooDeep => {
                Some("name a folder with the files of one page alone".into())
            }
            FolderError::Listing(error) => error.remedy(),
        }
    }
}

/// A file below the folder.
struct Found {
    /// From the folder on, with slashes: `/images/a.png`.
    path: String,
    bytes: u64,
    /// What is in it, of HTML and CSS.
    content: Option<Vec<u8>>,
}

/// The page of a folder, and how many of its files are not part of it. Links that lead out of the folder are left
/// out, and links to folders; names that are not UTF-8 too, which no reference can have.
pub(crate) fn page(name: &str, folder: &Path) -> Result<(Page, usize), FolderError> {
    let root = fs::canonicalize(folder).map_err(|source| unreadable(folder, source))?;
    let files = files(&root)?;
    let is_there = |name: &&str| files.iter().any(|file| file.path.strip_prefix('/') == Some(name));
    let document = DOCUMENTS.iter().copied().find(is_there).ok_or(FolderError::NoDocument)?;
    let listed: Vec<listing::File<'_>> = files
        .iter()
        .map(|file| listing::File {
            host: HOST,
            path: &file.path,
            bytes: Bytes(file.bytes),
            content: file.content.as_deref(),
        })
        .collect();
    let listed = listing::page(name, &format!("/{document}"), &listed)?;
    Ok((listed.page, listed.unreferenced.len()))
}

fn unreadable(path: &Path, source: io::Error) -> FolderError {
    FolderError::Unreadable { path: path.display().to_string(), source }
}

/// The files below `root`, which is a canonical path, in the order of their names.
fn files(root: &Path) -> Result<Vec<Found>, FolderError> {
    let mut files = Vec::new();
    let mut folders = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, below, depth)) = folders.pop() {
        if depth > MOST_DEPTH {
            return Err(FolderError::TooDeep);
        }
        let entries = fs::read_dir(&folder).map_err(|source| unreadable(&folder, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| unreadable(&folder, source))?;
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else { continue };
            let kind = entry.file_type().map_err(|source| unreadable(&path, source))?;
            let own = format!("{below}/{name}");
            if kind.is_dir() {
                folders.push((path, own, depth + 1));
            } else if let Some(path) = inside(&path, kind.is_symlink(), root) {
                files.push(found(&path, own)?);
            }
            // Folders count too: each is listed.
            if files.len() + folders.len() > Page::MAX_OBJECTS {
                return Err(FolderError::TooMany);
            }
        }
    }
    files.sort_by(|a: &Found, b| a.path.cmp(&b.path));
    Ok(files)
}

/// A regular file's path; a link's, if it leads to one below `root`.
fn inside(path: &Path, is_link: bool, root: &Path) -> Option<PathBuf> {
    let path = match is_link {
        true => fs::canonicalize(path).ok().filter(|path| path.starts_with(root))?,
        false => path.to_owned(),
    };
    path.is_file().then_some(path)
}

fn found(path: &Path, own: String) -> Result<Found, FolderError> {
    let failed = |source| unreadable(path, source);
    let bytes = fs::metadata(path).map_err(failed)?.len();
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    let is_read = ending.is_some_and(|ending| READ.contains(&ending.as_str()));
    let content = match is_read {
        true => {
            let mut content = Vec::new();
            let file = File::open(path).map_err(failed)?;
            file.take(MOST_READ).read_to_end(&mut content).map_err(failed)?;
            Some(content)
        }
        false => None,
    };
    Ok(Found { path: own, bytes, content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    const INDEX: &[u8] =
        b"<head><link rel=stylesheet href=s/a.css></head><img src=b.png><img src=out.png>\
        <img src=in.png>";

    #[test]
    fn the_files_that_the_document_refers_to_are_the_page() {
        let folder = folder(&[
            ("index.html", INDEX),
            ("s/a.css", b"p { background: url(../c.png) }"),
            ("b.png", b"12345"),
            ("c.png", b"22"),
            ("old.png", b"333"),
        ]);
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let link = |to: &Path, name| std::os::unix::fs::symlink(to, folder.path().join(name));
        // Out of the folder, within it, and in a circle.
        link(elsewhere.path(), "out.png").unwrap();
        link(&folder.path().join("b.png"), "in.png").unwrap();
        link(folder.path(), "s/round").unwrap();
        let (page, unreferenced) = page("site", folder.path()).unwrap();
        let objects =
            page.objects().iter().map(|object| (object.path.as_str(), object.body.count()));
        let expected = [
            ("/index.html", INDEX.len() as u64),
            ("/s/a.css", 31),
            ("/b.png", 5),
            ("/in.png", 5),
            ("/c.png", 2),
        ];
        assert_eq!(objects.collect::<Vec<_>>(), expected);
        assert_eq!((page.hosts(), unreferenced), (&[HOST.to_owned()][..], 1));
        // As a manifest has it.
        assert_eq!(Page::from_toml(&page.to_toml()).unwrap(), page);
    }

    #[test]
    fn a_folder_that_makes_no_page_says_why() {
        let empty = tempfile::tempdir().unwrap();
        let said = |folder: &Path| {
            let error = page("site", folder).unwrap_err();
            assert!(error.fault() == Fault::Caller && error.remedy().is_some(), "{error}");
            error.to_string()
        };
        assert_eq!(said(empty.path()), "the folder has no index.html to begin with");
        let below = folder(&[("below/index.html", INDEX)]);
        assert!(said(below.path()).contains("no index.html"));
        assert!(said(&empty.path().join("nowhere")).contains("nowhere cannot be read"));
        let deep = tempfile::tempdir().unwrap();
        fs::create_dir_all(deep.path().join("a/".repeat(MOST_DEPTH + 1))).unwrap();
        assert!(said(deep.path()).contains("more than 32 deep"));
        let many = tempfile::tempdir().unwrap();
        for number in 0..=Page::MAX_OBJECTS {
            File::create(many.path().join(number.to_string())).unwrap();
        }
        assert_eq!(said(many.path()), "the folder has more than 10000 files");
    }
}
