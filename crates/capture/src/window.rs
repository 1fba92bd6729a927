//! A window over a stream of bytes: one buffer, used again and again.

use std::io::{self, ErrorKind, Read};

/// Bytes of buffer: large enough that a system call costs nothing, small enough to stay in the
/// second-level cache while it is read.
pub(crate) const BUFFER: usize = 512 * 1024;

/// The part of a stream that is looked at.
pub(crate) struct Window {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` is in the stream.
    offset: u64,
    ended: bool,
    /// The stream ended where its compression says that there is more.
    truncated: bool,
}

impl Window {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Window {
            input,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            truncated: false,
        }
    }

    /// What is there of the stream, from where the window stands.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Where in the stream the window stands.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Goes on by `count` bytes, which must be there.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
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
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if need > self.buffer.len() {
            self.buffer.resize(need, 0);
        }
        while self.end < need && !self.ended {
            let Some(room) = self.buffer.get_mut(self.end..) else { break };
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
