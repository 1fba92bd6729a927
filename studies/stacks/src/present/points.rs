//! Every measured point that no other table shows: whatever was measured is printed.

use std::collections::BTreeSet;

use report::{Cell, Column, Row, Table};
use tls_drivers::{Contexts, Locks, Sessions};

use super::{Findings, cost, estimate, locks, rates, sessions, suite_text, workload_text};
use crate::point::{Point, Tool};
use crate::sample::value;
use crate::summary::Cell as Measured;

/// A value, its heading, its unit, and how many decimals it is worth.
type Shown = (&'static str, &'static str, &'static str, usize);

/// What tables there are: a point is in the first of which it has a value.
const TABLES: [(&str, &[Shown]); 6] = [
    (
        "Connections and their CPU time",
        &[
            (value::RATE, "connections", "1/s", 0),
            (value::SERVER_CPU, "server", "µs", 1),
            (value::CLIENT_CPU, "client", "µs", 1),
        ],
    ),
    (
        "Records",
        &[
            (value::SERVER_GBIT, "encrypted", "Gbit/s", 2),
            (value::CLIENT_GBIT, "decrypted", "Gbit/s", 2),
            (value::GBIT, "by wall time", "Gbit/s", 2),
        ],
    ),
    (
        "Locks per connection",
        &[
            (value::SERVER_READ, "read, server", "", 1),
            (value::SERVER_WRITE, "write, server", "", 1),
            (value::SERVER_MUTEX, "mutex, server", "", 1),
            (value::CLIENT_READ, "read, client", "", 1),
            (value::CLIENT_WRITE, "write, client", "", 1),
            (value::CLIENT_MUTEX, "mutex, client", "", 1),
        ],
    ),
    (
        "Instructions per handshake",
        &[
            (value::SERVER_INSTRUCTIONS, "server", "", 0),
            (value::CLIENT_INSTRUCTIONS, "client", "", 0),
            (value::SERVER_ATOMICS, "atomics, server", "", 0),
            (value::CLIENT_ATOMICS, "atomics, client", "", 0),
        ],
    ),
    (
        "Heap bytes of one connection",
        &[
            (value::SERVER_IDLE, "idle, server", "bytes", 0),
            (value::SERVER_HANDSHAKING, "handshaking, server", "bytes", 0),
            (value::CLIENT_IDLE, "idle, client", "bytes", 0),
            (value::CLIENT_HANDSHAKING, "handshaking, client", "bytes", 0),
        ],
    ),
    (
        "Connections alone",
        &[(value::DONE, "connections", "", 0), (value::WALL, "wall time", "ms", 0)],
    ),
];

/// Medians per point, with intervals, of the points that the other tables for a terminal leave out.
pub(super) fn others(findings: &Findings) -> Vec<Table> {
    let by_id = sessions::shown(findings);
    let shown = [cost::shown(findings), rates::shown(findings), locks::shown(findings), by_id];
    let shown: BTreeSet<&Point> = shown.iter().flatten().map(|cell| &cell.point).collect();
    let cells = findings.summary.cells.iter().filter(|cell| cell.is_good());
    let cells: Vec<&Measured> = cells.filter(|cell| !shown.contains(&cell.point)).collect();
    let table_of = |cell: &Measured| {
        let has = |(name, ..): &Shown| cell.median(name).is_some();
        TABLES.iter().position(|(_, values)| values.iter().any(has))
    };
    let tables = TABLES.iter().enumerate().map(|(at, (caption, values))| {
        let own = cells.iter().filter(|cell| table_of(cell) == Some(at));
        table(findings, caption, values, own.copied())
    });
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn table<'a>(
    findings: &Findings,
    caption: &str,
    values: &[Shown],
    cells: impl Iterator<Item = &'a Measured>,
) -> Table {
    let mut columns = vec![Column::new("Library"), Column::new("client"), Column::new("point")];
    columns.extend(values.iter().map(|(_, heading, unit, _)| match *unit {
        "" => Column::new(*heading),
        unit => Column::new(*heading).unit(unit),
    }));
    let caption = format!("{caption}: the other points, medians with 95 % intervals");
    let mut table = Table::new(caption, columns);
    for cell in cells {
        let mut row = vec![
            Cell::text(findings.summary.title(&cell.point.library)),
            Cell::text(cost::client_text(findings, &cell.point.client)),
            Cell::text(point_text(&cell.point)),
        ];
        row.extend(
            values.iter().map(|(name, _, _, decimals)| estimate(cell.median(name), *decimals)),
        );
        table.push(Row { cells: row, command: Some(cell.command.clone()) });
    }
    table
}

/// A point for people, less its libraries.
fn point_text(point: &Point) -> String {
    let plural = if point.threads == 1 { "" } else { "s" };
    let mut text = format!(
        "{}, {}, {}, {}, {} thread{plural}",
        workload_text(point.workload),
        suite_text(point.suite),
        point.suite.cipher,
        point.wire,
        point.threads
    );
    if point.tickets != 1 {
        text += &format!(", {} tickets", point.tickets);
    }
    if point.sessions != Sessions::Tickets {
        text += &format!(", by {}", point.sessions.text());
    }
    if point.contexts == Contexts::PerThread {
        text += ", a context per thread";
    }
    text += match (point.locks, point.tool) {
        (Locks::Light, _) => ", light locks",
        (Locks::Count, _) => ", locks counted",
        (Locks::Pthread, Tool::Callgrind) => ", under callgrind",
        (Locks::Pthread, Tool::Host) => "",
    };
    text
}
