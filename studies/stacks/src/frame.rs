//! The study as the program sees it: its options, its plan made ready, what is asked of its samples.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Arg, Command, ValueHint, value_parser};
use fault::{Fault, Problem, WhileDoing};
use record::{Better, Clock, Manifest, PlanFiles, Sample, ValueKind};
use serde_json::Value;
use study::{Commands, End, Number, Options, Session, Sweep, Watcher, quoted};
use tls_drivers::hosts::{Hosts, Processes};
use tls_drivers::{Catalog, Folders};

use crate::measure::Bench;
use crate::plan::{BUILT_IN, Expanded, NUMBERS, Plan, count_connections};
use crate::point::{AXES, Tool};
use crate::present::{Findings, LOAD};
use crate::roster::{Library, NULL, Roster};
use crate::sample::{STUDY, value};
use crate::summary::summarise;

/// How to get libraries to measure.
const BUILD: &str = "`make drivers` builds the default set, `wiretax drivers build NAME` one";

/// The stacks study.
#[derive(Debug, Clone, Copy)]
pub struct Stacks;

impl study::Study for Stacks {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["stacks"]
    }

    fn about(&self) -> &'static str {
        "Which TLS library to build on: cost, locks and threads of each"
    }

    fn examples(&self) -> String {
        "Examples:
  wiretax stacks                         the default set of libraries
  wiretax stacks --scale quick           the same in a minute
  wiretax stacks --libraries 'openssl-*,boringssl' --out results/openssl
  wiretax stacks --scale full --libraries all          everything: several hours
  wiretax stacks --workload full --threads powers --wire loopback --key rsa-2048
  wiretax stacks --workload full,resume --locks count --connections 100 --libraries openssl-3.0.2
  wiretax stacks --load 20000            machines for 20,000 new connections per second
  wiretax stacks --resume results/openssl

Each library has a driver: `wiretax drivers list` lists them, `make drivers` builds the default set.
`go` and `java` are measured over loopback if their toolchains are installed. A library that
crashes, hangs or misreports resumption is reported by name, and the rest continues."
            .to_owned()
    }

    fn uses_links(&self) -> bool {
        false
    }

    fn options(&self, command: Command) -> Command {
        let command = Number::options(NUMBERS, AXES.options(command));
        command
            // `--version` is TLS's here.
            .disable_version_flag(true)
            .mut_arg("version", |version| version.alias("tls"))
            .mut_arg("ms", |ms| ms.conflicts_with("connections"))
            .mut_arg("library", |library| {
                let library = library.long("libraries").alias("library");
                library.help_heading(Resettable::<clap::builder::Str>::Reset)
            })
    }

    fn means(&self, command: Command) -> Command {
        command.arg(
            Arg::new("drivers")
                .long("drivers")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath)
                .help(
                    "The folder of the drivers' sources [default: drivers/ beside the program's \
                     build or in its source tree]",
                ),
        )
    }

    fn asks(&self, command: Command) -> Command {
        command.arg(
            Arg::new("load")
                .long("load")
                .value_name("N")
                .value_parser(parse_load)
                .help("New connections per second to size machines for [default: 100000]"),
        )
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        let (hosts, mut roster, catalog) = machine(options)?;
        let libraries = named(options, &catalog, &mut roster)?;
        let plan = given(options, &libraries)?;
        Ok(Box::new(Ready::new(plan, roster, Box::new(hosts), options)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        options: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        let plan = Plan::recorded(plan).map_err(|problem| problem.blaming(Fault::Results))?;
        let (hosts, roster, _) = machine(options)?;
        Ok(Box::new(Ready::new(plan, roster, Box::new(hosts), options)?))
    }

    fn check_plan(&self, plan: &Value) -> Result<(), Problem> {
        Plan::recorded(plan).map(|_| ()).map_err(|problem| problem.blaming(Fault::Results))
    }

    fn commands(&self, plan: &Value) -> Commands {
        crate::plan::commands(plan)
    }

    fn question(&self, options: &Options<'_>) -> Result<Box<dyn study::Question>, Problem> {
        let load = options.get::<f64>("load").unwrap_or(LOAD);
        Ok(Box::new(Question { load, seed: options.get::<u64>("seed").unwrap_or(1) }))
    }

    fn values(&self) -> Vec<(&'static str, ValueKind)> {
        use value::*;
        let rate = |name, unit| (name, ValueKind::new(unit, Better::More, Clock::Wall));
        let cost = |name, unit| (name, ValueKind::new(unit, Better::Less, Clock::Wall));
        let count = |name, unit| (name, ValueKind::new(unit, Better::Less, Clock::Count));
        let says = |name, unit, clock| (name, ValueKind::new(unit, Better::Neither, clock));
        let mut values = vec![
            cost(SERVER_CPU, "us"),
            cost(CLIENT_CPU, "us"),
            rate(RATE, "1/s"),
            rate(SERVER_GBIT, "Gbit/s"),
            rate(CLIENT_GBIT, "Gbit/s"),
            rate(GBIT, "Gbit/s"),
            cost(JOULES, "J"),
            says(WALL, "ms", Clock::Wall),
            says(DONE, "", Clock::Count),
            count(FAILED, ""),
            count(MISREPORTED, ""),
            says(RESUMED, "", Clock::Count),
            says(WARM_UP, "", Clock::Count),
            says(STOLEN, "ms", Clock::Wall),
            says(WAITED, "ms", Clock::Wall),
            count(FULL_LEGS, ""),
            says(LEFT_OUT, "", Clock::Count),
        ];
        let counted = [
            [SERVER_READ, SERVER_WRITE, SERVER_MUTEX, SERVER_CONTENDED],
            [CLIENT_READ, CLIENT_WRITE, CLIENT_MUTEX, CLIENT_CONTENDED],
            [SERVER_INSTRUCTIONS, SERVER_ATOMICS, CLIENT_INSTRUCTIONS, CLIENT_ATOMICS],
        ];
        values.extend(counted.as_flattened().iter().map(|name| count(name, "")));
        let by_purpose = crate::purpose::VALUES.into_iter();
        values.extend(
            by_purpose
                .flat_map(|(of_server, of_client)| [count(of_server, ""), count(of_client, "")]),
        );
        let bytes = [SERVER_IDLE, SERVER_HANDSHAKING, CLIENT_IDLE, CLIENT_HANDSHAKING];
        values.extend(bytes.map(|name| count(name, "bytes")));
        values
    }

    fn published(&self) -> &'static str {
        crate::published::figures()
    }
}

