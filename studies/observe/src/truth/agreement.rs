//! The records beside the logs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use conn::ServerRecord;
use observe::{Class, Connection, Uncertain};
use serde::Serialize;
use units::Time;

use super::dial::Dialled;
use super::visit::Visit;
use crate::findings::Findings;

/// How far records and logs agree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Connections that the clients made.
    pub made: usize,
    /// Connections of the servers' logs.
    pub logged: usize,
    /// Of these with a record of the capture.
    pub recorded: usize,
    /// Of these with the class that the generator knows.
    pub classified: usize,
    /// The others.
    pub misclassified: Vec<Misclassified>,
    /// Records of no connection in the logs.
    pub strangers: usize,
    /// Connections that did not become what was meant, as their ends say: a ticket not taken, say.
    pub unplanned: Vec<String>,
    /// Records of TCP in doubt, by kind and reason.
    pub uncertain: BTreeMap<String, usize>,
    /// The same of QUIC.
    pub uncertain_quic: BTreeMap<String, usize>,
    /// Times of records against times of logs.
    pub times: Vec<TimeAgreement>,
    /// The round-trip times put in, and found.
    pub round_trips: Vec<RoundTripAgreement>,
}

/// A record with another class than the generator's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Misclassified {
    /// What was made.
    pub visit: Visit,
    /// What the record says; `None` without TLS.
    pub class: Option<Class>,
    /// The client's address.
    pub client: SocketAddr,
}

/// A step of the handshake in records and logs. The log's time is later: a thread has to wake up first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeAgreement {
    /// Which.
    pub step: &'static str,
    /// Connections with both.
    pub count: usize,
    /// The log's less the record's at the median, in microseconds.
    pub median_us: f64,
    /// The worst: the largest without regard to sign.
    pub worst_us: f64,
    /// How often the record's is the later, which no thread can explain.
    pub record_later: usize,
}

/// A population's round-trip time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundTripAgreement {
    /// Its name.
    pub population: String,
    /// What the link was set to, in ms, without jitter.
    pub known_ms: f64,
    /// Median of the records' round-trip times over TCP, in ms.
    pub median_ms: Option<f64>,
    /// The nearest mode that was found in all records together, in ms.
    pub mode_ms: Option<f64>,
}

impl Agreement {
    /// Whether every connection has its record, with the class that the generator knows.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.recorded == self.logged
            && self.logged == self.made
            && self.classified == self.recorded
            && self.strangers == 0
            && self.unplanned.is_empty()
    }
}

/// What is known of one population.
pub(super) struct Known {
    pub name: String,
    pub round_trip: Duration,
    pub dialled: Vec<Dialled>,
    pub records: Vec<Connection>,
}

/// Compares what the clients and servers logged with what the capture shows.
pub(super) fn compare(
    populations: &[Known],
    servers: &[(Visit, ServerRecord)],
    findings: &Findings,
) -> Agreement {
    let all = || populations.iter().flat_map(|population| &population.records);
    let records: BTreeMap<SocketAddr, &Connection> =
        all().map(|record| (record.client, record)).collect();
    let pairs: Vec<(Visit, &ServerRecord, &Connection)> = servers
        .iter()
        .filter_map(|(visit, log)| Some((*visit, log, *records.get(&log.peer)?)))
        .collect();
    let misclassified =
        pairs.iter().filter(|(visit, _, record)| record.class() != Some(visit.class()));
    let misclassified: Vec<Misclassified> = misclassified
        .map(|(visit, _, record)| Misclassified {
            visit: *visit,
            class: record.class(),
            client: record.client,
        })
        .collect();
    let dialled = || populations.iter().flat_map(|population| &population.dialled);
    Agreement {
        made: dialled().count(),
        logged: servers.len(),
        recorded: pairs.len(),
        classified: pairs.len() - misclassified.len(),
        misclassified,
        strangers: all().count() - pairs.len().min(all().count()),
        unplanned: dialled().filter_map(unplanned).collect(),
        uncertain: uncertain(&pairs, false),
        uncertain_quic: uncertain(&pairs, true),
        times: times(populations, &pairs),
        round_trips: populations.iter().map(|known| round_trip(known, findings)).collect(),
    }
}

