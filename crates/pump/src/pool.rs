//! The buffers of frames under way, as the link model sees them.

use std::rc::Rc;

use packet::{Buffer, Pool, PoolOptions};
use units::Time;

use crate::Error;
use crate::options::Size;

/// Bytes in front of a frame, for its `virtio_net_hdr` in offload mode.
const HEADROOM: u16 = 16;

/// The pools of a pump, one for each size of frames.
pub(crate) struct Pools {
    vnet_header: bool,
    made: Vec<(Size, Rc<Pool>)>,
}

impl Pools {
    /// None yet; their frames will have a `virtio_net_hdr` before them or not.
    pub(crate) fn new(vnet_header: bool) -> Pools {
        Pools { vnet_header, made: Vec::new() }
    }

    /// The pool for frames of this size, made when it is first asked for.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub(crate) fn of(&mut self, size: Size) -> Result<Rc<Pool>, Error> {
        if let Some((_, pool)) = self.made.iter().find(|(made, _)| *made == size) {
            return Ok(Rc::clone(pool));
        }
        let Size { frame_bytes, buffers, .. } = size;
        let pool = Pool::new(PoolOptions {
            buffers,
            frame_bytes,
            headroom: HEADROOM,
            tailroom: 0,
            vnet_header: self.vnet_header,
        })
        .map_err(|source| Error::NoMemory { buffers, source })?;
        self.made.push((size, Rc::clone(&pool)));
        Ok(pool)
    }
}

/// A frame on a link.
pub(crate) struct Held {
    pub(crate) buffer: Buffer,
    /// When it came to the link that it is on.
    pub(crate) entered: Time,
}

impl linkmodel::Frame for Held {
    fn len(&self) -> usize {
        self.buffer.len()
    }

    fn try_clone(&self) -> Option<Self> {
        let buffer = self.buffer.try_copy()?;
        Some(Held { buffer, entered: self.entered })
    }

    fn flip_bit(&mut self, bit: usize) {
        if let Some(byte) = self.buffer.frame_mut().get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self.buffer.frame_mut())
    }

    fn shorten(&mut self, len: usize) {
        self.buffer.shorten(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkmodel::Frame;

    #[test]
    fn a_copy_has_its_own_bits() {
        let size = Size { frame_bytes: 100, buffers: 2, ring_frames: 1 };
        let mut pools = Pools::new(true);
        let pool = pools.of(size).unwrap();
        assert!(Rc::ptr_eq(&pool, &pools.of(size).unwrap()));
        let mut buffer = pool.take().unwrap();
        assert!(buffer.fill(10, &[&[1; 10], &[0; 60]]));
        let frame = Held { buffer, entered: Time::from_millis(3) };
        let mut copy = frame.try_clone().unwrap();
        assert!(frame.try_clone().is_none());
        copy.flip_bit(8 * 59 + 7);
        assert_eq!((copy.buffer.wire_bytes()[69], frame.buffer.wire_bytes()[69]), (1, 0));
        assert_eq!((copy.entered, copy.len()), (frame.entered, 60));
        // No bit of the frame.
        copy.flip_bit(8 * 60);
    }
}
