//! A sample for each connection: what was made, what the record says, how far the logs are from it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conn::ServerRecord;
use record::{Better, Clock, Sample, ValueKind};
use serde::Serialize;
use tracker::{Class, Connection};
use units::Time;
use wire::tls::Version;

use super::STUDY;
use super::agreement::outcome;
use super::batch::{Made, Place};
use super::dial::Dialled;
use super::point::{AXES, Point};
use super::population::Population;
use super::scenario::Scenario;
use crate::digest::{Digest, Frames, Kind, Measured, Messages, Taken};

/// The axis that says what the client did.
pub(super) const VISIT: &str = "visit";

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
    pub const SERVER_FLIGHT: &str = "server_flight_bytes";
    /// Think time before it, since the same client's last connection: put in, and found.
    pub const PAUSE: &str = "pause_ms";
    pub const PAUSED: &str = "paused_ms";
    /// From the hello that a box took to the one that was answered.
    pub const FALLBACK: &str = "fallback_ms";
}

/// Names of labels, and what STATE can be.
pub(super) mod label {
    pub const CLASS: &str = "class";
    pub const EXPECTED: &str = "expected_class";
    pub const CLIENT: &str = "client";
    pub const SERVER_NAME: &str = "server_name";
    pub const UNCERTAIN: &str = "uncertain";
    pub const UNPLANNED: &str = "unplanned";
    pub const MESSAGES: &str = "messages";
    pub const FRAMES: &str = "frames";
    /// A session of another name of the server would have spared the full handshake, or not: of clients
    /// that make several connections.
    pub const COULD_CROSS: &str = "could_cross_names";
    pub const YES: &str = "yes";
    pub const NO: &str = "no";
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

/// What each value is.
pub(super) fn kinds() -> Vec<(&'static str, ValueKind)> {
    let time = |unit, better| ValueKind::new(unit, better, Clock::Wall);
    let mut kinds = vec![
        (value::HANDSHAKE, time("ms", Better::Less)),
        (value::TO_DATA, time("ms", Better::Less)),
        (value::THINK, time("ms", Better::Less)),
        (value::RTT, time("ms", Better::Less)),
        (value::KNOWN_RTT, time("ms", Better::Neither)),
        (value::BEGAN, time("s", Better::Neither)),
        (value::SERVER_FLIGHT, ValueKind::new("bytes", Better::Less, Clock::Count)),
        (value::PAUSE, time("ms", Better::Neither)),
        (value::PAUSED, time("ms", Better::Neither)),
        (value::FALLBACK, time("ms", Better::Less)),
        (value::QUIC, ValueKind::new("", Better::Neither, Clock::Count)),
        (value::VERSION, ValueKind::new("", Better::Neither, Clock::Count)),
    ];
    kinds.extend(GAPS.map(|(name, _)| (name, time("us", Better::Less))));
    kinds
}

/// What is seen of a connection that a client made.
pub(super) enum Seen<'a> {
    /// Its record and the server's log.
    Both(&'a Connection, &'a ServerRecord),
    /// The server's log alone.
    LogAlone,
    /// Neither, as far as the log can be told from others.
    Neither,
}

/// Makes a sample of each connection, and of each record of none.
pub(super) struct Maker {
    seed: u64,
    /// The next repeat of a sample of no connection that is known.
    strangers: BTreeMap<Population, u32>,
}

impl Maker {
    /// Samples of a seed. `is_finished` says whether a sample is there already.
    pub(super) fn new(
        seed: u64,
        is_finished: impl Fn(&BTreeMap<String, String>, u32) -> bool,
    ) -> Maker {
        let next = |population| {
            let fields = stranger_fields(population);
            (0..).find(|repeat| !is_finished(&fields, *repeat)).unwrap_or_default()
        };
        let strangers = Population::ALL.iter().map(|population| (*population, next(*population)));
        Maker { seed, strangers: strangers.collect() }
    }

