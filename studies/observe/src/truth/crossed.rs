//! What the lab's samples say of server names, of sessions resumed at another name, and of think times.

use std::collections::BTreeMap;

use record::Sample;
use serde::Serialize;
use testbed::SERVER_NAME;
use tracker::Class;

use super::host::HOST;
use super::sample::{VISIT, label, value};
use super::scenario::Scenario;

/// The axis of think times.
const PAUSE: &str = "pause";

/// The connections to a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostRow {
    /// The name that clients asked for.
    pub host: String,
    /// Connections that clients made to it.
    pub made: usize,
    /// Of these with a record that has the name.
    pub recorded: usize,
}

/// Sessions resumed at another name than the one that they began at, and full handshakes beside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossedRow {
    /// The population of clients.
    pub population: String,
    /// What they did.
    pub visit: String,
    /// Connections that brought a session of another name.
    pub count: usize,
    /// Of these resumed.
    pub resumed: usize,
    /// Median of what the server sent until the client's Finished, in bytes.
    pub flight_bytes: Option<f64>,
    /// Median from the ClientHello to the client's first data, in ms.
    pub to_data_ms: Option<f64>,
    /// The same clients' full handshakes of the version: see `flight_bytes`.
    pub full_flight_bytes: Option<f64>,
    /// The same clients' full handshakes of the version: see `to_data_ms`.
    pub full_to_data_ms: Option<f64>,
}

/// Full handshakes over TCP of clients that made several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Series {
    /// How many such handshakes there were.
    pub full: usize,
    /// Of these, at a name that the client was new to when it had a session of another: what a session that
    /// serves all names would have spared.
    pub could_cross: usize,
}

/// Think times of one distribution, put in and found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PauseRow {
    /// The distribution, as plans have it.
    pub pause: String,
    /// Times between two connections of a client that both ended well, over TCP.
    pub count: usize,
    /// Their median as drawn, in ms.
    pub put_in_ms: f64,
    /// Their median in the records, from the last frame of the one to the first of the other, in ms.
    pub found_ms: f64,
    /// What the records have more at worst, without regard to sign, in ms.
    pub worst_ms: f64,
}

fn text<'a>(sample: &'a Sample, name: &str) -> &'a str {
    sample.labels.get(name).map_or("", String::as_str)
}

/// The name that a sample's client asked for.
fn host(sample: &Sample) -> &str {
    sample.point.get(HOST).map_or(SERVER_NAME, String::as_str)
}

fn is_stranger(sample: &Sample) -> bool {
    text(sample, label::STATE) == label::STRANGER
}

/// Each name's connections.
pub(super) fn hosts(samples: &[&Sample]) -> Vec<HostRow> {
    let mut rows: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| !is_stranger(sample)) {
        let (made, recorded) = rows.entry(host(sample)).or_default();
        *made += 1;
        *recorded += usize::from(text(sample, label::SERVER_NAME) == host(sample));
    }
    let row =
        |(host, (made, recorded)): (&str, _)| HostRow { host: host.to_owned(), made, recorded };
    rows.into_iter().map(row).collect()
}

/// Sessions of another name, by population and what was done.
pub(super) fn crossed(samples: &[&Sample]) -> Vec<CrossedRow> {
    let mut rows: BTreeMap<(&str, Scenario), Vec<&Sample>> = BTreeMap::new();
    for sample in samples.iter().filter(|own| text(own, label::STATE) == label::RECORDED) {
        let visit = sample.point.get(VISIT).and_then(|visit| visit.parse::<Scenario>().ok());
        let population = sample.point.get("population").map_or("", String::as_str);
        if let Some(visit) = visit {
            rows.entry((population, visit)).or_default().push(sample);
        }
    }
    let crossing = rows.iter().filter(|((_, visit), _)| visit.crosses_names());
    let row = |((population, visit), own): (&(&str, Scenario), &Vec<&Sample>)| {
        let full = match visit.version() {
            tls::Version::Tls12 => Scenario::Tls12,
            tls::Version::Tls13 => Scenario::Tls13,
        };
        let beside = rows.get(&(*population, full)).map_or(&[][..], Vec::as_slice);
        let is_resumed = |own: &&&Sample| text(own, label::CLASS) == Class::Resumed.name();
        CrossedRow {
            population: (*population).to_owned(),
            visit: visit.to_string(),
            count: own.len(),
            resumed: own.iter().filter(is_resumed).count(),
            flight_bytes: median(own, value::SERVER_FLIGHT),
            to_data_ms: median(own, value::TO_DATA),
            full_flight_bytes: median(beside, value::SERVER_FLIGHT),
            full_to_data_ms: median(beside, value::TO_DATA),
        }
    };
    crossing.map(row).collect()
}

fn median(samples: &[&Sample], name: &str) -> Option<f64> {
    let values: Vec<f64> = samples.iter().filter_map(|own| own.values.get(name).copied()).collect();
    stats::median(&values)
}

/// What sessions of another name would have spared clients that made several connections.
pub(super) fn series(samples: &[&Sample]) -> Series {
    let is_full = |own: &&&Sample| {
        let known = own.labels.contains_key(label::COULD_CROSS);
        known && text(own, label::CLASS) == Class::Full.name() && !super::agreement::is_quic(own)
    };
    let full: Vec<&&Sample> = samples.iter().filter(is_full).collect();
    let could = full.iter().filter(|own| text(own, label::COULD_CROSS) == label::YES);
    Series { full: full.len(), could_cross: could.count() }
}

/// Think times put in and found, by distribution.
pub(super) fn pauses(samples: &[&Sample]) -> Vec<PauseRow> {
    let mut pairs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in samples {
        let value = |name: &str| sample.values.get(name).copied();
        let both = value(value::PAUSE).zip(value(value::PAUSED));
        if let (Some(both), Some(pause)) = (both, sample.point.get(PAUSE)) {
            pairs.entry(pause).or_default().push(both);
        }
    }
    let row = |(pause, pairs): (&str, Vec<(f64, f64)>)| {
        let (put_in, found): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let worst = pairs.iter().map(|(put_in, found)| (found - put_in).abs());
        Some(PauseRow {
            pause: pause.to_owned(),
            count: pairs.len(),
            put_in_ms: stats::median(&put_in)?,
            found_ms: stats::median(&found)?,
            worst_ms: worst.fold(0.0, f64::max),
        })
    };
    pairs.into_iter().filter_map(row).collect()
}
