//! What travels over a link, and what comes out of it.

use serde::Serialize;
use thiserror::Error;
use units::Time;

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_HEADER: usize = 14;

/// A frame as the model sees it: a length, and what can happen to its bytes.
pub trait Frame: Sized {
    /// Length of the Ethernet frame in bytes: header included, frame check sequence not.
    fn len(&self) -> usize;

    /// Whether the frame has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy for duplication; `None` if there is no buffer for one, and then none is made.
    fn try_clone(&self) -> Option<Self>;

    /// Inverts bit `bit`, counted from the first byte's most significant bit; always below
    /// `8 * len()`.
    fn flip_bit(&mut self, bit: usize);

    /// Bytes before the IP packet: an Ethernet header, or 0 where frames are IP packets.
    fn link_header(&self) -> usize {
        ETHERNET_HEADER
    }

    /// The frame's [`Frame::len`] bytes, for a [`Middlebox`](crate::Middlebox) to read and to
    /// change. It lets pass what has none.
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        None
    }

    /// Keeps the first `len` bytes, never more than there are. Their checksums are then complete,
    /// whatever the buffer said of them (as a `virtio_net_hdr` does).
    fn shorten(&mut self, len: usize) {
        let _ = len;
    }
}

impl Frame for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, bit: usize) {
        if let Some(byte) = self.get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }

    fn shorten(&mut self, len: usize) {
        self.truncate(len);
    }
}

/// Why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum DropCause {
    /// A middlebox dropped it: a SYN with data.
    #[error("dropped by a middlebox")]
    Middlebox,
    /// The loss model drew a loss.
    #[error("lost on the link")]
    Loss,
    /// The queue had no room.
    #[error("the queue is full")]
    QueueFull,
    /// CoDel dropped it at the head of the queue (RFC 8289).
    #[error("dropped by CoDel")]
    Codel,
    /// It was sent while the link was down.
    #[error("the link is down")]
    Outage,
    /// More frames or bytes are under way than [`DELAY_LINE_FRAMES`](crate::DELAY_LINE_FRAMES)
    /// or [`DELAY_LINE_BYTES`](crate::DELAY_LINE_BYTES).
    #[error("the delay line is full")]
    DelayLineFull,
}

impl DropCause {
    /// Every cause, in the order of the stages.
    pub const ALL: [DropCause; 6] = [
        DropCause::Middlebox,
        DropCause::Loss,
        DropCause::QueueFull,
        DropCause::Codel,
        DropCause::Outage,
        DropCause::DelayLineFull,
    ];
}

/// A dropped frame. It comes back to the caller so that its buffer can be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped<F> {
    /// As it was given to the link.
    pub frame: F,
    /// Why it was dropped.
    pub cause: DropCause,
}

/// What a link gives out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<F> {
    /// A frame has reached the other end.
    Deliver {
        /// As it was given to the link, or a copy of it.
        frame: F,
        /// When it reached the other end: not after the `now` of the poll, and often before it,
        /// so that a late poll does not make the next due time late.
        due: Time,
    },
    /// A frame that had been accepted was dropped later: by CoDel, an outage or a full delay
    /// line.
    Drop(Dropped<F>),
}
