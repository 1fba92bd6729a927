//! Counts of names of which there may be any number: the most frequent are kept (space-saving,
//! Metwally, Agrawal and El Abbadi 2005).

use std::collections::BTreeMap;

/// What is kept of a name beside its count, and can be added up.
pub(crate) trait Add: Default {
    fn add(&mut self, other: &Self);
}

impl Add for () {
    fn add(&mut self, (): &Self) {}
}

/// One name's count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry<V> {
    /// How often it was seen since it has its place.
    pub seen: u64,
    /// How often it may have been seen before, at most.
    pub before: u64,
    /// What belongs to those seen.
    pub value: V,
}

/// The most frequent names. One seen more often than `total / capacity` is surely among them.
#[derive(Debug, Clone)]
pub(crate) struct Top<K, V = ()> {
    capacity: usize,
    total: u64,
    entries: BTreeMap<K, Entry<V>>,
}

impl<K: Ord + Clone, V: Add> Top<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Top { capacity: capacity.max(1), total: 0, entries: BTreeMap::new() }
    }

    /// Counts `key`. The least seen gives up its place if there is none left.
    pub(crate) fn count(&mut self, key: K) -> &mut Entry<V> {
        self.total += 1;
        let before = match self.entries.contains_key(&key) {
            true => 0,
            false => self.make_room(),
        };
        let entry = self.entries.entry(key).or_default();
        if entry.seen == 0 {
            entry.before = before;
        }
        entry.seen += 1;
        entry
    }

    /// Makes room for one more, and says how often it may have been seen before.
    fn make_room(&mut self) -> u64 {
        if self.entries.len() < self.capacity {
            return 0;
        }
        let least = self.entries.iter().min_by_key(|(_, entry)| entry.seen + entry.before);
        let Some((key, estimate)) = least.map(|(key, e)| (key.clone(), e.seen + e.before)) else {
            return 0;
        };
        self.entries.remove(&key);
        estimate
    }

    /// How often a name that has no place may have been seen.
    fn unseen(&self) -> u64 {
        if self.entries.len() < self.capacity {
            return 0;
        }
        self.entries.values().map(|entry| entry.seen + entry.before).min().unwrap_or(0)
    }

    /// Adds what another has counted.
    pub(crate) fn merge(&mut self, other: Top<K, V>) {
        let (unseen, other_unseen) = (self.unseen(), other.unseen());
        self.total += other.total;
        for (key, entry) in &mut self.entries {
            if !other.entries.contains_key(key) {
                entry.before += other_unseen;
            }
        }
        for (key, theirs) in other.entries {
            let new = !self.entries.contains_key(&key);
            let ours = self.entries.entry(key).or_default();
            ours.seen += theirs.seen;
            ours.before += theirs.before + if new { unseen } else { 0 };
            ours.value.add(&theirs.value);
        }
        while self.entries.len() > self.capacity {
            self.make_room();
        }
    }

    /// All names counted, kept or not.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What the names kept do not account for: others, and these before they had their places.
    pub(crate) fn others(&self) -> u64 {
        self.total - self.entries.values().map(|entry| entry.seen).sum::<u64>()
    }

    /// The names kept, the most seen first.
    pub(crate) fn ranked(&self) -> Vec<(&K, &Entry<V>)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.seen));
        all
    }

    /// How often a name was seen since it has its place.
    pub(crate) fn seen(&self, key: &K) -> u64 {
        self.entries.get(key).map_or(0, |entry| entry.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_names_are_counted_exactly() {
        let mut top: Top<&str> = Top::new(3);
        for name in ["a", "b", "a", "c", "a", "b"] {
            top.count(name);
        }
        let counts: Vec<_> = top.ranked().iter().map(|(name, e)| (**name, e.seen)).collect();
        assert_eq!(counts, [("a", 3), ("b", 2), ("c", 1)]);
        assert_eq!((top.total(), top.others(), top.seen(&"b")), (6, 0, 2));
    }

    proptest! {
        #[test]
        fn counts_are_bounds_and_nothing_gets_lost(
            names in prop::collection::vec(0u8..30, 0..400),
            cut in 0usize..400,
            capacity in 1usize..12,
        ) {
            let cut = cut.min(names.len());
            let fill = |names: &[u8]| {
                let mut top: Top<u8> = Top::new(capacity);
                names.iter().for_each(|name| { top.count(*name); });
                top
            };
            let mut merged = fill(&names[..cut]);
            merged.merge(fill(&names[cut..]));
            for top in [fill(&names), merged] {
                prop_assert_eq!(top.total(), names.len() as u64);
                prop_assert!(top.entries.len() <= capacity);
                let seen: u64 = top.ranked().iter().map(|(_, entry)| entry.seen).sum();
                prop_assert_eq!(seen + top.others(), top.total());
                for (name, entry) in top.ranked() {
                    let exact = names.iter().filter(|n| *n == name).count() as u64;
                    prop_assert!(entry.seen <= exact && exact <= entry.seen + entry.before);
                }
            }
        }

        #[test]
        fn a_frequent_name_is_never_given_up(noise in prop::collection::vec(1u16..5000, 0..300)) {
            let mut top: Top<u16> = Top::new(8);
            for name in &noise {
                top.count(*name);
                top.count(0);
            }
            prop_assert_eq!(top.seen(&0), noise.len() as u64);
        }
    }
}
