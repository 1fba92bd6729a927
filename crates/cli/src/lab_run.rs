//! What every measuring command does around its study: the namespaces, the folder, the lab's
//! measurement of itself, the manifest; at the end the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fault::WhileDoing;
use handshake::{Bench, Plan};
use lab::LabOptions;
use record::{Finished, Manifest, Recorder, Session};
use serde_json::json;
use study::{End, Watcher};

use crate::args::{JsonArg, LabArgs, LinkBackend, OutArgs};
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::{new_results_folder, quoted};
use crate::interrupt::Interrupt;
use crate::observe_lab::{Captures, failed};
use crate::report::{Question, Results};
use crate::stacks::{Ready, Scratch};
use crate::talk::{Progress, Talk};

/// One measuring command.
pub struct LabRun<'a> {
    /// The command's name, for the folder.
    pub name: &'a str,
    pub plan: &'a Plan,
    /// The observe study's part.
    pub observe: Option<&'a Captures>,
    /// The stacks study's part, measured after the lab is gone.
    pub stacks: Option<&'a stacks::Plan>,
    pub out: &'a OutArgs,
    pub lab: &'a LabArgs,
    pub json: &'a JsonArg,
    pub question: &'a Question,
    pub keep_captures: bool,
}

/// Measures, reports, and prints the result. Does not return in the outer process.
pub fn measure(run: &LabRun<'_>, talk: &Talk) -> Outcome {
    lab::enter(&lab::EnterOptions::new()).or_exit(Exit::Machine)?;
    let interrupt = Interrupt::listen()?;
    let options = lab_options(run);
    let mut bench = Bench::new(options)
        .context("the lab cannot be made; `wiretax doctor` says what is missing")
        .or_exit(Exit::Machine)?;
    let (folder, finished, mut recorder) = open(run, &options, bench.backend(), talk)?;
    let mut following = Following { talk, progress: talk.progress(), interrupt: &interrupt };
    let captures = run.keep_captures.then(|| folder.join("captures"));
    if let Some(captures) = &captures {
        std::fs::create_dir_all(captures)
            .with_context(|| format!("the folder {} cannot be made", captures.display()))
            .or_exit(Exit::Results)?;
    }
    let session = study::Session::new("handshake", &mut recorder, &finished, &mut following);
    let session = session.keeping_captures(captures).within(run.plan.budget);
    let ended = bench.run(run.plan, &mut { session });
    following.progress.finish();
    drop(bench);
    let mut ended = ended.map_err(failed)?;
    if let (End::Complete, Some(captures)) = (ended, run.observe)
        && !captures.make((&mut recorder, &finished), run.lab, None, &interrupt, talk)?
    {
        ended = End::Interrupted;
    }
    if let (End::Complete, Some(plan)) = (ended, run.stacks) {
        let scratch = Scratch::make()?;
        let ready = Ready::of_run(plan.clone(), &scratch)?;
        let stacks = ready.measure(scratch, &finished, &mut recorder, &interrupt, talk)?;
        if stacks.end == stacks::End::Interrupted {
            ended = End::Interrupted;
        }
    }
    recorder.finish().or_exit(Exit::Results)?;
    if ended == End::Interrupted {
        let shown = quoted(&folder.display().to_string());
        let again = format!("wiretax {} --resume {shown}", run.name);
        talk.note(format!("interrupted; what was measured is kept: go on with `{again}`"));
        return Ok(Exit::Interrupted);
    }
    let results = Results::read(&folder, run.plan.seed, talk)?;
    let html = results.publish(&folder, None, run.question, run.json.json)?;
    talk.note(format!("report: {}", html.display()));
    Ok(Exit::Done)
}

fn lab_options(run: &LabRun<'_>) -> LabOptions {
    options_of_lab(run.lab, run.plan.seed)
}

