//! What samples come to: a row a point, and what a hop costs.

use std::collections::BTreeMap;

use record::{Outcome, Sample};
use seclink::path::{FrameSize, Reach};
use serde::Serialize;
use stats::{Bootstrap, Confidence, Estimate};
use traffic::Sizes;

use crate::point::{AXES, Backend, Gateway, Network, Offered, Point, Protocol, Ways};
use crate::sample::{STUDY, value};

/// A point and what its trials came to. Times of a guest machine are virtual.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The point of the plan that was measured.
    #[serde(serialize_with = "as_fields")]
    pub point: Point,
    /// Trials that came to something.
    pub trials: usize,
    /// Trials that did not, and why the first did not.
    pub failed: usize,
    /// Why the first that failed did, if any did.
    pub failure: Option<String>,
    /// Median delay one way, in microseconds.
    pub median_us: Option<Estimate>,
    /// 99 of 100 frames took at most so long.
    pub p99_us: Option<Estimate>,
    /// The share of frames lost, of all trials together.
    pub lost: Option<f64>,
    /// What came, in Mbit/s of the tester's frames.
    pub delivered_mbps: Option<Estimate>,
    /// The most without loss, in Mbit/s of the tester's frames.
    pub throughput_mbps: Option<Estimate>,
    /// The same in frames per second.
    pub throughput_pps: Option<Estimate>,
    /// Whether it was the tester that could send no more, in any trial.
    pub tester_limits: bool,
    /// The longest burst without loss, in frames.
    pub burst: Option<Estimate>,
    /// Nanoseconds per frame of it: instructions, in a guest machine.
    pub per_frame_ns: Option<Estimate>,
    /// CPU time of the data plane per frame, in nanoseconds.
    pub cpu_ns: Option<Estimate>,
    /// Bytes counted on the first link and in the core.
    pub counted: Option<[f64; 2]>,
    /// Bytes by the formats.
    pub computed: Option<FrameSize>,
    /// What was dropped and why, in the last trial that lost any.
    pub drops: Option<String>,
    /// The command that measures it again.
    pub command: String,
    #[serde(skip)]
    pub(crate) turns: Turns,
}

/// Values of the trials that took turns with those of other points.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Turns {
    /// Highest rate without loss, in Mbit/s.
    pub(crate) throughput_mbps: BTreeMap<u32, f64>,
    /// Median delay one way, in microseconds.
    pub(crate) median_us: BTreeMap<u32, f64>,
}

fn as_fields<S: serde::Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
    point.fields().serialize(serializer)
}

/// What one more hop adds to the delay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerHop {
    /// What carries the frames.
    pub backend: String,
    /// What protects them.
    pub protocol: String,
    /// Between which nodes frames are protected.
    pub reach: Reach,
    /// Frame sizes in bytes, without check sequence.
    pub frame: Sizes,
    /// What was offered.
    pub load: String,
    /// Microseconds per hop.
    pub slope_us: Estimate,
    /// Microseconds without a hop.
    pub intercept_us: Estimate,
    /// The medians by hops.
    pub medians: Vec<(u8, f64)>,
}

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// A row a point, in the order in which they were first measured.
    pub rows: Vec<Row>,
    /// What a hop costs, where several numbers of hops were measured.
    pub per_hop: Vec<PerHop>,
}

impl Summary {
    /// Sums samples up; those of other studies are left out.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Summary {
        let mut points: Vec<(Point, Vec<&Sample>)> = Vec::new();
        for sample in samples.iter().filter(|sample| sample.study == STUDY) {
            let sweep = sample.point.get("sweep").map_or("", String::as_str);
            let Some(point) = AXES.of_fields(&sample.point, &Point::of_sweep(sweep)) else {
                continue;
            };
            match points.iter_mut().find(|(known, _)| *known == point) {
                Some((_, own)) => own.push(sample),
                None => points.push((point, vec![sample])),
            }
        }
        let per_hop = per_hop(&points);
        let rows = points.into_iter().map(|(point, samples)| row(point, &samples)).collect();
        Summary { rows, per_hop }
    }

    /// The row of a point like this one but for the protocol: nothing protects it.
    #[must_use]
    pub fn plain_of(&self, row: &Row) -> Option<&Row> {
        let plain = Point {
            protocol: Protocol::usual(seclink::path::Protection::Plain),
            reach: Reach::EndToEnd,
            gateway: Gateway(None),
            ..row.point.clone()
        };
        let plain = plain.canonical();
        self.rows.iter().find(|other| other.point == plain)
    }

    /// Rows that have a delay, and the plain row to which each is set.
    pub(crate) fn delays(&self) -> impl Iterator<Item = (&Row, Option<&Row>)> {
        let rows = self.rows.iter().filter(|row| row.median_us.is_some());
        rows.map(|row| (row, self.plain_of(row)))
    }
}

