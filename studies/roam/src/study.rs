//! The study as the program sees it: its command, its plan, its question.

use std::time::Duration;

use clap::{Arg, Command, value_parser};
use fault::Problem;
use handoff::Scenario;
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;
use study::{Clock, Commands, End, Number, Options, Session, Watcher};
use units::Delay;

use crate::measure::guest;
use crate::plan::{NUMBERS, Plan, Round};
use crate::point::{AXES, Point};
use crate::present::Findings;
use crate::sample::{STUDY, value};
use crate::summary::Summary;

/// How long is a moving host cut off, and where does the time go?
#[derive(Debug, Clone, Copy)]
pub struct RoamStudy;

impl study::Study for RoamStudy {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["roam"]
    }

    fn about(&self) -> &'static str {
        "How long a moving host is cut off under IPsec, MACsec and WireGuard, and where the time goes"
    }

    fn examples(&self) -> String {
        format!(
            "Examples:
  wiretax roam             the MACsec paper's cases: {}
  wiretax roam --scenario mobike-host,wireguard-host --rate 1000pps,3000pps
  wiretax roam --scenario macsec-same-ssid --trigger cut-deauth,cut-silent,signal,forced
  wiretax roam --scenario macsec-same-ssid --security open,wpa2-psk,wpa3-sae --repeat 20
  wiretax roam --scenario macsec-different-ssid --change none,scan-list,rapid-commit,dad
  wiretax roam --scenario my-case.toml --rate 3000pps
  wiretax roam --scale changes --out results/changes   what to change: {}
  wiretax roam --scale engineer   what an engineer asks next: {}

Scenarios:
{}
A file describes one of your own:

  name = \"my-case\"
  security = \"wpa3-sae\"
  tunnel = \"wireguard\"
  tunnel-end = \"host\"
  domain = \"each\"
  trigger = \"cut-silent\"
  attachments = [{{ ssid = \"a\", channel = 1 }}, {{ ssid = \"b\", channel = 11 }}]
  measures = {{ scan-list = true }}

The host moves in a guest machine with Debian's kernel and daemons, which
`wiretax guest fetch --with daemons` fetches once; its times are virtual, and repeat.",
            size("quick"),
            size("changes"),
            size("engineer"),
            scenarios()
        )
    }

    fn uses_links(&self) -> bool {
        false
    }

    fn scale_in_run<'a>(&self, scale: &'a str) -> &'a str {
        // The quick scale is the paper's whole plan, and takes minutes.
        if scale == "quick" { "run" } else { scale }
    }

    fn options(&self, command: Command) -> Command {
        let trial = Arg::new("trial")
            .long("trial")
            .value_name("TIME")
            .value_parser(value_parser!(Delay))
            .help("How long traffic runs; the host moves after a quarter of it [default: 5s]");
        let command = AXES.options(command).arg(trial);
        let command = command.mut_arg("scenario", |arg| arg.visible_alias("scenarios"));
        Number::options(NUMBERS, command)
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Plan::of_options(options)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        _: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Plan::recorded(plan)?))
    }

    fn commands(&self, plan: &Value) -> Commands {
        let recorded = crate::plan::Again::recorded(plan);
        Box::new(move |sample| {
            let point = Point::of_fields(&sample.point)?;
            Some(recorded.as_ref()?.command(&point, sample.repeat))
        })
    }

    fn question(&self, _: &Options<'_>) -> Result<Box<dyn study::Question>, Problem> {
        Ok(Box::new(Question))
    }

    fn values(&self) -> Vec<(&'static str, ValueKind)> {
        value::kinds()
    }

    fn published(&self) -> &'static str {
        crate::published::FIGURES
    }
}

/// The named scenarios, a line each.
fn scenarios() -> String {
    Scenario::names().map(|(name, about)| format!("  {name:24} {about}\n")).collect()
}

/// What a built-in plan comes to: `45 runs, about 5 minutes`.
fn size(scale: &str) -> String {
    let Ok(plan) = Plan::built_in(scale) else { return String::new() };
    let (runs, time) = plan.size();
    format!("{runs} runs, about {}", study::about(time))
}

impl study::Plan for Plan {
    fn value(&self) -> Value {
        Plan::value(self)
    }

    fn points(&self) -> usize {
        let repeats = |(rounds, _): (Vec<Round>, _)| {
            let asked = rounds.iter().flat_map(|round| &round.asked);
            asked.filter(|(_, repeat)| *repeat == 0).count()
        };
        self.rounds(|_, repeat| repeat == 0).map_or(0, repeats)
    }

