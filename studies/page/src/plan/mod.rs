//! What is to be measured: sweeps, and the loads that they come to.

mod cell;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, WhileDoing};
use linkmodel::{Codel, Path, Queue};
use serde::Deserialize;
use serde_json::{Value, json};
use study::{CLOCK, Clock, Number, Options, PlanError, Scale, Sweep, quoted};
use units::{Delay, Rate};

pub use self::cell::Cell;
use self::cell::MOST_LANES;
pub(crate) use self::cell::{Load, Series, visits_for};
use crate::link::LinkName;
use crate::pages::{PageName, Pages};
use crate::point::{AXES, Point, Waiting};
use crate::trace::{NamedBy, Traces};

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../../plan.toml");
/// Most loads of one plan: their samples can be held together when they are read ([`record::hold`]).
const MOST_LOADS: u64 = 25_000;
/// Most repeated visits after a first one: what was seen of a series is held until it ends.
const MOST_RETURNS: u64 = 100;
/// What a link's rate is taken for, in bit/s, until its trace was read.
const UNKNOWN_RATE: u64 = 1_000_000;
/// After how long a load is given up, unless the user says otherwise.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The numbers of a sweep.
pub(crate) const NUMBERS: &[Number] = &[
    Number {
        name: "repeat",
        help: "Loads per point; an upper limit with --scale or --plan [default: 10]",
        default: Some(10),
        least: 1,
        most: u32::MAX as u64,
    },
    Number {
        name: "returns",
        help: "Repeated visits of each kind after a first one [default: 1]",
        default: None,
        least: 1,
        most: MOST_RETURNS,
    },
    Number {
        name: "lanes",
        help: "Loads under way at once, each on a link of its own [default: as many as processors \
               and the link's rate allow: at most 4 and 20 Mbit/s per processor; with Chromium \
               one per processor below 2 Mbit/s, else 1]",
        default: None,
        least: 1,
        most: MOST_LANES,
    },
];

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// The user's own pages.
    pub pages: Pages,
    /// Seed of every random draw, and of the pages that are made.
    pub seed: u64,
    /// After how long a load is given up, and kept as a censored sample.
    pub timeout: Delay,
    /// The options that gave the pages: ` --har FILE`.
    pub page_options: String,
    /// What is to be said of the pages before they are loaded. A manifest has it in the pages.
    pub(crate) notes: Vec<String>,
    /// Chromium's program, if it is not where it is looked for. No manifest names it: a folder may come from a
    /// stranger.
    pub chromium: Option<PathBuf>,
    /// Whether every load keeps its HAR file.
    pub keep_hars: bool,
    /// The time that it keeps to, if it has such a limit.
    pub budget: Option<Duration>,
    /// The traces of its links. A manifest has their digests, in the links' names.
    pub(crate) traces: Traces,
}

/// A plan in a manifest, less its sweeps.
#[derive(Deserialize)]
struct Recorded {
    seed: u64,
    timeout: Delay,
    pages: BTreeMap<String, String>,
    page_options: String,
    #[serde(default)]
    keep_hars: bool,
}

impl Plan {
    /// The plan of a scale that comes with the study: `quick`, `full` or `paper`.
    ///
    /// # Errors
    /// [`PlanError::UnknownScale`].
    pub fn built_in(scale: &str) -> Result<Plan, Problem> {
        Plan::parse(BUILT_IN, scale, Pages::default())
    }

    fn parse(text: &str, scale: &str, pages: Pages) -> Result<Plan, Problem> {
        let Scale { budget, sweeps } = study::read_scale(text, scale, &AXES, NUMBERS)?;
        Ok(Plan { budget, ..Plan::new(sweeps, pages)? })
    }

