//! From one trial to one sample.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use record::{Outcome, Sample};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use study::Commands;
use tester::{Flow, Found};

use crate::plan::recorded_options;
use crate::point::{AXES, Backend, Offered, Point};

/// The study's name in samples.
pub(crate) const STUDY: &str = "link";

/// Names of the values in a sample, and what each is.
pub mod value {
    use record::{Better, Clock, ValueKind};

    /// Median delay one way.
    pub const MEDIAN: &str = "delay_p50_us";
    /// Shortest one-way delay of a trial, in microseconds.
    pub const LEAST: &str = "delay_min_us";
    /// Mean one-way delay of a trial, in microseconds.
    pub const MEAN: &str = "delay_mean_us";
    /// 99 of 100 frames took at most so long.
    pub const P99: &str = "delay_p99_us";
    /// 999 of 1000.
    pub const P999: &str = "delay_p999_us";
    /// Longest one-way delay of a trial, in microseconds.
    pub const LONGEST: &str = "delay_max_us";
    /// The share of frames sent that did not come.
    pub const LOSS: &str = "lost_share";
    /// Frames sent, both ways together.
    pub const SENT: &str = "sent";
    /// Frames that came.
    pub const RECEIVED: &str = "received";
    /// Frames that came after one of a higher number.
    pub const REORDERED: &str = "reordered";
    /// Frames that came more than once.
    pub const DUPLICATES: &str = "duplicates";
    /// What came, in bits per second of the tester's frames.
    pub const DELIVERED: &str = "delivered_mbps";
    /// The highest load without loss (RFC 2544 §26.1), in bits per second of the tester's frames.
    pub const THROUGHPUT: &str = "throughput_mbps";
    /// The same in frames per second.
    pub const FRAMES: &str = "throughput_pps";
    /// The longest burst without loss (§26.4), in frames.
    pub const BURST: &str = "burst_frames";
    /// Time per frame of a burst, from its first frame to its last.
    pub const PER_FRAME: &str = "burst_ns_per_frame";
    /// CPU time of the data plane per frame, where it has a thread of its own.
    pub const CPU: &str = "cpu_ns_per_frame";
    /// Bytes of a frame between the first node and the second, counted there.
    pub const ACCESS: &str = "access_bytes";
    /// Bytes of a frame between the provider's edges, counted there.
    pub const CORE: &str = "core_bytes";
    /// The same by the formats alone.
    pub const COMPUTED_ACCESS: &str = "computed_access_bytes";
    /// The same by the formats alone.
    pub const COMPUTED_CORE: &str = "computed_core_bytes";
    /// Before the name of a time that a guest machine measured: its clock counts instructions.
    pub const VIRTUAL: &str = "virtual_";

    const TIMES: [&str; 6] = [MEDIAN, LEAST, MEAN, P99, P999, LONGEST];
    const VIRTUAL_TIMES: [&str; 6] = [
        "virtual_delay_p50_us",
        "virtual_delay_min_us",
        "virtual_delay_mean_us",
        "virtual_delay_p99_us",
        "virtual_delay_p999_us",
        "virtual_delay_max_us",
    ];

    /// What each value is; the first is what results are compared by.
    pub(crate) fn kinds() -> Vec<(&'static str, ValueKind)> {
        let wall = |unit, better| ValueKind::new(unit, better, Clock::Wall);
        let exact = |unit, better| ValueKind::new(unit, better, Clock::Virtual);
        let count = |unit, better| ValueKind::new(unit, better, Clock::Count);
        let mut kinds: Vec<(&'static str, ValueKind)> =
            TIMES.iter().map(|name| (*name, wall("us", Better::Less))).collect();
        kinds.extend(VIRTUAL_TIMES.iter().map(|name| (*name, exact("us", Better::Less))));
        kinds.extend([
            (LOSS, count("", Better::Less)),
            (SENT, count("", Better::Neither)),
            (RECEIVED, count("", Better::Neither)),
            (REORDERED, count("", Better::Less)),
            (DUPLICATES, count("", Better::Less)),
            (DELIVERED, wall("Mbit/s", Better::More)),
            ("virtual_delivered_mbps", exact("Mbit/s", Better::More)),
            (THROUGHPUT, wall("Mbit/s", Better::More)),
            ("virtual_throughput_mbps", exact("Mbit/s", Better::More)),
            (FRAMES, wall("1/s", Better::More)),
            ("virtual_throughput_pps", exact("1/s", Better::More)),
            (BURST, count("", Better::More)),
            (PER_FRAME, wall("ns", Better::Less)),
            ("virtual_burst_ns_per_frame", exact("ns", Better::Less)),
            (CPU, wall("ns", Better::Less)),
            (ACCESS, count("bytes", Better::Less)),
            (CORE, count("bytes", Better::Less)),
            (COMPUTED_ACCESS, count("bytes", Better::Less)),
            (COMPUTED_CORE, count("bytes", Better::Less)),
        ]);
        kinds
    }
}

/// What a trial came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// The directions of the trial, the last of a search.
    pub(crate) flows: Vec<Flow>,
    /// What a search found.
    pub(crate) found: Option<Found>,
    /// The longest burst that came whole.
    pub(crate) burst: Option<u32>,
    /// CPU time of the data plane in the trial.
    pub(crate) cpu: Option<Duration>,
    /// Bytes of a frame on the first link, and between the provider's edges.
    pub(crate) bytes: Option<[f64; 2]>,
    /// What the path dropped in the trial, by cause.
    pub(crate) drops: Vec<(String, u64)>,
}

