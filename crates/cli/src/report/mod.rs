//! `wiretax report`: the report of results, built again without measuring.

mod args;

use std::path::PathBuf;

use clap::{ArgMatches, FromArgMatches};
use fault::{Fault, OrProblem};
use study::Options;

pub use self::args::ReportArgs;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::files::check_apart;
use crate::interrupt::ends_at_once;
use crate::studies::{Questions, Results, View};

/// Builds the report of a folder again.
pub fn report(matches: &ArgMatches, diagnostics: &Diagnostics) -> Outcome {
    let args = ReportArgs::from_arg_matches(matches).blame(Fault::Caller)?;
    let questions = Questions::of(&Options::new(matches))?;
    if let Some(html) = &args.html {
        let own = ["manifest.json", "samples.jsonl", "lock"].map(|name| args.results.join(name));
        check_apart(&own.each_ref().map(PathBuf::as_path), &[html.as_path()])?;
    }
    ends_at_once(diagnostics)?;
    let results = Results::read(&args.results, &questions, diagnostics)?;
    let view = View::Tables.or_json(args.json.json);
    let html = results.publish(args.html.as_deref(), view)?;
    diagnostics.note(format!("report: {}", html.display()));
    results.empty().map_or(Ok(Exit::Done), Err)
}
