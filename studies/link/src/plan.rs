//! What is to be measured: sweeps, and the trials that they come to.

use std::path::PathBuf;
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, WhileDoing};
use serde::Deserialize;
use serde_json::{Value, json};
use study::{Number, Options, PlanError, Scale, Sweep};
use units::Delay;

use crate::point::{AXES, Backend, Offered, Point};

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");
/// Most trials of one plan: their samples can be held together when they are read ([`record::hold`]).
const MOST_TRIALS: u64 = 25_000;
/// How long frames are sent in a trial, unless the user says otherwise.
const TRIAL: Duration = Duration::from_millis(200);
/// The longest trial.
const LONGEST_TRIAL: Duration = Duration::from_secs(600);

/// The numbers of a sweep.
pub(crate) const NUMBERS: &[Number] = &[Number {
    name: "repeat",
    help: "Trials per point; an upper limit with --scale or --plan [default: 5]",
    default: Some(5),
    least: 1,
    most: u32::MAX as u64,
}];

/// Trials over one path while it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// What carries the frames.
    pub backend: Backend,
    /// What is measured, in this order; all of one path.
    pub asked: Vec<(Point, u32)>,
}

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// Seed of keys.
    pub seed: u64,
    /// How long frames are sent in a trial.
    pub trial: Delay,
    /// Two interfaces of this machine, in place of paths.
    pub between: Option<[String; 2]>,
    /// The time that it keeps to, if it has such a limit.
    pub budget: Option<Duration>,
}

/// A plan in a manifest, less its sweeps.
#[derive(Deserialize)]
struct Recorded {
    seed: u64,
    trial: Delay,
    #[serde(default)]
    between: Option<[String; 2]>,
}

impl Plan {
    /// The plan of a scale that comes with the study: `quick`, `full`, `paper` or `guest`.
    ///
    /// # Errors
    /// [`PlanError::UnknownScale`].
    pub fn built_in(scale: &str) -> Result<Plan, Problem> {
        Plan::parse(BUILT_IN, scale)
    }

    fn parse(text: &str, scale: &str) -> Result<Plan, Problem> {
        let Scale { budget, sweeps } = study::read_scale(text, scale, &AXES, NUMBERS)?;
        Ok(Plan { budget, ..Plan::new(sweeps)? })
    }

    /// A plan of these sweeps, with the default seed and trial.
    ///
    /// # Errors
    /// A sweep asks for what cannot be.
    pub fn new(mut sweeps: Vec<Sweep>) -> Result<Plan, Problem> {
        for sweep in &mut sweeps {
            AXES.respell(sweep, &Point::of_sweep(""), &|_, _| None)?;
        }
        let plan = Plan { sweeps, seed: 1, trial: TRIAL.into(), between: None, budget: None };
        plan.check()?;
        Ok(plan)
    }

