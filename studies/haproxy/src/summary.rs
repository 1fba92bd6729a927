//! What the samples come to, cell by cell.

use std::collections::BTreeMap;

use record::{Outcome, Sample};
use serde::Serialize;
use stats::{Confidence, Estimate, compare_paired};

use haproxy::Locks;
use tls::Version;

use crate::point::{Point, Scenario};
use crate::published;
use crate::sample::{STUDY, label, value};

/// The library that others are set against, with the C library's locks.
const REFERENCE: &str = "openssl-1.1.1w";

/// What was measured with HAProxy.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// HAProxy's releases in the samples.
    pub releases: Vec<String>,
    /// Proxies in a row, in the chain.
    pub proxies: Option<usize>,
    /// The certificates' key.
    pub key: String,
    /// The key exchange's group.
    pub group: String,
    /// Processors of the machine, where its manifest says it.
    pub cores: Option<u32>,
    /// What was run, by library.
    pub programs: Vec<Program>,
    /// A row a cell, in the order of the cells.
    pub rows: Vec<Row>,
}

/// HAProxy on a library, as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The library's driver.
    pub library: String,
    /// HAProxy's version, as it says itself.
    pub haproxy: String,
    /// Debian's version of its source.
    pub source: String,
    /// The library that it says it runs on.
    pub runs_on: String,
    /// Whether it was built with light locks as well.
    pub light_locks: bool,
}

/// What rows are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Cell {
    /// What HAProxy does.
    pub scenario: Scenario,
    /// The TLS version.
    pub version: Version,
    /// HAProxy's threads (`nbthread`).
    pub threads: usize,
    /// The library's driver name, as `openssl-3.5.5`.
    pub library: String,
    /// What stands under the library's locks.
    pub locks: Locks,
    /// Of points that differ in nothing of the above: key, group, proxies and release.
    #[serde(skip)]
    other: String,
}

impl Cell {
    fn of(point: Point) -> Cell {
        let Point { scenario, version, threads, library, locks, key, group, proxies, release } =
            point;
        let other = format!("{key} {group} {proxies} {release}");
        Cell { scenario, version, threads, library, locks, other }
    }
}

/// What the runs of a cell came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The cell of the plan.
    #[serde(flatten)]
    pub cell: Cell,
    /// Runs that showed what they should.
    pub runs: usize,
    /// Runs that failed, and why the first did. They are in no figure.
    pub failed: usize,
    /// Why the first that failed did, if any did.
    pub failure: Option<String>,
    /// Connections per second, end to end.
    pub per_second: Option<Estimate>,
    /// HAProxy's CPU time per connection, in microseconds, the kernel's with it.
    pub server_cpu_us: Option<Estimate>,
    /// The kernel's share of it, 0 to 1.
    pub kernel_share: Option<f64>,
    /// Processors that HAProxy kept busy.
    pub server_processors: Option<f64>,
    /// The load generator's CPU time per connection, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// The least share of handshakes that were resumed, by the generator's count.
    pub client_resumed: Option<f64>,
    /// The same by HAProxy's count, towards clients.
    pub front_resumed: Option<f64>,
    /// The same, towards servers.
    pub back_resumed: Option<f64>,
    /// Median time of a connection, in milliseconds.
    pub p50_ms: Option<f64>,
    /// 99 % of connections took no longer, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Connections per second as a ratio to OpenSSL 1.1.1w's with the C library's locks, pair by pair.
    pub ratio: Option<Estimate>,
    /// The same ratio of HAProxy's CPU time per connection.
    pub cpu_ratio: Option<Estimate>,
    /// HAProxy 2025's ratio at 64 threads, and the library that it is of.
    pub published: Option<PublishedRatio>,
    /// The command that measures the cell again.
    pub command: String,
    /// HAProxy's CPU time per connection by run, in microseconds: runs of one number took turns.
    #[serde(skip)]
    pub(crate) cpu_by_run: BTreeMap<u32, f64>,
}

/// A ratio of HAProxy 2025.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRatio {
    /// The library as HAProxy 2025 names it.
    pub library: String,
    /// To OpenSSL 1.1.1w's connections per second.
    pub ratio: f64,
}

