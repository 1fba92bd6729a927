//! `wiretax stacks`, and the study's part of `wiretax run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use record::{Finished, Manifest, Recorder, Session};
use serde_json::json;
use stacks::{
    Bench, Build, End, Ended, Expanded, Fact, Library, NULL, Plan, Roster, StudyError, Tool,
    Watcher,
};
use tls_drivers::{Catalog, Folders, State};

use crate::drivers::supervisor;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::{new_results_folder, quoted, read_text};
use crate::interrupt::Interrupt;
use crate::report::{Question, Results};
use crate::stacks_args::{StacksArgs, StacksCommand};
use crate::stacks_hosts::{Processes, identity, runtimes};
use crate::talk::{Progress, Talk};

/// How to get libraries to measure.
const BUILD: &str = "`make drivers` builds the default set, `wiretax drivers build NAME` one";

/// Measures, reports, and prints the result.
pub fn stacks(args: &StacksArgs, talk: &Talk) -> Outcome {
    if let Some(StacksCommand::Haproxy(args)) = &args.command {
        return crate::haproxy::haproxy(args, talk);
    }
    let scratch = Scratch::make()?;
    let (roster, libraries) = roster(args, &scratch)?;
    let plan = match &args.out.resume {
        Some(folder) if !args.shapes_plan() => plan_of(folder)?,
        _ => plan(args, &libraries)?,
    };
    let ready = Ready::new(plan, roster)?;
    ready.must_measure()?;
    let interrupt = Interrupt::listen()?;
    let (folder, finished, mut recorder) = open(args, &ready.plan, talk)?;
    let ended = ready.measure(scratch, &finished, &mut recorder, &interrupt, talk)?;
    recorder.finish().or_exit(Exit::Results)?;
    if ended.end == End::Interrupted {
        let shown = quoted(&folder.display().to_string());
        let again = format!("wiretax stacks --resume {shown}");
        talk.note(format!("interrupted; what was measured is kept: go on with `{again}`"));
        return Ok(Exit::Interrupted);
    }
    let results = Results::read(&folder, ready.plan.seed, talk)?;
    if results.stacks.is_empty() {
        let shown = folder.display();
        let error = anyhow!("nothing could be measured; {shown} holds why; hint: {BUILD}");
        return Err(Failed { exit: Exit::Measurement, error }.into());
    }
    let mut question = Question::read("tcp+tls12", None, ready.plan.seed)?;
    question.load = args.load.unwrap_or(question.load);
    let html = results.publish(&folder, None, &question, args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    Ok(Exit::Done)
}

/// What lives as long as hosts are started.
pub struct Scratch {
    supervisor: tls_drivers::Supervisor,
    folder: tempfile::TempDir,
}

impl Scratch {
    /// A folder for what hosts load.
    pub fn make() -> Result<Scratch, Failed> {
        let (supervisor, folder) = supervisor()?;
        Ok(Scratch { supervisor, folder })
    }

    /// The driver without cryptography, which comes with the program.
    fn null(&self) -> Result<Library, Failed> {
        let object = self.folder.path().join("null.so");
        std::fs::write(&object, tls_drivers::NULL)
            .with_context(|| format!("{} cannot be written", object.display()))
            .or_exit(Exit::Machine)?;
        Ok(Library {
            name: NULL.to_owned(),
            family: "no".to_owned(),
            version: "cryptography".to_owned(),
            default: false,
            licence: String::new(),
            facts: Vec::new(),
            build: Build::Built(object),
        })
    }
}

/// The libraries that there are, and those asked for by name.
fn roster(args: &StacksArgs, scratch: &Scratch) -> Result<(Roster, Vec<String>), Failed> {
    let folders = Folders::find(args.drivers.as_deref()).or_exit(Exit::Usage)?;
    let catalog = Catalog::read(&folders).or_exit(Exit::Usage)?;
    let mut roster = of_catalog(&catalog, scratch)?;
    let mut names = Vec::new();
    for name in &args.libraries {
        if !name.contains('/') {
            names.push(name.clone());
            continue;
        }
        for mut driver in catalog.select(&[name]).or_exit(Exit::Usage)? {
            // What `wiretax drivers` has built is called `driver.so`: its folder names it.
            let folder = driver.object().and_then(Path::parent).and_then(Path::file_name);
            if let (true, Some(folder)) = (driver.name == "driver", folder) {
                driver.name = folder.to_string_lossy().into_owned();
            }
            names.push(driver.name.clone());
            roster.libraries.retain(|library| library.name != driver.name);
            roster.libraries.push(Library {
                family: driver.name.clone(),
                version: "(own driver)".to_owned(),
                ..library(&driver)
            });
        }
    }
    Ok((roster, names))
}

fn of_catalog(catalog: &Catalog, scratch: &Scratch) -> Result<Roster, Failed> {
    let mut libraries: Vec<Library> = catalog.drivers().iter().map(library).collect();
    libraries.extend(runtimes());
    libraries.push(scratch.null()?);
    Ok(Roster { libraries })
}

fn library(driver: &tls_drivers::Driver) -> Library {
    let facts = driver.facts.iter().map(|fact| Fact {
        what: fact.what.clone(),
        says: fact.says.clone(),
        source: fact.source.clone(),
    });
    Library {
        name: driver.name.clone(),
        family: driver.library.clone(),
        version: driver.version.clone(),
        default: driver.default,
        licence: driver.licence.clone(),
        facts: facts.collect(),
        build: match &driver.state {
            State::Built { object } => Build::Built(object.clone()),
            State::NotBuilt => Build::NotBuilt,
            State::Failed { reason, .. } => Build::Failed(reason.clone()),
        },
    }
}

fn plan(args: &StacksArgs, libraries: &[String]) -> Result<Plan, Failed> {
    if args.plan.is_some() && args.axes.any() {
        let error = anyhow!(
            "a plan file and axes (--workload, --threads, …) exclude each other; hint: put the axes \
             into the plan"
        );
        return Err(Failed { exit: Exit::Usage, error });
    }
    if args.axes.tool == Some(Tool::Callgrind) && args.axes.ms.is_some() {
        let error = anyhow!(
            "callgrind counts over connections, not over a time; hint: --connections in place of --ms"
        );
        return Err(Failed { exit: Exit::Usage, error });
    }
    let scale = args.scale.as_deref().unwrap_or("default");
    let mut plan = match &args.plan {
        Some(file) => {
            let text = read_text(file, "plan")?;
            let made = Plan::parse(&text, scale).with_context(|| file.display().to_string());
            made.or_exit(Exit::Usage)?
        }
        None => Plan::built_in(scale).or_exit(Exit::Usage)?,
    };
    if args.axes.any() {
        let mut sweep = Plan::single_sweep("cli");
        args.axes.overwrite(&mut sweep);
        plan = Plan { sweeps: vec![sweep], budget_s: None, ..plan };
    }
    if !libraries.is_empty() {
        plan.only(libraries);
        // Who names libraries wants them all, however long it takes.
        plan.budget_s = None;
    }
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.check().or_exit(Exit::Usage)?;
    Ok(plan)
}

/// The plan that the results in a folder were measured by.
pub fn plan_of(folder: &Path) -> Result<Plan, Failed> {
    let (manifest, _) = record::Run::stream(folder).or_exit(Exit::Results)?;
    let plan = manifest.plan.get("stacks").cloned().unwrap_or_default();
    let plan: Plan = serde_json::from_value(plan)
        .with_context(|| format!("there is no plan of `wiretax stacks` in {}", folder.display()))
        .or_exit(Exit::Results)?;
    plan.check().or_exit(Exit::Results)?;
    Ok(plan)
}

/// Opens the folder: a new one with a manifest, or the one to resume.
fn open(
    args: &StacksArgs,
    plan: &Plan,
    talk: &Talk,
) -> Result<(PathBuf, Finished, Recorder), Failed> {
    let plan = json!({ "stacks": plan });
    let session = Session::begin(false);
    if let Some(folder) = &args.out.resume {
        let resumed = Recorder::resume(folder, &plan, session).or_exit(Exit::Results)?;
        let have = resumed.finished.len();
        talk.note(format!("{have} samples are there already; measuring the others"));
        return Ok((folder.clone(), resumed.finished, resumed.recorder));
    }
    let date = session.started.strftime("%Y-%m-%d").to_string();
    let folder = args.out.out.clone().unwrap_or_else(|| new_results_folder("stacks", &date));
    let recorder =
        Recorder::create(&folder, Manifest::new(plan, session)).or_exit(Exit::Results)?;
    Ok((folder, Finished::default(), recorder))
}

/// A plan, and the libraries to measure by it.
pub struct Ready {
    pub plan: Plan,
    roster: Roster,
    expanded: Expanded,
    cores: usize,
    /// Where programs of runtimes are built.
    programs: PathBuf,
}

impl Ready {
    fn new(plan: Plan, roster: Roster) -> Result<Ready, Failed> {
        let programs = Folders::find(None).or_exit(Exit::Machine)?.cache.join("programs");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let expanded = plan.expand(&roster, cores).or_exit(Exit::Usage)?;
        Ok(Ready { plan, roster, expanded, cores, programs })
    }

    /// For `wiretax run`: whichever libraries are built.
    pub fn of_run(plan: Plan, scratch: &Scratch) -> Result<Ready, Failed> {
        let folders = Folders::find(None).or_exit(Exit::Machine)?;
        let catalog = Catalog::read(&folders).or_exit(Exit::Machine)?;
        Ready::new(plan, of_catalog(&catalog, scratch)?)
    }

    /// Libraries that will be measured; the null driver is none.
    fn measured(&self) -> usize {
        let names = self.expanded.libraries();
        let there = |library: &&Library| library.name != NULL && library.is_there();
        self.roster.libraries.iter().filter(there).filter(|one| names.contains(&one.name)).count()
    }

    fn must_measure(&self) -> Result<(), Failed> {
        if self.measured() > 0 {
            return Ok(());
        }
        let absent = self.expanded.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
        let absent: Vec<String> = absent.collect();
        let error = match absent.as_slice() {
            [] => anyhow!("no library is built; hint: {BUILD}"),
            _ => anyhow!("no library of the plan is built ({}); hint: {BUILD}", absent.join("; ")),
        };
        Err(Failed { exit: Exit::Machine, error })
    }

    /// Measures what is left to measure.
    pub fn measure(
        &self,
        scratch: Scratch,
        finished: &Finished,
        recorder: &mut Recorder,
        interrupt: &Interrupt,
        talk: &Talk,
    ) -> Result<Ended, Failed> {
        self.say_what_is_left_out(talk);
        if self.measured() == 0 {
            return Ok(Ended { end: End::Complete, good: 0, failed: 0 });
        }
        let stop = interrupt.clone();
        let supervisor = scratch.supervisor.stopping_when(move || stop.came());
        let hosts = Processes::new(supervisor, self.programs.clone());
        let (seed, cores) = (self.plan.seed, self.cores);
        let bench = Bench { hosts: &hosts, roster: &self.roster, identity: &identity, seed, cores };
        let mut following = Following { talk, progress: talk.progress(), interrupt };
        let ended = bench.run(&self.expanded, finished, recorder, &mut following);
        following.progress.finish();
        drop(scratch.folder);
        ended.map_err(study_failed)
    }

    fn say_what_is_left_out(&self, talk: &Talk) {
        let (runtimes, drivers): (Vec<_>, Vec<_>) = self
            .expanded
            .left_out
            .iter()
            .partition(|(name, _)| self.roster.find(name).is_some_and(Library::is_program));
        for (_, why) in runtimes {
            talk.note(format!("not measured: {why}"));
        }
        let absent: Vec<&str> = drivers.iter().map(|(name, _)| name.as_str()).collect();
        if self.measured() == 0 {
            talk.note(format!("no TLS library is built to be measured; {BUILD}"));
        } else if !absent.is_empty() {
            talk.note(format!("not built: {}; {BUILD}", absent.join(", ")));
        }
        if !self.expanded.no_time.is_empty() {
            let names: Vec<&str> = self.expanded.no_time.iter().map(String::as_str).collect();
            let names = names.join(", ");
            talk.note(format!(
                "left out, for they would take too long: {names}; `wiretax stacks --libraries built` \
                 measures them"
            ));
        }
    }
}

fn study_failed(error: StudyError) -> Failed {
    let exit = match &error {
        StudyError::Record(_) => Exit::Results,
        StudyError::Plan(_) => Exit::Usage,
        StudyError::Identity { .. } => Exit::Measurement,
    };
    Failed { exit, error: error.into() }
}

struct Following<'a> {
    talk: &'a Talk,
    progress: Progress,
    interrupt: &'a Interrupt,
}

impl Watcher for Following<'_> {
    fn progress(&mut self, step: &str, done: Duration, total: Duration) {
        self.progress.show(step, done, total);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.came()
    }

    fn warning(&mut self, text: &str) {
        self.talk.warning_with_hint(text);
    }
}

impl StacksArgs {
    /// Whether any option says what to measure.
    fn shapes_plan(&self) -> bool {
        self.axes.any()
            || !self.libraries.is_empty()
            || self.scale.is_some()
            || self.plan.is_some()
            || self.seed.is_some()
    }
}
