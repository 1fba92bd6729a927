//! How long session tickets should live, and how often their keys may change: what clients that came
//! back would have found.
//!
//! [`Tickets`] takes handshakes in order of time and keeps, for each client and server name, when the
//! ticket that it would hold was issued under each [`Policy`]; [`Tickets::answer`] says how many returns
//! would have resumed, and names a lifetime.
//!
//! # What is assumed
//! A client is an address, and a ticket serves the server name that it was issued for. In TLS 1.3 every
//! handshake brings new tickets (RFC 8446 §4.6.1), so that a client that comes often enough resumes for
//! ever. In TLS 1.2 a resumed session goes on with the ticket that it has (RFC 5077 §3.3 leaves a new one to
//! the server, and servers give one when its key is no longer the newest): it ends that long after the
//! full handshake, however often it was used. A hit saves a client of TLS 1.2 one round trip, its own; in
//! TLS 1.3 it saves none, but early data, which need it, save one.
//!
//! # What cannot be known
//! Several clients behind one address (NAT) look like one that returns: the hits are the most that there
//! can be. Clients without tickets (private windows, programs that keep none, restarts) return and never
//! bring one: hits are told apart for clients that brought one at least once. A client whose address
//! changed looks new. What came before the first record is not known, nor a lifetime longer than the
//! records.
//!
//! # Bounds
//! At most [`Bounds::clients`] are kept; beyond, half of them are left out by a keyed hash of the address,
//! again and again, so that those kept are a fair draw. At most [`Bounds::waiting`] visits wait for earlier
//! ones.

mod answer;
mod client;
mod policy;
mod present;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use siphasher::sip::SipHasher13;
use tracker::{Class, Connection};
use units::Time;

pub use answer::{Advice, Answer, AwayRow, PolicyRow};
pub use policy::{LIFETIMES, Policy};

use client::Client;
use policy::POLICIES;

/// What bounds [`Tickets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Pairs of a client and a server name that are kept, and clients.
    pub clients: usize,
    /// Visits that wait for earlier ones: records come when a connection's is complete.
    pub waiting: usize,
    /// Keys the draw.
    pub seed: u64,
}

impl Default for Bounds {
    /// 100,000 clients: some 80 MB at most. 16,384 visits wait, in 1 MB: those of a minute at 270 a second.
    fn default() -> Self {
        Bounds { clients: 100_000, waiting: 16_384, seed: 1 }
    }
}

/// A handshake that completed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Visit<'a> {
    /// When it began.
    pub at: Time,
    /// The client's address, hidden or not.
    pub client: &'a str,
    /// The server name asked for; empty for none.
    pub name: &'a str,
    /// Whether it was of TLS 1.3.
    pub tls13: bool,
    /// Whether the client brought a ticket or a pre-shared key.
    pub brought: bool,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// The client's round-trip time.
    pub round_trip: Option<Duration>,
}

impl<'a> Visit<'a> {
    /// Of a record that was read back; `None` if its handshake did not complete.
    #[must_use]
    pub fn of_record(record: &'a export::Record) -> Option<Visit<'a>> {
        let class = record.class.as_deref().filter(|class| *class != "failed")?;
        let version = record.version.as_deref()?;
        Some(Visit {
            at: Time::from_nanos(record.client_hello.unwrap_or(record.first_frame)),
            client: &record.client,
            name: record.sni.as_deref().unwrap_or_default(),
            tls13: version.starts_with("TLS 1.3"),
            brought: record.brought_ticket(),
            resumed: matches!(class, "resumed" | "zero_rtt"),
            round_trip: record.round_trip.map(Duration::from_nanos),
        })
    }

    /// Of a connection, whose client's address is `client` in words.
    #[must_use]
    pub fn of_connection(connection: &'a Connection, client: &'a str) -> Option<Visit<'a>> {
        let tls = connection.tls.as_ref()?;
        let class = connection.class().filter(|class| *class != Class::Failed)?;
        Some(Visit {
            at: tls.client_hello?,
            client,
            name: tls.server_name.as_deref().unwrap_or_default(),
            tls13: tls.version?.is_tls13(),
            brought: tls.psk_offered || tls.ticket_offered.is_some_and(|bytes| bytes > 0),
            resumed: matches!(class, Class::Resumed | Class::ZeroRtt),
            round_trip: connection.round_trip(),
        })
    }
}

/// A visit that waits for earlier ones, by hashes of its address and name.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// When it began, and how many had come before.
    order: (Time, u64),
    address: u64,
    name: u64,
    tls13: bool,
    brought: bool,
    resumed: bool,
    round_trip: Option<Duration>,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.order == other.order
    }
}

