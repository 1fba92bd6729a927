//! Receive rings for observers: frames that the kernel packs into blocks of memory shared with us
//! (TPACKET_V3).
//!
//! A block is handed over when it is full or has waited for [`BlockRingOptions::retire`]: far fewer
//! wake-ups than frame by frame, and no room lost to short frames. For a link, which must not wait,
//! there is [`crate::RxRing`].

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use units::Time;

use crate::sys::{Plain, get_option, set_option};
use crate::{Error, PacketSocket, RingStatistics, SocketOptions};

// SAFETY: a repr(C) struct of seven integers of one size.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: a repr(C) struct of three integers of one size.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// The kernel asks for a multiple of 16 above its headers; with V3 it means nothing more.
const NOMINAL_FRAME: u32 = 2048;
const MAX_RING_BYTES: u64 = 1 << 30;
/// BPF_MAXINSNS (linux/bpf_common.h): the longest filter that the kernel takes.
const MAX_INSTRUCTIONS: usize = 4096;
/// ARPHRD_LOOPBACK (linux/if_arp.h).
const LOOPBACK: u16 = 772;
/// Where `sockaddr_ll` follows a frame's header (TPACKET_ALIGN).
const ADDRESS: usize = mem::size_of::<libc::tpacket3_hdr>().next_multiple_of(16);

/// How large a ring is and how long it keeps frames back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRingOptions {
    /// Bytes of a block: a power of two from 64 KiB up. No frame longer than it is kept whole.
    pub block_bytes: u32,
    /// Blocks: two at least.
    pub blocks: u32,
    /// The longest that a block with frames waits to be full, in whole milliseconds.
    pub retire: Duration,
}

impl Default for BlockRingOptions {
    /// 32 MiB, 50 ms.
    fn default() -> Self {
        BlockRingOptions { block_bytes: 1 << 20, blocks: 32, retire: Duration::from_millis(50) }
    }
}

impl BlockRingOptions {
    fn request(self) -> Result<libc::tpacket_req3, Error> {
        let error = |problem| {
            let (frames, frame_bytes) = (self.blocks, self.block_bytes);
            Err(Error::RingSize { frames, frame_bytes, problem })
        };
        if !self.block_bytes.is_power_of_two() || self.block_bytes < 1 << 16 {
            return error("a block has a power of two of bytes, 65536 at least");
        }
        if self.blocks < 2 {
            return error("it needs two blocks at least");
        }
        if u64::from(self.blocks) * u64::from(self.block_bytes) > MAX_RING_BYTES {
            return error("it would take more than 1 GiB");
        }
        Ok(libc::tpacket_req3 {
            tp_block_size: self.block_bytes,
            tp_block_nr: self.blocks,
            tp_frame_size: NOMINAL_FRAME,
            tp_frame_nr: self.block_bytes / NOMINAL_FRAME * self.blocks,
            // Zero would leave it to the kernel.
            tp_retire_blk_tov: u32::try_from(self.retire.as_millis()).unwrap_or(u32::MAX).max(1),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        })
    }
}

/// An instruction of a socket filter: classic BPF, as the kernel's `sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInstruction {
    /// What it does.
    pub code: u16,
    /// Instructions passed over if a condition holds.
    pub if_true: u8,
    /// Instructions passed over if it does not.
    pub if_false: u8,
    /// Its operand: `k` of `sock_filter`.
    pub operand: u32,
}

/// BPF_RET | BPF_K (linux/bpf_common.h): keeps 0 bytes of each frame, so that none is received.
const KEEPS_NOTHING: FilterInstruction =
    FilterInstruction { code: 6, if_true: 0, if_false: 0, operand: 0 };

/// A receive ring of blocks on one interface. Frames carry the kernel's time of arrival.
///
/// Dropping it closes the socket and gives the memory back.
#[derive(Debug)]
pub struct BlockRing {
    map: NonNull<u8>,
    map_bytes: usize,
    block_bytes: usize,
    blocks: usize,
    /// The block whose turn it is.
    block: usize,
    /// Whether it is ours.
    held: bool,
    /// Frames in it that were not handed out, and where the next is.
    left: u32,
    offset: usize,
    /// Frames in the blocks that the kernel has handed over.
    handed_over: u64,
    seen: RingStatistics,
    hardware: u16,
    socket: PacketSocket,
}

