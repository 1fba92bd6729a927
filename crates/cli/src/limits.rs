//! Limits of the system on this process (`ulimit`) under which it would be ended without a word: an overflow of the
//! stack and a failed allocation abort a program.

use clap::ArgMatches;
use fault::{Fault, Problem};
use rustix::process::{Resource, getrlimit};

use crate::studies;

/// Stack of the first thread. The commands' options and plans take less than half of it.
const STACK: u64 = 1 << 20;
/// Address space of the commands that measure: threads and rings of the lab, twice what aborts.
const ADDRESS_SPACE: u64 = 1 << 30;
/// The commands that measure, besides the studies.
const MEASURE: [&str; 4] = ["lab", "run", "ech", "load"];

/// Checks the stack: before the command line is read, which takes some.
///
/// # Errors
/// It is too small. The machine's fault.
pub fn check_stack() -> Result<(), Problem> {
    check(Resource::Stack, STACK, "stack size", "ulimit -s")
}

/// Checks the address space for a command.
///
/// # Errors
/// It is too small. The machine's fault.
pub fn check_memory(matches: &ArgMatches) -> Result<(), Problem> {
    let measures = matches.subcommand_name().is_some_and(|name| MEASURE.contains(&name))
        || studies::find(matches).is_some();
    match measures {
        true => check(Resource::As, ADDRESS_SPACE, "address space", "ulimit -v"),
        false => Ok(()),
    }
}

fn check(resource: Resource, needed: u64, what: &str, command: &str) -> Result<(), Problem> {
    let granted = getrlimit(resource).current;
    let Some(granted) = granted.filter(|granted| *granted < needed) else { return Ok(()) };
    let (granted, kilobytes) = (granted >> 10, needed >> 10);
    let text = format!("the {what} is limited to {granted} KiB, and {kilobytes} KiB are needed");
    let remedy = format!("raise it: `{command} {kilobytes}`");
    Err(Problem::new(Fault::Machine, text).with_remedy(remedy))
}
