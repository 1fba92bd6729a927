//! What is to be measured: sweeps, and the points and cells that they come to.

use std::path::PathBuf;
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, WhileDoing};
use linkmodel::{Codel, LinkConfig, Middlebox, Path, Profile, Queue, RateSource, Trace};
use record::{PlanFiles, content_name};
use serde::Deserialize;
use serde_json::{Value, json};
use study::{CLOCK, Clock, Number, Options, PlanError, Scale, Sweep, quoted};
use units::{CountedBytes, Delay, Probability, Rate};

use crate::point::{AXES, Point, Queueing, words};

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");

/// Most connections that one plan may make: a bound on what a wrong plan file can start.
const MOST_CONNECTIONS: u64 = 200_000;
/// After how long an attempt is given up, unless the user says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The numbers of a sweep. With more than one connection under way at once, CPU times are not
/// comparable with those of one.
pub(crate) const NUMBERS: &[Number] = &[
    Number {
        name: "repeat",
        help: "Connections per point [default: 10]",
        default: Some(10),
        least: 1,
        most: u32::MAX as u64,
    },
    Number {
        name: "concurrent",
        help: "Connections under way at once (for long sweeps under loss) [default: 1]",
        default: Some(1),
        least: 1,
        most: 256,
    },
];

/// Points that share a path: they take turns on it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Round-trip time, propagation only.
    pub rtt: Delay,
    /// Loss each way.
    pub loss: Probability,
    /// The middlebox on the way.
    pub middlebox: Middlebox,
    /// What waits on the way to the client.
    pub queue: Queueing,
    /// Connections per point.
    pub repeat: u32,
    /// Connections under way at once.
    pub concurrent: u32,
    /// What takes turns.
    pub points: Vec<Point>,
}

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Seed of every random draw.
    pub seed: u64,
    /// After how long an attempt is given up, and kept as a censored sample.
    pub timeout: Delay,
    /// Rate of the path both ways; unlimited without.
    pub rate: Option<Rate>,
    /// What the path does besides RTT, loss and rate: jitter, queue, traces, outages. Its delays
    /// give way to the cells' RTTs, its loss and rate to those given.
    pub base: Option<Path>,
    /// The options that gave the base, for the command that measures a point again:
    /// `--profile lte`.
    pub base_options: String,
    /// The time that it keeps to, if it has such a limit.
    pub budget: Option<Duration>,
}

/// A plan in a manifest, less its sweeps.
#[derive(Deserialize)]
struct Recorded {
    seed: u64,
    timeout: Delay,
    rate: Option<Rate>,
    base: Option<Value>,
    base_options: String,
}

impl Plan {
    /// The plan of a scale that comes with the study: `quick`, `paper` or `full`.
    ///
    /// # Errors
    /// [`PlanError::UnknownScale`].
    pub fn built_in(scale: &str) -> Result<Plan, PlanError> {
        Plan::parse(BUILT_IN, scale)
    }

    /// The plan of scale `scale` in the text of a plan file.
    ///
    /// # Errors
    /// If the text is no plan, has no such scale or asks for what cannot be.
    pub fn parse(text: &str, scale: &str) -> Result<Plan, PlanError> {
        let Scale { budget, sweeps } = study::read_scale(text, scale, &AXES, NUMBERS)?;
        Ok(Plan { budget, ..Plan::new(sweeps)? })
    }

    /// A plan of these sweeps, with the default seed and timeout.
    ///
    /// # Errors
    /// If a sweep asks for what cannot be.
    pub fn new(mut sweeps: Vec<Sweep>) -> Result<Plan, PlanError> {
        for sweep in &mut sweeps {
            AXES.respell(sweep, &Point::of_sweep(""), &words)?;
        }
        let plan = Plan {
            sweeps,
            seed: 1,
            timeout: TIMEOUT.into(),
            rate: None,
            base: None,
            base_options: String::new(),
            budget: None,
        };
        plan.check()?;
        Ok(plan)
    }

    /// A sweep over everything, in which what is not set has its default.
    #[must_use]
    pub fn single_sweep(name: &str) -> Sweep {
        Sweep::of_defaults(name, &AXES, NUMBERS)
    }

