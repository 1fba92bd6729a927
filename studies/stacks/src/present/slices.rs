//! How sure the medians are: widths of intervals, what disturbed the slices, which libraries cannot be told
//! apart.

use report::{Cell, Column, Inline, Note, Row, Table};
use stats::Estimate;
use study::with_interval;
use tls_drivers::{Suite, Workload};

use super::{Findings, suite_text, workload_text};
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, WAITED_SHARE, Want};

/// Half of an interval's width that a median is to have, as a share of it.
const WANTED: f64 = 0.05;

/// Half of the interval's width as a share of the value.
fn half_width(estimate: Estimate) -> f64 {
    (estimate.high - estimate.low) / 2.0 / estimate.value
}

/// The server's CPU time in full and resumed handshakes of a suite, in memory on one thread.
fn timed(summary: &Summary, suite: Suite) -> Vec<(&str, &Measured, Estimate)> {
    let names = summary.measured().into_iter();
    let of = |name| {
        [Workload::Full, Workload::Resume].into_iter().filter_map(move |workload| {
            let cell = summary.find(Want::handshake(workload, suite).of(name))?;
            Some((name, cell, cell.median(value::SERVER_CPU)?))
        })
    };
    names.flat_map(of).collect()
}

/// What the intervals of a suite's medians came to on this machine.
pub(super) fn widths(findings: &Findings, suite: Suite) -> Option<Note> {
    let cells = timed(&findings.summary, suite);
    let (name, cell, widest) =
        cells.iter().max_by(|a, b| half_width(a.2).total_cmp(&half_width(b.2)))?;
    let mut widths: Vec<f64> = cells.iter().map(|(_, _, median)| half_width(*median)).collect();
    widths.sort_by(f64::total_cmp);
    let middle = widths.get(widths.len() / 2).copied().unwrap_or_default();
    let wide = widths.iter().filter(|width| **width > WANTED).count();
    let confidence = 100.0 * widest.confidence;
    let text = format!(
        "How sure: the {confidence:.0} % intervals of these medians are ±{:.1} % wide in the middle and ±{:.1} % at \
         most ({}, {}, {} slices).",
        100.0 * middle,
        100.0 * half_width(*widest),
        findings.summary.title(name),
        workload_text(cell.point.workload),
        cell.slices
    );
    if wide == 0 {
        return Some(Note::info(Inline::new().text(text)));
    }
    let text = format!(
        "{text} {wide} of {} are wider than ±{:.0} %: this machine did not give more in this time.",
        widths.len(),
        100.0 * WANTED
    );
    let remedy = "Compare by the ratios, which are of slices of the same round; `--repeat` takes more slices.";
    Some(Note::warning(Inline::new().text(text), Inline::marked(remedy)))
}

/// The ratio of a server's CPU time to another's, round by round, with its interval, where that holds 1.
pub(super) fn alike(one: &Measured, other: &Measured) -> Option<String> {
    let ratio = one.ratio_to(other, value::SERVER_CPU)?;
    ratio.contains(1.0).then(|| with_interval((ratio.value, ratio.low, ratio.high), 2))
}

/// Libraries whose ratio to a library, round by round, has 1 in its interval.
pub(super) fn not_told_apart(findings: &Findings, suite: Suite) -> Option<Table> {
    let summary = &findings.summary;
    let columns = vec![
        Column::new("Library"),
        Column::new("workload"),
        Column::new("cannot be told apart from (ratio with its interval)"),
    ];
    let caption = format!(
        "Libraries whose server's CPU time cannot be told apart, {}: of the ratios of slices of the same \
         round, the interval of the median contains 1",
        suite_text(suite)
    );
    let mut table = Table::new(caption, columns);
    for (name, cell, _) in timed(summary, suite) {
        let workload = cell.point.workload;
        let others = timed(summary, suite)
            .into_iter()
            .filter(|(other, theirs, _)| *other != name && theirs.point.workload == workload);
        let all = others.filter_map(|(other, theirs, _)| {
            Some(format!("{} {}", summary.title(other), alike(cell, theirs)?))
        });
        let all: Vec<String> = all.collect();
        if !all.is_empty() {
            table.push(Row::new(vec![
                Cell::text(summary.title(name)),
                Cell::text(workload_text(workload)),
                Cell::text(all.join(", ")),
            ]));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What took the processor from slices that were measured; none of these is discarded.
pub(super) fn flagged(findings: &Findings) -> Option<Note> {
    let sum = |of: fn(&Measured) -> u32| -> u64 {
        findings.summary.cells.iter().map(|cell| u64::from(of(cell))).sum()
    };
    let (all, stolen, pushed) =
        (sum(|cell| cell.slices), sum(|cell| cell.stolen), sum(|cell| cell.pushed_off));
    if stolen + pushed == 0 {
        return None;
    }
    let text = format!(
        "Flagged, and none discarded: of {all} slices the hypervisor took time from the machine in {stolen}, and \
         other programs more than {:.0} % of the threads' time in {pushed}.",
        100.0 * WAITED_SHARE
    );
    let remedy = "Leave the machine alone while it measures; a virtual machine shares its processors with others.";
    Some(Note::warning(Inline::new().text(text), Inline::new().text(remedy)))
}