/// A lab as the command line asks for it.
pub fn options_of_lab(lab: &LabArgs, seed: u64) -> LabOptions {
    let backend = match lab.backend {
        LinkBackend::Auto => lab::Backend::Auto,
        LinkBackend::Veth => lab::Backend::Veth,
        LinkBackend::Tap => lab::Backend::Tap,
        LinkBackend::Netem => lab::Backend::Netem,
    };
    // With two processors the pump has one to itself, and the nodes the other.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (pump_cpu, node_cpu) = if processors > 1 { (Some(1), Some(0)) } else { (None, None) };
    let pump = pump::Options { cpu: pump_cpu, ..pump::Options::default() };
    LabOptions { seed, backend, pump, node_cpu }
}

/// Opens the folder: a new one with a manifest, or the one to resume.
fn open(
    run: &LabRun<'_>,
    options: &LabOptions,
    backend: lab::Backend,
    talk: &Talk,
) -> Result<(PathBuf, Finished, Recorder), Failed> {
    let mut plan = json!({ "handshake": run.plan.value() });
    if let Some(captures) = run.observe {
        plan["observe"] = captures.described();
    }
    if let Some(stacks) = run.stacks {
        plan["stacks"] = json!(stacks);
    }
    let session = Session::begin(false);
    if let Some(folder) = &run.out.resume {
        let resumed = Recorder::resume(folder, &plan, session).or_exit(Exit::Results)?;
        let have = resumed.finished.len();
        talk.note(format!("{have} samples are there already; measuring the others"));
        return Ok((folder.clone(), resumed.finished, resumed.recorder));
    }
    let date = session.started.strftime("%Y-%m-%d").to_string();
    let folder = run.out.out.clone().unwrap_or_else(|| new_results_folder(run.name, &date));
    let mut manifest = Manifest::new(plan, session);
    manifest.libraries = tls::library_versions().into_iter().collect();
    manifest.libraries.insert("link backend".to_owned(), backend.to_string());
    // The folder is claimed first: one that cannot be written is known before time is spent.
    let mut recorder = Recorder::create(&folder, manifest).or_exit(Exit::Results)?;
    if run.lab.no_calibration || backend == lab::Backend::Netem {
        recorder
            .update_manifest(|manifest| {
                manifest.warn(record::Warning::new(
                    "the lab was not calibrated",
                    "leave out --no-calibration and --backend netem",
                ));
            })
            .or_exit(Exit::Results)?;
    } else {
        let calibration = calibrate(options, talk)?;
        let value = serde_json::to_value(&calibration).or_exit(Exit::Results)?;
        recorder
            .update_manifest(|manifest| {
                for warning in calibration.warnings() {
                    manifest.warn(record::Warning::new(warning.problem, warning.remedy));
                }
                manifest.calibration = Some(value);
            })
            .or_exit(Exit::Results)?;
    }
    Ok((folder, Finished::default(), recorder))
}

/// The lab measures itself, in a lab of its own.
fn calibrate(options: &LabOptions, talk: &Talk) -> Result<pump::Calibration, Failed> {
    let mut progress = talk.progress();
    let expected = Duration::from_secs(3);
    let calibration = lab::calibrate(options, |done, step| {
        progress.show(&format!("calibrating: {step}"), expected.mul_f64(done), expected);
    });
    progress.finish();
    calibration.or_exit(Exit::Measurement)
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

    fn warning(&mut self, what: &str, remedy: Option<&str>) {
        self.talk.warning_with_remedy(what, remedy);
    }

    fn note(&mut self, what: &str) {
        self.talk.note(what);
    }
}

/// The plan that the results in a folder were measured by.
pub fn plan_of(folder: &Path) -> Result<Plan, Failed> {
    let (manifest, _) = record::Run::stream(folder).or_exit(Exit::Results)?;
    let plan = manifest.plan.get("handshake").cloned().unwrap_or_default();
    Plan::recorded(&plan)
        .while_doing(|| format!("the plan in {} cannot be read", folder.display()))
        .map_err(failed)
}

/// Whether results in a folder were measured by a plan with a part of this name.
pub fn plan_has(folder: &Path, part: &str) -> bool {
    record::Run::stream(folder).is_ok_and(|(manifest, _)| manifest.plan.get(part).is_some())
}
