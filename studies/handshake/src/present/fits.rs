//! Round trips of every mode, held against the specifications, and what does not grow with the RTT.

use report::{Block, Cell, Column, Inline, Row as TableRow, Section, Status, Table};
use stats::{Estimate, Holds};
use study::with_interval;

use super::lineup::listed;
use super::{Findings, compute, estimate};
use crate::summary::{N_TOLERANCE, Row, as_specified};

/// n of every mode with a fit, beside the specification.
fn table(findings: &Findings) -> Option<Table> {
    let mut columns = heads();
    columns.remove(C_READY);
    let caption = "median = n × RTT + c: until the client may send its first request byte (ready), and \
                   until the first response byte arrives (response)";
    fill(findings, caption, columns, |row| {
        let mut cells = cells(findings, row)?;
        cells.remove(C_READY);
        Some(cells)
    })
}

/// The same with c for a terminal: it fits 120 columns, and 80 without the intervals.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let caption = format!(
        "median = n × RTT + c, until the client may send (ready) and until the first response byte; \
         of c {}",
        compute::lab_words(findings)
    );
    fill(findings, &caption, heads(), |row| cells(findings, row))
}

/// Where c stands in a row.
const C_READY: usize = 3;

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
    caption: &str,
    columns: Vec<Column>,
    cells: impl Fn(&Row) -> Option<Vec<Cell>>,
) -> Option<Table> {
    let mut table = Table::new(caption, columns);
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

fn cells(findings: &Findings, row: &Row) -> Option<Vec<Cell>> {
    let (ready, response, spec) = (row.ready.as_ref()?, row.response.as_ref()?, row.spec?);
    Some(vec![
        Cell::text(row.key.mode.to_string()),
        estimate(&ready.slope, 3),
        Cell::count(spec.ready.into()),
        estimate(&compute::own(findings, ready, spec.ready), 2),
        estimate(&response.slope, 3),
        Cell::count(spec.response.into()),
        row.holds.map_or(Cell::Empty, answer),
    ])
}

/// Whether something holds, in a cell.
pub(super) fn answer(holds: Holds) -> Cell {
    let (status, text) = match holds {
        Holds::Yes => (Status::Good, "yes"),
        Holds::No => (Status::Bad, "no"),
        Holds::CannotTell => (Status::Neutral, "cannot tell"),
    };
    Cell::Status(status, text.to_owned())
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
                compute, scheduling, and the lab's own delay, which its calibration gives and which \
                is taken off below. n is held against the specifications, as the sizes on the wire \
                make them count; what is left of c is what a faster machine, another key or another \
                library changes.";
    let mut section = Section::new("n-and-c", "Round trips and compute")
        .with(Inline::new().text(text))
        .with(verdict(findings));
    let doubts: Vec<Inline> =
        findings.main_rows().into_iter().flat_map(doubts).map(|doubt| doubt.line()).collect();
    if !doubts.is_empty() {
        section = section.with(Block::List(doubts));
    }
    section = section.with(table);
    section.blocks.extend(compute::blocks(findings));
    Some(section)
}

/// How many modes hold their specification.
fn verdict(findings: &Findings) -> Inline {
    let rows = findings.main_rows();
    let count = |holds| rows.iter().filter(|row| row.holds == Some(holds)).count();
    let (yes, no, open) = (count(Holds::Yes), count(Holds::No), count(Holds::CannotTell));
    let all = yes + no + open;
    let line = Inline::new();
    if yes == all {
        return line.text(format!(
            "All {all} modes with a fit take the round trips of their specification, within \
             {N_TOLERANCE}."
        ));
    }
    line.text(format!(
        "Of {all} modes with a fit {yes} take the round trips of their specification, \
                       within {N_TOLERANCE}; "
    ))
    .strong(format!("{no} do not"))
    .text(format!(", and of {open} these connections cannot tell:"))
}

/// A fitted n that is not what the specification says, or may not be.
struct Doubt {
    mode: String,
    what: &'static str,
    n: Estimate,
    spec: u32,
    connections: usize,
    holds: Holds,
}

/// More connections per point than this are no advice.
const MOST_REPEATS: f64 = 10_000.0;

impl Doubt {
    /// What would tell: an interval half as wide as the tolerance. It narrows with the square root of
    /// the connections, and with the distance of the RTTs.
    fn remedy(&self) -> String {
        let half = (self.n.high - self.n.low) / 2.0;
        let times = (half / (N_TOLERANCE / 2.0)).max(1.5);
        let repeats = (self.connections as f64 * times * times / 10.0).ceil() * 10.0;
        let apart = format!("RTTs {:.0} times as far apart", times.ceil());
        if repeats <= MOST_REPEATS {
            format!("About `--repeat {repeats:.0}` or {apart} would tell.")
        } else {
            format!(
                "More connections and RTTs farther apart would tell: the interval has to be {:.0} \
                 times narrower.",
                times.ceil()
            )
        }
    }

    fn line(&self) -> Inline {
        let Doubt { n, spec, connections, .. } = self;
        let value = format!("n {} is {}", self.what, with_interval((n.value, n.low, n.high), 3));
        let text = match self.holds {
            Holds::No => format!(
                ": {value}, not {spec}: more than chance in the samples. The machine was disturbed \
                 for a whole cell, or the handshake took other round trips; compare the medians by \
                 RTT."
            ),
            _ => format!(
                ": {value}; with {connections} connections per point at these RTTs it cannot be \
                 determined whether it is {spec} ± {N_TOLERANCE}. {}",
                self.remedy()
            ),
        };
        Inline::marked(&format!("`{}`{text}", self.mode))
    }
}

fn doubts(row: &Row) -> Vec<Doubt> {
    let (Some(ready), Some(response), Some(spec)) = (&row.ready, &row.response, row.spec) else {
        return Vec::new();
    };
    let connections = row.cells.iter().map(crate::summary::Cell::completed).min().unwrap_or(0);
    [("ready", ready.slope, spec.ready), ("response", response.slope, spec.response)]
        .into_iter()
        .map(|(what, n, spec)| {
            let (mode, holds) = (row.key.mode.to_string(), as_specified(&n, spec));
            Doubt { mode, what, n, spec, connections, holds }
        })
        .filter(|doubt| doubt.holds != Holds::Yes)
        .collect()
}

/// The modes of which the round trips are `holds`, in words; `None` if none is.
pub(super) fn modes_that(findings: &Findings, holds: Holds) -> Option<String> {
    let rows = findings.main_rows();
    let own = rows.iter().filter(|row| row.holds == Some(holds));
    let names: Vec<String> = own.map(|row| row.key.mode.to_string()).collect();
    (!names.is_empty()).then(|| listed(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(low: f64, value: f64, high: f64) -> String {
        let n = Estimate { value, low, high, confidence: 0.95 };
        let holds = as_specified(&n, 2);
        let mode = "tcp".to_owned();
        let doubt = Doubt { mode, what: "ready", n, spec: 2, connections: 5, holds };
        doubt.line().to_plain()
    }

    #[test]
    fn a_wide_interval_is_not_taken_for_a_wrong_handshake() {
        let said = line(2.04, 2.075, 2.106);
        assert!(
            said.contains("with 5 connections") && said.contains("cannot be determined"),
            "{said}"
        );
        assert!(said.contains("--repeat 20 or RTTs 2 times as far apart would tell"), "{said}");
        let said = line(-1.2, 0.6, 2.4);
        assert!(said.contains("cannot be determined whether it is 2 ± 0.05. More conn"), "{said}");
        assert!(said.contains("72 times narrower"), "{said}");
        let said = line(2.9, 3.0, 3.1);
        assert!(said.contains("3.000 [2.900, 3.100], not 2: more than chance"), "{said}");
    }
}
