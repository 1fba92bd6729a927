//! Samples in, what they say out: a row for each mode with its cells and its line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use record::{Outcome, Sample};
use serde::Serialize;
use stats::{Bootstrap, Confidence, Estimate, Holds, LineFit};
use units::{Delay, Probability};

use crate::mode::Mode;
use crate::sample::STUDY;
use crate::spec::RoundTrips;

/// Names of the values in a sample.
pub mod value {
    use record::{Better, Clock, ValueKind};

    /// Until the first request byte may be sent, by the client's clock.
    pub const READY: &str = "ready_ms";
    /// Until the first response byte was read, by the client's clock.
    pub const RESPONSE: &str = "first_response_ms";
    /// Between being ready and sending the request.
    pub const THINK: &str = "think_ms";
    /// Until the TCP handshake's SYN+ACK was seen by the client.
    pub const CONNECT: &str = "connect_ms";
    /// CPU time of the client.
    pub const CLIENT_CPU: &str = "client_cpu_ms";
    /// CPU time of the server.
    pub const SERVER_CPU: &str = "server_cpu_ms";
    /// Time in the client's TLS library until the first response byte (SSLmTCP and its control).
    pub const CLIENT_CRYPTO: &str = "client_crypto_ms";
    /// Time in the server's TLS library until the response was sent (SSLmTCP and its control).
    pub const SERVER_CRYPTO: &str = "server_crypto_ms";
    /// Ethernet bytes from client to server up to the first response byte.
    pub const UP_BYTES: &str = "up_bytes";
    /// Ethernet bytes from server to client up to the first response byte.
    pub const DOWN_BYTES: &str = "down_bytes";
    /// Frames from client to server up to the first response byte.
    pub const UP_FRAMES: &str = "up_frames";
    /// Frames from server to client up to the first response byte.
    pub const DOWN_FRAMES: &str = "down_frames";
    /// Bytes of the ClientHello's records.
    pub const HELLO_BYTES: &str = "client_hello_bytes";
    /// From the first frame to the client's first application data, in the capture.
    pub const WIRE_REQUEST: &str = "wire_request_ms";
    /// From the first frame to the server's first application data, in the capture.
    pub const WIRE_RESPONSE: &str = "wire_first_response_ms";
    /// From ClientHello read to the client's Finished read, by the server's clock.
    pub const SERVER_HANDSHAKE: &str = "server_handshake_ms";
    /// Round trips until ready by the specifications.
    pub const SPEC_READY: &str = "spec_ready_rtt";
    /// Round trips until the response by the specifications.
    pub const SPEC_RESPONSE: &str = "spec_response_rtt";
    /// Bytes of data on the SYN.
    pub const SYN_BYTES: &str = "syn_bytes";
    /// Bytes of data on the SYN+ACK.
    pub const SYN_ACK_BYTES: &str = "syn_ack_bytes";
    /// Segments or packets that were sent again.
    pub const RETRANSMITTED: &str = "retransmitted";

    const TIME: ValueKind = ValueKind::new("ms", Better::Less, Clock::Wall);
    const BYTES: ValueKind = ValueKind::new("bytes", Better::Less, Clock::Count);
    const ROUND_TRIPS: ValueKind = ValueKind::new("RTT", Better::Less, Clock::Count);
    const COUNT: ValueKind = ValueKind::new("", Better::Less, Clock::Count);
    /// More data on a SYN is neither good nor bad.
    const RIDES: ValueKind = ValueKind::new("bytes", Better::Neither, Clock::Count);

    /// What each value is; the first is what results are compared by.
    pub(crate) const KINDS: [(&str, ValueKind); 21] = [
        (RESPONSE, TIME),
        (READY, TIME),
        (THINK, TIME),
        (CONNECT, TIME),
        (CLIENT_CPU, TIME),
        (SERVER_CPU, TIME),
        (CLIENT_CRYPTO, TIME),
        (SERVER_CRYPTO, TIME),
        (UP_BYTES, BYTES),
        (DOWN_BYTES, BYTES),
        (UP_FRAMES, COUNT),
        (DOWN_FRAMES, COUNT),
        (HELLO_BYTES, BYTES),
        (WIRE_REQUEST, TIME),
        (WIRE_RESPONSE, TIME),
        (SERVER_HANDSHAKE, TIME),
        (SPEC_READY, ROUND_TRIPS),
        (SPEC_RESPONSE, ROUND_TRIPS),
        (SYN_BYTES, RIDES),
        (SYN_ACK_BYTES, RIDES),
        (RETRANSMITTED, COUNT),
    ];
}

