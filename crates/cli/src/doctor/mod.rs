//! `wiretax doctor`: what this machine can do, what is missing, how to get it.

use ::guest::{Guest, Versions};
use fault::{Explain, Fault, OrProblem, one_line};

use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::options::JsonArg;
use crate::output::{say_json, say_text};

/// Looks at the machine and says what it found. The status says whether studies can run at all.
pub fn doctor(args: &JsonArg, diagnostics: &Diagnostics) -> Outcome {
    let mut facts = lab::doctor();
    facts.push(browser());
    facts.push(guest());
    if args.json {
        say_json(&(serde_json::to_string_pretty(&facts).blame(Fault::Results)? + "\n"))?;
    } else {
        say_text(&facts.iter().map(described).collect::<String>())?;
    }
    let missing = facts.iter().filter(|fact| !fact.ok && fact.required).count();
    if missing > 0 {
        diagnostics
            .note("studies cannot run here until what is needed is there; `wiretax probe` can");
        return Ok(Exit::Machine);
    }
    Ok(Exit::Done)
}

/// Whether there is a real browser to load pages beside our loader.
fn browser() -> lab::Fact {
    let name = "headless Chromium";
    let (ok, detail, remedy) = match chromium::find(None) {
        Ok(program) => (true, program.display().to_string(), None),
        Err(missing) => {
            let detail = format!("{missing}: `wiretax page --loader chromium` cannot run");
            (false, detail, missing.remedy().map(|remedy| remedy.into_owned()))
        }
    };
    lab::Fact { name, ok, required: false, detail, remedy }
}

/// Whether there is a machine in virtual time.
fn guest() -> lab::Fact {
    let name = "guest (virtual time)";
    let found = Guest::find().and_then(|guest| guest.versions());
    let (ok, detail, remedy) = match found {
        Ok(Versions { kernel, qemu }) => (true, format!("Linux {kernel} in QEMU {qemu}"), None),
        Err(error) => {
            let detail = format!("{error}: `--clock virtual` is not available");
            (false, detail, error.remedy().map(|remedy| remedy.into_owned()))
        }
    };
    lab::Fact { name, ok, required: false, detail, remedy }
}

fn described(fact: &lab::Fact) -> String {
    let sign = if fact.ok { "yes" } else { "NO " };
    let remedy = fact.remedy.as_ref();
    let remedy = remedy.map(|remedy| format!("     {:30} to get it: {remedy}\n", ""));
    format!("{sign}  {:30} {}\n{}", fact.name, one_line(&fact.detail), remedy.unwrap_or_default())
}
