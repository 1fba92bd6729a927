//! What went wrong, and what was left out.

use std::collections::BTreeMap;

use report::{Caution, Cell, Column, Inline, Note, Row, Section, Table};

use super::Findings;
use crate::measure::FAILURES;

/// Failures by library: in a word, how often, and why the first did.
fn failures(findings: &Findings) -> BTreeMap<(String, String), (u64, String, String)> {
    let mut all = BTreeMap::new();
    for cell in &findings.summary.cells {
        for (reason, (count, why)) in &cell.failed {
            let key = (cell.point.library.clone(), reason.clone());
            let at = format!("{} {}", cell.point.workload, cell.point.suite);
            let entry = all.entry(key).or_insert((0, why.clone(), at));
            entry.0 += count;
        }
    }
    all
}

/// Slices of a library that were not measured after others had failed.
fn left_out(findings: &Findings, library: &str) -> u64 {
    let own = findings.summary.cells.iter().filter(|cell| cell.point.library == library);
    own.map(|cell| cell.left_out).sum()
}

/// Where an interval of the main suite is wider than it should be.
fn widest(findings: &Findings) -> Option<Note> {
    let main = super::cost::suites(&findings.summary).first().copied()?;
    super::slices::widths(findings, main).filter(|note| note.remedy.is_some())
}

/// What a reader must know first.
pub(super) fn cautions(findings: &Findings) -> Vec<Caution> {
    let mut notes = Vec::new();
    for ((library, reason), (count, why, at)) in failures(findings) {
        if reason == "unsupported" {
            continue;
        }
        let title = findings.summary.title(&library);
        let slices = if count == 1 { "slice" } else { "slices" };
        let left_out = match left_out(findings, &library) {
            0 => String::new(),
            most => format!("; {most} more were left out where {FAILURES} in a row had failed"),
        };
        let text = format!("{title}: {count} {slices} failed ({reason}): {why}{left_out}");
        let remedy = format!(
            "Its figures leave these out, the first at {at}; `wiretax stacks --libraries {library}` \
             measures it alone."
        );
        let note = Note::warning(Inline::new().text(text), Inline::marked(&remedy));
        notes.push(note.answer_covers_less(
            "what failed is left out of all figures; the other libraries' stand.",
        ));
    }
    let taken =
        "times may be longer than on an idle machine, by what the intervals say; counts stand.";
    notes.extend(super::slices::flagged(findings).map(|note| note.answer_may_change(taken)));
    let close =
        "libraries whose intervals overlap could change places; those farther apart do not.";
    notes.extend(widest(findings).map(|note| note.answer_may_change(close)));
    if let Some(why) = findings.summary.machine.as_ref().and_then(|one| one.not_contended.as_ref())
    {
        let text = format!("What a lock costs between two cores is not known: {why}.");
        let remedy = "Locks are counted all the same; `wiretax stacks` on an idle machine of two cores or more \
                      measures their cost.";
        let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
        notes.push(note.answer_covers_less(
            "costs and counts stand; how far a library scales is not estimated.",
        ));
    }
    let absent: Vec<String> = findings
        .summary
        .libraries
        .iter()
        .filter(|about| about.absent.as_deref() == Some("not built"))
        .map(|about| about.name.clone())
        .collect();
    if !absent.is_empty() {
        let text = format!("Not built, and so not measured: {}.", absent.join(", "));
        let remedy = "`make drivers` builds the default set, `wiretax drivers build NAME` one.";
        let note =
            Note { remedy: Some(Inline::marked(remedy)), ..Note::info(Inline::new().text(text)) };
        notes.push(
            note.answer_covers_less("one of these may cost less than all that were measured."),
        );
    }
    let few = findings.summary.cells.iter().any(|cell| {
        let rates = cell.samples(crate::sample::value::RATE).len();
        (1..3).contains(&rates) && cell.point.library != crate::NULL
    });
    if few {
        let text = "Some points have fewer than three slices: no interval says how sure they are.";
        let remedy = "`wiretax stacks` measures longer than the quick scale.";
        let note = Note::warning(Inline::new().text(text), Inline::marked(remedy));
        notes.push(note.answer_may_change(
            "libraries close to each other could change places when more is measured.",
        ));
    }
    notes
}

/// The libraries as they were measured, and every failure.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let columns =
        ["Library", "its own version string", "built with", "CPU features in use", "measured"];
    let mut table = Table::new("The libraries in their own words", columns.map(Column::new).into());
    for about in &findings.summary.libraries {
        let measured = about.absent.clone().unwrap_or_else(|| "yes".to_owned());
        table.push(Row::new(vec![
            Cell::text(about.name.clone()),
            Cell::text(about.version.clone()),
            Cell::Code(about.build_flags.clone()),
            Cell::Code(about.cpu_features.clone()),
            Cell::text(measured),
        ]));
    }
    let columns = ["Library", "what", "how often", "first at", "why"];
    let mut failed = Table::new("What could not be measured", columns.map(Column::new).into());
    for ((library, reason), (count, why, at)) in failures(findings) {
        failed.push(Row::new(vec![
            Cell::text(library),
            Cell::text(reason),
            Cell::count(count),
            Cell::text(at),
            Cell::text(why),
        ]));
    }
    if table.rows.is_empty() && failed.rows.is_empty() {
        return None;
    }
    let mut section = Section::new("stacks-libraries", "What was measured, and what not");
    for table in [table, failed] {
        if !table.rows.is_empty() {
            section = section.with(table);
        }
    }
    Some(section)
}
