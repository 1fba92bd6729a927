//! What is to be measured: sweeps, and the loads that they come to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use browser::CrossTraffic;
use fault::{Fault, OrProblem, Problem, WhileDoing};
use linkmodel::{Codel, Path, Queue};
use serde::Deserialize;
use serde_json::{Value, json};
use study::{CLOCK, Clock, Number, Options, PlanError, Scale, Sweep, quoted};
use units::{Delay, Probability, Rate};

use crate::link::LinkName;
use crate::pages::{PageName, Pages};
use crate::point::{AXES, Loader, Point, Visit, Waiting};
use crate::trace::Traces;

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");
/// Most loads of one plan: a bound on what a wrong plan file can start.
const MOST_LOADS: u64 = 1_000_000;
/// Most loads under way at once.
pub(crate) const MOST_LANES: u64 = 16;
/// Most repeated visits after a first one: what was seen of a series is held until it ends.
const MOST_RETURNS: u64 = 100;
/// What a link's rate is taken for, in bit/s, until its trace was read.
const UNKNOWN_RATE: u64 = 1_000_000;
/// Bit/s down that the loads of one processor come to.
const RATE_PER_PROCESSOR: u64 = 20_000_000;
/// Most loads at once per processor.
const LOADS_PER_PROCESSOR: usize = 4;
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

/// Loads that share a page and a link: they take turns on it.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The page that is loaded.
    pub page: PageName,
    /// The link that it is loaded over.
    pub link: LinkName,
    /// About its rate down, in bit/s.
    pub down: u64,
    /// Loss each way.
    pub loss: Probability,
    /// How frames wait for the link's rate.
    pub queue: Waiting,
    /// What else is on the link.
    pub cross: CrossTraffic,
    /// Rounds: first visits per point.
    pub repeat: u32,
    /// Repeated visits of each kind per round.
    pub returns: u32,
    /// Loads under way at once.
    pub lanes: usize,
    /// What takes turns.
    pub points: Vec<Point>,
}

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
    /// Chromium's program, if it is not where it is looked for.
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
    chromium: Option<PathBuf>,
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
        let Recorded { seed, timeout, pages, page_options, chromium, keep_hars } =
            Recorded::deserialize(value).blame(Fault::Results)?;
        let of_results = |problem: Problem| problem.blaming(Fault::Results);
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS);
        let sweeps = sweeps.map_err(|error| of_results(error.into()))?;
        let plan = Plan::new(sweeps, Pages(pages)).map_err(of_results)?;
        Ok(Plan { seed, timeout, page_options, chromium, keep_hars, ..plan })
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
        plan.read_traces(options)?;
        Ok(plan)
    }

    /// Reads the files of its links, as far as it has not; the links are known by their content from
    /// now on.
    ///
    /// # Errors
    /// A file cannot be read, is no trace, or is another than the link's name says.
    pub(crate) fn read_traces(&mut self, options: &Options<'_>) -> Result<(), Problem> {
        let links = self.sweeps.iter_mut().filter_map(|sweep| sweep.lists.get_mut("link"));
        for word in links.flatten() {
            let link: LinkName = word.parse().blame(Fault::Caller)?;
            *word = link.read(&mut self.traces, options)?.to_string();
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
            fields.extend(self.chromium.iter().map(|path| ("chromium".to_owned(), json!(path))));
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
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let usual = match point.loader {
            // In a guest waiting costs nothing, and one processor does it all.
            _ if point.clock == Clock::Virtual => 1,
            Loader::Ours => lanes_for(down, processors),
            // A browser that lays a page out takes most of a processor.
            Loader::Chromium if down <= SLOW => processors,
            Loader::Chromium => 1,
        };
        asked.unwrap_or(usual).max(1)
    }
}

fn clocks_of(cells: &[Cell]) -> impl Iterator<Item = Clock> {
    cells.iter().flat_map(|cell| cell.points.iter().map(|point| point.clock))
}

/// Repeated visits of each kind after a first one.
fn returns_of(sweep: &Sweep) -> u32 {
    sweep.number("returns").and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
}

/// A link at which a browser waits for its bytes rather than for its processor, in bit/s.
const SLOW: u64 = 2_000_000;

