//! What every measuring command does around its studies: namespaces, folder, the lab's measurement of
//! itself, manifest, sessions; at the end the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgMatches, FromArgMatches};
use fault::{Fault, OrProblem, Problem, WhileDoing};
use lab::{Backend, Lab, LabOptions};
use observe::reading;
use record::{Finished, Manifest, PlanFiles, Recorder};
use serde_json::{Map, Value};
use study::{Computed, End, Options, Plan, Session, Study, Watcher, quoted};
use units::counted;

use super::results::{OTHER_VERSION, Questions, Results, View};
use super::screen::answer_row;
use super::{STUDIES, calibration, command, words};
use crate::diagnostics::{Diagnostics, Progress};
use crate::exit::{Exit, Outcome};
use crate::files::new_results_folder;
use crate::interrupt::Interrupt;
use crate::options::{JsonArg, LabArgs, OutArgs};
use crate::output::{say, say_json, say_text, terminal_width};
use crate::rights;

/// The option that names the folder of the drivers' sources.
const DRIVERS: &str = "drivers";

/// A study that is to be measured, and by which plan.
pub struct Part {
    pub study: &'static dyn Study,
    pub plan: Box<dyn Plan>,
}

/// One measuring command.
pub struct Measurement {
    /// The command's words: `stacks haproxy`.
    pub command: String,
    /// What is measured, in this order.
    pub parts: Vec<Part>,
    /// The plan as the manifest has it, by study.
    pub recorded: Value,
    pub questions: Questions,
    pub out: OutArgs,
    /// The options of links, where the command has them.
    pub lab: Option<LabArgs>,
    pub view: View,
    pub keep_captures: bool,
    /// Where qlog files go, if they are kept.
    pub qlog: Option<PathBuf>,
}

/// Measures the one study whose command was given.
pub fn one_study(
    study: &'static dyn Study,
    matches: &ArgMatches,
    diagnostics: &Diagnostics,
) -> Outcome {
    let options = Options::new(matches);
    if let Some(computed) = study.computed(&options)? {
        return show_computed(&computed, matches);
    }
    say_sources(study, matches, diagnostics)?;
    let out = OutArgs::from_arg_matches(matches).blame(Fault::Caller)?;
    let shaped = command::plan_options(study).iter().any(|name| options.given(name));
    // The options of the first session may be given again; the recorder holds them against its plan.
    let (plan, recorded) = match &out.resume {
        Some(folder) if !shaped => {
            let (recorded, files) = recorded_in(folder)?;
            let name = study.name();
            let value = recorded.get(name).ok_or_else(|| {
                let what =
                    format!("{} was not measured by `wiretax {}`", folder.display(), words(study));
                Problem::new(Fault::Results, what)
            })?;
            (study.recorded_plan(value, &files, &options)?, recorded)
        }
        _ => {
            let plan = study.plan(&options)?;
            let recorded = Map::from_iter([(study.name().to_owned(), plan.value())]);
            (plan, recorded.into())
        }
    };
    let lab = study.uses_links().then(|| LabArgs::from_arg_matches(matches)).transpose();
    let measurement = Measurement {
        command: words(study),
        parts: vec![Part { study, plan }],
        recorded,
        questions: Questions::of(&options)?,
        out,
        lab: lab.blame(Fault::Caller)?,
        view: View::Fitting.or_json(JsonArg::from_arg_matches(matches).blame(Fault::Caller)?.json),
        keep_captures: options.flag("keep_captures"),
        qlog: options.get("qlog"),
    };
    measure(measurement, diagnostics)
}

/// Prints an answer that needed no measurement.
fn show_computed(computed: &Computed, matches: &ArgMatches) -> Outcome {
    match JsonArg::from_arg_matches(matches).blame(Fault::Caller)?.json {
        true => {
            let text = serde_json::to_string_pretty(&computed.json).blame(Fault::Results)?;
            say_json(&format!("{text}\n"))?;
        }
        false => say_text(&computed.text)?,
    }
    Ok(Exit::Done)
}

/// Says which drivers' sources are used, where a study has an option for them: once, and not again by the process that
/// has entered the lab.
pub fn say_sources(
    study: &dyn Study,
    matches: &ArgMatches,
    diagnostics: &Diagnostics,
) -> Result<(), Problem> {
    // clap itself says only in debug builds that there is no such option.
    let has_drivers = command::plan_options(study).iter().any(|name| name == DRIVERS);
    if !has_drivers || lab::inside() {
        return Ok(());
    }
    let given = matches.try_get_one::<PathBuf>(DRIVERS).ok().flatten();
    crate::drivers::say_sources(given.map(PathBuf::as_path), diagnostics)
}