/// The name of a value in the samples of a backend.
pub(crate) fn named(backend: Backend, name: &str) -> String {
    match backend {
        Backend::Guest => format!("{}{name}", value::VIRTUAL),
        _ => name.to_owned(),
    }
}

fn good<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Sample> {
    samples.iter().copied().filter(|sample| sample.outcome == Outcome::Completed)
}

fn values(samples: &[&Sample], name: &str) -> Vec<f64> {
    good(samples).filter_map(|sample| sample.values.get(name).copied()).collect()
}

/// Returns a value by turn.
fn by_turn(samples: &[&Sample], name: &str) -> BTreeMap<u32, f64> {
    good(samples).filter_map(|sample| Some((sample.repeat, *sample.values.get(name)?))).collect()
}

fn row(point: Point, samples: &[&Sample]) -> Row {
    let estimate = |name: &str| stats::median_estimate(&values(samples, name));
    let timed = |name: &str| estimate(&named(point.backend, name));
    let sum = |name: &str| values(samples, name).iter().sum::<f64>();
    let failures = samples.iter().filter_map(|sample| match &sample.outcome {
        Outcome::Failed { reason } => Some(reason.clone()),
        _ => None,
    });
    let failures: Vec<String> = failures.collect();
    let lost = values(samples, value::LOSS);
    let sent = sum(value::SENT);
    let counted = [value::ACCESS, value::CORE].map(|name| values(samples, name).last().copied());
    let computed = match point.frame {
        Sizes::Fixed(size) => Some(FrameSize::of(&point.topology(), size)),
        Sizes::Imix => None,
    };
    let label = |name: &str| good(samples).filter_map(|one| one.labels.get(name).cloned()).last();
    Row {
        trials: good(samples).count(),
        failed: failures.len(),
        failure: failures.first().cloned(),
        median_us: timed(value::MEDIAN),
        p99_us: timed(value::P99),
        lost: (!lost.is_empty() && sent > 0.0)
            .then(|| 1.0 - sum(value::RECEIVED) / sent)
            .map(|share| share.max(0.0)),
        delivered_mbps: timed(value::DELIVERED),
        throughput_mbps: timed(value::THROUGHPUT),
        throughput_pps: timed(value::FRAMES),
        tester_limits: label("limit").is_some(),
        burst: estimate(value::BURST),
        per_frame_ns: timed(value::PER_FRAME),
        cpu_ns: estimate(value::CPU),
        counted: match counted {
            [Some(access), Some(core)] => Some([access, core]),
            _ => None,
        },
        computed,
        drops: label("drops"),
        turns: Turns {
            throughput_mbps: by_turn(samples, &named(point.backend, value::THROUGHPUT)),
            median_us: by_turn(samples, &named(point.backend, value::MEDIAN)),
        },
        command: samples.last().map(|sample| sample.command.clone()).unwrap_or_default(),
        point,
    }
}

/// What one more hop costs: a line through the medians by hops.
fn per_hop(points: &[(Point, Vec<&Sample>)]) -> Vec<PerHop> {
    let mut groups: Vec<(Point, BTreeMap<u8, Vec<f64>>)> = Vec::new();
    for (point, samples) in points.iter().filter(|(point, _)| point.load.load().is_some()) {
        let one_way = point.ways == Ways::One && point.gateway == Gateway(None);
        if !one_way || point.backend == Backend::Between {
            continue;
        }
        let delays = values(samples, &named(point.backend, value::MEDIAN));
        let key = Point { hops: 0, sweep: String::new(), ..point.clone() };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, cells)) => cells.entry(point.hops).or_default().extend(delays),
            None => groups.push((key, BTreeMap::from([(point.hops, delays)]))),
        }
    }
    groups.iter().filter_map(|(point, cells)| fitted(point, cells)).collect()
}

fn fitted(point: &Point, cells: &BTreeMap<u8, Vec<f64>>) -> Option<PerHop> {
    let usable: Vec<_> = cells.iter().filter(|(_, delays)| !delays.is_empty()).collect();
    if usable.len() < 2 {
        return None;
    }
    let medians: Vec<(u8, f64)> =
        usable.iter().filter_map(|(hops, delays)| Some((**hops, stats::median(delays)?))).collect();
    let line: Vec<stats::Cell<'_>> = usable
        .iter()
        .map(|(hops, delays)| stats::Cell { x: f64::from(**hops), samples: delays })
        .collect();
    let (slope, intercept) = match stats::fit_medians(&line, Bootstrap::default(), Confidence::C95)
    {
        Ok(fit) => (fit.slope, fit.intercept),
        // Too few trials for an interval, as of a guest machine's exact times.
        Err(_) => {
            let (xs, ys): (Vec<f64>, Vec<f64>) =
                medians.iter().map(|(hops, median)| (f64::from(*hops), *median)).unzip();
            let line = stats::fit_line(&xs, &ys).ok()?;
            let exact = |value| Estimate { value, low: value, high: value, confidence: 0.0 };
            (exact(line.slope), exact(line.intercept))
        }
    };
    Some(PerHop {
        backend: point.backend.name().to_owned(),
        protocol: point.label(),
        reach: point.reach,
        frame: point.frame,
        load: point.load.to_string(),
        slope_us: slope,
        intercept_us: intercept,
        medians,
    })
}

