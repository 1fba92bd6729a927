//! One capture file or pipe.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use units::Time;

use crate::format::{Problem, RECOGNISED_BY, Reader, Record, Step};
use crate::input::{Input, decompress};
use crate::window::Window;
use crate::{Batch, Cut, Doubts, Error, Event, Frames, Progress, ReadAhead};

/// The path that means standard input.
pub const STDIN: &str = "-";

/// Frames that are handed out together at most.
const MAX_BATCH: usize = 64;

/// Bytes between headers from which on the processor does not find the next ones by itself.
const FAR: usize = 512;
/// How many frames before its turn a header is asked for: memory takes longer than a few frames do.
const FRAMES_AHEAD: usize = 8;
/// Bytes that come from memory together. Headers of a record, Ethernet, IP and TCP lie in two of these.
const CACHE_LINE: usize = 64;

/// What captures from several queues or cards may be out of order by.
const DISORDER: Duration = Duration::from_secs(1);

/// A silence that is more often a clock that was set.
const LEAP: Duration = Duration::from_secs(86_400);

/// What the window stands at.
#[derive(Debug, Clone, Copy)]
enum Head {
    /// Nothing that was looked at yet.
    Unread,
    Frame(Record),
    KeyLog {
        start: usize,
        len: usize,
        used: usize,
    },
    /// The end, whole or not.
    End,
}

/// A capture file or pipe: its frames in its own order.
///
/// [`Source::next`] until there is nothing more, or an error, after which there is nothing more
/// either; then [`Source::cut`] tells whether the file was whole.
pub struct Source {
    name: String,
    number: usize,
    window: Window,
    reader: Reader,
    head: Head,
    /// Frames that were handed out together.
    gathered: Vec<Record>,
    /// Where the record begins that is read.
    record_at: u64,
    last: Time,
    /// The latest time of a frame that was handed out in a batch.
    latest: Time,
    doubts: Doubts,
    cut: Option<Cut>,
    read: Arc<AtomicU64>,
    total: Option<u64>,
    /// Its file, where that may be read ahead.
    file: Option<Arc<File>>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("offset", &self.window.offset())
            .finish_non_exhaustive()
    }
}

impl Source {
    /// Opens a file; [`STDIN`] is standard input. Waits for the first bytes of a pipe.
    ///
    /// # Errors
    /// [`Error::Open`]; [`Error::Format`] if it is no capture; [`Error::Read`],
    /// [`Error::Compressed`].
    pub fn open(path: &Path) -> Result<Source, Error> {
        let stdin = path.as_os_str() == STDIN;
        let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
        match if stdin { Input::stdin() } else { Input::open(path) } {
            Ok(input) => Source::new(name, input),
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// Reads a capture from any stream. `name` is what errors call it.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn from_reader(
        name: impl Into<String>,
        stream: impl Read + Send + 'static,
    ) -> Result<Source, Error> {
        Source::new(name.into(), Input::new(stream, None))
    }

    fn new(name: String, input: Input) -> Result<Source, Error> {
        let Input { stream, read, total, file } = input;
        let opened = || {
            let mut window = Window::new(stream);
            window.fill(RECOGNISED_BY)?;
            let (mut window, is_compressed) = decompress(window)?;
            window.fill(RECOGNISED_BY)?;
            Ok((window, is_compressed))
        };
        let (window, is_compressed) =
            opened().map_err(|error| read_error(name.clone(), 0, error))?;
        match Reader::recognise(window.bytes()) {
            Ok(reader) => Ok(Source {
                name,
                number: 0,
                window,
                reader,
                head: Head::Unread,
                gathered: Vec::with_capacity(MAX_BATCH),
                record_at: 0,
                last: Time::ZERO,
                latest: Time::ZERO,
                doubts: Doubts::default(),
                cut: None,
                read,
                total,
                file: file.filter(|_| !is_compressed),
            }),
            Err(_) if window.is_truncated() && window.bytes().len() < RECOGNISED_BY => {
                Err(Error::Format { name, offset: 0, problem: Problem::CutOff })
            }
            Err(problem) => Err(Error::Format { name, offset: 0, problem }),
        }
    }

    /// The name that errors call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The number that its frames have as [`crate::Frame::source`], from now on.
    #[must_use]
    pub fn numbered(mut self, number: usize) -> Source {
        self.number = number;
        self
    }

    /// Lets others read the file before its turn, if it is a plain one.
    pub(crate) fn read_ahead(&mut self, by: &ReadAhead) {
        if let Some(file) = self.file.take() {
            by.add(self.window.read_ahead(file, Arc::clone(&self.read)));
        }
    }

    /// What comes next; `None` at the end. Waits for a pipe.
    ///
    /// # Errors
    /// [`Error::Format`] where the file is damaged, [`Error::Read`], [`Error::Compressed`]. There
    /// is nothing more after it.
    // Not an iterator: what it hands out lies in its buffer.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        self.advance()?;
        Ok(self.current())
    }

    /// Where the file ends within a record; known at its end.
    #[must_use]
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Frames of which what is said must be doubted.
    pub(crate) fn doubts(&self) -> Doubts {
        Doubts { timeless: self.reader.timeless(), misdated: self.reader.misdated(), ..self.doubts }
    }