/// How many loads at once a link of this rate down, in bit/s, and so many processors bear.
///
/// What a load costs grows with its rate. By the program's CPU time on two processors, a load of
/// `google-play` at 17 Mbit/s takes 0.47 of one, and eight at once at 1.37 Mbit/s take 0.5, the pump's waiting
/// included: at 20 Mbit/s per processor about half of each is idle. What does not grow with the rate, the
/// handshakes' computation, comes in bursts of some milliseconds: more than four loads per processor would
/// meet too often (our choice).
fn lanes_for(down: u64, processors: usize) -> usize {
    let by_rate = processors as u64 * RATE_PER_PROCESSOR / down.max(1);
    let most = (processors * LOADS_PER_PROCESSOR) as u64;
    by_rate.min(most).clamp(1, MOST_LANES) as usize
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

/// A group of a cell's points that differ in the visit alone: one browser makes these loads one after
/// the other.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The points, in the order of their visits.
    pub(crate) points: Vec<Point>,
}

/// A load of a series, of which there is to be a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load<'a> {
    /// What is loaded.
    pub(crate) point: &'a Point,
    /// Which of the point's loads it is, from 0.
    pub(crate) repeat: u32,
}

impl Cell {
    /// Its points by series.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for point in &self.points {
            let own = all
                .iter_mut()
                .find(|series| series.points.first().is_some_and(|other| point.is_visit_of(other)));
            match own {
                Some(series) => series.points.push(point.clone()),
                None => all.push(Series { points: vec![point.clone()] }),
            }
        }
        for series in &mut all {
            series.points.sort_by_key(|point| point.visit);
        }
        all
    }
}

impl Cell {
    /// Loads of a point per round.
    pub(crate) fn per_round(&self, visit: Visit) -> u32 {
        if visit == Visit::First { 1 } else { self.returns }
    }

    /// How often a point is loaded in all.
    pub(crate) fn loads_of(&self, point: &Point) -> u32 {
        self.repeat.saturating_mul(self.per_round(point.visit))
    }

    /// The loads of a series in one round, in the order in which a browser makes them.
    pub(crate) fn loads<'a>(&self, series: &'a Series, round: u32) -> Vec<Load<'a>> {
        let of_point = |point: &'a Point| {
            let each = self.per_round(point.visit);
            (0..each).map(move |n| Load { point, repeat: round * each + n })
        };
        series.points.iter().flat_map(of_point).collect()
    }
}