    /// The plan that a manifest has, without the traces in its files: enough to read results. It has no limit
    /// of time: what was left out is measured.
    ///
    /// # Errors
    /// It is none, or asks for what cannot be.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        Plan::of_manifest(value, None)
    }

    /// The same with its traces: enough to go on measuring.
    ///
    /// # Errors
    /// As for [`Plan::recorded`]; a file is missing or is no trace.
    pub fn recorded_with(value: &Value, files: &PlanFiles) -> Result<Plan, Problem> {
        Plan::of_manifest(value, Some(files))
    }

    fn of_manifest(value: &Value, files: Option<&PlanFiles>) -> Result<Plan, Problem> {
        let Recorded { seed, timeout, rate, base, base_options } =
            Recorded::deserialize(value).blame(Fault::Results)?;
        let base = base.map(|base| with_traces(base, files)).transpose()?;
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS);
        let plan = sweeps.and_then(Plan::new).map_err(of_results)?;
        let plan = Plan { seed, timeout, rate, base, base_options, ..plan };
        plan.check_path().map_err(|problem| problem.blaming(Fault::Results))?;
        Ok(plan)
    }

    /// The plan that a user asks for.
    pub(crate) fn of_options(options: &Options<'_>) -> Result<Plan, Problem> {
        let file = options.get::<PathBuf>("plan");
        let text = file.as_ref().map(|file| options.text_of(file, "plan")).transpose()?;
        // The clock changes how a plan is measured, not what.
        let swept = AXES.given_beside(CLOCK, options) || Number::given(NUMBERS, options);
        if text.is_some() && swept {
            let what = "a plan file and axes (--mode, --rtt, …) exclude each other";
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("put the axes into the plan"));
        }
        let scale = options.get::<String>("scale").unwrap_or_else(|| "quick".to_owned());
        let base = base(options)?;
        // An unknown scale is wrong even where it is not used.
        let mut plan = match (&file, &text) {
            (Some(file), Some(text)) => Plan::parse(text, &scale).while_doing(|| file.display())?,
            _ => Plan::built_in(&scale)?,
        };
        if swept || (text.is_none() && options.given("profile")) {
            plan = Plan::new(vec![single(options, base.as_ref())])?;
        } else if study::overwrite_clock(&mut plan.sweeps, options) {
            let budget = plan.budget;
            plan = Plan::new(plan.sweeps)?;
            // A guest is not as fast as the machine, and loses nothing by it.
            plan.budget = budget.filter(|_| plan.clock() == Clock::Wall);
        }
        plan.seed = options.get("seed").unwrap_or(plan.seed);
        plan.timeout = options.get("timeout").unwrap_or(plan.timeout);
        if plan.timeout.duration().is_zero() {
            let problem = Problem::new(Fault::Caller, "a timeout of 0 leaves no time to connect");
            return Err(problem.with_remedy("leave it out"));
        }
        plan.rate = options.get("rate");
        plan.base = base;
        plan.base_options = base_options(options);
        plan.check_path()?;
        Ok(plan)
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let Plan { seed, timeout, rate, base, base_options, .. } = self;
        let base = base.as_ref().map(without_traces);
        json!({
            "sweeps": study::sweeps_value(&self.sweeps),
            "seed": seed,
            "timeout": timeout,
            "rate": rate,
            "base": base,
            "base_options": base_options,
        })
    }

    /// The traces of its base, each in a file.
    #[must_use]
    pub fn files(&self) -> PlanFiles {
        let traces = self.base.iter().flat_map(|base| [&base.forward, &base.backward]);
        let traces = traces.filter_map(|direction| trace_of(direction).map(Trace::to_text));
        traces.map(|text| (content_name(text.as_bytes()), text.into_bytes())).collect()
    }

    /// What a command needs beside a point to measure it again: the rate and what gave the base.
    pub(crate) fn options(&self) -> String {
        let rate = self.rate.map(|rate| format!(" --rate {rate}")).unwrap_or_default();
        match self.base_options.as_str() {
            "" => rate,
            base => format!("{rate} {base}"),
        }
    }

    fn check_path(&self) -> Result<(), Problem> {
        self.base.as_ref().map_or(Ok(()), Path::validate).while_doing(|| "the path")
    }

    fn check(&self) -> Result<(), PlanError> {
        let mut connections = 0u64;
        for sweep in &self.sweeps {
            let wrong = |what| PlanError::OutOfRange { sweep: sweep.name.clone(), what };
            let too_many = || wrong(format!("more than {MOST_CONNECTIONS} connections in all"));
            let sizes = AXES.axes.iter().map(|axis| sweep.list(axis).len() as u64);
            if sizes.fold(1, u64::saturating_mul) > MOST_CONNECTIONS {
                return Err(too_many());
            }
            let points = points_of(sweep)?;
            if let Some(what) = points.iter().find_map(Point::out_of_range) {
                return Err(wrong(what));
            }
            connections += points.len() as u64 * u64::from(sweep.repeat());
            if connections > MOST_CONNECTIONS {
                return Err(too_many());
            }
        }
        let (cells, impossible) = self.cells()?;
        if cells.is_empty() {
            let reason = impossible.first().map_or("no sweep", |(_, reason)| *reason);
            return Err(PlanError::NothingLeft(reason.to_owned()));
        }
        study::one_clock(clocks_of(&cells)).map(drop)
    }

    /// By which time it is measured: all of it by one.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let cells = self.cells().map(|(cells, _)| cells).unwrap_or_default();
        clocks_of(&cells).next().unwrap_or_default()
    }

    /// The cells in the order to measure them, and the points left out with the reason.
    ///
    /// # Errors
    /// A word of a sweep is no value of its axis.
    #[allow(clippy::type_complexity)]
    pub fn cells(&self) -> Result<(Vec<Cell>, Vec<(Point, &'static str)>), PlanError> {
        let (mut cells, mut impossible) = (Vec::<Cell>::new(), Vec::new());
        for sweep in &self.sweeps {
            let repeat = sweep.repeat();
            let concurrent = sweep.number("concurrent").and_then(|n| u32::try_from(n).ok());
            let concurrent = concurrent.unwrap_or(1);
            let first = cells.len();
            for point in points_of(sweep)? {
                if let Some(reason) = point.impossible() {
                    impossible.push((point, reason));
                    continue;
                }
                let (rtt, loss, middlebox) = (point.rtt, point.loss, point.middlebox);
                let queue = point.queue;
                let wanted = (rtt, loss, middlebox, queue);
                let path = |c: &Cell| (c.rtt, c.loss, c.middlebox, c.queue) == wanted;
                match cells[first..].iter().position(path) {
                    Some(at) => cells[first + at].points.push(point),
                    None => {
                        let points = vec![point];
                        cells.push(Cell {
                            rtt,
                            loss,
                            middlebox,
                            queue,
                            repeat,
                            concurrent,
                            points,
                        });
                    }
                }
            }
        }
        Ok((cells, impossible))
    }

    /// The path of a cell: the base's, with the cell's RTT, loss and middlebox and the plan's rate.
    #[must_use]
    pub fn path(&self, cell: &Cell) -> Path {
        let mut path = self.base.clone().unwrap_or_default();
        let (there, back) = cell.rtt.split_round_trip();
        path.forward.delay = there;
        path.backward.delay = back;
        for direction in [&mut path.forward, &mut path.backward] {
            if self.base.is_none() || !cell.loss.is_zero() {
                direction.loss = cell.loss.into();
            }
            if self.base.is_none() || cell.middlebox != Middlebox::None {
                direction.middlebox = cell.middlebox;
            }
            if let Some(rate) = self.rate {
                direction.rate = Some(RateSource::Fixed(rate));
            }
        }
        queued(&mut path.backward, cell.queue);
        path
    }
}