    /// How far it is read.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { read: self.read.load(Ordering::Relaxed), of: self.total }
    }

    /// What the source stands at.
    #[inline]
    pub(crate) fn current(&self) -> Option<Event<'_>> {
        match self.head {
            Head::Frame(record) => {
                Some(Event::Frame(Frames::frame(&record, self.window.bytes(), self.number)))
            }
            Head::KeyLog { start, len, .. } => Some(Event::KeyLog(self.part(start, len))),
            Head::Unread | Head::End => None,
        }
    }

    fn part(&self, start: usize, len: usize) -> &[u8] {
        self.window.bytes().get(start..start + len).unwrap_or_default()
    }

    /// What the source stands at and, of frames, those behind it that are in the buffer already and come
    /// before `until`: a time and a source's number. It then stands at the last of them.
    pub(crate) fn batch(&mut self, until: (Time, usize)) -> Option<Batch<'_>> {
        let first = match self.head {
            Head::Frame(first) => first,
            Head::KeyLog { start, len, .. } => return Some(Batch::KeyLog(self.part(start, len))),
            Head::Unread | Head::End => return None,
        };
        self.gathered.clear();
        self.gathered.push(first);
        let mut last = first;
        while self.gathered.len() < MAX_BATCH {
            let next = self.window.bytes().get(last.used as usize..);
            let Some(next) = next.and_then(|bytes| self.reader.frame(bytes)) else { break };
            if (next.at, self.number) >= until {
                break;
            }
            // Positions count from where the window stands.
            let (start, used) = (last.used + next.start, last.used + next.used);
            last = Record { start, used, ..next };
            self.gathered.push(last);
            self.ask_for_headers_behind(last.used as usize, next.used as usize);
        }
        self.head = Head::Frame(last);
        for record in &self.gathered {
            self.doubts.cut_short += u64::from(record.captured < record.original_len);
            self.doubts.out_of_order +=
                u64::from(self.latest.saturating_since(record.at) > DISORDER);
            // Of the first frame nothing is before.
            let is_leap = record.at.saturating_since(self.latest) > LEAP;
            self.doubts.leaps += u64::from(is_leap && self.latest != Time::ZERO);
            self.latest = self.latest.max(record.at);
        }
        let (bytes, source, buffer) = (self.window.bytes(), self.number, self.window.buffer());
        Some(Batch::Frames(Frames { records: self.gathered.iter(), bytes, source, buffer }))
    }

    /// Asks for the headers some frames behind `at`, in case these are as long as the last one: where that is
    /// far, nothing else does before they are read, and another processor may have the block in its cache.
    #[inline]
    fn ask_for_headers_behind(&self, at: usize, len: usize) {
        if len > FAR {
            let bytes = self.window.bytes();
            let at = at.saturating_add(len.saturating_mul(FRAMES_AHEAD));
            let next_line = at.saturating_add(CACHE_LINE);
            black_box((bytes.get(at).copied(), bytes.get(next_line).copied()));
        }
    }

    /// The time of what the source stands at: of a key log, that of the frame before.
    #[inline]
    pub(crate) fn time(&self) -> Option<Time> {
        match self.head {
            Head::Frame(record) => Some(record.at),
            Head::KeyLog { .. } => Some(self.last),
            Head::Unread | Head::End => None,
        }
    }

    /// Goes on to the next frame or key log, or to the end.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        match self.head {
            Head::Frame(record) => self.window.advance(record.used as usize),
            Head::KeyLog { used, .. } => self.window.advance(used),
            Head::Unread => {}
            Head::End => return Ok(()),
        }
        match self.reader.frame(self.window.bytes()) {
            Some(record) => {
                self.head = Head::Frame(record);
                Ok(())
            }
            None => self.search(),
        }
    }

    /// Reads on until there is a frame, a key log or the end.
    #[cold]
    fn search(&mut self) -> Result<(), Error> {
        let mut record_goes_on = false;
        self.record_at = self.window.offset();
        if let Head::Frame(record) = self.head {
            self.last = record.at;
        }
        self.head = Head::End;
        loop {
            let step = self.reader.step(self.window.bytes()).map_err(|problem| Error::Format {
                name: self.name.clone(),
                offset: self.record_at,
                problem,
            })?;
            let (whole, goes_on) = match step {
                Step::Frame(record) => {
                    self.head = Head::Frame(record);
                    return Ok(());
                }
                Step::KeyLog { start, len, used } => {
                    self.head = Head::KeyLog { start, len, used };
                    return Ok(());
                }
                Step::Need(need) => (self.window.fill(need), record_goes_on),
                Step::Pass(count) => (self.window.skip(count), false),
                Step::Part(count) => (self.window.skip(count), true),
            };
            record_goes_on = goes_on;
            match whole {
                Ok(true) => {}
                Ok(false) => {
                    self.end();
                    return Ok(());
                }
                Err(error) => return Err(read_error(self.name.clone(), self.record_at, error)),
            }
            if !record_goes_on {
                self.record_at = self.window.offset();
            }
        }
    }

    /// The stream has ended before what was asked for.
    fn end(&mut self) {
        let at_border = self.record_at == self.window.offset() && self.window.bytes().is_empty();
        if !at_border || self.window.is_truncated() {
            self.cut = Some(Cut { name: self.name.clone(), offset: self.record_at });
        }
    }
}

fn read_error(name: String, offset: u64, source: io::Error) -> Error {
    if source.raw_os_error().is_some() {
        Error::Read { name, offset, source }
    } else {
        Error::Compressed { name, offset, source }
    }
}
