//! The study as the program sees it: its command, its plan, its question.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use fault::Problem;
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;
use study::{Clock, Commands, End, Number, Options, Session, Watcher, quoted};
use units::{Delay, Rate};

use crate::plan::{NUMBERS, Plan};
use crate::point::AXES;
use crate::present::Findings;
use crate::sample::{STUDY, value};
use crate::summary::Summary;
use crate::trace::NamedBy;

/// Which HTTP loads my pages fastest on this network, and is flow control in the way?
#[derive(Debug, Clone, Copy)]
pub struct PageStudy;

impl study::Study for PageStudy {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["page"]
    }

    fn about(&self) -> &'static str {
        "How long pages take to load over HTTP/1.1, SPDY, HTTP/2 and HTTP/3, by page and link"
    }

    fn examples(&self) -> String {
        format!(
            "Examples:
  wiretax page             the quick plan: {}
  wiretax page --page google-play --link 3g-0.9 --repeat 20
  wiretax page --har MY.har --rtt 50ms --rate 20mbit
  wiretax page --page domestic-2mb --link 50ms@20mbit --loss 0%,1%,2% --visit first --repeat 30
  wiretax page --page google-play --link bus,trace:lte.down:lte.up@50ms --visit first
  wiretax page --link 3g-1.37 --cross-traffic bulk --queue drop-tail,codel --initial-window 3,10 --visit first
  wiretax page --link 50ms@20mbit --protocol spdy/3.1,h2 --server-push none,hint,push
  wiretax page --page testbed-2 --link 100ms@50mbit --stream-window 64KiB,1MiB,10MiB --visit first
  wiretax page --page testbed-1 --link 3g-1.37 --protocol http/1.1,h2,h3 --loader ours,chromium --repeat 6
  wiretax page --page testbed-2 --link 100ms@50mbit --protocol spdy/3.1,h2 --visit first --keep-captures
  wiretax page --page testbed-2 --link 100ms@50mbit --protocol h3 --visit first --qlog qlog
  wiretax page --link 50ms@20mbit --visit first --protocol http/1.1,h2 --clock virtual
  wiretax page --scale full --out results/page    {}
  wiretax page --scale paper                      the SPDY paper's tables: {}

Pages are made with the counts, hosts and bytes of the SPDY paper's; --har takes what the developer tools
of a browser save, or a folder of files. Each host has an address and connections of its own; its name costs a round trip.",
            size("quick"),
            size("full"),
            size("paper")
        )
    }

    fn options(&self, command: Command) -> Command {
        let har = Arg::new("har")
            .long("har")
            .value_name("PATH")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::AnyPath)
            .conflicts_with("page")
            .help("A page of your own: a HAR file, Wiretax's form in TOML or JSON, or a folder with index.html and what it refers to");
        let rtt = Arg::new("rtt")
            .long("rtt")
            .value_name("TIMES")
            .value_delimiter(',')
            .value_parser(value_parser!(Delay))
            .conflicts_with("link")
            .help("Round-trip times of the link, as 50ms; with --rate, in place of --link");
        let rate = Arg::new("rate")
            .long("rate")
            .value_name("RATES")
            .value_delimiter(',')
            .value_parser(value_parser!(Rate))
            .conflicts_with("link")
            .help("Rates of the link each way, as 20mbit");
        let timeout = Arg::new("timeout")
            .long("timeout")
            .value_name("TIME")
            .value_parser(value_parser!(Delay))
            .help("Time limit per load [default: 3m]; loads over it count as censored");
        let keep_hars = Arg::new("keep_hars")
            .long("keep-hars")
            .action(ArgAction::SetTrue)
            .help("Keep a HAR file of every load, not of each point's first alone");
        let command = AXES.options(command).args([har, rtt, rate, timeout, keep_hars]);
        Number::options(NUMBERS, command)
    }

    fn means(&self, command: Command) -> Command {
        command.arg(
            Arg::new("chromium")
                .long("chromium")
                .value_name("PROGRAM")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::ExecutablePath)
                .help("Chromium's headless shell for --loader chromium [default: as Debian's chromium-headless-shell has it]"),
        )
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Plan::of_options(options)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        options: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        let chromium = options.get("chromium");
        Ok(Box::new(Plan { chromium, ..Plan::recorded(plan)? }))
    }

    fn commands(&self, plan: &Value) -> Commands {
        crate::sample::commands(plan)
    }

    fn keeps_captures(&self) -> bool {
        true
    }

    fn makes_quic(&self) -> bool {
        true
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

/// What a built-in plan comes to: `32 loads, about 40 seconds`.
fn size(scale: &str) -> String {
    let Ok(plan) = Plan::built_in(scale) else { return String::new() };
    let (loads, time) = plan.size();
    format!("{loads} loads, about {}", study::about(time))
}

impl study::Plan for Plan {
    fn value(&self) -> Value {
        Plan::value(self)
    }

    fn points(&self) -> usize {
        self.cells().map_or(0, |(cells, _)| cells.iter().map(|cell| cell.points.len()).sum())
    }

    fn expected(&self) -> Duration {
        self.size().1
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn needs_lab(&self) -> bool {
        self.clock() == Clock::Wall
    }

    fn prepare(&mut self, watcher: &mut dyn Watcher) -> Result<End, Problem> {
        self.clock().check()?;
        // In the lab the program runs once more.
        if !lab::inside() {
            self.notes.iter().for_each(|note| watcher.note(note));
        }
        Ok(End::Complete)
    }

    fn describe(&self, manifest: &mut Manifest) {
        self.clock().describe(manifest, STUDY);
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn to_resume(&self) -> String {
        let chromium = self.chromium.as_ref().map(|path| path.display().to_string());
        chromium.map_or(String::new(), |path| format!(" --chromium {}", quoted(&path)))
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        // A plan of options has read its own; these are of a manifest.
        self.read_traces(NamedBy::Results)?;
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
        if summary.groups.is_empty() {
            return Ok(None);
        }
        let plan = manifest.plan.get(STUDY).and_then(|plan| Plan::recorded(plan).ok());
        let clock = plan.map(|plan| plan.clock()).unwrap_or_default();
        Ok(Some(Box::new(Findings::new(summary, study::provenance(manifest)).by(clock))))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fault::Fault;
    use study::Study as _;

    use super::*;

    fn plan(line: &[&str]) -> Result<Plan, Problem> {
        let command = PageStudy.options(Command::new("x"));
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
        let made = plan(&["--page", "site-gmail", "--link", "3g-0.9", "--repeat", "20"]).unwrap();
        assert_eq!((made.sweeps.len(), made.sweeps[0].repeat()), (1, 20));
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
        let made = plan(&["--rtt", "50ms,100ms", "--rate", "20mbit", "--visit", "first"]).unwrap();
        let (cells, _) = made.cells().unwrap();
        let links: Vec<String> = cells.iter().map(|cell| cell.link.to_string()).collect();
        assert_eq!(links.len(), 2, "{links:?}");
        assert_eq!(plan(&[]).unwrap().sweeps, Plan::built_in("quick").unwrap().sweeps);
    }

    #[test]
    fn a_scale_is_measured_with_fewer_loads_and_never_with_more() {
        let repeats = |line: &[&str]| -> Vec<u32> {
            plan(line).unwrap().sweeps.iter().map(study::Sweep::repeat).collect()
        };
        let paper = Plan::built_in("paper").unwrap();
        let whole: Vec<u32> = paper.sweeps.iter().map(study::Sweep::repeat).collect();
        assert_eq!(repeats(&["--scale", "paper"]), whole);
        let few: Vec<u32> = whole.iter().map(|repeat| *repeat.min(&4)).collect();
        assert!(few.contains(&4) && few.contains(&3));
        assert_eq!(repeats(&["--scale", "paper", "--repeat", "4"]), few);
        assert_eq!(repeats(&["--scale", "paper", "--repeat", "4000"]), whole);
        assert_eq!(repeats(&["--repeat", "4"]), [4]);
    }

    #[test]
    fn the_clock_changes_how_a_plan_is_measured_and_not_what() {
        let quick = Plan::built_in("quick").unwrap();
        let made = plan(&["--clock", "virtual"]).unwrap();
        assert_eq!((made.clock(), made.budget), (Clock::Virtual, None));
        assert_eq!(made.size().0, quick.size().0);
        assert!(!study::Plan::needs_lab(&made) && study::Plan::needs_lab(&quick));
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
        let (cells, _) = made.cells().unwrap();
        assert!(cells.iter().all(|cell| cell.lanes == 1));
        let line = ["--clock", "virtual", "--protocol", "h2", "--loader", "ours,chromium"];
        let (_, impossible) = plan(&line).unwrap().cells().unwrap();
        assert!(impossible.iter().any(|(_, reason)| reason.contains("not in the guest")));
    }

    #[test]
    fn every_har_is_kept_where_that_is_asked_for() {
        assert!(!plan(&["--page", "site-gmail"]).unwrap().keep_hars);
        for line in [&["--keep-hars"][..], &["--page", "site-gmail", "--keep-hars"]] {
            let made = plan(line).unwrap();
            let read = Plan::recorded(&made.value()).unwrap();
            assert!(made.keep_hars && read.keep_hars, "{line:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_the_callers() {
        for (line, said) in [
            (&["--page", "gogle-play"][..], "no page is called `gogle-play`"),
            (&["--link", "4g"], "no link is called `4g`"),
            (&["--rtt", "50ms"], "a link needs a round trip and a rate"),
            (&["--link", "trace:nowhere.down@50ms"], "nowhere.down cannot be read"),
            (&["--har", "nowhere.har"], "nowhere.har cannot be read"),
            (&["--har", "src"], "the folder has no index.html"),
            (&["--timeout", "0s"], "a timeout of 0"),
            (&["--clock", "wall,virtual"], "two clocks"),
            (&["--protocol", "http/9"], "http/9"),
            (&["--har", "a.har", "--page", "google-play"], "cannot be used with"),
        ] {
            let problem = plan(line).unwrap_err();
            assert!(problem.to_string().contains(said), "{problem}");
            assert_eq!(problem.fault(), Fault::Caller, "{problem}");
        }
    }

    #[test]
    fn every_value_has_its_kind_and_none_twice() {
        let names: BTreeSet<_> = PageStudy.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), PageStudy.values().len());
        assert!(PageStudy.examples().contains("loads, about"));
    }
}
