//! What the visits say.

use std::time::Duration;

use serde::Serialize;
use stats::Estimate;

use super::client::Client;
use super::policy::{LIFETIMES, POLICIES, Policy};
use super::{RoundTrips, Tickets};

/// Fewer returns say too little.
const FEWEST: u64 = 100;
/// The share of the hits of the longest lifetime that the advised one has at least.
const ENOUGH: f64 = 0.95;
/// Parts of the clients, of which one at a time is left out for the intervals.
const PARTS: usize = 20;
/// The 97.5 % quantile of Student's t with one degree of freedom less than there are parts.
const T: f64 = 2.093;

/// What clients that came back would have found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Handshakes that completed.
    pub handshakes: u64,
    /// One client of so many was kept.
    pub one_of: u64,
    /// Clients, by address and server name, that were kept.
    pub clients: u64,
    /// Time from the first handshake to the last, seconds.
    pub span_s: f64,
    /// Returns of these: all handshakes but each one's first.
    pub returns: u64,
    /// Returns that brought a ticket or a pre-shared key.
    pub brought: u64,
    /// Returns that resumed a session, as it was.
    pub resumed: u64,
    /// Handshakes that were not in order of time: their time away is not right.
    pub late: u64,
    /// What policies of a lifetime would have done.
    pub lifetimes: Vec<PolicyRow>,
    /// By rotation of the keys.
    pub rotations: Vec<PolicyRow>,
    /// By how long they were away.
    pub away: Vec<AwayRow>,
    /// What to set, if enough came back.
    pub advice: Option<Advice>,
}

/// What one policy would have done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyRow {
    /// When a ticket would have been accepted.
    pub policy: Policy,
    /// Whether the records are long enough to tell.
    pub told: bool,
    /// The share of returns that would have resumed at most, with its interval of 95 %.
    pub hits: Estimate,
    /// The same of clients that brought a ticket at least once; `None` where none did.
    pub hits_of_known: Option<Estimate>,
    /// The share of all handshakes, first ones too.
    pub of_all: f64,
    /// The mean round trip that a hit in TLS 1.2 saves, ms.
    pub saves_tls12_ms: Option<f64>,
    /// The mean round trip that early data on a hit in TLS 1.3 could save, ms.
    pub saves_tls13_ms: Option<f64>,
}

/// Returns after about the same time away, as they were.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AwayRow {
    /// Away no longer than this, and longer than that of the row before, seconds; `None` in the last.
    pub up_to_s: Option<u64>,
    /// How many handshakes came after such a time.
    pub returns: u64,
    /// Of these brought a ticket.
    pub brought: u64,
    /// Of these resumed.
    pub resumed: u64,
}

/// What to set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The lifetime, seconds: the shortest that has 95 % of the hits of the longest one told.
    pub lifetime_s: u64,
    /// Its share of returns that would have resumed at most.
    pub hits: f64,
    /// What the longest lifetime told would have, and which, seconds.
    pub longest_s: u64,
    /// Its share of returns that would have resumed at most.
    pub hits_of_longest: f64,
    /// Whether a longer lifetime than the records can tell may be better still.
    pub may_be_longer: bool,
    /// The share of returns that would have resumed if tickets served all server names.
    pub hits_across_names: f64,
}

/// Sums over clients, for each part of them.
#[derive(Clone, Copy, Default)]
struct Part {
    returns: u64,
    hits: [u64; POLICIES],
}

impl Part {
    fn add(&mut self, client: &Client) {
        self.returns += u64::from(client.returns());
        for (sum, hits) in self.hits.iter_mut().zip(client.hits) {
            *sum += u64::from(hits);
        }
    }
}

