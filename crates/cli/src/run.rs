//! `wiretax run`: every study at a quick scale, one report.

use handshake::Plan;

use crate::args::RunArgs;
use crate::exit::{Exit, OrExit, Outcome};
use crate::lab_run::{LabRun, measure, plan_has, plan_of};
use crate::observe_lab::Captures;
use crate::report::Question;
use crate::talk::Talk;

/// Runs every study that there is.
pub fn run(args: &RunArgs, talk: &Talk) -> Outcome {
    let plan = match (&args.out.resume, args.seed) {
        (Some(folder), None) => plan_of(folder)?,
        (_, seed) => {
            let plan = Plan::built_in("quick").or_exit(Exit::Usage)?;
            Plan { seed: seed.unwrap_or(plan.seed), ..plan }
        }
    };
    let stacks = match (&args.out.resume, args.seed) {
        // Of results from before there was this study nothing of it is resumed.
        (Some(folder), None) => crate::stacks::plan_of(folder).ok(),
        (_, seed) => {
            let plan = stacks::Plan::built_in("quick").or_exit(Exit::Usage)?;
            Some(stacks::Plan { seed: seed.unwrap_or(plan.seed), ..plan })
        }
    };
    let question = Question::read("tcp+tls12", None, plan.seed)?;
    // Results from before there was this study are resumed without it: their plan has none of it.
    let resumed = args.out.resume.as_deref();
    let observed = resumed.is_none_or(|folder| plan_has(folder, "observe"));
    let captures = Captures { seed: plan.seed, times: 1 };
    let run = LabRun {
        name: "run",
        plan: &plan,
        observe: observed.then_some(&captures),
        stacks: stacks.as_ref(),
        out: &args.out,
        lab: &args.lab,
        json: &args.json,
        question: &question,
        keep_captures: false,
    };
    measure(&run, talk)
}
