//! What was counted as what, what was left out, and what a reader must know before believing.

use std::collections::BTreeMap;

use report::{Caution, Cell, Column, Inline, Note, Row as TableRow, Section, Table};
use stats::Holds;
use units::counted as number;

use super::lineup::listed;
use super::{Findings, fits};

/// Fewer connections per point make an interval that means little.
const FEW: usize = 10;

/// What a reader must know, by the samples themselves.
pub(super) fn cautions(findings: &Findings) -> Vec<Caution> {
    let rows = findings.main_rows();
    let mut notes = Vec::new();
    notes.extend(findings.clock.caution());
    let cells = rows.iter().flat_map(|row| &row.cells);
    let fewest = cells.map(crate::summary::Cell::completed).min();
    if let Some(fewest) = fewest.filter(|fewest| *fewest < FEW) {
        let text = format!(
            "Some points rest on {}: their intervals are rough.",
            number(fewest, "connection")
        );
        let remedy = "measure more with `--repeat 20`, or `--scale full`";
        let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
        notes.push(note.answer_may_change(
            "modes less than a round trip apart could change places; a whole round trip stands.",
        ));
    }
    if let Some(missed) = fits::modes_that(findings, Holds::No) {
        let text = format!("The round trips of {missed} are not what the specifications say.");
        let remedy = "see \u{201C}Round trips and compute\u{201D} for how far they are off";
        let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
        notes.push(note.answer_may_change(
            "what these modes cost may come from something else than the mode.",
        ));
    }
    if let Some(open) = fits::modes_that(findings, Holds::CannotTell) {
        let text = format!(
            "It cannot be determined whether the round trips of {open} are what the specifications say."
        );
        let remedy = "measure more with `--repeat`, or at RTTs farther apart";
        let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
        notes.push(note.answer_covers_less(
            "the medians stand; for these modes do not carry them to other RTTs.",
        ));
    }
    notes.extend(unfinished(findings));
    let unread = findings.summary.unread;
    if unread > 0 {
        let text =
            format!("{} left out: mode, RTT or loss cannot be read.", number(unread, "sample"));
        let remedy = "read them with the version of wiretax that the manifest names";
        let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
        notes.push(note.answer_covers_less("these samples are left out of all figures."));
    }
    let missing = findings.planned.unwrap_or(0).saturating_sub(findings.summary.samples);
    if missing > 0 {
        let planned = findings.planned.unwrap_or(0);
        let text =
            format!("{missing} of the plan's {} not measured.", number(planned, "connection"));
        let remedy = "measure them by `--resume` with the folder of these results";
        let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
        notes.push(
            note.answer_covers_less("what is measured stands; the rest may add modes and RTTs."),
        );
    }
    let left_out: u64 = findings.summary.contradictions.values().sum();
    if left_out > 0 {
        let all = findings.summary.samples;
        let text = format!(
            "{left_out} of {} left out: client, server and capture contradict each other.",
            number(all, "connection")
        );
        let remedy =
            "see \u{201C}What was counted\u{201D}; under loss what is left out may be the slowest";
        let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
        notes.push(
            note.answer_may_change("medians could be longer or shorter by what is left out."),
        );
    }
    notes
}

/// Connections without a response on paths without loss, where none should be; under loss the tables
/// have them. `None` if there are none.
fn unfinished(findings: &Findings) -> Option<Caution> {
    let cells = findings.summary.rows.iter().flat_map(|row| &row.cells);
    let (mut given_up, mut failed) = (0, BTreeMap::<&str, u64>::new());
    for cell in cells {
        given_up += cell.given_up_ms.len();
        for (reason, count) in &cell.failed {
            *failed.entry(reason).or_default() += count;
        }
    }
    let mut parts = Vec::new();
    if given_up > 0 {
        parts.push(format!(
            "{given_up} given up at the time limit, which count as longer than it in every median"
        ));
    }
    if !failed.is_empty() {
        let reasons = failed.iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = listed(&reasons.collect::<Vec<_>>());
        parts.push(format!("failed ({reasons}), which have no time and count in no median"));
    }
    if parts.is_empty() {
        return None;
    }
    let text = format!("Connections without a response on paths without loss: {}.", listed(&parts));
    let remedy = "look at them in `samples.jsonl`: the label `failure` says what happened";
    let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
    Some(note.answer_may_change("if what has no time was slow, medians would be longer."))
}

/// What was counted as what, and what was left out.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let summary = &findings.summary;
    if summary.samples == 0 {
        return None;
    }
    let text = format!(
        "{}. Each was timed by the client, logged by the server and read from a capture \
         at the client; one whose views contradict each other is left out. What the wire shows \
         decides which mode a connection counts as; on a path with loss it is the mode that was \
         tried.",
        number(summary.samples, "connection")
    );
    let mut section = Section::new("counted", "What was counted").with(Inline::new().text(text));
    if summary.fell_back.is_empty() {
        let text = "Every connection that counts was what it was meant to be: none fell back.";
        section = section.with(Inline::new().text(text));
    } else {
        section = section.with(fell_back(findings));
    }
    for (contradiction, count) in &summary.contradictions {
        let text = format!("{} left out: {contradiction}.", number(*count, "connection"));
        section = section.with(Note::warning(
            Inline::new().text(text),
            Inline::marked(
                "without loss: stop other programs, and measure again with the same \
                 seed; under loss: what was sent again may hide what it was, look at it with \
                 `--keep-captures`",
            ),
        ));
    }
    Some(section)
}

fn fell_back(findings: &Findings) -> Table {
    let columns = vec![Column::new("Meant"), Column::new("Was"), Column::new("connections")];
    let mut table =
        Table::new("Connections that fell back to another mode than was meant", columns);
    for (fell_back, count) in &findings.summary.fell_back {
        table.push(TableRow::new(vec![
            Cell::text(fell_back.intended.to_string()),
            Cell::text(fell_back.actual.to_string()),
            Cell::count(*count),
        ]));
    }
    table
}
