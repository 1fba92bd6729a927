//! The study as the program sees it: its command, its plan, its question.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Command, ValueHint, value_parser};
use fault::{Fault, Problem, WhileDoing};
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;
use stats::Distribution;
use study::{Clock, Commands, End, Number, Options, Session, Watcher};
use units::{Delay, Rate};

use crate::clients::Clients;
use crate::measure::Bench;
use crate::mode::Mode;
use crate::plan::{NUMBERS, Plan, recorded_options};
use crate::point::{AXES, Point};
use crate::present::Findings;
use crate::sample::STUDY;
use crate::summary::{summarise, value};

/// What does setting up a secure connection cost, and what would be saved by another way to do it?
#[derive(Debug, Clone, Copy)]
pub struct Handshake;

impl study::Study for Handshake {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["handshake"]
    }

    fn about(&self) -> &'static str {
        "What setting up a secure connection costs, by mode and round-trip time"
    }

    fn examples(&self) -> String {
        let [quick, paper, full] = ["quick", "paper", "full"].map(size);
        format!(
            "Examples:
  wiretax handshake        the quick plan: {quick}
  wiretax handshake --rtt 0.4ms,11.6ms,85.5ms --repeat 20
  wiretax handshake --mode tcp+tls12,quic --rtt 50ms --loss 0%,1%,3% --repeat 100 --concurrent 50
  wiretax handshake --mode tcp+tls13 --group x25519,x25519mlkem768 --key rsa-4096 --chain 1,3
  wiretax handshake --from tcp+tls12 --clients rtts.txt   what would my clients save?
  wiretax handshake --clock virtual      the quick plan in a guest: repeats exactly
  wiretax handshake --scale paper --out results/paper
                           the SSLmTCP paper's measurements and rivals: {paper}
  wiretax handshake --scale full --out results/full
                           every axis: {full}

Modes: tcp, tfo and tfo-nocookie, each alone or with +tls12-rsa, +tls12, +tls12-resumed, +tls13,
+tls13-hrr, +tls13-resumed or +tls13-0rtt; quic and quic-0rtt; over our own TCP sslmtcp-paper,
sslmtcp-tls13 and sslmtcp-0rtt, and their controls usertcp+tls12-rsa, +tls13 and +tls13-0rtt."
        )
    }

    fn options(&self, command: Command) -> Command {
        let option = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(value).help(help)
        };
        let file = |name, value, help| {
            let option = option(name, value, help).value_hint(ValueHint::FilePath);
            option.value_parser(value_parser!(PathBuf))
        };
        let rate =
            "Rate of the path each way, as 10mbit, 10mbit/ip or 10mbit/wire [default: unlimited]";
        let profile = "Jitter, rate, queue and loss of a named profile (lan, cable, lte, 3g, wlan, \
                       satellite), or of a profile file (TOML); its RTT too, unless --rtt is given";
        let up = "Capacity trace from client to server, in mahimahi's format: the millisecond of each \
                  1500-byte packet, one per line";
        let down = "Capacity trace from server to client";
        let timeout = "Give a connection up after this time [default: 60s]; it counts as a censored \
                       sample";
        let command = command
            .arg(option("rate", "RATE", rate).value_parser(value_parser!(Rate)))
            .arg(file("profile", "NAME|FILE", profile))
            .arg(file("trace-up", "FILE", up).conflicts_with("rate"))
            .arg(file("trace-down", "FILE", down).conflicts_with("rate"))
            .arg(option("timeout", "TIME", timeout).value_parser(value_parser!(Delay)));
        Number::options(NUMBERS, AXES.options(command))
    }

    fn asks(&self, command: Command) -> Command {
        let from = Arg::new("from")
            .long("from")
            .value_name("MODE")
            .default_value(FROM)
            .help("Baseline mode; savings are relative to it");
        let clients = Arg::new("clients")
            .long("clients")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help(
                "Your clients' round-trip times: what `wiretax observe --rtt-out` writes, or one per \
                 line (`25ms`, or `25ms 0.7` with a weight)",
            );
        command.args([from, clients])
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Plan::of_options(options)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        files: &PlanFiles,
        _: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Plan::recorded_with(plan, files)?))
    }

    fn check_plan(&self, plan: &Value) -> Result<(), Problem> {
        Plan::recorded(plan).map(drop)
    }

    fn makes_quic(&self) -> bool {
        true
    }

    fn commands(&self, plan: &Value) -> Commands {
        let options = recorded_options(plan);
        Box::new(move |sample| {
            let base = Point::of_sweep(sample.point.get("sweep")?);
            let point = AXES.of_fields(&sample.point, &base)?;
            let command = point.command(sample.seed, sample.repeat.saturating_add(1));
            Some(command + options.as_ref()?)
        })
    }

    fn question(&self, options: &Options<'_>) -> Result<Box<dyn study::Question>, Problem> {
        let from = options.get::<String>("from").unwrap_or_else(|| FROM.to_owned());
        let from = from.parse()?;
        let read = |path: PathBuf| {
            let text = options.text_of(&path, "file of round-trip times")?;
            Clients::parse(&text).while_doing(|| path.display().to_string())
        };
        let clients = options.get::<PathBuf>("clients").map(read).transpose()?;
        Ok(Box::new(Question { from, clients: clients.map(Clients::into_weights) }))
    }

    fn values(&self) -> Vec<(&'static str, ValueKind)> {
        value::KINDS.to_vec()
    }

    fn published(&self) -> &'static str {
        crate::present::PUBLISHED
    }
}

