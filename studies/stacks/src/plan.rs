//! What is to be measured: sweeps, and the points and cells that they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fault::Problem;
use serde_json::{Value, json};
use study::{Commands, Number, PlanError, Sweep, read_scale, sweeps_of, sweeps_value};
use tls_drivers::{Extent, Sessions, Version, Workload};

use crate::point::{AXES, Point};
use crate::roster::NULL;

mod expand;

/// The plans that come with the study, by scale.
pub(crate) const BUILT_IN: &str = include_str!("../plan.toml");

/// Most measurements that one plan may make: a bound on what a wrong plan file can start.
const MOST_MEASUREMENTS: u64 = 200_000;
/// Most threads of one measurement.
const MOST_THREADS: usize = 1024;
/// Most tickets of one handshake.
const MOST_TICKETS: u32 = 16;
/// How long a slice takes where nothing is said of it, and where a manifest from before slices says nothing.
const USUAL_MS: u64 = 50;
const USUAL_MS_BEFORE: u64 = 500;
/// Fewest slices of which the range holds the median with 95 % confidence: 1 - 2^(1 - 6) = 97 %.
const FEWEST_SLICES: u32 = 6;
/// Connections that callgrind counts if not told, once: no two differ by much, and it is slow.
const COUNTED: u64 = 10;

/// What a sweep has beside its lists.
pub(crate) const NUMBERS: &[Number] = &[
    Number {
        name: "ms",
        help: "Time of a slice in milliseconds [default: 50]",
        default: None,
        least: 10,
        most: 600_000,
    },
    Number {
        name: "connections",
        help: "Connections per slice and thread, instead of a time [default with callgrind: 10]",
        default: None,
        least: 1,
        most: 1_000_000,
    },
    Number {
        name: "repeat",
        help: "Slices per point, in turns over all libraries [default: 40, with callgrind 1]",
        default: Some(40),
        least: 1,
        most: 1000,
    },
];

/// Points that differ in library, client, tickets, contexts and locks only: they take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// How long each slice goes on.
    pub extent: Extent,
    /// Slices per point: rounds in which each point has one.
    pub repeat: u32,
    /// What takes turns, in each round in another order.
    pub points: Vec<Point>,
}

/// What a plan comes to on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expanded {
    /// The cells, in order.
    pub cells: Vec<Cell>,
    /// Libraries that the plan names and that cannot be measured, and why.
    pub left_out: BTreeMap<String, String>,
    /// Libraries that would not fit the time, by name.
    pub no_time: BTreeSet<String>,
    /// Why the first combination of a sweep that cannot be is not tried.
    pub impossible: Option<&'static str>,
    /// The client's library where the plan says `reference`.
    pub reference: Option<String>,
}

impl Expanded {
    /// How many measurements it comes to.
    #[must_use]
    pub fn measurements(&self) -> u64 {
        let of = |cell: &Cell| cell.points.len() as u64 * u64::from(cell.repeat);
        self.cells.iter().map(of).sum()
    }

    /// The names of all libraries in it, those that are left out too.
    #[must_use]
    pub fn libraries(&self) -> BTreeSet<String> {
        let points = self.cells.iter().flat_map(|cell| &cell.points);
        let sides = points.flat_map(|point| [point.library.clone(), point.client.clone()]);
        sides.chain(self.left_out.keys().cloned()).chain(self.no_time.iter().cloned()).collect()
    }

    /// How long they take, about.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let of = |cell: &Cell| -> Duration {
            let once: Duration = cell.points.iter().map(|point| point.expected(cell.extent)).sum();
            let before: Duration =
                cell.points.iter().map(|point| point.expected_once(cell.extent)).sum();
            before + once * cell.repeat
        };
        self.cells.iter().map(of).sum()
    }
}

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Seed of every random draw of the evaluation.
    pub seed: u64,
    /// Time that it may take: libraries beyond the default set are left out, then measurements get
    /// shorter, until it fits.
    pub budget: Option<Duration>,
}

impl Plan {
    /// The plan of scale `scale` in the text of a plan file.
    ///
    /// # Errors
    /// The text is no plan, has no such scale or asks for what cannot be.
    pub fn parse(text: &str, scale: &str) -> Result<Plan, Problem> {
        let found = read_scale(text, scale, &AXES, NUMBERS)?;
        let sweeps = found.sweeps.into_iter().map(|sweep| timed(sweep, USUAL_MS)).collect();
        Plan { sweeps, seed: 1, budget: found.budget }.checked()
    }

    /// A plan of one sweep.
    ///
    /// # Errors
    /// It asks for what cannot be.
    pub fn of_sweep(sweep: Sweep) -> Result<Plan, Problem> {
        Plan { sweeps: vec![timed(sweep, USUAL_MS)], seed: 1, budget: None }.checked()
    }

