//! What kept the server from sending while its link had nothing to do: flow-control windows of the protocol, and
//! below them TCP.

use report::{Cell, Column, Table};

use crate::present::is_plain;
use crate::sample::value;
use crate::summary::{Group, Row};

/// What the table is called.
pub(crate) const TITLE: &str = "What kept the server from sending while the link was idle";

/// The values, and what they are waits for.
const WAITS: [(&str, &str); 4] = [
    (value::STALLED, "flow control"),
    (value::RECEIVE_WINDOW, "TCP's receive window"),
    (value::CONGESTION_WINDOW, "TCP's congestion window"),
    (value::SEND_BUFFER, "the socket's buffer"),
];

/// The table; none of results that do not say what TCP waited for.
pub(crate) fn table<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    let mut columns = vec![Column::new("Page, link, visit"), Column::new("Protocol")];
    columns.push(Column::new("load").unit("ms"));
    columns.extend(WAITS.map(|(_, what)| Column::new(what).unit("ms")));
    columns.push(Column::new("TCP's share").unit("%"));
    let mut table = Table::new(TITLE, columns);
    for group in groups {
        let plain = is_plain(group);
        for row in group.rows.iter().filter(|row| row.median(value::TCP_STALLED).is_some()) {
            let mut cells = vec![Cell::text(group.title()), Cell::text(row.label(plain))];
            cells.push(Cell::known(row.load_ms.map(|load| load.value), 0));
            cells.extend(WAITS.map(|(name, _)| Cell::known(row.median(name), 0)));
            cells.push(Cell::known(share(row, value::TCP_STALLED).map(|share| share * 100.0), 0));
            table.push(report::Row::new(cells).command(&row.command));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// A wait as a share of the load's time.
pub(crate) fn share(row: &Row, name: &str) -> Option<f64> {
    let load = row.load_ms.filter(|load| load.value > 0.0)?;
    Some(row.median(name)? / load.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::sample;

    #[test]
    fn each_wait_has_its_column_and_tcps_its_share() {
        let mut load = sample("h2", "first", 0, 1000.0);
        for (name, ms) in [
            (value::STALLED, 7.0),
            (value::RECEIVE_WINDOW, 300.0),
            (value::CONGESTION_WINDOW, 50.0),
            (value::SEND_BUFFER, 0.0),
            (value::TCP_STALLED, 340.0),
        ] {
            load.values.insert(name.to_owned(), ms);
        }
        let text = table(Summary::of(&[load]).groups.iter()).unwrap().to_text(200);
        for number in ["1000", " 7 ", "300", "50", "34"] {
            assert!(text.contains(number), "{number}: {text}");
        }
        // Results of before.
        assert!(table(Summary::of(&[sample("h2", "first", 0, 1.0)]).groups.iter()).is_none());
    }
}
