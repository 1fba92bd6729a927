//! Samples in, what they say out: a cell for each point, with its values and its failures.

use std::collections::BTreeMap;

use record::{Outcome, Sample};
use serde::{Serialize, Serializer};
use stats::{Confidence, Estimate};
use tls_drivers::{Contexts, Group, Key, Locks, Sessions, Suite, Version, Wire, Workload};

use crate::about::{self, About, Machine};
use crate::point::{Point, Tool};
use crate::profile::Profile;
use crate::sample::{STUDY, current, label, value};

/// Everything measured at one point.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The point of the plan that was measured.
    #[serde(serialize_with = "as_fields")]
    pub point: Point,
    /// Values of measurements that are good, by name and repeat.
    #[serde(skip)]
    values: BTreeMap<String, BTreeMap<u32, f64>>,
    /// Medians with their intervals, by name.
    pub medians: BTreeMap<String, Estimate>,
    /// What else is known, by name: of the last measurement.
    pub labels: BTreeMap<String, String>,
    /// Measurements that failed: in a word, how often, and why the first did.
    pub failed: BTreeMap<String, (u64, String)>,
    /// Slices that were measured and are good.
    pub slices: u32,
    /// Of these, where the hypervisor took time from the machine meanwhile: counted, none is discarded.
    pub stolen: u32,
    /// Of these, where other programs took more than [`WAITED_SHARE`] of the threads' time.
    pub pushed_off: u32,
    /// Slices that were not measured, since too many before them failed.
    pub left_out: u64,
    /// The command that measures it again.
    pub command: String,
}

/// A slice is flagged if its threads had work and did not run for more than this share of its time.
pub const WAITED_SHARE: f64 = 0.05;

fn as_fields<S: Serializer>(point: &Point, serializer: S) -> Result<S::Ok, S::Error> {
    point.fields().serialize(serializer)
}

impl Cell {
    /// The median of one value with its exact interval; `None` without good measurements.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<Estimate> {
        self.medians.get(name).copied()
    }

    /// Good measurements of one value, in the order of their repeats.
    #[must_use]
    pub fn samples(&self, name: &str) -> Vec<f64> {
        self.values.get(name).map(|values| values.values().copied().collect()).unwrap_or_default()
    }

    /// Returns good measurements of one value by round; cells of one round took turns.
    pub(crate) fn by_round(&self, name: &str) -> Option<&BTreeMap<u32, f64>> {
        self.values.get(name)
    }

    /// One value of both cells, repeat by repeat: those that took turns.
    #[must_use]
    pub fn paired_with(&self, other: &Cell, name: &str) -> (Vec<f64>, Vec<f64>) {
        let none = BTreeMap::new();
        let (mine, theirs) =
            (self.values.get(name).unwrap_or(&none), other.values.get(name).unwrap_or(&none));
        mine.iter().filter_map(|(n, a)| Some((*a, *theirs.get(n)?))).unzip()
    }

    /// This cell's value as a multiple of another's, pair by pair, with its interval.
    #[must_use]
    pub fn ratio_to(&self, other: &Cell, name: &str) -> Option<Estimate> {
        let (mine, theirs) = self.paired_with(other, name);
        stats::compare_paired(&theirs, &mine, Confidence::C95).ok()?.ratio
    }

    /// Locks taken on the server's side of a connection, of all kinds.
    #[must_use]
    pub fn server_locks(&self) -> Option<f64> {
        self.sum(&[value::SERVER_READ, value::SERVER_WRITE, value::SERVER_MUTEX])
    }

    /// Locks taken on the client's side of a connection, of all kinds.
    #[must_use]
    pub fn client_locks(&self) -> Option<f64> {
        self.sum(&[value::CLIENT_READ, value::CLIENT_WRITE, value::CLIENT_MUTEX])
    }

    fn sum(&self, names: &[&str]) -> Option<f64> {
        names.iter().map(|name| self.median(name).map(|median| median.value)).sum()
    }

    /// Where the server's locks were taken, the most frequent first: function, and how often a
    /// connection.
    #[must_use]
    pub fn sites(&self) -> Vec<(String, f64)> {
        let text = self.labels.get(label::SITES);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Where the server's instructions went; none where that was not kept.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        serde_json::from_str(self.labels.get(label::PROFILE)?).ok()
    }

    /// Whether anything good was measured.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !self.medians.is_empty()
    }

    fn add(&mut self, sample: Sample) {
        match &sample.outcome {
            Outcome::Completed => {
                let value = |name: &str| sample.values.get(name).copied().unwrap_or_default();
                let time = value(value::WALL) * self.point.threads as f64;
                self.slices += 1;
                self.stolen += u32::from(value(value::STOLEN) > 0.0);
                self.pushed_off += u32::from(value(value::WAITED) > WAITED_SHARE * time);
                for (name, value) in sample.values {
                    let name = current(&name).to_owned();
                    self.values.entry(name).or_default().insert(sample.repeat, value);
                }
                self.labels.extend(sample.labels);
                self.command = sample.command;
            }
            other => {
                let reason = match other {
                    Outcome::Failed { reason } => current(reason).to_owned(),
                    _ => "hung".to_owned(),
                };
                let why = sample.labels.get(label::FAILURE).cloned().unwrap_or_default();
                let left_out = sample.values.get(value::LEFT_OUT).copied().unwrap_or_default();
                self.left_out += left_out as u64;
                let reason = study::reason_among(&self.failed, &reason);
                let first = || (0, fault::excerpt(&why, study::LONGEST_REASON));
                self.failed.entry(reason).or_insert_with(first).0 += 1;
            }
        }
    }

    fn close(&mut self) {
        let median = |values: &BTreeMap<u32, f64>| {
            let values: Vec<f64> = values.values().copied().collect();
            stats::median_estimate(&values)
        };
        let medians =
            self.values.iter().filter_map(|(name, values)| Some((name.clone(), median(values)?)));
        self.medians = medians.collect();
    }
}

