//! What is to be measured: sweeps, and the runs that they come to.

use std::path::PathBuf;
use std::time::Duration;

use fault::{Explain, Fault, OrProblem, Problem, WhileDoing};
use handoff::Scenario;
use mobility::Bed;
use serde::Deserialize;
use serde_json::{Value, json};
use study::{Clock, Number, Options, PlanError, Scale, Sweep};
use units::Delay;

use crate::files::Files;
use crate::point::{AXES, Point};

/// The plans that come with the study, by scale.
const BUILT_IN: &str = include_str!("../plan.toml");
/// Most runs of one plan: a bound on what a wrong plan file can start.
const MOST_RUNS: u64 = 20_000;
/// How long traffic runs, unless the user says otherwise: a quarter before the trigger, the rest for the outage.
const TRIAL: Duration = Duration::from_secs(5);
/// The shortest trial: what follows the trigger must have room for a scan.
const SHORTEST_TRIAL: Duration = Duration::from_secs(2);
/// How much longer it runs where the host checks its address for duplicates: up to 1 s of waiting, three probes up to
/// 2 s apart, 2 s of silence (RFC 5227 §1.1), by three quarters of the trial.
const CHECKING: Duration = Duration::from_secs(8);
/// The longest trial.
const LONGEST_TRIAL: Duration = Duration::from_secs(120);

/// The numbers of a sweep.
pub(crate) const NUMBERS: &[Number] = &[Number {
    name: "repeat",
    help: "Runs per point; an upper limit with --scale or --plan [default: 5]",
    default: Some(5),
    least: 1,
    most: 1000,
}];

/// Runs in one bed.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// What the bed stands for.
    pub scenario: Scenario,
    /// How long traffic runs.
    pub trial: Delay,
    /// What is measured, in this order.
    pub asked: Vec<(Point, u32)>,
}

/// A point that is left out, and why.
pub type LeftOut = (Point, String);

/// All that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The sweeps, in order.
    pub sweeps: Vec<Sweep>,
    /// The scenarios of files.
    pub files: Files,
    /// Seed of keys, addresses and of when the trigger is pulled.
    pub seed: u64,
    /// How long traffic runs.
    pub trial: Delay,
    /// The time that it keeps to, if it has such a limit.
    pub budget: Option<Duration>,
}

/// A plan in a manifest, less its sweeps.
#[derive(Deserialize)]
struct Recorded {
    seed: u64,
    trial: Delay,
    #[serde(default)]
    scenarios: Files,
}

/// What a command needs beside a point to measure it again.
pub(crate) struct Again {
    pub(crate) files: Files,
    pub(crate) trial: Delay,
    pub(crate) seed: u64,
}

impl Again {
    /// That of the plan in a manifest.
    pub(crate) fn recorded(plan: &Value) -> Option<Again> {
        let Recorded { seed, trial, scenarios } = Recorded::deserialize(plan).ok()?;
        Some(Again { files: scenarios, trial, seed })
    }
}

impl Plan {
    /// The plan of a scale that comes with the study.
    ///
    /// # Errors
    /// [`PlanError::UnknownScale`].
    pub fn built_in(scale: &str) -> Result<Plan, Problem> {
        Plan::parse(BUILT_IN, scale, &Options::none())
    }

    fn parse(text: &str, scale: &str, options: &Options<'_>) -> Result<Plan, Problem> {
        let Scale { budget, mut sweeps } = study::read_scale(text, scale, &AXES, NUMBERS)?;
        let mut files = Files::default();
        sweeps.iter_mut().try_for_each(|sweep| files.take_from(sweep, options))?;
        Ok(Plan { budget, ..Plan::new(sweeps, files)? })
    }

    /// A plan of these sweeps, with the default seed and trial.
    ///
    /// # Errors
    /// A sweep asks for what cannot be.
    pub fn new(mut sweeps: Vec<Sweep>, files: Files) -> Result<Plan, Problem> {
        for sweep in &mut sweeps {
            AXES.respell(sweep, &Point::of_sweep(""), &|_, _| None)?;
        }
        let plan = Plan { sweeps, files, seed: 1, trial: TRIAL.into(), budget: None };
        plan.check()?;
        Ok(plan)
    }

