//! Buffers for frames under way: one slab, made once, indexed; no allocation for a frame.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::io;
use std::rc::Rc;

use units::Time;

use crate::Error;
use crate::options::Size;

/// Bytes in front of a frame, for its `virtio_net_hdr` in offload mode.
pub(crate) const HEADROOM: usize = 16;

/// A pool of equal buffers. It belongs to the pump's thread.
pub(crate) struct Pool {
    /// Zeroed memory of the allocator comes unmapped; a buffer takes memory when first written.
    slab: UnsafeCell<Box<[u8]>>,
    stride: usize,
    header: usize,
    /// Buffers not in use; the one used last is on top, still in the cache.
    free: RefCell<Vec<u32>>,
    /// Copies that a link wanted to make and could not, since the last time it was asked.
    refused_clones: Cell<u64>,
}

impl Pool {
    /// A pool of `buffers` buffers for frames of up to `frame_bytes` bytes, which have a vnet
    /// header of `header` bytes (perhaps none) before them.
    ///
    /// # Errors
    /// `OutOfMemory` if the address space cannot be had.
    pub(crate) fn new(buffers: u32, frame_bytes: u32, header: usize) -> io::Result<Rc<Self>> {
        let stride = (frame_bytes as usize + HEADROOM).next_multiple_of(64);
        let bytes = stride.checked_mul(buffers as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        if bytes > isize::MAX as usize / 2 {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let slab = UnsafeCell::new(vec![0; bytes].into_boxed_slice());
        let free = RefCell::new((0..buffers).rev().collect());
        Ok(Rc::new(Pool { slab, stride, header, free, refused_clones: Cell::new(0) }))
    }

    /// An empty buffer, or `None` if all are in use.
    #[inline]
    pub(crate) fn take(self: &Rc<Self>) -> Option<Buffer> {
        let index = self.free.borrow_mut().pop()?;
        Some(Buffer {
            pool: Rc::clone(self),
            index,
            start: HEADROOM as u16,
            len: 0,
            entered: Time::ZERO,
        })
    }

    /// Length of the vnet header before each frame.
    pub(crate) fn header(&self) -> usize {
        self.header
    }

    /// Buffers that are free now.
    #[cfg(test)]
    pub(crate) fn available(&self) -> usize {
        self.free.borrow().len()
    }

    /// Takes the number of copies that could not be made for lack of a buffer.
    pub(crate) fn take_refused_clones(&self) -> u64 {
        self.refused_clones.take()
    }

    fn place(&self, index: u32) -> *mut u8 {
        // SAFETY: only the pointer to the slab is read; `index` is below the number of buffers,
        // because it came from `free`, so the buffer lies within the slab.
        unsafe { (&raw mut **self.slab.get()).cast::<u8>().add(index as usize * self.stride) }
    }
}

/// The pools of a pump, one for each size of frames.
pub(crate) struct Pools {
    header: usize,
    made: Vec<(Size, Rc<Pool>)>,
}

impl Pools {
    /// None yet; their frames will have a vnet header of `header` bytes (perhaps none) before them.
    pub(crate) fn new(header: usize) -> Pools {
        Pools { header, made: Vec::new() }
    }

    /// The pool for frames of this size, made when it is first asked for.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub(crate) fn of(&mut self, size: Size) -> Result<Rc<Pool>, Error> {
        if let Some((_, pool)) = self.made.iter().find(|(made, _)| *made == size) {
            return Ok(Rc::clone(pool));
        }
        let pool = Pool::new(size.buffers, size.frame_bytes, self.header)
            .map_err(|source| Error::NoMemory { buffers: size.buffers, source })?;
        self.made.push((size, Rc::clone(&pool)));
        Ok(pool)
    }
}

/// A frame in a buffer of the pool, to which it returns when dropped.
pub(crate) struct Buffer {
    pool: Rc<Pool>,
    index: u32,
    /// Where what is sent begins: [`HEADROOM`], or before it by the length of a vnet header.
    start: u16,
    /// Length of the Ethernet frame.
    len: u32,
    /// When it came to the link that it is on.
    pub(crate) entered: Time,
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

