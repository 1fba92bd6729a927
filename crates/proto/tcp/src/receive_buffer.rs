//! The bytes that came from the peer and were not read yet, in order or beyond a gap.

use crate::send_buffer::copy_some;
use std::collections::VecDeque;

/// Most islands (runs of bytes beyond a gap) that a buffer keeps, whatever its window. A segment
/// that would make one more is dropped, and its sender repeats it.
const MAX_ISLANDS: usize = 1024;
/// Islands that a buffer of the smallest window keeps.
const MIN_ISLANDS: usize = 32;
/// Each further island takes so many bytes of window: two short segments, so that every second of
/// them may be lost.
const WINDOW_PER_ISLAND: usize = 1024;
/// Bytes that an island counts for beside its own: its place in the list, which doubles as it
/// grows, and the allocator's header.
pub(crate) const ISLAND_BYTES: usize = 2 * size_of::<Island>() + 16;

/// Blocks that fit a segment's options (RFC 2018 §3).
const MAX_BLOCKS: usize = 4;

/// Reassembles the peer's stream within a window that [grows](ReceiveBuffer::widen). Bytes beyond a
/// gap take their real size, so that one at the far edge holds one byte; an empty buffer holds no
/// memory.
#[derive(Debug, Clone)]
pub struct ReceiveBuffer {
    /// Offset of the first byte in `bytes`: all before it were read.
    start: u64,
    /// First byte missing.
    next: u64,
    /// From `start` to `next`.
    bytes: VecDeque<u8>,
    /// Beyond `next`: ascending, apart from one another.
    islands: Vec<Island>,
    /// Capacity of all islands in bytes.
    island_bytes: usize,
    /// A point in each of the islands that changed last, newest first (RFC 2018 §4).
    recent: [u64; MAX_BLOCKS],
    duplicate: Option<(u64, u64)>,
    limit: usize,
}

/// A run of bytes beyond a gap.
#[derive(Debug, Clone)]
struct Island {
    start: u64,
    bytes: VecDeque<u8>,
}

impl Island {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    fn range(&self) -> (u64, u64) {
        (self.start, self.end())
    }
}

