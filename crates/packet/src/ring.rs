//! Receive rings: frames that the kernel writes into memory shared with us (TPACKET_V2).
//!
//! TPACKET_V3 forwards more frames per second but hands them over in blocks up to 1 ms late, so a
//! link cannot use it.

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use units::Time;

use crate::sys::{get_option, set_option};
use crate::{Error, PacketSocket, SocketOptions, vnet};

/// How large a receive ring is. Its memory is about `frames` times (`frame_bytes` + 128) bytes,
/// held by the kernel and not swappable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingOptions {
    /// Frames that the ring holds at least; more that arrive before any is taken are lost.
    pub frames: u32,
    /// The longest frame (Ethernet header to payload) that is kept whole; of a longer one the
    /// first `frame_bytes` bytes or little more.
    pub frame_bytes: u32,
}

impl Default for RingOptions {
    /// 1024 frames of an MTU of 1500 bytes with room for two VLAN tags: 1.7 MB.
    fn default() -> Self {
        RingOptions { frames: 1024, frame_bytes: 1522 }
    }
}

/// Frames that a ring took in and lost since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingStatistics {
    /// Frames that arrived, lost ones included.
    pub frames: u64,
    /// Frames lost because the ring was full.
    pub drops: u64,
}

/// The places of a ring in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    slot_bytes: u32,
    slots_per_block: u32,
    block_bytes: u32,
    blocks: u32,
}

/// Bytes of a slot before the Ethernet header: header, `sockaddr_ll`, the kernel's alignment.
const SLOT_OVERHEAD: u32 = 96;
const MAX_RING_BYTES: u64 = 1 << 30;

impl Layout {
    fn new(options: RingOptions) -> Result<Self, Error> {
        let error = |problem| Error::RingSize {
            frames: options.frames,
            frame_bytes: options.frame_bytes,
            problem,
        };
        if options.frames == 0 || options.frame_bytes < 60 {
            return Err(error("it needs one frame of 60 bytes at least"));
        }
        if options.frame_bytes > 1 << 17 {
            return Err(error("a frame has at most 131072 bytes"));
        }
        // A stride that is no power of two spreads the slots' headers over the cache's sets.
        let slot_bytes = (options.frame_bytes + SLOT_OVERHEAD).next_multiple_of(64);
        let slot_bytes = if slot_bytes.is_power_of_two() { slot_bytes + 64 } else { slot_bytes };
        let block_bytes = if slot_bytes > 16 << 10 { 1 << 20 } else { 256 << 10 };
        let slots_per_block = block_bytes / slot_bytes;
        let blocks = options.frames.div_ceil(slots_per_block);
        let layout = Layout { slot_bytes, slots_per_block, block_bytes, blocks };
        if layout.bytes() > MAX_RING_BYTES {
            return Err(error("it would take more than 1 GiB"));
        }
        Ok(layout)
    }

    fn bytes(self) -> u64 {
        u64::from(self.block_bytes) * u64::from(self.blocks)
    }

    fn request(self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: self.block_bytes,
            tp_block_nr: self.blocks,
            tp_frame_size: self.slot_bytes,
            tp_frame_nr: self.slots_per_block * self.blocks,
        }
    }
}

/// A receive ring on one interface. Received frames carry the kernel's time of arrival.
///
/// The interface may be used from any thread and namespace once the ring is open. Dropping it
/// closes the socket and gives the memory back.
#[derive(Debug)]
pub struct RxRing {
    map: NonNull<u8>,
    map_bytes: usize,
    layout: Layout,
    block: u32,
    slot: u32,
    seen: RingStatistics,
    socket: PacketSocket,
}