/// Whether a row is of the paper's path and of our usual load, for which the answer is given.
pub(crate) fn is_usual(point: &Point) -> bool {
    point.network == Network::Mpls
        && point.ways == Ways::One
        && point.gateway == Gateway(None)
        && matches!(point.load, Offered::Frames(_) | Offered::Rate(_) | Offered::Throughput)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample::tests::flow;
    use crate::sample::{Measured, sample};

    /// Three trials each of some protocols at a low load and of their throughput, and of MACsec by hops.
    pub(crate) fn samples() -> Vec<Sample> {
        trials_of(3)
    }

    /// As [`samples`], with so many trials each.
    pub(crate) fn trials_of(trials: u32) -> Vec<Sample> {
        let mut samples = Vec::new();
        for repeat in 0..trials {
            for (protocol, median, mbps) in [
                ("plain", 10_000, 4000.0),
                ("macsec", 12_000, 2000.0),
                ("esp:aes-cbc-128-sha1", 15_000, 1000.0),
            ] {
                let protocol: Protocol = protocol.parse().unwrap();
                let base = Point { protocol, ..Point::of_sweep("protocols") };
                let size = FrameSize::of(&base.topology(), 1000);
                let bytes = Some([size.access as f64, size.core as f64]);
                let low = Measured {
                    flows: vec![flow(100, 0, median + u64::from(repeat) * 10)],
                    bytes,
                    cpu: Some(std::time::Duration::from_micros(median / 50)),
                    ..Measured::default()
                };
                samples.push(sample(&base, repeat, 1, &low, ""));
                let found = tester::Found {
                    bits_per_second: mbps * 1e6,
                    frames_per_second: mbps * 1e6 / 8000.0,
                    trials: 9,
                    ..tester::Found::default()
                };
                let most = Measured { found: Some(found), ..low };
                let point = Point { load: Offered::Throughput, ..base };
                samples.push(sample(&point, repeat, 1, &most, ""));
            }
            for hops in [1u8, 4, 8] {
                for (protocol, reach, each) in
                    [("plain", Reach::EndToEnd, 2_000), ("macsec", Reach::EveryHop, 4_000)]
                {
                    let protocol: Protocol = protocol.parse().unwrap();
                    let network = Network::Direct;
                    let base = Point::of_sweep("hops");
                    let point = Point { protocol, reach, network, hops, ..base };
                    let median = 1_000 + each * u64::from(hops);
                    let measured =
                        Measured { flows: vec![flow(100, 0, median)], ..Measured::default() };
                    samples.push(sample(&point, repeat, 1, &measured, ""));
                }
            }
        }
        samples
    }

    #[test]
    fn a_point_is_a_row() {
        let summary = Summary::of(&samples());
        assert_eq!(summary.rows.len(), 12);
        let macsec = &summary.rows[2];
        assert_eq!(macsec.point.protocol.to_string(), "macsec");
        assert_eq!(macsec.median_us.unwrap().value, 12.01);
        assert_eq!(macsec.counted, Some([1032.0, 1054.0]));
        assert_eq!((macsec.trials, macsec.failed, macsec.lost), (3, 0, Some(0.0)));
        let plain = summary.plain_of(macsec).unwrap();
        assert_eq!(plain.point.protocol.to_string(), "plain");
    }

    #[test]
    fn a_hop_has_its_price() {
        let summary = Summary::of(&samples());
        let of = |protocol: &str| {
            let mut own = summary.per_hop.iter().filter(|one| one.protocol == protocol);
            own.next().unwrap().slope_us.value
        };
        assert!((of("plain") - 2.0).abs() < 1e-6 && (of("macsec") - 4.0).abs() < 1e-6);
    }

    #[test]
    fn what_failed_is_counted_and_in_no_figure() {
        let mut samples = samples();
        for sample in samples.iter_mut().filter(|sample| sample.point["protocol"] == "macsec") {
            sample.outcome = Outcome::Failed { reason: "no frame came".to_owned() };
        }
        let summary = Summary::of(&samples);
        let row = &summary.rows[2];
        assert_eq!((row.trials, row.failed, row.median_us), (0, 3, None));
        assert_eq!(row.failure.as_deref(), Some("no frame came"));
    }
}