    /// The plan that a manifest has. It has no limit of time: what was left out is measured.
    ///
    /// # Errors
    /// It is none, or asks for what cannot be.
    pub fn recorded(value: &Value) -> Result<Plan, Problem> {
        let Recorded { seed, trial, scenarios } =
            Recorded::deserialize(value).blame(Fault::Results)?;
        let of_results = |problem: Problem| problem.blaming(Fault::Results);
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS);
        let sweeps = sweeps.map_err(|error| of_results(error.into()))?;
        scenarios.check().map_err(of_results)?;
        let plan = Plan::new(sweeps, scenarios).map_err(of_results)?;
        Ok(Plan { seed, trial, ..plan })
    }

    /// The plan that a user asks for.
    pub(crate) fn of_options(options: &Options<'_>) -> Result<Plan, Problem> {
        let file = options.get::<PathBuf>("plan");
        let text = file.as_ref().map(|file| options.text_of(file, "plan")).transpose()?;
        let one_sweep = AXES.given(options);
        let is_planned = file.is_some() || options.given("scale");
        if text.is_some() && one_sweep {
            let what = "a plan file and axes (--scenario, --rate, …) exclude each other";
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("put the axes into the plan"));
        }
        let scale = options.get::<String>("scale").unwrap_or_else(|| "quick".to_owned());
        let mut plan = match (&file, &text) {
            _ if one_sweep => single(options)?,
            (Some(file), Some(text)) => {
                Plan::parse(text, &scale, options).while_doing(|| file.display())?
            }
            _ => Plan::built_in(&scale)?,
        };
        if one_sweep {
            plan.budget = None;
        } else if is_planned {
            plan.sweeps.iter_mut().for_each(|sweep| sweep.limit(NUMBERS, options));
        } else {
            plan.sweeps.iter_mut().for_each(|sweep| Number::overwrite(NUMBERS, sweep, options));
        }
        plan.seed = options.get("seed").unwrap_or(plan.seed);
        plan.trial = options.get("trial").unwrap_or(plan.trial);
        let trial = plan.trial.duration();
        if !(SHORTEST_TRIAL..=LONGEST_TRIAL).contains(&trial) {
            let what = format!("a trial of {}", plan.trial);
            return Err(Problem::new(Fault::Caller, what).with_remedy("take 2s to 120s, as 5s"));
        }
        plan.check()?;
        Ok(plan)
    }

    /// What a command needs beside a point to measure it again.
    pub(crate) fn again(&self) -> Again {
        Again { files: self.files.clone(), trial: self.trial, seed: self.seed }
    }

    /// As a manifest has it.
    #[must_use]
    pub fn value(&self) -> Value {
        let mut value = json!({
            "sweeps": study::sweeps_value(&self.sweeps),
            "seed": self.seed,
            "trial": self.trial,
        });
        if let (false, Some(fields)) = (self.files.is_empty(), value.as_object_mut()) {
            fields.insert("scenarios".to_owned(), json!(self.files));
        }
        value
    }

    fn check(&self) -> Result<(), Problem> {
        let mut runs = 0u64;
        for sweep in &self.sweeps {
            let sizes = AXES.axes.iter().map(|axis| sweep.list(axis).len() as u64);
            let points = sizes.fold(1, u64::saturating_mul);
            runs = runs.saturating_add(points.saturating_mul(u64::from(sweep.repeat())));
            if runs > MOST_RUNS {
                let what = format!("more than {MOST_RUNS} runs in all");
                return Err(PlanError::OutOfRange { sweep: sweep.name.clone(), what }.into());
            }
        }
        let (rounds, left_out) = self.rounds(|_, _| true)?;
        if rounds.is_empty() {
            let reason = left_out.first().map_or("no sweep".to_owned(), |(_, why)| why.clone());
            return Err(PlanError::NothingLeft(reason).into());
        }
        Ok(())
    }

    /// The runs that `wanted` wants, by the beds that they share, and the points that cannot be measured.
    ///
    /// # Errors
    /// A word of a sweep is no value of its axis; there is no such scenario.
    pub fn rounds(
        &self,
        wanted: impl Fn(&Point, u32) -> bool,
    ) -> Result<(Vec<Round>, Vec<LeftOut>), Problem> {
        let (mut rounds, mut left_out): (Vec<Round>, Vec<LeftOut>) = (Vec::new(), Vec::new());
        for sweep in &self.sweeps {
            let base = Point::of_sweep(&sweep.name);
            for point in AXES.points(sweep, &base, &|_, _| None)? {
                let named = self.files.scenario(&point.scenario)?;
                if let Some(why) = impossible(&point, &named) {
                    left_out.push((point, why));
                    continue;
                }
                let scenario = point.of(&named);
                let repeats = (0..sweep.repeat()).filter(|repeat| wanted(&point, *repeat));
                let asked = repeats.map(|repeat| (point.clone(), repeat));
                let same = |round: &&mut Round| {
                    round.asked.first().is_some_and(|(first, _)| first.shares_bed(&point))
                };
                match rounds.iter_mut().find(same) {
                    Some(round) => round.asked.extend(asked),
                    None => {
                        let (trial, asked) = (self.trial_of(&scenario), asked.collect());
                        rounds.push(Round { scenario, trial, asked });
                    }
                }
            }
        }
        rounds.retain(|round| !round.asked.is_empty());
        Ok((rounds, left_out))
    }
}

