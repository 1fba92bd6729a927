//! Clients that come to another name of a server that they know: sessions that were resumed across names, and
//! those that could have been.
//!
//! A server that has several names behind one address, one certificate for them and one set of ticket keys
//! could resume a session at whichever name the client asks for next (RFC 8446 §4.6.1 leaves it to what both
//! know). Nothing in a handshake says at which name its session began. What can be known is where the client
//! was seen before: it resumes at a name at which it was never seen, and was seen at another of the same
//! server; or it makes a full handshake there. The first may as well be a session from before the records,
//! and the second a client behind the same address as another: both counts are the most that there were.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use serde::Serialize;
use siphasher::sip::SipHasher13;
use tracker::{Class, Connection, TlsFacts};

use super::names::resumption_in_vain;

/// Pairs of client and server that are remembered: the last ones to be seen first.
const PAIRS: usize = 65_536;
/// Names of a pair that are remembered.
const NAMES: usize = 16;
/// Keys the hashes.
const KEY: u64 = 0x6372_6f73_7369_6e67;

/// Handshakes with a server name that completed, by whether the client's address was seen at that server before,
/// and at which name. All add up to `handshakes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CrossNames {
    /// All of these handshakes.
    pub handshakes: u64,
    /// Of an address that was not seen at this server before.
    pub first: u64,
    /// At a name at which it was seen before.
    pub same_name: u64,
    /// Resumed at a name new to it, at a server known to it: across names, or by an older session.
    pub resumed: u64,
    /// Full there, though the client brought a session: refused, or too old.
    pub refused: u64,
    /// Full there in TLS 1.3, without one: what a session that serves all names would have spared.
    pub missed_tls13: u64,
    /// The same in TLS 1.2, whose servers must take no session of another name (RFC 6066 §3).
    pub missed_tls12: u64,
}

impl CrossNames {
    fn add(&mut self, other: &CrossNames) {
        self.handshakes += other.handshakes;
        self.first += other.first;
        self.same_name += other.same_name;
        self.resumed += other.resumed;
        self.refused += other.refused;
        self.missed_tls13 += other.missed_tls13;
        self.missed_tls12 += other.missed_tls12;
    }

    /// Whether any client came to a second name.
    #[must_use]
    pub fn any(&self) -> bool {
        self.resumed + self.refused + self.missed_tls13 + self.missed_tls12 > 0
    }
}

/// What a handshake has to do with sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    Resumed,
    Refused,
    None { tls13: bool },
}

/// Who was seen where, in bounded memory.
#[derive(Debug, Clone)]
pub(crate) struct Crossings {
    seed: u64,
    seen: BTreeMap<u64, Vec<u64>>,
    /// The pairs, the one that was seen first in front.
    order: VecDeque<u64>,
    pub(crate) found: CrossNames,
}

impl Crossings {
    pub(crate) fn new(seed: u64) -> Crossings {
        Crossings {
            seed,
            seen: BTreeMap::new(),
            order: VecDeque::new(),
            found: CrossNames::default(),
        }
    }

    /// Takes a connection with TLS.
    pub(crate) fn take(&mut self, connection: &Connection, tls: &TlsFacts) {
        let (Some(name), Some(version)) = (tls.server_name.as_deref(), tls.version) else { return };
        let brought = tls.psk_offered || resumption_in_vain(tls, Class::Full);
        let session = match connection.class() {
            None | Some(Class::Failed) => return,
            Some(Class::Resumed | Class::ZeroRtt) => Session::Resumed,
            Some(Class::HelloRetry) if tls.psk_accepted => Session::Resumed,
            Some(Class::Full | Class::HelloRetry) if brought => Session::Refused,
            Some(Class::Full | Class::HelloRetry) => Session::None { tls13: version.is_tls13() },
        };
        let pair = self.hash(&(connection.client.ip(), connection.server));
        let name = self.hash(&name.to_ascii_lowercase());
        self.visit(pair, name, session);
    }

    fn hash(&self, what: &impl Hash) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, KEY);
        what.hash(&mut hasher);
        hasher.finish()
    }

    fn visit(&mut self, pair: u64, name: u64, session: Session) {
        let found = &mut self.found;
        found.handshakes += 1;
        let Some(names) = self.seen.get_mut(&pair) else {
            found.first += 1;
            self.remember(pair, name);
            return;
        };
        if names.contains(&name) {
            found.same_name += 1;
            return;
        }
        match session {
            Session::Resumed => found.resumed += 1,
            Session::Refused => found.refused += 1,
            Session::None { tls13: true } => found.missed_tls13 += 1,
            Session::None { tls13: false } => found.missed_tls12 += 1,
        }
        if names.len() >= NAMES {
            names.remove(0);
        }
        names.push(name);
    }

    fn remember(&mut self, pair: u64, name: u64) {
        self.order.push_back(pair);
        if self.order.len() > PAIRS
            && let Some(first) = self.order.pop_front()
        {
            self.seen.remove(&first);
        }
        self.seen.insert(pair, vec![name]);
    }

    /// Adds what another has found; what only both together could tell is not told.
    pub(crate) fn merge(&mut self, other: &Crossings) {
        self.found.add(&other.found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Session = Session::None { tls13: true };

    #[test]
    fn a_second_name_of_a_known_server_is_told_apart_by_its_session() {
        let mut crossings = Crossings::new(1);
        let visits = [
            (1, 10, FULL),
            (1, 10, Session::Resumed),
            (1, 11, Session::Resumed),
            (1, 12, FULL),
            (1, 13, Session::None { tls13: false }),
            (1, 14, Session::Refused),
            // Known by now, and another server.
            (1, 12, FULL),
            (2, 12, FULL),
            (2, 12, FULL),
        ];
        for (pair, name, session) in visits {
            crossings.visit(pair, name, session);
        }
        let expected = CrossNames {
            handshakes: 9,
            first: 2,
            same_name: 3,
            resumed: 1,
            refused: 1,
            missed_tls13: 1,
            missed_tls12: 1,
        };
        assert_eq!(crossings.found, expected);
        assert!(expected.any() && !CrossNames::default().any());
        let mut twice = crossings.clone();
        twice.merge(&crossings);
        assert_eq!((twice.found.handshakes, twice.found.missed_tls12), (18, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let mut crossings = Crossings::new(1);
        for pair in 0..70_000 {
            crossings.visit(pair, 1, FULL);
        }
        for name in 2..40 {
            crossings.visit(69_999, name, FULL);
        }
        assert_eq!((crossings.seen.len(), crossings.order.len()), (PAIRS, PAIRS));
        assert!(crossings.seen.values().all(|names| names.len() <= NAMES));
        // The first pairs were forgotten, and so was the first name.
        crossings.visit(0, 2, FULL);
        crossings.visit(69_999, 1, FULL);
        assert_eq!(crossings.found.first, 70_001);
        assert_eq!(crossings.found.missed_tls13, 39);
    }
}
