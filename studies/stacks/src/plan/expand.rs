//! From sweeps to cells, on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{
    Build, Cell, Expanded, Extent, Library, MOST_MEASUREMENTS, MOST_THREADS, NULL, Plan, PlanError,
    Point, Roster, Suite, Sweep, Tool, UnknownLibrary, UnknownValue, Wire, Workload,
    parse_workload,
};
use crate::programs::{self, LOAD_CLIENT};
use crate::scaling::LEAST_COUNTS;
use tls_drivers::{Contexts, Version};

/// Libraries that serve as the client beside a server of another: the first that is built. They
/// take few locks, so that the client does not decide how a server scales.
const REFERENCES: [&str; 3] = ["awslc-5.12.0", "boringssl", "openssl-3.5.5"];

/// Measurements do not get shorter than this to fit a budget.
const SHORTEST_MS: u64 = 60;

/// Which libraries of a sweep are to be measured.
type Wanted<'a> = &'a dyn Fn(&Library, &Sweep) -> bool;

impl Plan {
    /// What it comes to with these libraries and so many cores.
    ///
    /// # Errors
    /// [`PlanError::Library`], [`PlanError::OutOfRange`].
    pub fn expand(&self, roster: &Roster, cores: usize) -> Result<Expanded, PlanError> {
        let all = self.with(roster, cores, &|_, _| true)?;
        let Some(budget) = self.budget_s.map(Duration::from_secs) else { return Ok(all) };
        // What the plan is about stays: the default set, and what it names one by one.
        let core = |library: &Library, sweep: &Sweep| {
            library.default || library.name == NULL || sweep.library.contains(&library.name)
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

    fn with(
        &self,
        roster: &Roster,
        cores: usize,
        wanted: Wanted<'_>,
    ) -> Result<Expanded, PlanError> {
        let reference = REFERENCES.iter().find(|name| built(roster, name));
        let reference = reference.map(|name| (*name).to_owned());
        let mut expanded = Expanded { reference, ..Expanded::default() };
        for sweep in &self.sweeps {
            let libraries = roster.select(&sweep.library)?;
            // Who takes what is built is told what else would belong to it.
            let built = sweep.library.iter().any(|name| name == "built");
            let usual = roster
                .libraries
                .iter()
                .filter(|library| built && (library.default || library.is_program()));
            let named = libraries.iter().copied().chain(usual);
            for library in named.filter(|library| !library.is_there()) {
                expanded.left_out.insert(library.name.clone(), why_not(library));
            }
            let libraries: Vec<&Library> = libraries
                .into_iter()
                .filter(|library| library.is_there() && wanted(library, sweep))
                .collect();
            let sides = sides(sweep, roster, &libraries, expanded.reference.as_deref())?;
            expanded.cells.extend(cells(sweep, &sides, cores)?);
            if expanded.measurements() > MOST_MEASUREMENTS {
                let what = format!("more than {MOST_MEASUREMENTS} measurements in all");
                return Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what });
            }
        }
        Ok(expanded)
    }
}

