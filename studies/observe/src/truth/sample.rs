//! A sample for each connection: what was made, what the record says, how far the logs are from it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conn::ServerRecord;
use record::Sample;
use tracker::{Class, Connection};
use units::Time;
use wire::tls::Version;

use super::agreement::outcome;
use super::dial::Dialled;
use super::visit::Visit;
use super::{Plan, STUDY};
use crate::digest::{Digest, Kind, Measured, Taken};

/// Axes of a point.
pub(super) mod axis {
    pub const POPULATION: &str = "population";
    pub const VISIT: &str = "visit";
}

/// Names of values.
pub(super) mod value {
    pub const QUIC: &str = "quic";
    pub const VERSION: &str = "version";
    pub const KNOWN_RTT: &str = "known_rtt_ms";
    pub const HANDSHAKE: &str = "handshake_ms";
    pub const TO_DATA: &str = "to_data_ms";
    pub const THINK: &str = "think_ms";
    pub const RTT: &str = "rtt_ms";
    pub const BEGAN: &str = "began_s";
}

/// Names of labels, and what STATE can be.
pub(super) mod label {
    pub const CLASS: &str = "class";
    pub const EXPECTED: &str = "expected_class";
    pub const CLIENT: &str = "client";
    pub const SERVER_NAME: &str = "server_name";
    pub const UNCERTAIN: &str = "uncertain";
    pub const UNPLANNED: &str = "unplanned";
    pub const STATE: &str = "state";
    pub const RECORDED: &str = "recorded";
    pub const NOT_CAPTURED: &str = "not captured";
    pub const NOT_LOGGED: &str = "not logged";
    pub const STRANGER: &str = "stranger";
}

/// How much later a step is in a log than in the record, by the values' names: microseconds.
pub(super) const GAPS: [(&str, &str); 5] = [
    ("accepted_gap_us", "connection accepted"),
    ("hello_gap_us", "ClientHello"),
    ("finished_gap_us", "client's Finished"),
    ("request_gap_us", "first request"),
    ("sent_gap_us", "ClientHello as the client sent it, less the link's delay"),
];

/// What is known of one population.
pub(super) struct Known {
    pub name: String,
    pub round_trip: Duration,
    pub dialled: Vec<Dialled>,
    pub records: Vec<Connection>,
}

/// A connection in a server's log.
pub(super) struct Logged {
    /// What the server is for.
    pub visit: Visit,
    /// The server's port.
    pub port: u16,
    /// What it logged.
    pub record: ServerRecord,
}

/// What names a connection: the client's address and the server's port. A client's kernel gives one
/// port to connections to several servers.
type Ends = (SocketAddr, u16);

/// The samples of all populations.
pub(super) fn samples(plan: &Plan, populations: &[Known], servers: &[Logged]) -> Vec<Sample> {
    let mut maker = Maker { plan, repeats: BTreeMap::new(), samples: Vec::new() };
    let mut logs: BTreeMap<Ends, &Logged> =
        servers.iter().map(|logged| ((logged.record.peer, logged.port), logged)).collect();
    for known in populations {
        let logged: Vec<Visit> = known.take_logged(&mut logs, &mut maker);
        // Whose ports are not known are told by how many are missing.
        for (visit, _) in &plan.visits {
            let made = known.dialled.iter().filter(|dialled| dialled.visit == *visit).count();
            let have = logged.iter().filter(|logged| *logged == visit).count();
            for _ in have..made {
                let lost = |sample: &mut Sample| {
                    astray(sample, label::NOT_LOGGED, "it is not in the server's log");
                };
                maker.sample(known, &format!("{visit:?}"), lost);
            }
        }
    }
    maker.samples
}

impl Known {
    /// Samples of the records, and of the connections that were logged but not captured.
    fn take_logged(&self, logs: &mut BTreeMap<Ends, &Logged>, maker: &mut Maker<'_>) -> Vec<Visit> {
        let mut logged = Vec::new();
        for record in &self.records {
            let ends = (record.client, record.server.port());
            let Some(Logged { visit, record: log, .. }) = logs.remove(&ends) else {
                let lost = |sample: &mut Sample| astray(sample, label::STRANGER, "it is in no log");
                maker.sample(self, label::STRANGER, lost);
                continue;
            };
            let visit = *visit;
            logged.push(visit);
            let same = |own: &&Dialled| own.local == Some(record.client) && own.visit == visit;
            let dialled = self.dialled.iter().find(same);
            maker.sample(self, &format!("{visit:?}"), |sample| {
                describe(sample, record, visit);
                gaps(sample, record, log, dialled, self.round_trip);
            });
        }
        for dialled in &self.dialled {
            // Of what failed the port is not known; what did not is found by it.
            if let Some(unplanned) = unplanned(dialled) {
                let own = dialled.local.map(|local| local.to_string());
                let found = maker.samples.iter_mut().find(|sample| {
                    own.is_some() && sample.labels.get(label::CLIENT) == own.as_ref()
                });
                let sample = match found {
                    Some(sample) => Some(sample),
                    None => maker.samples.last_mut(),
                };
                if let Some(sample) = sample {
                    sample.labels.insert(label::UNPLANNED.to_owned(), unplanned);
                }
            }
        }
        // A client's address tells its population: what is left of it was not captured.
        for own in &self.dialled {
            let ends = logs
                .iter()
                .find(|(ends, logged)| own.local == Some(ends.0) && own.visit == logged.visit);
            if let Some(ends) = ends.map(|(ends, _)| *ends) {
                let visit = own.visit;
                logs.remove(&ends);
                logged.push(visit);
                let lost = |sample: &mut Sample| {
                    astray(sample, label::NOT_CAPTURED, "it is not in the capture");
                };
                maker.sample(self, &format!("{visit:?}"), lost);
            }
        }
        logged
    }
}