// SAFETY: the mapping belongs to this value alone and lives until it is dropped; nothing in it is
// bound to the thread that made it.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Opens a ring on the interface with index `interface` of the calling thread's namespace.
    ///
    /// # Errors
    /// As [`PacketSocket::open`]; [`Error::RingSize`]; [`Error::System`] if there is not enough
    /// memory.
    pub fn open(interface: u32, options: &SocketOptions, ring: RingOptions) -> Result<Self, Error> {
        let layout = Layout::new(ring)?;
        let socket = PacketSocket::new(options)?;
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version).map_err(|source| {
            Error::Unsupported { what: "TPACKET_V2", remedy: "use Linux 2.6.27 or newer", source }
        })?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, layout.request())
            .map_err(|source| Error::System { doing: "allocating the receive ring", source })?;
        let map_bytes = layout.bytes() as usize;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let map = unsafe {
            mmap(ptr::null_mut(), map_bytes, ProtFlags::READ | ProtFlags::WRITE, flags, fd, 0)
        }
        .map_err(|errno| Error::System {
            doing: "mapping the receive ring",
            source: io::Error::from(errno),
        })?;
        let Some(map) = NonNull::new(map.cast::<u8>()) else {
            let source = io::ErrorKind::OutOfMemory.into();
            return Err(Error::System { doing: "mapping the receive ring", source });
        };
        let seen = RingStatistics::default();
        let ring = RxRing { map, map_bytes, layout, block: 0, slot: 0, seen, socket };
        // Bound last, so that no frame goes to the socket's ordinary queue.
        ring.socket.bind(interface)?;
        if options.promiscuous {
            ring.socket.join_promiscuous(interface)?;
        }
        Ok(ring)
    }

    /// The ring's socket: to poll it, or to send from the same interface.
    #[must_use]
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Bytes of memory that the ring holds.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.map_bytes
    }

    fn current(&self) -> NonNull<u8> {
        let offset = self.block as usize * self.layout.block_bytes as usize
            + self.slot as usize * self.layout.slot_bytes as usize;
        debug_assert!(offset + self.layout.slot_bytes as usize <= self.map_bytes);
        // SAFETY: block and slot are kept below their counts, so the slot lies in the mapping.
        unsafe { self.map.add(offset) }
    }

    /// `tp_status` is the slot's first field; the kernel and we take turns by it.
    fn status(slot: NonNull<u8>) -> *mut AtomicU32 {
        slot.as_ptr().cast()
    }

    /// Whether a frame waits. One load from memory, no system call.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        // SAFETY: the slot lies in the mapping, is aligned to 64 bytes, and its status is only
        // ever accessed atomically.
        let status = unsafe { (*Self::status(self.current())).load(Ordering::Acquire) };
        status & libc::TP_STATUS_USER != 0
    }

    /// The oldest frame that waits; its place in the ring is given back when it is dropped.
    /// No system call.
    #[inline]
    pub fn receive(&mut self) -> Option<RxFrame<'_>> {
        if !self.is_ready() { None } else { Some(RxFrame { slot: self.current(), ring: self }) }
    }

    /// When the frame arrived that [`RxRing::receive`] would give: CLOCK_REALTIME. No system call.
    #[inline]
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        if !self.is_ready() {
            return None;
        }
        // SAFETY: the slot is ours until a frame of it is dropped, which this borrow keeps from happening; it begins
        // with this header, which the kernel wrote before it set the status that was acquired.
        let header = unsafe { &*self.current().as_ptr().cast::<libc::tpacket2_hdr>() };
        Some(arrival(header))
    }

    fn advance(&mut self) {
        self.slot += 1;
        if self.slot == self.layout.slots_per_block {
            self.slot = 0;
            self.block += 1;
            if self.block == self.layout.blocks {
                self.block = 0;
            }
        }
    }

    /// Frames received and lost since the ring was opened. One system call.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn statistics(&mut self) -> Result<RingStatistics, Error> {
        let fd = self.socket.as_fd();
        // The kernel's counters start again at every reading; tp_packets includes tp_drops.
        let new: libc::tpacket_stats = get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .map_err(|source| Error::System { doing: "reading a ring's counters", source })?;
        self.seen.frames += u64::from(new.tp_packets);
        self.seen.drops += u64::from(new.tp_drops);
        Ok(self.seen)
    }
}

impl AsFd for RxRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length; no frame of it is borrowed, as
        // frames borrow the ring. An error leaves it mapped until the process ends.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

fn arrival(header: &libc::tpacket2_hdr) -> Time {
    Time::from_nanos(u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec))
}

/// A received frame, in place in the ring.
#[derive(Debug)]
pub struct RxFrame<'r> {
    slot: NonNull<u8>,
    ring: &'r mut RxRing,
}

