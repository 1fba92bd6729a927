//! Reading results back.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::folder::{MANIFEST, SAMPLES, reading};
use crate::sample::Kept;
use crate::{
    Error, Folder, LineProblem, MAX_LINE, Manifest, PlanFiles, Problem, Sample, parse_line,
};

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
            "its last sample, in line {line}, was cut short after {bytes} bytes and is left out"
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

/// Bytes of memory that the samples of a folder may take, held together or summed up by point. A reader of
/// results is to need less than 256 MB in all.
const MAX_MEMORY: u64 = 128 << 20;
/// Most points of a folder: what is made of each, in a report, takes some 50 KB.
pub const MAX_POINTS: usize = 3000;
/// Most names of values of a folder, counted for each point anew. Ours have 50 a point at most. In JSON each
/// takes some 2 KB.
const MAX_NAMES: usize = 100_000;
/// A point has rows in tables, marks in plots and a command: this many times what its first sample takes.
const FIRST: u64 = 8;
/// Of each further sample some numbers are kept: this part of what it takes, but for names and texts that the
/// point did not have before.
const FURTHER: u64 = 8;

/// A last line that was cut short and is longer than this, in bytes, is none: the file is another.
const MAX_TORN: u64 = 16 << 20;

/// Counts what summing samples up takes, up to [`MAX_MEMORY`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    /// Hashes of the points.
    points: HashSet<u64>,
    /// Hashes of the points' names and texts.
    texts: HashSet<u64>,
    /// How many of them are names of values.
    names: usize,
    hasher: RandomState,
    bytes: u64,
}

impl Taken {
    /// Counts one more, whose line has this length in bytes.
    pub(crate) fn add(&mut self, sample: &Sample, line: u64) -> Result<(), Problem> {
        let point = self.hasher.hash_one((&sample.study, &sample.point));
        let is_first = self.points.insert(point);
        if self.points.len() > MAX_POINTS {
            let (what, verb) = ("the number of points", "summed up");
            let (limit, remedy) = (MAX_POINTS as u64, SEVERAL);
            return Err(Problem::TooLarge { what, limit, verb, remedy });
        }
        let whole = sample.footprint().max(line);
        let mut new = 0u64;
        for (text, bytes) in sample.kept_texts() {
            if self.texts.insert(self.hasher.hash_one((point, text))) {
                new = new.saturating_add(bytes);
                self.names += usize::from(matches!(text, Kept::Value(_)));
            }
        }
        if self.names > MAX_NAMES {
            let (what, verb) = ("the number of value names, summed over the points,", "summed up");
            let (limit, remedy) = (MAX_NAMES as u64, SEVERAL);
            return Err(Problem::TooLarge { what, limit, verb, remedy });
        }
        let kept = if is_first {
            whole.saturating_mul(FIRST)
        } else {
            (whole / FURTHER).saturating_add(new.saturating_mul(FIRST))
        };
        self.bytes = self.bytes.saturating_add(kept);
        within(self.bytes, SEVERAL)
    }
}

const SEVERAL: &str = "measure fewer points, or into several folders";

fn within(bytes: u64, remedy: &'static str) -> Result<(), Problem> {
    let (what, limit, verb) = ("the memory that the samples need in bytes", MAX_MEMORY, "used");
    if bytes > limit { Err(Problem::TooLarge { what, limit, verb, remedy }) } else { Ok(()) }
}

/// Holds samples together, as far as they take no more than 128 MiB.
///
/// # Errors
/// [`Problem::TooLarge`].
pub fn hold(samples: impl IntoIterator<Item = Sample>) -> Result<Vec<Sample>, Problem> {
    let (mut held, mut bytes) = (Vec::new(), 0u64);
    for sample in samples {
        bytes = bytes.saturating_add(sample.footprint());
        within(bytes, "measure with fewer repeats, or into several folders")?;
        held.push(sample);
    }
    Ok(held)
}

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
        crate::attachment::read(&Folder::open(dir)?, attachment)
    }

    /// Reads the manifest of a folder, and the files of its plan.
    ///
    /// # Errors
    /// Those of [`Run::open`] for the manifest; [`Problem::NotAttachment`] where a file is not the one
    /// that the plan was made of, [`Problem::TooLarge`] for more than 64 MiB.
    pub fn plan(dir: impl AsRef<Path>) -> Result<(Manifest, PlanFiles), Error> {
        let folder = Folder::open(dir)?;
        let manifest = folder.manifest()?;
        let files = crate::attachment::read_plan_files(&folder, &manifest)?;
        Ok((manifest, files))
    }

    /// Reads a folder whole; a run may still be writing it.
    ///
    /// # Errors
    /// [`Problem::NotResults`], [`Problem::NewerSchema`], [`Problem::CorruptManifest`],
    /// [`Problem::Corrupt`], [`Problem::Irregular`]; [`Problem::TooLarge`] for samples that would take
    /// more than 128 MiB of memory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, Error> {
        let (manifest, mut samples) = Self::stream(&dir)?;
        let mut failed = None;
        let read = std::iter::from_fn(|| match samples.next()? {
            Ok(sample) => Some(sample),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let all = hold(read).map_err(|problem| Error::new(dir.as_ref(), problem))?;
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(Self { manifest, samples: all, torn: samples.torn() })
    }

    /// The manifest, and the samples one at a time, in the memory of one line.
    ///
    /// # Errors
    /// As [`Run::open`], but for the samples themselves, which the iterator yields.
    pub fn stream(dir: impl AsRef<Path>) -> Result<(Manifest, Samples<BufReader<File>>), Error> {
        Self::stream_in(&Folder::open(dir)?)
    }

    /// As [`Run::stream`], of an open folder.
    ///
    /// # Errors
    /// As for [`Run::stream`].
    pub fn stream_in(folder: &Folder) -> Result<(Manifest, Samples<BufReader<File>>), Error> {
        let manifest = folder.manifest()?;
        let file = folder.open_file(SAMPLES).map_err(|error| match error.problem {
            Problem::Io { error, .. } if error.kind() == io::ErrorKind::NotFound => {
                Error::new(folder.path(), Problem::NotResults { missing: SAMPLES })
            }
            problem => Error { problem, ..error },
        })?;
        let reader = BufReader::with_capacity(1 << 16, file);
        Ok((manifest, Samples::new(reader, folder.path().join(SAMPLES))))
    }

    /// Whether `dir` looks like a results folder.
    #[must_use]
    pub fn is_results(dir: impl AsRef<Path>) -> bool {
        Folder::open(dir).is_ok_and(|folder| folder.holds(MANIFEST))
    }
}

