//! The table against plain lists.

use super::*;
use proptest::prelude::*;

const LISTS: [Activity; 3] = [Activity::Open, Activity::Closed, Activity::Reported];

struct One {
    key: Key,
    links: Links,
    list: Activity,
    last: Time,
    port: u16,
}

impl Entry for One {
    fn key(&self) -> &Key {
        &self.key
    }
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
    fn list(&mut self) -> &mut Activity {
        &mut self.list
    }
    fn last(&self) -> Time {
        self.last
    }
}

fn of(a: SocketAddr, b: SocketAddr, tcp: bool) -> (Key, bool) {
    Key::new([a.ip(), b.ip()], [a.port(), b.port()], tcp)
}

fn key(port: u16) -> Key {
    of(([10, 0, 0, 1], port).into(), ([10, 0, 0, 2], 443).into(), true).0
}

fn one(port: u16, last: Time) -> One {
    One { key: key(port), links: Links::NONE, list: Activity::Open, last, port }
}

#[test]
fn both_directions_have_one_key_which_gives_its_ends() {
    let v6 = |last: u16, port: u16| SocketAddr::from(([0xfe80, 0, 0, 0, 0, 0, 0, last], port));
    for (a, b) in [
        (([10, 0, 0, 1], 5).into(), ([10, 0, 0, 1], 4).into()),
        (([10, 0, 0, 9], 5).into(), ([10, 0, 0, 10], 5).into()),
        (v6(1, 443), v6(2, 5)),
    ] {
        let ((there, low), (back, high)) = (of(a, b, true), of(b, a, true));
        assert_eq!((there, low), (back, !high));
        assert_eq!(there.ends(), if low { [a, b] } else { [b, a] });
        assert_ne!(there, of(a, b, false).0);
        let keyed = Keyed::new(1);
        assert_ne!(keyed.hash(&there), keyed.hash(&of(a, b, false).0));
        assert_ne!(keyed.hash(&there), Keyed::new(2).hash(&there));
    }
    // An IPv4 address in an IPv6 header is another address.
    let mapped = SocketAddr::from(([0, 0, 0, 0, 0, 0xffff, 0x0a00, 1], 5));
    let plain = SocketAddr::from(([10, 0, 0, 1], 5));
    assert_ne!(of(mapped, mapped, true).0, of(plain, plain, true).0);
}

proptest! {
    /// Against a plain list of the keys in order of activity.
    #[test]
    fn order_of_activity_is_kept(steps in proptest::collection::vec((0u16..12, 0u8..5), 0..200)) {
        let mut table = Table::new(7, 0);
        let mut model: [Vec<u16>; 3] = [Vec::new(), Vec::new(), Vec::new()];
        for (port, action) in steps {
            match (table.find(table.hash(&key(port)), &key(port)), action) {
                (None, _) => {
                    table.insert(one(port, Time::ZERO), Time::ZERO);
                    model[0].push(port);
                }
                (Some(at), 0) => {
                    prop_assert_eq!(table.remove(at).map(|one| one.port), Some(port));
                    model.iter_mut().for_each(|list| list.retain(|p| *p != port));
                }
                (Some(at), action) => {
                    let list = usize::from(action.min(3) - 1);
                    table.touch(at, LISTS[list], Time::ZERO);
                    model.iter_mut().for_each(|list| list.retain(|p| *p != port));
                    model[list].push(port);
                }
            }
            prop_assert_eq!(table.len(), model.iter().map(Vec::len).sum::<usize>());
        }
        for (list, expected) in LISTS.into_iter().zip(&model) {
            let mut left = Vec::new();
            while let Some(at) = table.oldest(list) {
                left.extend(table.remove(at).map(|one| one.port));
            }
            prop_assert_eq!(&left, expected);
        }
    }

    /// However rarely entries are moved, the one that was active least recently is found.
    #[test]
    fn the_stalest_is_found(
        period in 0u64..50, steps in proptest::collection::vec((0u16..30, 1u64..9), 1..200),
    ) {
        let mut table = Table::new(7, period);
        let mut model: Vec<u16> = Vec::new();
        let mut now = Time::ZERO;
        for (port, step) in steps {
            now += std::time::Duration::from_nanos(step);
            match table.find(table.hash(&key(port)), &key(port)) {
                None => {
                    table.insert(one(port, now), now);
                }
                Some(at) => {
                    table.get(at).unwrap().last = now;
                    table.touch(at, Activity::Open, now);
                }
            }
            model.retain(|p| *p != port);
            model.push(port);
            let stalest = table.stalest(Activity::Open).unwrap();
            prop_assert_eq!(table.get(stalest).unwrap().port, model[0]);
        }
    }

    /// Hashes that crowd together, as no keyed hash gives them.
    #[test]
    fn the_index_finds_what_it_holds(steps in proptest::collection::vec((0u32..40, any::<bool>()), 0..300)) {
        let mut index = Index::new();
        let mut model = std::collections::BTreeSet::new();
        let hash = |place: u32| (place % 5).wrapping_sub(2);
        for (place, add) in steps {
            let found = index.find(hash(place), |at| at == place);
            prop_assert_eq!(found.is_some(), model.contains(&place));
            match found {
                None if add => {
                    index.insert(hash(place), place);
                    model.insert(place);
                }
                Some((slot, _)) if !add => {
                    index.remove(slot);
                    model.remove(&place);
                }
                _ => {}
            }
            prop_assert_eq!(index.len, model.len());
            for place in &model {
                prop_assert!(index.find(hash(*place), |at| at == *place).is_some());
            }
        }
    }
}
