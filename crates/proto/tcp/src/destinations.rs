//! What is remembered of destinations: Fast Open cookies and black holes (RFC 7413 §4.1.3).

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use units::Time;

use crate::secrets::Key;

/// How long a path is doubted that has carried data on a SYN before: it may have lost one as it loses any segment.
const DOUBTED: Duration = Duration::from_secs(10);

/// A table of bounded size; the entry first made makes room.
#[derive(Debug)]
pub(crate) struct Memory<V, K = IpAddr> {
    entries: HashMap<K, V, Key>,
    order: VecDeque<K>,
    limit: usize,
}

impl<V, K: Copy + Eq + Hash> Memory<V, K> {
    pub(crate) fn new(limit: usize, key: Key) -> Self {
        Memory { entries: HashMap::with_hasher(key), order: VecDeque::new(), limit }
    }

    pub(crate) fn get(&self, address: K) -> Option<&V> {
        self.entries.get(&address)
    }

    pub(crate) fn insert(&mut self, address: K, value: V) {
        if self.entries.insert(address, value).is_some() {
            return;
        }
        self.order.push_back(address);
        while self.order.len() > self.limit {
            if let Some(oldest) = self.order.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn remove(&mut self, address: K) {
        if self.entries.remove(&address).is_some() {
            self.order.retain(|kept| *kept != address);
        }
    }
}

/// A Fast Open cookie: an even number of bytes from 4 to 16 (RFC 7413 §4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cookie {
    bytes: [u8; 16],
    len: u8,
}

impl Cookie {
    pub(crate) fn new(cookie: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        bytes.get_mut(..cookie.len())?.copy_from_slice(cookie);
        (cookie.len() >= 4 && cookie.len().is_multiple_of(2))
            .then_some(Cookie { bytes, len: cookie.len() as u8 })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// Cookies to send, and destinations to send no data to in a SYN.
#[derive(Debug)]
pub(crate) struct Destinations {
    pub cookies: Memory<Cookie>,
    black_holes: Memory<Time>,
    /// Those to which a SYN with data got through, since the last that did not.
    carried: Memory<()>,
    /// Ports that have refused Fast Open (RFC 7413 §4.1.3.1), and until when that counts.
    refusals: Memory<Time, SocketAddr>,
    memory: Duration,
}

impl Destinations {
    pub(crate) fn new(limit: usize, memory: Duration, key: Key) -> Self {
        let (cookies, black_holes) = (Memory::new(limit, key), Memory::new(limit, key));
        let (carried, refusals) = (Memory::new(limit, key), Memory::new(limit, key));
        Destinations { cookies, black_holes, carried, refusals, memory }
    }

    /// The path to `address` dropped a SYN with data: a black hole, unless it has carried some before and loses only
    /// now and then. Of several that were under way together, the first decides.
    pub(crate) fn remember_black_hole(&mut self, now: Time, address: IpAddr) {
        if self.is_black_hole(now, address) {
            return;
        }
        let memory = match self.carried.get(address) {
            Some(()) => self.memory.min(DOUBTED),
            None => self.memory,
        };
        self.carried.remove(address);
        self.black_holes.insert(address, now + memory);
    }

    /// A SYN with data got through to `address`.
    pub(crate) fn forget_black_hole(&mut self, address: IpAddr) {
        self.black_holes.remove(address);
        self.carried.insert(address, ());
    }

    /// A port has not taken the data of a SYN with a cookie, or an ICMP error or nothing at all answered it
    /// (RFC 7413 §4.1.3.1).
    pub(crate) fn remember_refusal(&mut self, now: Time, remote: SocketAddr) {
        let memory = match self.carried.get(remote.ip()) {
            // It may have been busy.
            Some(()) => self.memory.min(DOUBTED),
            None => self.memory,
        };
        self.refusals.insert(remote, now + memory);
    }

    pub(crate) fn forget_refusal(&mut self, remote: SocketAddr) {
        self.refusals.remove(remote);
    }

    /// Whether Fast Open is not to be tried with a port now.
    pub(crate) fn has_refused(&mut self, now: Time, remote: SocketAddr) -> bool {
        let refuses = self.refusals.get(remote).is_some_and(|until| now < *until);
        if !refuses {
            self.refusals.remove(remote);
        }
        refuses
    }

    pub(crate) fn is_black_hole(&mut self, now: Time, address: IpAddr) -> bool {
        match self.black_holes.get(address) {
            Some(until) if now < *until => true,
            Some(_) => {
                self.black_holes.remove(address);
                false
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Secrets;

    #[test]
    fn a_black_hole_is_forgotten_in_time_and_the_table_is_bounded() {
        let key = Secrets::new(&[1; 32]).table;
        let mut memory = Destinations::new(2, Duration::from_secs(10), key);
        let at = Time::from_millis;
        let host = |last| IpAddr::from([192, 0, 2, last]);
        memory.remember_black_hole(at(0), host(1));
        assert!(memory.is_black_hole(at(9_999), host(1)));
        assert!(!memory.is_black_hole(at(10_000), host(1)));
        for last in 1..=3 {
            memory.remember_black_hole(at(0), host(last));
        }
        assert!(!memory.is_black_hole(at(1), host(1)));
        assert!(memory.is_black_hole(at(1), host(3)));
        memory.forget_black_hole(host(3));
        assert!(!memory.is_black_hole(at(1), host(3)));
        assert_eq!(memory.black_holes.order.len(), 1);
    }

    #[test]
    fn a_path_that_has_carried_data_is_doubted_for_a_short_time_first() {
        let key = Secrets::new(&[1; 32]).table;
        let mut memory = Destinations::new(2, Duration::from_secs(3600), key);
        let (at, host) = (Time::from_millis, IpAddr::from([192, 0, 2, 1]));
        memory.forget_black_hole(host);
        // Two that were under way together.
        memory.remember_black_hole(at(0), host);
        memory.remember_black_hole(at(5), host);
        assert!(memory.is_black_hole(at(9_999), host));
        assert!(!memory.is_black_hole(at(10_000), host));
        // The next is dropped too: nothing has got through since.
        memory.remember_black_hole(at(11_000), host);
        assert!(memory.is_black_hole(at(3_610_999), host));
        assert!(!memory.is_black_hole(at(3_611_000), host));
    }
}
