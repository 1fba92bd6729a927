//! Which handshakes may be under way: bounded in all, and for each source.
//!
//! [`Admission::admit`] always gives a place. Where there is none, it takes that of the handshake of
//! which nothing was received for longest: of the newcomer's own source, if that has as many as it
//! may; of any source otherwise. One host that opens connections and sends nothing so displaces its
//! own. [`Admission::try_admit`] takes no other's place.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Where connections come from, as far as limits go: what one host can have for itself. That is an
/// address of IPv4, and a network of 64 bits of IPv6 (RFC 4291 §2.5.4, RFC 6177 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// An IPv4 address.
    V4(u32),
    /// The first 64 bits of an IPv6 address.
    V6(u64),
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Source {
        match address.to_canonical() {
            IpAddr::V4(address) => Source::V4(address.to_bits()),
            IpAddr::V6(address) => Source::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// A place in an [`Admission`]. It changes whenever something is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PlaceId(u64);

/// Why a handshake lost its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Its source had as many as it may.
    Source,
    /// There were as many as may be in all.
    All,
}

/// The table of places. `T` is what tells the holder of a place that it lost it.
#[derive(Debug)]
pub(crate) struct Admission<T> {
    most: usize,
    most_per_source: usize,
    /// The next place's number: they grow, so that the lowest was not heard of for longest.
    next: u64,
    places: BTreeMap<PlaceId, (Source, T)>,
    by_source: BTreeMap<Source, BTreeSet<PlaceId>>,
}

impl<T> Admission<T> {
    /// At least one place each.
    pub(crate) fn new(most: usize, most_per_source: usize) -> Self {
        Admission {
            most: most.max(1),
            most_per_source: most_per_source.max(1),
            next: 0,
            places: BTreeMap::new(),
            by_source: BTreeMap::new(),
        }
    }

    /// Gives a handshake of `source` a place, and takes one from another if it must.
    pub(crate) fn admit(&mut self, source: Source, holder: T) -> (PlaceId, Option<(T, Limit)>) {
        let own = self.by_source.get(&source);
        let displaced = match own {
            Some(own) if own.len() >= self.most_per_source => {
                own.first().copied().map(|id| (id, Limit::Source))
            }
            _ if self.places.len() >= self.most => {
                self.places.keys().next().copied().map(|id| (id, Limit::All))
            }
            _ => None,
        };
        let displaced =
            displaced.and_then(|(id, limit)| self.remove(id).map(|(_, holder)| (holder, limit)));
        (self.insert(source, holder), displaced)
    }

    /// Gives a handshake of `source` a place, if there is one.
    pub(crate) fn try_admit(&mut self, source: Source, holder: T) -> Option<PlaceId> {
        let own = self.by_source.get(&source).map_or(0, BTreeSet::len);
        let room = own < self.most_per_source && self.places.len() < self.most;
        room.then(|| self.insert(source, holder))
    }

    /// Something was received: the place's new number, or `None` if it was lost already.
    pub(crate) fn heard(&mut self, id: PlaceId) -> Option<PlaceId> {
        let (source, holder) = self.remove(id)?;
        Some(self.insert(source, holder))
    }

    /// Gives a place back. One that was lost is no longer there to be given.
    pub(crate) fn remove(&mut self, id: PlaceId) -> Option<(Source, T)> {
        let removed = self.places.remove(&id)?;
        if let Some(own) = self.by_source.get_mut(&removed.0) {
            own.remove(&id);
            if own.is_empty() {
                self.by_source.remove(&removed.0);
            }
        }
        Some(removed)
    }

    fn insert(&mut self, source: Source, holder: T) -> PlaceId {
        let id = PlaceId(self.next);
        self.next += 1;
        self.places.insert(id, (source, holder));
        self.by_source.entry(source).or_default().insert(id);
        id
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_source_is_an_address_of_ipv4_and_64_bits_of_ipv6() {
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
        assert_eq!(source("192.0.2.1"), source("::ffff:192.0.2.1"));
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:0:0:1"));
        assert_ne!(source("2001:db8:0:1::1"), source("2001:db8:0:2::1"));
    }

    #[test]
    fn the_longest_silent_loses_its_place() {
        let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(source);
        let mut places = Admission::new(2, 2);
        let (first, _) = places.admit(a, "first");
        places.admit(b, "second");
        let first = places.heard(first).unwrap();
        assert_eq!(places.admit(c, "third").1, Some(("second", Limit::All)));
        assert_eq!(places.admit(c, "fourth").1, Some(("first", Limit::All)));
        assert_eq!(places.heard(first), None, "it is lost");
        assert_eq!(places.admit(c, "fifth").1, Some(("third", Limit::Source)));
    }

    #[test]
    fn one_host_displaces_its_own() {
        let mut places = Admission::new(1024, 128);
        let (other, _) = places.admit(source("192.0.2.1"), 0);
        let displaced =
            (1..=100_000).filter(|n| places.admit(source("192.0.2.66"), *n).1.is_some()).count();
        assert_eq!((displaced, places.places.len()), (100_000 - 128, 129));
        assert!(places.heard(other).is_some());
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Admit(u8),
        TryAdmit(u8),
        Heard(usize),
        Remove(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..6u8).prop_map(Step::Admit),
            2 => (0..6u8).prop_map(Step::TryAdmit),
            2 => any::<usize>().prop_map(Step::Heard),
            1 => any::<usize>().prop_map(Step::Remove),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// Against a plain list, the longest silent in front.
        #[test]
        fn it_is_bounded_and_displaces_as_a_list_would(
            steps in steps(),
            most in 1..12usize,
            per_source in 1..12usize,
        ) {
            let mut places = Admission::new(most, per_source);
            let mut list: Vec<(u8, usize, PlaceId)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Admit(host) => {
                        let own = list.iter().filter(|place| place.0 == host).count();
                        let expected = if own >= per_source {
                            let at = list.iter().position(|place| place.0 == host).unwrap();
                            Some((list.remove(at).1, Limit::Source))
                        } else if list.len() >= most {
                            Some((list.remove(0).1, Limit::All))
                        } else {
                            None
                        };
                        let (id, displaced) = places.admit(Source::V4(host.into()), number);
                        prop_assert_eq!(displaced, expected);
                        list.push((host, number, id));
                    }
                    Step::TryAdmit(host) => {
                        let own = list.iter().filter(|place| place.0 == host).count();
                        let room = own < per_source && list.len() < most;
                        let id = places.try_admit(Source::V4(host.into()), number);
                        prop_assert_eq!(id.is_some(), room);
                        list.extend(id.map(|id| (host, number, id)));
                    }
                    Step::Heard(at) if !list.is_empty() => {
                        let (host, number, id) = list.remove(at % list.len());
                        list.push((host, number, places.heard(id).unwrap()));
                    }
                    Step::Remove(at) if !list.is_empty() => {
                        let (host, number, id) = list.remove(at % list.len());
                        prop_assert_eq!(
                            places.remove(id),
                            Some((Source::V4(host.into()), number))
                        );
                        prop_assert_eq!(places.heard(id), None);
                    }
                    Step::Heard(_) | Step::Remove(_) => {}
                }
                prop_assert_eq!(places.places.len(), list.len());
                prop_assert!(list.len() <= most);
                let counted: usize = places.by_source.values().map(BTreeSet::len).sum();
                prop_assert_eq!(counted, list.len());
                prop_assert!(places.by_source.values().all(|own| (1..=per_source).contains(&own.len())));
            }
        }
    }
}