struct Maker<'a> {
    plan: &'a Plan,
    repeats: BTreeMap<(String, String), u32>,
    samples: Vec<Sample>,
}

impl Maker<'_> {
    /// A new sample, filled by `fill`.
    fn sample(&mut self, known: &Known, visit: &str, fill: impl FnOnce(&mut Sample)) {
        let key = (known.name.clone(), visit.to_owned());
        let next = self.repeats.entry(key).or_default();
        let repeat = *next;
        *next += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let known_ms = known.round_trip.as_secs_f64() * 1e3;
        let point = [(axis::POPULATION, known.name.as_str()), (axis::VISIT, visit)];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut sample = Sample {
            study: STUDY.to_owned(),
            point: point.into_iter().map(own).collect(),
            repeat,
            seed: self.plan.lab.seed,
            at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            outcome: outcome(None),
            values: BTreeMap::from([(value::KNOWN_RTT.to_owned(), known_ms)]),
            labels: BTreeMap::new(),
            attachments: Vec::new(),
            command: self.plan.command.clone(),
        };
        fill(&mut sample);
        self.samples.push(sample);
    }
}

/// What has no record, or is none of ours.
fn astray(sample: &mut Sample, state: &str, why: &str) {
    sample.labels.insert(label::STATE.to_owned(), state.to_owned());
    sample.outcome = outcome(Some(why.to_owned()));
}

/// What the record says.
fn describe(sample: &mut Sample, record: &Connection, visit: Visit) {
    let class = record.class().map_or("none", Class::name);
    let reasons: Vec<&str> = record.uncertain.iter().map(|reason| reason.name()).collect();
    let tls = record.tls.as_ref();
    let name = tls.and_then(|tls| tls.server_name.clone()).unwrap_or_default();
    let labels = [
        (label::STATE, label::RECORDED.to_owned()),
        (label::CLASS, class.to_owned()),
        (label::EXPECTED, visit.class().name().to_owned()),
        (label::CLIENT, record.client.to_string()),
        (label::SERVER_NAME, name),
        (label::UNCERTAIN, reasons.join(",")),
    ];
    sample.labels.extend(labels.map(|(name, text)| (name.to_owned(), text)));
    if class != visit.class().name() {
        sample.outcome = outcome(Some(format!("its record says {class}")));
    }
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let values = [
        (value::QUIC, Some(f64::from(u8::from(record.quic.is_some())))),
        (value::VERSION, tls.and_then(|tls| tls.version).map(|version| f64::from(version.0))),
        (value::HANDSHAKE, ms(record.tls_handshake_time())),
        (value::TO_DATA, ms(record.hello_to_data())),
        (value::THINK, ms(record.think_time())),
        (value::RTT, ms(record.round_trip())),
        (value::BEGAN, Some(record.first_frame.as_secs_f64())),
    ];
    let there = |(name, value): (&str, Option<f64>)| Some((name.to_owned(), value?));
    sample.values.extend(values.into_iter().filter_map(there));
}

/// How much later each step is in the logs. Of QUIC the packets behind the handshake are opaque.
fn gaps(
    sample: &mut Sample,
    record: &Connection,
    log: &ServerRecord,
    dialled: Option<&Dialled>,
    round_trip: Duration,
) {
    let (Some(tcp), Some(tls)) = (&record.tcp, &record.tls) else { return };
    let way = i64::try_from(round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
    let gap = |log: Option<Time>, record: Option<Time>| Some(log?.signed_nanos_since(record?));
    let sent = dialled.and_then(|dialled| gap(dialled.timeline.hello_sent, tls.client_hello));
    let all = [
        gap(Some(log.accepted), tcp.handshake_ack),
        gap(log.first_bytes, tls.client_hello),
        gap(log.handshake_complete, tls.client_finished),
        gap(log.request_received, record.client_data),
        sent.map(|gap| gap.saturating_add(way)),
    ];
    for ((name, _), gap) in GAPS.iter().zip(all) {
        if let Some(gap) = gap {
            sample.values.insert((*name).to_owned(), gap as f64 / 1e3);
        }
    }
}

/// How a connection did not become what was meant, as its own end says.
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

/// Puts samples into a digest again, as far as they tell: times, versions, classes, names. What
/// clients offered is not among it.
pub(super) fn digest_again(samples: &[Sample], digest: &mut Digest) {
    for sample in samples.iter().filter(|sample| sample.study == STUDY) {
        let text = |name: &str| sample.labels.get(name).map_or("", String::as_str);
        if text(label::STATE) != label::RECORDED {
            continue;
        }
        let number = |name: &str| sample.values.get(name).copied();
        let time =
            |name: &str| number(name).and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
        let class = Class::ALL.into_iter().find(|class| class.name() == text(label::CLASS));
        let Some(class) = class else { continue };
        let version = number(value::VERSION).map(|version| Version(version as u16));
        let quic = number(value::QUIC) == Some(1.0);
        let reasons = text(label::UNCERTAIN).split(',').filter(|reason| !reason.is_empty());
        let client: Option<SocketAddr> = text(label::CLIENT).parse().ok();
        let Some(client) = client else { continue };
        let began = number(value::BEGAN).and_then(|s| Duration::try_from_secs_f64(s).ok());
        digest.take_parts(&Taken {
            kind: Kind { quic, version },
            class,
            client,
            began: Time::ZERO + began.unwrap_or_default(),
            server_name: text(label::SERVER_NAME),
            reasons: &reasons.map(str::to_owned).collect::<Vec<_>>(),
            measured: Measured {
                handshake: time(value::HANDSHAKE),
                to_data: time(value::TO_DATA),
                think: time(value::THINK),
                round_trip: time(value::RTT),
            },
        });
    }
}
