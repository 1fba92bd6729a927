//! `wiretax report`: the report of results, built again without measuring.

use clap::{ArgMatches, FromArgMatches};
use fault::{Fault, OrProblem};
use study::Options;

use crate::args::ReportArgs;
use crate::exit::{Exit, Outcome};
use crate::studies::{Questions, Results};
use crate::talk::Talk;

/// Builds the report of a folder again.
pub fn report(matches: &ArgMatches, talk: &Talk) -> Outcome {
    let args = ReportArgs::from_arg_matches(matches).blame(Fault::Caller)?;
    let questions = Questions::of(&Options::new(matches))?;
    let results = Results::read(&args.results, &questions, talk)?;
    let html = results.publish(&args.results, args.html.as_deref(), args.json.json)?;
    talk.note(format!("report: {}", html.display()));
    Ok(Exit::Done)
}
