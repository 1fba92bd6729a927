//! What a load costs beside time, by protocol: connections, bytes around bodies, processor time and memory of
//! the server. Bytes above TLS are where compression of headers shows.

use report::{Cell, Column, Table};

use crate::row::Row;
use crate::sample::value;
use crate::summary::Group;

/// What the table is called.
pub(crate) const TITLE: &str = "What a load costs beside time";

/// The table; none of results that have no such counts.
pub(crate) fn table<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    let columns = vec![
        Column::new("Page, link, visit"),
        Column::new("Protocol"),
        Column::new("conn."),
        Column::new("requests").unit("kB"),
        Column::new("a request").unit("B"),
        Column::new("of http/1.1"),
        Column::new("around bodies").unit("kB"),
        Column::new("frames up").unit("kB"),
        Column::new("frames down").unit("kB"),
        Column::new("sent again"),
        Column::new("server CPU").unit("ms"),
        Column::new("server memory").unit("kB"),
    ];
    let mut table = Table::new(TITLE, columns);
    for group in groups {
        let counted = |row: &&Row| row.median(value::REQUEST_BYTES).is_some();
        for row in group.rows.iter().filter(counted) {
            let cells = cells(group, row);
            table.push(report::Row::new(cells).command(&row.command));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn cells(group: &Group, row: &Row) -> Vec<Cell> {
    let number = |value: Option<f64>, decimals| {
        value.map_or_else(|| Cell::text(""), |value| Cell::number(value, decimals))
    };
    let kilo = |name, decimals| number(row.median(name).map(|bytes| bytes / 1e3), decimals);
    let ratio = group.reference(row).and_then(a_request).zip(a_request(row));
    vec![
        Cell::text(group.title()),
        Cell::text(row.label(group.is_plain())),
        number(row.median(value::CONNECTIONS), 0),
        kilo(value::REQUEST_BYTES, 1),
        number(a_request(row), 0),
        number(ratio.map(|(http1, own)| own / http1), 2),
        kilo(value::AROUND_BODIES, 1),
        kilo(value::UP, 1),
        kilo(value::DOWN, 1),
        number(row.median(value::SENT_AGAIN), 0),
        number(row.median(value::SERVER_CPU), 0),
        kilo(value::SERVER_MEMORY, 0),
    ]
}

/// Bytes above TLS to the server for a request, in a load with any.
pub(crate) fn a_request(row: &Row) -> Option<f64> {
    let requests = row.median(value::REQUESTS).filter(|requests| *requests > 0.0)?;
    Some(row.median(value::REQUEST_BYTES)? / requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::sample;

    #[test]
    fn requests_are_set_against_those_of_http1() {
        let of = |protocol, bytes: f64| {
            let mut sample = sample(protocol, "first", 0, 100.0);
            sample.values.insert(value::REQUESTS.to_owned(), 10.0);
            sample.values.insert(value::REQUEST_BYTES.to_owned(), bytes);
            sample
        };
        let summary = Summary::of(&[of("http/1.1", 4000.0), of("h2", 1000.0)]);
        let table = table(summary.groups.iter()).unwrap();
        let texts: Vec<String> = table.rows.iter().map(|row| format!("{:?}", row.cells)).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[1].contains("0.25") && texts[1].contains("100"), "{}", texts[1]);
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        let old = Summary::of(&[sample("h2", "first", 0, 100.0)]);
        assert!(super::table(old.groups.iter()).is_none());
    }
}