impl Tickets {
    /// What the visits until now say.
    #[must_use]
    pub fn answer(&self) -> Answer {
        if !self.waiting.is_empty() {
            let mut settled = self.clone();
            settled.settle();
            return settled.answer();
        }
        let (mut all, mut known) = ([Part::default(); PARTS], [Part::default(); PARTS]);
        let (mut visits, mut brought, mut resumed) = (0, 0, 0);
        for ((address, _), client) in &self.clients {
            visits += u64::from(client.visits);
            brought += u64::from(client.brought);
            resumed += u64::from(client.resumed);
            let part = (address % PARTS as u64) as usize;
            for (sums, counts) in [(&mut all, true), (&mut known, client.brings)] {
                if let Some(part) = sums.get_mut(part).filter(|_| counts) {
                    part.add(client);
                }
            }
        }
        let span = self.first.map_or(Duration::ZERO, |first| self.last.saturating_since(first));
        let rows: Vec<PolicyRow> = Policy::all()
            .into_iter()
            .enumerate()
            .zip(&self.round_trips)
            .map(|((at, policy), [tls12, tls13])| {
                let hits: u64 = all.iter().filter_map(|part| part.hits.get(at)).sum();
                PolicyRow {
                    policy,
                    told: policy.longest() <= span,
                    hits: share(&all, at).unwrap_or(NOTHING),
                    hits_of_known: share(&known, at),
                    of_all: if visits == 0 { 0.0 } else { hits as f64 / visits as f64 },
                    saves_tls12_ms: RoundTrips::mean(*tls12),
                    saves_tls13_ms: RoundTrips::mean(*tls13),
                }
            })
            .collect();
        let (lifetimes, rotations) = rows.split_at(LIFETIMES.len());
        let returns: u64 = all.iter().map(|part| part.returns).sum();
        Answer {
            handshakes: self.visits,
            one_of: 1_u64.checked_shl(self.level).unwrap_or(u64::MAX),
            clients: self.clients.len() as u64,
            span_s: span.as_secs_f64(),
            returns,
            brought,
            resumed,
            late: self.late,
            advice: if returns < FEWEST { None } else { self.advice(lifetimes) },
            lifetimes: lifetimes.to_vec(),
            rotations: rotations.to_vec(),
            away: self.away_rows(),
        }
    }

    fn away_rows(&self) -> Vec<AwayRow> {
        let bounds = LIFETIMES.iter().map(|lifetime| Some(lifetime.as_secs())).chain([None]);
        let row = |(up_to_s, away): (Option<u64>, &super::Away)| AwayRow {
            up_to_s,
            returns: away.returns,
            brought: away.brought,
            resumed: away.resumed,
        };
        bounds.zip(&self.away).map(row).collect()
    }

    /// The shortest lifetime that is about as good as the longest one told.
    fn advice(&self, lifetimes: &[PolicyRow]) -> Option<Advice> {
        let told = || lifetimes.iter().enumerate().filter(|(_, row)| row.told);
        let (_, longest) = told().next_back()?;
        if longest.hits.value <= 0.0 {
            return None;
        }
        let (at, chosen) = told().find(|(_, row)| row.hits.value >= ENOUGH * longest.hits.value)?;
        let (mut hits, mut returns) = (0, 0);
        for client in self.across.values() {
            hits += client.hits.get(at).copied().map_or(0, u64::from);
            returns += u64::from(client.returns());
        }
        let last = lifetimes.last().is_none_or(|row| !row.told);
        Some(Advice {
            lifetime_s: chosen.policy.longest().as_secs(),
            hits: chosen.hits.value,
            longest_s: longest.policy.longest().as_secs(),
            hits_of_longest: longest.hits.value,
            // Where the longest one told is the one to set, those behind it may be better.
            may_be_longer: last && chosen.policy == longest.policy,
            hits_across_names: if returns == 0 { 0.0 } else { hits as f64 / returns as f64 },
        })
    }
}

/// No return at all.
const NOTHING: Estimate = Estimate { value: 0.0, low: 0.0, high: 1.0, confidence: 0.0 };

/// The share of returns that hit, with its interval: one part of the clients is left out at a time
/// (the jackknife), for the returns of one client are not independent of each other.
fn share(parts: &[Part; PARTS], policy: usize) -> Option<Estimate> {
    let of = |part: &Part| part.hits.get(policy).copied().unwrap_or_default();
    let hits: u64 = parts.iter().map(of).sum();
    let returns: u64 = parts.iter().map(|part| part.returns).sum();
    if returns == 0 {
        return None;
    }
    let value = hits as f64 / returns as f64;
    let without = |part: &Part| {
        let left = returns - part.returns;
        if left == 0 { value } else { (hits - of(part)) as f64 / left as f64 }
    };
    let count = PARTS as f64;
    let mean = parts.iter().map(without).sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (without(part) - mean).powi(2)).sum();
    let half = T * (squares * (count - 1.0) / count).sqrt();
    let (low, high) = ((value - half).max(0.0), (value + half).min(1.0));
    Some(Estimate { value, low, high, confidence: 0.95 })
}
