//! What kept the server from sending while its link had nothing to do, and the client from uploading: flow-control
//! windows of the protocol, and below them TCP, or QUIC's congestion window.

use report::{Cell, Column, Table};
use web::Protocol;

use crate::row::Row;
use crate::sample::value;
use crate::summary::Group;

/// What the first table is called.
pub(crate) const TITLE: &str = "What kept the server from sending while the link was idle";
/// The second.
const UPLOADS_TITLE: &str = "What kept uploads from being sent while the link was idle";

/// The values of a sender's waits: for flow control, for the receive window, the congestion window and the send buffer.
struct Waits {
    each: [&'static str; 4],
    /// All but those for flow control.
    below: &'static str,
}

const DOWN: Waits = Waits {
    each: [value::STALLED, value::RECEIVE_WINDOW, value::CONGESTION_WINDOW, value::SEND_BUFFER],
    below: value::TCP_STALLED,
};
const UP: Waits = Waits {
    each: [
        value::UPLOADS_STALLED,
        value::UPLOADS_RECEIVE_WINDOW,
        value::UPLOADS_CONGESTION_WINDOW,
        value::UPLOADS_SEND_BUFFER,
    ],
    below: value::UPLOADS_TCP_STALLED,
};

/// The table; none of results that do not say what TCP or QUIC waited for.
pub(crate) fn table<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    of(TITLE, &DOWN, groups)
}

/// The same of uploads; none of results without.
pub(crate) fn uploads<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    of(UPLOADS_TITLE, &UP, groups)
}

fn of<'a>(title: &str, waits: &Waits, groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    let below = waits.below;
    let said = |group: &'a Group| {
        let said = group.rows.iter().filter(move |row| row.median(below).is_some());
        said.map(move |row| (group, row))
    };
    let rows: Vec<(&Group, &Row)> = groups.flat_map(said).collect();
    let has_quic = rows.iter().any(|(_, row)| row.protocol == Protocol::Http3);
    let (congestion, share_of) = match has_quic {
        true => ("congestion window (TCP, QUIC)", "TCP's and QUIC's share"),
        false => ("TCP's congestion window", "TCP's share"),
    };
    let names = ["flow control", "TCP's receive window", congestion, "the socket's buffer"];
    let mut columns = vec![Column::new("Page, link, visit"), Column::new("Protocol")];
    columns.push(Column::new("load").unit("ms"));
    columns.extend(names.map(|what| Column::new(what).unit("ms")));
    columns.push(Column::new(share_of).unit("%"));
    let mut table = Table::new(title, columns);
    for (group, row) in rows {
        let mut cells = vec![Cell::text(group.title()), Cell::text(row.label(group.is_plain()))];
        cells.push(Cell::known(row.load_ms.map(|load| load.value), 0));
        cells.extend(waits.each.map(|name| Cell::known(row.median(name), 0)));
        cells.push(Cell::known(share(row, below).map(|share| share * 100.0), 0));
        table.push(report::Row::new(cells).command(&row.command));
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
    fn each_wait_has_its_column_and_those_of_tcp_and_quic_their_share() {
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
        let text = table(Summary::of(&[load.clone()]).groups.iter()).unwrap().to_text(300);
        for number in ["1000", " 7 ", "300", "50", "34"] {
            assert!(text.contains(number), "{number}: {text}");
        }
        assert!(text.contains("TCP's congestion window"), "{text}");
        // Nothing was uploaded.
        assert!(uploads(Summary::of(&[load.clone()]).groups.iter()).is_none());
        load.values.insert(value::UPLOADS_TCP_STALLED.to_owned(), 610.0);
        load.values.insert(value::UPLOADS_CONGESTION_WINDOW.to_owned(), 608.0);
        let text = uploads(Summary::of(&[load]).groups.iter()).unwrap().to_text(300);
        assert!(text.contains("608") && text.contains("61") && !text.contains("300"), "{text}");
        let mut quic = sample("h3", "first", 0, 1000.0);
        quic.values.insert(value::TCP_STALLED.to_owned(), 120.0);
        let text = table(Summary::of(&[quic]).groups.iter()).unwrap().to_text(300);
        assert!(text.contains("congestion window (TCP, QUIC)"), "{text}");
        // Results of before.
        assert!(table(Summary::of(&[sample("h2", "first", 0, 1.0)]).groups.iter()).is_none());
    }
}