/// What became of a segment's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inserted {
    /// Bytes that were new, within the window and the memory.
    pub accepted: usize,
    /// Whether [`ReceiveBuffer::next`] moved.
    pub in_order: bool,
    /// Whether bytes of the segment were there already.
    pub repeated: bool,
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
    /// An empty buffer at offset 0 with a window of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            start: 0,
            next: 0,
            bytes: VecDeque::new(),
            islands: Vec::new(),
            island_bytes: 0,
            recent: [0; MAX_BLOCKS],
            duplicate: None,
            limit,
        }
    }

    /// Takes the bytes of a segment whose first byte is at `offset`. What lies beyond the window
    /// is dropped, and so is a segment for which the buffer would [hold](ReceiveBuffer::held) more
    /// than `most` bytes; for the first byte missing, islands are dropped instead, the farthest
    /// first (RFC 2018 §8 permits it).
    pub fn insert(&mut self, offset: u64, data: &[u8], most: usize) -> Inserted {
        if data.is_empty() {
            return Inserted::default();
        }
        let end = offset.saturating_add(data.len() as u64);
        // RFC 2883 §4: the first part that had come before
        let repeated = self.repeated(offset, end);
        self.duplicate = repeated.or(self.duplicate);
        if end <= self.next {
            return Inserted { repeated: true, ..Inserted::default() };
        }
        let repeated = repeated.is_some();
        let from = offset.max(self.next);
        let to = end.min(self.start.saturating_add(self.limit as u64));
        let nothing = Inserted { repeated, ..Inserted::default() };
        let Some(data) = part(data, offset, from, to) else { return nothing };
        if from == self.next {
            if !self.make_way(data.len(), most) {
                return nothing;
            }
            let accepted = self.append(data, most);
            return Inserted { accepted, in_order: true, repeated };
        }
        match self.keep(from, to, data, most) {
            None => nothing,
            Some(accepted) => Inserted { accepted, in_order: false, repeated },
        }
    }

    /// The first run of a segment's bytes that are there already.
    fn repeated(&self, offset: u64, end: u64) -> Option<(u64, u64)> {
        if offset < self.next {
            return Some((offset, end.min(self.next)));
        }
        let first = self.islands.partition_point(|island| island.end() <= offset);
        let island = self.islands.get(first)?;
        let (low, high) = (island.start.max(offset), island.end().min(end));
        (low < high).then_some((low, high))
    }

    /// The first byte missing: what to acknowledge.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The first byte not read yet.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes that [`ReceiveBuffer::read`] would give.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.bytes.len()
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

    /// Drops what was not read, in order and beyond gaps: nobody reads it.
    pub fn discard(&mut self) {
        self.start = self.next;
        self.bytes = VecDeque::new();
        self.islands = Vec::new();
        self.island_bytes = 0;
    }

    /// Bytes that can be taken from [`ReceiveBuffer::next`] on. Its right edge never moves back.
    #[must_use]
    pub fn window(&self) -> usize {
        self.limit.saturating_sub(self.readable())
    }

    /// The window of a buffer with nothing to read.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Lets the window grow to `limit`; it never shrinks (RFC 9293 §3.8.6).
    pub fn widen(&mut self, limit: usize) {
        self.limit = self.limit.max(limit);
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

    /// The blocks for the next acknowledgment: a duplicate that came since the last call (reported
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
            let reported = blocks.as_slice().iter().skip(usize::from(duplicate.is_some()));
            if !reported.clone().any(|block| *block == island) {
                blocks.push(island);
            }
        }
        blocks
    }

    /// Memory held on the heap, in bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.bytes.capacity() + self.island_bytes + self.islands.len() * ISLAND_BYTES
    }

    fn island_at(&self, point: u64) -> Option<(u64, u64)> {
        let index = self.islands.partition_point(|island| island.end() <= point);
        self.islands.get(index).map(Island::range).filter(|island| island.0 <= point)
    }

    fn max_islands(&self) -> usize {
        (MIN_ISLANDS + self.limit / WINDOW_PER_ISLAND).min(MAX_ISLANDS)
    }

    /// Drops islands, the farthest first, until there is memory for `more` bytes in order.
    fn make_way(&mut self, more: usize, most: usize) -> bool {
        let needed = more.saturating_sub(self.bytes.capacity() - self.bytes.len());
        if self.bytes.capacity().saturating_add(needed) > most {
            return needed == 0;
        }
        while needed > 0 && self.held().saturating_add(needed) > most {
            let Some(island) = self.islands.pop() else { return false };
            self.island_bytes -= island.bytes.capacity();
        }
        true
    }

    /// Appends bytes from `next` on, and the islands that they reach; how many bytes were new.
    fn append(&mut self, data: &[u8], most: usize) -> usize {
        let begun = self.next;
        let mut known = 0;
        let end = begun + data.len() as u64;
        let reached = self.islands.partition_point(|island| island.start <= end);
        let spare = most.saturating_sub(self.held()).saturating_sub(data.len());
        if reached == 0 {
            reserve(&mut self.bytes, data.len(), self.limit, spare);
            self.bytes.extend(data);
            self.next = end;
            return data.len();
        }
        let mut at = begun;
        for island in self.islands.drain(..reached) {
            self.island_bytes -= island.bytes.capacity();
            let gap = part(data, begun, at, island.start).unwrap_or(&[]);
            reserve(&mut self.bytes, gap.len(), self.limit, spare);
            self.bytes.extend(gap);
            known += island.end().min(end).saturating_sub(island.start);
            at = island.end();
            join(&mut self.bytes, island.bytes, self.limit, spare);
        }
        let rest = part(data, begun, at, end).unwrap_or(&[]);
        reserve(&mut self.bytes, rest.len(), self.limit, spare);
        self.bytes.extend(rest);
        self.next = at.max(end);
        if self.islands.is_empty() {
            self.islands = Vec::new();
        }
        data.len().saturating_sub(usize::try_from(known).unwrap_or(usize::MAX))
    }

    /// Keeps bytes beyond a gap and says how many are new; `None` if they would be one island or
    /// some bytes too many.
    fn keep(&mut self, from: u64, to: u64, data: &[u8], most: usize) -> Option<usize> {
        let first = self.islands.partition_point(|island| island.end() < from);
        let touched = self.islands.get(first..)?;
        let behind = first + touched.partition_point(|island| island.start <= to);
        let touched = self.islands.get(first..behind)?;
        let known: u64 = touched
            .iter()
            .map(|island| island.end().min(to).saturating_sub(island.start.max(from)))
            .sum();
        let accepted = usize::try_from((to - from).saturating_sub(known)).ok()?;
        if accepted == 0 {
            self.note_recent(from);
            return Some(0);
        }
        let is_new = touched.is_empty();
        let spare = most.saturating_sub(self.held());
        let needed = if is_new { accepted + ISLAND_BYTES } else { accepted };
        if needed > spare || is_new && self.islands.len() >= self.max_islands() {
            return None;
        }
        let spare = spare - needed;
        let mut whole: Option<Island> = None;
        let mut at = from;
        for mut island in self.islands.drain(first..behind) {
            self.island_bytes -= island.bytes.capacity();
            let gap = part(data, from, at, island.start).unwrap_or(&[]);
            at = at.max(island.end());
            whole = Some(match whole {
                None => {
                    reserve(&mut island.bytes, gap.len(), self.limit, spare);
                    island.bytes.extend(gap);
                    // The bytes that were appended go to the front.
                    island.bytes.rotate_right(gap.len());
                    island.start -= gap.len() as u64;
                    island
                }
                Some(mut whole) => {
                    reserve(&mut whole.bytes, gap.len(), self.limit, spare);
                    whole.bytes.extend(gap);
                    join(&mut whole.bytes, island.bytes, self.limit, spare);
                    whole
                }
            });
        }
        let rest = part(data, from, at, to).unwrap_or(&[]);
        let mut whole = whole.unwrap_or(Island { start: from, bytes: VecDeque::new() });
        reserve(&mut whole.bytes, rest.len(), self.limit, spare);
        whole.bytes.extend(rest);
        self.island_bytes += whole.bytes.capacity();
        self.islands.insert(first, whole);
        self.note_recent(from);
        Some(accepted)
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
}

