//! A window over a stream of bytes: one buffer, used again and again.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ahead::{BLOCK, Block, Blocks, HEAD, zeros};

/// Bytes of buffer: large enough that a system call costs nothing, small enough to stay in the
/// second-level cache while it is read.
pub(crate) const BUFFER: usize = 512 * 1024;

/// Buffers that others still look at, of which one may be free again.
const LENT: usize = 32;

/// The part of a stream that is looked at.
pub(crate) struct Window {
    input: Box<dyn Read + Send>,
    buffer: Arc<[u8]>,
    /// Buffers before, which were shared.
    lent: Vec<Arc<[u8]>>,
    start: usize,
    end: usize,
    /// Where the buffer begins in the stream; before it where its front is not used, so it may wrap.
    base: u64,
    /// Where the rest of the stream comes from, if others may read it too.
    ahead: Option<Arc<Blocks>>,
    ended: bool,
    /// The stream ended where its compression says that there is more.
    truncated: bool,
}

impl Window {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Window {
            input,
            buffer: zeros(BUFFER),
            lent: Vec::new(),
            start: 0,
            end: 0,
            base: 0,
            ahead: None,
            ended: false,
            truncated: false,
        }
    }

    /// What is there of the stream, from where the window stands.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// The buffer, and where in it the window stands. While somebody has it, the window goes on in
    /// another one.
    pub(crate) fn buffer(&self) -> (&Arc<[u8]>, usize) {
        (&self.buffer, self.start)
    }

    /// Where in the stream the window stands.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base.wrapping_add(self.start as u64)
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Goes on by `count` bytes, which must be there.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Goes on by `count` bytes, there or not; false if the stream ends before.
    pub(crate) fn skip(&mut self, count: u64) -> io::Result<bool> {
        let mut left = count;
        loop {
            let there = (self.end - self.start) as u64;
            let step = left.min(there);
            self.advance(step as usize);
            left -= step;
            if left == 0 {
                return Ok(true);
            }
            if !self.fill(1)? {
                return Ok(false);
            }
        }
    }

    /// Reads until `need` bytes are there; false if the stream ends before.
    #[cold]
    pub(crate) fn fill(&mut self, need: usize) -> io::Result<bool> {
        if self.ahead.is_some() {
            return self.fill_by_blocks(need);
        }
        self.make_room(need);
        // Nobody else has it now.
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return Ok(false) };
        while self.end < need && !self.ended {
            let Some(room) = buffer.get_mut(self.end..) else { break };
            match self.input.read(room) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count.min(room.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Decompressors say so; a file just ends.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    (self.ended, self.truncated) = (true, true);
                }
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(self.end >= need)
    }

    /// Brings what is left of the buffer to its front, or to the front of another where somebody has this
    /// one or it is too small.
    fn make_room(&mut self, need: usize) {
        let left = self.start..self.end;
        let len = left.len();
        let fits = need <= self.buffer.len();
        match Arc::get_mut(&mut self.buffer).filter(|_| fits) {
            Some(buffer) => buffer.copy_within(left, 0),
            None => {
                let mut other = self.take_lent(need.max(BUFFER));
                if let (Some(to), Some(from)) = (
                    Arc::get_mut(&mut other).and_then(|to| to.get_mut(..len)),
                    self.buffer.get(left),
                ) {
                    to.copy_from_slice(from);
                }
                let before = std::mem::replace(&mut self.buffer, other);
                if self.lent.len() < LENT {
                    self.lent.push(before);
                }
            }
        }
        self.base = self.offset();
        (self.start, self.end) = (0, len);
    }

    /// Takes the rest of the stream by blocks, which others may read too: it is the file's, as it stands
    /// there. `read` counts the bytes that were read.
    pub(crate) fn read_ahead(&mut self, file: Arc<File>, read: Arc<AtomicU64>) -> &Arc<Blocks> {
        let at = self.base.wrapping_add(self.end as u64);
        self.ahead.insert(Arc::new(Blocks::new(file, at, read)))
    }

    fn fill_by_blocks(&mut self, need: usize) -> io::Result<bool> {
        while self.end - self.start < need && !self.ended {
            match self.ahead.as_ref().map(|ahead| ahead.take()) {
                Some(Ok(Some(block))) => self.go_on_in(block, need),
                Some(Ok(None)) | None => self.ended = true,
                Some(Err(error)) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(self.end - self.start >= need)
    }

    /// Goes on in a block: what is left comes before it.
    fn go_on_in(&mut self, block: Block, need: usize) {
        let at = self.offset();
        let Block { mut buffer, end } = block;
        let left = self.buffer.get(self.start..self.end).unwrap_or_default();
        let len = left.len();
        let front = HEAD.saturating_sub(len);
        let room = Arc::get_mut(&mut buffer).and_then(|all| all.get_mut(front..HEAD));
        if let Some(to) = room.filter(|to| to.len() == len) {
            to.copy_from_slice(left);
            self.change(buffer);
            (self.start, self.end) = (front, end);
            self.base = at.wrapping_sub(front as u64);
            return;
        }
        // A record longer than what is kept free for it.
        let data = buffer.get(HEAD..end).unwrap_or_default();
        let fits = self.buffer.len() - self.end >= data.len();
        if !fits || Arc::get_mut(&mut self.buffer).is_none() {
            let mut longer = zeros(len.max(need) + BLOCK);
            let left = self.buffer.get(self.start..self.end).unwrap_or_default();
            if let Some(to) = Arc::get_mut(&mut longer).and_then(|all| all.get_mut(..len)) {
                to.copy_from_slice(left);
            }
            self.change(longer);
            (self.start, self.end, self.base) = (0, len, at);
        }
        let room = Arc::get_mut(&mut self.buffer).and_then(|all| all.get_mut(self.end..));
        if let Some(to) = room.and_then(|room| room.get_mut(..data.len())) {
            to.copy_from_slice(data);
            self.end += data.len();
        }
        if let Some(ahead) = &self.ahead {
            ahead.give_back(buffer);
        }
    }

    /// Takes another buffer in place of this one.
    fn change(&mut self, buffer: Arc<[u8]>) {
        let before = std::mem::replace(&mut self.buffer, buffer);
        if let Some(ahead) = &self.ahead {
            ahead.give_back(before);
        }
    }

    /// A buffer that nobody has any more, or a new one.
    fn take_lent(&mut self, len: usize) -> Arc<[u8]> {
        let is_free = |lent: &mut Arc<[u8]>| lent.len() >= len && Arc::get_mut(lent).is_some();
        match self.lent.iter_mut().position(is_free) {
            Some(at) => self.lent.swap_remove(at),
            None => zeros(len),
        }
    }

    /// The stream that this one holds in compressed form: `open` is given all of this one again.
    /// The window stands at its beginning; nothing may have been passed.
    pub(crate) fn inside(
        self,
        open: impl FnOnce(Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>>,
    ) -> io::Result<Window> {
        let seen = self.bytes().to_vec();
        Ok(Window::new(open(Box::new(io::Cursor::new(seen).chain(self.input)))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_somebody_has_is_not_written() {
        let all: Vec<u8> = (0..=255).cycle().take(9 * BUFFER + 5).collect();
        let mut window = Window::new(Box::new(io::Cursor::new(all.clone())));
        let mut kept = Vec::new();
        let mut at = 0;
        // What is left of a piece belongs to the next.
        while window.fill(101).unwrap() {
            let (buffer, start) = window.buffer();
            kept.push((at, Arc::clone(buffer), start..start + window.bytes().len()));
            let count = window.bytes().len() - 100;
            window.advance(count);
            at += count;
            if kept.len() > 3 {
                let (at, buffer, piece) = kept.remove(0);
                assert!(buffer[piece.clone()] == all[at..at + piece.len()], "at {at}");
            }
        }
        assert_eq!(window.bytes(), &all[at..]);
        assert_eq!(window.offset(), at as u64);
        let lent = window.lent.len();
        assert!(lent <= 6, "those that nobody has are used again: {lent}");
    }

    /// Gives a few bytes at a time, as a pipe does, and is interrupted in between.
    struct Trickle(Vec<u8>, usize, bool);

    impl Read for Trickle {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(ErrorKind::Interrupted.into());
            }
            let count = to.len().min(7).min(self.0.len() - self.1);
            to[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }

    /// A file whose blocks are read by this thread and others, looked at in pieces of all sizes.
    #[test]
    fn what_others_read_ahead_is_the_file() {
        let all: Vec<u8> = (0..=250).cycle().take(7 * BLOCK + 12_345).collect();
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), &all).unwrap();
        // Up to a record longer than what is kept free before a block, and than a block.
        for step in [1, 100_000, HEAD, HEAD + 1, 300_000, 2 * BLOCK + 7] {
            let file = File::open(path.path()).unwrap();
            let read = Arc::new(AtomicU64::new(0));
            let mut window = Window::new(Box::new(file.try_clone().unwrap()));
            window.fill(4).unwrap();
            let first = window.end as u64;
            let blocks = Arc::clone(window.read_ahead(Arc::new(file), Arc::clone(&read)));
            let ahead = crate::ReadAhead::default();
            ahead.add(&blocks);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| while ahead.help() {});
                }
                let (mut at, mut kept) = (0, Vec::new());
                while window.fill(step).unwrap() {
                    let (buffer, start) = window.buffer();
                    let len = window.bytes().len();
                    kept.push((at, Arc::clone(buffer), start..start + len));
                    assert_eq!(window.offset(), at as u64);
                    // What is left belongs to the next.
                    let count = (len + 1).saturating_sub(step).max(1);
                    window.advance(count);
                    at += count;
                    if kept.len() > 3 {
                        let (at, buffer, piece) = kept.remove(0);
                        assert!(buffer[piece.clone()] == all[at..at + piece.len()], "at {at}");
                    }
                }
                assert!(window.bytes() == &all[at..], "step {step}");
                assert!(window.bytes().len() < step);
            });
            assert_eq!(first + read.load(std::sync::atomic::Ordering::Relaxed), all.len() as u64);
        }
    }

    #[test]
    fn a_stream_in_small_pieces_is_seen_whole() {
        let all: Vec<u8> = (0..=255).cycle().take(3 * BUFFER + 5).collect();
        let mut window = Window::new(Box::new(Trickle(all.clone(), 0, false)));
        assert!(window.fill(BUFFER).unwrap());
        assert_eq!(window.bytes()[..BUFFER], all[..BUFFER]);
        assert!(window.skip(BUFFER as u64 + 3).unwrap());
        assert_eq!(window.offset(), BUFFER as u64 + 3);
        // Longer than the buffer: it grows.
        let rest = 2 * BUFFER + 2;
        assert!(window.fill(rest).unwrap());
        assert_eq!(window.bytes()[..rest], all[BUFFER + 3..]);
        assert!(!window.fill(rest + 1).unwrap());
        assert!(!window.skip(rest as u64 + 1).unwrap());
        assert_eq!(window.offset(), all.len() as u64);
    }
}
