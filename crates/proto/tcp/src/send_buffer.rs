//! The bytes that the application wrote and the peer has not acknowledged yet.

use std::collections::VecDeque;

/// Capacity in bytes below which a buffer is not made smaller before it is empty.
const SMALL: usize = 32 << 10;

/// A queue of stream bytes, addressed by stream offset. Grows on demand up to its limit, shrinks with
/// what it holds, and has no memory when empty.
#[derive(Debug, Clone)]
pub struct SendBuffer {
    start: u64,
    bytes: VecDeque<u8>,
    limit: usize,
    /// What the endpoint's memory permits now.
    allowed: usize,
}

impl SendBuffer {
    /// An empty buffer at offset 0 for at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { start: 0, bytes: VecDeque::new(), limit, allowed: limit }
    }

    /// Appends as much of `data` as there is room for, and says how much.
    pub fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room());
        let Some(data) = data.get(..taken) else { return 0 };
        make_room(&mut self.bytes, taken, self.limit.min(self.allowed));
        self.bytes.extend(data);
        taken
    }

    /// The offset of the first byte held: all before it are acknowledged.
    #[cfg(test)]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The offset behind the last byte held.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Bytes that were written and are not acknowledged yet, sent or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that may be written now.
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.min(self.allowed).saturating_sub(self.bytes.len())
    }

    /// Takes no more than `bytes` in all from now on, whatever it holds already.
    pub fn allow(&mut self, bytes: usize) {
        self.allowed = bytes;
    }

    /// Memory held on the heap, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// Copies the bytes from `offset` on into `into` and says how many there were.
    pub fn copy(&self, offset: u64, into: &mut [u8]) -> usize {
        let Some(skip) = offset.checked_sub(self.start) else { return 0 };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let (first, second) = self.bytes.as_slices();
        let head = first.get(skip..).unwrap_or(&[]);
        let tail = second.get(skip.saturating_sub(first.len())..).unwrap_or(&[]);
        let copied = copy_some(head, into);
        copied + copy_some(tail, into.get_mut(copied..).unwrap_or(&mut []))
    }

    /// Lets go of all bytes before `offset`.
    pub fn acknowledge(&mut self, offset: u64) {
        let gone = offset.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.start += gone;
        self.forget(gone);
    }

    /// Takes the bytes before `upto` out of the stream, as if they had never been written: what
    /// follows them, if anything, now begins where they did.
    pub fn withdraw(&mut self, upto: u64) {
        self.forget(upto.saturating_sub(self.start).min(self.bytes.len() as u64));
    }

    fn forget(&mut self, count: u64) {
        // `count` is at most the length, so it fits.
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count >= self.bytes.len() {
            self.bytes = VecDeque::new();
        } else {
            self.bytes.drain(..count);
            // A peer that takes all but a byte leaves no more than that.
            if self.bytes.capacity() > SMALL.max(4 * self.bytes.len()) {
                self.bytes.shrink_to(2 * self.bytes.len());
            }
        }
    }
}

/// Reserves space for `more` bytes: doubling, but not beyond `limit`.
pub(crate) fn make_room(bytes: &mut VecDeque<u8>, more: usize, limit: usize) {
    let needed = bytes.len() + more;
    if needed > bytes.capacity() {
        let capacity = needed.max((2 * bytes.capacity()).min(limit));
        bytes.reserve_exact(capacity - bytes.len());
    }
}

/// Copies as much as fits.
pub(crate) fn copy_some(from: &[u8], into: &mut [u8]) -> usize {
    let count = from.len().min(into.len());
    if let (Some(from), Some(into)) = (from.get(..count), into.get_mut(..count)) {
        into.copy_from_slice(from);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn takes_what_fits_and_frees_all_when_empty() {
        let mut buffer = SendBuffer::new(8);
        assert_eq!(buffer.write(b"0123456789"), 8);
        assert_eq!((buffer.start(), buffer.end(), buffer.len(), buffer.room()), (0, 8, 8, 0));
        buffer.acknowledge(8);
        assert_eq!((buffer.start(), buffer.end(), buffer.bytes.capacity()), (8, 8, 0));
    }

    #[test]
    fn shrinks_with_what_it_holds_and_takes_what_is_allowed() {
        let mut buffer = SendBuffer::new(1 << 20);
        assert_eq!(buffer.write(&[7; 1 << 20]), 1 << 20);
        buffer.acknowledge((1 << 20) - 1);
        assert_eq!(buffer.len(), 1);
        assert!(buffer.held() <= 64, "{} bytes", buffer.held());
        buffer.allow(1000);
        assert_eq!((buffer.write(&[7; 2000]), buffer.write(b"x")), (999, 0));
        assert_eq!(buffer.held(), 1000);
        buffer.allow(10);
        assert_eq!((buffer.room(), buffer.len()), (0, 1000));
    }

    #[test]
    fn withdrawn_bytes_leave_the_offsets_to_those_behind_them() {
        let mut buffer = SendBuffer::new(100);
        buffer.write(b"hello, world");
        buffer.withdraw(7);
        let mut out = [0; 16];
        assert_eq!(buffer.copy(0, &mut out), 5);
        assert_eq!(&out[..5], b"world");
        assert_eq!((buffer.start(), buffer.end()), (0, 5));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Write(usize),
        Acknowledge(u64),
        Copy(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..300).prop_map(Step::Write),
            (0_u64..300).prop_map(Step::Acknowledge),
            ((0_u64..600), (0_usize..300)).prop_map(|(at, len)| Step::Copy(at, len)),
        ]
    }

    proptest! {
        #[test]
        fn behaves_as_a_plain_vector(steps in prop::collection::vec(step(), 1..200)) {
            const LIMIT: usize = 500;
            let mut buffer = SendBuffer::new(LIMIT);
            let (mut stream, mut start) = (Vec::<u8>::new(), 0_usize);
            let mut next = 0_u8;
            for step in steps {
                match step {
                    Step::Write(len) => {
                        let data: Vec<u8> = (0..len).map(|_| { next = next.wrapping_mul(5).wrapping_add(1); next }).collect();
                        let taken = buffer.write(&data);
                        prop_assert_eq!(taken, len.min(LIMIT - (stream.len() - start)));
                        stream.extend(&data[..taken]);
                    }
                    Step::Acknowledge(ahead) => {
                        buffer.acknowledge(start as u64 + ahead);
                        start = stream.len().min(start + ahead as usize);
                    }
                    Step::Copy(ahead, len) => {
                        let mut out = vec![0; len];
                        let count = buffer.copy(start as u64 + ahead, &mut out);
                        let from = stream.len().min(start + ahead as usize);
                        let expected = &stream[from..stream.len().min(from + len)];
                        prop_assert_eq!(&out[..count], expected);
                    }
                }
                prop_assert_eq!(buffer.start(), start as u64);
                prop_assert_eq!(buffer.end(), stream.len() as u64);
                prop_assert!(buffer.bytes.capacity() <= LIMIT);
            }
        }
    }
}
