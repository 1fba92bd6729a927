//! Clients that tried again with less: what is on their way does not tolerate the hello that they sent first.
//!
//! Something between client and server may reset or swallow connections whose hello offers TLS 1.3, or is
//! longer than one segment. A client that knows such things tries again, with an older version or a shorter
//! hello, and loses the time until then. Two connections of one address to one server name are taken for
//! that: one whose hello got no ServerHello, and within a minute another that offers less. It may be
//! another client of the same address, so the count is the most that there were.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use siphasher::sip::SipHasher13;
use tracker::{Class, Connection, End, TlsFacts};
use units::Time;

use super::names::offers_tls13;
use super::spread::{Mould, Spread};

/// Pairs of client and server name that are remembered: the last ones.
const PAIRS: usize = 16_384;
/// Attempts of one pair that are remembered.
const ATTEMPTS: usize = 4;
/// The longest that a client may take until it tries again.
const PATIENCE: Duration = Duration::from_secs(60);
/// A hello that is so much shorter is another one, in bytes.
const SHORTER: u32 = 256;

units::named! {
    /// What the second hello has less of.
    pub enum Less: "fallback" {
        /// It does not offer TLS 1.3, the first one did.
        Version = "without TLS 1.3",
        /// It is shorter.
        Length = "with a shorter hello",
    }
}

units::named! {
    /// What became of the first hello.
    pub enum Fate: "fate of a hello" {
        /// The connection was reset.
        Reset = "reset",
        /// It was closed, or an alert came.
        Refused = "refused",
        /// Nothing came from the server.
        Silence = "no answer",
    }
}

/// An attempt of a client.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Attempt {
    at: Time,
    tls13: bool,
    hello_len: u32,
    /// Without a ServerHello: what became of it.
    unanswered: Option<Fate>,
}

/// How often it was seen, and what it cost.
#[derive(Debug, Clone)]
pub(crate) struct Fallback {
    pub count: u64,
    /// From the first hello to the second.
    pub lost: Spread,
}

/// Fallbacks, in bounded memory.
#[derive(Debug, Clone)]
pub(crate) struct Fallbacks {
    seed: u64,
    attempts: BTreeMap<u64, Vec<Attempt>>,
    /// The pairs, the one that was seen first in front.
    order: VecDeque<u64>,
    pub(crate) found: BTreeMap<(Less, Fate), Fallback>,
}

impl Fallbacks {
    pub(crate) fn new(seed: u64) -> Fallbacks {
        Fallbacks {
            seed,
            attempts: BTreeMap::new(),
            order: VecDeque::new(),
            found: BTreeMap::new(),
        }
    }

    /// Takes a connection with a ClientHello.
    pub(crate) fn take(&mut self, connection: &Connection, tls: &TlsFacts, mould: &Mould) {
        let Some(at) = tls.client_hello else { return };
        let unanswered = (connection.class() == Some(Class::Failed) && tls.server_hello.is_none())
            .then(|| fate(connection, tls));
        let attempt =
            Attempt { at, tls13: offers_tls13(tls), hello_len: tls.client_hello_len, unanswered };
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0x6661_6c6c_6261_636b);
        (connection.client.ip(), tls.server_name.as_deref()).hash(&mut hasher);
        self.attempt(hasher.finish(), attempt, mould);
    }

    /// Records come in the order in which handshakes end, so that the later attempt may come first.
    fn attempt(&mut self, pair: u64, new: Attempt, mould: &Mould) {
        if !self.attempts.contains_key(&pair) {
            self.order.push_back(pair);
            if self.order.len() > PAIRS
                && let Some(first) = self.order.pop_front()
            {
                self.attempts.remove(&first);
            }
        }
        let before = self.attempts.entry(pair).or_default();
        // Of several the nearest in time.
        let pairs = before.iter().enumerate().filter_map(|(at, old)| {
            let (first, second) = if old.at <= new.at { (old, &new) } else { (&new, old) };
            let how = fell_back(first, second)?;
            Some((second.at.saturating_since(first.at), at, how))
        });
        if let Some((lost, at, how)) = pairs.min() {
            before.swap_remove(at);
            let found = self.found.entry(how);
            let found = found.or_insert_with(|| Fallback { count: 0, lost: mould.spread() });
            found.count += 1;
            found.lost.record(lost);
            return;
        }
        if before.len() >= ATTEMPTS {
            before.remove(0);
        }
        before.push(new);
    }

    /// Adds what another has found; attempts of which each has one are not put together.
    pub(crate) fn merge(&mut self, other: Fallbacks) {
        for (how, theirs) in other.found {
            match self.found.get_mut(&how) {
                Some(ours) => {
                    ours.count += theirs.count;
                    ours.lost.merge(&theirs.lost);
                }
                None => {
                    self.found.insert(how, theirs);
                }
            }
        }
    }
}

