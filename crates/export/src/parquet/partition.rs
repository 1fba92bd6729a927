//! One table of a data set: its hours and their files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Options;
use super::batch::Batch;
use super::hour::Hour;
use crate::columns::Table;
use crate::error::Error;

/// How the name of a file begins that is not whole yet.
const TEMPORARY: &str = ".writing-";

/// Writes the rows of one table.
#[derive(Debug)]
pub(super) struct TableWriter<R> {
    dir: PathBuf,
    options: Options,
    /// The hours for which rows are gathered, the one whose last row is the longest ago first.
    hours: Vec<(Hour, Batch)>,
    files: u64,
    rows: u64,
    _row: PhantomData<fn(&R)>,
}

impl<R: Table> TableWriter<R> {
    pub(super) fn open(data_set: &Path, options: Options) -> Result<Self, Error> {
        let dir = data_set.join(R::NAME);
        fs::create_dir_all(&dir).map_err(Error::io(&dir))?;
        remove_temporaries(&dir)?;
        Ok(TableWriter { dir, options, hours: Vec::new(), files: 0, rows: 0, _row: PhantomData })
    }

    pub(super) fn files(&self) -> u64 {
        self.files
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn add(&mut self, row: &R) -> Result<(), Error> {
        let hour = Hour::of(row.time());
        let mut batch = match self.hours.iter().position(|(open, _)| *open == hour) {
            Some(at) => self.hours.remove(at).1,
            None => {
                self.make_room()?;
                Batch::new::<R>()
            }
        };
        batch.add(row);
        if batch.rows() >= self.options.rows || batch.text_bytes() >= self.options.text_bytes {
            return self.write(hour, batch);
        }
        self.hours.push((hour, batch));
        Ok(())
    }

    /// Writes all that was gathered. After an error it continues with the other hours.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for (hour, batch) in std::mem::take(&mut self.hours) {
            result = result.and(self.write(hour, batch));
        }
        result
    }

    fn make_room(&mut self) -> Result<(), Error> {
        if self.hours.len() < self.options.hours.max(1) {
            return Ok(());
        }
        let (hour, batch) = self.hours.remove(0);
        self.write(hour, batch)
    }

    fn write(&mut self, hour: Hour, batch: Batch) -> Result<(), Error> {
        let rows = batch.rows() as u64;
        let folder = hour.folder(&self.dir);
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let part = format!("part-{:04}.parquet", next_part(&folder)?);
        // Neither a reader that takes all that ends in `.parquet` takes it, nor one that skips what is
        // hidden.
        let (temporary, whole) = (folder.join(format!("{TEMPORARY}{part}.tmp")), folder.join(part));
        write_synced(&temporary, batch)
            .and_then(|()| fs::rename(&temporary, &whole).map_err(Error::io(&whole)))
            .inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        sync_folder(&folder)?;
        self.files += 1;
        self.rows += rows;
        Ok(())
    }
}

/// Rows say who spoke with whom: only their owner reads them, whatever the umask.
const MODE: u32 = 0o600;

fn write_synced(path: &Path, batch: Batch) -> Result<(), Error> {
    let new = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path);
    let file = new.map_err(Error::io(path))?;
    let file = batch.write(file).map_err(Error::parquet(path))?;
    file.sync_all().map_err(Error::io(path))
}

/// A rename is on the disk when its folder is.
fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))
}

/// One more than the highest number of a part in the folder, whoever wrote it. The folder is read for
/// each file: it has few, and nothing need be remembered of hours that are over.
fn next_part(folder: &Path) -> Result<u64, Error> {
    let mut next = 0;
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let name = entry.map_err(Error::io(folder))?.file_name();
        let number = name.to_str().and_then(|name| {
            name.strip_prefix("part-")?.strip_suffix(".parquet")?.parse::<u64>().ok()
        });
        next = next.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(next)
}

/// Removes what a killed run left in the folders of a table: `date=…/hour=…/.writing-…`.
fn remove_temporaries(table: &Path) -> Result<(), Error> {
    for date in folders(table, "date=")? {
        for hour in folders(&date, "hour=")? {
            for entry in fs::read_dir(&hour).map_err(Error::io(&hour))? {
                let entry = entry.map_err(Error::io(&hour))?;
                if begins(&entry, TEMPORARY) {
                    let path = entry.path();
                    fs::remove_file(&path).map_err(Error::io(&path))?;
                }
            }
        }
    }
    Ok(())
}

fn folders(dir: &Path, beginning: &str) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.map_err(Error::io(dir))?.into_iter();
    Ok(entries
        .filter(|entry| begins(entry, beginning))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect())
}

fn begins(entry: &fs::DirEntry, beginning: &str) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(beginning.as_bytes())
}