    /// Reads back what [`Plan::value`] gave, or what a manifest from before had.
    ///
    /// # Errors
    /// It does not read.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        // Its name until studies had one form of plan.
        let seconds = value.get("seconds").or_else(|| value.get("budget_s"));
        let sweeps = sweeps_of(value, &AXES, NUMBERS)?;
        let sweeps = sweeps.into_iter().map(|sweep| timed(sweep, USUAL_MS_BEFORE)).collect();
        let seed = value.get("seed").and_then(Value::as_u64).unwrap_or(1);
        let budget = seconds.and_then(Value::as_u64).map(Duration::from_secs);
        Plan { sweeps, seed, budget }.checked()
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let seconds = self.budget.map(|budget| budget.as_secs());
        json!({ "sweeps": sweeps_value(&self.sweeps), "seed": self.seed, "seconds": seconds })
    }

    /// Every sweep over these libraries in place of its own; the null driver keeps its place. Who names
    /// libraries wants them all, however long it takes.
    pub fn only(&mut self, libraries: &[String]) {
        for sweep in &mut self.sweeps {
            let null = libraries_of(sweep).iter().any(|name| name == NULL);
            let null = null.then(|| NULL.to_owned());
            let list = libraries.iter().cloned().chain(null).collect();
            sweep.lists.insert("library".to_owned(), list);
        }
        self.budget = None;
    }

    fn checked(self) -> Result<Plan, Problem> {
        self.sweeps.iter().try_for_each(check)?;
        Ok(self)
    }
}

/// Where callgrind counts, it does so over connections, and once: no two counts differ by much.
pub(crate) fn count_connections(sweep: &mut Sweep, repeat_given: bool) {
    let callgrind = words(sweep, "tool").iter().any(|tool| tool == "callgrind");
    if callgrind && sweep.number("ms").is_none() {
        sweep.numbers.entry("connections".to_owned()).or_insert(COUNTED);
        if !repeat_given {
            sweep.numbers.insert("repeat".to_owned(), 1);
        }
    }
}

/// A sweep that says how long its slices are, so that its manifest does too.
fn timed(mut sweep: Sweep, usual_ms: u64) -> Sweep {
    if sweep.number("connections").is_none() {
        sweep.numbers.entry("ms".to_owned()).or_insert(usual_ms);
    }
    sweep
}

/// How long each slice of a sweep goes on.
fn extent(sweep: &Sweep) -> Extent {
    match (sweep.number("ms"), sweep.number("connections")) {
        (None, Some(count)) => Extent::Connections(count),
        (ms, _) => Extent::Milliseconds(ms.unwrap_or(USUAL_MS)),
    }
}

/// Makes the commands that measure slices again. None names a driver by its path: the one that would be run is
/// the reader's, and the path was the folder's.
pub(crate) fn commands(plan: &Value) -> Commands {
    let sweeps = sweeps_of(plan, &AXES, NUMBERS).unwrap_or_default().into_iter();
    let timed = sweeps.map(|sweep| timed(sweep, USUAL_MS_BEFORE));
    let extents: BTreeMap<String, Extent> =
        timed.map(|sweep| (sweep.name.clone(), extent(&sweep))).collect();
    Box::new(move |sample| {
        let point = Point::of_fields(&sample.point)?;
        if [&point.library, &point.client].iter().any(|name| name.contains('/')) {
            return None;
        }
        let extent = *extents.get(&point.sweep)?;
        Some(point.command(extent, sample.repeat.saturating_add(1)))
    })
}

fn words(sweep: &Sweep, axis: &str) -> Vec<String> {
    AXES.find(axis).map(|axis| sweep.list(axis)).unwrap_or_default()
}

fn libraries_of(sweep: &Sweep) -> Vec<String> {
    words(sweep, "library")
}

fn check(sweep: &Sweep) -> Result<(), Problem> {
    let wrong = |what: String| PlanError::OutOfRange { sweep: sweep.name.clone(), what }.into();
    if sweep.number("ms").is_some() && sweep.number("connections").is_some() {
        return Err(wrong("`ms` and `connections` exclude each other".to_owned()));
    }
    for word in words(sweep, "threads") {
        expand::threads(&word, 1)?;
    }
    let possible =
        |word: &String| word.parse().is_ok_and(|count: u32| (1..=MOST_TICKETS).contains(&count));
    if !words(sweep, "tickets").iter().all(possible) {
        return Err(wrong(format!("1 to {MOST_TICKETS} tickets per handshake are possible")));
    }
    // Words that are none are refused where the points are made.
    let by_id = words(sweep, "sessions")
        .iter()
        .any(|word| matches!(word.parse(), Ok(Sessions::Cache | Sessions::External)));
    let tls12 = words(sweep, "version").iter().any(|word| word.parse() == Ok(Version::Tls12));
    let resumed = words(sweep, "workload").iter().any(|word| word.parse() == Ok(Workload::Resume));
    if by_id && !(tls12 && resumed) {
        let what = "session IDs (`sessions`: cache, external) resume in TLS 1.2 only, of the workload \
                    `resume`: both have to be named (`version`: tls1.2)";
        return Err(wrong(what.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
