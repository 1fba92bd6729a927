//! Buffers for frames under way: one slab, made once, indexed; no allocation for a frame.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;

use crate::vnet;

/// How many buffers a pool has, and how large they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// How many buffers.
    pub buffers: u32,
    /// Bytes of the longest frame that is taken into one.
    pub frame_bytes: u32,
    /// Bytes kept free before a frame: for a `virtio_net_hdr`, or for headers that are put before it.
    pub headroom: u16,
    /// Bytes kept free behind the longest frame, for what is put behind it.
    pub tailroom: u16,
    /// Whether each frame has a `virtio_net_hdr` before it; the headroom then has place for one.
    pub vnet_header: bool,
}

/// A pool of equal buffers. It belongs to one thread.
pub struct Pool {
    /// Zeroed memory of the allocator comes unmapped; a buffer takes memory when first written.
    slab: UnsafeCell<Box<[u8]>>,
    stride: usize,
    headroom: usize,
    tailroom: usize,
    /// Bytes of the `virtio_net_hdr` before each frame, perhaps none.
    header: usize,
    /// Buffers not in use; the one used last is on top, still in the cache.
    free: RefCell<Vec<u32>>,
    /// Copies that were wanted and could not be made, since the last time it was asked.
    refused_copies: Cell<u64>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("available", &self.available()).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool; address space for all buffers is taken at once.
    ///
    /// # Errors
    /// `OutOfMemory` if the address space cannot be had, `InvalidInput` if a `virtio_net_hdr` does not fit the
    /// headroom.
    pub fn new(options: PoolOptions) -> io::Result<Rc<Self>> {
        let PoolOptions { buffers, frame_bytes, headroom, tailroom, vnet_header } = options;
        let header = if vnet_header { vnet::HEADER_LEN } else { 0 };
        let (headroom, tailroom) = (usize::from(headroom), usize::from(tailroom));
        if header > headroom {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stride = (frame_bytes as usize + headroom + tailroom).next_multiple_of(64);
        let bytes = stride.checked_mul(buffers as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes > isize::MAX as usize / 2 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let slab = UnsafeCell::new(vec![0; bytes].into_boxed_slice());
        let free = RefCell::new((0..buffers).rev().collect());
        let refused_copies = Cell::new(0);
        Ok(Rc::new(Pool { slab, stride, headroom, tailroom, header, free, refused_copies }))
    }

    /// An empty buffer, or `None` if all are in use.
    #[inline]
    #[must_use]
    pub fn take(self: &Rc<Self>) -> Option<Buffer> {
        let index = self.free.borrow_mut().pop()?;
        let start = self.headroom as u32;
        Some(Buffer { pool: Rc::clone(self), index, start, header: 0, len: 0 })
    }

    /// Bytes of the `virtio_net_hdr` before each frame, perhaps none.
    #[must_use]
    pub fn header(&self) -> usize {
        self.header
    }

    /// Buffers that are free now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.free.borrow().len()
    }

    /// Takes the number of copies that could not be made for lack of a buffer.
    pub fn take_refused_copies(&self) -> u64 {
        self.refused_copies.take()
    }

    fn place(&self, index: u32) -> *mut u8 {
        // SAFETY: only the pointer to the slab is read; `index` is below the number of buffers,
        // because it came from `free`, so the buffer lies within the slab.
        unsafe { (&raw mut **self.slab.get()).cast::<u8>().add(index as usize * self.stride) }
    }
}

/// A frame in a buffer of a pool, to which it returns when dropped.
pub struct Buffer {
    pool: Rc<Pool>,
    index: u32,
    /// Where the Ethernet frame begins.
    start: u32,
    /// Bytes of a `virtio_net_hdr` before it, perhaps none.
    header: u32,
    /// Bytes of the Ethernet frame.
    len: u32,
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Buffer {
    fn slice(&self, from: usize, len: usize) -> &[u8] {
        let from = from.min(self.pool.stride);
        let len = len.min(self.pool.stride - from);
        // SAFETY: within the buffer, to which this value alone holds the index, so that nobody
        // writes to it while `self` is borrowed; the slab lives as long as the pool.
        unsafe { std::slice::from_raw_parts(self.pool.place(self.index).add(from), len) }
    }

    fn slice_mut(&mut self, from: usize, len: usize) -> &mut [u8] {
        let from = from.min(self.pool.stride);
        let len = len.min(self.pool.stride - from);
        // SAFETY: as in `slice`; `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pool.place(self.index).add(from), len) }
    }

    /// Room for a frame behind a header of `header` bytes (0 or a `virtio_net_hdr`): to be read into, then
    /// [`Buffer::set_len`]. The tailroom is no part of it.
    pub fn room(&mut self, header: usize) -> &mut [u8] {
        let header = header.min(self.pool.headroom);
        (self.start, self.header) = (self.pool.headroom as u32, header as u32);
        let (start, len) = (self.pool.headroom - header, self.capacity() + header);
        self.slice_mut(start, len)
    }

    /// Bytes of the longest frame that is taken in.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pool.stride - self.pool.headroom - self.pool.tailroom
    }

