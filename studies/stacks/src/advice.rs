//! What to change, with what it saves.

use serde::Serialize;
use stats::{Bootstrap, Confidence, Estimate};
use tls_drivers::{Contexts, Group, Key, Locks, Suite, Version, Workload};

use crate::sample::value;
use crate::summary::{Cell, Summary, Want};

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Another library, of any family.
    Library,
    /// Another version of the same family.
    Version,
    /// An ECDSA key for an RSA key.
    Key,
    /// Resumption for a full handshake.
    Resume,
    /// A context for each thread for one that is shared.
    Contexts,
    /// Light locks for the C library's.
    Locks,
    /// TLS 1.3 for TLS 1.2.
    Tls13,
    /// The hybrid group: it costs.
    PostQuantum,
}

/// A change and what it does to the server's CPU time (or, for contexts and locks, to the rate).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What is changed.
    pub kind: Kind,
    /// The library that is run today.
    pub from: String,
    /// What is run instead: a library, or what is switched on.
    pub to: String,
    /// CPU time of the server today, in microseconds per connection, or connections per second.
    pub today: Estimate,
    /// What it is after the change.
    pub after: Estimate,
    /// What is saved, in the same unit (for rates: what is won).
    pub saved: Estimate,
    /// The command that measures the change's other side.
    pub command: String,
}

impl Change {
    /// What is saved as a share of today, in per cent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.saved.value / self.today.value
    }

    /// Whether it is more than chance and more than a trifle.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        (self.saved.low > 0.0 || self.saved.high < 0.0) && self.percent().abs() >= 2.0
    }
}

/// The suite that modern servers agree on.
pub const MODERN: Suite = Suite {
    version: Version::Tls13,
    key: Key::EcdsaP256,
    group: Group::X25519,
    cipher: tls_drivers::Cipher::Aes128Gcm,
};

/// All changes that the samples can tell of; `seed` is that of the bootstrap.
#[must_use]
pub fn changes(summary: &Summary, seed: u64) -> Vec<Change> {
    let names = summary.measured();
    let mut all = Vec::new();
    let cost =
        |name: &str, workload, suite| summary.find(Want::handshake(workload, suite).of(name));
    let full = |name: &str| cost(name, Workload::Full, MODERN);
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            let kind = if family(from) == family(to) { Kind::Version } else { Kind::Library };
            all.extend(less(kind, from, to, full(from), full(to), seed));
        }
        let rsa = Suite { key: Key::Rsa2048, ..MODERN };
        let older = Suite { version: Version::Tls12, ..MODERN };
        let hybrid = Suite { group: Group::X25519MlKem768, ..MODERN };
        let pairs = [
            (Kind::Key, "ECDSA P-256 for RSA-2048", cost(from, Workload::Full, rsa), full(from)),
            (Kind::Resume, "resumption", full(from), cost(from, Workload::Resume, MODERN)),
            (Kind::Tls13, "TLS 1.3 for 1.2", cost(from, Workload::Full, older), full(from)),
            (Kind::PostQuantum, "X25519MLKEM768", full(from), cost(from, Workload::Full, hybrid)),
        ];
        for (kind, to, today, after) in pairs {
            all.extend(less(kind, from, to, today, after, seed));
        }
        all.extend(contention(summary, from, seed));
    }
    all
}

/// The family in a driver's name: `openssl` of `openssl-3.5.5`.
fn family(name: &str) -> &str {
    name.split_once('-').map_or(name, |(family, _)| family)
}

/// What sharing and locks cost where threads meet: at the most threads that were measured.
fn contention(summary: &Summary, name: &str, seed: u64) -> Vec<Change> {
    let mut found = Vec::new();
    for workload in [Workload::Resume, Workload::Full] {
        let threads = |cell: &&Cell| cell.point.threads;
        let want = Want { workload: Some(workload), ..Want::TIMED }.of(name);
        let own = Want { contexts: Contexts::PerThread, ..want };
        let light = Want { locks: Locks::Light, ..want };
        for (kind, to, want) in [
            (Kind::Contexts, "a context for each thread", own),
            (Kind::Locks, "light locks", light),
        ] {
            let Some(after) = summary.all(want).max_by_key(threads) else { continue };
            let same = |cell: &&Cell| {
                let (a, b) = (&cell.point, &after.point);
                (&a.sweep, a.wire, a.suite, a.threads) == (&b.sweep, b.wire, b.suite, b.threads)
            };
            let usual = Want { workload: Some(workload), ..Want::TIMED }.of(name);
            let Some(today) = summary.all(usual).find(same) else { continue };
            if after.point.threads > 1 && !found.iter().any(|one: &Change| one.kind == kind) {
                found.extend(more(kind, name, to, today, after, seed));
            }
        }
    }
    found
}

/// Less CPU time of the server.
fn less(
    kind: Kind,
    from: &str,
    to: &str,
    today: Option<&Cell>,
    after: Option<&Cell>,
    seed: u64,
) -> Option<Change> {
    change(kind, (from, to), today?, after?, (value::SERVER_CPU, 1.0), seed)
}

/// A higher rate.
fn more(kind: Kind, from: &str, to: &str, today: &Cell, after: &Cell, seed: u64) -> Option<Change> {
    change(kind, (from, to), today, after, (value::RATE, -1.0), seed)
}

fn change(
    kind: Kind,
    (from, to): (&str, &str),
    today: &Cell,
    after: &Cell,
    (name, sign): (&str, f64),
    seed: u64,
) -> Option<Change> {
    let (before, then) = (today.samples(name), after.samples(name));
    let bootstrap = Bootstrap { resamples: 400, seed };
    let difference = |medians: &[f64]| match medians {
        [before, then] => sign * (before - then),
        _ => f64::NAN,
    };
    let saved =
        stats::bootstrap_medians(&[&before, &then], bootstrap, Confidence::C95, difference).ok()?;
    Some(Change {
        kind,
        from: from.to_owned(),
        to: to.to_owned(),
        today: today.median(name)?,
        after: after.median(name)?,
        saved,
        command: after.command.clone(),
    })
}

/// Of the changes of a kind the one that saves most of `from`'s time, if any surely does.
#[must_use]
pub fn best<'a>(changes: &'a [Change], kinds: &[Kind], from: &str) -> Option<&'a Change> {
    changes
        .iter()
        .filter(|change| change.from == from && kinds.contains(&change.kind))
        .filter(|change| change.is_sure() && change.saved.value > 0.0)
        .max_by(|a, b| a.percent().total_cmp(&b.percent()))
}
