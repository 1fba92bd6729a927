//! How long loads take, by protocol: one table per page, link and visit.

use report::{Cell, Column, Table};

use crate::row::Row;
use crate::sample::value;
use crate::summary::Group;

/// Where a table has a second ratio.
const RATIOS: usize = 3;
/// Where a table with that ratio has how many connections were early.
const EARLIES: usize = 8;

/// A group's table.
pub(crate) fn table(group: &Group) -> Table {
    let mut columns = vec![
        Column::new("Protocol"),
        Column::new("load").unit("s"),
        Column::new("of http/1.1"),
        Column::new("1st byte").unit("s"),
        Column::new("50 %").unit("s"),
        Column::new("90 %").unit("s"),
        Column::new("conn."),
        Column::new("req."),
        Column::new("down").unit("kB"),
        Column::new("stalled").unit("ms"),
        Column::new("loads"),
    ];
    let embeds = group.rows.iter().any(|row| row.handshake_ratio.is_some());
    if embeds {
        columns.insert(RATIOS, Column::new("of in sequence"));
        columns.splice(EARLIES..EARLIES, [Column::new("0-RTT"), Column::new("SYN data")]);
    }
    let uploads = group.rows.iter().any(|row| row.median(value::UPLOADS_STALLED).is_some());
    if uploads {
        columns.insert(columns.len() - 1, Column::new("uploads stalled").unit("ms"));
    }
    let mut table = Table::new(group.title(), columns);
    let plain = group.is_plain();
    for row in &group.rows {
        let mut cells = cells(row, plain);
        if uploads {
            let stalled = Cell::known(row.median(value::UPLOADS_STALLED), 0);
            cells.insert(cells.len() - 1, stalled);
        }
        if embeds {
            let ratio = row.handshake_ratio;
            let none = || Cell::text("");
            let cell = ratio.map_or_else(none, |e| Cell::estimate(e.value, e.low, e.high, 2));
            cells.insert(RATIOS, cell);
            let counts = [value::EARLY, value::SYN_DATA]
                .map(|name| row.median(name).map_or_else(none, |count| Cell::number(count, 0)));
            cells.splice(EARLIES..EARLIES, counts);
        }
        table.push(report::Row::new(cells).command(&row.command));
    }
    table
}

fn cells(row: &Row, plain: bool) -> Vec<Cell> {
    let none = || Cell::text("");
    let median = |name: &str, scale: f64, decimals: usize| {
        row.median(name).map_or_else(none, |value| Cell::number(value / scale, decimals))
    };
    let load = match &row.failure {
        Some(why) if row.load_ms.is_none() => Cell::text(why),
        _ => row
            .load_ms
            .map_or_else(none, |e| Cell::estimate(e.value / 1e3, e.low / 1e3, e.high / 1e3, 2)),
    };
    let loads = match row.failed {
        0 => row.loads.to_string(),
        failed => format!("{}, {failed} failed", row.loads),
    };
    vec![
        Cell::text(row.label(plain)),
        load,
        row.ratio.map_or_else(none, |e| Cell::estimate(e.value, e.low, e.high, 2)),
        median(value::FIRST_BYTE, 1e3, 2),
        median(value::HALF, 1e3, 2),
        median(value::NINETY, 1e3, 2),
        median(value::CONNECTIONS, 1.0, 0),
        median(value::REQUESTS, 1.0, 0),
        median(value::DOWN, 1e3, 0),
        median(value::STALLED, 1.0, 0),
        Cell::text(loads),
    ]
}