impl Plan {
    /// How long traffic runs in a scenario: longer where the host checks its address first.
    fn trial_of(&self, scenario: &Scenario) -> Delay {
        let longer = if scenario.detects_duplicates() { CHECKING } else { Duration::ZERO };
        (self.trial.duration() + longer).into()
    }
}

/// Why a point cannot be measured, if it cannot.
fn impossible(point: &Point, named: &Scenario) -> Option<String> {
    let changed = point.of(named);
    if let Err(contradiction) = changed.check() {
        return Some(contradiction.in_one_text());
    }
    if let Err(error) = Bed::check(&changed) {
        return Some(error.in_one_text());
    }
    let without = Point { change: handoff::Change::None, ..point.clone() };
    let does_nothing = point.change != without.change && without.of(named) == changed;
    does_nothing.then(|| "the scenario has this already".to_owned())
}

/// What a guest takes to start and end, about.
const BOOTING: Duration = Duration::from_secs(7);
/// What a bed takes to stand.
const STANDING: Duration = Duration::from_secs(4);
/// What a second of traffic takes at 1000 frames per second each way, and what each further 1000 add.
const SECOND: Duration = Duration::from_millis(300);
const PER_THOUSAND: Duration = Duration::from_millis(250);
/// What attaching the host takes before a run.
const ATTACHING: Duration = Duration::from_millis(800);

/// About how long one run takes.
fn run_time(point: &Point, trial: Duration) -> Duration {
    let thousands = f64::from(point.rate.per_second()) / 1000.0;
    let second = SECOND + PER_THOUSAND.mul_f64(thousands);
    ATTACHING + second.mul_f64(trial.as_secs_f64())
}

impl Round {
    /// About how long it takes.
    pub(crate) fn expected(&self) -> Duration {
        let trial = self.trial.duration();
        let runs: Duration = self.asked.iter().map(|(point, _)| run_time(point, trial)).sum();
        BOOTING + STANDING + runs
    }
}

impl Plan {
    /// How many runs it comes to, and how long they take, about.
    #[must_use]
    pub fn size(&self) -> (u64, Duration) {
        // A plan's words were read when it was made.
        let (rounds, _) = self.rounds(|_, _| true).unwrap_or_default();
        let runs = rounds.iter().map(|round| round.asked.len() as u64).sum();
        (runs, together(&rounds))
    }
}

/// About how long rounds take on as many guests as are up at once: no less than the longest of them.
pub(crate) fn together(rounds: &[Round]) -> Duration {
    let guests = Clock::Virtual.lanes().min(rounds.len()).max(1);
    let sum: Duration = rounds.iter().map(Round::expected).sum();
    let longest = rounds.iter().map(Round::expected).max().unwrap_or_default();
    (sum / u32::try_from(guests).unwrap_or(1)).max(longest)
}

