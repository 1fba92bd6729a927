//! From sweeps to cells, on this machine.

use std::collections::BTreeSet;
use std::time::Duration;

use fault::Problem;
use study::{PlanError, Sweep, UnknownValue};
use tls_drivers::Extent;
use tls_drivers::hosts::LOAD_CLIENT;

use super::{
    Cell, Expanded, FEWEST_SLICES, MOST_MEASUREMENTS, MOST_THREADS, Plan, extent, libraries_of,
    words,
};
use crate::point::{AXES, Point};
use crate::programs;
use crate::roster::{Build, Library, NULL, Roster, UnknownLibrary};
use crate::scaling::LEAST_COUNTS;

/// Libraries that serve as the client beside a server of another: the first that is built. They
/// take few locks, so that the client does not decide how a server scales.
const REFERENCES: [&str; 4] = ["awslc-5.12.0", "boringssl", "openssl-3.5.5", "rustls-built-in"];

/// Slices do not get shorter than this to fit a budget; then there are fewer of them.
const SHORTEST_MS: u64 = 20;

/// Which libraries of a sweep are to be measured.
type Wanted<'a> = &'a dyn Fn(&Library, &Sweep) -> bool;

impl Plan {
    /// What it comes to with these libraries and so many cores.
    ///
    /// # Errors
    /// [`UnknownLibrary`], [`UnknownValue`], [`PlanError::OutOfRange`].
    pub fn expand(&self, roster: &Roster, cores: usize) -> Result<Expanded, Problem> {
        let all = self.with(roster, cores, &|_, _| true)?;
        if let (true, Some(why)) = (all.cells.is_empty(), all.impossible) {
            return Err(PlanError::NothingLeft(why.to_owned()).into());
        }
        let Some(budget) = self.budget else { return Ok(all) };
        // What the plan is about stays: the default set, and what it names one by one.
        let core = |library: &Library, sweep: &Sweep| {
            library.default || library.name == NULL || libraries_of(sweep).contains(&library.name)
        };
        // Runtimes that warm up for long go first, then all of them, then other libraries.
        let starting_in = |most: Duration| {
            move |library: &Library, sweep: &Sweep| {
                let start = programs::runtime(&library.name).map(programs::Runtime::start);
                core(library, sweep) || start.is_none_or(|start| start <= most)
            }
        };
        let (soon, drivers) = (starting_in(Duration::from_secs(1)), starting_in(Duration::ZERO));
        let stages: [Wanted<'_>; 3] = [&soon, &drivers, &core];
        let mut chosen = all.clone();
        for wanted in stages {
            if chosen.expected() <= budget {
                break;
            }
            let fewer = self.with(roster, cores, wanted)?;
            if !fewer.cells.is_empty() {
                chosen = fewer;
            }
        }
        let measured = |expanded: &Expanded| {
            let points = expanded.cells.iter().flat_map(|cell| &cell.points);
            points.map(|point| point.library.clone()).collect::<BTreeSet<_>>()
        };
        chosen.no_time = measured(&all).difference(&measured(&chosen)).cloned().collect();
        chosen.shorten(budget);
        Ok(chosen)
    }

    fn with(&self, roster: &Roster, cores: usize, wanted: Wanted<'_>) -> Result<Expanded, Problem> {
        let reference = REFERENCES.iter().find(|name| built(roster, name));
        let reference = reference.map(|name| (*name).to_owned());
        let mut expanded = Expanded { reference, ..Expanded::default() };
        for sweep in &self.sweeps {
            let names = libraries_of(sweep);
            let libraries = roster.select(&names)?;
            // Who takes what is built is told what else would belong to it.
            let built = names.iter().any(|name| name == "built");
            let usual = roster
                .libraries
                .iter()
                .filter(|library| built && (library.default || library.is_program()));
            let named = libraries.iter().copied().chain(usual);
            for library in named.filter(|library| !library.is_there()) {
                expanded.left_out.insert(library.name.clone(), why_not(library));
            }
            let there = |library: &&&Library| library.is_there() && wanted(library, sweep);
            let there = libraries.iter().filter(there).map(|library| library.name.clone());
            let reference = expanded.reference.as_deref();
            let (points, impossible) = points(sweep, roster, there.collect(), (reference, cores))?;
            expanded.impossible = expanded.impossible.or(impossible);
            expanded.cells.extend(cells(sweep, points));
            bounded(sweep, expanded.measurements())?;
        }
        Ok(expanded)
    }
}

fn bounded(sweep: &Sweep, measurements: u64) -> Result<(), PlanError> {
    match measurements <= MOST_MEASUREMENTS {
        true => Ok(()),
        false => Err(PlanError::OutOfRange {
            sweep: sweep.name.clone(),
            what: format!("more than {MOST_MEASUREMENTS} measurements in all"),
        }),
    }
}

impl Expanded {
    /// Makes slices shorter, all by the same share, until all fits; and where that is not enough, fewer,
    /// but not fewer than an interval of 95 % takes.
    fn shorten(&mut self, budget: Duration) {
        let timed: Duration = self.cells.iter().map(timed).sum();
        let fixed = self.expected().saturating_sub(timed);
        let share = budget.saturating_sub(fixed).as_secs_f64() / timed.as_secs_f64().max(1e-9);
        if share >= 1.0 {
            return;
        }
        for cell in &mut self.cells {
            if let Extent::Milliseconds(ms) = &mut cell.extent {
                *ms = ((*ms as f64 * share) as u64).max(SHORTEST_MS.min(*ms));
            }
        }
        let fewer = |cell: &Cell| match cell.extent {
            Extent::Milliseconds(_) => cell.repeat > FEWEST_SLICES,
            Extent::Connections(_) => false,
        };
        while self.expected() > budget && self.cells.iter().any(fewer) {
            for cell in self.cells.iter_mut().filter(|cell| fewer(cell)) {
                cell.repeat = (cell.repeat * 9 / 10).max(FEWEST_SLICES);
            }
        }
    }
}

/// The part of a cell's time that a shorter extent makes shorter.
fn timed(cell: &Cell) -> Duration {
    match cell.extent {
        Extent::Connections(_) => Duration::ZERO,
        Extent::Milliseconds(ms) => {
            let count = cell.points.len() as u32 * cell.repeat;
            Duration::from_millis(ms).mul_f64(1.1) * count
        }
    }
}

fn built(roster: &Roster, name: &str) -> bool {
    roster.find(name).is_some_and(|library| library.object().is_some())
}

fn why_not(library: &Library) -> String {
    match &library.build {
        Build::Failed(reason) => format!("its build failed: {reason}"),
        Build::Program { absent: Some(why) } => why.clone(),
        Build::Built(_) | Build::NotBuilt | Build::Program { absent: None } => {
            "it is not built".to_owned()
        }
    }
}

/// The points of a sweep over libraries that are there, and why the first is left out that cannot be.
fn points(
    sweep: &Sweep,
    roster: &Roster,
    libraries: Vec<String>,
    (reference, cores): (Option<&str>, usize),
) -> Result<(Vec<Point>, Option<&'static str>), Problem> {
    for client in words(sweep, "client") {
        let clients = ["same", "reference", LOAD_CLIENT];
        if !clients.contains(&client.as_str()) && roster.find(&client).is_none() {
            let known: Vec<&str> = roster.libraries.iter().map(|one| one.name.as_str()).collect();
            let known = format!("same, reference, {LOAD_CLIENT}, {}", known.join(", "));
            return Err(UnknownLibrary { name: client, known }.into());
        }
    }
    let mut sweep = sweep.clone();
    sweep.lists.insert("library".to_owned(), libraries);
    let all = AXES.axes.iter().map(|axis| sweep.list(axis).len() as u64);
    bounded(&sweep, all.fold(1, u64::saturating_mul))?;
    let words = |axis: &str, word: &str| match axis {
        "threads" => {
            let counts = threads(word, cores).ok()?;
            Some(counts.iter().map(ToString::to_string).collect())
        }
        _ => None,
    };
    let crossed = AXES.points(&sweep, &Point::of_sweep(&sweep.name), &words)?;
    let mut points = Vec::with_capacity(crossed.len());
    let mut impossible = None;
    for mut point in crossed {
        let Some(client) = client(&point, roster, reference) else { continue };
        point.client = client;
        // What cannot be is not tried; the report says why.
        match (AXES.impossible)(&point) {
            Some(why) => impossible = impossible.or(Some(why)),
            None if points.contains(&point) => {}
            None => points.push(point),
        }
    }
    Ok((points, impossible))
}

/// The client's library that a point's word for it means; `None` where the server can have no such.
fn client(point: &Point, roster: &Roster, reference: Option<&str>) -> Option<String> {
    let library = roster.find(&point.library)?;
    let name = match point.client.as_str() {
        // The null driver understands no other.
        _ if library.name == NULL => NULL,
        "same" => &library.name,
        "reference" | LOAD_CLIENT if library.is_program() => LOAD_CLIENT,
        name if library.is_program() => {
            let other = roster.find(name)?;
            (other.is_program() && other.is_there()).then_some(name)?
        }
        "reference" => reference.unwrap_or(&library.name),
        name => built(roster, name).then_some(name)?,
    };
    Some(name.to_owned())
}

/// Points that take turns, in the order in which their cells come first.
fn cells(sweep: &Sweep, points: Vec<Point>) -> Vec<Cell> {
    let (extent, repeat) = (extent(sweep), sweep.repeat());
    let common = |point: &Point| (point.workload, point.wire, point.suite, point.threads);
    let mut cells: Vec<Cell> = Vec::new();
    for point in points {
        let same = |cell: &&mut Cell| cell.points.first().map(common) == Some(common(&point));
        match cells.iter_mut().find(same) {
            Some(cell) => cell.points.push(point),
            None => cells.push(Cell { extent, repeat, points: vec![point] }),
        }
    }
    cells
}

/// The thread counts that a word means: enough for a curve, where there are the cores.
pub(super) fn threads(word: &str, cores: usize) -> Result<Vec<usize>, UnknownValue> {
    study::threads(word, cores, MOST_THREADS, LEAST_COUNTS)
}