impl RxFrame<'_> {
    fn header(&self) -> &libc::tpacket2_hdr {
        // SAFETY: the slot is ours until its status is handed back on drop; it begins with this
        // header, which the kernel wrote before it set the status that we acquired.
        unsafe { &*self.slot.as_ptr().cast::<libc::tpacket2_hdr>() }
    }

    /// `len` bytes of the slot from `from`, or fewer if the slot ends before.
    fn range(&self, from: usize, len: usize) -> &[u8] {
        let slot_bytes = self.ring.layout.slot_bytes as usize;
        let from = from.min(slot_bytes);
        let len = len.min(slot_bytes - from);
        // SAFETY: clamped to the slot, which is ours until drop and not written meanwhile.
        unsafe { slice::from_raw_parts(self.slot.as_ptr().add(from), len) }
    }

    /// The frame, or its first part if it is longer than the ring's slots
    /// (see [`RxFrame::original_len`]). A VLAN tag that the kernel took out is not in it
    /// (see [`RxFrame::vlan`]).
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let header = self.header();
        self.range(usize::from(header.tp_mac), header.tp_snaplen as usize)
    }

    /// The `virtio_net_hdr` and the frame behind it, for sockets opened with
    /// [`SocketOptions::vnet_header`]; else the frame alone.
    #[must_use]
    pub fn bytes_with_vnet_header(&self) -> &[u8] {
        if !self.ring.socket.has_vnet_header() {
            return self.bytes();
        }
        let header = self.header();
        let from = usize::from(header.tp_mac).saturating_sub(vnet::HEADER_LEN);
        self.range(from, header.tp_snaplen as usize + vnet::HEADER_LEN)
    }

    /// Length of the frame when it arrived.
    #[inline]
    #[must_use]
    pub fn original_len(&self) -> usize {
        self.header().tp_len as usize
    }

    /// When the kernel received it: CLOCK_REALTIME.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> Time {
        arrival(self.header())
    }

    /// Whether the sender's kernel has left the transport checksum to the device. Such a frame
    /// must not go on as it is: turn the sender's tx offload off ([`crate::offload::disable`]) or
    /// use [`SocketOptions::vnet_header`].
    #[inline]
    #[must_use]
    pub fn checksum_unfinished(&self) -> bool {
        // The kernel's other bits stay while the slot is ours.
        self.header().tp_status & libc::TP_STATUS_CSUMNOTREADY != 0
    }

    /// Whether this host sent the frame, if the socket receives such frames at all.
    #[must_use]
    pub fn is_outgoing(&self) -> bool {
        // `sockaddr_ll` follows the header, aligned to 16 bytes; sll_pkttype is its byte 10.
        const KIND: usize = mem::size_of::<libc::tpacket2_hdr>().next_multiple_of(16)
            + mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
        self.range(KIND, 1).first() == Some(&libc::PACKET_OUTGOING)
    }

    /// The outer VLAN tag (EtherType, tag control information) that the kernel has taken out of
    /// the frame: it belongs behind the source address (IEEE 802.1Q §9).
    #[inline]
    #[must_use]
    pub fn vlan(&self) -> Option<(u16, u16)> {
        let header = self.header();
        if header.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
            return None;
        }
        let known = header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        Some((if known { header.tp_vlan_tpid } else { 0x8100 }, header.tp_vlan_tci))
    }
}

impl Drop for RxFrame<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `is_ready`; no reference into the slot outlives `self`.
        let status = unsafe { &*RxRing::status(self.slot) };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fit_their_blocks_and_hold_what_was_asked_for() {
        for (frames, frame_bytes) in [(1, 60), (1024, 1522), (4096, 1952), (64, 65_550), (7, 9018)]
        {
            let layout = Layout::new(RingOptions { frames, frame_bytes }).unwrap();
            assert!(layout.slot_bytes >= frame_bytes + SLOT_OVERHEAD);
            assert_eq!(layout.slot_bytes % 64, 0);
            assert!(layout.slots_per_block * layout.slot_bytes <= layout.block_bytes);
            assert!(layout.slots_per_block * layout.blocks >= frames);
            assert_eq!(layout.block_bytes % 4096, 0);
        }
    }

    #[test]
    fn impossible_rings_are_refused() {
        for (frames, frame_bytes) in [(0, 1522), (16, 10), (16, 1 << 20), (1 << 24, 1522)] {
            let error = Layout::new(RingOptions { frames, frame_bytes }).unwrap_err();
            assert!(matches!(error, Error::RingSize { .. }), "{error}");
        }
    }
}