    /// A plan of these sweeps and of the user's own pages, with the default seed and timeout.
    ///
    /// # Errors
    /// A sweep asks for what cannot be; no page has one of the names.
    pub fn new(mut sweeps: Vec<Sweep>, pages: Pages) -> Result<Plan, Problem> {
        for sweep in &mut sweeps {
            AXES.respell(sweep, &Point::of_sweep(""), &|_, _| None)?;
        }
        let plan = Plan {
            sweeps,
            pages,
            seed: 1,
            timeout: TIMEOUT.into(),
            page_options: String::new(),
            notes: Vec::new(),
            chromium: None,
            keep_hars: false,
            budget: None,
            traces: Traces::default(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// The plan that a manifest has. It has no limit of time: what was left out is measured.
    ///
    /// # Errors
    /// It is none, or asks for what cannot be.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        let Recorded { seed, timeout, pages, page_options, keep_hars } =
            Recorded::deserialize(value).blame(Fault::Results)?;
        let of_results = |problem: Problem| problem.blaming(Fault::Results);
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS);
        let sweeps = sweeps.map_err(|error| of_results(error.into()))?;
        let plan = Plan::new(sweeps, Pages(pages)).map_err(of_results)?;
        Ok(Plan { seed, timeout, page_options, keep_hars, ..plan })
    }

    /// The plan that a user asks for.
    pub(crate) fn of_options(options: &Options<'_>) -> Result<Plan, Problem> {
        let file = options.get::<PathBuf>("plan");
        let text = file.as_ref().map(|file| options.text_of(file, "plan")).transpose()?;
        let one_sweep = ["har", "rtt", "rate"].iter().any(|name| options.given(name));
        // The clock changes how a plan is measured, not what.
        let one_sweep = AXES.given_beside(CLOCK, options) || one_sweep;
        let is_planned = file.is_some() || options.given("scale");
        if text.is_some() && one_sweep {
            let what = "a plan file and axes (--page, --link, --har, …) exclude each other";
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("put the axes into the plan"));
        }
        let scale = options.get::<String>("scale").unwrap_or_else(|| "quick".to_owned());
        let mut plan = match (&file, &text) {
            (Some(file), Some(text)) => {
                Plan::parse(text, &scale, Pages::default()).while_doing(|| file.display())?
            }
            _ => Plan::built_in(&scale)?,
        };
        if one_sweep || (Number::given(NUMBERS, options) && !is_planned) {
            plan = single(options)?;
        } else {
            plan.sweeps.iter_mut().for_each(|sweep| sweep.limit(NUMBERS, options));
            if study::overwrite_clock(&mut plan.sweeps, options) {
                let budget = plan.budget;
                plan = Plan::new(plan.sweeps, plan.pages)?;
                // A guest is not as fast as the machine, and loses nothing by it.
                plan.budget = budget.filter(|_| plan.clock() == Clock::Wall);
            }
        }
        plan.seed = options.get("seed").unwrap_or(plan.seed);
        plan.timeout = options.get("timeout").unwrap_or(plan.timeout);
        plan.chromium = options.get("chromium");
        plan.keep_hars = options.flag("keep_hars");
        if plan.timeout.duration().is_zero() {
            let problem = Problem::new(Fault::Caller, "a timeout of 0 leaves no time to load");
            return Err(problem.with_remedy("leave it out"));
        }
        plan.read_traces(NamedBy::User)?;
        Ok(plan)
    }

    /// Reads the files of its links, as far as it has not; the links are known by their content from
    /// now on.
    ///
    /// # Errors
    /// A file cannot be read, is no trace, or is another than the link's name says.
    pub(crate) fn read_traces(&mut self, named_by: NamedBy) -> Result<(), Problem> {
        let links = self.sweeps.iter_mut().filter_map(|sweep| sweep.lists.get_mut("link"));
        for word in links.flatten() {
            let link: LinkName = word.parse().blame(Fault::Caller)?;
            *word = link.read(&mut self.traces, named_by)?.to_string();
        }
        Ok(())
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let Plan { seed, timeout, pages, page_options, .. } = self;
        let mut value = json!({
            "sweeps": study::sweeps_value(&self.sweeps),
            "seed": seed,
            "timeout": timeout,
            "pages": pages.0,
            "page_options": page_options,
        });
        if let Some(fields) = value.as_object_mut() {
            fields.extend(self.keep_hars.then(|| ("keep_hars".to_owned(), json!(true))));
        }
        value
    }