/// What is looked for among the cells; what is `None` may be anything.
#[derive(Debug, Clone, Copy)]
pub struct Want<'a> {
    /// The server's library.
    pub library: Option<&'a str>,
    /// What is done.
    pub workload: Option<Workload>,
    /// What is between the two sides.
    pub wire: Option<Wire>,
    /// The TLS version.
    pub version: Option<Version>,
    /// The certificate's key.
    pub key: Option<Key>,
    /// The group of the key exchange.
    pub group: Option<Group>,
    /// How many threads work at once.
    pub threads: Option<usize>,
    /// Tickets per handshake.
    pub tickets: u32,
    /// By what sessions are resumed.
    pub sessions: Sessions,
    /// Who uses a context.
    pub contexts: Contexts,
    /// What stands under the locks.
    pub locks: Locks,
    /// What counts and times.
    pub tool: Tool,
}

impl Want<'_> {
    /// Anything that was timed in the usual way.
    pub const TIMED: Want<'static> = Want {
        library: None,
        workload: None,
        wire: None,
        version: None,
        key: None,
        group: None,
        threads: None,
        tickets: 1,
        sessions: Sessions::Tickets,
        contexts: Contexts::Shared,
        locks: Locks::Pthread,
        tool: Tool::Host,
    };

    /// The harness's cost a handshake, and a library's: in memory, one thread.
    #[must_use]
    pub fn handshake(workload: Workload, suite: Suite) -> Want<'static> {
        Want {
            workload: Some(workload),
            wire: Some(Wire::Memory),
            version: Some(suite.version),
            key: Some(suite.key),
            group: Some(suite.group),
            threads: Some(1),
            ..Want::TIMED
        }
    }

    /// The same of one library.
    #[must_use]
    pub fn of(self, library: &str) -> Want<'_> {
        Want { library: Some(library), ..self }
    }

    fn is(&self, point: &Point) -> bool {
        fn fits<T: PartialEq>(wanted: Option<T>, is: T) -> bool {
            wanted.is_none_or(|wanted| wanted == is)
        }
        fits(self.library, &point.library)
            && fits(self.workload, point.workload)
            && fits(self.wire, point.wire)
            && fits(self.version, point.suite.version)
            && fits(self.key, point.suite.key)
            && fits(self.group, point.suite.group)
            && fits(self.threads, point.threads)
            && self.tickets == point.tickets
            && self.sessions == point.sessions
            && self.contexts == point.contexts
            && self.locks == point.locks
            && self.tool == point.tool
    }
}

