//! The study as the program sees it: its command, its plan, its question.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use fault::Problem;
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::{Value, json};
use study::{Commands, End, Options, Plan, PlanError, Question, Session, Study, Sweep};

use super::host::Shares;
use super::point::{AXES, NUMBERS, Point, words};
use super::said::Said;
use super::{STUDY, measure, sample};
use crate::published::PUBLISHED;

/// The plan file that is built in.
const PLAN: &str = include_str!("../../plan.toml");
/// The scale that is measured unless another is asked for.
const SCALE: &str = "full";
/// The seed unless another is given.
const SEED: u64 = 1;

/// The study: `wiretax observe lab`.
#[derive(Debug, Clone, Copy)]
pub struct Lab;

impl Study for Lab {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["observe", "lab"]
    }

    fn about(&self) -> &'static str {
        "Make captures with known answers in the lab, and compare the records with them"
    }

    fn examples(&self) -> String {
        "Examples:
  wiretax observe lab
  wiretax observe lab --repeat 50 --visit Tls12,Tls13 --out results/truth --keep-captures
  wiretax observe lab --population cellular --visit QuicZeroRtt
  wiretax observe lab --visit Tls12,Tls13 --host www.wiretax.test=3,api.wiretax.test --pause exponential:200ms --repeat 40"
            .to_owned()
    }

    fn options(&self, command: clap::Command) -> clap::Command {
        study::Number::options(NUMBERS, AXES.options(command))
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn Plan>, Problem> {
        let seed = options.get("seed").unwrap_or(SEED);
        let given = AXES.given(options) || study::Number::given(NUMBERS, options);
        if given {
            let mut sweep = Sweep::of_defaults("command line", &AXES, NUMBERS);
            AXES.overwrite(&mut sweep, options);
            study::Number::overwrite(NUMBERS, &mut sweep, options);
            return Ok(Box::new(LabPlan::new(vec![sweep], None, seed)?));
        }
        let scale = options.get::<String>("scale");
        let text = match options.get::<PathBuf>("plan") {
            Some(path) => options.text_of(&path, "plan")?,
            None => PLAN.to_owned(),
        };
        Ok(Box::new(LabPlan::read(&text, scale.as_deref().unwrap_or(SCALE), seed)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        _: &Options<'_>,
    ) -> Result<Box<dyn Plan>, Problem> {
        Ok(Box::new(LabPlan::recorded(plan)?))
    }

    fn commands(&self, _: &Value) -> Commands {
        Box::new(|of| {
            let point = AXES.of_fields(&of.point, &Point::default())?;
            Some(sample::command(&point, of.seed))
        })
    }

    fn question(&self, _: &Options<'_>) -> Result<Box<dyn Question>, Problem> {
        Ok(Box::new(Asked))
    }

    fn values(&self) -> Vec<(&'static str, ValueKind)> {
        sample::kinds()
    }

    fn published(&self) -> &'static str {
        PUBLISHED
    }
}

/// What is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct LabPlan {
    value: Value,
    /// How often each population does each of these.
    points: BTreeMap<Point, u32>,
    budget: Option<Duration>,
    seed: u64,
}

impl LabPlan {
    /// A scale of the plan file that is built in.
    ///
    /// # Errors
    /// It has no such scale.
    pub fn built_in(scale: &str, seed: u64) -> Result<LabPlan, PlanError> {
        LabPlan::read(PLAN, scale, seed)
    }

    fn read(text: &str, scale: &str, seed: u64) -> Result<LabPlan, PlanError> {
        let scale = study::read_scale(text, scale, &AXES, NUMBERS)?;
        LabPlan::new(scale.sweeps, scale.budget, seed)
    }

    fn new(sweeps: Vec<Sweep>, budget: Option<Duration>, seed: u64) -> Result<LabPlan, PlanError> {
        let mut points = BTreeMap::new();
        for sweep in &sweeps {
            let mut named = sweep.clone();
            let shares = Shares::take(&mut named)?;
            for point in AXES.points(&named, &Point::default(), &words)? {
                let count = shares.of(&point.host, sweep.repeat());
                if count > 0 {
                    let repeat = points.entry(point).or_default();
                    *repeat = count.max(*repeat);
                }
            }
        }
        let seconds = budget.map(|budget| budget.as_secs());
        let value = json!({
            "sweeps": study::sweeps_value(&sweeps),
            "seconds": seconds,
            "seed": seed,
        });
        Ok(LabPlan { value, points, budget, seed })
    }

    /// The plan that a manifest has. Before there were plan files it named the one plan that there was.
    fn recorded(value: &Value) -> Result<LabPlan, PlanError> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let seed = number("seed").ok_or(PlanError::NotRecorded)?;
        if value.get("plan").and_then(Value::as_str) == Some("quick") {
            let times = number("times").and_then(|times| u32::try_from(times).ok()).unwrap_or(1);
            let mut plan = LabPlan::built_in(SCALE, seed)?;
            plan.points.values_mut().for_each(|repeat| *repeat = repeat.saturating_mul(times));
            return Ok(LabPlan { value: value.clone(), budget: None, ..plan });
        }
        let sweeps = study::sweeps_of(value, &AXES, NUMBERS)?;
        let plan = LabPlan::new(sweeps, number("seconds").map(Duration::from_secs), seed)?;
        Ok(LabPlan { value: value.clone(), ..plan })
    }

    /// Connections in all.
    #[must_use]
    pub fn connections(&self) -> u32 {
        self.points.values().fold(0, |sum, repeat| sum.saturating_add(*repeat))
    }
}

impl Plan for LabPlan {
    fn value(&self) -> Value {
        self.value.clone()
    }

