//! The bytes that came from the peer and were not read yet, in order or beyond a gap.

use crate::send_buffer::{copy_some, make_room};
use std::collections::VecDeque;

/// Most islands (runs of bytes beyond a gap) that one connection keeps. A segment that would make
/// one more is dropped, and its sender repeats it.
const MAX_ISLANDS: usize = 1024;

/// Blocks that fit a segment's options (RFC 2018 §3).
const MAX_BLOCKS: usize = 4;

/// Zeros to fill gaps with until their bytes come.
const ZEROS: [u8; 4096] = [0; 4096];

/// Reassembles the peer's stream. Every byte is copied once, to its place; grows on demand up to
/// its limit and holds no memory when empty.
#[derive(Debug, Clone)]
pub struct ReceiveBuffer {
    /// Offset of the first byte in `bytes`: all before it were read.
    start: u64,
    /// First byte missing.
    next: u64,
    /// From `start` to the highest byte that came; the gaps hold zeros.
    bytes: VecDeque<u8>,
    /// Beyond `next`: ascending, apart from one another.
    islands: Vec<(u64, u64)>,
    /// A point in each of the islands that changed last, newest first (RFC 2018 §4).
    recent: [u64; MAX_BLOCKS],
    duplicate: Option<(u64, u64)>,
    limit: usize,
}

/// What became of a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inserted {
    /// Bytes that were new and within the window.
    pub accepted: usize,
    /// Whether [`ReceiveBuffer::next`] moved.
    pub in_order: bool,
    /// Whether the segment had bytes and all of them were there already.
    pub duplicate: bool,
}

/// Up to four blocks for a SACK option, first to be sent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u64, u64); MAX_BLOCKS],
    count: usize,
}

impl SackBlocks {
    /// The blocks: first byte and the byte behind the last, as stream offsets.
    #[must_use]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        self.blocks.get(..self.count).unwrap_or(&[])
    }

    fn push(&mut self, block: (u64, u64)) {
        if let Some(place) = self.blocks.get_mut(self.count) {
            *place = block;
            self.count += 1;
        }
    }
}