/// One sweep over what is given on the command line.
fn single(options: &Options<'_>) -> Result<Plan, Problem> {
    let mut sweep = Sweep::of_defaults("cli", &AXES, NUMBERS);
    AXES.overwrite(&mut sweep, options);
    Number::overwrite(NUMBERS, &mut sweep, options);
    let mut files = Files::default();
    files.take_from(&mut sweep, options)?;
    Plan::new(vec![sweep], files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::Plan as _;

    #[test]
    fn every_scale_reads_and_the_quick_ones_keep_to_their_time() {
        for scale in ["quick", "run", "smoke", "paper", "changes", "engineer", "full"] {
            let plan = Plan::built_in(scale).unwrap();
            let (rounds, left_out) = plan.rounds(|_, _| true).unwrap();
            assert!(!rounds.is_empty() && left_out.is_empty(), "{scale}: {left_out:?}");
            let read = Plan { budget: plan.budget, ..Plan::recorded(&plan.value()).unwrap() };
            assert_eq!(read, plan);
            if let Some(budget) = plan.budget {
                assert!(plan.expected() <= budget, "{scale}: {:?}", plan.expected());
            }
        }
        // On two processors, as many as CONTRIBUTING.md has in mind.
        for (scale, minutes) in [("quick", 5), ("changes", 10), ("engineer", 10)] {
            let (rounds, _) = Plan::built_in(scale).unwrap().rounds(|_, _| true).unwrap();
            let sum: Duration = rounds.iter().map(Round::expected).sum();
            assert!(sum / 2 < Duration::from_secs(minutes * 60), "{scale}: {:?}", sum / 2);
        }
        assert!(Plan::built_in("huge").is_err());
    }

    #[test]
    fn the_quick_scale_is_the_papers() {
        let plan = Plan::built_in("quick").unwrap();
        let (rounds, _) = plan.rounds(|_, _| true).unwrap();
        let names: Vec<&str> = rounds.iter().map(|round| round.scenario.name.as_str()).collect();
        assert_eq!(names[..3], crate::point::PAPER);
        // All rates of a scenario share its bed.
        assert!(rounds[..3].iter().all(|round| round.asked.len() == 15));
        assert!(rounds[..3].iter().all(|round| !round.scenario.detects_duplicates()));
        // Who checks an address has longer.
        assert!(rounds[6].scenario.detects_duplicates() && rounds[6].trial > plan.trial);
        assert_eq!(plan.size().0, 57);
    }

    #[test]
    fn keys_are_reused_where_there_are_any_to_keep() {
        use handoff::Change;
        use handoff::WifiSecurity::{Wpa2EapTls, Wpa3Sae};
        for scale in ["changes", "full"] {
            let (rounds, _) = Plan::built_in(scale).unwrap().rounds(|_, _| true).unwrap();
            let of = |change: Change, security| {
                rounds.iter().any(|round| {
                    let point = &round.asked[0].0;
                    point.change == change && round.scenario.security == security
                })
            };
            for security in [Wpa3Sae, Wpa2EapTls] {
                assert!(of(Change::KeyReuse, security) && of(Change::None, security), "{scale}");
            }
        }
        let lists = [("change".to_owned(), vec!["key-reuse".to_owned()])];
        let sweep = Sweep { name: "x".to_owned(), lists: lists.into(), ..Sweep::default() };
        let problem = Plan::new(vec![sweep], Files::default()).unwrap_err();
        assert!(problem.to_string().contains("WPA2-PSK has no keys to reuse"), "{problem}");
    }

    #[test]
    fn what_is_measured_is_left_out() {
        let plan = Plan::built_in("quick").unwrap();
        let count = |wanted: fn(&Point, u32) -> bool| -> usize {
            plan.rounds(wanted).unwrap().0.iter().map(|round| round.asked.len()).sum()
        };
        assert_eq!(count(|_, repeat| repeat > 0), 44);
        assert_eq!(count(|_, _| false), 0);
        assert!(plan.rounds(|_, _| false).unwrap().0.is_empty());
    }

    #[test]
    fn what_cannot_be_is_left_out_with_its_reason() {
        let lists = [
            ("scenario".to_owned(), vec!["macsec-same-ssid".to_owned()]),
            ("trigger".to_owned(), vec!["forced".to_owned(), "reconnect".to_owned()]),
        ];
        let sweep = Sweep { name: "x".to_owned(), lists: lists.into(), ..Sweep::default() };
        let plan = Plan::new(vec![sweep.clone()], Files::default()).unwrap();
        let (rounds, left_out) = plan.rounds(|_, _| true).unwrap();
        assert_eq!((rounds.len(), left_out.len()), (1, 1));
        assert!(left_out[0].1.contains("needs two networks"), "{}", left_out[0].1);
        let mut alone = sweep;
        alone.lists.insert("trigger".to_owned(), vec!["reconnect".to_owned()]);
        let problem = Plan::new(vec![alone], Files::default()).unwrap_err();
        assert!(problem.to_string().contains("needs two networks"), "{problem}");
    }
}
