//! The handshake behind a full queue: the SSLmTCP paper's equations 1 and 2 have a queueing delay, which each
//! round trip pays once.

use report::{Cell, Column, Inline, Row as TableRow, Section, Table};
use units::named;

use super::lineup::order;
use super::{Findings, decimals_at, estimate};
use crate::summary::{Cell as Measured, Row, RowKey, value};

named! {
    /// What is in the table's order.
    enum Shown: "queue" {
        None = "none",
        DropTail = "droptail",
        Codel = "codel",
    }
}

/// A row behind a queue, and the same without.
struct Queued<'a> {
    row: &'a Row,
    cell: &'a Measured,
    free: &'a Measured,
}

fn queued(findings: &Findings) -> Vec<Queued<'_>> {
    let rows = findings.summary.rows.iter().filter(|row| row.key.queue != Shown::None.name());
    let mut all: Vec<Queued<'_>> = rows
        .flat_map(|row| row.cells.iter().map(move |cell| (row, cell)))
        .filter_map(|(row, cell)| {
            let key = RowKey { queue: Shown::None.name().to_owned(), ..row.key.clone() };
            let free = findings.summary.rows.iter().find(|row| row.key == key)?;
            Some(Queued { row, cell, free: free.at_rtt(cell.rtt_ms)? })
        })
        .collect();
    all.sort_by(|a, b| {
        let queue = |one: &Queued<'_>| one.row.key.queue.parse::<Shown>().ok();
        let by_rtt = a.cell.rtt_ms.total_cmp(&b.cell.rtt_ms).then(queue(a).cmp(&queue(b)));
        by_rtt.then_with(|| order(a.row.key.mode).cmp(&order(b.row.key.mode)))
    });
    all
}

/// How much longer the paper's handshake takes behind a full queue, in sequence and embedded.
pub(super) fn of_the_paper(findings: &Findings) -> Option<String> {
    let all = queued(findings);
    let more = |queue: Shown, embedded: bool| {
        let mut own = all.iter().filter(|one| one.row.key.queue == queue.name());
        let one = own.find(|one| {
            let mode = one.row.key.mode;
            mode.is_the_papers() && mode.control().is_some() == embedded
        })?;
        let ready = |cell: &Measured| Some(cell.median(value::READY)?.value);
        Some((ready(one.cell)? - ready(one.free)?, one.cell.rtt_ms))
    };
    let each = [(Shown::DropTail, "drop-tail"), (Shown::Codel, "CoDel")];
    let each = each.into_iter().filter_map(|(queue, name)| {
        let ((before, rtt_ms), (after, _)) = (more(queue, false)?, more(queue, true)?);
        Some(format!(
            "{name} makes {before:.1} ms more of 3 round trips, {after:.1} ms of 2, at {rtt_ms} ms"
        ))
    });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}

pub(super) fn table(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("RTT").unit("ms"),
        Column::new("queue"),
        Column::new("Mode"),
        Column::new("ready, idle link").unit("ms"),
        Column::new("ready").unit("ms"),
        Column::new("more").unit("ms"),
        Column::new("a round trip").unit("ms"),
        Column::new("response").unit("ms"),
        Column::new("sent again").unit("of 100"),
    ];
    let caption = "Behind a queue that a download keeps full (medians): more than on the idle link, and that by \
                   round trip until the client may send";
    let mut table = Table::new(caption, columns);
    for Queued { row, cell, free } in queued(findings) {
        let (Some(ready), Some(before)) = (cell.median(value::READY), free.median(value::READY))
        else {
            continue;
        };
        let digits = decimals_at(cell.rtt_ms);
        let more = ready.value - before.value;
        let each = row.spec.filter(|spec| spec.ready > 0).map(|spec| more / f64::from(spec.ready));
        let response = cell.median(value::RESPONSE);
        let again = cell.samples(value::RETRANSMITTED).iter().filter(|count| **count > 0.0).count();
        let of = cell.completed().max(1);
        table.push(
            TableRow::new(vec![
                Cell::number(cell.rtt_ms, 1),
                Cell::text(row.key.queue.clone()),
                Cell::text(row.key.mode.to_string()),
                Cell::number(before.value, digits),
                estimate(&ready, digits),
                Cell::difference(more, digits),
                each.map_or(Cell::Empty, |each| Cell::number(each, digits)),
                response.map_or(Cell::Empty, |response| Cell::number(response.value, digits)),
                Cell::number(100.0 * again as f64 / of as f64, 0),
            ])
            .command(cell.command.clone()),
        );
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let table = table(findings)?;
    let text = "The SSLmTCP paper's equations 1 and 2 make handshake time of compute, transmission, propagation \
                and queueing. A download beside keeps the queue before the client full: drop-tail of 100 packets \
                at 20 Mbit/s, 60 ms, unless the plan has a rate; or the same link under CoDel. Each round trip \
                waits there once, so that a handshake with one round trip less saves the queueing of one, too. A \
                full drop-tail queue drops frames of the handshake as well: what is sent again costs a timer.";
    Some(Section::new("queue", "Behind a full queue").with(Inline::new().text(text)).with(table))
}
