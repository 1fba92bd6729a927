//! A frame in a buffer, with room before and behind.

use std::ops::Range;

use crate::SealError;

/// A frame in a buffer with room before and behind it: what is added or taken off moves its ends.
#[derive(Debug)]
pub struct Slot<'b> {
    buffer: &'b mut [u8],
    range: Range<usize>,
}

impl<'b> Slot<'b> {
    /// The frame at `range` of `buffer`; `None` if the buffer has no such part.
    #[must_use]
    pub fn new(buffer: &'b mut [u8], range: Range<usize>) -> Option<Self> {
        buffer.get(range.clone())?;
        Some(Slot { buffer, range })
    }

    /// The frame as its ends are now.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        // The range was checked where it was set.
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }

    /// The frame, to be written.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.range.clone()).unwrap_or_default()
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there is no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Where in the buffer it lies.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Makes it longer by so many bytes before it. What these hold is left to the caller.
    ///
    /// # Errors
    /// There is no such room.
    pub fn grow_front(&mut self, count: usize) -> Result<(), SealError> {
        let start = self.range.start.checked_sub(count);
        self.range.start = start.ok_or(SealError::NoRoom { needed: count, place: "before" })?;
        Ok(())
    }

    /// Makes it longer by so many bytes behind it. What these hold is left to the caller.
    ///
    /// # Errors
    /// There is no such room.
    pub fn grow_back(&mut self, count: usize) -> Result<(), SealError> {
        let end = self.range.end.checked_add(count).filter(|end| *end <= self.buffer.len());
        self.range.end = end.ok_or(SealError::NoRoom { needed: count, place: "behind" })?;
        Ok(())
    }

    /// Takes so many bytes off its front, all if there are no more.
    pub fn shrink_front(&mut self, count: usize) {
        self.range.start = self.range.start.saturating_add(count).min(self.range.end);
    }

    /// Takes so many bytes off its end, all if there are no more.
    pub fn shrink_back(&mut self, count: usize) {
        self.range.end = self.range.end.saturating_sub(count).max(self.range.start);
    }

    /// Opens a gap of `count` bytes after the first `head`, which move to the front.
    ///
    /// # Errors
    /// The frame is shorter than `head`, or there is no room before it.
    pub fn open_gap(&mut self, head: usize, count: usize) -> Result<(), SealError> {
        if self.len() < head {
            return Err(SealError::TooShort);
        }
        let from = self.range.start;
        self.grow_front(count)?;
        let to = self.range.start;
        self.buffer.copy_within(from..from.saturating_add(head), to);
        Ok(())
    }

    /// Takes `count` bytes after the first `head` out; these move up. Does nothing to a shorter frame.
    pub fn close_gap(&mut self, head: usize, count: usize) {
        if self.len() < head.saturating_add(count) {
            return;
        }
        let from = self.range.start;
        self.shrink_front(count);
        let to = self.range.start;
        self.buffer.copy_within(from..from.saturating_add(head), to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_opens_and_closes_again() {
        let mut buffer = *b"....abcdef..";
        let mut slot = Slot::new(&mut buffer, 4..10).unwrap();
        slot.open_gap(2, 3).unwrap();
        assert_eq!((&slot.frame()[..2], &slot.frame()[5..]), (&b"ab"[..], &b"cdef"[..]));
        slot.close_gap(2, 3);
        assert_eq!((slot.frame(), slot.range()), (&b"abcdef"[..], 4..10));
    }

    #[test]
    fn there_is_no_room_beyond_the_buffer() {
        let mut buffer = [0; 8];
        assert!(Slot::new(&mut buffer, 4..9).is_none());
        let mut slot = Slot::new(&mut buffer, 2..6).unwrap();
        assert_eq!(slot.grow_front(3), Err(SealError::NoRoom { needed: 3, place: "before" }));
        assert_eq!(slot.grow_back(3), Err(SealError::NoRoom { needed: 3, place: "behind" }));
        assert_eq!(slot.open_gap(5, 1), Err(SealError::TooShort));
        slot.shrink_front(9);
        assert!(slot.is_empty());
    }
}