/// The visits that these come to: a repeated one needs a first one, whether it is asked for or not.
pub(crate) fn visits_for(wanted: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits = vec![Visit::First];
    visits.extend(wanted.into_iter().filter(|visit| *visit != Visit::First));
    visits
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::Plan as _;

    #[test]
    fn every_scale_reads_and_the_quick_ones_keep_to_their_time() {
        for scale in ["quick", "smoke", "full", "paper", "grid", "uploads", "windows"] {
            let plan = Plan::built_in(scale).unwrap();
            let (cells, impossible) = plan.cells().unwrap();
            assert!(!cells.is_empty() && impossible.is_empty(), "{scale}: {impossible:?}");
            assert_eq!(
                Plan { budget: plan.budget, ..Plan::recorded(&plan.value()).unwrap() },
                plan
            );
            // With one processor fewer loads are under way at once: some are left out.
            let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
            if let Some(budget) = plan.budget.filter(|_| several) {
                assert!(plan.expected() <= budget, "{scale}: {:?}", plan.expected());
            }
        }
        assert!(Plan::built_in("huge").is_err());
    }

    /// Its ten TCP windows by stream windows of 64 KB, 10, 64 and 100 MB, by page and rate.
    #[test]
    fn the_grid_of_windows_is_whole() {
        let (cells, _) = Plan::built_in("grid").unwrap().cells().unwrap();
        let points = || cells.iter().flat_map(|cell| &cell.points);
        let ways: BTreeSet<_> = points()
            .filter(|point| point.protocol == web::Protocol::Spdy3)
            .map(|point| (point.tcp_window.to_string(), point.stream_window.to_string()))
            .collect();
        let streams: BTreeSet<&str> = ways.iter().map(|(_, stream)| stream.as_str()).collect();
        assert_eq!(streams, BTreeSet::from(["64KiB", "10MiB", "64MiB", "100MiB"]));
        assert_eq!(ways.len(), 10 * 4);
        // HTTP/1.1 has a row for each TCP window in both of its sweeps.
        assert_eq!(points().count(), 4 * 2 * (10 * 4 + 2 * 10));
    }

    #[test]
    fn protocols_share_a_cell_and_visits_a_series() {
        let (cells, _) = Plan::built_in("quick").unwrap().cells().unwrap();
        assert_eq!(cells.len(), 2);
        let series = cells[0].series();
        assert_eq!(series.len(), 4);
        let visits = |cell: &Cell, round| -> Vec<(Visit, u32)> {
            let loads = cell.loads(&series[0], round);
            loads.iter().map(|load| (load.point.visit, load.repeat)).collect()
        };
        assert_eq!(visits(&cells[0], 1), [(Visit::First, 1), (Visit::Kept, 1)]);
        // With several returns a browser stays: the repeats of all rounds are counted on.
        let stays = Cell { returns: 3, ..cells[0].clone() };
        let kept = |n| (Visit::Kept, n);
        assert_eq!(visits(&stays, 1), [(Visit::First, 1), kept(3), kept(4), kept(5)]);
        assert_eq!(stays.loads_of(&series[0].points[1]), 3 * stays.repeat);
        assert_eq!(
            visits_for([Visit::Closed, Visit::Closed]),
            [Visit::First, Visit::Closed, Visit::Closed]
        );
    }

    #[test]
    fn lanes_come_of_the_rate_and_the_processors() {
        for (down, processors, lanes) in [
            (900_000, 2, 8),
            (1_370_000, 2, 8),
            (17_040_000, 2, 2),
            (61_120_000, 2, 1),
            (900_000, 1, 4),
            (17_040_000, 8, 9),
            (900_000, 64, 16),
            (0, 1, 4),
            (1_000_000_000, 1, 1),
        ] {
            assert_eq!(lanes_for(down, processors), lanes, "{down} bit/s, {processors}");
        }
    }

    #[test]
    fn http_1_1_has_no_windows_to_vary() {
        let mut sweep = Sweep::of_defaults("x", &AXES, NUMBERS);
        let list = |words: &str| words.split(',').map(str::to_owned).collect::<Vec<String>>();
        sweep.lists.insert("stream-window".to_owned(), list("64KiB,1MiB"));
        sweep.lists.insert("protocol".to_owned(), list("http/1.1,h2"));
        sweep.lists.insert("link".to_owned(), list("wired-10"));
        sweep.lists.insert("visit".to_owned(), list("first"));
        let plan = Plan::new(vec![sweep], Pages::default()).unwrap();
        let (cells, _) = plan.cells().unwrap();
        let protocols: Vec<String> =
            cells[0].points.iter().map(|point| point.protocol.to_string()).collect();
        assert_eq!(protocols, ["http/1.1", "h2", "h2"]);
    }

    #[test]
    fn chromium_takes_turns_with_our_loader_where_it_can() {
        let mut sweep = Sweep::of_defaults("x", &AXES, NUMBERS);
        let list = |words: &str| words.split(',').map(str::to_owned).collect::<Vec<String>>();
        sweep.lists.insert("loader".to_owned(), list("ours,chromium"));
        sweep.lists.insert("protocol".to_owned(), list("spdy/3.1,h2"));
        sweep.lists.insert("visit".to_owned(), list("first,closed"));
        sweep.lists.insert("stream-window".to_owned(), list("64KiB,1MiB"));
        sweep.lists.insert("link".to_owned(), list("3g-0.9"));
        let plan = Plan::new(vec![sweep], Pages::default()).unwrap();
        let (cells, impossible) = plan.cells().unwrap();
        let by_chromium = |point: &&Point| point.loader == Loader::Chromium;
        let points: Vec<&Point> = cells[0].points.iter().filter(by_chromium).collect();
        // Windows are its own: one point, not two.
        assert_eq!(points.len(), 1, "{points:?}");
        assert_eq!(points[0].fields()["loader"], "chromium");
        assert!(cells[0].points.iter().any(|point| !point.fields().contains_key("loader")));
        let reasons: Vec<&str> = impossible.iter().map(|(_, reason)| *reason).collect();
        assert!(reasons.iter().any(|reason| reason.contains("no SPDY")), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("close its connections")));
        // A browser needs more of a processor than a loader that renders nothing.
        assert_eq!(cells[0].lanes, 2);
    }
}