// SAFETY: the mapping belongs to this value alone and lives until it is dropped; nothing in it is
// bound to the thread that made it.
unsafe impl Send for BlockRing {}

impl BlockRing {
    /// Opens a ring on the interface with index `interface` of the calling thread's namespace, for
    /// the frames that the program that `filter` makes for the interface's kind (its ARPHRD
    /// number) lets through. Its result is how many bytes are kept.
    ///
    /// # Errors
    /// As [`PacketSocket::open`]; [`Error::RingSize`]; [`Error::System`] if there is not enough
    /// memory or the filter is not valid; what `filter` returns.
    pub fn open<E: From<Error>>(
        interface: u32,
        options: &SocketOptions,
        ring: BlockRingOptions,
        filter: impl FnOnce(u16) -> Result<Vec<FilterInstruction>, E>,
    ) -> Result<Self, E> {
        let request = ring.request()?;
        let socket = PacketSocket::new(options)?;
        let fd = socket.as_fd();
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_VERSION, version).map_err(|source| {
            Error::Unsupported { what: "TPACKET_V3", remedy: "use Linux 3.2 or newer", source }
        })?;
        // Nothing may pass before the filter is the right one, which hangs on the interface.
        attach(&socket, &[KEEPS_NOTHING])?;
        set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(|source| Error::System { doing: "allocating the receive ring", source })?;
        let (block_bytes, blocks) = (ring.block_bytes as usize, ring.blocks as usize);
        let map_bytes = block_bytes * blocks;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let map = unsafe {
            mmap(ptr::null_mut(), map_bytes, ProtFlags::READ | ProtFlags::WRITE, flags, fd, 0)
        }
        .map_err(|errno| Error::System {
            doing: "mapping the receive ring",
            source: errno.into(),
        })?;
        let Some(map) = NonNull::new(map.cast::<u8>()) else {
            let source = io::ErrorKind::OutOfMemory.into();
            return Err(Error::System { doing: "mapping the receive ring", source }.into());
        };
        let mut ring = BlockRing {
            map,
            map_bytes,
            block_bytes,
            blocks,
            block: 0,
            held: false,
            left: 0,
            offset: 0,
            handed_over: 0,
            seen: RingStatistics::default(),
            hardware: 0,
            socket,
        };
        ring.socket.bind(interface)?;
        // Before the filter lets anything pass: each frame comes to one of the group.
        ring.socket.share(options.fanout)?;
        ring.hardware = hardware_kind(&ring.socket)?;
        if ring.hardware == LOOPBACK {
            // All that it sends comes in again.
            ring.socket.set(libc::PACKET_IGNORE_OUTGOING, true, "PACKET_IGNORE_OUTGOING")?;
        }
        attach(&ring.socket, &filter(ring.hardware)?)?;
        if options.promiscuous {
            ring.socket.join_promiscuous(interface)?;
        }
        Ok(ring)
    }

    /// The kind of the interface: its ARPHRD number (1 is Ethernet).
    #[must_use]
    pub fn hardware_kind(&self) -> u16 {
        self.hardware
    }

    /// The ring's socket.
    #[must_use]
    pub fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// The block whose turn it is.
    fn current(&self) -> NonNull<libc::tpacket_block_desc> {
        debug_assert!(self.block < self.blocks);
        // SAFETY: `block` is kept below `blocks`, so the block lies in the mapping.
        unsafe { self.map.add(self.block * self.block_bytes) }.cast()
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the block lies in the mapping, page-aligned; its status is only ever accessed
        // atomically, by the kernel and by us.
        unsafe {
            let header = &raw mut (*self.current().as_ptr()).hdr.bh1;
            AtomicU32::from_ptr(&raw mut (*header).block_status)
        }
    }

    /// Gets hold of the next block with frames, if there is one.
    fn take_block(&mut self) -> bool {
        loop {
            if self.held {
                self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
                self.held = false;
                self.block = (self.block + 1) % self.blocks;
            }
            if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return false;
            }
            self.held = true;
            // SAFETY: the block is ours until its status is handed back; the kernel wrote its
            // header, of which `bh1` is the only kind, before it set the status that we acquired.
            let header = unsafe { &(*self.current().as_ptr()).hdr.bh1 };
            (self.left, self.offset) = (header.num_pkts, header.offset_to_first_pkt as usize);
            self.handed_over += u64::from(header.num_pkts);
            // A block may be retired empty.
            if self.left > 0 {
                return true;
            }
        }
    }

    /// The header of the next frame; `None` if no frame waits. No system call.
    #[inline]
    fn head(&mut self) -> Option<&libc::tpacket3_hdr> {
        if self.left == 0 && !self.take_block() {
            return None;
        }
        let end = self.offset.checked_add(ADDRESS + mem::size_of::<libc::sockaddr_ll>())?;
        if end > self.block_bytes {
            self.left = 0;
            return None;
        }
        // SAFETY: header and address lie in the block, which is ours; the kernel aligns headers to
        // 16 bytes and wrote this one before it handed the block over.
        Some(unsafe { &*self.current().cast::<u8>().add(self.offset).cast().as_ptr() })
    }

    /// When the next frame was received, if one waits. No system call.
    #[inline]
    pub fn next_time(&mut self) -> Option<Time> {
        self.head().map(time)
    }

    /// The next frame, if one waits. Its block is given back by the first call after its last
    /// frame. No system call.
    #[inline]
    pub fn receive(&mut self) -> Option<BlockFrame<'_>> {
        self.receive_before(Time::MAX).next()
    }

    /// The next frames that were received before `until` and share a block. Those that are not taken
    /// are handed out later. No system call.
    #[inline]
    pub fn receive_before(&mut self, until: Time) -> BlockFrames<'_> {
        if self.head().is_none() {
            return BlockFrames {
                block: &[],
                left: &mut self.left,
                offset: &mut self.offset,
                until,
            };
        }
        // SAFETY: the block lies in the mapping and is ours until the next `&mut` call, which the
        // borrow of `self` keeps off.
        let block = unsafe {
            slice::from_raw_parts(self.current().cast::<u8>().as_ptr(), self.block_bytes)
        };
        BlockFrames { block, left: &mut self.left, offset: &mut self.offset, until }
    }

    /// Lets no further frame in. Frames that passed before are still received: the kernel hands their
    /// block over within [`BlockRingOptions::retire`]. One system call.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn close(&mut self) -> Result<(), Error> {
        attach(&self.socket, &[KEEPS_NOTHING])
    }

    /// Frames that the kernel has kept and that [`BlockRing::receive`] has not returned. One system call.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn waiting(&mut self) -> Result<u64, Error> {
        let RingStatistics { frames, drops } = self.statistics()?;
        let received = self.handed_over.saturating_sub(u64::from(self.left));
        Ok(frames.saturating_sub(drops).saturating_sub(received))
    }

    /// Frames that passed the filter, and those of them that were lost, since the ring was opened.
    /// One system call.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn statistics(&mut self) -> Result<RingStatistics, Error> {
        let fd = self.socket.as_fd();
        // The kernel's counters start again at every reading; tp_packets includes tp_drops.
        let new: libc::tpacket_stats_v3 = get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .map_err(|source| Error::System { doing: "reading a ring's counters", source })?;
        self.seen.frames += u64::from(new.tp_packets);
        self.seen.drops += u64::from(new.tp_drops);
        Ok(self.seen)
    }
}