/// The plan by which the results in a folder were measured, and its files.
pub fn recorded_in(folder: &Path) -> Result<(Value, PlanFiles), Problem> {
    let (manifest, files) = record::Run::plan(folder)?;
    Ok((manifest.plan, files))
}

/// Measures, reports, and prints the result. Does not return in the outer process, if there is one.
pub fn measure(mut order: Measurement, diagnostics: &Diagnostics) -> Outcome {
    if let [part] = order.parts.as_mut_slice() {
        // No thread may listen to signals here: the lab is yet to be entered.
        let mut watcher = Following::new(diagnostics, Interrupt::by_flag()?);
        if part.plan.prepare(&mut watcher)? == End::Interrupted {
            diagnostics.note("interrupted; the same command continues with what is prepared");
            return Ok(Exit::Interrupted);
        }
        if let Some(text) = part.plan.only_prepared() {
            say(&text)?;
            return Ok(Exit::Done);
        }
    }
    let points: usize = order.parts.iter().map(|part| part.plan.points()).sum();
    if points > record::MAX_POINTS {
        let most = record::MAX_POINTS;
        let what = format!(
            "the plan has {points} points, and results of more than {most} cannot be read back"
        );
        let remedy = "measure it in parts, each into a folder of its own";
        return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
    }
    if order.parts.iter().any(|part| part.plan.needs_lab()) {
        let keep = order.parts.iter().any(|part| part.plan.keeps_rights());
        lab::enter(&lab::EnterOptions::new().keep_rights(keep))?;
    } else {
        order.use_up_rights(diagnostics)?;
    }
    if let Some(lab) = lab::entered() {
        record::Session::of_process(lab.outer);
    }
    let interrupt = Interrupt::listen()?;
    let options = order.lab_options();
    let mut opened = order.open(&options, &interrupt, diagnostics)?;
    let folder = opened.folder.clone();
    let mut ended = match order.measure_parts(&mut opened, options, &interrupt, diagnostics) {
        Ok(ended) => ended,
        Err(problem) => {
            opened.recorder.abandon();
            return Err(problem);
        }
    };
    if let Err(error) = opened.recorder.finish() {
        ended.unwritten.get_or_insert_with(|| error.into());
    }
    let interrupted = || {
        let more: String = order.parts.iter().map(|part| part.plan.to_resume()).collect();
        let shown = quoted(&folder.display().to_string());
        let again = format!("wiretax {} --resume {shown}{more}", order.command);
        diagnostics
            .note(format!("interrupted; what was measured is kept: continue with `{again}`"));
        Ok(Exit::Interrupted)
    };
    let unwritten = ended.unwritten.take();
    // What has ended may have ended early, whatever it says.
    if unwritten.is_none() && (ended.end == End::Interrupted || interrupt.came()) {
        return interrupted();
    }
    let results = Results::read(&folder, &order.questions, diagnostics).map_err(|problem| {
        match ended.out_of_time && problem.fault() == Fault::Measurement {
            true => problem.while_doing("time ran out before the first sample"),
            false => problem,
        }
    });
    if let Some(problem) = unwritten {
        // The report may be as hard to write as the sample was: the reason is the same.
        let _ = results.and_then(|results| results.publish(None, order.view));
        return Err(problem);
    }
    let results = results?;
    let html = results.publish(None, order.view)?;
    if order.view != View::Screen {
        diagnostics.note(format!("report: {}", html.display()));
    }
    match ended.problem.or_else(|| results.empty()) {
        Some(problem) => Err(problem),
        None if interrupt.came() => interrupted(),
        None => Ok(Exit::Done),
    }
}

/// A folder that is open for samples.
struct Opened {
    folder: PathBuf,
    finished: Finished,
    recorder: Recorder,
}

/// How all parts ended.
struct Ended {
    end: End,
    /// Whether the time was too short for a study's plan.
    out_of_time: bool,
    /// Why one of several studies could not go on.
    problem: Option<Problem>,
    /// Why the folder could not be written to. The samples before are in it.
    unwritten: Option<Problem>,
}

impl Measurement {
    /// Opens what needs rights over the machine, gives the results folder to the user who is to write there,
    /// and gives the rights up.
    fn use_up_rights(&mut self, diagnostics: &Diagnostics) -> Result<(), Problem> {
        let mut opened = false;
        for part in &mut self.parts {
            opened |= part.plan.open_machine()?;
        }
        if !opened {
            return Ok(());
        }
        match &self.out.resume {
            Some(folder) => reading::may_continue_in(folder)?,
            None => {
                let named = &mut self.out.out;
                let folder = named.get_or_insert_with(|| new_folder(&self.command, &self.parts));
                reading::hand_over(folder)?;
            }
        }
        rights::give_up("the measurement continues", diagnostics)
    }

