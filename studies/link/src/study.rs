//! The study as the program sees it: its command, its plan, its question.

use std::time::Duration;

use clap::{Arg, Command, value_parser};
use fault::Problem;
use record::{Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;
use study::{Commands, Computed, End, Number, Options, Session};
use tester::Tester;
use units::Delay;

use crate::plan::{NUMBERS, Plan};
use crate::point::{AXES, Backend};
use crate::present::Findings;
use crate::sample::{STUDY, value};
use crate::summary::Summary;

/// MACsec, IPsec or WireGuard on this link: bytes, delay per hop, delay under load?
#[derive(Debug, Clone, Copy)]
pub struct LinkStudy;

impl study::Study for LinkStudy {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["link"]
    }

    fn about(&self) -> &'static str {
        "What MACsec, IPsec and WireGuard cost on a link: bytes, delay per hop, delay under load, throughput"
    }

    fn examples(&self) -> String {
        format!(
            "Examples:
  wiretax link             the quick plan: {}
  wiretax link --frame 1400 --protocols macsec,esp,wireguard
  wiretax link --protocol macsec,esp:aes-cbc-128-sha1 --load 100mbit,400mbit --repeat 20
  wiretax link --network direct --reach every-hop --protocol plain,macsec --hops 1,2,4,8 --load 1000pps
  wiretax link --protocol esp --gateway 120mbit --load 80mbit,100mbit,120mbit
  wiretax link --protocol esp,wireguard --outer ipv4,ipv6 --pppoe no,yes --nat-t --load 1000pps
  wiretax link --mtu-table --pppoe                    MTU and MSS to set for each protocol; measures nothing
  wiretax link --mtu-table --path-mtu 9000 --protocol wireguard,esp,vxlan --json
  wiretax link --between eth1 eth2 --frame 64,512,1518 --load throughput
  wiretax link --backend guest --protocol macsec,esp,wireguard --load 1000pps
  wiretax link --scale paper --out results/link       the MACsec paper's tables: {}

The path is that of the MACsec paper: tester, customer edge, provider edge, core, provider edge,
customer edge, tester, with an MPLS pseudowire in between. Wiretax's own engine carries the frames
(--backend chooses another). MP-BGP, by which providers agree on labels, is not included. Frame
sizes exclude the frame check sequence of 4 bytes.",
            size("quick"),
            size("paper")
        )
    }

    fn uses_links(&self) -> bool {
        false
    }

    fn options(&self, command: Command) -> Command {
        let trial = Arg::new("trial")
            .long("trial")
            .value_name("TIME")
            .value_parser(value_parser!(Delay))
            .help("Duration of a trial [default: 200ms]; RFC 2544 uses 60s");
        let between = Arg::new("between")
            .long("between")
            .value_names(["IF1", "IF2"])
            .num_args(2)
            .help("Measure the network between two interfaces of this machine, instead of a path in the lab");
        let command = AXES.options(command).args([trial, between]);
        let command = command.mut_arg("protocol", |arg| arg.visible_alias("protocols"));
        // `--pppoe` alone says yes.
        let command = ["pppoe", "nat-t"].into_iter().fold(command, |command, name| {
            command.mut_arg(name, |arg| arg.num_args(0..=1).default_missing_value("yes"))
        });
        crate::mtu_table::options(Number::options(NUMBERS, command))
    }

    fn computed(&self, options: &Options<'_>) -> Result<Option<Computed>, Problem> {
        crate::mtu_table::computed(options)
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Ready { plan: Plan::of_options(options)?, tester: None }))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        _: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        Ok(Box::new(Ready { plan: Plan::recorded(plan)?, tester: None }))
    }

    fn commands(&self, plan: &Value) -> Commands {
        crate::sample::commands(plan)
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

/// What a built-in plan comes to: `32 trials, about 40 seconds`.
fn size(scale: &str) -> String {
    let Ok(plan) = Plan::built_in(scale) else { return String::new() };
    let (trials, time) = plan.size();
    format!("{trials} trials, about {}", study::about(time))
}

/// A plan, and what it has opened.
struct Ready {
    plan: Plan,
    tester: Option<Tester>,
}

impl study::Plan for Ready {
    fn value(&self) -> Value {
        self.plan.value()
    }

    fn points(&self) -> usize {
        self.plan.points().map_or(0, |(points, _)| points.len())
    }

    fn expected(&self) -> Duration {
        self.plan.size().1
    }

    fn budget(&self) -> Option<Duration> {
        self.plan.budget
    }

    fn needs_lab(&self) -> bool {
        // Interfaces of this machine are not in a lab's namespaces.
        self.plan.between.is_none()
    }

    fn keeps_rights(&self) -> bool {
        // The kernel lets only root of the machine give its MACsec keys.
        let points = self.plan.points().unwrap_or_default().0;
        points.iter().any(|(point, _)| point.backend == Backend::Kernel)
    }

    fn open_machine(&mut self) -> Result<bool, Problem> {
        let Some(interfaces) = &self.plan.between else { return Ok(false) };
        let points = self.plan.points()?.0;
        let longest = crate::job::longest_frame(points.iter().map(|(point, _)| point));
        self.tester = Some(crate::between::open(interfaces, longest)?);
        Ok(true)
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        self.plan.run(session, self.tester.as_mut())
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
        let command = LinkStudy.options(Command::new("x"));
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
        let made = plan(&["--frame", "1400", "--protocols", "macsec,esp,wireguard"]).unwrap();
        assert_eq!(made.sweeps.len(), 1);
        let (points, impossible) = made.points().unwrap();
        assert_eq!((points.len(), impossible.len()), (6, 0));
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
        assert_eq!(plan(&[]).unwrap().sweeps, Plan::built_in("quick").unwrap().sweeps);
    }

    #[test]
    fn two_interfaces_take_the_place_of_a_path() {
        let made = plan(&["--between", "eth1", "eth2", "--load", "1000pps"]).unwrap();
        assert_eq!(made.between, Some(["eth1".to_owned(), "eth2".to_owned()]));
        let ready = |plan| Ready { plan, tester: None };
        assert!(!study::Plan::needs_lab(&ready(made.clone())));
        // Only the kernel's own engine needs root's rights in the lab.
        for (backend, keeps) in [("kernel", true), ("own", false)] {
            let made = ready(plan(&["--backend", backend]).unwrap());
            assert!(study::Plan::needs_lab(&made));
            assert_eq!(study::Plan::keeps_rights(&made), keeps, "{backend}");
        }
        assert_eq!(made.points().unwrap().0.len(), 1);
        assert_eq!(Plan::recorded(&made.value()).unwrap(), made);
    }

    #[test]
    fn what_is_wrong_is_the_callers() {
        for (line, said) in [
            (&["--protocol", "macsek"][..], "no protocol is called `macsek`"),
            (&["--load", "fast"], "`fast` is not a load"),
            (&["--frame", "40"], "`40` is not a frame size"),
            (&["--frame", "9100"], "`9100` is not a frame size"),
            (&["--outer", "ipv5"], "`ipv5`"),
            (&["--protocol", "macsec", "--pppoe"], "PPPoE carries IP packets"),
            (&["--protocol", "esp", "--pppoe", "--backend", "kernel"], "own engine carries PPPoE"),
            (&["--hops", "9"], "1 to 8 hops"),
            (&["--trial", "0s"], "a trial of"),
            (&["--between", "a", "b", "--hops", "2"], "--hops changes nothing"),
            (&["--backend", "between"], "needs two interfaces"),
        ] {
            let problem = plan(line).unwrap_err();
            assert!(problem.to_string().contains(said), "{problem}");
            assert_eq!(problem.fault(), Fault::Caller, "{problem}");
        }
    }

    #[test]
    fn every_value_has_its_kind_and_none_twice() {
        let names: BTreeSet<_> = LinkStudy.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), LinkStudy.values().len());
        assert!(LinkStudy.examples().contains("trials, about"));
    }
}