/// Packets of a drop-tail queue that a download keeps full: 60 ms of the bottleneck.
const QUEUED_PACKETS: u32 = 100;
/// Bits per second of that bottleneck, unless the plan has a rate.
const BOTTLENECK: u64 = 20_000_000;

/// Gives the way to the client a bottleneck and a queue, if a download is to fill one.
fn queued(way: &mut LinkConfig, queue: Queueing) {
    way.queue = match queue {
        Queueing::None => return,
        Queueing::DropTail => Queue::Packets(QUEUED_PACKETS),
        Queueing::Codel => Queue::Codel(Codel::default()),
    };
    if way.rate.is_none() {
        way.rate = Rate::new(BOTTLENECK, CountedBytes::default()).map(RateSource::Fixed);
    }
}

fn clocks_of(cells: &[Cell]) -> impl Iterator<Item = Clock> {
    cells.iter().flat_map(|cell| cell.points.iter().map(|point| point.clock))
}

/// The directions of a path, as its JSON names them.
const DIRECTIONS: [&str; 2] = ["forward", "backward"];

fn trace_of(direction: &LinkConfig) -> Option<&Trace> {
    match &direction.rate {
        Some(RateSource::Trace(trace)) => Some(trace),
        _ => None,
    }
}

/// The path as JSON, with the names of the files of [`Plan::files`] in the place of traces.
fn without_traces(base: &Path) -> Value {
    let mut plain = base.clone();
    let mut names = Vec::new();
    for direction in [&mut plain.forward, &mut plain.backward] {
        let name = trace_of(direction).map(|trace| content_name(trace.to_text().as_bytes()));
        if name.is_some() {
            direction.rate = None;
        }
        names.push(name);
    }
    let mut value = json!(plain);
    for (direction, name) in std::iter::zip(DIRECTIONS, names) {
        if let (Some(name), Some(direction)) = (name, value.get_mut(direction)) {
            direction["rate"] = json!({ "trace": name });
        }
    }
    value
}

