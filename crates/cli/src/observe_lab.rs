//! `wiretax observe lab`, and its part of `wiretax run`: captures with known answers, and what is made
//! of them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use observe::truth::{self, Plan, TruthError};
use record::{Manifest, Recorder, Session};
use serde_json::json;

use crate::args::LabArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::new_results_folder;
use crate::interrupt::Interrupt;
use crate::lab_run::options_of_lab;
use crate::observe_args::ObserveLabArgs;
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
    let mut recorder = Recorder::create(&folder, manifest).or_exit(Exit::Results)?;
    let keep = args.keep_captures.then(|| folder.join("captures"));
    let whole = what.make(&mut recorder, &args.lab, keep, &interrupt, talk)?;
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

    /// Makes them, and records a sample of each connection. False if it was interrupted; what was
    /// made until then is recorded.
    pub fn make(
        &self,
        recorder: &mut Recorder,
        lab: &LabArgs,
        keep: Option<PathBuf>,
        interrupt: &Interrupt,
        talk: &Talk,
    ) -> Result<bool, Failed> {
        if let Some(folder) = &keep {
            fs::create_dir_all(folder)
                .with_context(|| format!("the folder {} cannot be made", folder.display()))
                .or_exit(Exit::Results)?;
        }
        let mut plan = Plan::quick(options_of_lab(lab, self.seed));
        for (_, count) in &mut plan.visits {
            *count = count.saturating_mul(self.times);
        }
        plan.captures = keep;
        plan.command = format!("wiretax observe lab --repeat {} --seed {}", self.times, self.seed);
        let began = Instant::now();
        let mut progress = talk.progress();
        let mut show = |step: &str, done: usize, total: usize| {
            let each = |count| EACH * u32::try_from(count).unwrap_or(u32::MAX);
            let done = each(done).max(began.elapsed().min(each(total)));
            progress.show(&format!("known clients: {step}"), done, each(total));
        };
        let made = truth::run(&plan, &mut show, &|| interrupt.came());
        progress.finish();
        let truth = made.map_err(failed)?;
        for sample in &truth.samples {
            recorder.record(sample).or_exit(Exit::Results)?;
        }
        Ok(!truth.stopped)
    }
}

fn failed(error: TruthError) -> Failed {
    let exit = match &error {
        TruthError::Lab(lab::Error::CaptureFile { .. }) => Exit::Results,
        TruthError::Lab(_) => Exit::Machine,
        _ => Exit::Measurement,
    };
    Failed { exit, error: error.into() }
}
