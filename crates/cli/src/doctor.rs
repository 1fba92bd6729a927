//! `wiretax doctor`: what this machine can do, what is missing, how to get it.

use std::io::Write;

use crate::args::JsonArg;
use crate::exit::{Exit, OrExit, Outcome};
use crate::talk::Talk;

/// Looks at the machine and says what it found. The status says whether studies can run at all.
pub fn doctor(args: &JsonArg, talk: &Talk) -> Outcome {
    let facts = lab::doctor();
    let mut stdout = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &facts).or_exit(Exit::Results)?;
        writeln!(stdout).or_exit(Exit::Results)?;
    } else {
        for fact in &facts {
            let sign = if fact.ok { "yes" } else { "NO " };
            writeln!(stdout, "{sign}  {:28} {}", fact.name, fact.detail).or_exit(Exit::Results)?;
            if let Some(remedy) = &fact.remedy {
                writeln!(stdout, "     {:28} to get it: {remedy}", "").or_exit(Exit::Results)?;
            }
        }
    }
    let missing = facts.iter().filter(|fact| !fact.ok && fact.required).count();
    if missing > 0 {
        talk.note("studies cannot run here until what is needed is there; `wiretax probe` can");
        return Ok(Exit::Machine);
    }
    Ok(Exit::Done)
}
