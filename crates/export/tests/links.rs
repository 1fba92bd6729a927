//! Folders of rows that a stranger has prepared: no link in them is followed, no pipe opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use export::{DataSet, Error, Options, ReadError, Records, Row, TimeRange, check_data_set};

/// 2026-11-21T13:00:00Z.
const START: u64 = 1_795_266_000_000_000_000;
const HOUR: &str = "connections/date=2026-11-21/hour=13";

fn row() -> Row {
    Row {
        run: "seeded".to_owned(),
        client: "192.0.2.1".to_owned(),
        first_frame: START,
        ..Row::default()
    }
}

fn write(folder: &Path) -> Result<(), Error> {
    let mut data_set = DataSet::open(folder, Options::default())?;
    data_set.connection(&row())?;
    data_set.finish().map(drop)
}

/// Returns a folder with a whole data set, and an empty one beside it.
fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let (rows, beside) = (parent.path().join("rows"), parent.path().join("beside"));
    write(&rows).unwrap();
    fs::create_dir(&beside).unwrap();
    (parent, rows, beside)
}

/// Puts a link to `target` in the place of `name`, whatever was there.
fn plant(name: &Path, target: &Path) {
    match name.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(name).unwrap(),
        Ok(_) => fs::remove_file(name).unwrap(),
        Err(_) => {}
    }
    symlink(target, name).unwrap();
}

fn fifo(name: &Path) {
    let _ = fs::remove_file(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        name,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

#[test]
fn rows_are_written_through_no_link() {
    for place in ["connections", "endings", "connections/date=2026-11-21", HOUR] {
        let (_parent, rows, beside) = folders();
        plant(&rows.join(place), &beside);
        let written = write(&rows);
        assert!(matches!(&written, Err(Error::Irregular { .. })), "{place}: {written:?}");
        assert_eq!(fs::read_dir(&beside).unwrap().count(), 0, "{place}");
    }
}

#[test]
fn the_lock_is_no_link_no_pipe_and_no_second_name() {
    let (_parent, rows, beside) = folders();
    let (lock, target) = (rows.join(".lock"), beside.join("target"));
    fs::write(&target, "kept").unwrap();
    plant(&lock, &target);
    assert!(matches!(write(&rows), Err(Error::Irregular { .. })));
    fifo(&lock);
    assert!(matches!(write(&rows), Err(Error::Irregular { .. })));
    fs::remove_file(&lock).unwrap();
    fs::hard_link(&target, &lock).unwrap();
    assert!(matches!(write(&rows), Err(Error::Irregular { .. })));
    assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    fs::remove_file(&lock).unwrap();
    write(&rows).unwrap();
}

#[test]
fn rows_are_read_through_no_link_and_from_no_pipe() {
    let read = |rows: &Path| -> Result<usize, ReadError> {
        let records: Result<Vec<_>, _> = Records::open(&[rows], TimeRange::default())?.collect();
        Ok(records?.len())
    };
    for place in ["connections/date=2026-11-21", HOUR, &format!("{HOUR}/part-0000.parquet")] {
        let (_parent, rows, beside) = folders();
        let elsewhere = beside.join("moved");
        fs::rename(rows.join(place), &elsewhere).unwrap();
        symlink(&elsewhere, rows.join(place)).unwrap();
        assert!(matches!(read(&rows), Err(ReadError::Irregular { .. })), "{place}");
        assert!(matches!(check_data_set(&rows), Err(ReadError::Irregular { .. })), "{place}");
    }
    let (_parent, rows, beside) = folders();
    check_data_set(&rows).unwrap();
    assert_eq!(read(&rows).unwrap(), 1);
    // The user's own name is followed.
    symlink(&rows, beside.join("named")).unwrap();
    assert_eq!(read(&beside.join("named")).unwrap(), 1);
    fifo(&rows.join(HOUR).join("part-0001.parquet"));
    assert!(matches!(read(&rows), Err(ReadError::Irregular { .. })));
    assert!(matches!(check_data_set(&rows), Err(ReadError::Irregular { .. })));
}

#[test]
fn rows_go_to_the_folder_that_was_opened_whatever_its_name_leads_to() {
    let (_parent, rows, beside) = folders();
    let opened = outfile::Folder::open(&rows).unwrap();
    let moved = rows.with_file_name("moved");
    fs::rename(&rows, &moved).unwrap();
    plant(&rows, &beside);
    let mut data_set = DataSet::in_folder(opened, Options::default()).unwrap();
    data_set.connection(&row()).unwrap();
    data_set.finish().unwrap();
    assert_eq!(fs::read_dir(&beside).unwrap().count(), 0);
    assert_eq!(fs::read_dir(moved.join(HOUR)).unwrap().count(), 2);
}
