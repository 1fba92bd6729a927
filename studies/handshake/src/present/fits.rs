//! Round trips and compute of every mode, held against the specifications.

use report::{Block, Cell, Column, Inline, Row as TableRow, Section, Status, Table};
use stats::Estimate;

use super::lineup::listed;
use super::{Findings, estimate};
use crate::summary::{N_TOLERANCE, Row};

const CAPTION: &str = "median = n × RTT + c: until the client may send its first request byte \
                       (ready), and until the first response byte arrives (response)";

/// n and c of every mode with a fit, beside the specification.
fn table(findings: &Findings) -> Option<Table> {
    let mut columns = heads();
    columns.insert(6, Column::new("c response").unit("ms"));
    fill(findings, columns, |row| {
        let mut cells = cells(row)?;
        cells.insert(6, estimate(&row.response.as_ref()?.intercept, 2));
        Some(cells)
    })
}

/// The same for a terminal: it fits 120 columns, and 80 without the intervals.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    fill(findings, heads(), cells)
}

fn heads() -> Vec<Column> {
    vec![
        Column::new("Mode"),
        Column::new("n ready").unit("RTT"),
        Column::new("spec"),
        Column::new("c ready").unit("ms"),
        Column::new("n response").unit("RTT"),
        Column::new("spec"),
        Column::new("holds"),
    ]
}

fn fill(
    findings: &Findings,
    columns: Vec<Column>,
    cells: impl Fn(&Row) -> Option<Vec<Cell>>,
) -> Option<Table> {
    let mut table = Table::new(CAPTION, columns);
    for row in findings.main_rows() {
        let Some(cells) = cells(row) else { continue };
        let line = TableRow::new(cells);
        table.push(match row.cells.first() {
            Some(cell) => line.command(command(&cell.command, row)),
            None => line,
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

fn cells(row: &Row) -> Option<Vec<Cell>> {
    let (ready, response, spec) = (row.ready.as_ref()?, row.response.as_ref()?, row.spec?);
    Some(vec![
        Cell::text(row.key.mode.to_string()),
        estimate(&ready.slope, 3),
        Cell::count(spec.ready.into()),
        estimate(&ready.intercept, 2),
        estimate(&response.slope, 3),
        Cell::count(spec.response.into()),
        holds(row),
    ])
}

/// Whether both fitted n are what the specification says.
pub(super) fn holds(row: &Row) -> Cell {
    match row.as_specified() {
        Some(true) => Cell::Status(Status::Good, "yes".to_owned()),
        Some(false) => Cell::Status(Status::Bad, "no".to_owned()),
        None => Cell::Empty,
    }
}

/// A cell's command with the RTTs of the whole row, and the connections of its fullest cell.
fn command(of_cell: &str, row: &Row) -> String {
    let rtts: Vec<String> = row.cells.iter().map(|cell| format!("{}ms", cell.rtt_ms)).collect();
    let repeat = row.cells.iter().map(crate::summary::Cell::completed).max().unwrap_or(1);
    let mut words = of_cell.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (option, value) in [("--rtt", rtts.join(",")), ("--repeat", repeat.to_string())] {
        let at = words.iter().position(|word| word == option);
        if let Some(word) = at.and_then(|at| words.get_mut(at + 1)) {
            *word = value;
        }
    }
    words.join(" ")
}

/// The section with n and c.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let table = table(findings)?;
    let text = "A handshake costs whole round trips (n) and what does not grow with the RTT (c): \
                compute, scheduling and what the lab adds. n is held against the specifications, as \
                the sizes on the wire make them count; c is what a faster machine, another key or \
                another library changes.";
    let mut section = Section::new("n-and-c", "Round trips and compute")
        .with(Inline::new().text(text))
        .with(verdict(findings));
    let misses: Vec<Inline> =
        findings.main_rows().into_iter().flat_map(misses).map(|miss| miss.line()).collect();
    if !misses.is_empty() {
        section = section.with(Block::List(misses));
    }
    Some(section.with(table))
}

/// How many modes hold their specification.
fn verdict(findings: &Findings) -> Inline {
    let rows = findings.main_rows();
    let all = rows.iter().filter(|row| row.as_specified().is_some()).count();
    let held = rows.iter().filter(|row| row.as_specified() == Some(true)).count();
    let line = Inline::new();
    if held == all {
        line.text(format!(
            "All {all} modes with a fit take the round trips of their specification, within \
             {N_TOLERANCE}."
        ))
    } else {
        line.strong(format!("{} of {all} modes", all - held)).text(format!(
            " with a fit miss the round trips of their specification by more than {N_TOLERANCE}:"
        ))
    }
}

/// A fitted n that is not what the specification says.
struct Miss {
    mode: String,
    what: &'static str,
    n: Estimate,
    spec: u32,
    connections: usize,
}

impl Miss {
    /// Whether chance in the samples can explain it.
    fn may_be_chance(&self) -> bool {
        let spec = f64::from(self.spec);
        self.n.low <= spec + N_TOLERANCE && self.n.high >= spec - N_TOLERANCE
    }

    fn line(&self) -> Inline {
        let Miss { n, spec, connections, .. } = self;
        let why = if self.may_be_chance() {
            format!(
                "With {connections} connections a point chance can explain it: measure more \
                 (--repeat 20)."
            )
        } else {
            "More than chance in the samples: the machine was disturbed for a whole cell, or the \
             handshake took other round trips; compare the medians by RTT."
                .to_owned()
        };
        Inline::new().code(self.mode.clone()).text(format!(
            ": n {} is {:.3} [{:.3}, {:.3}], not {spec}. {why}",
            self.what, n.value, n.low, n.high
        ))
    }
}

fn misses(row: &Row) -> Vec<Miss> {
    let (Some(ready), Some(response), Some(spec)) = (&row.ready, &row.response, row.spec) else {
        return Vec::new();
    };
    let connections = row.cells.iter().map(crate::summary::Cell::completed).min().unwrap_or(0);
    [("ready", ready.slope, spec.ready), ("response", response.slope, spec.response)]
        .into_iter()
        .filter(|(_, n, spec)| (n.value - f64::from(*spec)).abs() > N_TOLERANCE)
        .map(|(what, n, spec)| Miss { mode: row.key.mode.to_string(), what, n, spec, connections })
        .collect()
}

/// The modes that miss their specification, in words; `None` if none does.
pub(super) fn missed(findings: &Findings) -> Option<String> {
    let rows = findings.main_rows();
    let missed = rows.iter().filter(|row| row.as_specified() == Some(false));
    let names: Vec<String> = missed.map(|row| row.key.mode.to_string()).collect();
    (!names.is_empty()).then(|| listed(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(low: f64, value: f64, high: f64) -> Miss {
        let n = Estimate { value, low, high, confidence: 0.95 };
        Miss { mode: "tcp".to_owned(), what: "ready", n, spec: 2, connections: 4 }
    }

    #[test]
    fn a_wide_interval_is_not_taken_for_a_wrong_handshake() {
        assert!(miss(2.04, 2.075, 2.106).may_be_chance());
        assert!(miss(2.04, 2.075, 2.106).line().to_plain().contains("4 connections"));
        assert!(!miss(2.9, 3.0, 3.1).may_be_chance());
        assert!(miss(2.9, 3.0, 3.1).line().to_plain().contains("3.000 [2.900, 3.100], not 2"));
    }
}