    /// The plan that a manifest has. It has no limit of time: what was left out is measured.
    ///
    /// # Errors
    /// It is none, or asks for what cannot be.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        let Recorded { seed, trial, between } =
            Recorded::deserialize(value).blame(Fault::Results)?;
        let of_results = |problem: Problem| problem.blaming(Fault::Results);
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS);
        let sweeps = sweeps.map_err(|error| of_results(error.into()))?;
        let plan = Plan::new(sweeps).map_err(of_results)?;
        Ok(Plan { seed, trial, between, ..plan })
    }

    /// The plan that a user asks for.
    pub(crate) fn of_options(options: &Options<'_>) -> Result<Plan, Problem> {
        let file = options.get::<PathBuf>("plan");
        let text = file.as_ref().map(|file| options.text_of(file, "plan")).transpose()?;
        let between: Vec<String> = options.all("between");
        let one_sweep = AXES.given(options) || !between.is_empty();
        let is_planned = file.is_some() || options.given("scale");
        if text.is_some() && one_sweep {
            let what = "a plan file and axes (--protocol, --frame, …) exclude each other";
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("put the axes into the plan"));
        }
        let scale = options.get::<String>("scale").unwrap_or_else(|| "quick".to_owned());
        let mut plan = match (&file, &text) {
            (Some(file), Some(text)) => Plan::parse(text, &scale).while_doing(|| file.display())?,
            _ => Plan::built_in(&scale)?,
        };
        if one_sweep || (Number::given(NUMBERS, options) && !is_planned) {
            plan = single(options, &between)?;
        } else {
            plan.sweeps.iter_mut().for_each(|sweep| sweep.limit(NUMBERS, options));
        }
        plan.seed = options.get("seed").unwrap_or(plan.seed);
        plan.trial = options.get("trial").unwrap_or(plan.trial);
        plan.check_guest()?;
        let trial = plan.trial.duration();
        if trial.is_zero() || trial > LONGEST_TRIAL {
            let what = format!("a trial of {}", plan.trial);
            return Err(Problem::new(Fault::Caller, what).with_remedy("take up to 10m, as 200ms"));
        }
        Ok(plan)
    }

    /// A plan that a guest machine alone can carry out is refused where there is none. Where others carry out the
    /// rest, its part is left out, and said.
    fn check_guest(&self) -> Result<(), Problem> {
        let (points, _) = self.points()?;
        if points.iter().all(|(point, _)| point.backend == Backend::Guest) {
            crate::measure::guest()?;
        }
        Ok(())
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut value = json!({
            "sweeps": study::sweeps_value(&self.sweeps),
            "seed": self.seed,
            "trial": self.trial,
        });
        if let (Some(between), Some(fields)) = (&self.between, value.as_object_mut()) {
            fields.insert("between".to_owned(), json!(between));
        }
        value
    }

    fn check(&self) -> Result<(), Problem> {
        let mut trials = 0u64;
        for sweep in &self.sweeps {
            let sizes = AXES.axes.iter().map(|axis| sweep.list(axis).len() as u64);
            let points = sizes.fold(1, u64::saturating_mul);
            trials = trials.saturating_add(points.saturating_mul(u64::from(sweep.repeat())));
            if trials > MOST_TRIALS {
                let what = format!("more than {MOST_TRIALS} trials in all");
                return Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what }.into());
            }
        }
        let (points, impossible) = self.points()?;
        if points.is_empty() {
            let reason = impossible.first().map_or("no sweep", |(_, reason)| *reason);
            return Err(PlanError::NothingLeft(reason.to_owned()).into());
        }
        Ok(())
    }

    /// The points with their number of trials, and those left out with the reason.
    ///
    /// # Errors
    /// A word of a sweep is no value of its axis.
    #[allow(clippy::type_complexity)]
    pub fn points(&self) -> Result<(Vec<(Point, u32)>, Vec<(Point, &'static str)>), PlanError> {
        let (mut points, mut impossible) = (Vec::new(), Vec::new());
        for sweep in &self.sweeps {
            let base = Point::of_sweep(&sweep.name);
            for point in AXES.points(sweep, &base, &|_, _| None)? {
                match point.impossible() {
                    Some(reason) => impossible.push((point, reason)),
                    None => points.push((point, sweep.repeat())),
                }
            }
        }
        Ok((points, impossible))
    }

    /// The trials that `wanted` wants, in the order to make them: in real time the paths of a sweep take turns,
    /// A B C D A B C D; in a guest machine each path stands once.
    ///
    /// # Errors
    /// A word of a sweep is no value of its axis.
    pub(crate) fn rounds(
        &self,
        wanted: impl Fn(&Point, u32) -> bool,
    ) -> Result<Vec<Round>, PlanError> {
        let (points, _) = self.points()?;
        let mut paths: Vec<Vec<&(Point, u32)>> = Vec::new();
        for one in &points {
            let same = |path: &&mut Vec<&(Point, u32)>| {
                path.first().is_some_and(|(first, _)| is_of_path(first, &one.0))
            };
            match paths.iter_mut().find(same) {
                Some(path) => path.push(one),
                None => paths.push(vec![one]),
            }
        }
        let mut rounds = Vec::new();
        let most = points.iter().map(|(_, repeat)| *repeat).max().unwrap_or_default();
        for sweep in &self.sweeps {
            let own = |path: &&Vec<&(Point, u32)>| {
                path.first().is_some_and(|(first, _)| first.sweep == sweep.name)
            };
            let (virtual_, real): (Vec<_>, Vec<_>) = paths
                .iter()
                .filter(own)
                .partition(|path| path.first().is_some_and(|(p, _)| p.backend == Backend::Guest));
            for repeat in 0..most {
                rounds.extend(real.iter().filter_map(|path| round(path, &[repeat], &wanted)));
            }
            let all: Vec<u32> = (0..most).collect();
            rounds.extend(virtual_.iter().filter_map(|path| round(path, &all, &wanted)));
        }
        Ok(rounds)
    }
}

