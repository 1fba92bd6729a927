//! Connections by their addresses, in order of activity.
//!
//! # What a packet costs
//! The index is an open-addressed array of eight bytes a slot, of which a search mostly reads one
//! cache line; the entries, of two cache lines each, lie in chunks that never move. A packet of a
//! known connection so waits for memory about twice. Its place in the order of activity is written
//! only if it has not been for a while ([`Table::touch`]): else every packet would also write to
//! its neighbours' lines.

use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use siphasher::sip::SipHasher13;
use units::Time;

/// The two ends of a connection, whichever sent: ordered, so that both directions have one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Addresses; of IPv4 in the first four bytes.
    low: [u8; 16],
    high: [u8; 16],
    ports: [u16; 2],
    /// Bit 0: TCP. Bit 1: IPv6.
    kind: u8,
}

const TCP: u8 = 1;
const IPV6: u8 = 2;

impl Key {
    /// The key of a packet from the first address and port to the second, and whether the first
    /// is the low end.
    #[inline]
    pub(crate) fn new(addresses: [IpAddr; 2], [from, to]: [u16; 2], tcp: bool) -> (Self, bool) {
        let tcp = if tcp { TCP } else { 0 };
        let (source, destination, kind) = match addresses {
            [IpAddr::V4(a), IpAddr::V4(b)] => (wide(a), wide(b), tcp),
            [a, b] => (octets(a), octets(b), tcp | IPV6),
        };
        let from_low = (source, from) <= (destination, to);
        let (low, high, ports) = if from_low {
            (source, destination, [from, to])
        } else {
            (destination, source, [to, from])
        };
        (Key { low: low.to_le_bytes(), high: high.to_le_bytes(), ports, kind }, from_low)
    }

    /// The same of TCP over IPv4 between these ends: addresses as numbers in little order, and ports.
    #[inline]
    pub(crate) fn plain([from, to]: [(u32, u16); 2]) -> (Self, bool) {
        let from_low = from <= to;
        let (low, high) = if from_low { (from, to) } else { (to, from) };
        let wide = |address: u32| u128::from(address).to_le_bytes();
        let ports = [low.1, high.1];
        (Key { low: wide(low.0), high: wide(high.0), ports, kind: TCP }, from_low)
    }

    /// The low end and the high one.
    pub(crate) fn ends(&self) -> [SocketAddr; 2] {
        let address = |octets: &[u8; 16]| match *octets {
            [a, b, c, d, ..] if self.kind & IPV6 == 0 => IpAddr::from([a, b, c, d]),
            all => IpAddr::from(all),
        };
        let [low, high] = self.ports;
        [SocketAddr::new(address(&self.low), low), SocketAddr::new(address(&self.high), high)]
    }

    /// Each end as one number: addresses and ports that are the same give the same.
    pub(crate) fn folded(&self) -> [u64; 2] {
        let [low, high] = self.ports;
        let end = |octets: &[u8; 16], port| Key::folded_end(u128::from_le_bytes(*octets), port);
        [end(&self.low, low), end(&self.high, high)]
    }

    /// One end as a number: an address as the key has it, and a port.
    #[inline]
    pub(crate) fn folded_end(address: u128, port: u16) -> u64 {
        let (low, high) = (address as u64, (address >> 64) as u64);
        (low ^ high.rotate_left(23)) ^ (u64::from(port) << 40)
    }

    /// The ports of the low end and of the high one.
    pub(crate) const fn ports(&self) -> [u16; 2] {
        self.ports
    }

    /// Whether it is of TCP.
    pub(crate) const fn is_tcp(&self) -> bool {
        self.kind & TCP != 0
    }
}

fn wide(address: Ipv4Addr) -> u128 {
    u32::from_le_bytes(address.octets()).into()
}

fn octets(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from_le_bytes(v4.to_ipv6_mapped().octets()),
        IpAddr::V6(v6) => u128::from_le_bytes(v6.octets()),
    }
}