/// The mode that is run today, unless the user says otherwise.
const FROM: &str = "tcp+tls12";

/// What a built-in plan comes to: `400 connections, about 70 seconds`.
fn size(scale: &str) -> String {
    let Ok(plan) = Plan::built_in(scale) else { return String::new() };
    let (connections, time) = plan.expected();
    let time = match time.as_secs() {
        seconds @ 0..120 => format!("{} seconds", (seconds + 5) / 10 * 10),
        seconds => format!("{} minutes", (seconds + 30) / 60),
    };
    format!("{connections} connections, about {time}")
}

impl study::Plan for Plan {
    fn value(&self) -> Value {
        Plan::value(self)
    }

    fn files(&self) -> PlanFiles {
        Plan::files(self)
    }

    fn points(&self) -> usize {
        self.cells().map_or(0, |(cells, _)| cells.iter().map(|cell| cell.points.len()).sum())
    }

    fn expected(&self) -> Duration {
        let (_, time) = Plan::expected(self);
        time
    }

    fn budget(&self) -> Option<Duration> {
        self.budget
    }

    fn needs_lab(&self) -> bool {
        self.clock() == Clock::Wall
    }

    fn prepare(&mut self, _: &mut dyn Watcher) -> Result<End, Problem> {
        self.clock().check()?;
        Ok(End::Complete)
    }

    fn describe(&self, manifest: &mut Manifest) {
        self.clock().describe(manifest, STUDY);
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        if self.clock() == Clock::Virtual {
            return Bench::in_guests(session.lab(), self.seed)?.run(self, session);
        }
        let bench = Bench::new(session.lab()).map_err(|error| {
            Problem::from(error).while_doing("the lab cannot be made").blaming(Fault::Machine)
        });
        let bench =
            bench.map_err(|problem| problem.with_remedy("`wiretax doctor` says what is missing"));
        bench?.run(self, session)
    }
}

/// What an engineer asks of the samples.
struct Question {
    /// The mode that is run today.
    from: Mode,
    /// The clients' round-trip times, if known.
    clients: Option<Distribution>,
}

