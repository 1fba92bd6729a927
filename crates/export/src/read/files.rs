//! Files of rows, as the user named them or in the folders of a data set.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use outfile::{Access, Folder, Refused};
use rustix::fs::FileType;

use super::error::ReadError;
use super::range::TimeRange;
use crate::EndingRow;
use crate::columns::Table;
use crate::row::Row;

/// Folders within folders that are looked into: `connections/date=…/hour=…` has three.
const DEPTH: usize = 4;

/// A file that is still to be read.
#[derive(Debug)]
pub(super) enum Waiting {
    /// Its name is the user's: links are followed, a pipe is read.
    Named(PathBuf),
    /// In a folder that the user named: neither is.
    Below(Rc<Folder>, Vec<OsString>),
}

impl Waiting {
    /// Its path, for messages.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            Waiting::Named(path) => path.clone(),
            Waiting::Below(folder, names) => folder.path().join(names.iter().collect::<PathBuf>()),
        }
    }

    pub(super) fn open(&self) -> Result<File, ReadError> {
        match self {
            Waiting::Named(path) => File::open(path).map_err(ReadError::io(path)),
            Waiting::Below(folder, names) => {
                descend(folder, names).map_err(ReadError::refused(&self.path()))
            }
        }
    }
}

fn descend(folder: &Folder, names: &[OsString]) -> Result<File, Refused> {
    match names {
        [name] => folder.file(name, Access::Read),
        [name, rest @ ..] => descend(&folder.folder(name)?, rest),
        [] => folder.file("", Access::Read),
    }
}

/// Returns the files of rows that a path stands for, in the order of their hours.
pub(super) fn of_path(path: &Path, range: TimeRange) -> Result<Vec<Waiting>, ReadError> {
    if !fs::metadata(path).map_err(ReadError::io(path))?.is_dir() {
        return Ok(vec![Waiting::Named(path.to_owned())]);
    }
    let (folder, mut found) = rows_below(path)?;
    if found.is_empty() {
        return Err(ReadError::NoRecords(path.to_owned()));
    }
    found.sort();
    let folder = Rc::new(folder);
    let files = found.into_iter().map(|names| Waiting::Below(folder.clone(), names));
    Ok(files.filter(|file| range.may_have(&file.path())).collect())
}

/// Whether a path holds records of `observe`, as far as its first bytes or its folders say; a file of
/// another kind is taken for one, so that what is wrong with it is said.
#[must_use]
pub fn holds_records(path: &Path) -> bool {
    if !path.is_dir() {
        return path.is_file();
    }
    match rows_below(path) {
        Ok((folder, found)) => {
            !found.is_empty() || folder.kind(Row::NAME) == Some(FileType::Directory)
        }
        // Reading it says what is wrong.
        Err(error) => matches!(error, ReadError::Irregular { .. }),
    }
}

/// Checks that a data set has no link, pipe or device in the place of a folder or a file of rows.
///
/// # Errors
/// [`ReadError::Irregular`] names it; [`ReadError::Io`].
pub fn check_data_set(path: &Path) -> Result<(), ReadError> {
    let folder = Folder::open(path).map_err(ReadError::io(path))?;
    let mut found = Vec::new();
    for name in [Row::NAME, EndingRow::NAME] {
        if folder.kind(name).is_some() {
            let table = folder.folder(name);
            let table = table.map_err(ReadError::refused(&path.join(name)))?;
            walk(&table, DEPTH, &mut vec![name.into()], &mut found)?;
        }
    }
    let folder = Rc::new(folder);
    for names in found {
        Waiting::Below(folder.clone(), names).open()?;
    }
    Ok(())
}

/// Returns the folder and the names of each Parquet file below it, but for those of endings.
fn rows_below(path: &Path) -> Result<(Folder, Vec<Vec<OsString>>), ReadError> {
    let folder = Folder::open(path).map_err(ReadError::io(path))?;
    let mut found = Vec::new();
    if folder.kind(Row::NAME) == Some(FileType::Directory) {
        let table = folder.folder(Row::NAME);
        let table = table.map_err(ReadError::refused(&path.join(Row::NAME)))?;
        walk(&table, DEPTH, &mut vec![Row::NAME.into()], &mut found)?;
    } else {
        walk(&folder, DEPTH, &mut Vec::new(), &mut found)?;
    }
    Ok((folder, found))
}

/// Finds the Parquet files; hidden ones are not whole.
fn walk(
    folder: &Folder,
    depth: usize,
    at: &mut Vec<OsString>,
    found: &mut Vec<Vec<OsString>>,
) -> Result<(), ReadError> {
    for name in folder.names().map_err(ReadError::io(folder.path()))? {
        if name.as_encoded_bytes().starts_with(b".") || name == EndingRow::NAME {
            continue;
        }
        let path = folder.path().join(&name);
        let is_rows = path.extension().is_some_and(|extension| extension == "parquet");
        match folder.kind(&name) {
            Some(FileType::Directory) if depth > 0 => {
                let inner = folder.folder(&name).map_err(ReadError::refused(&path))?;
                at.push(name);
                walk(&inner, depth - 1, at, found)?;
                at.pop();
            }
            Some(FileType::Directory) => {}
            Some(FileType::Symlink) if is_partition(&name) => {
                let what = "a link";
                return Err(ReadError::Irregular { path, what });
            }
            Some(_) if is_rows => {
                found.push(at.iter().cloned().chain([name]).collect());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a name is that of a folder in which rows lie.
fn is_partition(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name == Row::NAME.as_bytes() || name.starts_with(b"date=") || name.starts_with(b"hour=")
}
