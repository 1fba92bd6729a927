//! Rows read back: what an earlier run wrote, for questions about all of it.
//!
//! [`Records`] takes JSON lines, Parquet files and folders of these, as they are named, and gives one
//! [`Record`] at a time, in the memory of a few rows. A row may be of an older program, which had fewer
//! columns; what it lacks is not known. Within a file rows come as they were written, which is about
//! the order in which the handshakes ended; the files of a folder come in the order of their hours.

mod columns;
mod error;
mod lines;
mod range;
mod record;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

pub use error::ReadError;
pub use range::{RangeError, TimeRange};
pub use record::Record;

use crate::columns::Table;
use crate::row::Row;
use columns::Columns;
use lines::Lines;

/// Bytes of JSON that are read at once.
const BUFFER: usize = 256 << 10;
/// Folders within folders that are looked into: `connections/date=…/hour=…` has three.
const DEPTH: usize = 4;

/// The records of files and folders.
#[derive(Debug)]
pub struct Records {
    range: TimeRange,
    /// Files that are still to be read.
    waiting: VecDeque<PathBuf>,
    open: Option<Open>,
}

/// A file that is being read.
#[derive(Debug)]
enum Open {
    Lines(Lines<BufReader<File>>),
    Columns(Columns),
}

impl Records {
    /// The records of these files and folders whose first frame is within `range`.
    ///
    /// # Errors
    /// A path is not there or cannot be listed, or a folder has no records.
    pub fn open<P: AsRef<Path>>(paths: &[P], range: TimeRange) -> Result<Records, ReadError> {
        let mut waiting = VecDeque::new();
        for path in paths {
            let path = path.as_ref();
            let about = fs::metadata(path).map_err(ReadError::io(path))?;
            if !about.is_dir() {
                waiting.push_back(path.to_owned());
                continue;
            }
            let table = path.join(Row::NAME);
            let mut found = Vec::new();
            walk(if table.is_dir() { &table } else { path }, DEPTH, &mut found)?;
            if found.is_empty() {
                return Err(ReadError::NoRecords(path.to_owned()));
            }
            found.sort();
            waiting.extend(found.into_iter().filter(|file| range.may_have(file)));
        }
        Ok(Records { range, waiting, open: None })
    }

    fn next_record(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            let record = match &mut self.open {
                Some(Open::Lines(lines)) => lines.next_record()?,
                Some(Open::Columns(columns)) => columns.next_record()?,
                None => None,
            };
            if let Some(record) = record {
                if self.range.has(record.first_frame) {
                    return Ok(Some(record));
                }
                continue;
            }
            let Some(path) = self.waiting.pop_front() else { return Ok(None) };
            self.open = Some(open(&path)?);
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_err() {
            // One error is enough: what follows it in the file cannot be told apart.
            self.open = None;
            self.waiting.clear();
        }
        next.transpose()
    }
}

/// Whether a path holds records of `observe`, as far as its first bytes or its folders say; a file of
/// another kind is taken for one, so that what is wrong with it is said.
#[must_use]
pub fn holds_records(path: &Path) -> bool {
    if !path.is_dir() {
        return path.is_file();
    }
    let mut found = Vec::new();
    path.join(Row::NAME).is_dir() || walk(path, DEPTH, &mut found).is_ok() && !found.is_empty()
}

/// All Parquet files below a folder but those of endings; what is hidden is not whole.
fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    for entry in fs::read_dir(folder).map_err(ReadError::io(folder))? {
        let entry = entry.map_err(ReadError::io(folder))?;
        let (path, name) = (entry.path(), entry.file_name());
        if name.as_encoded_bytes().starts_with(b".") || name == crate::EndingRow::NAME {
            continue;
        }
        if path.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    Ok(())
}

/// Opens a file by what it begins with.
fn open(path: &Path) -> Result<Open, ReadError> {
    let mut file = File::open(path).map_err(ReadError::io(path))?;
    let mut magic = Vec::with_capacity(4);
    file.by_ref().take(4).read_to_end(&mut magic).map_err(ReadError::io(path))?;
    file.rewind().map_err(ReadError::io(path))?;
    match magic.as_slice() {
        b"PAR1" => Ok(Open::Columns(Columns::open(file, path)?)),
        // pcap in its two byte orders and resolutions, and pcapng.
        [0xa1, 0xb2, 0xc3, 0xd4]
        | [0xd4, 0xc3, 0xb2, 0xa1]
        | [0xa1, 0xb2, 0x3c, 0x4d]
        | [0x4d, 0x3c, 0xb2, 0xa1]
        | [0x0a, 0x0d, 0x0d, 0x0a] => Err(ReadError::Capture(path.to_owned())),
        [] | [b'{' | b'\n', ..] => {
            let file = BufReader::with_capacity(BUFFER, file);
            Ok(Open::Lines(Lines::new(file, path)))
        }
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => Err(ReadError::Packed(path.to_owned())),
        _ => Err(ReadError::NotRecords(path.to_owned())),
    }
}