    fn check(&self) -> Result<(), Problem> {
        let mut loads = 0u64;
        for sweep in &self.sweeps {
            let wrong = |what| PlanError::OutOfRange { sweep: sweep.name.clone(), what };
            let sizes = AXES.axes.iter().map(|axis| sweep.list(axis).len() as u64);
            let points = sizes.fold(1, u64::saturating_mul);
            let each = u64::from(sweep.repeat()) * u64::from(returns_of(sweep));
            loads = loads.saturating_add(points.saturating_mul(each));
            if loads > MOST_LOADS {
                return Err(wrong(format!("more than {MOST_LOADS} loads in all")).into());
            }
            let pages: BTreeSet<PageName> =
                points_of(sweep)?.into_iter().map(|point| point.page).collect();
            pages.iter().try_for_each(|page| self.pages.page(page, self.seed).map(drop))?;
        }
        let (cells, impossible) = self.cells()?;
        if cells.is_empty() {
            let reason = impossible.first().map_or("no sweep", |(_, reason)| *reason);
            return Err(PlanError::NothingLeft(reason.to_owned()).into());
        }
        Ok(study::one_clock(clocks_of(&cells)).map(drop)?)
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
            let first = cells.len();
            for point in points_of(sweep)? {
                if let Some(reason) = (AXES.impossible)(&point) {
                    impossible.push((point, reason));
                    continue;
                }
                let same = |cell: &Cell| {
                    (&cell.page, &cell.link, cell.loss, cell.queue, cell.cross)
                        == (&point.page, &point.link, point.loss, point.queue, point.cross)
                };
                match cells[first..].iter().position(same) {
                    Some(at) => {
                        let cell = &mut cells[first + at];
                        cell.lanes = cell.lanes.min(self.lanes(sweep, &point));
                        cell.points.push(point);
                    }
                    None => cells.push(self.cell_of(sweep, point)),
                }
            }
        }
        Ok((cells, impossible))
    }

    /// The path of a cell.
    #[must_use]
    pub fn path(&self, cell: &Cell) -> Path {
        let mut path = cell.link.path(&self.traces);
        for direction in [&mut path.forward, &mut path.backward] {
            direction.loss = cell.loss.into();
            if cell.queue == Waiting::Codel {
                direction.queue = Queue::Codel(Codel::default());
            }
        }
        path
    }

    fn cell_of(&self, sweep: &Sweep, point: Point) -> Cell {
        let down = point.link.down_of(&self.traces).unwrap_or(UNKNOWN_RATE);
        Cell {
            page: point.page.clone(),
            link: point.link.clone(),
            down,
            loss: point.loss,
            queue: point.queue,
            cross: point.cross,
            repeat: sweep.repeat(),
            returns: returns_of(sweep),
            lanes: self.lanes(sweep, &point),
            points: vec![point],
        }
    }

    /// How many of a point's loads may be under way at once.
    fn lanes(&self, sweep: &Sweep, point: &Point) -> usize {
        let asked = sweep.number("lanes").and_then(|lanes| usize::try_from(lanes).ok());
        let down = point.link.down_of(&self.traces).unwrap_or(UNKNOWN_RATE);
        asked.unwrap_or_else(|| cell::usual_lanes(point, down)).max(1)
    }
}

/// The options that give the pages.
const PAGE_OPTIONS: [&str; 1] = ["har"];

/// What a command needs beside a point and a round, of the plan in a manifest; `None` where it has what we do not
/// write.
pub(crate) fn recorded_options(plan: &Value) -> Option<String> {
    let recorded = plan.get("page_options").and_then(Value::as_str).unwrap_or_default();
    study::options_again(recorded, &PAGE_OPTIONS)
}

/// How often the points of a sweep are visited again, by the sweep's name.
pub(crate) fn recorded_returns(plan: &Value) -> BTreeMap<String, u32> {
    let sweeps = study::sweeps_of(plan, &AXES, NUMBERS).unwrap_or_default();
    sweeps.into_iter().map(|sweep| (sweep.name.clone(), returns_of(&sweep))).collect()
}

fn clocks_of(cells: &[Cell]) -> impl Iterator<Item = Clock> {
    cells.iter().flat_map(|cell| cell.points.iter().map(|point| point.clock))
}

/// Repeated visits of each kind after a first one.
fn returns_of(sweep: &Sweep) -> u32 {
    sweep.number("returns").and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
}

/// Every combination of a sweep's lists, each once.
fn points_of(sweep: &Sweep) -> Result<Vec<Point>, PlanError> {
    Ok(AXES.points(sweep, &Point::of_sweep(&sweep.name), &|_, _| None)?)
}

/// One sweep over what is given on the command line.
fn single(options: &Options<'_>) -> Result<Plan, Problem> {
    let mut sweep = Sweep::of_defaults("cli", &AXES, NUMBERS);
    let mut pages = Pages::default();
    let mut page_options = String::new();
    let mut notes = Vec::new();
    if let Some(file) = options.get::<PathBuf>("har") {
        let read = pages.read(&file, options)?;
        sweep.lists.insert("page".to_owned(), vec![read.name.to_string()]);
        page_options = format!(" --har {}", quoted(&file.to_string_lossy()));
        notes = read.notes.iter().map(|note| format!("{}: {note}", file.display())).collect();
    }
    if options.given("rtt") || options.given("rate") {
        let rtts: Vec<Delay> = options.all("rtt");
        let rates: Vec<Rate> = options.all("rate");
        if rtts.is_empty() || rates.is_empty() {
            let what = "a link needs a round trip and a rate";
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("give both, as --rtt 50ms --rate 20mbit"));
        }
        let links = rtts
            .iter()
            .flat_map(|rtt| rates.iter().map(move |rate| LinkName::Given(*rtt, *rate).to_string()));
        sweep.lists.insert("link".to_owned(), links.collect());
    }
    AXES.overwrite(&mut sweep, options);
    Number::overwrite(NUMBERS, &mut sweep, options);
    Ok(Plan { page_options, notes, ..Plan::new(vec![sweep], pages)? })
}