    /// Whether it measures over links of a lab of this process: a guest has its own.
    fn uses_links(&self) -> bool {
        self.parts.iter().any(|part| part.study.uses_links() && part.plan.needs_lab())
    }

    /// A lab as the command line asks for it.
    fn lab_options(&self) -> LabOptions {
        let backend = self.lab.as_ref().map_or(Backend::Auto, |lab| lab.backend.into());
        let seed = self.parts.first().map_or(1, |part| part.plan.seed());
        // With two processors the pump has one to itself, and the nodes the other.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let (pump_cpu, node_cpu) = if processors > 1 { (Some(1), Some(0)) } else { (None, None) };
        let pump = pump::Options { cpu: pump_cpu, ..pump::Options::default() };
        LabOptions { seed, backend, pump, node_cpu }
    }

    /// Opens the folder: a new one with a manifest, or the one to resume. The lab measures itself unless
    /// it did so before.
    fn open(
        &self,
        options: &LabOptions,
        interrupt: &Interrupt,
        diagnostics: &Diagnostics,
    ) -> Result<Opened, Problem> {
        let backend = self.uses_links().then(|| backend(*options)).transpose()?;
        let session = record::Session::begin(false);
        let mut opened = match &self.out.resume {
            Some(folder) => {
                let resumed = Recorder::resume(folder, &self.recorded, session)?;
                if let Some(torn) = resumed.torn {
                    diagnostics.warning(format!("{}: {torn}", folder.display()));
                }
                let have = resumed.finished.len();
                diagnostics.note(format!("{} there already", counted(have, "sample")));
                let (finished, recorder) = (resumed.finished, resumed.recorder);
                Opened { folder: folder.clone(), finished, recorder }
            }
            None => {
                let folder = self.out.out.clone();
                let folder = folder.unwrap_or_else(|| new_folder(&self.command, &self.parts));
                let mut manifest = Manifest::new(self.recorded.clone(), session);
                self.describe(&mut manifest, backend);
                // The folder is claimed first: one that cannot be written is known before time is spent.
                let files = self.parts.iter().flat_map(|part| part.plan.files()).collect();
                let recorder = Recorder::create_with(&folder, manifest, &files)?;
                Opened { folder, finished: Finished::default(), recorder }
            }
        };
        let recorder = &mut opened.recorder;
        let manifest = recorder.manifest();
        let is_new = self.out.resume.is_none();
        let unwanted = self.lab.as_ref().is_some_and(|lab| lab.no_calibration)
            || backend == Some(Backend::Netem);
        let calibrated = if unwanted && is_new {
            calibration::leave_out(recorder)
        } else if backend.is_some() && !unwanted && manifest.calibration.is_none() {
            // Where this resumes, the session before was killed while the lab measured itself.
            calibration::calibrate(recorder, options, interrupt, diagnostics)
        } else {
            Ok(())
        };
        match calibrated {
            Ok(()) => Ok(opened),
            Err(problem) => {
                opened.recorder.abandon();
                Err(problem)
            }
        }
    }

    fn describe(&self, manifest: &mut Manifest, backend: Option<Backend>) {
        if self.parts.iter().any(|part| part.study.uses_links()) {
            manifest.libraries = tls::library_versions().into_iter().collect();
        }
        if let Some(backend) = backend {
            manifest.libraries.insert("link backend".to_owned(), backend.to_string());
        }
        for Part { study, plan } in &self.parts {
            let values = study.values().into_iter();
            let values = values.map(|(name, kind)| (name.to_owned(), kind)).collect();
            manifest.values.insert(study.name().to_owned(), values);
            plan.describe(manifest);
        }
    }