    /// The sample of a connection that a client made.
    pub(super) fn sample(&self, made: &Made, seen: &Seen<'_>) -> Sample {
        let (Point { population, .. }, dialled) = (&made.point, &made.dialled);
        let population = *population;
        let command = command(&made.point, self.seed);
        let mut sample = self.empty(AXES.fields(&made.point), made.repeat, population, command);
        match seen {
            Seen::Both(record, log) => {
                describe(&mut sample, record, &made.point);
                gaps(&mut sample, record, log, dialled, population.round_trip());
            }
            Seen::LogAlone => {
                astray(&mut sample, label::NOT_CAPTURED, "it is not in the capture");
            }
            Seen::Neither => {
                astray(&mut sample, label::NOT_LOGGED, "it is not in the server's log");
            }
        }
        if let Some(unplanned) = unplanned(dialled) {
            sample.labels.insert(label::UNPLANNED.to_owned(), unplanned);
        }
        if let Some(place) = made.place {
            note_place(&mut sample, place);
        }
        sample
    }

    /// The sample of a record of no connection that was made.
    pub(super) fn stranger(&mut self, population: Population) -> Sample {
        let next = self.strangers.entry(population).or_default();
        let repeat = *next;
        *next += 1;
        let fields = stranger_fields(population);
        let command = format!("wiretax observe lab --seed {}", self.seed);
        let mut sample = self.empty(fields, repeat, population, command);
        astray(&mut sample, label::STRANGER, "no log has it");
        sample
    }

    fn empty(
        &self,
        point: BTreeMap<String, String>,
        repeat: u32,
        population: Population,
        command: String,
    ) -> Sample {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let known_ms = population.round_trip().as_secs_f64() * 1e3;
        Sample {
            study: STUDY.to_owned(),
            point,
            repeat,
            seed: self.seed,
            at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            outcome: outcome(None),
            values: BTreeMap::from([(value::KNOWN_RTT.to_owned(), known_ms)]),
            labels: BTreeMap::new(),
            attachments: Vec::new(),
            command,
        }
    }
}

/// The command that makes a connection again.
pub(super) fn command(point: &Point, seed: u64) -> String {
    format!("wiretax observe lab{} --repeat 1 --seed {seed}", AXES.command_line(point))
}

fn stranger_fields(population: Population) -> BTreeMap<String, String> {
    let mut fields = AXES.fields(&Point { population, ..Point::default() });
    fields.insert(VISIT.to_owned(), label::STRANGER.to_owned());
    fields
}

/// What has no record, or is none of ours.
fn astray(sample: &mut Sample, state: &str, why: &str) {
    sample.labels.insert(label::STATE.to_owned(), state.to_owned());
    sample.outcome = outcome(Some(why.to_owned()));
}

/// What the record says.
fn describe(sample: &mut Sample, record: &Connection, point: &Point) {
    let scenario = point.scenario;
    let class = record.class().map_or("none", Class::name);
    let reasons: Vec<&str> = record.uncertain.iter().map(|reason| reason.name()).collect();
    let tls = record.tls.as_ref();
    let name = tls.and_then(|tls| tls.server_name.clone()).unwrap_or_default();
    let misnamed = (name != point.host.name())
        .then(|| format!("its record names {name:?} instead of {}", point.host));
    let labels = [
        (label::STATE, label::RECORDED.to_owned()),
        (label::CLASS, class.to_owned()),
        (label::EXPECTED, scenario.class().name().to_owned()),
        (label::CLIENT, record.client.to_string()),
        (label::SERVER_NAME, name),
        (label::UNCERTAIN, reasons.join(",")),
    ];
    sample.labels.extend(labels.map(|(name, text)| (name.to_owned(), text)));
    if let (Some(tls), Some(class)) = (tls, record.class()) {
        label_json(sample, label::MESSAGES, &Messages::of(record, tls, class));
    }
    let misclassified =
        (class != scenario.class().name()).then(|| format!("its record says {class}"));
    sample.outcome = outcome(misclassified.or(misnamed));
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let values = [
        (value::QUIC, Some(f64::from(u8::from(record.quic.is_some())))),
        (value::VERSION, tls.and_then(|tls| tls.version).map(|version| f64::from(version.0))),
        (value::HANDSHAKE, ms(record.tls_handshake_time())),
        (value::TO_DATA, ms(record.hello_to_data())),
        (value::THINK, ms(record.think_time())),
        (value::RTT, ms(record.round_trip())),
        (value::BEGAN, Some(record.first_frame.as_secs_f64())),
        (value::SERVER_FLIGHT, tls.map(|tls| tls.server_flight_len as f64)),
    ];
    let there = |(name, value): (&str, Option<f64>)| Some((name.to_owned(), value?));
    sample.values.extend(values.into_iter().filter_map(there));
}

