//! `wiretax chain`: what a server's certificates cost, in bytes and round trips.

mod advice;
mod args;
mod cost;
mod made;
mod show;
mod source;

use ::lab::{EnterOptions, LabOptions};
use fault::{Fault, OrProblem, Problem};
use testbed::{Counted, ShowOptions};
use tls::Group;
use tls::chain::ChainFault;

pub use self::args::ChainArgs;
pub use self::cost::TRANSPORT_PARAMETERS;
use self::cost::Way;
use self::source::Source;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::ends_at_once;
use crate::output::{say_json, say_text};
use crate::reach::without_server;

/// The schema of what `--json` prints.
const SCHEMA: u32 = 1;

/// Examines the chains, and prints what they cost.
pub fn chain(args: &ChainArgs, diagnostics: &Diagnostics) -> Outcome {
    if let (None, Some(option)) = (&args.server, args.reach.given()) {
        return Err(without_server(option));
    }
    if args.measure {
        // What is wrong with the files is said before the lab is entered, where all begins anew.
        if !::lab::inside() {
            drop(source::sources(&ChainArgs { make: Vec::new(), ..args.clone() }, diagnostics)?);
        }
        ::lab::enter(&EnterOptions::new())?;
    }
    ends_at_once(diagnostics)?;
    let sources = source::sources(args, diagnostics)?;
    let mut ways: Vec<Vec<Way>> = sources.iter().map(|one| cost::ways(one, args)).collect();
    if args.measure {
        let counted = measure(&sources, &ways, args)?;
        for (number, (source, ways)) in sources.iter().zip(&mut ways).enumerate() {
            cost::note(ways, number, source, &counted);
        }
    }
    let advice: Vec<_> =
        sources.iter().zip(&ways).map(|(one, ways)| advice::advice(one, ways, args)).collect();
    if args.json.json {
        let value = show::json(&sources, &ways, &advice, args);
        say_json(&format!("{}\n", serde_json::to_string_pretty(&value).blame(Fault::Results)?))?;
    } else {
        say_text(&show::text(&sources, &ways, args))?;
    }
    for (source, advice) in sources.iter().zip(&advice) {
        for oddity in &source.oddities {
            let what = format!("{}: {}", source.name, oddity.what);
            diagnostics.warning_with_remedy(what, Some(oddity.remedy));
        }
        for fault in source.faults.iter().filter(|fault| !is_about_time(fault)) {
            let what = format!("{}: the certificate is not trusted: {fault}", source.name);
            diagnostics.warning_with_remedy(what, Some(&fault.remedy()));
        }
        if let Some(finding) = &source.finding {
            let what = format!("{}: {}", source.name, finding.text);
            diagnostics.warning_with_remedy(what, Some(&finding.remedy));
        }
        for line in advice {
            diagnostics.advice(&format!("{}: {line}", source.name));
        }
    }
    Ok(Exit::Done)
}

/// Whether an oddity says the same.
fn is_about_time(fault: &ChainFault) -> bool {
    matches!(fault, ChainFault::Expired { .. } | ChainFault::NotYetValid { .. })
}

/// Counts in the lab what was computed.
fn measure(
    sources: &[Source],
    ways: &[Vec<Way>],
    args: &ChainArgs,
) -> Result<Vec<Counted>, Problem> {
    let each = sources.iter().zip(ways).enumerate();
    let showings: Vec<_> = each
        .flat_map(|(number, (source, ways))| {
            ways.iter().map(move |way| cost::showing(number, source, way))
        })
        .collect();
    let groups = match args.group {
        Group::X25519MlKem768 => vec![Group::X25519MlKem768, Group::X25519],
        other => vec![other],
    };
    let initial_window = Some(args.initial_window.into());
    let options = ShowOptions { groups, initial_window, lab: LabOptions::default() };
    testbed::count(&cost::shown(sources), &showings, &options).map_err(Problem::from)
}
