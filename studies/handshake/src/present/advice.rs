//! What to change.

use report::{Cell, Code, Column, Inline, KeyFigure, Note, Row, Section, Table};

use super::{Findings, rtt_text};
use crate::advice::Ingredient;
use crate::mode::Transport;
use crate::savings::{Change, Saving};

/// Whether a change is to be had by configuring servers alone: no Fast Open without cookies.
fn advisable(change: &Change) -> bool {
    change.to.transport != Transport::TcpFastOpenNoCookie && saves(change)
}

fn saves(change: &Change) -> bool {
    change.savings.last().is_some_and(|saving| saving.saved_ms.low > 0.0)
}

/// The saving at the RTT nearest to what most users have: 50 ms.
fn typical(change: &Change) -> Option<&Saving> {
    let distance = |saving: &&Saving| (saving.rtt_ms - 50.0).abs();
    change.savings.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// The first change in the list that a server alone can make for a first visit: nothing resumed.
fn first_visit<'a>(findings: &'a Findings<'_>) -> Option<&'a Change> {
    findings.changes.iter().find(|change| {
        let to = change.to;
        advisable(change) && !to.resumes() && to.transport != Transport::TcpFastOpen
    })
}

pub(super) fn answer(findings: &Findings<'_>) -> Vec<Inline> {
    let from = findings.from.description();
    let Some(best) = findings.changes.iter().find(|change| advisable(change)) else {
        return vec![Inline::new().text(format!(
            "Nothing that was measured is faster than {from} by more than chance."
        ))];
    };
    let sentence = |change: &Change, who: &str| {
        let saving = typical(change);
        let figures = saving.map(|saving| {
            format!(
                " saves {:.1} ms of {:.1} ms ({:.0} %) at an RTT of {}",
                saving.saved_ms.value,
                saving.today_ms,
                saving.percent(),
                rtt_text(saving.rtt_ms)
            )
        });
        Inline::new()
            .text(format!("From {from} to "))
            .strong(change.to.description())
            .text(figures.unwrap_or_default())
            .text(format!(", {who}."))
    };
    let mut lines = Vec::new();
    if let Some(first) = first_visit(findings) {
        lines.push(sentence(first, "on a first visit too"));
    }
    if first_visit(findings).is_none_or(|first| first.to != best.to) {
        lines.push(sentence(best, "once a client has been here before"));
    }
    lines
}

pub(super) fn key_figures(findings: &Findings<'_>) -> Vec<KeyFigure> {
    let mut figures = Vec::new();
    for change in findings.changes.iter().filter(|change| advisable(change)).take(3) {
        let Some(saving) = typical(change) else { continue };
        figures.push(KeyFigure {
            value: format!("{:.1}", saving.saved_ms.value),
            unit: "ms".to_owned(),
            label: format!("saved by {}", change.to.description()),
            detail: format!(
                "{:.0} % of {:.1} ms at {} RTT; 95 % interval {:.1} to {:.1} ms",
                saving.percent(),
                saving.today_ms,
                rtt_text(saving.rtt_ms),
                saving.saved_ms.low,
                saving.saved_ms.high
            ),
        });
    }
    figures
}

/// Savings of every change at every RTT.
pub(super) fn table(findings: &Findings<'_>) -> Option<Table> {
    if findings.changes.is_empty() {
        return None;
    }
    let mut rtts: Vec<f64> =
        findings.changes.iter().flat_map(|c| &c.savings).map(|s| s.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    let mut columns = vec![Column::new("Change to")];
    for rtt in &rtts {
        columns.push(Column::new(format!("at {}", rtt_text(*rtt))).unit("ms"));
        columns.push(Column::new("share").unit("%"));
    }
    if findings.clients.is_some() {
        columns.push(Column::new("your clients, mean").unit("ms"));
        columns.push(Column::new("share").unit("%"));
    }
    let caption = format!(
        "What each change from {} ({}) saves until the first response byte (medians; negative: it costs)",
        findings.from,
        findings.from.description()
    );
    let mut table = Table::new(caption, columns);
    for change in &findings.changes {
        table.push(change_row(change, &rtts));
    }
    Some(table)
}

fn change_row(change: &Change, rtts: &[f64]) -> Row {
    let mut cells = vec![Cell::text(change.to.to_string())];
    for rtt in rtts {
        match change.savings.iter().find(|saving| saving.rtt_ms == *rtt) {
            Some(saving) => {
                let saved = saving.saved_ms;
                cells.push(Cell::estimate(saved.value, saved.low, saved.high, 2));
                cells.push(Cell::number(saving.percent(), 0));
            }
            None => cells.extend([Cell::Empty, Cell::Empty]),
        }
    }
    if let Some(weighed) = &change.weighed {
        cells.push(Cell::number(weighed.saved_ms, 2));
        cells.push(Cell::number(100.0 * weighed.saved_ms / weighed.today_ms, 0));
    }
    Row::new(cells)
}

pub(super) fn section(findings: &Findings<'_>) -> Option<Section> {
    Some(Section::new("change", "What to change").with(table(findings)?))
}

/// How to switch on what the advisable changes need.
pub(super) fn configuration(findings: &Findings<'_>) -> Option<Section> {
    let changes: Vec<&Change> =
        findings.changes.iter().filter(|change| advisable(change)).collect();
    let needs = |mode| Ingredient::of(mode);
    let needed = |ingredient: &Ingredient| {
        changes.iter().any(|change| needs(change.to).contains(ingredient))
            && !needs(findings.from).contains(ingredient)
    };
    let ingredients: Vec<Ingredient> = Ingredient::ALL.into_iter().filter(needed).collect();
    if ingredients.is_empty() {
        return None;
    }
    let mut section = Section::new("configuration", "How to switch it on");
    for ingredient in ingredients {
        let modes = changes.iter().filter(|change| needs(change.to).contains(&ingredient));
        let mut line = Inline::new().strong(ingredient.title()).text(", for ");
        for (number, change) in modes.enumerate() {
            line = line.text(if number > 0 { ", " } else { "" }).code(change.to.to_string());
        }
        section = section.with(line);
        for setting in ingredient.settings() {
            section = section.with(Code {
                language: setting.of.to_lowercase(),
                caption: setting.of.to_owned(),
                text: setting.lines.to_owned(),
            });
        }
        section = section.with(Note::info(Inline::new().text(ingredient.caution())));
    }
    Some(section)
}
