//! Rows as JSON lines.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use serde::Serialize;

use crate::columns::Table;
use crate::row::SCHEMA;

/// Bytes gathered before they are written without being asked for.
const GATHERED: usize = 32 * 1024;

/// Whether somebody still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Reader {
    /// There is a reader.
    There,
    /// The other end of the pipe was closed: time to stop, and nothing to complain about.
    Gone,
}

/// Writes rows as lines: `{"kind":"connection","schema":1,"run":…}`.
///
/// Only whole lines are written. They are gathered until [`JsonLines::flush`] is called, or until
/// there are 32 KiB of them: call it whenever no further packet waits, so that who reads a pipe sees
/// a row when it is known.
#[derive(Debug)]
pub struct JsonLines<W: Write> {
    out: W,
    lines: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Lines to `out`, which need not have a buffer of its own.
    pub fn new(out: W) -> Self {
        JsonLines { out, lines: Vec::with_capacity(GATHERED + 4096) }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Those of the writer, but for that of a closed pipe.
    pub fn write<R: Table + Serialize>(&mut self, row: &R) -> io::Result<Reader> {
        write!(self.lines, r#"{{"kind":"{}","schema":{SCHEMA}"#, R::ROW)?;
        let brace = self.lines.len();
        serde_json::to_writer(&mut self.lines, row)?;
        // The row's fields go on where kind and schema began.
        if let Some(brace) = self.lines.get_mut(brace) {
            *brace = b',';
        }
        self.lines.push(b'\n');
        if self.lines.len() < GATHERED { Ok(Reader::There) } else { self.flush() }
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// Those of the writer, but for that of a closed pipe.
    pub fn flush(&mut self) -> io::Result<Reader> {
        let written = self.out.write_all(&self.lines).and_then(|()| self.out.flush());
        self.lines.clear();
        match written {
            Ok(()) => Ok(Reader::There),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
            Err(error) => Err(error),
        }
    }
}

/// Writes whole lines to a file or a pipe: of a disk that is full, the part of a line that found room is cut
/// off again.
#[derive(Debug)]
pub struct WholeLines(File);

impl WholeLines {
    /// Lines to this file, each write of which ends with a whole one.
    #[must_use]
    pub fn new(file: File) -> Self {
        WholeLines(file)
    }

    /// Cuts so many bytes off the end, where it is a file and nobody wrote behind them.
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let metadata = self.0.metadata()?;
        if bytes == 0 || !metadata.is_file() || self.0.stream_position()? != metadata.len() {
            return Ok(());
        }
        let whole = metadata.len().saturating_sub(bytes);
        self.0.set_len(whole)?;
        self.0.seek(SeekFrom::Start(whole)).map(drop)
    }
}

impl Write for WholeLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let error = match self.0.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let written = bytes.get(..bytes.len() - rest.len()).unwrap_or_default();
            let torn = written.iter().rev().take_while(|byte| **byte != b'\n').count();
            // Where this fails, too, the reader sees half a line.
            let _ = self.cut(torn as u64);
            return Err(error);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EndingRow, Row};

    /// Keeps each write apart.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !bytes.is_empty() {
                self.0.push(bytes.to_vec());
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn ending(number: u64) -> EndingRow {
        EndingRow {
            run: "a\n\"b".to_owned(),
            number,
            ended: "fin".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn a_row_is_a_line_that_says_its_kind_and_schema() {
        let mut writes = Writes::default();
        let mut lines = JsonLines::new(&mut writes);
        assert_eq!(lines.write(&ending(7)).unwrap(), Reader::There);
        assert_eq!(lines.write(&Row::default()).unwrap(), Reader::There);
        assert_eq!(lines.flush().unwrap(), Reader::There);
        let text = String::from_utf8(writes.0.concat()).unwrap();
        let (first, second) = text.split_once('\n').unwrap();
        assert_eq!(
            first,
            r#"{"kind":"ending","schema":1,"run":"a\n\"b","number":7,"last_frame":0,"frames_up":0,"bytes_up":0,"frames_down":0,"bytes_down":0,"ended":"fin","dropped":false}"#
        );
        assert_eq!(serde_json::from_str::<EndingRow>(first).unwrap(), ending(7));
        let second = second.strip_suffix('\n').unwrap();
        assert!(second.starts_with(r#"{"kind":"connection","schema":1,"run":"","number":0,"#));
        assert_eq!(serde_json::from_str::<Row>(second).unwrap(), Row::default());
    }

    #[test]
    fn only_whole_lines_leave_and_not_one_by_one() {
        let mut writes = Writes::default();
        let mut lines = JsonLines::new(&mut writes);
        for number in 0..1_000 {
            assert_eq!(lines.write(&ending(number)).unwrap(), Reader::There);
        }
        assert_eq!(lines.flush().unwrap(), Reader::There);
        assert!(writes.0.len() > 2 && writes.0.len() < 10, "{}", writes.0.len());
        assert!(writes.0.iter().all(|bytes| bytes.ends_with(b"}\n")));
        assert_eq!(writes.0.concat().iter().filter(|byte| **byte == b'\n').count(), 1_000);
    }

    #[test]
    fn half_a_line_is_cut_off_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, "whole\n{\"half").unwrap();
        let mut lines = WholeLines::new(File::options().append(true).open(&path).unwrap());
        // Others write there.
        lines.cut(6).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 12);
        lines.0.seek(SeekFrom::End(0)).unwrap();
        lines.cut(6).unwrap();
        lines.write_all(b"next\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole\nnext\n");
    }

    #[test]
    fn a_closed_pipe_is_the_end_and_no_error() {
        let (reader, writer) = io::pipe().unwrap();
        let mut lines = JsonLines::new(writer);
        drop(reader);
        assert_eq!(lines.write(&ending(0)).unwrap(), Reader::There);
        assert_eq!(lines.flush().unwrap(), Reader::Gone);
    }
}
