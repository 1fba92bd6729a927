//! From frames to the packets of connections: their headers, and the fragments of which datagrams are made.

use units::Time;

use super::{Tracker, add};
use crate::decode::{Content, Fragment, LinkType, Passing, decode, decode_frame, plain_tcp};
use crate::record::Traffic;

/// Frames that [`Tracker::handle_packets`] reads before it takes the first of them: enough to wait
/// for memory together, few enough to stay in the nearest cache.
pub(super) const GROUP: usize = 16;

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When it was captured.
    pub at: Time,
    /// What it begins with.
    pub link_type: LinkType,
    /// What was kept of it.
    pub bytes: &'a [u8],
    /// Bytes that it had on the link.
    pub original_len: usize,
}

/// What a frame is.
pub(super) struct Read<'a> {
    pub(super) content: Option<Content<'a>>,
    /// Of a transport packet's key.
    pub(super) hash: u32,
    /// Headers that may still be passed.
    pub(super) passing: Passing,
}

impl Tracker {
    /// Takes a frame captured at `at`: `bytes` of it were kept, `original_len` it had on the link.
    /// Frames that are no TCP or QUIC are counted and passed over.
    pub fn handle_packet(
        &mut self,
        at: Time,
        link_type: LinkType,
        bytes: &[u8],
        original_len: usize,
    ) {
        let packet = Packet { at, link_type, bytes, original_len };
        let read = self.read_frame(&packet, None);
        self.handle_frame(&packet, &read);
    }

    /// Takes frames in the capture's order, as [`Tracker::handle_packet`] one by one would. It is
    /// faster: what several of them need from memory is asked for at once.
    pub fn handle_packets(&mut self, packets: &[Packet<'_>]) {
        for group in packets.chunks(GROUP) {
            let mut hashes = [None; GROUP];
            for (hash, packet) in hashes.iter_mut().zip(group) {
                *hash = self.hash_of(packet);
            }
            let guessed = hashes.map(|hash| hash.and_then(|hash| self.table.guess(hash)));
            for place in guessed.into_iter().flatten() {
                std::hint::black_box(self.table.warm(place));
            }
            // Read again: to keep what was read of all of them would cost more.
            for (packet, hash) in group.iter().zip(hashes) {
                let read = self.read_frame(packet, hash);
                self.handle_frame(packet, &read);
            }
        }
    }

    /// The hash of a transport packet's key.
    #[inline]
    pub(super) fn hash_of(&self, packet: &Packet<'_>) -> Option<u32> {
        if let Some(ends) = plain_tcp(packet.link_type, packet.bytes) {
            return Some(self.table.hash_plain(ends));
        }
        let read = self.read_frame(packet, None);
        matches!(read.content, Some(Content::Transport(_))).then_some(read.hash)
    }

    /// Reads a frame whose key may have been hashed before.
    pub(super) fn read_frame<'a>(&self, packet: &Packet<'a>, hash: Option<u32>) -> Read<'a> {
        let mut passing = Passing::default();
        let content = decode_frame(packet.link_type, packet.bytes, &mut passing);
        let hash = match &content {
            Some(Content::Transport(packet)) => {
                let hash = hash.unwrap_or_else(|| self.table.hash(&packet.key));
                debug_assert_eq!(hash, self.table.hash(&packet.key));
                hash
            }
            _ => 0,
        };
        Read { content, hash, passing }
    }

    pub(super) fn handle_frame(&mut self, packet: &Packet<'_>, read: &Read<'_>) {
        self.counters.frames += 1;
        self.now = self.now.max(packet.at);
        let frames = Traffic { frames: 1, bytes: packet.original_len as u64 };
        self.handle_content(packet.at, read, frames);
        if self.outer_clock.is_none() {
            self.expire();
        }
    }

    /// Takes what was read of `frames`, and what is inside of that.
    pub(super) fn handle_content(&mut self, at: Time, read: &Read<'_>, frames: Traffic) {
        match &read.content {
            Some(Content::Transport(packet)) => {
                self.handle_transport(at, packet, read.hash, frames);
            }
            None => {
                add(&mut self.counters.other, frames);
                if let Some(wrapping) = read.passing.wrapping {
                    self.counters.wrapped.add(wrapping, frames.frames);
                }
            }
            Some(Content::Fragment(fragment)) => {
                add(&mut self.counters.fragments, frames);
                self.handle_fragment(at, fragment, read.passing, frames);
                self.count_fragments();
            }
        }
    }

    /// Takes a fragment, and if it is the last one missing the datagram, in which there may be no
    /// more headers than `passing` allows: so a datagram within a datagram comes to an end.
    fn handle_fragment(
        &mut self,
        at: Time,
        part: &Fragment<'_>,
        mut passing: Passing,
        frames: Traffic,
    ) {
        let Some(whole) = self.fragments.insert(self.now, part, frames) else { return };
        self.counters.reassembled = self.counters.reassembled.saturating_add(1);
        let content = whole.layer().and_then(|layer| decode(layer, &mut passing));
        let hash = match &content {
            Some(Content::Transport(packet)) => self.table.hash(&packet.key),
            _ => 0,
        };
        self.handle_content(at, &Read { content, hash, passing }, whole.frames);
    }

    pub(super) fn count_fragments(&mut self) {
        self.counters.fragments_waiting = self.fragments.waiting();
        self.counters.fragments_dropped = *self.fragments.dropped();
    }
}