impl Expanded {
    /// Makes timed measurements shorter, all by the same share, until all fits.
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

/// The pairs of server and client library of a sweep.
fn sides(
    sweep: &Sweep,
    roster: &Roster,
    libraries: &[&Library],
    reference: Option<&str>,
) -> Result<Vec<(String, String)>, PlanError> {
    let mut sides = Vec::new();
    for client in &sweep.client {
        let words = ["same", "reference", LOAD_CLIENT];
        if !words.contains(&client.as_str()) && roster.find(client).is_none() {
            let known: Vec<&str> = roster.libraries.iter().map(|one| one.name.as_str()).collect();
            let known = format!("same, reference, {LOAD_CLIENT}, {}", known.join(", "));
            return Err(UnknownLibrary { name: client.clone(), known }.into());
        }
        for library in libraries {
            let client = match client.as_str() {
                // The null driver understands no other.
                _ if library.name == NULL => NULL,
                "same" => &library.name,
                "reference" | LOAD_CLIENT if library.is_program() => LOAD_CLIENT,
                name if library.is_program() => match roster.find(name) {
                    Some(other) if other.is_program() && other.is_there() => name,
                    _ => continue,
                },
                "reference" => reference.unwrap_or(&library.name),
                name if built(roster, name) => name,
                _ => continue,
            };
            let pair = (library.name.clone(), client.to_owned());
            if !sides.contains(&pair) {
                sides.push(pair);
            }
        }
    }
    Ok(sides)
}

/// The thread counts that a word means.
pub(super) fn threads(word: &str, cores: usize) -> Result<Vec<usize>, UnknownValue> {
    let cores = cores.max(1);
    let known = "a number from 1 to 1024, `cores`, a multiple such as `2xcores`, or `powers`";
    let unknown = || UnknownValue { axis: "number of threads", name: word.to_owned(), known };
    let counts = match word {
        "cores" => vec![cores],
        "powers" => powers(cores),
        word => {
            let (number, factor) =
                word.strip_suffix("xcores").map_or((word, 1), |number| (number, cores));
            vec![number.parse::<usize>().map_err(|_| unknown())?.saturating_mul(factor)]
        }
    };
    match counts.iter().all(|count| (1..=MOST_THREADS).contains(count)) {
        true => Ok(counts),
        false => Err(unknown()),
    }
}

/// 1, 2, 4 … and all cores; on machines that have them as many more as a scaling curve needs.
fn powers(cores: usize) -> Vec<usize> {
    let below = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let mut counts: Vec<usize> = below.take_while(|n| *n < cores).chain([cores]).collect();
    let halfway = [3, 6, 12, 24].into_iter().chain(1..);
    for more in halfway.take_while(|more| *more <= cores.max(24)) {
        if counts.len() < LEAST_COUNTS && more < cores && !counts.contains(&more) {
            counts.push(more);
        }
    }
    counts.sort_unstable();
    counts
}

/// What all points of a cell have in common.
type Common = (Workload, Wire, Suite, usize);

fn cells(sweep: &Sweep, sides: &[(String, String)], cores: usize) -> Result<Vec<Cell>, PlanError> {
    let mut counts = Vec::new();
    for word in &sweep.threads {
        counts.extend(threads(word, cores)?);
    }
    counts.sort_unstable();
    counts.dedup();
    let mut order: Vec<Common> = Vec::new();
    let mut points: BTreeMap<Common, Vec<Point>> = BTreeMap::new();
    for workload in &sweep.workload {
        let workload = parse_workload(workload)?;
        for (wire, suite, threads) in common(sweep, workload, &counts) {
            let key = (workload, wire, suite, threads);
            let taking_turns = turns(sweep, sides, key);
            if taking_turns.is_empty() || points.contains_key(&key) {
                continue;
            }
            order.push(key);
            points.insert(key, taking_turns);
        }
    }
    let (extent, repeat) = (sweep.extent(), sweep.repeat);
    let cells = order.iter().filter_map(|key| points.remove(key));
    Ok(cells.map(|points| Cell { extent, repeat, points }).collect())
}

/// Wire, suite and threads of each cell of a workload.
fn common(sweep: &Sweep, workload: Workload, counts: &[usize]) -> Vec<(Wire, Suite, usize)> {
    let chain = matches!(workload, Workload::Chain { .. });
    // Proxies are joined by TCP.
    let wires: &[Wire] = if chain { &[Wire::Loopback] } else { &sweep.wire };
    let mut all = Vec::new();
    for wire in wires {
        for version in &sweep.version {
            for key in &sweep.key {
                for group in &sweep.group {
                    for cipher in &sweep.cipher {
                        let suite =
                            Suite { version: *version, key: *key, group: *group, cipher: *cipher };
                        if suite.exists() {
                            all.extend(counts.iter().map(|count| (*wire, suite, *count)));
                        }
                    }
                }
            }
        }
    }
    all
}

/// The points of a cell.
fn turns(sweep: &Sweep, sides: &[(String, String)], common: Common) -> Vec<Point> {
    let (workload, wire, suite, threads) = common;
    let mut points = Vec::new();
    let tickets = sweep.tickets.iter().enumerate();
    // TLS 1.2 has one ticket or none.
    for (_, tickets) in tickets.filter(|(at, _)| *at == 0 || suite.version == Version::Tls13) {
        for contexts in &sweep.contexts {
            // With one thread a context of its own is the shared one.
            let same = threads == 1 && *contexts == Contexts::PerThread;
            if same && sweep.contexts.contains(&Contexts::Shared) {
                continue;
            }
            for (locks, (library, client)) in
                sweep.locks.iter().flat_map(|locks| sides.iter().map(move |side| (locks, side)))
            {
                // Without cryptography there are no locks to replace and nothing to count.
                if library == NULL
                    && (*locks != tls_drivers::Locks::Pthread || sweep.tool != Tool::Host)
                {
                    continue;
                }
                let point = Point {
                    sweep: sweep.name.clone(),
                    library: library.clone(),
                    client: client.clone(),
                    workload,
                    wire,
                    suite,
                    threads,
                    tickets: *tickets,
                    contexts: *contexts,
                    locks: *locks,
                    tool: sweep.tool,
                };
                // What a runtime cannot do is not tried; the report says why.
                if programs::runtime(library).is_none_or(|_| programs::lacks(&point).is_none()) {
                    points.push(point);
                }
            }
        }
    }
    points
}