/// Connections per second: `20000`, `20000/s`.
///
/// # Errors
/// The text is no such rate.
pub fn parse_load(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>();
    number
        .ok()
        .filter(|rate| rate.is_finite() && (1.0..=1e12).contains(rate))
        .ok_or_else(|| "expected a number of connections per second from 1 to 10^12".to_owned())
}

/// What this machine has to measure with.
fn machine(options: &Options<'_>) -> Result<(Processes, Roster, Catalog), Problem> {
    let given = options.get::<PathBuf>("drivers");
    let folders = Folders::find(given.as_deref())?;
    let catalog = Catalog::read(&folders)?;
    let hosts = Processes::new(folders.cache.join("programs"))?;
    let roster = Roster::of(&catalog, hosts.built_in(), hosts.null());
    Ok((hosts, roster, catalog))
}

/// The libraries that the user names; drivers of his own are put into the roster.
fn named(
    options: &Options<'_>,
    catalog: &Catalog,
    roster: &mut Roster,
) -> Result<Vec<String>, Problem> {
    let given = options.all::<String>("library");
    let is_path = |name: &&String| name.contains('/');
    let paths: Vec<&str> = given.iter().filter(is_path).map(String::as_str).collect();
    let mut names: Vec<String> = given.iter().filter(|name| !is_path(name)).cloned().collect();
    for driver in catalog.select(&paths)? {
        names.push(driver.name.clone());
        // One of the catalogue's may be given by its path.
        if roster.find(&driver.name).is_none() {
            roster.libraries.push(Library {
                family: driver.name.clone(),
                version: "(own driver)".to_owned(),
                ..Library::of(&driver)
            });
        }
    }
    Ok(names)
}