    /// Sets the frame's length after `total` bytes, header included, were written to [`Buffer::room`].
    pub fn set_len(&mut self, total: usize) {
        self.len = total.saturating_sub(self.header as usize).min(self.capacity()) as u32;
    }

    /// Copies `parts`, one behind the other, of which the first `header` bytes are a `virtio_net_hdr`.
    /// False if they do not fit.
    #[inline]
    pub fn fill(&mut self, header: usize, parts: &[&[u8]]) -> bool {
        let mut room = self.room(header);
        let mut total = 0;
        for part in parts {
            let Some((to, rest)) = room.split_at_mut_checked(part.len()) else {
                return false;
            };
            to.copy_from_slice(part);
            room = rest;
            total += part.len();
        }
        self.set_len(total);
        true
    }

    /// The Ethernet frame.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        self.slice(self.start as usize, self.len as usize)
    }

    /// The Ethernet frame, to be written.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        self.slice_mut(self.start as usize, self.len as usize)
    }

    /// Bytes of the Ethernet frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no frame in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is sent: the frame, with its `virtio_net_hdr` before it if it has one.
    #[inline]
    #[must_use]
    pub fn wire_bytes(&self) -> &[u8] {
        self.slice((self.start - self.header) as usize, (self.header + self.len) as usize)
    }

    /// The whole buffer, room before and behind the frame included, and where in it the frame lies: for who
    /// makes it longer or shorter in place, then [`Buffer::set_range`]. A `virtio_net_hdr` is lost.
    pub fn whole_mut(&mut self) -> (&mut [u8], Range<usize>) {
        let range = self.start as usize..(self.start + self.len) as usize;
        self.header = 0;
        let stride = self.pool.stride;
        (self.slice_mut(0, stride), range)
    }

    /// Says where in the buffer the frame now lies, as far as the buffer goes.
    pub fn set_range(&mut self, range: Range<usize>) {
        let start = range.start.min(self.pool.stride);
        let end = range.end.clamp(start, self.pool.stride);
        (self.start, self.header, self.len) = (start as u32, 0, (end - start) as u32);
    }

    /// A copy; `None`, which the pool counts, if there is no buffer for one.
    #[must_use]
    pub fn try_copy(&self) -> Option<Buffer> {
        let Some(mut copy) = self.pool.take() else {
            self.pool.refused_copies.set(self.pool.refused_copies.get() + 1);
            return None;
        };
        copy.fill(self.header as usize, &[self.wire_bytes()]).then_some(copy)
    }

    /// Keeps the first `len` bytes of the frame. A `virtio_net_hdr` then says nothing.
    pub fn shorten(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
        // An all-zero virtio_net_hdr: nothing is left to be cut or summed.
        let header = self.header as usize;
        self.slice_mut(self.start as usize - header, header).fill(0);
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        // Never grows: there are as many places as buffers.
        self.pool.free.borrow_mut().push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(buffers: u32, vnet_header: bool) -> Rc<Pool> {
        let options =
            PoolOptions { buffers, frame_bytes: 100, headroom: 16, tailroom: 0, vnet_header };
        Pool::new(options).unwrap()
    }

    #[test]
    fn buffers_do_not_overlap_and_return_when_dropped() {
        let pool = pool(3, false);
        let mut held: Vec<Buffer> = (0..3).map(|_| pool.take().unwrap()).collect();
        assert!(pool.take().is_none());
        for (value, buffer) in held.iter_mut().enumerate() {
            assert!(buffer.fill(0, &[&[value as u8; 100]]));
        }
        for (value, buffer) in held.iter().enumerate() {
            assert_eq!(buffer.wire_bytes(), [value as u8; 100]);
        }
        held.truncate(1);
        assert_eq!(pool.available(), 2);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let pool = pool(1, false);
        let mut buffer = pool.take().unwrap();
        assert!(!buffer.fill(0, &[&[0; 100], &[0; 100]]));
        let capacity = buffer.capacity();
        assert!(buffer.fill(10, &[&[7; 10], &vec![8; capacity]]));
        assert_eq!((buffer.len(), buffer.wire_bytes().len()), (capacity, capacity + 10));
    }

    #[test]
    fn a_copy_has_its_own_bytes_and_its_header() {
        let pool = pool(2, true);
        let mut frame = pool.take().unwrap();
        assert!(frame.fill(10, &[&[1; 10], &[0; 60]]));
        let mut copy = frame.try_copy().unwrap();
        assert!(frame.try_copy().is_none());
        assert_eq!((pool.take_refused_copies(), pool.take_refused_copies()), (1, 0));
        copy.frame_mut()[59] = 1;
        assert_eq!(copy.wire_bytes()[69], 1);
        assert_eq!(frame.wire_bytes()[69], 0);
        assert_eq!(copy.wire_bytes()[..10], [1; 10]);
    }

    #[test]
    fn a_shortened_frame_says_nothing_of_unfinished_checksums() {
        let pool = pool(1, true);
        let mut frame = pool.take().unwrap();
        assert!(frame.fill(10, &[&[1; 10], &[5; 60]]));
        assert_eq!(frame.frame(), [5; 60]);
        frame.shorten(54);
        assert_eq!(frame.wire_bytes(), [[0; 10].as_slice(), &[5; 54]].concat());
        frame.shorten(60);
        assert_eq!(frame.len(), 54);
    }

    #[test]
    fn a_frame_grows_into_the_room_around_it() {
        let options = PoolOptions {
            buffers: 1,
            frame_bytes: 100,
            headroom: 40,
            tailroom: 20,
            vnet_header: false,
        };
        let pool = Pool::new(options).unwrap();
        let mut buffer = pool.take().unwrap();
        let capacity = buffer.capacity();
        assert!(buffer.fill(0, &[&vec![3; capacity]]));
        let (whole, range) = buffer.whole_mut();
        assert_eq!((range.start, whole.len() - range.end), (40, 20));
        whole.fill(4);
        buffer.set_range(0..capacity + 60);
        assert_eq!(buffer.wire_bytes(), vec![4; capacity + 60]);
        // Beyond the buffer there is nothing.
        buffer.set_range(10..1 << 20);
        assert_eq!(buffer.len(), capacity + 50);
        // Taken anew it begins in its place again.
        drop(buffer);
        let mut again = pool.take().unwrap();
        assert!(again.fill(0, &[&[9; 60]]));
        assert_eq!(again.whole_mut().1, 40..100);
    }

    #[test]
    fn a_header_that_has_no_room_is_refused() {
        let options = PoolOptions {
            buffers: 1,
            frame_bytes: 100,
            headroom: 4,
            tailroom: 0,
            vnet_header: true,
        };
        assert!(Pool::new(options).is_err());
    }
}