    fn points(&self) -> usize {
        self.points.len()
    }

    fn expected(&self) -> Duration {
        measure::expected(&self.points)
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn needs_lab(&self) -> bool {
        true
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn describe(&self, manifest: &mut Manifest) {
        manifest.libraries.extend(tls::library_versions());
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        measure::measure(&self.points, self.seed, session)
    }
}

/// What is asked of the samples: there is one question alone.
struct Asked;

impl Question for Asked {
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn study::Findings>>, Problem> {
        let said = Said::of(&record::hold(samples)?, manifest)?;
        Ok(said.map(|said| Box::new(said) as Box<dyn study::Findings>))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::truth::{Population, Scenario};

    #[test]
    fn each_scale_has_each_scenario_and_the_quick_one_its_time() {
        for scale in ["quick", "full"] {
            let plan = LabPlan::built_in(scale, 7).unwrap();
            let visits = |point: &Point| (point.population, point.scenario);
            let visits: BTreeSet<_> = plan.points.keys().map(visits).collect();
            // Silent boxes take their time: the quick scale has none.
            let boxes = Scenario::ALL.iter().filter(|own| own.meets_box().is_some()).count();
            let boxes = if scale == "quick" { boxes } else { 0 };
            assert_eq!(visits.len(), Population::ALL.len() * (Scenario::ALL.len() - boxes));
            assert_eq!(plan.budget.is_some(), scale == "quick");
            assert_eq!(LabPlan::recorded(&plan.value()).unwrap(), plan);
        }
        let quick = LabPlan::built_in("quick", 1).unwrap();
        assert!(quick.budget().unwrap() <= Duration::from_secs(15));
        assert!(quick.expected() < quick.budget().unwrap(), "{:?}", quick.expected());
        assert!(LabPlan::built_in("huge", 1).is_err());
    }

    #[test]
    fn a_plan_from_before_there_were_plan_files_is_read() {
        let value = json!({ "plan": "quick", "seed": 3, "times": 2 });
        let plan = LabPlan::recorded(&value).unwrap();
        assert_eq!((plan.value(), plan.seed()), (value, 3));
        let twice = LabPlan::built_in(SCALE, 3).unwrap().connections() * 2;
        assert_eq!(plan.connections(), twice);
        assert!(LabPlan::recorded(&Value::Null).is_err());
    }

    #[test]
    fn options_make_a_sweep_of_their_own() {
        let command = Lab.options(clap::Command::new("lab"));
        let line = ["lab", "--visit", "tls13,Quic", "--population", "wifi", "--repeat", "3"];
        let matches = command.clone().get_matches_from(line);
        let plan = Lab.plan(&Options::new(&matches)).unwrap();
        assert_eq!(plan.value()["sweeps"][0]["visit"], json!(["tls13", "Quic"]));
        let plan = LabPlan::recorded(&plan.value()).unwrap();
        assert_eq!((plan.points.len(), plan.connections()), (2, 6));
        for (option, word) in [("visit", "sleep"), ("host", "a b"), ("pause", "long")] {
            let line = ["lab".to_owned(), format!("--{option}"), word.to_owned()];
            let matches = command.clone().get_matches_from(line);
            let wrong = Lab.plan(&Options::new(&matches)).err().unwrap();
            let expected = format!("`{word}` is not a value of `{option}`");
            assert!(wrong.to_string().contains(&expected), "{wrong}");
        }
    }

    /// A scale of a plan file, and the repeats of each point, in words.
    fn points(sweep: &str) -> Result<Vec<(String, u32)>, PlanError> {
        let text = format!("[scale.full]\nsweep = [{{ name = \"a\", {sweep} }}]");
        let plan = LabPlan::read(&text, "full", 1)?;
        assert_eq!(LabPlan::recorded(&plan.value()).unwrap(), plan);
        let own = plan.points.iter();
        Ok(own.map(|(point, count)| (AXES.command_line(point), *count)).collect())
    }

    #[test]
    fn a_plan_names_hosts_with_shares_and_pauses() {
        let wifi = "population = \"wifi\", visit = \"Tls13\"";
        let found = points(&format!(
            "{wifi}, repeat = 8, host = [\"www.wiretax.test=3\", \"api.wiretax.test\"], \
             pause = \"exponential:0.2s\""
        ));
        let own = " --population wifi --visit Tls13";
        let pause = "--pause exponential:200ms";
        let expected = [
            (format!("{own} --host api.wiretax.test {pause}"), 2),
            (format!("{own} --host www.wiretax.test {pause}"), 6),
        ];
        assert_eq!(found.unwrap(), expected);
        // What has no share of so few is not made, and the usual name is not said.
        let both = "host = [\"server.wiretax.test=9\", \"api.wiretax.test\"]";
        assert_eq!(points(&format!("{wifi}, {both}")).unwrap(), [(own.to_owned(), 1)]);
        for wrong in ["host = [\"a.test\", \"a.test=2\"]", "host = []", "pause = \"soon\""] {
            assert!(points(&format!("{wifi}, {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_usual_host_is_the_testbeds() {
        let usual = AXES.find("host").and_then(|axis| axis.usual);
        assert_eq!(usual, Some(testbed::SERVER_NAME));
        assert_eq!(Point::default().host.name(), testbed::SERVER_NAME);
    }

    #[test]
    fn pauses_take_their_time() {
        let plan = |pause: &str| {
            let text = format!(
                "[scale.full]\nsweep = [{{ name = \"a\", repeat = 60, pause = \"{pause}\" }}]"
            );
            LabPlan::read(&text, "full", 1).unwrap().expected()
        };
        assert!(plan("constant:1s") > plan("none") + Duration::from_secs(60));
    }
}