/// The plan that the options ask for.
fn given(options: &Options<'_>, libraries: &[String]) -> Result<Plan, Problem> {
    let axis = |name: &str| name != "library" && options.given(name);
    let axes = AXES.axes.iter().any(|one| axis(one.name)) || Number::given(NUMBERS, options);
    let refused = |what: &str, remedy: &'static str| {
        Err(Problem::new(Fault::Caller, what).with_remedy(remedy))
    };
    if axes && options.given("plan") {
        let what = "a plan file and axes (--workload, --threads, …) exclude each other";
        return refused(what, "put the axes into the plan");
    }
    let callgrind = options.all::<String>("tool").contains(&Tool::Callgrind.to_string());
    if callgrind && options.given("ms") {
        let what = "callgrind counts over connections, not over a time";
        return refused(what, "use --connections instead of --ms");
    }
    let mut plan = match axes {
        true => {
            let mut sweep = Sweep::of_defaults("cli", &AXES, NUMBERS);
            AXES.overwrite(&mut sweep, options);
            Number::overwrite(NUMBERS, &mut sweep, options);
            count_connections(&mut sweep, options.given("repeat"));
            Plan::of_sweep(sweep)?
        }
        false => {
            let scale = options.get::<String>("scale").unwrap_or_else(|| "default".to_owned());
            match options.get::<PathBuf>("plan") {
                Some(file) => {
                    let text = options.text_of(&file, "plan")?;
                    Plan::parse(&text, &scale).while_doing(|| file.display())?
                }
                None => Plan::parse(BUILT_IN, &scale)?,
            }
        }
    };
    if !libraries.is_empty() {
        plan.only(libraries);
    }
    plan.seed = options.get::<u64>("seed").unwrap_or(plan.seed);
    Ok(plan)
}

/// A plan, and what is measured by it.
pub(crate) struct Ready {
    plan: Plan,
    roster: Roster,
    expanded: Expanded,
    hosts: Box<dyn Hosts>,
    cores: usize,
    /// The folder of the drivers' sources, where the user gave one.
    drivers: Option<PathBuf>,
}

impl Ready {
    pub(crate) fn new(
        plan: Plan,
        roster: Roster,
        hosts: Box<dyn Hosts>,
        options: &Options<'_>,
    ) -> Result<Ready, Problem> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let expanded = plan.expand(&roster, cores)?;
        Ok(Ready { plan, roster, expanded, hosts, cores, drivers: options.get("drivers") })
    }

    /// Libraries that will be measured; the null driver is none.
    fn measured(&self) -> usize {
        let names = self.expanded.libraries();
        let there = |library: &&Library| library.name != NULL && library.is_there();
        self.roster.libraries.iter().filter(there).filter(|one| names.contains(&one.name)).count()
    }

    fn say_what_is_left_out(&self, watcher: &mut dyn Watcher) {
        let (runtimes, drivers): (Vec<_>, Vec<_>) = self
            .expanded
            .left_out
            .iter()
            .partition(|(name, _)| self.roster.find(name).is_some_and(Library::is_program));
        for (_, why) in runtimes {
            watcher.note(&format!("not measured: {why}"));
        }
        let absent: Vec<&str> = drivers.iter().map(|(name, _)| name.as_str()).collect();
        if self.measured() == 0 {
            watcher.note(&format!("no TLS library is built to be measured; {BUILD}"));
        } else if !absent.is_empty() {
            watcher.note(&format!("not built: {}; {BUILD}", absent.join(", ")));
        }
        if !self.expanded.no_time.is_empty() {
            let names: Vec<&str> = self.expanded.no_time.iter().map(String::as_str).collect();
            watcher.note(&format!(
                "left out, for they would take too long: {}; `wiretax stacks --libraries built` \
                 measures them",
                names.join(", ")
            ));
        }
    }
}

impl study::Plan for Ready {
    fn value(&self) -> Value {
        self.plan.value()
    }

    fn points(&self) -> usize {
        self.expanded.cells.iter().map(|cell| cell.points.len()).sum()
    }

    fn expected(&self) -> Duration {
        self.expanded.expected()
    }

    fn budget(&self) -> Option<Duration> {
        self.plan.budget
    }

    fn needs_lab(&self) -> bool {
        false
    }

    fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Alone it is an error if nothing can be measured; with other studies, a note.
    fn prepare(&mut self, _: &mut dyn Watcher) -> Result<End, Problem> {
        if self.measured() > 0 {
            return Ok(End::Complete);
        }
        let absent = self.expanded.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
        let absent: Vec<String> = absent.collect();
        let what = match absent.as_slice() {
            [] => "no library is built".to_owned(),
            _ => format!("no library of the plan is built ({})", absent.join("; ")),
        };
        Err(Problem::new(Fault::Machine, what).with_remedy(BUILD))
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        self.say_what_is_left_out(session.watcher());
        if self.measured() == 0 {
            return Ok(End::Complete);
        }
        let hosts = self.hosts.as_ref();
        let bench = Bench { hosts, roster: &self.roster, seed: self.plan.seed, cores: self.cores };
        Ok(bench.run(&self.expanded, session)?.end)
    }

    fn to_resume(&self) -> String {
        let drivers = self.drivers.as_ref().map(|folder| folder.display().to_string());
        drivers.map_or(String::new(), |folder| format!(" --drivers {}", quoted(&folder)))
    }
}

/// Whose machines the samples are to be weighed for.
struct Question {
    load: f64,
    seed: u64,
}

impl study::Question for Question {
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn study::Findings>>, Problem> {
        let summary = summarise(samples);
        if summary.samples == 0 {
            return Ok(None);
        }
        let findings = Findings::new(summary, self.load, self.seed);
        Ok(Some(Box::new(findings.measured(study::provenance(manifest)))))
    }
}

/// Why nothing was found.
pub(crate) fn nothing_measured() -> Problem {
    Problem::new(Fault::Measurement, "nothing could be measured; the samples hold why")
        .with_remedy(BUILD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::Study as _;

    /// The sweep that a command line comes to.
    fn swept(line: &[&str]) -> (Option<u64>, Option<u64>, u32) {
        let command = Stacks.options(Command::new("stacks"));
        let matches = command.get_matches_from([&["stacks"], line].concat());
        let plan = given(&Options::new(&matches), &[]).unwrap();
        let sweep = &plan.sweeps[0];
        (sweep.number("ms"), sweep.number("connections"), sweep.repeat())
    }

    #[test]
    fn instructions_are_counted_over_connections() {
        let callgrind = ["--tool", "callgrind"];
        assert_eq!(swept(&callgrind), (None, Some(10), 1));
        let given = [&callgrind[..], &["--connections", "3", "--repeat", "2"]].concat();
        assert_eq!(swept(&given), (None, Some(3), 2));
        assert_eq!(swept(&["--tool", "host"]), (Some(50), None, 40));
    }

    #[test]
    fn libraries_alone_keep_the_plan_and_axes_replace_it() {
        let plan = |line: &[&str]| {
            let command = Stacks.options(Command::new("stacks"));
            let matches = command.get_matches_from([&["stacks"], line].concat());
            let options = Options::new(&matches);
            given(&options, &options.all::<String>("library")).unwrap()
        };
        let kept = plan(&["--libraries", "gnutls,nss"]);
        assert!(kept.sweeps.len() > 5 && kept.budget.is_none());
        for sweep in &kept.sweeps {
            let null = if sweep.name == "cost" { vec![NULL] } else { Vec::new() };
            assert_eq!(sweep.lists["library"], [vec!["gnutls", "nss"], null].concat());
        }
        let one = plan(&["--library", "gnutls", "--tls", "tls1.2"]);
        assert_eq!(one.sweeps.len(), 1);
        assert_eq!(one.sweeps[0].lists["version"], ["tls1.2"]);
        assert_eq!(one.sweeps[0].lists["library"], ["gnutls"]);
        assert_eq!(plan(&[]).budget, Some(Duration::from_secs(285)));
    }

    #[test]
    fn a_load_is_a_rate() {
        assert_eq!(parse_load("20000"), Ok(20_000.0));
        assert_eq!(parse_load("20000/s"), Ok(20_000.0));
        for wrong in ["0", "-1", "many", "inf", "nan", ""] {
            assert!(parse_load(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_value_says_what_it_is_once() {
        let mut names: Vec<&str> = Stacks.values().into_iter().map(|(name, _)| name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
