//! One table of a data set: its hours and their files.

use std::fs::File;
use std::marker::PhantomData;

use outfile::{Folder, Refused};
use rustix::fs::FileType;

use super::Options;
use super::batch::Batch;
use super::hour::Hour;
use crate::columns::Table;
use crate::error::Error;

/// Writes the rows of one table.
#[derive(Debug)]
pub(super) struct TableWriter<R> {
    folder: Folder,
    options: Options,
    /// The hours for which rows are gathered, the one whose last row is the longest ago first.
    hours: Vec<(Hour, Batch)>,
    files: u64,
    rows: u64,
    _row: PhantomData<fn(&R)>,
}

impl<R: Table> TableWriter<R> {
    pub(super) fn open(data_set: &Folder, options: Options) -> Result<Self, Error> {
        let folder = make(data_set, R::NAME)?;
        remove_temporaries(&folder)?;
        Ok(TableWriter { folder, options, hours: Vec::new(), files: 0, rows: 0, _row: PhantomData })
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
        let [date, hour] = hour.folders();
        let folder = make(&make(&self.folder, &date)?, &hour)?;
        let part = format!("part-{:04}.parquet", next_part(&folder)?);
        let path = folder.path().join(&part);
        // Readers skip a hidden file, and one whose name does not end in `.parquet`.
        let new = folder.new_partial(&part, MODE);
        let (partial, file) = new.map_err(Error::refused(&path))?;
        let written = batch.write(file).map_err(Error::parquet(&path));
        written
            .and_then(|file| {
                give_name(&folder, &file, [&partial, &part]).map_err(Error::refused(&path))
            })
            .inspect_err(|_| folder.remove(&partial))?;
        self.files += 1;
        self.rows += rows;
        Ok(())
    }
}

/// Rows say who spoke with whom: only their owner reads them, whatever the umask.
const MODE: u32 = 0o600;

/// Renames a file that is on the disk, and replaces none. The rename is on the disk when its folder is.
fn give_name(folder: &Folder, file: &File, [from, to]: [&str; 2]) -> Result<(), Refused> {
    file.sync_all()?;
    folder.rename_new(from, to)?;
    Ok(folder.sync()?)
}

fn make(folder: &Folder, name: &str) -> Result<Folder, Error> {
    folder.make_folder(name).map_err(Error::refused(&folder.path().join(name)))
}

/// Returns one more than the highest number of a part in the folder, whoever wrote it. The folder is read for
/// each file: it has few, and nothing need be remembered of hours that are over.
///
/// # Errors
/// [`Error::NoNumber`]; [`Error::Io`].
fn next_part(folder: &Folder) -> Result<u64, Error> {
    let names = folder.names().map_err(Error::io(folder.path()))?;
    let number = |name: &std::ffi::OsString| {
        let number = name.to_str()?.strip_prefix("part-")?.strip_suffix(".parquet")?;
        number.parse::<u64>().ok()
    };
    let highest = names.iter().filter_map(number).max();
    let next = highest.map_or(Some(0), |number| number.checked_add(1));
    next.ok_or_else(|| Error::NoNumber(folder.path().to_owned()))
}

/// Removes what a killed run left in the folders of a table: `date=…/hour=…/.*.partial`.
fn remove_temporaries(table: &Folder) -> Result<(), Error> {
    for date in folders(table, "date=")? {
        for hour in folders(&date, "hour=")? {
            hour.clear_partial();
        }
    }
    Ok(())
}

/// Opens the folders whose names have this beginning.
fn folders(parent: &Folder, beginning: &str) -> Result<Vec<Folder>, Error> {
    let names = parent.names().map_err(Error::io(parent.path()))?.into_iter();
    names
        .filter(|name| name.as_encoded_bytes().starts_with(beginning.as_bytes()))
        .filter(|name| parent.kind(name) == Some(FileType::Directory))
        .map(|name| parent.folder(&name).map_err(Error::refused(&parent.path().join(&name))))
        .collect()
}
