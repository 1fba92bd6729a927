//! Reading results back.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::folder::{MANIFEST, SAMPLES, read_manifest, reading};
use crate::{Error, LineProblem, MAX_LINE, Manifest, Problem, Sample, parse_line};

/// A last line that was cut short: by a kill in the middle of a write, a power loss or a full
/// disk. Its sample is lost and is measured again by a resumed run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornLine {
    /// Its number, from 1.
    pub line: u64,
    /// How many bytes of it there are.
    pub bytes: u64,
}

impl std::fmt::Display for TornLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, bytes } = self;
        write!(
            f,
            "line {line} was cut short after {bytes} bytes and is left out; --resume measures its sample again"
        )
    }
}

/// A results folder, read whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What made the samples.
    pub manifest: Manifest,
    /// The samples in the order in which they ended.
    pub samples: Vec<Sample>,
    /// A last line that was left out.
    pub torn: Option<TornLine>,
}

/// More is not held in memory.
const MAX_OPEN: u64 = 1 << 30;

impl Run {
    /// Reads what a sample of the folder has beside its numbers.
    ///
    /// # Errors
    /// [`Problem::NotAttachment`] where the sample names a file that is none, and what can be wrong with
    /// the file.
    pub fn attachment(
        dir: impl AsRef<Path>,
        attachment: &crate::Attachment,
    ) -> Result<Vec<u8>, Error> {
        crate::attachment::read(dir.as_ref(), attachment)
    }

    /// Reads a folder whole; a run may still be writing it.
    ///
    /// # Errors
    /// [`Problem::NotResults`], [`Problem::NewerSchema`], [`Problem::CorruptManifest`],
    /// [`Problem::Corrupt`]; [`Problem::TooLarge`] for more than 1 GiB of samples, which
    /// [`Run::stream`] reads.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let (manifest, mut samples) = Self::stream(dir.as_ref())?;
        let have = samples.file_len()?;
        if have > MAX_OPEN {
            let problem = Problem::TooLarge {
                what: "the length of the samples in bytes",
                have,
                limit: MAX_OPEN,
                verb: "held",
                remedy: "aggregate them as a stream",
            };
            return Err(Error::new(&samples.path, problem));
        }
        let all = samples.by_ref().collect::<Result<Vec<_>, _>>()?;
        Ok(Self { manifest, samples: all, torn: samples.torn() })
    }

    /// The manifest, and the samples one at a time, in the memory of one line.
    ///
    /// # Errors
    /// As [`Run::open`], but for the samples themselves, which the iterator yields.
    pub fn stream(dir: impl AsRef<Path>) -> Result<(Manifest, Samples<BufReader<File>>), Error> {
        let dir = dir.as_ref();
        let manifest = read_manifest(dir)?;
        let path = dir.join(SAMPLES);
        match File::open(&path) {
            Ok(file) => Ok((manifest, Samples::new(BufReader::with_capacity(1 << 16, file), path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::new(dir, Problem::NotResults { missing: SAMPLES }))
            }
            Err(error) => Err(reading(&path, "opening it", error)),
        }
    }

    /// Whether `dir` looks like a results folder.
    #[must_use]
    pub fn is_results(dir: impl AsRef<Path>) -> bool {
        dir.as_ref().join(MANIFEST).is_file()
    }
}

/// The samples of a file, one at a time. After an error it ends.
#[derive(Debug)]
pub struct Samples<R> {
    reader: R,
    path: PathBuf,
    buffer: Vec<u8>,
    line: u64,
    /// Bytes up to the end of the last whole line.
    good: u64,
    torn: Option<TornLine>,
    ended: bool,
}

impl Samples<BufReader<File>> {
    fn file_len(&self) -> Result<u64, Error> {
        let metadata = self.reader.get_ref().metadata();
        metadata.map(|m| m.len()).map_err(|error| reading(&self.path, "looking at it", error))
    }
}

impl<R: BufRead> Samples<R> {
    /// Reads samples from any source; `path` is what errors name.
    pub fn new(reader: R, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { reader, path, buffer: Vec::new(), line: 0, good: 0, torn: None, ended: false }
    }

    /// After the end: the last line, if it was cut short.
    pub fn torn(&self) -> Option<TornLine> {
        self.torn
    }

