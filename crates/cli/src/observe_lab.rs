//! `wiretax observe lab`, and its part of `wiretax run`: captures with known answers, and what is made
//! of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use observe_study::truth::{self, Plan, TruthError};
use record::{Manifest, Recorder, Session};
use serde_json::json;

use crate::args::LabArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::new_results_folder;
use crate::interrupt::Interrupt;
use crate::lab_run::options_of_lab;
use crate::observe_args::ObserveLabArgs;
use crate::observe_truth::{FOLDER, LOGS};
use crate::report::{Question, Results};
use crate::talk::Talk;

/// Time that one connection of the quick plan takes, about: many are under way at once.
const EACH: Duration = Duration::from_millis(45);

/// Makes the captures, reports, and prints the result. Does not return in the outer process.
pub fn lab(args: &ObserveLabArgs, talk: &Talk) -> Outcome {
    lab::enter(&lab::EnterOptions::new()).or_exit(Exit::Machine)?;
    let interrupt = Interrupt::listen()?;
    let session = Session::begin(false);
    let date = session.started.strftime("%Y-%m-%d").to_string();
    let folder = args.out.clone().unwrap_or_else(|| new_results_folder("observe", &date));
    let what = Captures { seed: args.seed, times: args.repeat };
    let mut manifest = Manifest::new(json!({ "observe": what.described() }), session);
    manifest.libraries = tls::library_versions().into_iter().collect();
    let recorder = Recorder::create(&folder, manifest).or_exit(Exit::Results)?;
    let whole = what.make(&folder, &args.lab, &interrupt, talk)?;
    recorder.finish().or_exit(Exit::Results)?;
    let question = Question::read("tcp+tls12", None, args.seed)?;
    let results = Results::read(&folder, args.seed, talk)?;
    let html = results.publish(&folder, None, &question, args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    if !whole {
        talk.note("interrupted; the connections made until then are in the report");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

/// What is made.
pub struct Captures {
    /// Seed of every random draw.
    pub seed: u64,
    /// How often the quick plan's connections are made.
    pub times: u32,
}

impl Captures {
    /// As a manifest has it.
    pub fn described(&self) -> serde_json::Value {
        json!({ "plan": "quick", "seed": self.seed, "times": self.times })
    }

    /// Whether a folder has them already.
    pub fn are_in(folder: &Path) -> bool {
        folder.join(FOLDER).join(LOGS).exists()
    }

    /// Makes them in a folder of results. False if it was interrupted; what was made until then is
    /// kept.
    pub fn make(
        &self,
        folder: &Path,
        lab: &LabArgs,
        interrupt: &Interrupt,
        talk: &Talk,
    ) -> Result<bool, Failed> {
        let folder = folder.join(FOLDER);
        // Of a run that was killed, captures without their logs.
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("{} cannot be replaced", folder.display()))
                .or_exit(Exit::Results)?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))
            .or_exit(Exit::Results)?;
        let mut plan = Plan::quick(options_of_lab(lab, self.seed));
        for (_, count) in &mut plan.visits {
            *count = count.saturating_mul(self.times);
        }
        plan.captures = Some(folder.clone());
        let began = Instant::now();
        let mut progress = talk.progress();
        let mut show = |step: &str, done: usize, total: usize| {
            let each = |count| EACH * u32::try_from(count).unwrap_or(u32::MAX);
            let done = each(done).min(began.elapsed());
            progress.show(&format!("clients with known answers: {step}"), done, each(total));
        };
        let made = truth::run(&plan, &mut show, &|| interrupt.came());
        progress.finish();
        let truth = made.map_err(failed)?;
        let text = serde_json::to_string_pretty(&truth.agreement).or_exit(Exit::Results)?;
        write(&folder.join(LOGS), &text).or_exit(Exit::Results)?;
        Ok(!truth.stopped)
    }
}

fn write(path: &PathBuf, text: &str) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    let new = path.with_extension("new");
    fs::write(&new, text).with_context(failed)?;
    fs::rename(&new, path).with_context(failed)
}

fn failed(error: TruthError) -> Failed {
    let exit = match &error {
        TruthError::Lab(lab::Error::CaptureFile { .. }) => Exit::Results,
        TruthError::Lab(_) => Exit::Machine,
        _ => Exit::Measurement,
    };
    Failed { exit, error: error.into() }
}
