//! A window over a stream of bytes: one buffer, used again and again.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

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
    /// Where the buffer begins in the stream.
    base: u64,
    ended: bool,
    /// The stream ended where its compression says that there is more.
    truncated: bool,
}

impl Window {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Window {
            input,
            buffer: empty(BUFFER),
            lent: Vec::new(),
            start: 0,
            end: 0,
            base: 0,
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
        self.base + self.start as u64
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
        self.base += self.start as u64;
        (self.start, self.end) = (0, len);
    }

    /// A buffer that nobody has any more, or a new one.
    fn take_lent(&mut self, len: usize) -> Arc<[u8]> {
        let is_free = |lent: &mut Arc<[u8]>| lent.len() >= len && Arc::get_mut(lent).is_some();
        match self.lent.iter_mut().position(is_free) {
            Some(at) => self.lent.swap_remove(at),
            None => empty(len),
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

fn empty(len: usize) -> Arc<[u8]> {
    vec![0; len].into()
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