/// Names of the labels in a sample.
pub mod label {
    /// The mode that the wire shows.
    pub const ACTUAL: &str = "actual_mode";
    /// `agree`, or how the three views contradict each other.
    pub const VIEWS: &str = "views";
    /// Negotiated TLS version.
    pub const VERSION: &str = "version";
    /// Negotiated cipher suite.
    pub const SUITE: &str = "cipher_suite";
    /// What `client_cpu_ms` and `server_cpu_ms` cover.
    pub const CPU_SCOPE: &str = "cpu_scope";
    /// The client's address and port: with the server's, finds the connection in a capture that
    /// was kept.
    pub const CLIENT: &str = "client";
    /// The server's address and port.
    pub const SERVER: &str = "server";
    /// What became of data in the SYN, as TCP_INFO says: `notsent`, `acknowledged`,
    /// `notacknowledged`.
    pub const SYN_DATA: &str = "syn_data";
    /// [`VIEWS`] of a sample without contradiction.
    pub const AGREE: &str = "agree";
}

/// What a row is about: everything but the path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RowKey {
    /// The sweep that it belongs to.
    pub sweep: String,
    /// The mode that the wire shows; the mode that was meant where the path has loss or a middlebox,
    /// or the server is an ordinary one.
    pub mode: Mode,
    /// Key of the server's certificates.
    pub key: String,
    /// Key exchange group.
    pub group: String,
    /// TLS library on both sides.
    pub library: String,
    /// How many certificates the server sends.
    pub chain: String,
    /// The middlebox on the way.
    pub middlebox: String,
    /// What waits on the way to the client.
    pub queue: String,
    /// What the server is.
    pub peer: String,
    /// Whether the client has met the path before.
    pub visit: String,
}

impl RowKey {
    /// Whether nothing hinders what is tried: no middlebox and no full queue on the way, and a server of
    /// its kind.
    #[must_use]
    pub fn is_unhindered(&self) -> bool {
        let Self { middlebox, queue, peer, visit, .. } = self;
        [middlebox, queue, peer, visit].into_iter().zip(UNHINDERED).all(|(is, usual)| is == usual)
    }
}

/// Middlebox, queue, peer and visit of a sample that does not name them.
const UNHINDERED: [&str; 4] = ["none", "none", "same", "first"];

/// One mode at one path.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Loss each way.
    pub loss: f64,
    /// Values of completed connections, by name.
    #[serde(skip)]
    pub values: BTreeMap<String, Vec<f64>>,
    /// Of each of the values, in the same order, which of the connections it is of.
    #[serde(skip)]
    repeats: BTreeMap<String, Vec<u32>>,
    /// What the connections were, by the wire, and how many of each.
    pub actual: BTreeMap<String, u64>,
    /// Connections that came to no response, and when each was given up, in ms.
    pub given_up_ms: Vec<f64>,
    /// Connections that failed otherwise: reason and how many.
    pub failed: BTreeMap<String, u64>,
    /// The command that measures the cell again.
    pub command: String,
}

impl Cell {
    /// How many connections completed: those with a response.
    #[must_use]
    pub fn completed(&self) -> usize {
        self.values.get(value::RESPONSE).map_or(0, Vec::len)
    }

    /// All samples of one value; empty if it was not measured.
    #[must_use]
    pub fn samples(&self, name: &str) -> &[f64] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// One value of both cells, connection by connection: those that took turns.
    #[must_use]
    pub fn paired_with(&self, other: &Cell, name: &str) -> (Vec<f64>, Vec<f64>) {
        let mine = self.by_repeat(name);
        let theirs = other.by_repeat(name);
        let both = mine.iter().filter_map(|(n, a)| Some((*a, *theirs.get(n)?)));
        both.unzip()
    }

    /// Two values of this cell, connection by connection.
    #[must_use]
    pub fn paired(&self, one: &str, other: &str) -> (Vec<f64>, Vec<f64>) {
        let theirs = self.by_repeat(other);
        let both = self.by_repeat(one).into_iter();
        both.filter_map(|(n, a)| Some((a, *theirs.get(&n)?))).unzip()
    }

    fn by_repeat(&self, name: &str) -> BTreeMap<u32, f64> {
        let repeats = self.repeats.get(name).map_or(&[][..], Vec::as_slice);
        repeats.iter().copied().zip(self.samples(name).iter().copied()).collect()
    }

    /// All samples of one value, for medians. Among times until the client is ready or has its
    /// response are those of connections that were given up: each took longer than its limit, which
    /// stands for it. Empty where half of them or more were given up: that median is beyond the limit.
    #[must_use]
    pub fn observed(&self, name: &str) -> Cow<'_, [f64]> {
        let completed = self.samples(name);
        let is_cut_short = matches!(name, value::READY | value::RESPONSE);
        match self.given_up_ms.len() {
            0 => Cow::Borrowed(completed),
            _ if !is_cut_short => Cow::Borrowed(completed),
            given_up if given_up >= completed.len() => Cow::Borrowed(&[]),
            _ => [completed, &self.given_up_ms].concat().into(),
        }
    }

    /// The median of one value with its exact interval, by [`Cell::observed`]; `None` without samples.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<Estimate> {
        stats::median_estimate(&self.observed(name))
    }
}

