//! The study as the program sees it: its options, its plan made ready, what is asked of its samples.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use fault::{Fault, Problem, WhileDoing};
use record::{Better, Clock, Manifest, PlanFiles, Sample, Touches, ValueKind, Warning};
use serde_json::Value;
use study::{Commands, End, Number, Options, Session, Sweep, Watcher};
use tls_drivers::{Catalog, Folders};
use units::Delay;

use crate::builds::{Builds, Sources, Wanted, Workshop};
use crate::measure::measure;
use crate::plan::{BUILT_IN, MILLISECONDS, NUMBERS, Plan, Run};
use crate::point::AXES;
use crate::present::Findings;
use crate::sample::{STUDY, value};
use crate::summary::Summary;

/// How to get libraries.
const BUILD: &str = "`wiretax drivers build` builds some, --sdk NAME=DIR takes yours";

/// The HAProxy study.
#[derive(Debug, Clone, Copy)]
pub struct Haproxy;

impl study::Study for Haproxy {
    fn name(&self) -> &'static str {
        STUDY
    }

    fn command(&self) -> &'static [&'static str] {
        &["stacks", "haproxy"]
    }

    fn about(&self) -> &'static str {
        "HAProxy itself on each library, in the two scenarios of HAProxy 2025"
    }

    fn examples(&self) -> String {
        "Examples:
  wiretax stacks haproxy                 every built library that HAProxy works with
  wiretax stacks haproxy --library openssl-1.1.1w,openssl-3.0.2 --locks pthread,light
  wiretax stacks haproxy --scenario chain --proxies 3 --tls tls1.2,tls1.3 --threads 1,2,4
  wiretax stacks haproxy --build-only    build, measure later
  wiretax stacks haproxy --library openssl-3.5.5 --sdk openssl-3.5.5=/opt/openssl

The first build with a library takes two or three minutes and is kept; an interrupted build
resumes. docs/haproxy.md says what is built and how it is run."
            .to_owned()
    }

    fn uses_links(&self) -> bool {
        false
    }

    fn in_run(&self) -> bool {
        false
    }

    fn options(&self, command: Command) -> Command {
        let numbers: Vec<Number> =
            NUMBERS.iter().filter(|number| number.name != MILLISECONDS.name).copied().collect();
        let command = Number::options(&numbers, AXES.options(command));
        command.mut_arg("library", |library| library.visible_alias("libraries")).arg(
            Arg::new("duration")
                .long("duration")
                .value_name("TIME")
                .value_parser(value_parser!(Delay))
                .help("Duration of each measurement [default: 2s]"),
        )
    }

    fn means(&self, command: Command) -> Command {
        let flag = |name: &'static str, help: &'static str| {
            Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
        };
        command.args([
            Arg::new("drivers")
                .long("drivers")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath)
                .help("The folder of the drivers' sources [default: drivers/ beside the program's build or in its source tree]"),
            Arg::new("sdk")
                .long("sdk")
                .value_name("NAME=DIR")
                .value_hint(ValueHint::DirPath)
                .action(ArgAction::Append)
                .help("Headers (DIR/include) and static archives (DIR/lib) of a library, instead of its driver's"),
            Arg::new("jobs")
                .long("jobs")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..=1024))
                .help("Number of parallel compilers [default: one per processor]"),
            flag("retry", "Build again what failed before"),
            flag("build-only", "Build, and measure nothing"),
        ])
    }

    fn plan(&self, options: &Options<'_>) -> Result<Box<dyn study::Plan>, Problem> {
        let sources = sources(options)?;
        let mut plan = given(options)?;
        plan.name_libraries(&sources.0.built());
        for name in plan.libraries() {
            sources.0.must_know(&name)?;
        }
        Ok(Box::new(Ready::new(plan, sources, options)?))
    }

    fn recorded_plan(
        &self,
        plan: &Value,
        _: &PlanFiles,
        options: &Options<'_>,
    ) -> Result<Box<dyn study::Plan>, Problem> {
        let plan = Plan::recorded(plan).map_err(|problem| problem.blaming(Fault::Results))?;
        Ok(Box::new(Ready::new(plan, sources(options)?, options)?))
    }

    fn check_plan(&self, plan: &Value) -> Result<(), Problem> {
        Plan::recorded(plan).map(|_| ()).map_err(|problem| problem.blaming(Fault::Results))
    }

    fn commands(&self, plan: &Value) -> Commands {
        crate::plan::commands(plan)
    }

    fn question(&self, _: &Options<'_>) -> Result<Box<dyn study::Question>, Problem> {
        Ok(Box::new(Question))
    }

    fn values(&self) -> Vec<(&'static str, ValueKind)> {
        use value::*;
        let wall = |name, unit, better| (name, ValueKind::new(unit, better, Clock::Wall));
        let count = |name, better| (name, ValueKind::new("", better, Clock::Count));
        vec![
            wall(SERVER_CPU, "us", Better::Less),
            wall(PER_SECOND, "1/s", Better::More),
            wall(CLIENT_CPU, "us", Better::Less),
            wall(KERNEL, "", Better::Neither),
            wall(SERVER_BUSY, "", Better::Neither),
            wall(P50, "ms", Better::Less),
            wall(P99, "ms", Better::Less),
            count(CLIENT_RESUMED, Better::Neither),
            count(FRONT_RESUMED, Better::Neither),
            count(BACK_RESUMED, Better::Neither),
            count(HANDSHAKES, Better::Less),
            count(ANSWERED, Better::Neither),
            count(COMPLETED, Better::Neither),
            count(FAILED, Better::Less),
        ]
    }

    fn published(&self) -> &'static str {
        crate::published::FIGURES
    }
}