impl Summary {
    /// Sums samples up; those of other studies are left out.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Self {
        let mut cells: BTreeMap<Cell, Vec<&Sample>> = BTreeMap::new();
        let mut summary = Self::default();
        for sample in samples.iter().filter(|sample| sample.study == STUDY) {
            let Some(point) = Point::of_fields(&sample.point) else { continue };
            summary.note(sample, &point);
            let cell = Cell::of(point);
            cells.entry(cell).or_default().push(sample);
        }
        summary.programs.sort_by(|a, b| a.library.cmp(&b.library));
        summary.rows = cells.iter().map(|(cell, samples)| row(cell, samples, &cells)).collect();
        summary
    }

    fn note(&mut self, sample: &Sample, point: &Point) {
        if !self.releases.contains(&point.release) {
            self.releases.push(point.release.clone());
        }
        if point.scenario == Scenario::Chain {
            self.proxies = Some(point.proxies);
        }
        for (all, one) in
            [(&mut self.key, point.key.to_string()), (&mut self.group, point.group.to_string())]
        {
            if !all.split(", ").any(|known| known == one) {
                let between = if all.is_empty() { "" } else { ", " };
                *all = format!("{all}{between}{one}");
            }
        }
        self.programs.extend(program(sample).filter(|one| !self.programs.contains(one)));
    }
}

/// None of a sample without labels.
fn program(sample: &Sample) -> Option<Program> {
    let label = |name: &str| sample.labels.get(name).cloned();
    Some(Program {
        library: sample.point.get("library")?.clone(),
        haproxy: label(label::HAPROXY)?,
        source: label(label::SOURCE)?,
        runs_on: label(label::RUNS_ON)?,
        light_locks: label(label::LIGHT)? == "yes",
    })
}

/// The samples of a cell that showed what they should, by repeat.
fn values(samples: &[&Sample], name: &str) -> BTreeMap<u32, f64> {
    let good = samples.iter().filter(|sample| sample.outcome == Outcome::Completed);
    good.filter_map(|sample| Some((sample.repeat, *sample.values.get(name)?))).collect()
}

