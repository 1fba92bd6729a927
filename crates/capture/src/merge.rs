//! Several captures as one, in order of time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use units::Time;

use crate::{Batch, Cut, Doubts, Error, Event, Progress, ReadAhead, STDIN, Source};

/// Bytes of key logs that are kept of files not yet begun.
const MAX_EARLY_SECRETS: usize = 64 << 20;

/// A file that is not open: its first frame is later than all that was handed out.
#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    number: usize,
    first: Time,
}

/// Several captures, merged by time: those of two directions or interfaces, or rotated files in any
/// order. Each keeps its own order; of two frames of one time, that of the source given first comes
/// first.
///
/// Each file is opened for a moment to see its first frame. It is then read when its time has come,
/// so that files that do not overlap are never open together. Pipes stay open.
#[derive(Debug)]
pub struct Merge {
    /// By time of their first frames, latest first.
    waiting: Vec<Waiting>,
    /// Each stands at what it will hand out next, but for that at `at`.
    open: Vec<Source>,
    /// The one of `open` that handed out last.
    at: Option<usize>,
    /// What it may not reach without another's turn coming: a time and a source's number.
    until: (Time, usize),
    /// Key logs at the beginnings of waiting files: their keys may be wanted before.
    early: VecDeque<Vec<u8>>,
    /// That of them which is handed out.
    handed_out: Vec<u8>,
    cuts: Vec<Cut>,
    /// Of sources that have ended.
    doubts: Doubts,
    /// Bytes of sources that have ended.
    done: u64,
    /// Bytes of all; `None` if that is not known.
    total: Option<u64>,
    /// Who else may read the files.
    ahead: Option<Arc<ReadAhead>>,
}

