//! `wiretax observe query`: SQL over the records of `--parquet`, where the program was built with it.

use crate::diagnostics::Diagnostics;
use crate::exit::Outcome;
use crate::observe::args::QueryArgs;

/// Answers a question in SQL.
#[cfg(feature = "query")]
pub fn query(args: &QueryArgs, diagnostics: &Diagnostics) -> Outcome {
    use crate::exit::Exit;
    use crate::output::{Form, stdout};
    use query::{Format, QUESTIONS};

    let Some(question) = &args.question else {
        let mut text = String::from("Questions:\n");
        for question in QUESTIONS {
            text += &format!("  {:18} {}\n", question.name, question.about());
        }
        crate::output::say(&text)?;
        diagnostics
            .advice("give one of these names, or SQL over the tables `connections` and `endings`");
        return Ok(Exit::Done);
    };
    let format = if args.json.json { Format::Json } else { Format::Table };
    let form = if args.json.json { Form::Json } else { Form::Text };
    match query::run(&args.records, question, format, &mut stdout(form)) {
        // A reader that has gone away (`| head`) is no failure.
        Err(query::Error::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other?,
    }
    Ok(Exit::Done)
}

/// Says how to have it.
#[cfg(not(feature = "query"))]
pub fn query(args: &QueryArgs, _diagnostics: &Diagnostics) -> Outcome {
    use fault::{Fault, Problem};

    let remedy = format!(
        "build it with `make query` in a checkout, or ask {} with any engine that reads Parquet",
        args.records.display()
    );
    Err(Problem::new(Fault::Machine, "this program was built without its SQL engine")
        .with_remedy(remedy))
}