/// Keyed, so that who sends packets cannot choose keys that collide. SipHash-1-3 is a
/// pseudorandom function as far as is known; over the 16 bytes of an IPv4 key it costs less than
/// one wait for memory, so nothing weaker is worth its risk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyed(SipHasher13);

impl Keyed {
    pub(crate) fn new(seed: u64) -> Self {
        Keyed(SipHasher13::new_with_keys(seed, !seed))
    }

    fn hash(&self, key: &Key) -> u32 {
        let [low, high] = key.ports.map(u64::from);
        let last = low | high << 16 | u64::from(key.kind) << 32;
        let (low, high) = (u128::from_le_bytes(key.low), u128::from_le_bytes(key.high));
        let mut hasher = self.0;
        if key.kind & IPV6 == 0 {
            return self.short(low as u64 | (high as u64) << 32, last);
        }
        hasher.write(&key.low);
        hasher.write(&key.high);
        hasher.write_u64(last);
        hasher.finish() as u32
    }

    /// The hash of the key that [`Key::new`] makes of these two ends of TCP over IPv4.
    #[inline]
    fn plain(&self, [from, to]: [(u32, u16); 2]) -> u32 {
        let (low, high) = if from <= to { (from, to) } else { (to, from) };
        let last = u64::from(low.1) | u64::from(high.1) << 16 | u64::from(TCP) << 32;
        self.short(u64::from(low.0) | u64::from(high.0) << 32, last)
    }

    #[inline]
    fn short(&self, first: u64, last: u64) -> u32 {
        let both = u128::from(first) | u128::from(last) << 64;
        self.0.hash(&both.to_le_bytes()) as u32
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        self.0
    }
}

/// Marks the end of a list and an empty slot.
const NONE: u32 = u32::MAX;

/// Where entries of one hash are.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    place: u32,
}

const EMPTY: Slot = Slot { hash: 0, place: NONE };

/// From hashes to places: open addressing with linear probing, at most three quarters full.
#[derive(Debug)]
struct Index {
    /// A power of two of them.
    slots: Vec<Slot>,
    len: usize,
}

impl Index {
    fn new() -> Self {
        Index { slots: vec![EMPTY; 16], len: 0 }
    }

    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    fn at(&self, slot: usize) -> Slot {
        self.slots.get(slot & self.mask()).copied().unwrap_or(EMPTY)
    }

    fn set(&mut self, slot: usize, value: Slot) {
        let mask = self.mask();
        if let Some(slot) = self.slots.get_mut(slot & mask) {
            *slot = value;
        }
    }

    /// The place with this hash that `is_it`, and its slot.
    fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut slot = hash as usize;
        loop {
            let found = self.at(slot);
            if found.place == NONE {
                return None;
            }
            if found.hash == hash && is_it(found.place) {
                return Some((slot, found.place));
            }
            slot = slot.wrapping_add(1);
        }
    }

    fn insert(&mut self, hash: u32, place: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            let double = self.slots.len() * 2;
            let old = std::mem::replace(&mut self.slots, vec![EMPTY; double]);
            for slot in old.into_iter().filter(|slot| slot.place != NONE) {
                self.put(slot);
            }
        }
        self.len += 1;
        self.put(Slot { hash, place });
    }

    fn put(&mut self, value: Slot) {
        let mut slot = value.hash as usize;
        while self.at(slot).place != NONE {
            slot = slot.wrapping_add(1);
        }
        self.set(slot, value);
    }

    /// Empties a slot and closes the gap, so that every search still finds its place before an
    /// empty slot.
    fn remove(&mut self, slot: usize) {
        let (mask, mut gap) = (self.mask(), slot);
        let mut next = slot.wrapping_add(1);
        loop {
            let value = self.at(next);
            if value.place == NONE {
                break;
            }
            // How far each is from where the value's search begins.
            let from = |slot: usize| slot.wrapping_sub(value.hash as usize) & mask;
            if from(gap) < from(next) {
                self.set(gap, value);
                gap = next;
            }
            next = next.wrapping_add(1);
        }
        self.set(gap, EMPTY);
        self.len = self.len.saturating_sub(1);
    }
}