fn row(cell: &Cell, samples: &[&Sample], cells: &BTreeMap<Cell, Vec<&Sample>>) -> Row {
    let all = |name: &str| values(samples, name).into_values().collect::<Vec<f64>>();
    let estimate = |name: &str| stats::median_estimate(&all(name));
    let median = |name: &str| estimate(name).map(|estimate| estimate.value);
    let least = |name: &str| all(name).into_iter().reduce(f64::min);
    let failures = || {
        samples.iter().filter_map(|sample| match &sample.outcome {
            Outcome::Failed { reason } => Some(reason.clone()),
            _ => None,
        })
    };
    let reference = Cell { library: REFERENCE.into(), locks: Locks::Pthread, ..cell.clone() };
    let reference = cells.get(&reference).map_or(&[][..], Vec::as_slice);
    let ratio = |name: &str| {
        let (ours, theirs) = (values(samples, name), values(reference, name));
        let both = ours.iter().filter_map(|(repeat, value)| Some((theirs.get(repeat)?, value)));
        let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
        compare_paired(&a, &b, Confidence::C95).ok()?.ratio
    };
    Row {
        cell: cell.clone(),
        runs: all(value::PER_SECOND).len(),
        failed: failures().count(),
        failure: failures().next(),
        per_second: estimate(value::PER_SECOND),
        server_cpu_us: estimate(value::SERVER_CPU),
        kernel_share: median(value::KERNEL),
        server_processors: median(value::SERVER_BUSY),
        client_cpu_us: median(value::CLIENT_CPU),
        client_resumed: least(value::CLIENT_RESUMED),
        front_resumed: least(value::FRONT_RESUMED),
        back_resumed: least(value::BACK_RESUMED),
        p50_ms: median(value::P50),
        p99_ms: median(value::P99),
        ratio: ratio(value::PER_SECOND),
        cpu_ratio: ratio(value::SERVER_CPU),
        published: published::ratio(cell.scenario, &cell.library, cell.locks)
            .map(|(library, ratio)| PublishedRatio { library: library.to_owned(), ratio }),
        cpu_by_run: values(samples, value::SERVER_CPU),
        command: samples.first().map(|sample| sample.command.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::sample::labels;
    use haproxy::Built;

    fn built(library: &str) -> Built {
        Built {
            library: library.into(),
            haproxy: "3.0.11".into(),
            debian: "3.0.11-1".into(),
            runs_on: format!("{library} itself"),
            light: true,
            quic: None,
            key: String::new(),
            seconds: 0.0,
            folder: std::path::PathBuf::new(),
        }
    }

    /// Samples as a run of two libraries gives them: 3.0.2 half as fast.
    pub(crate) fn samples() -> Vec<Sample> {
        let text = "[scale.x]\nsweep = [{ name = \"a\", library = [\"openssl-1.1.1w\", \"openssl-3.0.2\"] }]";
        let runs = Plan::parse(text, "x").unwrap().runs(2).unwrap();
        let samples = runs.into_iter().map(|run| {
            let fast = run.point.library == REFERENCE;
            let per_second = if fast { 1000.0 } else { 500.0 } + f64::from(run.repeat);
            let values = [
                (value::PER_SECOND, per_second),
                (value::SERVER_CPU, 1e6 / per_second),
                (value::KERNEL, 0.25),
                (value::FRONT_RESUMED, 1.0 - 0.001 * f64::from(run.repeat)),
            ];
            Sample {
                study: STUDY.into(),
                point: run.point.fields(),
                repeat: run.repeat,
                seed: 0,
                at_unix_ms: 0,
                outcome: Outcome::Completed,
                values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                labels: labels(&built(&run.point.library)),
                attachments: Vec::new(),
                command: run.command,
            }
        });
        samples.collect()
    }

    #[test]
    fn medians_and_ratios_are_of_the_cells() {
        let summary = Summary::of(&samples());
        assert_eq!((summary.proxies, summary.key.as_str()), (Some(10), "rsa-2048"));
        let programs: Vec<&str> = summary.programs.iter().map(|one| one.runs_on.as_str()).collect();
        assert_eq!(programs, ["openssl-1.1.1w itself", "openssl-3.0.2 itself"]);
        let slow: Vec<&Row> =
            summary.rows.iter().filter(|row| row.cell.library == "openssl-3.0.2").collect();
        assert_eq!(slow.len() * 2, summary.rows.len());
        for row in slow {
            assert_eq!((row.runs, row.failed), (3, 0));
            assert_eq!(row.per_second.unwrap().value, 501.0);
            assert_eq!(row.front_resumed, Some(0.998));
            let ratio = row.ratio.unwrap();
            assert!((ratio.value - 501.0 / 1001.0).abs() < 1e-9, "{ratio:?}");
            assert!(ratio.low <= ratio.value && ratio.value <= ratio.high);
            assert!(row.published.is_some());
        }
    }

    #[test]
    fn a_failed_run_is_reported_and_is_in_no_figure() {
        let mut samples = samples();
        let bad = samples.iter_mut().find(|s| s.point["library"] == "openssl-3.0.2").unwrap();
        bad.outcome = Outcome::Failed { reason: "it ended".into() };
        bad.values.insert(value::PER_SECOND.into(), 1e9);
        let summary = Summary::of(&samples);
        let row = summary.rows.iter().find(|row| row.failed > 0).unwrap();
        assert_eq!((row.runs, row.failed, row.failure.as_deref()), (2, 1, Some("it ended")));
        assert!(row.per_second.unwrap().high < 1000.0);
        assert!(Summary::of(&[]).rows.is_empty());
    }

    /// The committed results read as they did, their plan too.
    #[test]
    fn committed_results_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/haproxy");
        let run = record::Run::open(folder).unwrap();
        let plan = Plan::recorded(&run.manifest.plan["haproxy"]).unwrap();
        let runs = plan.runs(2).unwrap();
        assert_eq!(runs.len(), run.samples.len());
        let points = run.samples.iter().map(|sample| Point::of_fields(&sample.point).unwrap());
        assert!(points.zip(&runs).all(|(point, run)| point == run.point));
        let summary = Summary::of(&run.samples);
        assert_eq!((summary.rows.len(), summary.proxies), (88, Some(10)));
        for row in &summary.rows {
            assert_eq!((row.runs, row.failed), (3, 0), "{:?}", row.cell);
        }
    }
}