impl Merge {
    /// Opens all the files; [`STDIN`] is standard input. A file without frames is no error.
    ///
    /// # Errors
    /// As [`Source::open`] and [`Source::next`], for the first file that has one.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Merge, Error> {
        let mut merge = Merge::empty();
        for (number, path) in paths.iter().enumerate() {
            let path = path.as_ref();
            let source = Source::open(path)?.numbered(number);
            // One alone needs not wait; a pipe cannot be opened again.
            if paths.len() == 1 || path.as_os_str() == STDIN || source.progress().of.is_none() {
                merge.begin(source)?;
            } else {
                merge.look(path, number, source)?;
            }
        }
        merge.waiting.sort_by_key(|file| std::cmp::Reverse((file.first, file.number)));
        Ok(merge)
    }

    /// Merges sources that are open already. The place of each is the number of its frames
    /// ([`crate::Frame::source`]).
    ///
    /// # Errors
    /// Those of reading each one's first frame.
    pub fn of(sources: Vec<Source>) -> Result<Merge, Error> {
        let mut merge = Merge::empty();
        for (number, source) in sources.into_iter().enumerate() {
            merge.begin(source.numbered(number))?;
        }
        Ok(merge)
    }

    fn empty() -> Merge {
        Merge {
            waiting: Vec::new(),
            open: Vec::new(),
            at: None,
            until: (Time::ZERO, 0),
            early: VecDeque::new(),
            handed_out: Vec::new(),
            cuts: Vec::new(),
            doubts: Doubts::default(),
            done: 0,
            total: Some(0),
            ahead: None,
        }
    }

    /// Lets other threads read the files before their turn: plain ones, neither compressed nor pipes. What
    /// this gives out is the same whether they do.
    pub fn read_ahead(&mut self) -> Arc<ReadAhead> {
        let ahead = Arc::clone(self.ahead.get_or_insert_default());
        self.open.iter_mut().for_each(|source| source.read_ahead(&ahead));
        ahead
    }

    /// Takes a source in that stays open.
    fn begin(&mut self, mut source: Source) -> Result<(), Error> {
        self.total = self.total.zip(source.progress().of).map(|(sum, len)| sum + len);
        source.advance()?;
        self.open.push(source);
        Ok(())
    }

    /// Looks when a file begins, and puts it among those that wait.
    fn look(&mut self, path: &Path, number: usize, mut source: Source) -> Result<(), Error> {
        self.total = self.total.zip(source.progress().of).map(|(sum, len)| sum + len);
        loop {
            source.advance()?;
            match source.current() {
                Some(Event::Frame(frame)) => {
                    let (path, first) = (path.to_path_buf(), frame.at);
                    self.waiting.push(Waiting { path, number, first });
                    return Ok(());
                }
                // Those that are too many come when the file's turn does.
                Some(Event::KeyLog(bytes)) => {
                    let kept: usize = self.early.iter().map(Vec::len).sum();
                    if kept + bytes.len() <= MAX_EARLY_SECRETS {
                        self.early.push_back(bytes.to_vec());
                    }
                }
                None => {
                    self.retire(&source);
                    return Ok(());
                }
            }
        }
    }

    fn retire(&mut self, source: &Source) {
        self.done += source.progress().read;
        self.cuts.extend(source.cut().cloned());
        self.doubts = self.doubts.plus(source.doubts());
    }

    /// What comes next; `None` at the end of all.
    ///
    /// # Errors
    /// Those of a source, which then is left out: the others go on when this is called again.
    // Not an iterator: what it hands out lies in a source's buffer.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if self.turn()? {
            return Ok(Some(Event::KeyLog(&self.handed_out)));
        }
        Ok(self.at.and_then(|at| self.open.get(at)).and_then(Source::current))
    }

    /// The same, several frames at once: those that come next, of one source, and are in its buffer. A
    /// pipe is not waited for where a frame is there.
    ///
    /// # Errors
    /// As [`Merge::next`].
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Error> {
        if self.turn()? {
            return Ok(Some(Batch::KeyLog(&self.handed_out)));
        }
        let until = self.until;
        Ok(self.at.and_then(|at| self.open.get_mut(at)).and_then(|source| source.batch(until)))
    }

    /// Goes on to the source whose turn it is; true if it is that of the key log in `handed_out`.
    #[inline]
    fn turn(&mut self) -> Result<bool, Error> {
        if self.go_on()? {
            return Ok(false);
        }
        if let Some(bytes) = self.early.pop_front() {
            self.handed_out = bytes;
            return Ok(true);
        }
        self.choose()?;
        Ok(false)
    }

    /// Goes on in the source that handed out last; false if it is another's turn.
    #[inline]
    fn go_on(&mut self) -> Result<bool, Error> {
        let Some(at) = self.at else { return Ok(false) };
        let Some(source) = self.open.get_mut(at) else { return Ok(false) };
        if let Err(error) = source.advance() {
            self.at = None;
            let source = self.open.swap_remove(at);
            self.retire(&source);
            return Err(error);
        }
        if source.time().is_some_and(|time| (time, source.number()) < self.until) {
            return Ok(true);
        }
        self.at = None;
        Ok(false)
    }

    /// Finds whose turn it is, and until when.
    fn choose(&mut self) -> Result<(), Error> {
        const NEVER: (Time, usize) = (Time::MAX, usize::MAX);
        self.retire_ended();
        loop {
            // The earliest, where it is, and the second.
            let (mut first, mut at, mut second) = (NEVER, None, NEVER);
            for (index, source) in self.open.iter().enumerate() {
                let turn = source.time().map_or(NEVER, |time| (time, source.number()));
                if turn < first {
                    (second, first, at) = (first, turn, Some(index));
                } else {
                    second = second.min(turn);
                }
            }
            let waiting = self.waiting.last().map_or(NEVER, |file| (file.first, file.number));
            if at.is_some() && first < waiting {
                (self.at, self.until) = (at, second.min(waiting));
                return Ok(());
            }
            let Some(file) = self.waiting.pop() else {
                self.at = None;
                return Ok(());
            };
            let mut source = Source::open(&file.path)?.numbered(file.number);
            if let Some(ahead) = &self.ahead {
                source.read_ahead(ahead);
            }
            source.advance()?;
            self.open.push(source);
        }
    }

    fn retire_ended(&mut self) {
        let mut index = 0;
        while let Some(source) = self.open.get(index) {
            if source.time().is_some() {
                index += 1;
            } else {
                let source = self.open.swap_remove(index);
                self.retire(&source);
            }
        }
    }

    /// The files, among those that have been read to the end, that end within a record.
    #[must_use]
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// Frames, of those that were read, of which what is said must be doubted.
    #[must_use]
    pub fn doubts(&self) -> Doubts {
        self.open.iter().fold(self.doubts, |sum, source| sum.plus(source.doubts()))
    }

    /// How far all of them are read.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let open: u64 = self.open.iter().map(|source| source.progress().read).sum();
        Progress { read: self.done + open, of: self.total }
    }
}