/// A list of entries by activity, the least recent at the front.
#[derive(Debug, Clone, Copy)]
struct List {
    front: u32,
    back: u32,
}

/// Which list an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Open connections whose record is not out: they may hold much.
    Open,
    /// Open connections whose record is out.
    Reported,
    /// Those that are through and wait for stragglers.
    Closed,
}

/// An entry's neighbours, and when it was put between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Links {
    before: u32,
    after: u32,
    listed_at: Time,
}

impl Links {
    /// Of an entry that is in no list yet.
    pub(crate) const NONE: Links = Links { before: NONE, after: NONE, listed_at: Time::ZERO };
}

/// What the table keeps: the key and the links are the entry's own, so that nothing is between
/// them and its other fields.
pub(crate) trait Entry {
    fn key(&self) -> &Key;
    fn links(&mut self) -> &mut Links;
    /// Which list it is in: the table's to set.
    fn list(&mut self) -> &mut Activity;
    /// Time of its last activity.
    fn last(&self) -> Time;
}

/// Entries that lie together.
const CHUNK: usize = 256;

/// Entries that [`Table::stalest`] looks at most.
const LOOK: usize = 64;

/// A map from keys to entries, with a list by activity for each [`Activity`].
pub(crate) struct Table<T> {
    keyed: Keyed,
    index: Index,
    chunks: Vec<Box<[Option<T>]>>,
    /// Places that were never used begin here.
    unused: usize,
    free: Vec<u32>,
    open: List,
    reported: List,
    closed: List,
    /// How long an entry keeps its place in the order, nanoseconds, however active it is.
    period: u64,
}

