//! What was measured: by RTT, as lines, on the wire, and how it varies.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Note, Plot, PlotError, Point, Row as TableRow,
    Section, Series, Status, Table, Uncertainty,
};

use super::{Findings, rtts};
use crate::mode::{Security, Transport};
use crate::summary::{Cell as Measured, Row, value};

/// Time to the first response byte against RTT, one line a mode.
pub(super) fn by_rtt(findings: &Findings<'_>) -> Result<Option<Section>, PlotError> {
    let rows = findings.main_rows();
    if rtts(rows.iter().copied()).len() < 2 {
        return Ok(None);
    }
    let mut section = Section::new("by-rtt", "Time to the first response byte, by RTT");
    let groups = [
        ("TCP", Transport::Tcp, "each round trip that a handshake takes is a step in slope"),
        ("TCP Fast Open", Transport::TcpFastOpen, "one round trip less than over TCP"),
    ];
    for (name, transport, finding) in groups {
        let of_transport = |row: &&&Row| {
            let own = row.key.mode.transport;
            own == transport || own == Transport::Quic || row.key.mode.security == Security::Plain
        };
        let lines: Vec<_> = rows.iter().filter(of_transport).map(|row| line(row)).collect();
        if lines.is_empty() {
            continue;
        }
        let plot = Plot::new(
            format!("Medians over {name}, with QUIC and plain TCP"),
            format!("Median time to the first response byte grows with the RTT; {finding}."),
            Axis::new("Round-trip time", "ms").from_zero(),
            Axis::new("Time to the first response byte", "ms").from_zero(),
            Chart::Lines { series: lines, uncertainty: Uncertainty::Bars },
        )?;
        section = section.with(plot.caption(
            "Medians with 95 % intervals; point at one for the command that measures it again.",
        ));
    }
    Ok(Some(section))
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
    let series = Series::measured(row.key.mode.to_string(), points.collect());
    if row.key.mode.security == Security::Plain { series.muted() } else { series }
}

