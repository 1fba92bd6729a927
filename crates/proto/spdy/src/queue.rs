//! Control frames that wait to be sent, whole, in their order.

use std::collections::VecDeque;

/// Frames in one buffer, and where each ends.
#[derive(Debug, Default)]
pub(crate) struct FrameQueue {
    bytes: Vec<u8>,
    /// Bytes at the front of the buffer that are sent.
    sent: usize,
    /// Lengths of the frames behind.
    lens: VecDeque<usize>,
}

impl FrameQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.lens.is_empty()
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Adds a frame, which `write` appends to the buffer; or nothing, if it fails.
    pub(crate) fn push<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        self.lens.push_back(self.bytes.len() - start);
        Ok(())
    }

    /// Moves frames to `out` until the next would make more than `limit` bytes behind `start`; the
    /// first goes whatever its length. The number moved.
    pub(crate) fn move_to(&mut self, out: &mut Vec<u8>, start: usize, limit: usize) -> u64 {
        let mut moved = 0;
        while let Some(len) = self.lens.front().copied() {
            let written = out.len().saturating_sub(start);
            if written > 0 && written.saturating_add(len) > limit {
                break;
            }
            let end = self.sent + len;
            out.extend_from_slice(self.bytes.get(self.sent..end).unwrap_or_default());
            self.sent = end;
            self.lens.pop_front();
            moved += 1;
        }
        if self.lens.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_whole_in_their_order() {
        let mut queue = FrameQueue::default();
        for frame in [&b"abc"[..], b"de", b"f"] {
            let write = |out: &mut Vec<u8>| -> Result<(), ()> {
                out.extend_from_slice(frame);
                Ok(())
            };
            queue.push(write).unwrap();
        }
        assert_eq!(
            queue.push(|out| {
                out.push(b'x');
                Err(())
            }),
            Err(())
        );
        let mut out = vec![];
        assert_eq!((queue.move_to(&mut out, 0, 1), queue.len()), (1, 3));
        assert_eq!((queue.move_to(&mut out, 0, 5), queue.move_to(&mut out, 0, 5)), (1, 0));
        assert_eq!((queue.move_to(&mut out, 0, 6), queue.is_empty(), queue.len()), (1, true, 0));
        assert_eq!(out, b"abcdef");
    }
}
