//! Frames that are written, laid one behind the other, and sent in batches.

use std::io;
use std::os::fd::BorrowedFd;

use packet::SendBatch;
use packet::vnet::{self, Segmentation};
use tcp::Transmit;
use wire::ethernet::{self, Address, EtherType};

use crate::device::MAX_PACKET;

/// Frames of a batch.
const BATCH: usize = 64;
/// Super-segments of full length of which there is room.
const SUPER_SEGMENTS: usize = 8;
/// Frames begin at multiples of this, a cache line.
const ALIGN: usize = 64;
/// Where TCP's checksum stands in its header (RFC 9293 §3.1).
const CHECKSUM_OFFSET: u16 = 16;

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// All are gone.
    All,
    /// The kernel's queue is full: wait until the device is writable.
    Blocked,
}

/// Frames to be sent, one after the other in one piece of memory.
#[derive(Debug)]
pub(crate) struct Outbox {
    memory: Box<[u8]>,
    /// Where each frame stands and how long it is.
    frames: Vec<(usize, usize)>,
    /// The first that is not sent yet.
    next: usize,
    /// Where the next frame is written.
    free: usize,
    vnet: usize,
    /// Our Ethernet address; none on TUN.
    link: Option<Address>,
    /// Bytes before the IP packet.
    head: usize,
    longest: usize,
    batch: SendBatch,
    errors: u64,
}

impl Outbox {
    pub(crate) fn new(vnet_header: bool, link: Option<Address>, mtu: u16) -> Self {
        let vnet = if vnet_header { vnet::HEADER_LEN } else { 0 };
        let head = vnet + link.map_or(0, |_| ethernet::HEADER_LEN);
        let packet = if vnet_header { MAX_PACKET } else { usize::from(mtu) };
        let longest = (head + packet).max(vnet + crate::discovery::MAX_FRAME);
        let slots = if vnet_header { SUPER_SEGMENTS } else { BATCH };
        Outbox {
            memory: vec![0; slots * longest.next_multiple_of(ALIGN)].into_boxed_slice(),
            frames: Vec::with_capacity(BATCH),
            next: 0,
            free: 0,
            vnet,
            link,
            head,
            longest,
            batch: SendBatch::new(BATCH),
            errors: 0,
        }
    }

    /// Whether there is room for one more frame.
    pub(crate) fn has_room(&self) -> bool {
        self.frames.len() < BATCH && self.free + self.longest <= self.memory.len()
    }

