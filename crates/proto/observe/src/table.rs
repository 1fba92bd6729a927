//! Connections by their addresses, in order of activity.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

/// The two ends of a connection, whichever sent: ordered, so that both directions have one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    low: ([u8; 16], u16),
    high: ([u8; 16], u16),
    tcp: bool,
}

impl Key {
    /// The key of a packet from `a` to `b`.
    pub(crate) fn new(a: SocketAddr, b: SocketAddr, tcp: bool) -> Self {
        let (a, b) = (end(a), end(b));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Key { low, high, tcp }
    }
}

fn end(address: SocketAddr) -> ([u8; 16], u16) {
    let octets = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    (octets, address.port())
}

/// Keyed, so that who sends packets cannot choose keys that collide.
#[derive(Debug, Clone, Copy)]
struct Keyed(u64);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;
    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, !self.0)
    }
}

/// Marks the end of a list.
const NONE: u32 = u32::MAX;

/// A list of entries by activity, the least recent at the front.
#[derive(Debug, Clone, Copy)]
struct List {
    front: u32,
    back: u32,
}

#[derive(Debug)]
struct Entry<T> {
    key: Key,
    value: T,
    list: Activity,
    before: u32,
    after: u32,
}

/// Which list an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Open connections.
    Open,
    /// Those that are through and wait for stragglers.
    Closed,
}

/// A map from keys to values with two lists by activity: open and closed.
#[derive(Debug)]
pub(crate) struct Table<T> {
    index: HashMap<Key, u32, Keyed>,
    entries: Vec<Option<Entry<T>>>,
    free: Vec<u32>,
    open: List,
    closed: List,
}

impl<T> Table<T> {
    /// An empty table; `seed` keys its hashes.
    pub(crate) fn new(seed: u64) -> Self {
        let list = List { front: NONE, back: NONE };
        Table {
            index: HashMap::with_hasher(Keyed(seed)),
            entries: Vec::new(),
            free: Vec::new(),
            open: list,
            closed: list,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Where a key's entry is.
    pub(crate) fn find(&self, key: &Key) -> Option<u32> {
        self.index.get(key).copied()
    }

    fn list(&mut self, list: Activity) -> &mut List {
        match list {
            Activity::Open => &mut self.open,
            Activity::Closed => &mut self.closed,
        }
    }

    fn entry(&mut self, at: u32) -> Option<&mut Entry<T>> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    /// The value at a place.
    pub(crate) fn get(&mut self, at: u32) -> Option<&mut T> {
        self.entry(at).map(|entry| &mut entry.value)
    }

    /// Adds a value as the most recent open one.
    pub(crate) fn insert(&mut self, key: Key, value: T) -> u32 {
        let entry = Some(Entry { key, value, list: Activity::Open, before: NONE, after: NONE });
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.entries.get_mut(at as usize) {
                    *place = entry;
                }
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.index.insert(key, at);
        self.push_back(at, Activity::Open);
        at
    }

    /// Makes an entry the most recent of a list.
    pub(crate) fn touch(&mut self, at: u32, list: Activity) {
        if self.list(list).back == at {
            return;
        }
        self.unlink(at);
        self.push_back(at, list);
    }

    /// The least recent entry of a list.
    pub(crate) fn oldest(&self, list: Activity) -> Option<u32> {
        let list = match list {
            Activity::Open => self.open,
            Activity::Closed => self.closed,
        };
        Some(list.front).filter(|at| *at != NONE)
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        self.unlink(at);
        let entry = self.entries.get_mut(at as usize)?.take()?;
        self.index.remove(&entry.key);
        self.free.push(at);
        Some(entry.value)
    }

    fn unlink(&mut self, at: u32) {
        let Some(entry) = self.entry(at) else { return };
        let (list, before, after) = (entry.list, entry.before, entry.after);
        match self.entry(before) {
            Some(entry) => entry.after = after,
            None => self.list(list).front = after,
        }
        match self.entry(after) {
            Some(entry) => entry.before = before,
            None => self.list(list).back = before,
        }
    }

    fn push_back(&mut self, at: u32, list: Activity) {
        let back = self.list(list).back;
        if let Some(entry) = self.entry(at) {
            (entry.list, entry.before, entry.after) = (list, back, NONE);
        }
        match self.entry(back) {
            Some(entry) => entry.after = at,
            None => self.list(list).front = at,
        }
        self.list(list).back = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LISTS: [Activity; 2] = [Activity::Open, Activity::Closed];

    fn key(port: u16) -> Key {
        Key::new(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 443).into(), true)
    }

    #[test]
    fn both_directions_have_one_key() {
        let (a, b): (SocketAddr, SocketAddr) =
            (([10, 0, 0, 1], 5).into(), ([10, 0, 0, 1], 4).into());
        assert_eq!(Key::new(a, b, true), Key::new(b, a, true));
        assert_ne!(Key::new(a, b, true), Key::new(b, a, false));
    }

    proptest! {
        /// Against a plain list of the keys in order of activity.
        #[test]
        fn order_of_activity_is_kept(steps in proptest::collection::vec((0u16..12, 0u8..4), 0..200)) {
            let mut table = Table::new(7);
            let mut model: [Vec<u16>; 2] = [Vec::new(), Vec::new()];
            for (port, action) in steps {
                match (table.find(&key(port)), action) {
                    (None, _) => {
                        table.insert(key(port), port);
                        model[0].push(port);
                    }
                    (Some(at), 0) => {
                        prop_assert_eq!(table.remove(at), Some(port));
                        model.iter_mut().for_each(|list| list.retain(|p| *p != port));
                    }
                    (Some(at), action) => {
                        let list = usize::from(action == 1);
                        table.touch(at, LISTS[list]);
                        model.iter_mut().for_each(|list| list.retain(|p| *p != port));
                        model[list].push(port);
                    }
                }
                prop_assert_eq!(table.len(), model[0].len() + model[1].len());
            }
            for (list, expected) in LISTS.into_iter().zip(&model) {
                let mut left = Vec::new();
                while let Some(at) = table.oldest(list) {
                    left.extend(table.remove(at));
                }
                prop_assert_eq!(&left, expected);
            }
        }
    }
}