/// How a connection did not become what was meant.
fn unplanned(dialled: &Dialled) -> Option<String> {
    let visit = dialled.visit;
    let meant_to_fail = visit.class() == Class::Failed;
    match (&dialled.failure, &dialled.facts) {
        (Some(_), _) if meant_to_fail => None,
        (Some(failure), _) => Some(format!("{visit:?} failed: {failure}")),
        (None, _) if meant_to_fail => Some(format!("{visit:?} did not fail")),
        (None, Some(facts)) => {
            let early = facts.early_data == tls::EarlyData::Accepted;
            let as_meant = facts.resumed == visit.resumes()
                && early == visit.early_data()
                && facts.hello_retry_request == (visit == Visit::Tls13HelloRetry);
            (!as_meant).then(|| format!("{visit:?} became another: {facts:?}"))
        }
        (None, None) => Some(format!("{visit:?} had no TLS")),
    }
}

fn uncertain(pairs: &[(Visit, &ServerRecord, &Connection)], quic: bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (visit, _, record) in pairs.iter().filter(|(visit, ..)| visit.is_quic() == quic) {
        for reason in &record.uncertain {
            let reason: &Uncertain = reason;
            *counts
                .entry(format!("{visit:?}: {}", crate::digest::reason_name(*reason)))
                .or_default() += 1;
        }
    }
    counts
}

fn times(
    populations: &[Known],
    pairs: &[(Visit, &ServerRecord, &Connection)],
) -> Vec<TimeAgreement> {
    type Step = (&'static str, fn(&ServerRecord) -> Option<Time>, fn(&Connection) -> Option<Time>);
    // The ServerHello leaves after the log's time, all others are logged after they came.
    let steps: [Step; 4] = [
        (
            "connection accepted",
            |log| Some(log.accepted),
            |record| record.tcp.as_ref()?.handshake_ack,
        ),
        ("ClientHello", |log| log.first_bytes, |record| record.tls.as_ref()?.client_hello),
        (
            "client's Finished",
            |log| log.handshake_complete,
            |record| record.tls.as_ref()?.client_finished,
        ),
        ("first request", |log| log.request_received, |record| record.client_data),
    ];
    let over_tcp = || pairs.iter().filter(|(visit, ..)| !visit.is_quic());
    let mut all: Vec<TimeAgreement> = steps
        .iter()
        .filter_map(|(step, of_log, of_record)| {
            let gap = |(_, log, record): &(Visit, &ServerRecord, &Connection)| {
                Some(of_log(log)?.signed_nanos_since(of_record(record)?))
            };
            agreement(step, over_tcp().filter_map(gap).collect())
        })
        .collect();
    all.extend(agreement("ClientHello as the client sent it, less the way", sent(populations)));
    all
}

/// How much later a ClientHello was captured than the client sent it and the link held it, taken the
/// other way round so that it reads as the others do: a late one is negative.
fn sent(populations: &[Known]) -> Vec<i64> {
    let mut gaps = Vec::new();
    for known in populations {
        let way = i64::try_from(known.round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
        for dialled in known.dialled.iter().filter(|dialled| !dialled.visit.is_quic()) {
            let record = known.records.iter().find(|record| Some(record.client) == dialled.local);
            let seen = record.and_then(|record| record.tls.as_ref()?.client_hello);
            if let (Some(seen), Some(sent)) = (seen, dialled.timeline.hello_sent) {
                gaps.push(sent.signed_nanos_since(seen).saturating_add(way));
            }
        }
    }
    gaps
}

fn agreement(step: &'static str, mut gaps: Vec<i64>) -> Option<TimeAgreement> {
    gaps.sort_unstable();
    let us = |nanos: i64| nanos as f64 / 1e3;
    let (least, greatest) = (*gaps.first()?, *gaps.last()?);
    let worst = if least.unsigned_abs() > greatest.unsigned_abs() { least } else { greatest };
    Some(TimeAgreement {
        step,
        count: gaps.len(),
        median_us: gaps.get(gaps.len() / 2).copied().map(us)?,
        worst_us: us(worst),
        record_later: gaps.iter().filter(|gap| **gap < 0).count(),
    })
}

fn round_trip(known: &Known, findings: &Findings) -> RoundTripAgreement {
    let known_ms = known.round_trip.as_secs_f64() * 1e3;
    let over_tcp = known.records.iter().filter(|record| record.tcp.is_some());
    let own: Vec<f64> =
        over_tcp.filter_map(|r| r.round_trip()).map(|time| time.as_secs_f64() * 1e3).collect();
    let median_ms = stats::Sample::new(&own).ok().map(|sample| sample.median());
    let places = findings.round_trip_modes.iter().flat_map(|modes| &modes.modes);
    let far = |ms: &f64| (ms - known_ms).abs();
    let mode_ms = places.map(|mode| mode.place_ms.value).min_by(|a, b| far(a).total_cmp(&far(b)));
    RoundTripAgreement { population: known.name.clone(), known_ms, median_ms, mode_ms }
}