    fn expected(&self) -> Duration {
        self.size().1
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn needs_lab(&self) -> bool {
        // The guest is the lab.
        false
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn prepare(&mut self, _: &mut dyn Watcher) -> Result<End, Problem> {
        guest(self.seed)?;
        Ok(End::Complete)
    }

    fn describe(&self, manifest: &mut Manifest) {
        Clock::Virtual.describe(manifest, STUDY);
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        self.run(session)
    }
}

/// What an engineer asks of the samples.
struct Question;

impl study::Question for Question {
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn study::Findings>>, Problem> {
        let summary = Summary::of(&record::hold(samples)?);
        if summary.rows.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(Findings::new(summary, study::provenance(manifest)))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use fault::Fault;
    use study::Study as _;

    use super::*;

    fn plan(line: &[&str]) -> Result<Plan, Problem> {
        let command = RoamStudy.options(Command::new("x"));
        let common = ["scale", "seed", "plan"].map(|name| {
            let parser = match name {
                "seed" => clap::builder::ValueParser::from(value_parser!(u64)),
                "plan" => value_parser!(PathBuf),
                _ => value_parser!(String),
            };
            Arg::new(name).long(name).value_parser(parser)
        });
        let matches = command.args(common).try_get_matches_from([&["x"], line].concat());
        Plan::of_options(&Options::new(&matches.map_err(|e| Problem::of(Fault::Caller, e))?))
    }

    #[test]
    fn options_make_one_sweep_that_reads_back() {
        let made =
            plan(&["--scenario", "mobike-host", "--rate", "1000,3000", "--repeat", "2"]).unwrap();
        assert_eq!((made.sweeps.len(), made.size().0), (1, 4));
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
        assert_eq!(plan(&[]).unwrap().sweeps, Plan::built_in("quick").unwrap().sweeps);
        assert_eq!(plan(&["--repeat", "20"]).unwrap().size().0, 260);
        assert_eq!(plan(&["--scale", "quick", "--repeat", "20"]).unwrap().size().0, 57);
        let made = plan(&["--scale", "changes", "--seed", "7", "--trial", "8s"]).unwrap();
        assert_eq!((made.seed, made.trial.to_string().as_str()), (7, "8s"));
    }

    #[test]
    fn a_file_is_kept_in_the_plan_and_named_by_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my case.toml");
        let text = "name = \"mine\"\nattachments = [{ ssid = \"a\", channel = 1 }, { ssid = \"b\", channel = 6 }]\n";
        std::fs::write(&file, text).unwrap();
        let shown = file.display().to_string();
        let made = plan(&["--scenario", &shown, "--security", "open"]).unwrap();
        let read = Plan::recorded(&made.value()).unwrap();
        assert_eq!(read, made);
        let (rounds, _) = read.rounds(|_, _| true).unwrap();
        assert_eq!(rounds[0].scenario.security.name(), "open");
        let command = read.again().command(&rounds[0].asked[0].0, 2);
        let expected = format!(
            "wiretax roam --scenario '{shown}' --security open --rate 1000pps --repeat 3 --trial 5s --seed 1"
        );
        assert_eq!(command, expected);
    }

    #[test]
    fn what_is_wrong_is_the_callers() {
        for (line, said) in [
            (&["--scenario", "macsek"][..], "no scenario is called `macsek`"),
            (&["--scenario", "nowhere.toml"], "nowhere.toml"),
            (&["--rate", "fast"], "`fast` is not a rate of frames"),
            (&["--security", "wep"], "no Wi-Fi security is called `wep`"),
            (&["--change", "luck"], "no change is called `luck`"),
            (&["--trial", "1s"], "a trial of 1s"),
            (&["--stations", "0", "--scenario", "mobike-host"], "a cell has 1 to 16 stations"),
            (&["--scenario", "macsec-same-ssid", "--trigger", "reconnect"], "needs two networks"),
            (&["--scenario", "kept-address", "--change", "kept-address"], "has this already"),
        ] {
            let problem = plan(line).unwrap_err();
            assert!(problem.to_string().contains(said), "{problem}");
            assert_eq!(problem.fault(), Fault::Caller, "{problem}");
        }
    }

    /// The scenarios that users are shown: README's in a block of TOML, the help's after its heading.
    fn shown() -> [String; 2] {
        let readme = include_str!("../README.md");
        let (_, block) = readme.split_once("```toml\n").expect("the block");
        let (block, _) = block.split_once("```").expect("its end");
        let help = RoamStudy.examples();
        let (_, lines) =
            help.split_once("A file describes one of your own:\n\n").expect("the heading");
        let (lines, _) = lines.split_once("\n\n").expect("the scenario's end");
        [block.to_owned(), lines.to_owned()]
    }

    #[test]
    fn the_scenarios_that_users_are_shown_can_be() {
        for text in shown() {
            let scenario = Scenario::parse(&text).expect(&text);
            assert_eq!(scenario.name, "my-case");
            mobility::Bed::check(&scenario).expect(&text);
            assert_eq!(scenario.trigger, handoff::Trigger::CutSilent);
            assert_ne!(scenario.attachments[0].ssid, scenario.attachments[1].ssid);
        }
    }

    #[test]
    fn every_value_has_its_kind_and_none_twice() {
        let names: BTreeSet<_> = RoamStudy.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), RoamStudy.values().len());
        let examples = RoamStudy.examples();
        assert!(examples.contains("57 runs, about") && examples.contains("mobike-host"));
        let long = examples.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None);
    }
}
