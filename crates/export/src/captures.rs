//! The captures whose rows a data set has: a capture read twice would count every connection twice.
//!
//! ```text
//! DIR/.captures      {"frames":8,"sha256":"…","file":"trace.pcap"}
//! ```
//!
//! A capture is known by a hash of its first frames, so that a copy, a compressed one and one that has grown
//! since are the same.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use aws_lc_rs::digest::{Context, SHA256};
use outfile::{Access, Folder};
use serde::{Deserialize, Serialize};

use crate::error::Error;

const LIST: &str = ".captures";
/// Its mode, as of rows: hashes may confirm who spoke with whom.
const MODE: u32 = 0o600;

/// Bytes of the list that are read: some 100,000 captures.
const LARGEST: u64 = 16 << 20;

/// The beginning of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    file: String,
    /// The hash of the first frame, of the first two, and so on, in hexadecimal.
    hashes: Vec<String>,
}

impl Beginning {
    /// Frames that it has at most.
    pub const FRAMES: usize = 8;

    /// The beginning of the capture in the file of this name: no frames yet.
    #[must_use]
    pub fn new(file: impl Into<String>) -> Self {
        Beginning { file: file.into(), hashes: Vec::new() }
    }

    /// Adds the next frame: its time in nanoseconds since the epoch, its length on the link in bytes, and its
    /// bytes. False if there were [`Beginning::FRAMES`] already.
    pub fn add(&mut self, nanos: u64, original_len: u64, bytes: &[u8]) -> bool {
        if self.hashes.len() >= Beginning::FRAMES {
            return false;
        }
        let mut hash = Context::new(&SHA256);
        hash.update(self.hashes.last().map_or(&[][..], String::as_bytes));
        hash.update(&nanos.to_be_bytes());
        hash.update(&original_len.to_be_bytes());
        hash.update(bytes);
        let digits = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.hashes.push(digits);
        true
    }

    fn entry(&self) -> Option<Entry> {
        let (sha256, file) = (self.hashes.last()?.clone(), self.file.clone());
        Some(Entry { frames: self.hashes.len(), sha256, file })
    }

    /// Whether it begins with the frames of an entry.
    fn has(&self, entry: &Entry) -> bool {
        let of_as_many = entry.frames.checked_sub(1).and_then(|last| self.hashes.get(last));
        of_as_many.is_some_and(|hash| *hash == entry.sha256)
    }
}

/// A capture in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Frames of which it has the hash.
    frames: usize,
    sha256: String,
    /// The file's name when it was read.
    file: String,
}

/// The list of a data set, which its writer has locked.
#[derive(Debug)]
pub(crate) struct Captures {
    file: File,
    path: PathBuf,
    /// Its length before this run's captures.
    before: u64,
}

impl Captures {
    /// Notes captures whose rows follow.
    ///
    /// # Errors
    /// [`Error::ReadBefore`] of one that is in the list, or twice among these, unless `again`; what the file
    /// system says.
    pub(crate) fn begin(
        folder: &Folder,
        captures: &[Beginning],
        again: bool,
    ) -> Result<Captures, Error> {
        let path = folder.path().join(LIST);
        let opened = folder.file(LIST, Access::ReadWriteOrMake(MODE));
        let mut file = opened.map_err(Error::refused(&path))?;
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(LARGEST).read_to_end(&mut text).map_err(Error::io(&path))?;
        let text = String::from_utf8_lossy(&text);
        // What is damaged is passed over.
        let mut known: Vec<Entry> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let before = file.seek(SeekFrom::End(0)).map_err(Error::io(&path))?;
        let mut lines = Vec::new();
        for capture in captures {
            let same = known.iter().find(|entry| capture.has(entry));
            if let Some(same) = same.filter(|_| !again) {
                let (file, before) = (capture.file.clone(), same.file.clone());
                return Err(Error::ReadBefore { file, before });
            }
            if let Some(entry) = capture.entry().filter(|_| same.is_none()) {
                serde_json::to_writer(&mut lines, &entry)
                    .map_err(|error| Error::io(&path)(error.into()))?;
                lines.push(b'\n');
                known.push(entry);
            }
        }
        file.write_all(&lines).and_then(|()| file.sync_all()).map_err(Error::io(&path))?;
        Ok(Captures { file, path, before })
    }

    /// Takes this run's captures out again: none of their rows were written.
    pub(crate) fn retract(self) -> Result<(), Error> {
        self.file.set_len(self.before).map_err(Error::io(&self.path))
    }
}