    /// Measures one study after the other. Where there are several, one that fails is reported and the
    /// others are measured all the same.
    fn measure_parts(
        &mut self,
        opened: &mut Opened,
        options: LabOptions,
        interrupt: &Interrupt,
        diagnostics: &Diagnostics,
    ) -> Result<Ended, Problem> {
        let captures = match self.keep_captures {
            true => Some(opened.recorder.folder().make_folder("captures")?.path().to_owned()),
            false => None,
        };
        conn::qlog::write_to(self.qlog.as_deref())?;
        let (out_of_time, problem, unwritten) = (false, None, None);
        let mut ended = Ended { end: End::Complete, out_of_time, problem, unwritten };
        let several = self.parts.len() > 1;
        let last = self.parts.last().map(|part| part.study.name());
        // What was left out for want of time is measured by resuming.
        let resumed = self.out.resume.is_some();
        for Part { study, plan } in &mut self.parts {
            let mut watcher = Following::new(diagnostics, interrupt.clone());
            let session =
                Session::new(study.name(), &mut opened.recorder, &opened.finished, &mut watcher);
            let budget = if resumed { None } else { plan.budget() };
            let mut session =
                session.in_lab(options).keeping_captures(captures.clone()).within(budget);
            let measured = plan.measure(&mut session);
            watcher.finish();
            match measured {
                Ok(End::Interrupted) => {
                    ended.end = End::Interrupted;
                    break;
                }
                // The first answer need not wait for the last study, whose own comes with the screen at once.
                Ok(end @ (End::Complete | End::OutOfTime)) => {
                    ended.out_of_time |= end == End::OutOfTime;
                    if self.view == View::Screen && Some(study.name()) != last {
                        // What cannot be read is reported at the end.
                        let found = Results::so_far(&opened.folder, *study, &self.questions);
                        if let Ok(Some(found)) = found {
                            let row = answer_row(&found, terminal_width());
                            diagnostics.notes(&row);
                        }
                    }
                }
                Err(problem) if several && problem.fault() != Fault::Results => {
                    let name = words(*study);
                    diagnostics.warning(format!("the study {name} could not continue: {problem}"));
                    let problem = problem.while_doing(format!("the study {name}"));
                    ended.problem = ended.problem.or(Some(problem));
                }
                Err(problem) if problem.fault() == Fault::Results => {
                    ended.unwritten = Some(problem);
                    break;
                }
                Err(problem) => return Err(problem),
            }
        }
        Ok(ended)
    }
}

/// The folder of results for which none was named.
fn new_folder(command: &str, parts: &[Part]) -> PathBuf {
    let name = parts.last().map_or("", |part| part.study.name());
    let name = if parts.len() > 1 { command } else { name };
    let started = record::Session::begin(false).started;
    new_results_folder(name, &started.strftime("%Y-%m-%d").to_string())
}

/// What carries the frames of links here.
fn backend(options: LabOptions) -> Result<Backend, Problem> {
    Ok(Lab::new(options).while_doing(|| "the lab cannot be made")?.backend())
}

/// Shows on stderr how far a study is.
struct Following<'a> {
    diagnostics: &'a Diagnostics,
    progress: Progress,
    interrupt: Interrupt,
}

impl<'a> Following<'a> {
    fn new(diagnostics: &'a Diagnostics, interrupt: Interrupt) -> Following<'a> {
        Following { diagnostics, progress: diagnostics.progress(), interrupt }
    }

    fn finish(self) {
        self.progress.finish();
    }
}

impl Watcher for Following<'_> {
    fn progress(&mut self, step: &str, done: Duration, total: Duration) {
        self.progress.show(step, done, total);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.came()
    }

    fn warning(&mut self, what: &str, remedy: Option<&str>) {
        self.progress.aside(|| self.diagnostics.warning_with_remedy(what, remedy));
    }

    fn note(&mut self, what: &str) {
        self.progress.aside(|| self.diagnostics.note(what));
    }
}

/// The parts of a plan in a manifest, with the studies that they are of.
///
/// # Errors
/// It has a plan of no study, or of one that this program does not have, or one that cannot be read.
pub fn recorded_parts(recorded: &Value, files: &PlanFiles) -> Result<Vec<Part>, Problem> {
    let of = |what: String| Problem::new(Fault::Results, what).with_remedy(OTHER_VERSION);
    let plans = recorded.as_object().filter(|plans| !plans.is_empty());
    let plans = plans.ok_or_else(|| of("the manifest has no plan of a study".to_owned()))?;
    if let Some(name) = plans.keys().find(|name| !STUDIES.iter().any(|it| it.name() == *name)) {
        return Err(of(format!("the manifest has a plan of `{name}`, which is not a known study")));
    }
    let found = STUDIES.iter().filter_map(|study| Some((*study, recorded.get(study.name())?)));
    let part = |(study, value): (&'static dyn Study, &Value)| {
        let plan = study.recorded_plan(value, files, &Options::none());
        let plan =
            plan.while_doing(|| format!("the plan of `{}` in the manifest", study.name()))?;
        Ok(Part { study, plan })
    };
    found.map(part).collect()
}
