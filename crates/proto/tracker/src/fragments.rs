//! Puts IP datagrams together from their fragments (RFC 791 §3.2, RFC 8200 §4.5), bounded in
//! number, bytes and time.
//!
//! Fragments that overlap make a datagram worthless, and it is dropped whole (RFC 5722 §4); of IPv4
//! too, as receivers do since overlaps were used to slip bytes past onlookers. A fragment that
//! says the same again is passed over.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use units::Time;
use wire::ipv6;

use crate::decode::{Fragment, Layer, Upper};
use crate::record::Traffic;
use crate::table::Keyed;

/// Datagrams in parts that are held at most.
const MAX_DATAGRAMS: usize = 1024;
/// What is held at most in all, overhead included.
const MAX_HELD: usize = 8 * 1024 * 1024;
/// What a piece takes beside its bytes, about.
const PIECE_OVERHEAD: usize = 64;
/// Pieces of one datagram at most: 64 KiB over a path of 576 bytes has 119.
const MAX_PIECES: usize = 128;
/// The longest datagram (RFC 791 §3.1, RFC 8200 §4.5).
const MAX_LEN: usize = 65_535;
/// How long the fragments of a datagram are waited for, IPv4: what receivers use.
const WAIT_IPV4: Duration = Duration::from_secs(30);
/// The same, IPv6 (RFC 8200 §4.5).
const WAIT_IPV6: Duration = Duration::from_secs(60);

/// Frames with fragments that came to nothing, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FragmentDrops {
    /// They overlapped others, or were of a datagram in which some did.
    pub overlapping: u64,
    /// They said the same as others before.
    pub duplicate: u64,
    /// Their lengths or ends contradict the format, or each other.
    pub malformed: u64,
    /// The capture cut them.
    pub cut: u64,
    /// The rest of their datagram did not come in time, or not before the capture's end.
    pub timed_out: u64,
    /// Their datagram gave way to others, or has too many pieces.
    pub no_room: u64,
}

impl FragmentDrops {
    pub(crate) fn add(&mut self, other: &FragmentDrops) {
        self.overlapping += other.overlapping;
        self.duplicate += other.duplicate;
        self.malformed += other.malformed;
        self.cut += other.cut;
        self.timed_out += other.timed_out;
        self.no_room += other.no_room;
    }

    /// The sum of all reasons.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.overlapping
            .saturating_add(self.duplicate)
            .saturating_add(self.malformed)
            .saturating_add(self.cut)
            .saturating_add(self.timed_out)
            .saturating_add(self.no_room)
    }
}

/// What the fragments of one datagram share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    /// Of IPv4; the fragments of an IPv6 datagram may differ in it.
    protocol: Option<u8>,
}

#[derive(Debug)]
struct Piece {
    start: usize,
    data: Box<[u8]>,
}

impl Piece {
    fn end(&self) -> usize {
        self.start.saturating_add(self.data.len())
    }
}

/// A datagram of which fragments are missing.
#[derive(Debug)]
struct Partial {
    serial: u64,
    begun: Time,
    /// In order, without overlap.
    pieces: Vec<Piece>,
    len: usize,
    /// Its whole length, once the last fragment is there.
    total: Option<usize>,
    /// What the first fragment says it carries.
    protocol: Option<u8>,
    /// The frames so far.
    frames: Traffic,
    /// Fragments overlapped: nothing more of it is kept.
    refused: bool,
}

impl Partial {
    fn held(&self) -> usize {
        let overhead = self.pieces.len().saturating_add(1).saturating_mul(PIECE_OVERHEAD);
        self.len.saturating_add(overhead)
    }
}

/// A datagram put together.
#[derive(Debug)]
pub(crate) struct Whole {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    payload: Vec<u8>,
    /// All of its frames.
    pub(crate) frames: Traffic,
}

impl Whole {
    /// Where to read on; `None` if its extension headers are malformed, or say that it is in
    /// fragments once more.
    pub(crate) fn layer(&self) -> Option<Layer<'_>> {
        let Whole { source, destination, protocol, payload, .. } = self;
        let mut upper = Upper {
            source: *source,
            destination: *destination,
            protocol: *protocol,
            payload,
            payload_len: payload.len(),
        };
        if source.is_ipv6() {
            let inner = ipv6::walk(*protocol, payload, payload.len()).ok()?;
            if inner.fragment.is_some_and(|header| !header.is_atomic()) {
                return None;
            }
            upper.protocol = inner.protocol;
            (upper.payload, upper.payload_len) = (inner.payload, inner.payload_len);
        }
        Some(Layer::Upper(upper))
    }
}

