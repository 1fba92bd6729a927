//! Rows read back: what an earlier run wrote, for questions about all of it.
//!
//! [`Records`] takes JSON lines, Parquet files and folders of these, as they are named, and gives one
//! [`Record`] at a time, in the memory of a few rows. A row may be of an older program, which had fewer
//! columns; what it lacks is not known. Within a file rows come as they were written, which is about
//! the order in which the handshakes ended; the files of a folder come in the order of their hours.

mod columns;
mod error;
mod files;
mod lines;
mod range;
mod record;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

pub use error::ReadError;
pub use files::{check_data_set, holds_records};
pub use range::{RangeError, TimeRange};
pub use record::Record;

use columns::Columns;
use files::Waiting;
use lines::Lines;

/// Bytes of JSON that are read at once.
const BUFFER: usize = 256 << 10;

/// The records of files and folders.
#[derive(Debug)]
pub struct Records {
    range: TimeRange,
    /// Files that are still to be read.
    waiting: VecDeque<Waiting>,
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
            waiting.extend(files::of_path(path.as_ref(), range)?);
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
            let Some(file) = self.waiting.pop_front() else { return Ok(None) };
            self.open = Some(open(file.open()?, &file.path())?);
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

/// Opens a file by what it begins with.
fn open(mut file: File, path: &Path) -> Result<Open, ReadError> {
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
