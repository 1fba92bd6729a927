//! The records beside the logs.

use std::collections::BTreeMap;

use record::{Outcome, Sample};
use serde::Serialize;

use super::boxes::{self, FallbackCost};
use super::crossed::{self, CrossedRow, HostRow, PauseRow, Series};
use super::sample::{GAPS, VISIT, label, value};
use crate::findings::Findings;
use crate::present::truth_section;

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
    /// Of these with another class.
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
    /// The names that clients asked for.
    pub hosts: Vec<HostRow>,
    /// Sessions resumed at another name, or refused there.
    pub crossed: Vec<CrossedRow>,
    /// What such sessions would have spared clients that made several connections.
    pub series: Series,
    /// Think times between connections of one client.
    pub pauses: Vec<PauseRow>,
    /// What boxes cost clients that do not tolerate a hello.
    pub fallbacks: Vec<FallbackCost>,
}

/// A record with another class than the generator's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Misclassified {
    /// What was made.
    #[serde(rename = "visit")]
    pub scenario: String,
    /// What the record says: a class, or `none`.
    pub class: String,
    /// The client's address.
    pub client: String,
}

/// A step of the handshake in records and logs. The log's time is later: a thread has to wake up first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeAgreement {
    /// The step of a connection.
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
    /// The population's name: `wifi`, `cellular`.
    pub population: String,
    /// What the link was set to, in ms, without jitter.
    pub known_ms: f64,
    /// Median of the records' round-trip times over TCP, in ms.
    pub median_ms: Option<f64>,
    /// The nearest mode that was found in all records together, in ms.
    pub mode_ms: Option<f64>,
}

impl Agreement {
    /// What the samples of the lab say, and the findings of the same.
    #[must_use]
    pub fn of(samples: &[Sample], findings: &Findings) -> Agreement {
        let own: Vec<&Sample> =
            samples.iter().filter(|sample| sample.study == super::STUDY).collect();
        let text =
            |sample: &Sample, name: &str| sample.labels.get(name).cloned().unwrap_or_default();
        let state = |wanted: &str| {
            let wanted = wanted.to_owned();
            own.iter().filter(move |sample| text(sample, label::STATE) == wanted).count()
        };
        let recorded: Vec<&&Sample> =
            own.iter().filter(|sample| text(sample, label::STATE) == label::RECORDED).collect();
        let wrong = recorded.iter().filter(|s| text(s, label::CLASS) != text(s, label::EXPECTED));
        let misclassified: Vec<Misclassified> = wrong
            .map(|sample| Misclassified {
                scenario: sample.point.get(VISIT).cloned().unwrap_or_default(),
                class: text(sample, label::CLASS),
                client: text(sample, label::CLIENT),
            })
            .collect();
        let unplanned = own.iter().filter_map(|sample| sample.labels.get(label::UNPLANNED));
        let logged = recorded.len() + state(label::NOT_CAPTURED);
        Agreement {
            made: logged + state(label::NOT_LOGGED),
            logged,
            recorded: recorded.len(),
            classified: recorded.len() - misclassified.len(),
            misclassified,
            strangers: state(label::STRANGER),
            unplanned: unplanned.cloned().collect(),
            uncertain: uncertain(&recorded, false),
            uncertain_quic: uncertain(&recorded, true),
            times: GAPS.iter().filter_map(|(name, step)| times(&own, name, step)).collect(),
            round_trips: round_trips(&recorded, findings),
            hosts: crossed::hosts(&own),
            crossed: crossed::crossed(&own),
            series: crossed::series(&own),
            pauses: crossed::pauses(&own),
            fallbacks: boxes::costs(&own),
        }
    }

    /// Whether every connection has its record, with the class and the name that the generator knows.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.recorded == self.logged
            && self.logged == self.made
            && self.classified == self.recorded
            && self.strangers == 0
            && self.hosts.iter().all(|host| host.made == host.recorded)
            && self.unplanned.is_empty()
    }

    /// How far records and logs agree, for a report.
    #[must_use]
    pub fn section(&self) -> report::Section {
        truth_section(self)
    }
}

pub(super) fn is_quic(sample: &Sample) -> bool {
    sample.values.get(value::QUIC) == Some(&1.0)
}

fn uncertain(recorded: &[&&Sample], quic: bool) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for sample in recorded.iter().filter(|sample| is_quic(sample) == quic) {
        let scenario = sample.point.get(VISIT).map_or("", String::as_str);
        let reasons = sample.labels.get(label::UNCERTAIN).map_or("", String::as_str);
        for reason in reasons.split(',').filter(|reason| !reason.is_empty()) {
            *counts.entry(format!("{scenario}: {reason}")).or_default() += 1;
        }
    }
    counts
}

fn times(samples: &[&Sample], name: &str, step: &'static str) -> Option<TimeAgreement> {
    let mut gaps: Vec<f64> =
        samples.iter().filter_map(|sample| sample.values.get(name).copied()).collect();
    gaps.sort_by(f64::total_cmp);
    let (least, greatest) = (*gaps.first()?, *gaps.last()?);
    Some(TimeAgreement {
        step,
        count: gaps.len(),
        median_us: gaps.get(gaps.len() / 2).copied()?,
        worst_us: if least.abs() > greatest.abs() { least } else { greatest },
        record_later: gaps.iter().filter(|gap| **gap < 0.0).count(),
    })
}

fn round_trips(recorded: &[&&Sample], findings: &Findings) -> Vec<RoundTripAgreement> {
    let mut populations: BTreeMap<&str, (f64, Vec<f64>)> = BTreeMap::new();
    for sample in recorded.iter().filter(|sample| !is_quic(sample)) {
        let (Some(population), Some(known)) =
            (sample.point.get("population"), sample.values.get(value::KNOWN_RTT))
        else {
            continue;
        };
        let (_, own) = populations.entry(population).or_insert((*known, Vec::new()));
        own.extend(sample.values.get(value::RTT));
    }
    let one = |(population, (known_ms, own)): (&str, (f64, Vec<f64>))| {
        let places = findings.round_trip_modes.iter().flat_map(|modes| &modes.modes);
        let far = |ms: &f64| (ms - known_ms).abs();
        RoundTripAgreement {
            population: population.to_owned(),
            known_ms,
            median_ms: stats::median(&own),
            mode_ms: places
                .map(|mode| mode.place_ms.value)
                .min_by(|a, b| far(a).total_cmp(&far(b))),
        }
    };
    let mut all: Vec<RoundTripAgreement> = populations.into_iter().map(one).collect();
    all.sort_by(|a, b| a.known_ms.total_cmp(&b.known_ms));
    all
}

/// Whether a sample's connection did what it should.
pub(super) fn outcome(wrong: Option<String>) -> Outcome {
    wrong.map_or(Outcome::Completed, |reason| Outcome::Failed { reason })
}