/// The path of what [`without_traces`] gave: with the traces of these files, or without any.
fn with_traces(mut value: Value, files: Option<&PlanFiles>) -> Result<Path, Problem> {
    let mut traces = Vec::new();
    for direction in DIRECTIONS {
        let rate = value.get_mut(direction).and_then(|direction| direction.get_mut("rate"));
        let name = rate.as_ref().and_then(|rate| rate.get("trace")).and_then(Value::as_str);
        let name = name.map(str::to_owned);
        if let (Some(rate), Some(_)) = (rate, &name) {
            *rate = Value::Null;
        }
        let trace = match (name, files) {
            (Some(name), Some(files)) => Some(trace_in(files, &name)?),
            _ => None,
        };
        traces.push(trace);
    }
    let mut base = Path::deserialize(value).blame(Fault::Results)?;
    for (direction, trace) in std::iter::zip([&mut base.forward, &mut base.backward], traces) {
        direction.rate = trace.map(RateSource::Trace).or(direction.rate.take());
    }
    Ok(base)
}

fn trace_in(files: &PlanFiles, name: &str) -> Result<Trace, Problem> {
    let wrong = || Problem::new(Fault::Results, format!("the plan's trace {name} is missing"));
    let text = files.get(name).ok_or_else(wrong)?;
    let trace = Trace::parse(&String::from_utf8_lossy(text));
    trace.map_err(|error| Problem::from(error).blaming(Fault::Results)).while_doing(|| name)
}

/// What a command needs beside a point, of the plan in a manifest; `None` where it has what we do not write.
pub(crate) fn recorded_options(plan: &Value) -> Option<String> {
    let field = |name: &str| plan.get(name).cloned().unwrap_or_default();
    let rate: Option<Rate> = serde_json::from_value(field("rate")).ok()?;
    let rate = rate.map(|rate| format!(" --rate {rate}")).unwrap_or_default();
    let base = field("base_options");
    Some(rate + &study::options_again(base.as_str().unwrap_or_default(), &BASE_OPTIONS)?)
}

fn of_results(error: PlanError) -> Problem {
    Problem::from(error).blaming(Fault::Results)
}

/// Every combination of a sweep's lists, each once.
fn points_of(sweep: &Sweep) -> Result<Vec<Point>, PlanError> {
    Ok(AXES.points(sweep, &Point::of_sweep(&sweep.name), &words)?)
}

/// One sweep over the axes given.
fn single(options: &Options<'_>, base: Option<&Path>) -> Sweep {
    let mut sweep = Plan::single_sweep("cli");
    if let (Some(base), true) = (base, options.given("profile")) {
        sweep.lists.insert("rtt".to_owned(), vec![base.round_trip().to_string()]);
    }
    AXES.overwrite(&mut sweep, options);
    Number::overwrite(NUMBERS, &mut sweep, options);
    sweep
}

/// The options that give the base.
const BASE_OPTIONS: [&str; 3] = ["profile", "trace-up", "trace-down"];

/// What the path does besides RTT, loss and rate.
fn base(options: &Options<'_>) -> Result<Option<Path>, Problem> {
    let [of_profile, up, down] = BASE_OPTIONS;
    let named = options.get::<PathBuf>(of_profile);
    let mut base = named.map(|name| profile(&name, options)).transpose()?;
    for option in [up, down] {
        let Some(file) = options.get::<PathBuf>(option) else { continue };
        let text = options.text_of(&file, "trace")?;
        let trace = Trace::parse(&text).while_doing(|| file.display())?;
        let path = base.get_or_insert_default();
        let direction = if option == up { &mut path.forward } else { &mut path.backward };
        direction.rate = Some(RateSource::Trace(trace));
    }
    Ok(base)
}

/// A profile by name, or from a file.
fn profile(named: &std::path::Path, options: &Options<'_>) -> Result<Path, Problem> {
    let name = named.to_string_lossy();
    if !(name.ends_with(".toml") || name.contains('/')) {
        return Ok(linkmodel::profile(&name)?);
    }
    let text = options.text_of(named, "profile")?;
    Ok(Profile::parse(&text).while_doing(|| name)?.path)
}

/// The options that gave the base, for the command of a point.
fn base_options(options: &Options<'_>) -> String {
    let given = BASE_OPTIONS.into_iter().filter_map(|option| {
        let value = options.get::<PathBuf>(option)?;
        Some(format!("--{option} {}", quoted(&value.to_string_lossy())))
    });
    given.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