/// Makes the commands that measure trials again.
pub(crate) fn commands(plan: &Value) -> Commands {
    let options = recorded_options(plan);
    Box::new(move |sample| {
        let point = AXES.of_fields(&sample.point, &Point::of_sweep(sample.point.get("sweep")?))?;
        let command = point.command(sample.seed, sample.repeat.saturating_add(1));
        Some(command + options.as_ref()?)
    })
}

/// The sample of a trial. `options`: what a command needs beside the point to measure it again.
pub(crate) fn sample(
    point: &Point,
    repeat: u32,
    seed: u64,
    measured: &Measured,
    options: &str,
) -> Sample {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut sample = Sample {
        study: STUDY.to_owned(),
        point: point.fields(),
        repeat,
        seed,
        at_unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        outcome: outcome(measured),
        values: BTreeMap::new(),
        labels: BTreeMap::new(),
        attachments: Vec::new(),
        command: format!("{}{options}", point.command(seed, repeat.saturating_add(1))),
    };
    put_values(&mut sample.values, point, measured);
    if !measured.drops.is_empty() {
        let causes = measured.drops.iter().map(|(cause, count)| format!("{cause} {count}"));
        sample.labels.insert("drops".to_owned(), causes.collect::<Vec<_>>().join(", "));
    }
    let ring: u64 = measured.flows.iter().map(|flow| flow.ring_drops).sum();
    if ring > 0 {
        sample.labels.insert("tester_dropped".to_owned(), ring.to_string());
    }
    if measured.found.is_some_and(|found| found.is_highest) {
        sample.labels.insert("limit".to_owned(), "tester".to_owned());
    }
    sample
}

/// A path on which nothing came is a failure, and stays in.
fn outcome(measured: &Measured) -> Outcome {
    let failed = |reason: &str| Outcome::Failed { reason: reason.to_owned() };
    match &measured.found {
        Some(found) if found.bits_per_second == 0.0 => failed("every load lost frames"),
        _ if measured.burst == Some(0) => failed("every burst lost frames"),
        _ if measured.flows.iter().any(|flow| flow.received == 0) => failed("no frame came"),
        _ => Outcome::Completed,
    }
}

fn put_values(values: &mut BTreeMap<String, f64>, point: &Point, measured: &Measured) {
    let prefix = if point.backend == Backend::Guest { value::VIRTUAL } else { "" };
    let mut timed = |name: &str, number: Option<f64>| {
        values.extend(number.map(|number| (format!("{prefix}{name}"), number)));
    };
    // Both ways: the worse of the two, so that neither hides the other.
    let worst = |of: fn(&tester::Delays) -> Duration| {
        let delays = measured.flows.iter().filter_map(|flow| flow.delays.as_ref());
        delays.map(of).max().map(micros)
    };
    if point.load.load().is_some() {
        timed(value::MEDIAN, worst(|delays| delays.median));
        timed(value::LEAST, worst(|delays| delays.least));
        timed(value::MEAN, worst(|delays| delays.mean));
        timed(value::P99, worst(|delays| delays.p99));
        timed(value::P999, worst(|delays| delays.p999));
        timed(value::LONGEST, worst(|delays| delays.longest));
        timed(value::DELIVERED, delivered(&measured.flows, point));
    }
    if let Some(found) = &measured.found {
        timed(value::THROUGHPUT, Some(found.bits_per_second / 1e6));
        timed(value::FRAMES, Some(found.frames_per_second));
    }
    if point.load == Offered::Burst {
        timed(value::PER_FRAME, per_frame(&measured.flows));
        values.extend(measured.burst.map(|frames| (value::BURST.to_owned(), f64::from(frames))));
    }
    put_counts(values, point, measured);
}