/// Why a fragment is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Overlapping,
    Duplicate,
    Malformed,
    Cut,
    NoRoom,
}

/// The datagrams of which fragments are missing.
#[derive(Debug)]
pub(crate) struct Fragments {
    partial: HashMap<Key, Partial, Keyed>,
    /// In the order in which they began, of IPv4 and of IPv6: the wait of each list is one. Those
    /// that are together stay until they come to the front.
    order: [VecDeque<(Key, u64)>; 2],
    next_serial: u64,
    held: usize,
    dropped: FragmentDrops,
    waiting: u64,
}

impl Fragments {
    /// None; `seed` keys the hashes.
    pub(crate) fn new(seed: u64) -> Self {
        Fragments {
            partial: HashMap::with_hasher(Keyed::new(seed)),
            order: Default::default(),
            next_serial: 0,
            held: 0,
            dropped: FragmentDrops::default(),
            waiting: 0,
        }
    }

    /// Frames that came to nothing.
    pub(crate) const fn dropped(&self) -> &FragmentDrops {
        &self.dropped
    }

    /// Frames whose datagram is not complete.
    pub(crate) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Takes a fragment that came in `frames`: the datagram, if it is the last one missing.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        fragment: &Fragment<'_>,
        frames: Traffic,
    ) -> Option<Whole> {
        self.expire(now);
        let outcome = match refuse(fragment) {
            Some(refusal) => Err(refusal),
            None => self.keep(now, fragment, frames),
        };
        let count = match outcome {
            Ok(whole) => return whole,
            Err(Refusal::Overlapping) => &mut self.dropped.overlapping,
            Err(Refusal::Duplicate) => &mut self.dropped.duplicate,
            Err(Refusal::Malformed) => &mut self.dropped.malformed,
            Err(Refusal::Cut) => &mut self.dropped.cut,
            Err(Refusal::NoRoom) => &mut self.dropped.no_room,
        };
        *count = count.saturating_add(frames.frames);
        None
    }

    fn keep(
        &mut self,
        now: Time,
        fragment: &Fragment<'_>,
        frames: Traffic,
    ) -> Result<Option<Whole>, Refusal> {
        let Fragment { source, destination, protocol, identification, .. } = *fragment;
        let of_key = source.is_ipv4().then_some(protocol);
        let key = Key { source, destination, identification, protocol: of_key };
        if !self.partial.contains_key(&key) {
            self.begin(now, key);
        }
        let Some(partial) = self.partial.get_mut(&key) else { return Err(Refusal::NoRoom) };
        let before = partial.held();
        let added = partial.add(fragment);
        match added {
            Ok(()) => {
                partial.frames.frames = partial.frames.frames.saturating_add(frames.frames);
                partial.frames.bytes = partial.frames.bytes.saturating_add(frames.bytes);
                self.waiting = self.waiting.saturating_add(frames.frames);
            }
            Err(Refusal::Duplicate) => {}
            Err(refusal) => {
                // What came so far goes too; the datagram is remembered, so that the rest of it
                // does not begin another.
                let lost = std::mem::take(&mut partial.frames).frames;
                (partial.refused, partial.len, partial.pieces) = (true, 0, Vec::new());
                self.waiting = self.waiting.saturating_sub(lost);
                let count = match refusal {
                    Refusal::Malformed => &mut self.dropped.malformed,
                    Refusal::NoRoom => &mut self.dropped.no_room,
                    _ => &mut self.dropped.overlapping,
                };
                *count = count.saturating_add(lost);
            }
        }
        self.held = self.held.saturating_add(partial.held()).saturating_sub(before);
        added?;
        if !partial.is_complete() {
            while self.held > MAX_HELD && self.drop_oldest() {}
            return Ok(None);
        }
        Ok(self.take(&key).and_then(|partial| partial.join(&key)))
    }

    fn begin(&mut self, now: Time, key: Key) {
        while self.partial.len() >= MAX_DATAGRAMS && self.drop_oldest() {}
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        let partial = Partial {
            serial,
            begun: now,
            pieces: Vec::new(),
            len: 0,
            total: None,
            protocol: None,
            frames: Traffic::default(),
            refused: false,
        };
        self.held = self.held.saturating_add(partial.held());
        self.partial.insert(key, partial);
        let [v4, v6] = &mut self.order;
        let order = if key.source.is_ipv4() { v4 } else { v6 };
        order.push_back((key, serial));
        // Names of datagrams that are together are cleared away before they are many.
        if order.len() > 2 * MAX_DATAGRAMS {
            let partial = &self.partial;
            order.retain(|(key, serial)| partial.get(key).is_some_and(|p| p.serial == *serial));
        }
    }

    /// Drops the datagram that began first.
    fn drop_oldest(&mut self) -> bool {
        let begun = |key: &(Key, u64)| self.partial.get(&key.0).map(|partial| partial.begun);
        let [v4, v6] = &self.order;
        let list = match (v4.front(), v6.front()) {
            (Some(a), Some(b)) => usize::from(begun(a) > begun(b)),
            (Some(_), None) => 0,
            (None, Some(_)) => 1,
            (None, None) => return false,
        };
        let Some((key, serial)) = self.order.get_mut(list).and_then(VecDeque::pop_front) else {
            return false;
        };
        if self.partial.get(&key).is_some_and(|partial| partial.serial == serial) {
            let lost = self.take(&key).map_or(0, |partial| partial.frames.frames);
            self.dropped.no_room = self.dropped.no_room.saturating_add(lost);
        }
        true
    }

    fn take(&mut self, key: &Key) -> Option<Partial> {
        let partial = self.partial.remove(key)?;
        self.held = self.held.saturating_sub(partial.held());
        self.waiting = self.waiting.saturating_sub(partial.frames.frames);
        Some(partial)
    }

    /// Drops what has waited too long.
    pub(crate) fn expire(&mut self, now: Time) {
        for (list, wait) in [(0, WAIT_IPV4), (1, WAIT_IPV6)] {
            while let Some((key, serial)) = self.order.get(list).and_then(|order| order.front()) {
                let current = self.partial.get(key).filter(|partial| partial.serial == *serial);
                let key = *key;
                match current.map(|partial| now.saturating_since(partial.begun) > wait) {
                    Some(false) => break,
                    Some(true) => self.time_out(&key),
                    None => {}
                }
                if let Some(order) = self.order.get_mut(list) {
                    order.pop_front();
                }
            }
        }
    }

    /// Drops all: the capture is over.
    pub(crate) fn finish(&mut self) {
        let keys: Vec<Key> = self.partial.keys().copied().collect();
        for key in keys {
            self.time_out(&key);
        }
    }

    fn time_out(&mut self, key: &Key) {
        let lost = self.take(key).map_or(0, |partial| partial.frames.frames);
        self.dropped.timed_out = self.dropped.timed_out.saturating_add(lost);
    }
}