impl Eq for Held {}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    /// The earliest is the greatest, and leaves a heap first.
    fn cmp(&self, other: &Held) -> Ordering {
        other.order.cmp(&self.order)
    }
}

/// Hits of one policy, and the round trips of those that hit: all visits, drawn or not.
#[derive(Debug, Clone, Copy, Default)]
struct RoundTrips {
    count: u64,
    sum_ms: f64,
}

impl RoundTrips {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ms / self.count as f64)
    }
}

/// Returns after about the same time away.
#[derive(Debug, Clone, Copy, Default)]
struct Away {
    returns: u64,
    brought: u64,
    resumed: u64,
}

/// Handshakes of clients that come back, in bounded memory.
#[derive(Debug, Clone)]
pub struct Tickets {
    bounds: Bounds,
    /// One of 2 to the power of this is kept.
    level: u32,
    /// By hashes of address and server name.
    clients: BTreeMap<(u64, u64), Client>,
    /// By the address alone: tickets that serve all names.
    across: BTreeMap<u64, Client>,
    /// By policy, for TLS 1.2 and TLS 1.3.
    round_trips: [[RoundTrips; 2]; POLICIES],
    away: [Away; LIFETIMES.len() + 1],
    first: Option<Time>,
    last: Time,
    visits: u64,
    /// In order of time.
    waiting: BinaryHeap<Held>,
    /// Visits that came before another that was taken already, and did not wait any more.
    late: u64,
}

impl Tickets {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Tickets {
        Tickets {
            bounds,
            level: 0,
            clients: BTreeMap::new(),
            across: BTreeMap::new(),
            round_trips: [[RoundTrips::default(); 2]; POLICIES],
            away: [Away::default(); LIFETIMES.len() + 1],
            first: None,
            last: Time::ZERO,
            visits: 0,
            waiting: BinaryHeap::new(),
            late: 0,
        }
    }

    /// Takes a handshake. They come about in order of time: one that comes after [`Bounds::waiting`] later
    /// ones counts as if it came with the one before.
    pub fn take(&mut self, visit: &Visit<'_>) {
        self.visits += 1;
        let Visit { at, tls13, brought, resumed, round_trip, .. } = *visit;
        let (address, name) =
            (self.hash(visit.client), self.hash(&visit.name.to_ascii_lowercase()));
        let order = (at, self.visits);
        self.waiting.push(Held { order, address, name, tls13, brought, resumed, round_trip });
        while self.waiting.len() > self.bounds.waiting {
            let Some(first) = self.waiting.pop() else { return };
            self.count(&first);
        }
    }

    /// Counts what still waits: no more will come.
    pub fn settle(&mut self) {
        while let Some(first) = self.waiting.pop() {
            self.count(&first);
        }
    }

    fn count(&mut self, held: &Held) {
        let Held { order: (at, _), address, name, tls13, brought, resumed, round_trip } = *held;
        let visit = &Visit { at, client: "", name: "", tls13, brought, resumed, round_trip };
        self.late += u64::from(at < self.last);
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at);
        if address.leading_zeros() < self.level {
            return;
        }
        // What a ticket for all names would do is counted at the clients themselves.
        self.across.entry(address).or_default().visit(visit);
        let client = self.clients.entry((address, name)).or_default();
        if let Some(away) = client.away(visit.at) {
            let place = LIFETIMES.partition_point(|lifetime| *lifetime < away);
            if let Some(counts) = self.away.get_mut(place) {
                counts.returns += 1;
                counts.brought += u64::from(visit.brought);
                counts.resumed += u64::from(visit.resumed);
            }
        }
        let hits = client.visit(visit);
        if let Some(round_trip) = visit.round_trip {
            let ms = round_trip.as_secs_f64() * 1e3;
            for (of_policy, hit) in self.round_trips.iter_mut().zip(hits) {
                let [tls12, tls13] = of_policy;
                let counted = if visit.tls13 { tls13 } else { tls12 };
                counted.count += u64::from(hit);
                counted.sum_ms += if hit { ms } else { 0.0 };
            }
        }
        self.draw();
    }

    fn hash(&self, text: &str) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.bounds.seed, 0x7469_636b_6574_7321);
        text.hash(&mut hasher);
        hasher.finish()
    }

    /// Leaves out half of the clients while there are too many.
    fn draw(&mut self) {
        while self.clients.len() > self.bounds.clients.max(1) && self.level < u64::BITS {
            self.level += 1;
            let level = self.level;
            self.clients.retain(|(address, _), _| address.leading_zeros() >= level);
            self.across.retain(|address, _| address.leading_zeros() >= level);
        }
    }
}
