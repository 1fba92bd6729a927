//! What to change: what each mode would save from the one that is run today.

use serde::Serialize;
use stats::{Bootstrap, Confidence, Distribution, Estimate};

use crate::mode::{Mode, Security, Transport};
use crate::summary::{Row, Summary, value};

/// What a change of mode saves at one round-trip time, until the first response byte.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Saving {
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Median today, in milliseconds.
    pub today_ms: f64,
    /// What is saved, in milliseconds, with its interval; negative if the change costs.
    pub saved_ms: Estimate,
}

impl Saving {
    /// What is saved, as a share of today's time.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * self.saved_ms.value / self.today_ms
    }
}

/// What one change of mode saves.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// The mode to change to.
    pub to: Mode,
    /// At each RTT that both were measured at.
    pub savings: Vec<Saving>,
    /// Mean over the clients' RTTs, by the fitted lines: saved and of how much, in milliseconds.
    pub weighed: Option<Weighed>,
}

/// A saving as a mean over the clients' round-trip times.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Weighed {
    /// Mean time until the first response byte today, in milliseconds.
    pub today_ms: f64,
    /// Mean of what is saved, in milliseconds.
    pub saved_ms: f64,
    /// What clients save at the median and beyond: as many as `p` have this round-trip time or less.
    pub at: [WeighedAt; 3],
}

/// A saving at a quantile of the clients' round-trip times. Time grows with RTT, so that this is the
/// quantile of the time, too.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WeighedAt {
    /// Which: 0.5 is the median.
    pub p: f64,
    /// The round-trip time, in milliseconds.
    pub rtt_ms: f64,
    /// Time until the first response byte today, in milliseconds.
    pub today_ms: f64,
    /// What is saved, in milliseconds.
    pub saved_ms: f64,
}

/// The quantiles of the clients' round-trip times at which savings are told.
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// Every change of mode from `from` within its sweep, the largest saving first. A mode without
/// security, one with RSA key exchange and our TCP alone are no advice, and are left out. Empty if `from` was not measured without loss.
///
/// # Errors
/// Statistics refuse the samples.
pub fn changes(
    summary: &Summary,
    from: Mode,
    clients: Option<&Distribution>,
    seed: u64,
) -> Result<Vec<Change>, stats::Error> {
    let Some(today) = base_row(summary, from) else { return Ok(Vec::new()) };
    let mut changes = Vec::new();
    for row in comparable(summary, today) {
        let savings = savings(today, row, seed)?;
        if !savings.is_empty() {
            changes.push(Change { to: row.key.mode, savings, weighed: weigh(today, row, clients) });
        }
    }
    let rank = |change: &Change| match (&change.weighed, change.savings.last()) {
        (Some(weighed), _) => weighed.saved_ms,
        (None, Some(saving)) => saving.saved_ms.value,
        (None, None) => f64::NEG_INFINITY,
    };
    changes.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    Ok(changes)
}

/// The row of `from` with the most paths.
fn base_row(summary: &Summary, from: Mode) -> Option<&Row> {
    let usable = |row: &&Row| !row.cells.is_empty() && row.key.is_unhindered();
    let rows = summary.rows.iter().filter(|row| row.key.mode == from).filter(usable);
    // The first of several with as many, so that the order of sweeps decides.
    rows.rev().max_by_key(|row| row.cells.len())
}

/// The rows that differ from `today` in the mode alone. QUIC brings a library of its own.
fn comparable<'a>(summary: &'a Summary, today: &'a Row) -> impl Iterator<Item = &'a Row> {
    summary.rows.iter().filter(move |row| {
        let (a, b) = (&row.key, &today.key);
        let same_library = a.library == b.library
            || a.mode.transport == Transport::Quic
            || b.mode.transport == Transport::Quic;
        let advisable = !matches!(a.mode.security, Security::Plain | Security::Tls12Rsa)
            && a.mode.transport != Transport::UserTcp;
        a.is_unhindered()
            && a.sweep == b.sweep
            && a.key == b.key
            && a.group == b.group
            && a.chain == b.chain
            && same_library
            && advisable
            && a.mode != b.mode
    })
}

fn savings(today: &Row, row: &Row, seed: u64) -> Result<Vec<Saving>, stats::Error> {
    let mut savings = Vec::new();
    for cell in &row.cells {
        let Some(base) = today.at_rtt(cell.rtt_ms) else { continue };
        let (a, b) = (base.observed(value::RESPONSE), cell.observed(value::RESPONSE));
        if a.len() < 3 || b.len() < 3 {
            continue;
        }
        let bootstrap = Bootstrap { seed, ..Bootstrap::default() };
        let saved_ms = stats::bootstrap_medians(&[&a, &b], bootstrap, Confidence::C95, |m| {
            m.first().copied().unwrap_or_default() - m.get(1).copied().unwrap_or_default()
        })?;
        let today_ms = stats::Sample::new(&a)?.median();
        savings.push(Saving { rtt_ms: cell.rtt_ms, today_ms, saved_ms });
    }
    Ok(savings)
}

fn weigh(today: &Row, row: &Row, clients: Option<&Distribution>) -> Option<Weighed> {
    let (clients, today, to) = (clients?, today.response.as_ref()?, row.response.as_ref()?);
    let line = |fit: &stats::LineFit, rtt: f64| fit.line().at(rtt);
    let at = QUANTILES.map(|p| {
        // Refused outside of 0 to 1 only, where these are not.
        let rtt_ms = clients.quantile(p).unwrap_or(f64::NAN);
        let today_ms = line(today, rtt_ms);
        WeighedAt { p, rtt_ms, today_ms, saved_ms: today_ms - line(to, rtt_ms) }
    });
    Some(Weighed {
        at,
        today_ms: clients.expect(|rtt_ms| line(today, rtt_ms)),
        saved_ms: clients.expect(|rtt_ms| line(today, rtt_ms) - line(to, rtt_ms)),
    })
}