fn put_counts(values: &mut BTreeMap<String, f64>, point: &Point, measured: &Measured) {
    let sum = |of: fn(&Flow) -> u64| measured.flows.iter().map(of).sum::<u64>();
    let sent = sum(|flow| flow.sent);
    let mut put = |name: &str, number: Option<f64>| {
        values.extend(number.map(|number| (name.to_owned(), number)));
    };
    let loss = sum(|flow| flow.lost) as f64 / (sent as f64).max(1.0);
    put(value::LOSS, point.load.load().map(|_| loss));
    put(value::SENT, Some(sent as f64));
    put(value::RECEIVED, Some(sum(|flow| flow.received) as f64));
    put(value::REORDERED, Some(sum(|flow| flow.reordered) as f64));
    put(value::DUPLICATES, Some(sum(|flow| flow.duplicates) as f64));
    let cpu = measured.cpu.filter(|_| sent > 0 && point.backend != Backend::Guest);
    put(value::CPU, cpu.map(|cpu| cpu.as_nanos() as f64 / sent as f64));
    if let (Some([access, core]), traffic::Sizes::Fixed(size)) = (measured.bytes, point.frame) {
        let computed = seclink::path::FrameSize::of(&point.topology(), size);
        put(value::ACCESS, Some(access));
        put(value::CORE, Some(core));
        put(value::COMPUTED_ACCESS, Some(computed.access as f64));
        put(value::COMPUTED_CORE, Some(computed.core as f64));
    }
}

/// Bits per second that came, by the time in which they were sent: of both ways together.
fn delivered(flows: &[Flow], point: &Point) -> Option<f64> {
    let of = |flow: &Flow| {
        let sending = flow.sending.as_secs_f64();
        // So many gaps there are between frames: one fewer than frames.
        let gaps = flow.sent.saturating_sub(1) as f64;
        (sending > 0.0 && gaps > 0.0).then(|| {
            let per_second = gaps / sending * (1.0 - flow.loss());
            per_second * point.frame.mean() * 8.0 / 1e6
        })
    };
    flows.iter().map(of).sum()
}

/// Nanoseconds from one frame of a burst to the next.
fn per_frame(flows: &[Flow]) -> Option<f64> {
    let flow = flows.first().filter(|flow| flow.sent > 1)?;
    Some(flow.sending.as_nanos() as f64 / (flow.sent - 1) as f64)
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn flow(sent: u64, lost: u64, median: u64) -> Flow {
        let delay = Duration::from_nanos(median);
        let delays = tester::Delays {
            least: delay,
            median: delay,
            p99: delay * 2,
            p999: delay * 3,
            longest: delay * 4,
            mean: delay,
        };
        Flow {
            scheduled: sent,
            sent,
            received: sent - lost,
            lost,
            sending: Duration::from_millis(sent - 1),
            delays: Some(delays),
            ..Flow::default()
        }
    }

    #[test]
    fn a_trial_has_its_values() {
        let measured = Measured {
            flows: vec![flow(101, 1, 5_000)],
            cpu: Some(Duration::from_micros(202)),
            bytes: Some([1032.0, 1054.0]),
            drops: vec![("InPktsNotValid".to_owned(), 1)],
            ..Measured::default()
        };
        let protocol = "macsec".parse().unwrap();
        let point = Point { protocol, ..Point::of_sweep("a") };
        let sample = sample(&point, 0, 1, &measured, "");
        assert_eq!(sample.outcome, Outcome::Completed);
        let value = |name: &str| sample.values[name];
        assert_eq!((value(value::MEDIAN), value(value::CPU)), (5.0, 2000.0));
        assert_eq!((value(value::CORE), value(value::COMPUTED_CORE)), (1054.0, 1054.0));
        assert!((value(value::LOSS) - 1.0 / 101.0).abs() < 1e-9);
        assert!((value(value::DELIVERED) - 8.0 * 100.0 / 101.0).abs() < 1e-6);
        assert_eq!(sample.labels["drops"], "InPktsNotValid 1");
        // What a guest machine measures has names of its own.
        let guest = Point { backend: Backend::Guest, ..point };
        let sample = super::sample(&guest, 0, 1, &measured, "");
        assert!(sample.values.contains_key("virtual_delay_p50_us"));
        assert!(
            !sample.values.contains_key(value::MEDIAN) && !sample.values.contains_key(value::CPU)
        );
        let known = value::kinds();
        for name in sample.values.keys() {
            assert!(known.iter().any(|(kind, _)| kind == name), "{name}");
        }
    }

    #[test]
    fn a_path_that_carries_nothing_is_a_failed_sample() {
        let measured = Measured { flows: vec![flow(10, 10, 1)], ..Measured::default() };
        let sample = sample(&Point::of_sweep("a"), 0, 1, &measured, "");
        assert!(matches!(sample.outcome, Outcome::Failed { .. }));
    }
}
