//! How many connections may be open: in all, and from one source.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use sslmtcp::Source;

/// The bounds, and what is open.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    most_per_source: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_source: BTreeMap<Source, usize>,
}

/// Which bound was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    All,
    Source,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    places: Arc<Places>,
    source: Source,
}

impl Places {
    pub(crate) fn new(most: usize, most_per_source: usize) -> Arc<Places> {
        Arc::new(Places { most, most_per_source, open: Mutex::default() })
    }

    /// A place for a connection of `source`, or the bound that is met.
    pub(crate) fn hold(self: &Arc<Self>, source: Source) -> Result<Held, Limit> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.by_source.get(&source).is_some_and(|own| *own >= self.most_per_source) {
            return Err(Limit::Source);
        }
        if open.all >= self.most {
            return Err(Limit::All);
        }
        open.all += 1;
        *open.by_source.entry(source).or_default() += 1;
        Ok(Held { places: Arc::clone(self), source })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = self.places.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        if let Some(own) = open.by_source.get_mut(&self.source) {
            *own -= 1;
            if *own == 0 {
                open.by_source.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_source_leaves_room_for_others() {
        let source = |text: &str| Source::from(text.parse::<IpAddr>().unwrap());
        let places = Places::new(4, 3);
        let of_one: Vec<_> =
            (0..9).filter_map(|_| places.hold(source("2001:db8::1")).ok()).collect();
        assert_eq!(of_one.len(), 3);
        assert_eq!(places.hold(source("2001:db8::2")).err(), Some(Limit::Source));
        let other = places.hold(source("2001:db8:0:1::1")).unwrap();
        assert_eq!(places.hold(source("192.0.2.1")).err(), Some(Limit::All));
        drop((of_one, other));
        assert!(places.open.lock().unwrap().by_source.is_empty());
    }

    proptest! {
        /// Connections open and close; counts never pass their bounds, and end at nothing.
        #[test]
        fn what_is_open_is_bounded(
            steps in prop::collection::vec((any::<bool>(), 0..4u32), 0..100),
            most in 1..8usize,
            per_source in 1..8usize,
        ) {
            let places = Places::new(most, per_source);
            let mut held: Vec<(u32, Held)> = Vec::new();
            for (opens, host) in steps {
                let own = held.iter().filter(|(of, _)| *of == host).count();
                if opens {
                    let expected = match () {
                        () if own >= per_source => Some(Limit::Source),
                        () if held.len() >= most => Some(Limit::All),
                        () => None,
                    };
                    match places.hold(Source::V4(host)) {
                        Ok(place) => {
                            prop_assert_eq!(expected, None);
                            held.push((host, place));
                        }
                        Err(limit) => prop_assert_eq!(expected, Some(limit)),
                    }
                } else if let Some(at) = held.iter().position(|(of, _)| *of == host) {
                    held.remove(at);
                }
            }
            drop(held);
            let open = places.open.lock().unwrap();
            prop_assert_eq!((open.all, open.by_source.len()), (0, 0));
        }
    }
}
