//! What to change: handshakes that could have taken fewer round trips, and what each would save.

use serde::Serialize;

use crate::digest::{Digest, Saveable};
use crate::findings::percent;

/// One thing to change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What to do, in a few words.
    pub what: String,
    /// What the records show, and what it takes.
    pub why: String,
    /// Whether the server alone can do it.
    pub by_the_server: bool,
    /// Handshakes that it would help.
    pub handshakes: u64,
    /// Their share of all, in percent.
    pub percent: f64,
    /// Round trips that each would save.
    pub round_trips: f64,
    /// What each would save at the median, in ms: their own round-trip times; `None` where none was seen.
    pub saved_ms: Option<f64>,
    /// What a handshake would save in the mean over all, helped or not, in ms.
    pub saved_over_all_ms: Option<f64>,
    /// Whether it is the most that could be saved: not every one of these could be helped.
    pub at_most: bool,
}

/// What the records show, the most saving first; the server's own before what clients must do.
pub(crate) fn changes(digest: &Digest) -> Vec<Change> {
    let all: u64 = digest.cells.values().map(|cell| cell.count).sum();
    let own = &digest.changes;
    let mut changes = vec![
        row(
            ("Agree on TLS 1.3", true, false, 1.0),
            "Clients offered TLS 1.3, and the server chose an older version with a full handshake: \
             switch TLS 1.3 on.",
            &own.tls13_offered,
            all,
        ),
        row(
            ("Clients that offer TLS 1.3", false, false, 1.0),
            "Full handshakes of clients that offer nothing newer: only new clients help.",
            &own.tls13_not_offered,
            all,
        ),
        row(
            ("Honour tickets and session ids of TLS 1.2", true, false, 1.0),
            "Clients brought a session of TLS 1.2, and the handshake was full: share ticket keys and \
             session caches between servers, and keep them longer.",
            &own.in_vain_tls12,
            all,
        ),
        row(
            ("Honour tickets of TLS 1.3", true, false, 0.0),
            "Clients brought a pre-shared key, and the handshake was full. Resumption saves no round \
             trip there, but the certificate and its signature, and early data need it.",
            &own.in_vain_tls13,
            all,
        ),
        row(
            ("Accept early data", true, true, 1.0),
            "Clients resumed and sent early data, which the server refused. Take it for requests that \
             may happen twice (RFC 8446 \u{a7}8, RFC 8470).",
            &own.early_rejected,
            all,
        ),
        row(
            ("Offer early data", true, true, 1.0),
            "Clients resumed in TLS 1.3 without early data: tickets that allow it let a client send its \
             first request with the hello, if it is one that may happen twice (RFC 8446 \u{a7}8).",
            &own.resumed_without_early,
            all,
        ),
        row(
            ("Resume clients that come back", false, true, 0.0),
            "Full handshakes without a ticket from networks seen before: some are the same clients. \
             Resumption saves a round trip in TLS 1.2 alone; how many are the same cannot be seen.",
            &own.came_back,
            all,
        ),
    ];
    for ((shares, group), saveable) in &own.retries {
        changes.push(retry(shares, group, saveable, all));
    }
    if own.other_retries.count > 0 {
        changes.push(retry("other sets", "several groups", &own.other_retries, all));
    }
    changes.retain(|change| change.handshakes > 0);
    changes.sort_by(|a, b| {
        let rank = |change: &Change| change.saved_over_all_ms.unwrap_or(0.0);
        b.by_the_server.cmp(&a.by_the_server).then(rank(b).total_cmp(&rank(a)))
    });
    changes
}

/// A HelloRetryRequest: the client had shares for these, and was asked for that.
fn retry(shares: &str, group: &str, saveable: &Saveable, all: u64) -> Change {
    let shares = if shares.is_empty() { "none" } else { shares };
    let what = if group == "none" {
        "Ask for no second hello".to_owned()
    } else {
        format!("Accept a group that clients send a share for, besides {group}")
    };
    let why = format!(
        "The first hello had key shares for {shares}; the server asked for {group} by a \
         HelloRetryRequest (RFC 8446 \u{a7}4.1.4). Put a group of the clients' shares among the \
         server's."
    );
    let mut change = row(("", true, false, 1.0), "", saveable, all);
    (change.what, change.why) = (what, why);
    change
}

fn row(
    (what, by_the_server, at_most, round_trips): (&str, bool, bool, f64),
    why: &str,
    saveable: &Saveable,
    all: u64,
) -> Change {
    let share = percent(saveable.count, all);
    let times = &saveable.round_trip;
    Change {
        what: what.to_owned(),
        why: why.to_owned(),
        by_the_server,
        handshakes: saveable.count,
        percent: share,
        round_trips,
        saved_ms: times.quantile(0.5).map(|ms| ms * round_trips),
        saved_over_all_ms: times.mean().map(|ms| ms * round_trips * share / 100.0),
        at_most,
    }
}