    /// Room for a frame behind a header of `header` bytes (0 or a vnet header): to be read into,
    /// then [`Buffer::set_len`].
    pub(crate) fn room(&mut self, header: usize) -> &mut [u8] {
        let start = HEADROOM - header.min(HEADROOM);
        self.start = start as u16;
        let len = self.pool.stride - start;
        self.slice_mut(start, len)
    }

    /// Longest frame that fits.
    pub(crate) fn capacity(&self) -> usize {
        self.pool.stride - HEADROOM
    }

    /// Sets the frame's length after `total` bytes, header included, were written to
    /// [`Buffer::room`].
    pub(crate) fn set_len(&mut self, total: usize) {
        let header = HEADROOM - usize::from(self.start);
        self.len = total.saturating_sub(header).min(self.capacity()) as u32;
    }

    /// Copies `parts`, one behind the other, of which the first `header` bytes are a vnet header.
    /// False if they do not fit.
    #[inline]
    pub(crate) fn fill(&mut self, header: usize, parts: &[&[u8]]) -> bool {
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

    /// What is sent: the frame, with its vnet header before it if it has one.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> &[u8] {
        let start = usize::from(self.start);
        self.slice(start, HEADROOM - start + self.len as usize)
    }
}

impl linkmodel::Frame for Buffer {
    fn len(&self) -> usize {
        self.len as usize
    }

    fn try_clone(&self) -> Option<Self> {
        let Some(mut copy) = self.pool.take() else {
            self.pool.refused_clones.set(self.pool.refused_clones.get() + 1);
            return None;
        };
        let header = HEADROOM - usize::from(self.start);
        copy.entered = self.entered;
        copy.fill(header, &[self.wire_bytes()]).then_some(copy)
    }

    fn flip_bit(&mut self, bit: usize) {
        let len = self.len as usize;
        if let Some(byte) = self.slice_mut(HEADROOM, len).get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let len = self.len as usize;
        Some(self.slice_mut(HEADROOM, len))
    }

    fn shorten(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
        // An all-zero virtio_net_hdr: nothing is left to be cut or summed.
        let start = usize::from(self.start);
        self.slice_mut(start, HEADROOM - start).fill(0);
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
    use linkmodel::Frame;

    #[test]
    fn buffers_do_not_overlap_and_return_when_dropped() {
        let pool = Pool::new(3, 100, 0).unwrap();
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
        let pool = Pool::new(1, 100, 0).unwrap();
        let mut buffer = pool.take().unwrap();
        assert!(!buffer.fill(0, &[&[0; 100], &[0; 100]]));
        let capacity = buffer.capacity();
        assert!(buffer.fill(10, &[&[7; 10], &vec![8; capacity]]));
        assert_eq!((buffer.len(), buffer.wire_bytes().len()), (capacity, capacity + 10));
    }

    #[test]
    fn a_copy_has_its_own_bytes_and_its_header() {
        let pool = Pool::new(2, 100, 10).unwrap();
        let mut frame = pool.take().unwrap();
        assert!(frame.fill(10, &[&[1; 10], &[0; 60]]));
        let mut copy = frame.try_clone().unwrap();
        assert!(frame.try_clone().is_none());
        assert_eq!(pool.take_refused_clones(), 1);
        copy.flip_bit(8 * 59 + 7);
        assert_eq!(copy.wire_bytes()[69], 1);
        assert_eq!(frame.wire_bytes()[69], 0);
        assert_eq!(copy.wire_bytes()[..10], [1; 10]);
        copy.flip_bit(8 * 60);
    }

    #[test]
    fn a_shortened_frame_says_nothing_of_unfinished_checksums() {
        let pool = Pool::new(1, 100, 10).unwrap();
        let mut frame = pool.take().unwrap();
        assert!(frame.fill(10, &[&[1; 10], &[5; 60]]));
        assert_eq!(frame.bytes_mut().unwrap(), [5; 60]);
        frame.shorten(54);
        assert_eq!(frame.wire_bytes(), [[0; 10].as_slice(), &[5; 54]].concat());
        frame.shorten(60);
        assert_eq!(frame.len(), 54);
    }
}