/// One mode over all its paths.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What it is about.
    pub key: RowKey,
    /// Its paths without loss, by RTT.
    pub cells: Vec<Cell>,
    /// Its paths with loss, by RTT and loss.
    pub lossy: Vec<Cell>,
    /// Round trips by the specifications, as the sizes on the wire make them.
    pub spec: Option<RoundTrips>,
    /// median(ready) = n × RTT + c; n in round trips, c in ms.
    pub ready: Option<LineFit>,
    /// The same of the first response byte.
    pub response: Option<LineFit>,
    /// Whether both fitted n are what the specification says; `None` without a fit.
    pub holds: Option<Holds>,
}

/// How far n may lie from its specification.
pub const N_TOLERANCE: f64 = 0.05;

/// Whether an n is what the specification says.
pub(crate) fn as_specified(n: &Estimate, spec: u32) -> Holds {
    n.is_within(N_TOLERANCE, f64::from(spec))
}

impl Row {
    /// Fitted n minus the specification's, for ready and response; `None` without a fit.
    #[must_use]
    pub fn off_spec(&self) -> Option<(f64, f64)> {
        let (ready, response, spec) = (self.ready.as_ref()?, self.response.as_ref()?, self.spec?);
        Some((
            ready.slope.value - f64::from(spec.ready),
            response.slope.value - f64::from(spec.response),
        ))
    }

    /// The cell without loss at this RTT.
    #[must_use]
    pub fn at_rtt(&self, rtt_ms: f64) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.rtt_ms == rtt_ms)
    }
}

/// A connection that was not what it was meant to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FellBack {
    /// The mode meant.
    pub intended: Mode,
    /// The mode that the wire shows.
    pub actual: Mode,
}

/// What all samples say.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The rows, by sweep and mode.
    pub rows: Vec<Row>,
    /// Connections that fell back to another mode, and how many.
    pub fell_back: Vec<(FellBack, u64)>,
    /// Connections left out because their views contradict each other: how, and how many.
    pub contradictions: BTreeMap<String, u64>,
    /// How many samples were read, those left out included.
    pub samples: u64,
    /// Samples of this study left out because their mode, RTT or loss cannot be read.
    pub unread: u64,
}

/// What the samples of a run say. Deterministic: `seed` is that of the bootstrap.
///
/// # Errors
/// If a value is not finite, which [`record`] lets nobody write.
pub fn summarise(
    samples: impl IntoIterator<Item = Sample>,
    seed: u64,
) -> Result<Summary, stats::Error> {
    let mut gathered = Gathered::default();
    for sample in samples {
        gathered.take(sample);
    }
    gathered.finish(seed)
}

#[derive(Default)]
struct Gathered {
    cells: BTreeMap<RowKey, BTreeMap<PathKey, Cell>>,
    fell_back: BTreeMap<FellBack, u64>,
    contradictions: BTreeMap<String, u64>,
    samples: u64,
    unread: u64,
}

/// Nanoseconds of RTT and the loss' bits: a total order for map keys.
type PathKey = (u128, u64);

