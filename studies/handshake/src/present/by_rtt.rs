//! Time to the first response byte against the round-trip time.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row as TableRow, Section,
    Series, Table, Uncertainty,
};

use super::lineup::{is_drawn, listed};
use super::{Findings, decimals_at, estimate, rtt_text, rtts};
use crate::mode::{Security, Transport};
use crate::summary::{Row, value};

/// Lines over TCP, over Fast Open and over SSLmTCP, each with QUIC, and the medians of all modes.
pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let rows = findings.main_rows();
    if rtts(rows.iter().copied()).len() < 2 {
        return Ok(None);
    }
    let text = "Every round trip that a mode takes is a step in slope: modes with as many round \
                trips lie on one line, so only some are drawn. The table below has all.";
    let mut section = Section::new("by-rtt", "Time to the first response byte, by RTT")
        .with(Inline::new().text(text));
    let transports = [
        ("TCP", Transport::Tcp),
        ("TCP Fast Open", Transport::TcpFastOpen),
        ("SSLmTCP and TLS in sequence over our TCP", Transport::SslmTcp),
    ];
    for (name, transport) in transports {
        let drawn: Vec<&Row> =
            rows.iter().copied().filter(|row| is_on(findings, row, transport)).collect();
        let has_own = drawn.iter().any(|row| row.key.mode.transport == transport);
        if let (true, Some(plot)) = (has_own, plot(name, &drawn)?) {
            section = section.with(plot);
        }
    }
    Ok(Some(section.with(medians(&rows))))
}

/// Whether a row is drawn in the plot of a transport: its own modes, QUIC, the TCP floor, and what
/// is run today.
fn is_on(findings: &Findings, row: &Row, transport: Transport) -> bool {
    let mode = row.key.mode;
    let floor = mode.transport == Transport::Tcp && mode.security == Security::Plain;
    if transport == Transport::SslmTcp && mode.transport.is_user_space() {
        return true;
    }
    let on = mode.transport == transport || mode.transport == Transport::Quic || floor;
    mode == findings.from || (on && is_drawn(mode, findings.from))
}

fn plot(name: &str, rows: &[&Row]) -> Result<Option<Plot>, PlotError> {
    let series: Vec<_> = rows.iter().map(|row| line(row)).filter(|s| !s.data.is_empty()).collect();
    if series.is_empty() {
        return Ok(None);
    }
    let slopes: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            Some(format!("{:.1} for {}", row.response.as_ref()?.slope.value, row.key.mode))
        })
        .collect();
    let alt = match slopes.as_slice() {
        [] => "Medians of the time to the first response byte, by RTT.".to_owned(),
        slopes => format!(
            "Each millisecond of RTT delays the first response byte by this many milliseconds: {}.",
            listed(slopes)
        ),
    };
    let plot = Plot::new(
        format!("{name}, with QUIC and with TCP alone as the floor"),
        alt,
        means(rows),
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Time to the first response byte", "ms").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )?;
    let caption = "Medians with 95 % intervals (most are smaller than the marks); in the legend the \
                   fitted number of round trips. Point at a mark for the command that measures it \
                   again.";
    Ok(Some(plot.caption(caption)))
}

/// What users far away wait.
fn means(rows: &[&Row]) -> String {
    let farthest = rtts(rows.iter().copied()).last().copied().unwrap_or_default();
    let median = |row: &&Row| {
        let median = row.at_rtt(farthest)?.median(value::RESPONSE)?;
        Some((median.value, row.key.mode))
    };
    let secured = rows.iter().filter(|row| row.key.mode.security != Security::Plain);
    let mut medians: Vec<_> = secured.filter_map(median).collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    match medians.as_slice() {
        [(least, soonest), .., (most, latest)] => format!(
            "A new connection of users at {} waits {most:.0} ms by {} and {least:.0} ms by {}: the \
             farther your users are, the more each round trip that is saved brings.",
            rtt_text(farthest),
            latest.description(),
            soonest.description()
        ),
        _ => {
            "The farther your users are, the more each round trip that is saved brings.".to_owned()
        }
    }
}

fn line(row: &Row) -> Series<Vec<Point>> {
    let points = row.cells.iter().filter_map(|cell| {
        let median = cell.median(value::RESPONSE)?;
        let mark = Mark::new(median.value)
            .interval(median.low, median.high)
            .note(format!("{} connections", cell.completed()))
            .command(cell.command.clone());
        Some(Point::new(cell.rtt_ms, mark))
    });
    let name = match &row.response {
        Some(fit) => format!("{}: {:.2} RTT", row.key.mode, fit.slope.value),
        None => row.key.mode.to_string(),
    };
    let series = Series::measured(name, points.collect());
    if row.key.mode.security == Security::Plain { series.muted() } else { series }
}

/// The median of every mode at every RTT.
fn medians(rows: &[&Row]) -> Table {
    let rtts = rtts(rows.iter().copied());
    let mut columns = vec![Column::new("Mode")];
    columns.extend(rtts.iter().map(|rtt| Column::new(format!("at {}", rtt_text(*rtt))).unit("ms")));
    let mut table =
        Table::new("Median time to the first response byte, with 95 % interval", columns);
    for row in rows {
        let mut cells = vec![Cell::text(row.key.mode.to_string())];
        cells.extend(rtts.iter().map(|rtt| {
            let median = row.at_rtt(*rtt).and_then(|cell| cell.median(value::RESPONSE));
            median.map_or(Cell::Empty, |median| estimate(&median, decimals_at(*rtt)))
        }));
        table.push(TableRow::new(cells));
    }
    table
}

/// The medians of the modes with too few round-trip times for a line, for a terminal.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Mode"),
        Column::new("RTT").unit("ms"),
        Column::new("connections"),
        Column::new("ready").unit("ms"),
        Column::new("response").unit("ms"),
    ];
    let caption = "Medians: until the client may send its first request byte (ready), and until the \
                   first response byte (response); round trips and what does not grow with the RTT need two RTTs";
    let mut table = Table::new(caption, columns);
    for row in findings.main_rows().into_iter().filter(|row| row.ready.is_none()) {
        for cell in &row.cells {
            let median =
                |name| cell.median(name).map_or(Cell::Empty, |median| estimate(&median, 2));
            table.push(TableRow::new(vec![
                Cell::text(row.key.mode.to_string()),
                Cell::number(cell.rtt_ms, 1),
                Cell::count(cell.completed() as u64),
                median(value::READY),
                median(value::RESPONSE),
            ]));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}