/// What all samples say.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The libraries, in the order to show them.
    pub libraries: Vec<About>,
    /// The machine that it was measured on; `None` if no sample says it.
    pub machine: Option<Machine>,
    /// A cell for each point that was measured.
    pub cells: Vec<Cell>,
    /// How many samples were read.
    pub samples: u64,
}

impl Summary {
    /// The good cells that are wanted, in the order in which they were measured.
    pub fn all<'a>(&'a self, want: Want<'a>) -> impl Iterator<Item = &'a Cell> {
        self.cells.iter().filter(move |cell| cell.is_good() && want.is(&cell.point))
    }

    /// Of the good cells that are wanted the one with the most measurements.
    #[must_use]
    pub fn find(&self, want: Want<'_>) -> Option<&Cell> {
        let count = |cell: &&Cell| cell.values.values().map(BTreeMap::len).max();
        // The first of several with as many.
        self.cells
            .iter()
            .filter(|cell| cell.is_good() && want.is(&cell.point))
            .rev()
            .max_by_key(count)
    }

    /// A library by its name.
    #[must_use]
    pub fn about(&self, name: &str) -> Option<&About> {
        self.libraries.iter().find(|about| about.name == name)
    }

    /// Family and version; the name where nothing more is known.
    #[must_use]
    pub fn title(&self, name: &str) -> String {
        let title = self.about(name).map(|about| about.title.clone());
        title.filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_owned())
    }

    /// Whether no library was measured; the null driver is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.measured().is_empty()
    }

    /// Names of libraries with good cells, in the order to show them; the null driver is none.
    #[must_use]
    pub fn measured(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let known = self.libraries.iter().map(|about| about.name.as_str());
        let cells = self.cells.iter().filter(|cell| cell.is_good());
        let seen: std::collections::BTreeSet<&str> =
            cells.clone().map(|cell| cell.point.library.as_str()).collect();
        for name in known.chain(cells.map(|cell| cell.point.library.as_str())) {
            if name != crate::NULL && seen.contains(name) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// What the samples of a run say; those of other studies are passed over.
#[must_use]
pub fn summarise(samples: impl IntoIterator<Item = Sample>) -> Summary {
    let mut summary = Summary::default();
    let mut libraries: Vec<(f64, About)> = Vec::new();
    let mut places: BTreeMap<Point, usize> = BTreeMap::new();
    for sample in samples {
        if sample.study != STUDY {
            continue;
        }
        summary.samples += 1;
        if about::read(&sample, &mut libraries, &mut summary.machine) {
            continue;
        }
        let Some(point) = Point::of_fields(&sample.point) else { continue };
        let at = *places.entry(point.clone()).or_insert_with(|| {
            summary.cells.push(Cell {
                point,
                values: BTreeMap::new(),
                medians: BTreeMap::new(),
                labels: BTreeMap::new(),
                failed: BTreeMap::new(),
                slices: 0,
                stolen: 0,
                pushed_off: 0,
                left_out: 0,
                command: sample.command.clone(),
            });
            summary.cells.len() - 1
        });
        if let Some(cell) = summary.cells.get_mut(at) {
            cell.add(sample);
        }
    }
    summary.cells.iter_mut().for_each(Cell::close);
    libraries.sort_by(|a, b| a.0.total_cmp(&b.0));
    summary.libraries = libraries.into_iter().map(|(_, about)| about).collect();
    tell_apart(&mut summary.libraries);
    summary
}

/// Builds of one version get their drivers' names beside it.
fn tell_apart(libraries: &mut [About]) {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for about in libraries.iter() {
        *count.entry(about.title.clone()).or_default() += 1;
    }
    for about in libraries {
        if count.get(&about.title).is_some_and(|count| *count > 1) {
            about.title = format!("{} ({})", about.title, about.name);
        }
    }
}