/// What a command needs beside a point to measure it again.
pub(crate) fn options(trial: Delay, between: Option<&[String; 2]>) -> String {
    let between = match between {
        Some([a, b]) => format!(" --between {} {}", study::quoted(a), study::quoted(b)),
        None => String::new(),
    };
    format!(" --trial {trial}{between}")
}

/// The same of the plan in a manifest.
pub(crate) fn recorded_options(plan: &Value) -> Option<String> {
    let Recorded { trial, between, .. } = Recorded::deserialize(plan).ok()?;
    Some(options(trial, between.as_ref()))
}

/// Whether two points are of one sweep and one path.
fn is_of_path(a: &Point, b: &Point) -> bool {
    a.sweep == b.sweep && a.backend == b.backend && a.topology() == b.topology()
}

/// The trials over a path that are wanted; none if there is none.
fn round(
    path: &[&(Point, u32)],
    repeats: &[u32],
    wanted: &impl Fn(&Point, u32) -> bool,
) -> Option<Round> {
    let mut asked = Vec::new();
    for repeat in repeats {
        for (point, most) in path {
            if repeat < most && wanted(point, *repeat) {
                asked.push((point.clone(), *repeat));
            }
        }
    }
    let backend = asked.first()?.0.backend;
    Some(Round { backend, asked })
}

/// Trials that a search takes, about: halves down to half a percent, and the first.
const SEARCHED: u32 = 10;
/// What a trial takes beside its sending: the last frames, the counters.
const BESIDE: Duration = Duration::from_millis(30);
/// What it takes to stand a path up and take it down, in real time.
const STANDING: Duration = Duration::from_millis(500);
/// What a guest machine takes to start and end.
const BOOTING: Duration = Duration::from_secs(6);
/// What it takes to stand a path up there, by the commands that there are.
const STANDING_IN_GUEST: Duration = Duration::from_secs(3);

impl Round {
    /// About how long it takes.
    pub(crate) fn expected(&self, trial: Duration) -> Duration {
        let trials: Duration = self.asked.iter().map(|(point, _)| trial_time(point, trial)).sum();
        let standing = if self.backend == Backend::Guest { STANDING_IN_GUEST } else { STANDING };
        standing + trials
    }
}

/// About how long one measurement takes.
pub(crate) fn trial_time(point: &Point, trial: Duration) -> Duration {
    match point.load {
        Offered::Frames(_) | Offered::Rate(_) => trial + BESIDE,
        Offered::Throughput => (search_time(point, trial) + BESIDE) * SEARCHED,
        Offered::Burst => BESIDE * 4,
    }
}

/// To which share a throughput is searched for.
pub(crate) const PRECISION: f64 = 0.005;

/// How long frames are sent in a trial of a search: long enough for a slow gateway's queue not to hide the loss.
pub(crate) fn search_time(point: &Point, trial: Duration) -> Duration {
    trial.max(point.gateway.time_to_lose(PRECISION, point.frame.mean()))
}

