//! Medians by mode and RTT, for the terminal: what there is to say where too few round-trip times
//! were measured for a line.

use handshake::{Cell as Measured, Findings, value};
use report::{Cell, Column, Row, Table};

/// The table; none where the findings have fitted lines to show, or nothing at all.
pub fn medians(findings: &Findings<'_>) -> Option<Table> {
    let rows = findings.main_rows();
    if rows.iter().any(|row| row.ready.is_some()) {
        return None;
    }
    let columns = vec![
        Column::new("Mode"),
        Column::new("RTT").unit("ms"),
        Column::new("connections"),
        Column::new("ready").unit("ms"),
        Column::new("response").unit("ms"),
    ];
    let caption = "Medians: until the client may send its first request byte (ready), and until the \
                   first response byte (response); round trips and compute need two RTTs";
    let mut table = Table::new(caption, columns);
    for row in rows {
        for cell in &row.cells {
            table.push(Row::new(vec![
                Cell::text(row.key.mode.to_string()),
                Cell::number(cell.rtt_ms, 1),
                Cell::count(cell.completed() as u64),
                median(cell, value::READY),
                median(cell, value::RESPONSE),
            ]));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn median(cell: &Measured, name: &str) -> Cell {
    cell.median(name)
        .map_or(Cell::Empty, |median| Cell::estimate(median.value, median.low, median.high, 2))
}