    /// Bytes of whole lines read so far.
    pub(crate) fn good(&self) -> u64 {
        self.good
    }

    /// Reads up to a line feed, keeping at most [`MAX_LINE`] bytes of the line. Gives its length in
    /// the file and whether the line feed came.
    fn read_line(&mut self) -> io::Result<(u64, bool)> {
        self.buffer.clear();
        let mut length = 0;
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok((length, false));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            let room = MAX_LINE.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            length += used as u64;
            self.reader.consume(used);
            if end.is_some() {
                return Ok((length, true));
            }
        }
    }

    fn corrupt(&mut self, problem: LineProblem) -> Error {
        self.ended = true;
        Error::new(&self.path, Problem::Corrupt { line: self.line, problem })
    }
}

impl<R: BufRead> Iterator for Samples<R> {
    type Item = Result<Sample, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let (length, whole) = match self.read_line() {
            Ok(read) => read,
            Err(error) => {
                self.ended = true;
                return Some(Err(reading(&self.path, "reading it", error)));
            }
        };
        if !whole {
            self.ended = true;
            self.torn = (length > 0).then_some(TornLine { line: self.line + 1, bytes: length });
            return None;
        }
        self.line += 1;
        let sample = match parse_line(&self.buffer) {
            Ok(sample) => sample,
            Err(problem) => return Some(Err(self.corrupt(problem))),
        };
        self.good += length;
        Some(Ok(sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::write_line;
    use crate::sample::tests::example;
    use proptest::prelude::*;

    fn lines(count: u32) -> Vec<u8> {
        let (mut all, mut line) = (Vec::new(), Vec::new());
        for repeat in 0..count {
            write_line(&example(repeat), &mut line).unwrap();
            all.extend_from_slice(&line);
        }
        all
    }

    fn read(bytes: &[u8]) -> (Result<Vec<Sample>, Error>, Option<TornLine>, u64) {
        // A small buffer, so that lines cross its end.
        let mut samples = Samples::new(BufReader::with_capacity(7, bytes), "s");
        let all = samples.by_ref().collect();
        (all, samples.torn(), samples.good())
    }

    #[test]
    fn wherever_a_line_is_cut_the_others_stay() {
        let all = lines(3);
        let second = lines(2).len();
        for cut in second..all.len() {
            let (samples, torn, good) = read(&all[..cut]);
            assert_eq!(samples.unwrap().len(), 2);
            let bytes = (cut - second) as u64;
            assert_eq!(torn, (bytes > 0).then_some(TornLine { line: 3, bytes }));
            assert_eq!(good, second as u64);
        }
        assert_eq!(read(&all).0.unwrap().len(), 3);
    }

    #[test]
    fn zeros_after_a_power_loss_are_a_torn_line() {
        let mut bytes = lines(1);
        bytes.extend(vec![0; 2 * MAX_LINE]);
        let (samples, torn, _) = read(&bytes);
        assert_eq!(samples.unwrap().len(), 1);
        assert_eq!(torn, Some(TornLine { line: 2, bytes: 2 * MAX_LINE as u64 }));
    }

    #[test]
    fn a_corrupt_line_is_named() {
        let mut bytes = lines(2);
        bytes[lines(1).len() + 3] = b'!';
        bytes.extend(lines(1));
        let mut samples = Samples::new(&bytes[..], "folder/samples.jsonl");
        assert!(samples.next().unwrap().is_ok());
        let error = samples.next().unwrap().unwrap_err();
        assert!(matches!(
            error.problem,
            Problem::Corrupt { line: 2, problem: LineProblem::Json { .. } }
        ));
        assert!(error.to_string().starts_with("folder/samples.jsonl: line 2: column "), "{error}");
        assert!(samples.next().is_none());
    }

    #[test]
    fn a_line_without_end_takes_bounded_memory() {
        let mut bytes = vec![b' '; 3 * MAX_LINE];
        bytes.push(b'\n');
        let mut samples = Samples::new(&bytes[..], "s");
        assert!(matches!(
            samples.next().unwrap().unwrap_err().problem,
            Problem::Corrupt { line: 1, problem: LineProblem::TooLong { .. } }
        ));
        assert!(samples.buffer.capacity() <= 2 * MAX_LINE);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