/// Where a connection stands among those of its client: the first has no pause before it.
fn note_place(sample: &mut Sample, place: Place) {
    if place.at > 0 {
        sample.values.insert(value::PAUSE.to_owned(), place.pause.as_secs_f64() * 1e3);
    }
    let could = if place.could_cross { label::YES } else { label::NO };
    sample.labels.insert(label::COULD_CROSS.to_owned(), could.to_owned());
}

/// The time between a connection's first frame and the last one of the same client's connection before it.
pub(super) fn note_pause(sample: &mut Sample, between: Duration) {
    sample.values.insert(value::PAUSED.to_owned(), between.as_secs_f64() * 1e3);
}

/// Whether a sample is of this population's clients.
pub(super) fn is_of(sample: &Sample, population: Population) -> bool {
    sample.point.get("population").is_some_and(|name| name == population.name())
}

/// Puts the frames that were captured since the last batch into one of this batch's samples.
pub(super) fn note_frames(sample: &mut Sample, frames: &Frames) {
    label_json(sample, label::FRAMES, frames);
}

/// Plain numbers, texts and lists are always JSON.
fn label_json(sample: &mut Sample, name: &str, value: &impl Serialize) {
    let text = serde_json::to_string(value).ok();
    sample.labels.extend(text.map(|text| (name.to_owned(), text)));
}

/// How much later each step is in the logs. Of QUIC the packets behind the handshake are opaque.
fn gaps(
    sample: &mut Sample,
    record: &Connection,
    log: &ServerRecord,
    dialled: &Dialled,
    round_trip: Duration,
) {
    let (Some(tcp), Some(tls)) = (&record.tcp, &record.tls) else { return };
    let way = i64::try_from(round_trip.as_nanos() / 2).unwrap_or(i64::MAX);
    let gap = |log: Option<Time>, record: Option<Time>| Some(log?.signed_nanos_since(record?));
    let sent = gap(dialled.timeline.hello_sent, tls.client_hello);
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
    let scenario = dialled.scenario;
    let meant_to_fail = scenario.class() == Class::Failed;
    match (&dialled.failure, &dialled.facts) {
        (Some(_), _) if meant_to_fail => None,
        (Some(failure), _) => Some(format!("{scenario:?} failed: {failure}")),
        (None, _) if meant_to_fail => Some(format!("{scenario:?} did not fail")),
        (None, Some(facts)) => {
            let early = facts.early_data == tls::EarlyData::Accepted;
            let as_meant = facts.resumed == scenario.resumes()
                && early == scenario.early_data()
                && facts.hello_retry_request == (scenario == Scenario::Tls13HelloRetry);
            (!as_meant).then(|| format!("{scenario:?} became another: {facts:?}"))
        }
        (None, None) => Some(format!("{scenario:?} had no TLS")),
    }
}

/// Puts samples of some populations into a digest again.
pub(super) fn digest_again(samples: &[Sample], digest: &mut Digest, of: impl Fn(&str) -> bool) {
    let population = |sample: &Sample| sample.point.get("population").cloned().unwrap_or_default();
    for sample in samples.iter().filter(|sample| sample.study == STUDY && of(&population(sample))) {
        let text = |name: &str| sample.labels.get(name).map_or("", String::as_str);
        if let Ok(frames) = serde_json::from_str::<Frames>(text(label::FRAMES)) {
            digest.add_frames(&frames);
        }
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
        let messages: Option<Messages> = serde_json::from_str(text(label::MESSAGES)).ok();
        let taken = Taken {
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
        };
        digest.take_parts(&taken, messages.as_ref());
    }
}