impl<T: Entry> Table<T> {
    /// An empty table; `seed` keys its hashes, and the order of activity is kept to `period`
    /// nanoseconds.
    pub(crate) fn new(seed: u64, period: u64) -> Self {
        let list = List { front: NONE, back: NONE };
        Table {
            keyed: Keyed::new(seed),
            index: Index::new(),
            chunks: Vec::new(),
            unused: 0,
            free: Vec::new(),
            open: list,
            reported: list,
            closed: list,
            period,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len
    }

    /// A key's hash.
    pub(crate) fn hash(&self, key: &Key) -> u32 {
        self.keyed.hash(key)
    }

    /// The hash of the key of a TCP segment over IPv4 between these ends.
    #[inline]
    pub(crate) fn hash_plain(&self, ends: [(u32, u16); 2]) -> u32 {
        self.keyed.plain(ends)
    }

    fn slot_of(&self, hash: u32, key: &Key) -> Option<(usize, u32)> {
        let is_it = |place| self.look(place).is_some_and(|entry| entry.key() == key);
        self.index.find(hash, is_it)
    }

    /// Where the entry of a key with this hash is.
    pub(crate) fn find(&self, hash: u32, key: &Key) -> Option<u32> {
        self.slot_of(hash, key).map(|(_, place)| place)
    }

    /// Where the entry of a key with this hash is, if no other key has it: looks at the index
    /// alone.
    pub(crate) fn guess(&self, hash: u32) -> Option<u32> {
        self.index.find(hash, |_| true).map(|(_, place)| place)
    }

    /// Reads an entry, so that it is in the cache when it is needed; gives what it read.
    pub(crate) fn warm(&self, place: u32) -> u64 {
        self.look(place).map_or(0, |entry| entry.last().as_nanos() ^ u64::from(entry.key().kind))
    }

    fn list(&mut self, list: Activity) -> &mut List {
        match list {
            Activity::Open => &mut self.open,
            Activity::Reported => &mut self.reported,
            Activity::Closed => &mut self.closed,
        }
    }

    fn look(&self, place: u32) -> Option<&T> {
        let (chunk, at) = (place as usize / CHUNK, place as usize % CHUNK);
        self.chunks.get(chunk)?.get(at)?.as_ref()
    }

    fn place(&mut self, place: u32) -> Option<&mut Option<T>> {
        let (chunk, at) = (place as usize / CHUNK, place as usize % CHUNK);
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    /// Whether the entry at a place has this key: [`Table::guess`] has guessed right, and nothing has
    /// changed since.
    #[inline]
    pub(crate) fn is_at(&self, place: u32, key: &Key) -> bool {
        self.look(place).is_some_and(|entry| entry.key() == key)
    }

    /// The entry at a place.
    pub(crate) fn get(&mut self, place: u32) -> Option<&mut T> {
        self.place(place)?.as_mut()
    }

    /// Adds an entry as the most recent open one.
    pub(crate) fn insert(&mut self, entry: T, now: Time) -> u32 {
        let at = self.free.pop().unwrap_or(self.unused as u32);
        if at as usize == self.unused {
            if self.unused.is_multiple_of(CHUNK) {
                self.chunks.push((0..CHUNK).map(|_| None).collect());
            }
            self.unused += 1;
        }
        let hash = self.keyed.hash(entry.key());
        if let Some(place) = self.place(at) {
            *place = Some(entry);
        }
        self.index.insert(hash, at);
        self.push_back(at, Activity::Open, now);
        at
    }

    /// Notes that an entry was active: makes it the most recent of a list, if it comes from another
    /// or has not been moved for the table's period.
    pub(crate) fn touch(&mut self, at: u32, list: Activity, now: Time) {
        let period = self.period;
        let Some(entry) = self.get(at) else { return };
        let listed_at = entry.links().listed_at;
        if *entry.list() == list && now.as_nanos().saturating_sub(listed_at.as_nanos()) < period {
            return;
        }
        self.unlink(at);
        self.push_back(at, list, now);
    }

    /// The entry of a list that was moved least recently.
    pub(crate) fn oldest(&self, list: Activity) -> Option<u32> {
        let list = match list {
            Activity::Open => self.open,
            Activity::Reported => self.reported,
            Activity::Closed => self.closed,
        };
        Some(list.front).filter(|at| *at != NONE)
    }

    /// The entry of a list that was active least recently: one that was not active since it was
    /// moved, or the least recent of the first [`LOOK`].
    pub(crate) fn stalest(&mut self, list: Activity) -> Option<u32> {
        let mut at = self.oldest(list)?;
        let mut best = (at, self.look(at)?.last());
        for _ in 0..LOOK {
            let Some(entry) = self.get(at) else { break };
            let (last, links) = (entry.last(), *entry.links());
            if last < best.1 {
                best = (at, last);
            }
            // Whoever comes behind was active when it was moved, or later.
            if links.listed_at >= best.1 && at != best.0 {
                break;
            }
            at = links.after;
        }
        Some(best.0)
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let key = *self.look(at)?.key();
        let (slot, _) = self.slot_of(self.keyed.hash(&key), &key)?;
        self.index.remove(slot);
        self.unlink(at);
        self.free.push(at);
        self.place(at)?.take()
    }

    fn unlink(&mut self, at: u32) {
        let Some(entry) = self.get(at) else { return };
        let (list, Links { before, after, .. }) = (*entry.list(), *entry.links());
        match self.get(before) {
            Some(entry) => entry.links().after = after,
            None => self.list(list).front = after,
        }
        match self.get(after) {
            Some(entry) => entry.links().before = before,
            None => self.list(list).back = before,
        }
    }

    fn push_back(&mut self, at: u32, list: Activity, now: Time) {
        let back = self.list(list).back;
        if let Some(entry) = self.get(at) {
            *entry.links() = Links { before: back, after: NONE, listed_at: now };
            *entry.list() = list;
        }
        match self.get(back) {
            Some(entry) => entry.links().after = at,
            None => self.list(list).front = at,
        }
        self.list(list).back = at;
    }
}

#[cfg(test)]
mod tests;
