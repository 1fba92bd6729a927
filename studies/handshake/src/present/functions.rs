//! What shortens a handshake, on which visit, and what it takes: SSLmTCP and its rivals, by what was measured. Its
//! rivals of 2017 stand by what stands for them today: TLS Snap Start by TLS 1.3's early data, which like it sends
//! the request with the first flight by what an earlier visit left.

use report::{Cell, Column, Row as TableRow, Table};

use super::Findings;
use crate::mode::Mode;
use crate::summary::{Row, value};

/// A function: its name, the modes that show it on a first visit and on a return, and what it takes.
struct Function {
    name: &'static str,
    first: &'static str,
    returning: &'static str,
    secret: &'static str,
    replay: &'static str,
    needs: &'static str,
}

const FUNCTIONS: [Function; 8] = [
    Function {
        name: "TCP, then TLS 1.2 (RSA)",
        first: "usertcp+tls12-rsa",
        returning: "tcp+tls12-resumed",
        secret: "no",
        replay: "no",
        needs: "nothing",
    },
    Function {
        name: "SSLmTCP, the paper's",
        first: "sslmtcp-paper",
        returning: "sslmtcp-paper",
        secret: "no",
        replay: "no",
        needs: "both ends, SYN data",
    },
    Function {
        name: "SSLmTCP with TLS 1.3",
        first: "sslmtcp-tls13",
        returning: "sslmtcp-0rtt",
        secret: "yes",
        replay: "early data",
        needs: "both ends, SYN data",
    },
    Function {
        name: "TCP Fast Open, TLS 1.2",
        first: "tcp+tls12",
        returning: "tfo+tls12-resumed",
        secret: "yes",
        replay: "no",
        needs: "both ends, a cookie",
    },
    Function {
        name: "TLS 1.3",
        first: "tcp+tls13",
        returning: "tcp+tls13-resumed",
        secret: "yes",
        replay: "no",
        needs: "nothing",
    },
    Function {
        name: "0-RTT (for Snap Start)",
        first: "tcp+tls13",
        returning: "tcp+tls13-0rtt",
        secret: "not early data",
        replay: "yes",
        needs: "a ticket",
    },
    Function {
        name: "0-RTT and Fast Open",
        first: "tcp+tls13",
        returning: "tfo+tls13-0rtt",
        secret: "not early data",
        replay: "yes",
        needs: "a ticket, a cookie",
    },
    Function {
        name: "QUIC",
        first: "quic",
        returning: "quic-0rtt",
        secret: "not early data",
        replay: "early data",
        needs: "UDP",
    },
];

/// Which function shortens what; `None` where none of them was measured.
pub(super) fn table(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Function"),
        Column::new("first visit").unit("RTT"),
        Column::new("return").unit("RTT"),
        Column::new("first").unit("bytes"),
        Column::new("return").unit("bytes"),
        Column::new("secrecy"),
        Column::new("replays"),
        Column::new("needs"),
    ];
    let caption = "SSLmTCP and its rivals, by what was measured: round trips until the client may send \
                   (n), Ethernet bytes until the response; whether what is recorded today stays secret when a key \
                   is stolen later, and whether a request can be sent again by others";
    let mut table = Table::new(caption, columns);
    for function in &FUNCTIONS {
        let (first, returning) = (row(findings, function.first), row(findings, function.returning));
        if first.is_none() && returning.is_none() {
            continue;
        }
        table.push(TableRow::new(vec![
            Cell::text(function.name),
            round_trips(first),
            round_trips(returning),
            bytes(first),
            bytes(returning),
            Cell::text(function.secret),
            Cell::text(function.replay),
            Cell::text(function.needs),
        ]));
    }
    // With one alone nothing is compared.
    (table.rows.len() > 1).then_some(table)
}

/// The row of a mode: that of the main sweep before another.
pub(super) fn row<'a>(findings: &'a Findings, mode: &str) -> Option<&'a Row> {
    let mode: Mode = mode.parse().ok()?;
    let main = findings.main_rows();
    let of_mode = |row: &&Row| row.key.mode == mode && row.ready.is_some();
    let other = || findings.summary.rows.iter().filter(|row| row.key.is_unhindered()).find(of_mode);
    main.into_iter().find(of_mode).or_else(other)
}

fn round_trips(row: Option<&Row>) -> Cell {
    let fit = row.and_then(|row| row.ready.as_ref());
    fit.map_or(Cell::Empty, |fit| Cell::number(fit.slope.value, 2))
}

fn bytes(row: Option<&Row>) -> Cell {
    let cell = row.and_then(|row| row.cells.first());
    let median = |name: &str| Some(cell?.median(name)?.value);
    match (median(value::UP_BYTES), median(value::DOWN_BYTES)) {
        (Some(up), Some(down)) => Cell::number(up + down, 0),
        _ => Cell::Empty,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_of_modes_that_exist() {
        for function in &FUNCTIONS {
            for mode in [function.first, function.returning] {
                assert!(mode.parse::<Mode>().is_ok(), "{}: {mode}", function.name);
            }
        }
    }
}