    /// Whether frames wait to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.frames.len()
    }

    /// Frames that the device refused.
    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    /// Where the next IP packet is to be written; empty if there is no room.
    pub(crate) fn packet_space(&mut self) -> &mut [u8] {
        let (from, to) = (self.free + self.head, self.free + self.longest);
        self.memory.get_mut(from..to).unwrap_or_default()
    }

    /// Where the next frame of [`crate::discovery`] is to be written; empty if there is no room.
    pub(crate) fn frame_space(&mut self) -> &mut [u8] {
        let (from, to) = (self.free + self.vnet, self.free + self.longest);
        self.memory.get_mut(from..to).unwrap_or_default()
    }

    /// Adds the frame that was written to [`Outbox::frame_space`].
    pub(crate) fn push_frame(&mut self, len: usize) {
        if let Some(header) = self.memory.get_mut(self.free..self.free + self.vnet) {
            header.fill(0);
        }
        self.push(self.vnet + len);
    }

    /// Finishes the frame whose packet was written to [`Outbox::packet_space`] and returns it; it
    /// is not added yet. The destination's Ethernet address is still to be set.
    pub(crate) fn finish_packet(&mut self, transmit: &Transmit) -> &mut [u8] {
        let v4 = transmit.destination.is_ipv4();
        if self.vnet > 0 {
            let header = self.offload(transmit, v4);
            if let Some(place) = self.memory.get_mut(self.free..self.free + self.vnet) {
                place.copy_from_slice(&header.to_bytes());
            }
        }
        let total = self.head + transmit.len;
        let (from, to) = (self.free + self.vnet, self.free + total);
        if let Some(source) = self.link
            && let Some(frame) = self.memory.get_mut(from..to)
        {
            let ether_type = if v4 { EtherType::IPV4 } else { EtherType::IPV6 };
            let header = ethernet::Repr { destination: Address::default(), source, ether_type };
            // There is room: `from` is the head's length before the packet.
            let _ = header.emit(frame);
        }
        self.memory.get_mut(self.free..to).unwrap_or_default()
    }

    /// Adds the finished packet, to the neighbour `link`.
    pub(crate) fn push_packet(&mut self, transmit: &Transmit, link: Option<Address>) {
        self.finish_packet(transmit);
        if let Some(link) = link {
            self.address(link);
        }
        self.push(self.head + transmit.len);
    }

    /// Adds a whole frame that had been kept, to the neighbour `link`.
    pub(crate) fn push_kept(&mut self, frame: &[u8], link: Address) {
        let to = self.free + frame.len();
        if let Some(place) = self.memory.get_mut(self.free..to) {
            place.copy_from_slice(frame);
            self.address(link);
            self.push(frame.len());
        }
    }

    fn address(&mut self, link: Address) {
        let from = self.free + self.vnet;
        if let Some(place) = self.memory.get_mut(from..from + 6) {
            place.copy_from_slice(&link.0);
        }
    }

    fn push(&mut self, len: usize) {
        self.frames.push((self.free, len));
        self.free = (self.free + len).next_multiple_of(ALIGN);
    }

    /// What the device is to do: the checksum, and segments (virtio 1.2 §5.1.6.2).
    fn offload(&self, transmit: &Transmit, v4: bool) -> vnet::Header {
        let before_ip = self.head - self.vnet;
        let short = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
        // TCP never sends IP options or extension headers.
        let ip_len = if v4 { wire::ipv4::HEADER_LEN } else { wire::ipv6::HEADER_LEN };
        let checksum =
            transmit.checksum_partial.then(|| (short(before_ip + ip_len), CHECKSUM_OFFSET));
        let Some(size) = transmit.segment_size else {
            return vnet::Header { checksum, ..vnet::Header::default() };
        };
        vnet::Header {
            checksum,
            checksum_valid: false,
            segmentation: if v4 { Segmentation::TcpV4 } else { Segmentation::TcpV6 },
            header_len: short(before_ip + transmit.header_len),
            segment_size: size.get(),
        }
    }

    /// Sends what is there. A frame that the device refuses for good is lost, as on any link.
    ///
    /// # Errors
    /// The device is gone or down; all frames are lost.
    pub(crate) fn flush(&mut self, fd: BorrowedFd<'_>) -> io::Result<Flushed> {
        while self.next < self.frames.len() {
            match self.send(fd) {
                Ok(count) => self.next += count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => return Ok(Flushed::Blocked),
                    // The queue dropped it, or it is longer than the MTU has become.
                    Some(libc::ENOBUFS | libc::EMSGSIZE | libc::ENOMEM) => {
                        self.errors += 1;
                        self.next += 1;
                    }
                    _ => {
                        self.errors += (self.frames.len() - self.next) as u64;
                        self.clear();
                        return Err(error);
                    }
                },
            }
        }
        self.clear();
        Ok(Flushed::All)
    }

    fn clear(&mut self) {
        self.frames.clear();
        (self.next, self.free) = (0, 0);
    }

    fn send(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        let rest = self.frames.get(self.next..).unwrap_or_default();
        let memory = &self.memory;
        let mut frames =
            rest.iter().map(|(from, len)| memory.get(*from..from + len).unwrap_or_default());
        if self.link.is_some() {
            return self.batch.send(fd, frames);
        }
        // A TUN device takes one packet by one system call.
        match frames.next() {
            Some(frame) => packet::send(fd, frame).map(|()| 1),
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::num::NonZeroU16;

    const LINK: Address = Address([2, 0x77, 0, 0, 1, 1]);
    const PEER: Address = Address([2, 0x77, 0, 0, 1, 2]);

    fn transmit(len: usize, segment_size: Option<u16>) -> Transmit {
        Transmit {
            len,
            segment_size: segment_size.and_then(NonZeroU16::new),
            checksum_partial: segment_size.is_some(),
            header_len: 52,
            source: Ipv4Addr::new(10, 77, 1, 101).into(),
            destination: Ipv4Addr::new(10, 77, 1, 2).into(),
        }
    }

    #[test]
    fn frames_get_their_headers() {
        let mut outbox = Outbox::new(true, Some(LINK), 1500);
        outbox.packet_space()[..4].copy_from_slice(b"data");
        outbox.push_packet(&transmit(2948, Some(1448)), Some(PEER));
        let (from, len) = outbox.frames[0];
        assert_eq!((from, len), (0, 10 + 14 + 2948));
        let header = vnet::Header::parse(outbox.memory[..10].try_into().unwrap());
        assert_eq!(header.checksum, Some((34, 16)));
        assert_eq!(header.segmentation, Segmentation::TcpV4);
        assert_eq!((header.header_len, header.segment_size), (66, 1448));
        let frame = ethernet::Frame::new_checked(&outbox.memory[10..len]).unwrap();
        assert_eq!((frame.destination(), frame.source()), (PEER, LINK));
        assert_eq!(frame.ether_type(), EtherType::IPV4);
        assert_eq!(&frame.payload()[..4], b"data");
    }

    #[test]
    fn a_kept_frame_goes_out_as_it_was_with_its_address() {
        let mut outbox = Outbox::new(false, Some(LINK), 1500);
        outbox.packet_space()[..4].copy_from_slice(b"data");
        let kept: Vec<u8> = outbox.finish_packet(&transmit(4, None)).to_vec();
        assert!(outbox.is_empty());
        outbox.push_kept(&kept, PEER);
        let frame = ethernet::Frame::new_checked(&outbox.memory[..18]).unwrap();
        assert_eq!((frame.destination(), frame.payload()), (PEER, &b"data"[..]));
    }

    #[test]
    fn there_is_room_for_a_batch_and_no_more() {
        for (vnet, link, len) in
            [(false, Some(LINK), 1500), (false, None, 40), (true, None, MAX_PACKET)]
        {
            let mut outbox = Outbox::new(vnet, link, 1500);
            let mut count = 0;
            while outbox.has_room() {
                assert!(outbox.packet_space().len() >= len);
                outbox.push_packet(&transmit(len, None), link);
                count += 1;
            }
            assert_eq!(count, if len == MAX_PACKET { SUPER_SEGMENTS } else { BATCH });
        }
    }
}