/// Whether the second attempt is the first one's fallback, and how.
fn fell_back(first: &Attempt, second: &Attempt) -> Option<(Less, Fate)> {
    let fate = first.unanswered?;
    let later = second.at > first.at && second.at.saturating_since(first.at) <= PATIENCE;
    if !later {
        return None;
    }
    if first.tls13 && !second.tls13 {
        return Some((Less::Version, fate));
    }
    let shorter = second.hello_len.saturating_add(SHORTER) <= first.hello_len;
    (shorter && second.unanswered.is_none()).then_some((Less::Length, fate))
}

fn fate(connection: &Connection, tls: &TlsFacts) -> Fate {
    match connection.end {
        End::Reset => Fate::Reset,
        // The client itself closes what it has waited for in vain: only an alert tells.
        _ if tls.alerts.iter().any(|alert| !alert.from_client) => Fate::Refused,
        _ => Fate::Silence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Options;

    fn at(ms: u64, tls13: bool, hello_len: u32, unanswered: Option<Fate>) -> Attempt {
        Attempt { at: Time::from_millis(1_000_000 + ms), tls13, hello_len, unanswered }
    }

    fn found(attempts: &[(u64, Attempt)]) -> Vec<((Less, Fate), u64, f64)> {
        let mould = Mould::new(&Options::default()).unwrap();
        let mut fallbacks = Fallbacks::new(1);
        for (pair, attempt) in attempts {
            fallbacks.attempt(*pair, *attempt, &mould);
        }
        let found = fallbacks.found.iter();
        found.map(|(how, own)| (*how, own.count, own.lost.quantile(0.5).unwrap())).collect()
    }

    #[test]
    fn a_client_that_leaves_out_tls13_has_fallen_back() {
        let reset = at(0, true, 517, Some(Fate::Reset));
        let again = at(130, false, 220, None);
        let silent = at(0, true, 517, Some(Fate::Silence));
        let late = at(3_100, false, 220, None);
        let all = [(1, reset), (1, again), (2, late), (2, silent), (3, silent), (3, late)];
        let found = found(&all);
        assert_eq!(found.len(), 2, "{found:?}");
        let (how, count, ms) = found[0];
        assert_eq!((how, count), ((Less::Version, Fate::Reset), 1));
        assert!((ms / 130.0 - 1.0).abs() < 0.02, "{ms}");
        let (how, count, ms) = found[1];
        assert_eq!((how, count), ((Less::Version, Fate::Silence), 2), "in either order");
        assert!((ms / 3_100.0 - 1.0).abs() < 0.02, "{ms}");
    }

    #[test]
    fn records_that_come_late_are_put_to_the_nearest() {
        let failed = |ms| (1, at(ms, true, 517, Some(Fate::Reset)));
        let again = |ms| (1, at(ms, false, 220, None));
        let all = [again(100), again(1_100), again(2_100), failed(0), failed(1_000), failed(2_000)];
        let found = found(&all);
        assert_eq!((found.len(), found[0].1), (1, 3), "{found:?}");
        assert!((found[0].2 / 100.0 - 1.0).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn a_shorter_hello_that_is_answered_is_one_too() {
        let long = at(0, true, 1_800, Some(Fate::Silence));
        let short = at(900, true, 600, None);
        assert_eq!(found(&[(1, long), (1, short)])[0].0, (Less::Length, Fate::Silence));
        // A server that is down answers none.
        let down = at(900, true, 600, Some(Fate::Silence));
        assert!(found(&[(1, long), (1, down)]).is_empty());
        let same = at(900, true, 1_700, None);
        assert!(found(&[(1, long), (1, same)]).is_empty());
    }

    #[test]
    fn other_clients_other_times_and_answers_are_none() {
        let reset = at(0, true, 517, Some(Fate::Reset));
        let again = at(130, false, 220, None);
        assert!(found(&[(1, reset), (2, again)]).is_empty());
        assert!(found(&[(1, reset), (1, at(61_000, false, 220, None))]).is_empty());
        assert!(found(&[(1, at(0, true, 517, None)), (1, again)]).is_empty());
        assert!(found(&[(1, reset), (1, at(130, true, 517, None))]).is_empty());
        // One failure is one fallback.
        assert_eq!(found(&[(1, reset), (1, again), (1, at(200, false, 220, None))])[0].1, 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mould = Mould::new(&Options::default()).unwrap();
        let mut fallbacks = Fallbacks::new(1);
        for pair in 0..40_000 {
            for ms in 0..6 {
                fallbacks.attempt(pair, at(ms, true, 500, None), &mould);
            }
        }
        assert_eq!((fallbacks.attempts.len(), fallbacks.order.len()), (PAIRS, PAIRS));
        assert!(fallbacks.attempts.values().all(|attempts| attempts.len() <= ATTEMPTS));
    }
}
