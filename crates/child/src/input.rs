//! Files that are read: opening a pipe without a writer, and waiting for its bytes, ends with the wish to stop.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::stopping;

/// How often the wish to stop is looked at while nothing comes.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Set once a read failed with [`Stopped`].
static CUT_SHORT: AtomicBool = AtomicBool::new(false);

/// Whether a read of an [`Input`] was ended by the wish to stop: what failed after it failed for this reason.
#[must_use]
pub fn is_cut_short() -> bool {
    CUT_SHORT.load(Ordering::Relaxed)
}

/// A file that is read. Where it is a pipe, a terminal or a device, each read waits for bytes, for the end, or
/// for the wish of [`crate::stop_when`]; that fails with [`Stopped`].
#[derive(Debug, Clone)]
pub struct Input {
    file: Arc<File>,
    is_regular: bool,
}

/// The wish to stop came before the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Stopped {}

impl Input {
    /// Opens a file that the user named. A FIFO is opened without waiting for its writer; reading waits. A
    /// terminal does not become this process's.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn open(path: &Path) -> io::Result<Input> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty())?;
        Input::of(File::from(opened))
    }

    /// Opens a file that somebody else named, as a recorded plan does.
    ///
    /// # Errors
    /// As `open(2)`; `InvalidInput` for all but a regular file.
    pub fn open_regular(path: &Path) -> io::Result<Input> {
        let input = Input::open(path)?;
        match input.is_regular {
            true => Ok(input),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Reads on from an open file.
    ///
    /// # Errors
    /// As `fstat(2)`.
    pub fn of(file: File) -> io::Result<Input> {
        let is_regular = file.metadata()?.is_file();
        Ok(Input { file: Arc::new(file), is_regular })
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Waits for bytes or the end.
    fn wait(&self) -> io::Result<()> {
        loop {
            if stopping() {
                CUT_SHORT.store(true, Ordering::Relaxed);
                return Err(io::Error::other(Stopped));
            }
            match poll(&mut [PollFd::new(&*self.file, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Input {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_regular {
                self.wait()?;
            }
            match (&*self.file).read(to) {
                // Another reader of the same pipe took the bytes.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !self.is_regular => {}
                read => return read,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    fn fifo(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn a_pipe_is_read_from_its_first_writer_to_its_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        // Opening alone would wait for a writer that comes only afterwards.
        let mut input = Input::open(&path).unwrap();
        let writer = std::thread::spawn(move || {
            let mut file = File::options().write(true).open(path).unwrap();
            file.write_all(b"first ").unwrap();
            file.write_all(b"last").unwrap();
        });
        let mut text = String::new();
        input.read_to_string(&mut text).unwrap();
        writer.join().unwrap();
        assert_eq!(text, "first last");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_where_somebody_else_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let mut text = String::new();
        Input::open_regular(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for other in [fifo(folder.path()), folder.path().into(), "/dev/zero".into()] {
            let refused = Input::open_regular(&other).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{}", other.display());
        }
    }
}
