//! A rival of shorter handshakes: connections that are opened before anybody needs them. What it saves and
//! what it costs, by how many of them are used; computed from what was measured of one connection.

use report::{Cell, Column, Inline, Row as TableRow, Section, Table};

use super::lineup::typical_rtt;
use super::{Findings, rtt_text, rtts};
use crate::summary::{self, Row, value};

/// A browser's habit: connections opened early for each hundred that are needed, and the share of them that
/// is used.
struct Habit {
    opened: f64,
    used: f64,
}

/// Habits of the SSLmTCP paper, the first of all.
const OF_THE_PAPER: usize = 2;
/// The SSLmTCP paper's, and what others may have.
const HABITS: [Habit; 6] = [
    Habit { opened: 0.05, used: 0.20 },
    Habit { opened: 0.10, used: 0.10 },
    Habit { opened: 0.20, used: 0.50 },
    Habit { opened: 0.50, used: 0.50 },
    Habit { opened: 1.00, used: 0.50 },
    Habit { opened: 1.00, used: 0.95 },
];

/// One connection, measured: what opening it early saves and costs.
struct Opened {
    /// Until the client may send, in milliseconds.
    ready_ms: f64,
    /// Ethernet bytes both ways, those of the short request and response among them.
    bytes: f64,
    /// The server's CPU time, in milliseconds.
    server_ms: Option<f64>,
}

impl Opened {
    fn of(cell: &summary::Cell) -> Option<Opened> {
        let median = |name: &str| Some(cell.median(name)?.value);
        Some(Opened {
            ready_ms: median(value::READY)?,
            bytes: median(value::UP_BYTES)? + median(value::DOWN_BYTES)?,
            server_ms: median(value::SERVER_CPU),
        })
    }
}

/// What a habit comes to, for a hundred requests.
struct Cost {
    /// Connections that nobody used.
    wasted: f64,
    /// Requests that found a connection open.
    hits: f64,
    /// Milliseconds saved in the mean of all requests.
    saved_ms: f64,
    bytes: f64,
    server_ms: Option<f64>,
}

impl Cost {
    fn of(habit: &Habit, one: &Opened) -> Cost {
        let hits = 100.0 * habit.opened * habit.used;
        let wasted = 100.0 * habit.opened * (1.0 - habit.used);
        Cost {
            wasted,
            hits,
            saved_ms: hits / 100.0 * one.ready_ms,
            bytes: wasted * one.bytes,
            server_ms: one.server_ms.map(|ms| wasted * ms),
        }
    }
}

/// What most people run today, at the RTT that speaks for most.
fn today(findings: &Findings) -> Option<(&Row, &summary::Cell)> {
    let rows = findings.main_rows();
    let row = rows.into_iter().find(|row| row.key.mode == findings.from)?;
    let rtt = typical_rtt(&rtts([row]))?;
    Some((row, row.at_rtt(rtt)?))
}

/// The SSLmTCP paper's two habits with a connection like this one, in a sentence.
pub(super) fn of_the_paper(cell: &summary::Cell) -> Option<String> {
    let one = Opened::of(cell)?;
    let each = HABITS.iter().take(OF_THE_PAPER).map(|habit| {
        let cost = Cost::of(habit, &one);
        format!(
            "{:.0} % and {:.0} %: {:.1} ms less in the mean, for 100 requests {:.0} connections and {:.1} kB wasted",
            100.0 * habit.opened,
            100.0 * habit.used,
            cost.saved_ms,
            cost.wasted,
            cost.bytes / 1e3
        )
    });
    let each: Vec<String> = each.collect();
    Some(format!(
        "computed from {:.1} ms until the client may send at {} ms: {}",
        one.ready_ms,
        cell.rtt_ms,
        each.join("; ")
    ))
}

pub(super) fn table(findings: &Findings) -> Option<Table> {
    let (row, cell) = today(findings)?;
    let one = Opened::of(cell)?;
    let columns = vec![
        Column::new("opened early").unit("%"),
        Column::new("used").unit("%"),
        Column::new("wait less").unit("%"),
        Column::new("saved, mean").unit("ms"),
        Column::new("connections wasted"),
        Column::new("wasted").unit("kB"),
        Column::new("server CPU wasted").unit("ms"),
    ];
    let caption = format!(
        "Opening connections early, for 100 requests, computed from {} at an RTT of {}: a request that finds one waits {:.1} ms \
         less",
        row.key.mode,
        rtt_text(cell.rtt_ms),
        one.ready_ms
    );
    let mut table = Table::new(caption, columns);
    for habit in &HABITS {
        let cost = Cost::of(habit, &one);
        table.push(TableRow::new(vec![
            Cell::number(100.0 * habit.opened, 0),
            Cell::number(100.0 * habit.used, 0),
            Cell::number(cost.hits, 1),
            Cell::number(cost.saved_ms, 1),
            Cell::number(cost.wasted, 1),
            Cell::number(cost.bytes / 1e3, 1),
            cost.server_ms.map_or(Cell::Empty, |ms| Cell::number(ms, 1)),
        ]));
    }
    Some(table)
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let table = table(findings)?;
    let text = "A connection that is opened before it is needed takes its handshake off the request, on a first \
                visit too, and needs nothing of the server. What it costs is the connections that nobody uses: \
                their packets, the server's handshakes and memory. A shorter handshake saves less for each \
                request, but for every one, and wastes nothing. The first two rows are the SSLmTCP paper's: 5 % \
                opened of which 20 % are used, 10 % of which 10 % are.";
    Some(
        Section::new("early", "Instead: opening connections early")
            .with(Inline::new().text(text))
            .with(table),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_is_used_or_wasted() {
        let one = Opened { ready_ms: 150.0, bytes: 2_500.0, server_ms: Some(1.5) };
        let cost = Cost::of(&Habit { opened: 0.05, used: 0.20 }, &one);
        assert!((cost.hits - 1.0).abs() < 1e-9 && (cost.wasted - 4.0).abs() < 1e-9);
        assert!((cost.saved_ms - 1.5).abs() < 1e-9);
        assert!((cost.bytes - 10_000.0).abs() < 1e-6);
        assert!(cost.server_ms.is_some_and(|ms| (ms - 6.0).abs() < 1e-9));
        for habit in &HABITS {
            let cost = Cost::of(habit, &one);
            assert!((cost.hits + cost.wasted - 100.0 * habit.opened).abs() < 1e-9);
        }
    }
}