/// Reserves space for `more` bytes: doubling up to `limit`, if `spare` allows that much, and no
/// more than needed otherwise.
fn reserve(bytes: &mut VecDeque<u8>, more: usize, limit: usize, spare: usize) {
    let (needed, capacity) = (bytes.len() + more, bytes.capacity());
    if needed > capacity {
        let doubled = (2 * capacity).min(limit).min(needed.saturating_add(spare));
        bytes.reserve_exact(needed.max(doubled) - bytes.len());
    }
}

/// Appends `tail` to `head`. The shorter moves to the longer, so that a byte is moved a logarithmic
/// number of times at most, however a peer orders its segments.
fn join(head: &mut VecDeque<u8>, mut tail: VecDeque<u8>, limit: usize, spare: usize) {
    if head.len() >= tail.len() {
        reserve(head, tail.len(), limit, spare);
        head.append(&mut tail);
        return;
    }
    let count = head.len();
    reserve(&mut tail, count, limit, spare);
    tail.append(head);
    tail.rotate_right(count);
    *head = tail;
}

/// The bytes `from..to` of a segment at `offset`; `None` if there are none.
fn part(data: &[u8], offset: u64, from: u64, to: u64) -> Option<&[u8]> {
    let low = usize::try_from(from.checked_sub(offset)?).ok()?;
    let high = usize::try_from(to.checked_sub(offset)?).ok()?;
    data.get(low..high).filter(|data| !data.is_empty())
}

#[cfg(test)]
mod tests;