impl Gathered {
    /// Sorts one sample in. One that is not of this study is passed over.
    fn take(&mut self, sample: Sample) {
        if sample.study != STUDY {
            return;
        }
        let axis = |name: &str| sample.point.get(name).map(String::as_str);
        let (Some(intended), Some(rtt), Some(loss)) = (
            axis("mode").and_then(|mode| mode.parse::<Mode>().ok()),
            axis("rtt").and_then(|rtt| rtt.parse::<Delay>().ok()),
            axis("loss").and_then(|loss| loss.parse::<Probability>().ok()),
        ) else {
            self.unread += 1;
            return;
        };
        self.samples += 1;
        let views = sample.labels.get(label::VIEWS).map_or(label::AGREE, String::as_str);
        if views != label::AGREE {
            *self.contradictions.entry(views.to_owned()).or_default() += 1;
            return;
        }
        let actual = sample.labels.get(label::ACTUAL).and_then(|mode| mode.parse().ok());
        let actual = actual.unwrap_or(intended);
        let text = |name: &str| axis(name).unwrap_or_default().to_owned();
        let or_usual = |name, usual: &str| axis(name).unwrap_or(usual).to_owned();
        let [middlebox, queue, peer, visit] = UNHINDERED;
        let mut key = RowKey {
            sweep: text("sweep"),
            mode: intended,
            key: text("key"),
            group: text("group"),
            library: text("library"),
            chain: text("chain"),
            middlebox: or_usual("middlebox", middlebox),
            queue: or_usual("queue", queue),
            peer: or_usual("peer", peer),
            visit: or_usual("visit", visit),
        };
        // Where something hinders a mode, its falling back is what is asked for.
        if actual != intended && key.is_unhindered() {
            *self.fell_back.entry(FellBack { intended, actual }).or_default() += 1;
        }
        // A SYN with data that is lost is sent again without. Counted as ordinary TCP, it would take
        // the slow tail from Fast Open, and give it to TCP: under loss what was tried counts.
        if loss.is_zero() && key.is_unhindered() {
            key.mode = actual;
        }
        let path = (rtt.duration().as_nanos(), loss.value().to_bits());
        let cell = self.cells.entry(key).or_default().entry(path).or_insert_with(|| Cell {
            rtt_ms: rtt.as_millis_f64(),
            loss: loss.value(),
            values: BTreeMap::new(),
            repeats: BTreeMap::new(),
            actual: BTreeMap::new(),
            given_up_ms: Vec::new(),
            failed: BTreeMap::new(),
            command: sample.command.clone(),
        });
        cell.add(sample);
    }

    fn finish(self, seed: u64) -> Result<Summary, stats::Error> {
        let rows = self.cells.into_iter().map(|(key, cells)| row(key, cells, seed));
        Ok(Summary {
            rows: rows.collect::<Result<_, _>>()?,
            fell_back: self.fell_back.into_iter().collect(),
            contradictions: self.contradictions,
            samples: self.samples,
            unread: self.unread,
        })
    }
}

impl Cell {
    fn add(&mut self, sample: Sample) {
        match sample.outcome {
            Outcome::Completed => {
                if let Some(actual) = sample.labels.get(label::ACTUAL) {
                    *self.actual.entry(actual.clone()).or_default() += 1;
                }
                for (name, value) in sample.values {
                    self.repeats.entry(name.clone()).or_default().push(sample.repeat);
                    self.values.entry(name).or_default().push(value);
                }
            }
            Outcome::TimedOut { after_ms } => self.given_up_ms.push(after_ms),
            Outcome::Failed { reason } => {
                let reason = study::reason_among(&self.failed, &reason);
                *self.failed.entry(reason).or_default() += 1;
            }
        }
    }
}

fn row(key: RowKey, cells: BTreeMap<PathKey, Cell>, seed: u64) -> Result<Row, stats::Error> {
    let (cells, lossy): (Vec<_>, Vec<_>) = cells.into_values().partition(|cell| cell.loss == 0.0);
    // Fallbacks under loss have the specification of what they were.
    let cells_of_mode = if cells.is_empty() { &lossy } else { &cells };
    let whole = |name| {
        let values: Vec<f64> =
            cells_of_mode.iter().flat_map(|cell| cell.samples(name)).copied().collect();
        stats::median(&values).map(|median| median.round() as u32)
    };
    let spec = match (whole(value::SPEC_READY), whole(value::SPEC_RESPONSE)) {
        (Some(ready), Some(response)) => Some(RoundTrips { ready, response }),
        _ => None,
    };
    let ready = fit(&cells, value::READY, seed)?;
    let response = fit(&cells, value::RESPONSE, seed)?;
    let holds = match (&ready, &response, spec) {
        (Some(ready), Some(response), Some(spec)) => {
            let response = as_specified(&response.slope, spec.response);
            Some(as_specified(&ready.slope, spec.ready).and(response))
        }
        _ => None,
    };
    Ok(Row { key, cells, lossy, spec, ready, response, holds })
}

/// The line through the medians of the cells; `None` with fewer than two RTTs of three samples each.
fn fit(cells: &[Cell], name: &str, seed: u64) -> Result<Option<LineFit>, stats::Error> {
    let observed: Vec<_> = cells.iter().map(|cell| (cell.rtt_ms, cell.observed(name))).collect();
    let points: Vec<stats::Cell<'_>> = observed
        .iter()
        .map(|(rtt_ms, samples)| stats::Cell { x: *rtt_ms, samples })
        .filter(|cell| cell.samples.len() >= FIT_SAMPLES)
        .collect();
    if points.len() < 2 {
        return Ok(None);
    }
    let bootstrap = Bootstrap { seed, ..Bootstrap::default() };
    stats::fit_medians(&points, bootstrap, Confidence::C95).map(Some)
}

/// Fewer samples in a cell say nothing about how sure its median is.
const FIT_SAMPLES: usize = 3;
