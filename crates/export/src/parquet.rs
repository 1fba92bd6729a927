//! Rows as Parquet: a data set of two tables, partitioned by the hour.
//!
//! ```text
//! DIR/connections/date=2026-11-21/hour=13/part-0000.parquet
//! DIR/endings/date=2026-11-21/hour=13/part-0000.parquet
//! ```
//!
//! Date and hour are UTC, of a connection's first frame, of an ending's last one. The layout is
//! Hive's, which every engine reads. A file has one row group.
//!
//! # What survives what
//! No link in the folder is followed. A file is written under a name that begins with a dot, synced to the disk, and renamed when whole:
//! there is never half a `.parquet` file, and one that is there stays there. A run that is killed
//! loses the rows that were gathered for the next files ([`Options`]), no more; the temporary file
//! that it may leave is removed by the next run. A run adds files to what earlier ones wrote. It
//! locks the data set against other writers; readers need no lock.
//!
//! A capture whose rows are there is refused ([`DataSet::begin`]), or all would be counted twice.
//!
//! # Bounds
//! Rows are gathered for [`Options::hours`] hours of each table at most: the hour whose last row is
//! the longest ago is written when another one begins. For each at most [`Options::rows`] rows, or
//! [`Options::text_bytes`] bytes of text if they are reached before, are gathered: at most 1 KiB a row
//! beside the text, so with the defaults less than 100 MiB an hour, most of the time for one or two.

mod batch;
mod hour;
mod partition;

use std::fs::{self, File};
use std::path::Path;

use outfile::{Access, Folder};
use rustix::fs::FlockOperation;

use crate::captures::{Beginning, Captures};
use crate::error::Error;
use crate::row::{EndingRow, Row};
pub(crate) use hour::Hour;
use partition::TableWriter;

/// Key of the schema's version in a Parquet file's metadata.
pub const SCHEMA_KEY: &str = "wiretax.schema";

/// How much is gathered before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Rows of a file, and of its only row group.
    pub rows: usize,
    /// Bytes of text in a file, before encoding and compression.
    pub text_bytes: usize,
    /// Hours of each table for which rows are gathered at the same time.
    pub hours: usize,
}

impl Default for Options {
    /// 65 536 rows, 32 MiB, 3 hours.
    fn default() -> Self {
        Options { rows: 65_536, text_bytes: 32 << 20, hours: 3 }
    }
}

/// What was written to a data set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Files of both tables.
    pub files: u64,
    /// Rows of the table `connections`.
    pub connections: u64,
    /// Rows of the table `endings`.
    pub endings: u64,
}

/// Writes a data set. [`DataSet::finish`] writes what is left; a data set that is merely dropped
/// loses it.
#[derive(Debug)]
pub struct DataSet {
    connections: TableWriter<Row>,
    endings: TableWriter<EndingRow>,
    folder: Folder,
    captures: Option<Captures>,
    /// Locked as long as it is open.
    _lock: File,
}

impl DataSet {
    /// The data set in the folder `dir`, which is made if it is missing. Temporary files of a run
    /// that was killed are removed.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process writes to it, else what the file system says.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(Error::io(dir))?;
        DataSet::in_folder(Folder::open(dir).map_err(Error::io(dir))?, options)
    }

    /// As [`DataSet::open`], in an open folder, whatever its name stands for by now.
    ///
    /// # Errors
    /// As [`DataSet::open`].
    pub fn in_folder(folder: Folder, options: Options) -> Result<Self, Error> {
        let lock = lock(&folder)?;
        Ok(DataSet {
            connections: TableWriter::open(&folder, options)?,
            endings: TableWriter::open(&folder, options)?,
            folder,
            captures: None,
            _lock: lock,
        })
    }

    /// Notes the captures whose rows follow, for later runs. `again` lets those in whose rows are there.
    ///
    /// # Errors
    /// [`Error::ReadBefore`]; what the file system says.
    pub fn begin(&mut self, captures: &[Beginning], again: bool) -> Result<(), Error> {
        if !captures.is_empty() {
            self.captures = Some(Captures::begin(&self.folder, captures, again)?);
        }
        Ok(())
    }

    /// Adds a connection's row.
    ///
    /// # Errors
    /// What the file system says; the rows gathered for the same hour are then lost.
    pub fn connection(&mut self, row: &Row) -> Result<(), Error> {
        self.connections.add(row)
    }

    /// Adds an ending's row.
    ///
    /// # Errors
    /// As [`DataSet::connection`].
    pub fn ending(&mut self, row: &EndingRow) -> Result<(), Error> {
        self.endings.add(row)
    }

    /// Writes all that was gathered, so that readers see it; for a live capture now and then. Each
    /// call makes new files: every few minutes is often enough.
    ///
    /// # Errors
    /// As [`DataSet::connection`].
    pub fn flush(&mut self) -> Result<(), Error> {
        let connections = self.connections.flush();
        self.endings.flush().and(connections)
    }

    /// Writes all that was gathered and says what this run wrote.
    ///
    /// # Errors
    /// As [`DataSet::connection`].
    pub fn finish(mut self) -> Result<Written, Error> {
        self.flush()?;
        let files = self.connections.files() + self.endings.files();
        if let Some(captures) = self.captures.take().filter(|_| files == 0) {
            captures.retract()?;
        }
        let (connections, endings) = (self.connections.rows(), self.endings.rows());
        Ok(Written { files, connections, endings })
    }
}

/// The file that a writer of the data set holds a lock on. It stays: were it removed, a third process
/// could lock a new one while a second one waits for the old.
fn lock(folder: &Folder) -> Result<File, Error> {
    let path = folder.path().join(LOCK);
    let file = folder.file(LOCK, Access::ReadWriteOrMake(LOCK_MODE));
    let file = file.map_err(Error::refused(&path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy(folder.path().to_owned())),
        Err(error) => Err(Error::io(&path)(error.into())),
    }
}

const LOCK: &str = ".lock";
/// Its mode before the umask.
const LOCK_MODE: u32 = 0o666;