/// n and c of every mode, beside the specification.
pub(super) fn fit_table(findings: &Findings<'_>) -> Option<Table> {
    let rows = findings.main_rows();
    let rtts = rtts(rows.iter().copied());
    let mut columns = vec![
        Column::new("Mode"),
        Column::new("n, ready").unit("RTT"),
        Column::new("spec"),
        Column::new("c, ready").unit("ms"),
        Column::new("n, response").unit("RTT"),
        Column::new("spec"),
        Column::new("as specified"),
    ];
    columns.extend(rtts.iter().map(|rtt| Column::new(format!("response at {rtt} ms")).unit("ms")));
    let mut table = Table::new(
        "median = n × RTT + c: until the client may send (ready), and until the first response byte",
        columns,
    );
    for row in rows {
        let Some(cells) = fit_cells(row, &rtts) else { continue };
        let command = row.cells.first().map(|cell| cell.command.clone());
        let line = TableRow::new(cells);
        table.push(match command {
            Some(command) => line.command(command),
            None => line,
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

fn fit_cells(row: &Row, rtts: &[f64]) -> Option<Vec<Cell>> {
    let estimate = |e: &stats::Estimate, digits| Cell::estimate(e.value, e.low, e.high, digits);
    let mut cells = vec![Cell::text(row.key.mode.to_string())];
    match (&row.ready, &row.response, row.spec) {
        (Some(ready), Some(response), Some(spec)) => {
            let as_specified = match row.as_specified()? {
                true => Cell::Status(Status::Good, "yes".to_owned()),
                false => Cell::Status(Status::Bad, "no".to_owned()),
            };
            cells.extend([
                estimate(&ready.slope, 3),
                Cell::count(spec.ready.into()),
                estimate(&ready.intercept, 2),
                estimate(&response.slope, 3),
                Cell::count(spec.response.into()),
                as_specified,
            ]);
        }
        _ => cells.extend(std::iter::repeat_n(Cell::Empty, 6)),
    }
    for rtt in rtts {
        let median = row.at_rtt(*rtt).and_then(|cell| cell.median(value::RESPONSE));
        cells.push(median.map_or(Cell::Empty, |median| Cell::number(median.value, 2)));
    }
    Some(cells)
}

/// The section with n and c.
pub(super) fn fits(findings: &Findings<'_>) -> Option<Section> {
    let table = fit_table(findings)?;
    let text = "A handshake costs whole round trips (n) and compute (c). n must lie within 0.05 of \
                what the specifications give for the mode and the sizes on the wire; c is what a \
                faster machine, another key or another library changes.";
    Some(
        Section::new("n-and-c", "Round trips and compute")
            .with(Inline::new().text(text))
            .with(table),
    )
}

/// Bytes, packets and CPU time of each mode.
pub(super) fn wire(findings: &Findings<'_>) -> Option<Section> {
    let columns = vec![
        Column::new("Mode"),
        Column::new("bytes up"),
        Column::new("bytes down"),
        Column::new("frames up"),
        Column::new("frames down"),
        Column::new("ClientHello").unit("bytes"),
        Column::new("client CPU").unit("ms"),
        Column::new("server CPU").unit("ms"),
    ];
    let caption = "Until the first response byte: Ethernet bytes and frames each way at the client, \
                   and CPU time of each side, medians at the shortest RTT";
    let mut table = Table::new(caption, columns);
    for row in findings.main_rows() {
        let Some(cell) = row.cells.first() else { continue };
        let median = |name: &str, digits| match cell.median(name) {
            Some(median) => Cell::number(median.value, digits),
            None => Cell::Empty,
        };
        let cells = vec![
            Cell::text(row.key.mode.to_string()),
            median(value::UP_BYTES, 0),
            median(value::DOWN_BYTES, 0),
            median(value::UP_FRAMES, 0),
            median(value::DOWN_FRAMES, 0),
            median(value::HELLO_BYTES, 0),
            median(value::CLIENT_CPU, 2),
            median(value::SERVER_CPU, 2),
        ];
        table.push(TableRow::new(cells).command(cell.command.clone()));
    }
    let note = "CPU times are those of each side's thread: its system calls are in, packet \
                processing in interrupt context counts where it happens to run. QUIC's include the \
                runtime's own work.";
    (!table.rows.is_empty()).then(|| {
        Section::new("wire", "Bytes, packets and CPU time")
            .with(table)
            .with(Note::info(Inline::new().text(note)))
    })
}

/// The other sweeps without loss: keys, groups, chains, libraries.
pub(super) fn variations(findings: &Findings<'_>) -> Option<Section> {
    let main = findings.main_rows();
    let is_main = |row: &&Row| main.iter().any(|other| other.key == row.key);
    let rows: Vec<&Row> =
        findings.summary.rows.iter().filter(|row| !row.cells.is_empty() && !is_main(row)).collect();
    if rows.is_empty() {
        return None;
    }
    let rtts = rtts(rows.iter().copied());
    let mut columns: Vec<Column> =
        ["Sweep", "Mode", "Key", "Group", "Library", "Chain"].map(Column::new).to_vec();
    columns.extend([
        Column::new("n, ready").unit("RTT"),
        Column::new("spec"),
        Column::new("c, ready").unit("ms"),
        Column::new("ClientHello").unit("bytes"),
        Column::new("server CPU").unit("ms"),
    ]);
    columns.extend(rtts.iter().map(|rtt| Column::new(format!("response at {rtt} ms")).unit("ms")));
    let mut table = Table::new("Keys, groups, chains and libraries", columns);
    for row in rows {
        table.push(variation_row(row, &rtts));
    }
    Some(Section::new("variations", "Keys, groups, chains, libraries").with(table))
}

fn variation_row(row: &Row, rtts: &[f64]) -> TableRow {
    let key = &row.key;
    let mode = key.mode.to_string();
    let texts = [&key.sweep, &mode, &key.key, &key.group, &key.library, &key.chain];
    let mut cells: Vec<Cell> = texts.into_iter().map(Cell::text).collect();
    let estimate = |e: &stats::Estimate, digits| Cell::estimate(e.value, e.low, e.high, digits);
    match &row.ready {
        Some(fit) => cells.push(estimate(&fit.slope, 3)),
        None => cells.push(Cell::Empty),
    }
    cells.push(row.spec.map_or(Cell::Empty, |spec| Cell::count(spec.ready.into())));
    cells.push(row.ready.as_ref().map_or(Cell::Empty, |fit| estimate(&fit.intercept, 2)));
    let first = row.cells.first();
    let median = |cell: Option<&Measured>, name: &str, digits| {
        let median = cell.and_then(|cell| cell.median(name));
        median.map_or(Cell::Empty, |median| Cell::number(median.value, digits))
    };
    cells.push(median(first, value::HELLO_BYTES, 0));
    cells.push(median(first, value::SERVER_CPU, 2));
    cells.extend(rtts.iter().map(|rtt| median(row.at_rtt(*rtt), value::RESPONSE, 2)));
    let line = TableRow::new(cells);
    match first {
        Some(cell) => line.command(cell.command.clone()),
        None => line,
    }
}

/// What was counted as what, and what was left out.
pub(super) fn how(findings: &Findings<'_>) -> Option<Section> {
    let summary = findings.summary;
    let text = format!(
        "{} connections. Each was timed by the client, logged by the server and read from a capture \
         at the client; one whose views contradict each other is left out. What the wire shows \
         decides which mode a connection counts as.",
        summary.samples
    );
    let mut section = Section::new("how", "How it was measured").with(Inline::new().text(text));
    if !summary.fell_back.is_empty() {
        let columns = vec![Column::new("Meant"), Column::new("Was"), Column::new("connections")];
        let mut table =
            Table::new("Connections that fell back, counted as what they were", columns);
        for (fell_back, count) in &summary.fell_back {
            table.push(TableRow::new(vec![
                Cell::text(fell_back.intended.to_string()),
                Cell::text(fell_back.actual.to_string()),
                Cell::count(*count),
            ]));
        }
        section = section.with(table);
    }
    for (contradiction, count) in &summary.contradictions {
        let text = format!("{count} connections left out: {contradiction}");
        let remedy = "give the machine less to do beside, and measure again with the same seed";
        let (text, remedy) = (Inline::new().text(text), Inline::new().text(remedy));
        section = section.with(Note::warning(text, remedy));
    }
    Some(section)
}