impl Plan {
    /// How many trials it comes to, and how long they take, about.
    #[must_use]
    pub fn size(&self) -> (u64, Duration) {
        // A plan's words were read when it was made.
        let rounds = self.rounds(|_, _| true).unwrap_or_default();
        let trials = rounds.iter().map(|round| round.asked.len() as u64).sum();
        let times = rounds.iter().map(|round| round.expected(self.trial.duration()));
        let guest = rounds.iter().any(|round| round.backend == Backend::Guest);
        (trials, times.sum::<Duration>() + if guest { BOOTING } else { Duration::ZERO })
    }
}

/// One sweep over what is given on the command line.
fn single(options: &Options<'_>, between: &[String]) -> Result<Plan, Problem> {
    let mut sweep = Sweep::of_defaults("cli", &AXES, NUMBERS);
    AXES.overwrite(&mut sweep, options);
    Number::overwrite(NUMBERS, &mut sweep, options);
    let between = match between {
        [] => None,
        [a, b] => {
            for axis in [
                "backend", "protocol", "hops", "network", "reach", "gateway", "outer", "pppoe",
                "nat-t",
            ] {
                if options.given(axis) {
                    let what =
                        format!("--between measures what is there: --{axis} changes nothing");
                    return Err(Problem::new(Fault::Caller, what).with_remedy("leave it out"));
                }
            }
            sweep.lists.insert("backend".to_owned(), vec![Backend::Between.name().to_owned()]);
            sweep.lists.insert("protocol".to_owned(), vec!["plain".to_owned()]);
            Some([a.clone(), b.clone()])
        }
        _ => {
            let what = "--between takes two interfaces";
            return Err(Problem::new(Fault::Caller, what).with_remedy("as --between eth1 eth2"));
        }
    };
    let plan = Plan::new(vec![sweep])?;
    let (points, _) = plan.points()?;
    if between.is_none() && points.iter().any(|(point, _)| point.backend == Backend::Between) {
        let problem = Problem::new(Fault::Caller, "the backend `between` needs two interfaces");
        return Err(problem.with_remedy("give them by --between IF1 IF2"));
    }
    Ok(Plan { between, ..plan })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_reads_and_the_quick_ones_keep_to_their_time() {
        for scale in ["quick", "smoke", "guest", "full", "paper"] {
            let plan = Plan::built_in(scale).unwrap();
            let (points, impossible) = plan.points().unwrap();
            assert!(!points.is_empty() && impossible.is_empty(), "{scale}: {impossible:?}");
            let read = Plan { budget: plan.budget, ..Plan::recorded(&plan.value()).unwrap() };
            assert_eq!(read, plan);
            if let Some(budget) = plan.budget {
                assert!(plan.size().1 <= budget, "{scale}: {:?}", plan.size().1);
            }
        }
        assert!(Plan::built_in("huge").is_err());
    }

    #[test]
    fn paths_take_turns_in_real_time_and_stand_once_in_a_guest() {
        let rounds = Plan::built_in("quick").unwrap().rounds(|_, _| true).unwrap();
        let first: Vec<String> =
            rounds.iter().take(5).map(|round| round.asked[0].0.protocol.to_string()).collect();
        assert_eq!(first, ["plain", "macsec", "esp", "wireguard", "plain"]);
        assert!(rounds.iter().all(|round| {
            round.asked.iter().all(|(point, _)| is_of_path(point, &round.asked[0].0))
        }));
        let rounds = Plan::built_in("guest").unwrap().rounds(|_, _| true).unwrap();
        assert_eq!(rounds.len(), 5);
    }

    #[test]
    fn what_is_measured_is_left_out() {
        let plan = Plan::built_in("quick").unwrap();
        let count = |wanted: fn(&Point, u32) -> bool| -> usize {
            plan.rounds(wanted).unwrap().iter().map(|round| round.asked.len()).sum()
        };
        let (first, rest) = (count(|_, repeat| repeat == 0), count(|_, repeat| repeat > 0));
        assert!(first > 0 && rest > 0);
        assert_eq!(first + rest, count(|_, _| true));
        assert!(plan.rounds(|_, _| false).unwrap().is_empty());
    }
}