impl AsFd for BlockRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for BlockRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `open` with this length; no frame of it is borrowed, as
        // frames borrow the ring. An error leaves it mapped until the process ends.
        let _ = unsafe { munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

/// Frames of one block, in place in the ring.
#[derive(Debug)]
pub struct BlockFrames<'r> {
    block: &'r [u8],
    left: &'r mut u32,
    offset: &'r mut usize,
    until: Time,
}

impl<'r> Iterator for BlockFrames<'r> {
    type Item = BlockFrame<'r>;

    #[inline]
    fn next(&mut self) -> Option<BlockFrame<'r>> {
        const HEADER: usize = ADDRESS + mem::size_of::<libc::sockaddr_ll>();
        let (block, at) = (self.block, *self.offset);
        if *self.left == 0 || block.is_empty() {
            return None;
        }
        let Some(head) = at.checked_add(HEADER).and_then(|end| block.get(at..end)) else {
            *self.left = 0;
            return None;
        };
        // SAFETY: `head` is longer than the header, of which every pattern of bits is a value.
        let header = unsafe { head.as_ptr().cast::<libc::tpacket3_hdr>().read_unaligned() };
        if time(&header) >= self.until {
            return None;
        }
        *self.left -= 1;
        *self.offset = at.saturating_add(header.tp_next_offset as usize);
        let from = at.saturating_add(usize::from(header.tp_mac)).min(block.len());
        let len = (header.tp_snaplen as usize).min(block.len() - from);
        let kind = at + ADDRESS + mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
        Some(BlockFrame {
            at: time(&header),
            bytes: block.get(from..from + len).unwrap_or_default(),
            original_len: header.tp_len as usize,
            outgoing: block.get(kind) == Some(&libc::PACKET_OUTGOING),
        })
    }
}