impl study::Question for Question {
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn study::Findings>>, Problem> {
        let plan = manifest.plan.get(STUDY).and_then(|plan| Plan::recorded(plan).ok());
        let seed = plan.as_ref().map_or(1, |plan| plan.seed);
        let summary = summarise(samples, seed)?;
        if summary.samples == 0 {
            return Ok(None);
        }
        let findings = Findings::new(summary, self.from, self.clients.clone(), seed);
        let mut findings = findings?.measured_by(manifest);
        findings.clock = plan.as_ref().map(Plan::clock).unwrap_or_default();
        findings.planned = plan.map(|plan| plan.expected().0);
        Ok(Some(Box::new(findings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::{Plan as _, Study};

    #[test]
    fn the_built_in_plans_keep_to_the_time_that_they_declare() {
        let quick = Plan::built_in("quick").unwrap();
        let (expected, budget) = (study::Plan::expected(&quick), quick.budget().unwrap());
        assert!(expected <= budget && budget <= Duration::from_secs(70), "{expected:?}");
        assert!(Plan::built_in("full").unwrap().budget().is_none_or(|time| time >= expected));
    }

    #[test]
    fn the_help_says_what_the_plans_come_to() {
        let examples = Handshake.examples();
        for scale in ["quick", "paper", "full"] {
            let (connections, _) = Plan::built_in(scale).unwrap().expected();
            assert!(examples.contains(&format!("{connections} connections, about ")), "{examples}");
        }
    }

    fn plan(line: &[&str]) -> Result<Plan, Problem> {
        let command = Handshake.asks(Handshake.options(Command::new("x")));
        let common = ["scale", "seed", "plan"].map(|name| {
            let parser = match name {
                "seed" => clap::builder::ValueParser::from(value_parser!(u64)),
                "plan" => value_parser!(PathBuf),
                _ => value_parser!(String),
            };
            Arg::new(name).long(name).value_parser(parser)
        });
        let matches = command.args(common).try_get_matches_from([&["x"], line].concat()).unwrap();
        Plan::of_options(&Options::new(&matches))
    }

    #[test]
    fn options_make_one_sweep_that_reads_back() {
        let line = ["--rtt", "5000us,1ms", "--key", "rsa2048", "--repeat", "3", "--seed", "9"];
        let made = plan(&[&line[..], &["--rate", "10mbit", "--profile", "lte"]].concat()).unwrap();
        assert_eq!(
            (made.sweeps.len(), made.sweeps[0].lists["rtt"].join(",")),
            (1, "5ms,1ms".into())
        );
        assert_eq!((made.sweeps[0].repeat(), made.seed), (3, 9));
        assert_eq!(made.options(), format!(" --rate {} --profile lte", made.rate.unwrap()));
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
        // The profile's RTT where none is given.
        let lte = plan(&["--profile", "lte"]).unwrap();
        assert_eq!(lte.sweeps[0].lists["rtt"].len(), 1);
        assert_eq!(plan(&[]).unwrap().sweeps, Plan::built_in("quick").unwrap().sweeps);
    }

    #[test]
    fn the_clock_changes_how_a_plan_is_measured_and_not_what() {
        let quick = Plan::built_in("quick").unwrap();
        let made = plan(&["--clock", "virtual"]).unwrap();
        assert_eq!((made.clock(), made.budget), (Clock::Virtual, None));
        assert_eq!(made.expected().0, quick.expected().0);
        assert!(!study::Plan::needs_lab(&made) && study::Plan::needs_lab(&quick));
        assert_eq!(Plan::recorded(&made.value()).unwrap().clock(), Clock::Virtual);
        let wall = plan(&["--clock", "wall"]).unwrap();
        assert_eq!((wall.clock(), wall.budget), (Clock::Wall, quick.budget));
        let one = plan(&["--clock", "virtual", "--rtt", "1ms", "--mode", "tcp"]).unwrap();
        assert_eq!((one.clock(), one.sweeps.len()), (Clock::Virtual, 1));
        let (cells, _) = one.cells().unwrap();
        assert!(cells[0].points[0].command(1, 1).contains(" --clock virtual "));
    }

    #[test]
    fn what_is_wrong_is_the_callers() {
        for (line, said) in [
            (&["--timeout", "0s"][..], "a timeout of 0"),
            (&["--scale", "huge", "--rtt", "1ms"], "no scale is called `huge`"),
            (&["--profile", "5g"], "`5g`"),
            (&["--plan", "nowhere.toml"], "nowhere.toml cannot be read"),
            (&["--chain", "0"], "chain is 0"),
            (&["--clock", "wall,virtual"], "two clocks"),
        ] {
            let problem = plan(line).unwrap_err();
            assert!(problem.to_string().contains(said), "{problem}");
            assert_eq!(problem.fault(), Fault::Caller);
        }
    }

    /// As a manifest of November 2026 has it.
    #[test]
    fn a_plan_from_before_the_axes_had_one_place_reads_back() {
        let value = serde_json::json!({
            "base": null, "base_options": "", "rate": null, "seed": 1, "timeout": "60s",
            "sweeps": [{ "chain": [1], "concurrent": 1, "group": ["x25519"], "key": ["rsa2048"],
                         "library": ["openssl"], "loss": ["0"], "mode": ["all"], "name": "cli",
                         "repeat": 20, "rtt": ["0.4ms", "85.5ms"] }],
        });
        let read = Plan::recorded(&value).unwrap();
        let (cells, _) = read.cells().unwrap();
        assert_eq!((cells.len(), cells[0].points.len(), cells[0].repeat), (2, 32, 20));
        assert_eq!(Plan::recorded(&Value::Null).unwrap_err().fault(), Fault::Results);
    }

    #[test]
    fn every_value_has_its_kind_and_none_twice() {
        let names: std::collections::BTreeSet<_> =
            Handshake.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), Handshake.values().len());
        assert!(names.contains(value::RESPONSE));
    }
}
