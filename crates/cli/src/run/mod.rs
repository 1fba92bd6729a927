//! `wiretax run`: every study at a quick scale, one report.

mod args;

use fault::{Fault, OrProblem};
use study::Options;

pub use self::args::RunArgs;
use crate::diagnostics::Diagnostics;
use crate::exit::Outcome;
use crate::studies::{
    Measurement, Part, Questions, STUDIES, View, at_scale, measure, recorded_in, recorded_parts,
    say_sources,
};

/// Measures each study's plan of the scale, or continues with those that a folder was measured by.
pub fn run(args: RunArgs, diagnostics: &Diagnostics) -> Outcome {
    let (parts, recorded) = match (&args.out.resume, args.seed) {
        (Some(folder), None) => {
            let (recorded, files) = recorded_in(folder)?;
            (recorded_parts(&recorded, &files)?, recorded)
        }
        (_, seed) => {
            let (mut parts, mut recorded) = (Vec::new(), serde_json::Map::new());
            for study in STUDIES.iter().filter(|study| study.in_run()) {
                let matches =
                    at_scale(*study, &args.scale, seed.unwrap_or(1)).blame(Fault::Caller)?;
                say_sources(*study, &matches, diagnostics)?;
                let plan = study.plan(&Options::new(&matches))?;
                recorded.insert(study.name().to_owned(), plan.value());
                parts.push(Part { study: *study, plan });
            }
            (parts, recorded.into())
        }
    };
    let view = if args.tables { View::Tables } else { View::Screen }.or_json(args.json.json);
    let measurement = Measurement {
        command: "run".to_owned(),
        parts,
        recorded,
        questions: Questions::of(&Options::none())?,
        out: args.out,
        lab: Some(args.lab),
        view,
        keep_captures: false,
        qlog: None,
    };
    measure(measurement, diagnostics)
}