/// Where libraries come from, and the folder in which HAProxy is built.
fn sources(options: &Options<'_>) -> Result<(Sources, PathBuf), Problem> {
    let drivers = options.get::<PathBuf>("drivers");
    let folders = Folders::find(drivers.as_deref())?;
    tls_drivers::check_cache(&folders.cache)?;
    let catalog = Catalog::read(&folders)?;
    let sources = Sources::new(&options.all::<String>("sdk"), catalog)?;
    Ok((sources, folders.cache.join("haproxy")))
}

/// The plan that the options ask for.
fn given(options: &Options<'_>) -> Result<Plan, Problem> {
    let scale = options.get::<String>("scale").unwrap_or_else(|| "default".to_owned());
    let mut plan = match options.get::<PathBuf>("plan") {
        Some(file) => {
            let text = options.text_of(&file, "plan")?;
            Plan::parse(&text, &scale).while_doing(|| file.display())?
        }
        None => Plan::parse(BUILT_IN, &scale)?,
    };
    let axes = AXES.given(options) || Number::given(NUMBERS, options) || options.given("duration");
    if axes && options.given("plan") {
        let what = "a plan file and axes (--scenario, --threads, …) exclude each other";
        return Err(Problem::new(Fault::Caller, what).with_remedy("put the axes into the plan"));
    }
    if axes {
        let mut sweep = Sweep::of_defaults("cli", &AXES, NUMBERS);
        AXES.overwrite(&mut sweep, options);
        Number::overwrite(NUMBERS, &mut sweep, options);
        if let Some(duration) = options.get::<Delay>("duration") {
            let Number { name, least, most, .. } = MILLISECONDS;
            let given = u64::try_from(duration.duration().as_millis()).unwrap_or(u64::MAX);
            if !(least..=most).contains(&given) {
                let what =
                    format!("--duration is {duration}; expected {least} ms to {} s", most / 1000);
                return Err(Problem::new(Fault::Caller, what));
            }
            sweep.numbers.insert(name.to_owned(), given);
        }
        plan.sweeps = vec![sweep];
        plan.budget = None;
    }
    Ok(plan)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A plan, and what is measured by it.
struct Ready {
    plan: Plan,
    runs: Vec<Run>,
    wanted: Vec<Wanted>,
    sources: Sources,
    workshop: Workshop,
    /// What is built: by this process, or found by the one inside the lab.
    builds: OnceCell<Builds>,
    build_only: bool,
}

impl Ready {
    fn new(
        plan: Plan,
        (sources, cache): (Sources, PathBuf),
        options: &Options<'_>,
    ) -> Result<Ready, Problem> {
        let runs = plan.runs(processors())?;
        let mut wanted: Vec<Wanted> = Vec::new();
        for run in &runs {
            let one = Wanted::of(&run.point)?;
            if !wanted.contains(&one) {
                wanted.push(one);
            }
        }
        let jobs = options.get::<u64>("jobs").and_then(|jobs| usize::try_from(jobs).ok());
        let workshop =
            Workshop { cache, jobs: jobs.unwrap_or_else(processors), retry: options.flag("retry") };
        let (builds, build_only) = (OnceCell::new(), options.flag("build-only"));
        Ok(Ready { plan, runs, wanted, sources, workshop, builds, build_only })
    }

    fn builds(&self) -> &Builds {
        self.builds
            .get_or_init(|| Builds::cached(&self.wanted, &self.sources, &self.workshop.cache))
    }
}

impl study::Plan for Ready {
    fn value(&self) -> Value {
        self.plan.value()
    }

    fn points(&self) -> usize {
        self.runs.iter().filter(|run| run.repeat == 0).count()
    }

    fn expected(&self) -> Duration {
        self.runs.iter().map(Run::expected).sum()
    }

    fn budget(&self) -> Option<Duration> {
        self.plan.budget
    }

    /// Its runs are on the loopback of namespaces of their own.
    fn needs_lab(&self) -> bool {
        !self.build_only
    }

    fn seed(&self) -> u64 {
        1
    }

    fn prepare(&mut self, watcher: &mut dyn Watcher) -> Result<End, Problem> {
        if self.runs.is_empty() {
            let what = "no library that HAProxy works with is built";
            return Err(Problem::new(Fault::Machine, what).with_remedy(BUILD));
        }
        // Inside there is no network, and all is built.
        if lab::inside() {
            return Ok(End::Complete);
        }
        let (builds, end) = self.workshop.build(&self.wanted, &self.sources, watcher);
        if end == End::Complete && builds.is_empty() {
            let mut what = "HAProxy could be built on none of the libraries".to_owned();
            if let Some((name, reason)) = builds.failed().first() {
                what = format!("{what}; on {name}: {reason}");
            }
            return Err(Problem::new(Fault::Machine, what));
        }
        self.builds = OnceCell::from(builds);
        Ok(end)
    }

    fn only_prepared(&self) -> Option<String> {
        self.build_only.then(|| self.builds().listing())
    }

    fn describe(&self, manifest: &mut Manifest) {
        for built in self.builds().iter() {
            let what = format!("HAProxy {} on {}", built.haproxy, built.runs_on);
            manifest.libraries.insert(built.library.clone(), what);
        }
        for (name, reason) in self.builds().failed() {
            let remedy = "leave it out by --library, or make it build";
            let warning = Warning::new(format!("{name} was not measured: {reason}"), remedy);
            manifest.warn(warning.touching(Touches::Missing));
        }
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<End, Problem> {
        measure(&self.runs, self.builds(), session)
    }

    fn to_resume(&self) -> String {
        self.sources.options()
    }
}

/// What the samples say; nothing else is asked.
struct Question;

impl study::Question for Question {
    fn findings(
        &self,
        samples: &mut dyn Iterator<Item = Sample>,
        manifest: &Manifest,
    ) -> Result<Option<Box<dyn study::Findings>>, Problem> {
        let mut summary = Summary::of(&record::hold(samples)?);
        summary.cores = manifest.sessions.first().and_then(|session| session.environment.cpus);
        let found = !summary.rows.is_empty();
        let findings = Findings::new(summary).measured(study::provenance(manifest));
        Ok(found.then(|| Box::new(findings) as Box<dyn study::Findings>))
    }
}
