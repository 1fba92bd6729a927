//! `wiretax observe lab`, and its part of `wiretax run`: captures with known answers, and what is made
//! of them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use fault::{Fault, Problem};
use observe::Lab;
use observe::truth::STUDY;
use record::{Finished, Manifest, Recorder, Session};
use serde_json::json;
use study::{End, Options, Study, Watcher};

use crate::args::LabArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::files::new_results_folder;
use crate::interrupt::Interrupt;
use crate::lab_run::options_of_lab;
use crate::observe_args::ObserveLabArgs;
use crate::report::{Question, Results};
use crate::talk::{Progress, Talk};

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
    let finished = Finished::default();
    let whole = what.make((&mut recorder, &finished), &args.lab, keep, &interrupt, talk)?;
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
    /// How often the plan's connections are made.
    pub times: u32,
}

impl Captures {
    /// As a manifest has it.
    pub fn described(&self) -> serde_json::Value {
        json!({ "plan": "quick", "seed": self.seed, "times": self.times })
    }

    /// Makes those that are not finished, and records a sample of each connection. False if it was
    /// interrupted; what was made until then is recorded.
    pub fn make(
        &self,
        (recorder, finished): (&mut Recorder, &Finished),
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
        let mut plan = Lab.recorded_plan(&self.described(), &Options::none()).map_err(failed)?;
        let mut following = Following { talk, progress: talk.progress(), interrupt };
        let session = study::Session::new(STUDY, recorder, finished, &mut following);
        let mut session =
            session.in_lab(options_of_lab(lab, self.seed)).keeping_captures(keep);
        let end = plan.measure(&mut session);
        following.progress.finish();
        Ok(end.map_err(failed)? != End::Interrupted)
    }
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
        self.talk.warning(what);
        if let Some(remedy) = remedy {
            self.talk.advice(remedy);
        }
    }

    fn note(&mut self, what: &str) {
        self.talk.note(what);
    }
}

/// How the program ends with a problem.
pub fn failed(problem: Problem) -> Failed {
    let exit = match problem.fault() {
        Fault::Caller => Exit::Usage,
        Fault::Machine => Exit::Machine,
        Fault::Results => Exit::Results,
        Fault::Peer | Fault::Measurement => Exit::Measurement,
    };
    let hint = problem.remedy().map(|remedy| format!("; hint: {remedy}")).unwrap_or_default();
    Failed { exit, error: anyhow::anyhow!("{problem}{hint}") }
}
