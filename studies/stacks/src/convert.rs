//! Lock counts and memory of a host's answer as values of a sample.

use record::Sample;
use tls_drivers::{LockCounts, Outcome};

use crate::sample::{label, put, value};

/// Call sites that are kept of one measurement.
const SITES: usize = 8;

/// Locks per connection.
pub(crate) fn locks(sample: &mut Sample, outcome: &Outcome) {
    let done = outcome.done as f64;
    let each = |count: u64| (outcome.done > 0).then(|| count as f64 / done);
    if let Some(LockCounts { read, write, mutex, spin, contended, .. }) = &outcome.server.locks {
        put(
            sample,
            [
                (value::SERVER_READ, each(*read)),
                (value::SERVER_WRITE, each(*write)),
                (value::SERVER_MUTEX, each(mutex + spin)),
                (value::SERVER_CONTENDED, each(*contended)),
            ],
        );
    }
    if let Some(LockCounts { read, write, mutex, spin, contended, .. }) = &outcome.client.locks {
        put(
            sample,
            [
                (value::CLIENT_READ, each(*read)),
                (value::CLIENT_WRITE, each(*write)),
                (value::CLIENT_MUTEX, each(mutex + spin)),
                (value::CLIENT_CONTENDED, each(*contended)),
            ],
        );
    }
    if let Some(counts) = &outcome.server.locks {
        let sites: Vec<(String, f64)> = counts
            .sites
            .iter()
            .take(SITES)
            .filter_map(|site| Some((site.symbol.clone(), each(site.count)?)))
            .collect();
        if let (false, Ok(text)) = (sites.is_empty(), serde_json::to_string(&sites)) {
            sample.labels.insert(label::SITES.to_owned(), text);
        }
    }
}

/// Memory of a connection.
pub(crate) fn memory(sample: &mut Sample, outcome: &Outcome) {
    let (server, client) = (&outcome.server.footprint, &outcome.client.footprint);
    put(
        sample,
        [
            (value::SERVER_IDLE, server.as_ref().map(|one| one.idle_bytes as f64)),
            (value::SERVER_HANDSHAKING, server.as_ref().map(|one| one.handshaking_bytes as f64)),
            (value::CLIENT_IDLE, client.as_ref().map(|one| one.idle_bytes as f64)),
            (value::CLIENT_HANDSHAKING, client.as_ref().map(|one| one.handshaking_bytes as f64)),
        ],
    );
}