/// A received frame, in place in the ring.
#[derive(Debug, Clone, Copy)]
pub struct BlockFrame<'r> {
    /// When the kernel received it: CLOCK_REALTIME.
    pub at: Time,
    /// The frame, as far as the filter keeps it. A VLAN tag that the kernel or the device took out
    /// is not in it.
    pub bytes: &'r [u8],
    /// Its length when it passed.
    pub original_len: usize,
    /// Whether this host sent it.
    pub outgoing: bool,
}

fn time(header: &libc::tpacket3_hdr) -> Time {
    Time::from_nanos(u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec))
}

/// Sets the socket's filter; it replaces the one before at once.
fn attach(socket: &PacketSocket, program: &[FilterInstruction]) -> Result<(), Error> {
    let doing = "setting the socket's filter";
    if program.is_empty() || program.len() > MAX_INSTRUCTIONS {
        return Err(Error::System { doing, source: io::ErrorKind::InvalidInput.into() });
    }
    let mut instructions: Vec<libc::sock_filter> = program
        .iter()
        .map(|one| libc::sock_filter {
            code: one.code,
            jt: one.if_true,
            jf: one.if_false,
            k: one.operand,
        })
        .collect();
    let program = libc::sock_fprog {
        len: instructions.len() as libc::c_ushort,
        filter: instructions.as_mut_ptr(),
    };
    // SAFETY: the pointers and lengths describe `program` and its instructions, which live through
    // the call; the kernel copies and checks them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            mem::size_of_val(&program) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(Error::last(doing)) }
}

/// The ARPHRD number of the interface that the socket is bound to.
fn hardware_kind(socket: &PacketSocket) -> Result<u16, Error> {
    // SAFETY: `sockaddr_ll` is a C struct of integers; all zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    let mut len = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `address`, which is that large.
    let result = unsafe {
        libc::getsockname(socket.as_fd().as_raw_fd(), (&raw mut address).cast(), &raw mut len)
    };
    if result == 0 {
        Ok(address.sll_hatype)
    } else {
        Err(Error::last("asking what an interface is"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_rings_are_refused() {
        let ring = |block_bytes, blocks| BlockRingOptions {
            block_bytes,
            blocks,
            retire: Duration::from_millis(50),
        };
        for ring in [ring(1 << 20, 1), ring(1 << 12, 8), ring(100_000, 8), ring(1 << 20, 4096)] {
            assert!(matches!(ring.request(), Err(Error::RingSize { .. })), "{ring:?}");
        }
    }

    #[test]
    fn the_default_ring_waits_50_ms_and_has_32_mib() {
        let request = BlockRingOptions::default().request().unwrap();
        assert_eq!(request.tp_retire_blk_tov, 50);
        assert_eq!(u64::from(request.tp_block_size) * u64::from(request.tp_block_nr), 32 << 20);
        assert_eq!(
            request.tp_block_size / request.tp_frame_size * request.tp_block_nr,
            request.tp_frame_nr
        );
    }
}
