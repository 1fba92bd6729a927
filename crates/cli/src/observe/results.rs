//! What `wiretax observe` prints and writes when it has seen all.

use fault::{Fault, OrProblem, Problem};
use observe::reading::{Late, Read};
use observe::{Twice, findings_on};
use units::counted;

use crate::diagnostics::Diagnostics;
use crate::observe::args::ObserveArgs;
use crate::observe::threads;
use crate::output::{say_text, terminal_width};

/// Files that are written at the end.
pub struct Files {
    html: Option<Late>,
    rtt: Option<Late>,
}

impl Files {
    /// Looks whether they can be written. `as_root`: rights are given up before they are.
    pub fn claim(args: &ObserveArgs, as_root: bool) -> Result<Files, Problem> {
        let claim =
            |path: &Option<_>| path.as_deref().map(|path| Late::claim(path, as_root)).transpose();
        Ok(Files { html: claim(&args.results.html)?, rtt: claim(&args.results.rtt_out)? })
    }
}

/// Says what the report says of copies and clocks: in JSON no line does.
fn warn_of_copies_and_clocks(twice: &Twice, diagnostics: &Diagnostics) {
    let texts = [twice.copied_text(), twice.translated_text(), twice.clocks_text()];
    for (what, remedy) in texts.into_iter().flatten() {
        diagnostics.warning_with_remedy(what, Some(&remedy));
    }
}

/// Prints and writes what the records say.
pub fn publish(
    args: &ObserveArgs,
    read: &Read,
    files: Files,
    diagnostics: &Diagnostics,
) -> Result<(), Problem> {
    let sinks = &read.sinks;
    let prints = !args.json.json && !sinks.unread;
    // Modes and intervals are drawn: nothing to do for a stream of records alone.
    let found = (prints || files.html.is_some()).then(|| findings_on(&sinks.digest, threads(args)));
    if let Some(findings) = found.as_ref().filter(|_| prints) {
        let width = terminal_width();
        let mut text = sinks.table().map(|table| table.to_text(width) + "\n").unwrap_or_default();
        text += &findings.text(width);
        if let Some(tickets) = &sinks.tickets {
            text += &format!("\n{}", tickets.answer().text(width));
        }
        say_text(&text)?;
    }
    if args.json.json {
        warn_of_copies_and_clocks(&sinks.digest.twice(), diagnostics);
    }
    if sinks.has_more() && !args.json.json {
        diagnostics.advice("--json prints every connection");
    }
    if read.counters.dropped > 0 {
        diagnostics.warning(format!(
            "{} dropped because there were more than {} at once",
            counted(read.counters.dropped, "connection"),
            args.reading.max_connections
        ));
        diagnostics.advice("give a larger --max-connections");
    }
    if let (Some(file), Some(findings)) = (files.html, &found) {
        let mut report = findings.report()?;
        report.command = record::command_line(std::env::args_os());
        diagnostics.note(format!("report: {}", file.path().display()));
        file.write(&report::render(&report))?;
    }
    if let Some(file) = files.rtt {
        let text = sinks.digest.client_rtts().to_json().blame(Fault::Results)?;
        diagnostics.note(format!("round-trip times: {}", file.path().display()));
        file.write(&text)?;
    }
    Ok(())
}