/// Why a fragment cannot be part of any datagram.
fn refuse(fragment: &Fragment<'_>) -> Option<Refusal> {
    let end = fragment.offset.saturating_add(fragment.payload_len);
    // RFC 8200 §4.5: only the last one's length is free.
    let odd =
        fragment.more && (!fragment.payload_len.is_multiple_of(8) || fragment.payload_len == 0);
    if odd || end > MAX_LEN {
        return Some(Refusal::Malformed);
    }
    (fragment.payload.len() < fragment.payload_len).then_some(Refusal::Cut)
}

impl Partial {
    fn add(&mut self, fragment: &Fragment<'_>) -> Result<(), Refusal> {
        if self.refused {
            return Err(Refusal::Overlapping);
        }
        let (start, data) = (fragment.offset, fragment.payload);
        let end = start.saturating_add(data.len());
        let at = self.pieces.partition_point(|piece| piece.start < start);
        let next = self.pieces.get(at);
        if next.is_some_and(|piece| piece.start == start && *piece.data == *data) {
            return Err(Refusal::Duplicate);
        }
        let before = at.checked_sub(1).and_then(|before| self.pieces.get(before));
        if before.is_some_and(|piece| piece.end() > start)
            || next.is_some_and(|piece| piece.start < end)
        {
            return Err(Refusal::Overlapping);
        }
        let last = self.pieces.last().map_or(0, Piece::end).max(end);
        let total = if fragment.more { self.total } else { Some(end) };
        let contradicted = self.total.is_some() && self.total != total;
        if contradicted || total.is_some_and(|total| last > total) {
            return Err(Refusal::Malformed);
        }
        if self.pieces.len() >= MAX_PIECES {
            return Err(Refusal::NoRoom);
        }
        self.total = total;
        if start == 0 {
            self.protocol = Some(fragment.protocol);
        }
        self.len = self.len.saturating_add(data.len());
        self.pieces.insert(at, Piece { start, data: data.into() });
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.total == Some(self.len)
    }

    fn join(self, key: &Key) -> Option<Whole> {
        let mut payload = Vec::with_capacity(self.len);
        for piece in &self.pieces {
            payload.extend_from_slice(&piece.data);
        }
        let Key { source, destination, .. } = *key;
        Some(Whole { source, destination, protocol: self.protocol?, payload, frames: self.frames })
    }
}

#[cfg(test)]
mod tests;