/// The samples of a file, one at a time. After an error it ends. Samples of more points than can be summed
/// up in 128 MiB of memory are one ([`Problem::TooLarge`]).
#[derive(Debug)]
pub struct Samples<R> {
    reader: R,
    path: PathBuf,
    buffer: Vec<u8>,
    line: u64,
    /// Bytes up to the end of the last whole line.
    good: u64,
    taken: Taken,
    torn: Option<TornLine>,
    ended: bool,
}

impl<R: BufRead> Samples<R> {
    /// Reads samples from any source; `path` is what errors name.
    pub fn new(reader: R, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (taken, torn, ended) = (Taken::default(), None, false);
        Self { reader, path, buffer: Vec::new(), line: 0, good: 0, taken, torn, ended }
    }

    /// After the end: the last line, if it was cut short.
    pub fn torn(&self) -> Option<TornLine> {
        self.torn
    }

    /// Bytes of whole lines read so far.
    pub(crate) fn good(&self) -> u64 {
        self.good
    }

    /// What the samples read so far take.
    pub(crate) fn into_taken(self) -> Taken {
        self.taken
    }

    /// Reads up to a line feed, keeping at most [`MAX_LINE`] bytes of the line. Gives its length in
    /// the file, of which no more than [`MAX_TORN`] is read, and whether the line feed came.
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
            if end.is_some() || length > MAX_TORN {
                return Ok((length, end.is_some()));
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
        if length > MAX_TORN {
            self.line += 1;
            return Some(Err(self.corrupt(LineProblem::TooLong { limit: MAX_LINE })));
        }
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
        if let Err(problem) = self.taken.add(&sample, length) {
            self.ended = true;
            return Some(Err(Error::new(&self.path, problem)));
        }
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

    /// Samples of one point, each with values and labels that no other has, until one is refused.
    fn refused(values: usize, labels: usize, length: usize) -> (usize, u64, Problem) {
        let (mut taken, mut bytes) = (Taken::default(), 0);
        for repeat in 0.. {
            let mut sample = example(repeat);
            let name = |at: usize| format!("{repeat}-{at}{}", "x".repeat(length));
            sample.values.extend((0..values).map(|at| (name(at), 1.0)));
            sample.labels.extend((0..labels).map(|at| (name(at), name(at))));
            bytes += sample.footprint();
            if let Err(problem) = taken.add(&sample, 1) {
                return (repeat as usize, bytes, problem);
            }
        }
        unreachable!("the number of samples has no end")
    }

    #[test]
    fn new_names_and_texts_count_whole_in_each_sample() {
        for (values, labels, length) in [(900, 0, 0), (900, 0, 500), (0, 900, 0), (0, 900, 500)] {
            let (samples, bytes, problem) = refused(values, labels, length);
            assert!(bytes <= MAX_MEMORY / FIRST * 2, "{samples} samples, {bytes} bytes");
            assert!(matches!(problem, Problem::TooLarge { .. }), "{problem}");
        }
        // Few names, for which no other limit is reached before.
        let (samples, _, problem) = refused(10, 0, 0);
        let told = problem.to_string();
        assert!(told.starts_with("the number of value names") && told.contains("100000"), "{told}");
        assert_eq!(samples, MAX_NAMES.div_ceil(10) - 1);
    }

    #[test]
    fn the_same_names_in_further_samples_count_little() {
        let (mut taken, mut bytes) = (Taken::default(), 0);
        for repeat in 0..10_000 {
            let sample = example(repeat);
            bytes += sample.footprint();
            taken.add(&sample, 1).unwrap();
        }
        assert!(taken.bytes < bytes / FURTHER + (64 << 10), "{} of {bytes}", taken.bytes);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
