//! What a browser keeps from one load to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use units::Time;

use crate::cache::Cache;
use crate::policy::Policy;

/// Most hosts that are remembered.
const MAX_HOSTS: usize = 10_000;

/// Most addresses of a name that are looked at.
pub(crate) const MAX_ADDRESSES: usize = 16;

/// The number of a connection: never used twice with one [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// The names in a server's certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate(Arc<[String]>);

impl Certificate {
    /// Most names that are looked at.
    const MAX_NAMES: usize = 1_000;

    /// A certificate for these names, of which one may begin with `*.`.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Certificate {
        Certificate(names.into_iter().take(Certificate::MAX_NAMES).collect())
    }

    /// Whether it is for this host (RFC 9525 §6.3): a star stands for one whole label.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        self.0.iter().any(|name| match name.strip_prefix("*.") {
            Some(domain) => host.split_once('.').is_some_and(|(_, rest)| rest == domain),
            None => name == host,
        })
    }
}

/// How a connection carries requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    /// One after another: HTTP/1.1.
    One,
    /// Many at once: SPDY, HTTP/2, HTTP/3.
    Many {
        /// How many the server allows at once.
        limit: usize,
    },
}

/// A connection that was kept open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) id: ConnectionId,
    pub(crate) host: String,
    pub(crate) carries: Carries,
    pub(crate) address: Option<IpAddr>,
    pub(crate) certificate: Certificate,
    pub(crate) idle_since: Time,
}

/// The addresses of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) until: Time,
}

/// What a browser keeps from one load to the next: its cache, addresses of names, for which hosts it
/// has tickets and which of them multiplex, and open connections. A first visit begins with a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Responses, within the room of [`Policy::cache`](crate::Policy::cache).
    pub cache: Cache,
    names: BTreeMap<String, Resolved>,
    most_names: usize,
    tickets: BTreeSet<String>,
    /// Whether a host multiplexes.
    multiplexes: BTreeMap<String, bool>,
    pub(crate) connections: Vec<Kept>,
    next_connection: u64,
}

impl Memory {
    /// Nothing kept: a first visit.
    #[must_use]
    pub fn new(policy: &Policy) -> Memory {
        Memory {
            cache: Cache::new(policy.cache),
            names: BTreeMap::new(),
            most_names: policy.names,
            tickets: BTreeSet::new(),
            multiplexes: BTreeMap::new(),
            connections: Vec::new(),
            next_connection: 0,
        }
    }

    /// The connections that are kept open.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.iter().map(|kept| kept.id)
    }

    /// Forgets all connections, which the caller closes: a repeated visit with closed connections.
    pub fn close_connections(&mut self) -> Vec<ConnectionId> {
        self.connections.drain(..).map(|kept| kept.id).collect()
    }

    /// A kept connection was closed between two loads.
    pub fn closed(&mut self, connection: ConnectionId) {
        self.connections.retain(|kept| kept.id != connection);
    }

    /// Forgets the addresses of names.
    pub fn forget_names(&mut self) {
        self.names.clear();
    }

    /// Forgets the tickets of all hosts: the next handshakes are full ones.
    pub fn forget_tickets(&mut self) {
        self.tickets.clear();
    }

    /// A host is known to multiplex or not, as a browser is told by a load before, an `Alt-Svc` or an
    /// option: to one that does, no more than one connection is opened.
    pub fn expect(&mut self, host: &str, multiplexes: bool) {
        if self.multiplexes.len() < MAX_HOSTS || self.multiplexes.contains_key(host) {
            self.multiplexes.insert(host.to_owned(), multiplexes);
        }
    }

    pub(crate) fn multiplexes(&self, host: &str) -> Option<bool> {
        self.multiplexes.get(host).copied()
    }

    /// A ticket came from this host.
    pub fn has_ticket(&mut self, host: &str) {
        if self.tickets.len() < MAX_HOSTS {
            self.tickets.insert(host.to_owned());
        }
    }

    pub(crate) fn ticket(&self, host: &str) -> bool {
        self.tickets.contains(host)
    }

    /// The addresses of a name, if they still count at `now`.
    pub(crate) fn addresses(&self, name: &str, now: Time) -> Option<&[IpAddr]> {
        let resolved = self.names.get(name)?;
        (now < resolved.until).then_some(resolved.addresses.as_slice())
    }

    /// Keeps the addresses of a name; if there is no room, in place of those that end first.
    pub(crate) fn keep_addresses(&mut self, name: &str, resolved: Resolved) {
        self.names.insert(name.to_owned(), resolved);
        while self.names.len() > self.most_names {
            let first = self.names.iter().min_by_key(|(_, resolved)| resolved.until);
            let Some(first) = first.map(|(name, _)| name.clone()) else { return };
            self.names.remove(&first);
        }
    }

    pub(crate) fn next_connection(&mut self) -> ConnectionId {
        self.next_connection += 1;
        ConnectionId(self.next_connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_label() {
        let names = ["www.example", "*.img.example"].map(str::to_owned);
        let certificate = Certificate::new(names);
        for (host, covered) in [
            ("www.example", true),
            ("a.img.example", true),
            ("img.example", false),
            ("a.b.img.example", false),
            ("example", false),
        ] {
            assert_eq!(certificate.covers(host), covered, "{host}");
        }
    }

    #[test]
    fn names_count_until_their_end_and_are_bounded() {
        let mut memory = Memory::new(&Policy { names: 2, ..Policy::chromium() });
        for (at, name) in ["a", "b", "c"].iter().enumerate() {
            let until = Time::from_millis(10 * (at as u64 + 1));
            memory.keep_addresses(name, Resolved { addresses: Vec::new(), until });
        }
        assert!(memory.addresses("a", Time::ZERO).is_none());
        assert!(memory.addresses("b", Time::from_millis(19)).is_some());
        assert!(memory.addresses("b", Time::from_millis(20)).is_none());
    }
}