impl ReceiveBuffer {
    /// An empty buffer at offset 0 for at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            start: 0,
            next: 0,
            bytes: VecDeque::new(),
            islands: Vec::new(),
            recent: [0; MAX_BLOCKS],
            duplicate: None,
            limit,
        }
    }

    /// Takes the bytes of a segment whose first byte is at `offset`. What lies beyond the window
    /// is dropped.
    pub fn insert(&mut self, offset: u64, data: &[u8]) -> Inserted {
        if data.is_empty() {
            return Inserted::default();
        }
        let end = offset.saturating_add(data.len() as u64);
        if offset < self.next {
            // RFC 2883 §4: the part that had come before
            self.duplicate = Some((offset, end.min(self.next)));
            if end <= self.next {
                return Inserted { duplicate: true, ..Inserted::default() };
            }
        }
        let from = offset.max(self.next);
        let to = end.min(self.start.saturating_add(self.limit as u64));
        let Some(data) = part(data, offset, from, to) else { return Inserted::default() };
        if self.islands.is_empty() && from == self.next {
            make_room(&mut self.bytes, data.len(), self.limit);
            self.bytes.extend(data);
            self.next = to;
            return Inserted { accepted: data.len(), in_order: true, duplicate: false };
        }
        let Some(accepted) = self.join_islands(from, to) else { return Inserted::default() };
        if accepted > 0 {
            self.place(from, data);
        }
        let in_order = self.reach_first_island();
        Inserted { accepted, in_order, duplicate: accepted == 0 }
    }

    /// The first byte missing: what to acknowledge.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that [`ReceiveBuffer::read`] would give.
    #[must_use]
    pub fn readable(&self) -> usize {
        // At most `limit`.
        usize::try_from(self.next - self.start).unwrap_or(usize::MAX)
    }

    /// Moves bytes in order into `into` and says how many.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.readable().min(into.len());
        let (first, second) = self.bytes.as_slices();
        let into = into.get_mut(..count).unwrap_or(&mut []);
        let copied = copy_some(first, into);
        copy_some(second, into.get_mut(copied..).unwrap_or(&mut []));
        self.start += count as u64;
        if count == self.bytes.len() {
            self.bytes = VecDeque::new();
        } else {
            self.bytes.drain(..count);
        }
        count
    }

    /// Bytes that can be taken from [`ReceiveBuffer::next`] on. Its right edge never moves back.
    #[must_use]
    pub fn window(&self) -> usize {
        self.limit.saturating_sub(self.readable())
    }

    /// Whether bytes came beyond a missing one.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Whether [`ReceiveBuffer::sack_blocks`] has something to say.
    #[must_use]
    pub fn has_sack_blocks(&self) -> bool {
        self.duplicate.is_some() || self.has_gap()
    }

    /// The blocks for the next acknowledgment: a duplicate that came since the last call (told
    /// once, RFC 2883 §4), then the islands, those that changed last first (RFC 2018 §4).
    pub fn sack_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let duplicate = self.duplicate.take();
        if let Some(block) = duplicate {
            blocks.push(block);
            // RFC 2883 §4: the island that holds the duplicate follows it
            if let Some(island) = self.island_at(block.0) {
                blocks.push(island);
            }
        }
        for point in self.recent {
            let Some(island) = self.island_at(point) else { continue };
            let told = blocks.as_slice().iter().skip(usize::from(duplicate.is_some()));
            if !told.clone().any(|block| *block == island) {
                blocks.push(island);
            }
        }
        blocks
    }

    /// Memory held on the heap, in bytes.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.islands.capacity() * size_of::<(u64, u64)>()
    }

    fn island_at(&self, point: u64) -> Option<(u64, u64)> {
        let index = self.islands.partition_point(|island| island.1 <= point);
        self.islands.get(index).copied().filter(|island| island.0 <= point)
    }

    /// Notes that `from..to` is there and says how many of its bytes are new; `None` if it would
    /// be one island too many.
    fn join_islands(&mut self, from: u64, to: u64) -> Option<usize> {
        let first = self.islands.partition_point(|island| island.1 < from);
        let behind = first
            + self.islands.get(first..).unwrap_or(&[]).partition_point(|island| island.0 <= to);
        let touched = self.islands.get(first..behind).unwrap_or(&[]);
        let (mut low, mut high, mut known) = (from, to, 0);
        for island in touched {
            low = low.min(island.0);
            high = high.max(island.1);
            known += island.1.min(to).saturating_sub(island.0.max(from));
        }
        if touched.is_empty() {
            // The lowest missing byte is always taken: it makes room.
            if self.islands.len() >= MAX_ISLANDS && from != self.next {
                return None;
            }
            self.islands.insert(first, (low, high));
        } else {
            self.islands.drain(first + 1..behind);
            if let Some(island) = self.islands.get_mut(first) {
                *island = (low, high);
            }
        }
        let accepted = (to - from).saturating_sub(known);
        if accepted == 0 {
            self.duplicate = Some((from, to));
        }
        self.note_recent(from);
        usize::try_from(accepted).ok()
    }

    fn note_recent(&mut self, point: u64) {
        let island = self.island_at(point);
        let kept = self.recent;
        let kept = kept.iter().copied().filter(|old| self.island_at(*old) != island);
        let mut recent = [point; MAX_BLOCKS];
        for (place, old) in recent.iter_mut().skip(1).zip(kept) {
            *place = old;
        }
        self.recent = recent;
    }

    /// Copies a segment's bytes to their place.
    fn place(&mut self, from: u64, data: &[u8]) {
        let at = usize::try_from(from - self.start).unwrap_or(usize::MAX);
        if at.saturating_add(data.len()) > self.bytes.len() {
            let more = at + data.len() - self.bytes.len();
            make_room(&mut self.bytes, more, self.limit);
        }
        while self.bytes.len() < at {
            let gap = ZEROS.len().min(at - self.bytes.len());
            self.bytes.extend(ZEROS.get(..gap).unwrap_or(&[]));
        }
        let within = data.len().min(self.bytes.len() - at);
        let (over, beyond) = data.split_at(within);
        let (first, second) = self.bytes.as_mut_slices();
        let skip = at.saturating_sub(first.len());
        let copied = copy_some(over, first.get_mut(at..).unwrap_or(&mut []));
        copy_some(over.get(copied..).unwrap_or(&[]), second.get_mut(skip..).unwrap_or(&mut []));
        self.bytes.extend(beyond);
    }

    /// Moves `next` to the end of an island that begins there.
    fn reach_first_island(&mut self) -> bool {
        match self.islands.first() {
            Some(&(low, high)) if low <= self.next => {
                self.next = high;
                self.islands.remove(0);
                if self.islands.is_empty() {
                    self.islands = Vec::new();
                }
                true
            }
            _ => false,
        }
    }
}

/// The bytes `from..to` of a segment at `offset`; `None` if there are none.
fn part(data: &[u8], offset: u64, from: u64, to: u64) -> Option<&[u8]> {
    let low = usize::try_from(from.checked_sub(offset)?).ok()?;
    let high = usize::try_from(to.checked_sub(offset)?).ok()?;
    data.get(low..high).filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests;
