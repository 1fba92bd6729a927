//! What a handshake costs each library, as a server and as a client.

use std::collections::BTreeSet;

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Note, Plot, PlotError, Row, Section, Series, Table,
};
use tls_drivers::{Suite, Wire, Workload};

use super::{Findings, estimate, suite_text};
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};
use tls_drivers::hosts::LOAD_CLIENT;

/// The suites of full handshakes in memory with one thread, the modern one first, then by how many
/// libraries were measured in them.
pub(super) fn suites(summary: &Summary) -> Vec<Suite> {
    let cells = summary.all(Want { threads: Some(1), ..Want::TIMED });
    let points = cells.map(|cell| &cell.point).filter(|point| {
        point.workload == Workload::Full
            && point.wire == tls_drivers::Wire::Memory
            && point.library != crate::NULL
    });
    let all: BTreeSet<(Suite, &String)> =
        points.map(|point| (point.suite, &point.library)).collect();
    let mut suites: Vec<Suite> = all.iter().map(|(suite, _)| *suite).collect();
    suites.dedup();
    let count = |suite: &Suite| all.iter().filter(|(other, _)| other == suite).count();
    suites.sort_by_key(|suite| {
        (*suite != crate::advice::MODERN, std::cmp::Reverse(count(suite)), *suite)
    });
    suites
}

pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let suites = suites(&findings.summary);
    let Some(main) = suites.first().copied() else { return Ok(None) };
    let text = "CPU time of each side of one connection with the library on both sides, bytes going \
                through memory: the library alone, without kernel and network, on one thread. A \
                connection is a handshake, one request, one response and the end.";
    let mut section = Section::new("stacks-cost", "What a handshake costs each library")
        .with(Inline::new().text(text));
    if let Some(plot) = plot(findings, main)? {
        section = section.with(plot);
    }
    section = section.with(table(findings, main));
    if let Some(note) = super::slices::widths(findings, main) {
        section = section.with(note);
    }
    if let Some(table) = super::slices::not_told_apart(findings, main) {
        section = section.with(table);
    }
    if let Some(note) = harness(findings, main) {
        section = section.with(note);
    }
    if suites.len() > 1 {
        section = section.with(by_suite(findings, &suites));
    }
    Ok(Some(section))
}

/// The suites of connections over loopback with one thread, the modern one first.
fn loopback_suites(summary: &Summary) -> Vec<Suite> {
    let want = Want { threads: Some(1), wire: Some(Wire::Loopback), ..Want::TIMED };
    let cells = summary.all(want).filter(|cell| cell.point.library != crate::NULL);
    let points = cells.map(|cell| &cell.point);
    let handshakes =
        points.filter(|point| matches!(point.workload, Workload::Full | Workload::Resume));
    let mut suites: Vec<Suite> = handshakes.map(|point| point.suite).collect();
    suites.sort_by_key(|suite| (*suite != crate::advice::MODERN, *suite));
    suites.dedup();
    suites
}

/// What a connection costs with the kernel: the way in which runtimes can be measured too.
pub(super) fn over_loopback(findings: &Findings) -> Option<Section> {
    let tables: Vec<Table> = loopback_suites(&findings.summary)
        .into_iter()
        .map(|suite| loopback_table(findings, suite))
        .filter(|table| !table.rows.is_empty())
        .collect();
    let text = "The same with the kernel and its TCP, one thread on either side: CPU time of all that a \
                side does, reading and writing included. The client is the one that is named; a \
                library's own cost as a client is where it is its own.";
    let mut section = Section::new("stacks-loopback", "What a connection costs over loopback TCP")
        .with(Inline::new().text(text));
    if tables.is_empty() {
        return None;
    }
    for table in tables {
        section = section.with(table);
    }
    for note in super::runtimes::notes(findings) {
        section = section.with(note);
    }
    Some(section)
}

/// For a terminal: the first suite's.
pub(super) fn loopback_summary(findings: &Findings) -> Option<Table> {
    let suite = loopback_suites(&findings.summary).first().copied()?;
    Some(loopback_table(findings, suite))
}

/// A library and its client over loopback, full and resumed.
struct Pair<'a> {
    library: &'a str,
    client: &'a str,
    full: Option<&'a Measured>,
    resumed: Option<&'a Measured>,
}

fn loopback_pairs(findings: &Findings, suite: Suite) -> Vec<Pair<'_>> {
    let want = Want {
        threads: Some(1),
        wire: Some(Wire::Loopback),
        version: Some(suite.version),
        key: Some(suite.key),
        group: Some(suite.group),
        ..Want::TIMED
    };
    let mut pairs = Vec::new();
    for library in findings.summary.measured() {
        let cells = findings.summary.all(want.of(library));
        let cells: Vec<&Measured> =
            cells.filter(|cell| cell.point.suite.cipher == suite.cipher).collect();
        let clients: BTreeSet<&str> = cells.iter().map(|cell| cell.point.client.as_str()).collect();
        pairs.extend(clients.into_iter().map(|client| {
            let find = |workload| {
                let is = |cell: &&&Measured| {
                    cell.point.client == client && cell.point.workload == workload
                };
                cells.iter().find(is).copied()
            };
            let (full, resumed) = (find(Workload::Full), find(Workload::Resume));
            Pair { library, client, full, resumed }
        }));
    }
    pairs.retain(|pair| pair.full.is_some() || pair.resumed.is_some());
    pairs
}

fn loopback_table(findings: &Findings, suite: Suite) -> Table {
    let columns = vec![
        Column::new("Library"),
        Column::new("client"),
        Column::new("full, server").unit("µs"),
        Column::new("full, client").unit("µs"),
        Column::new("full").unit("1/s"),
        Column::new("resumed, server").unit("µs"),
        Column::new("resumed, client").unit("µs"),
        Column::new("resumed").unit("1/s"),
    ];
    let caption = format!(
        "CPU time per connection and connections per second over loopback, {}: medians with 95 % \
         intervals",
        suite_text(suite)
    );
    let mut table = Table::new(caption, columns);
    for Pair { library, client, full, resumed } in loopback_pairs(findings, suite) {
        let median =
            |cell: Option<&Measured>, what| cell.and_then(|cell: &Measured| cell.median(what));
        table.push(Row {
            cells: vec![
                Cell::text(findings.summary.title(library)),
                Cell::text(client_text(findings, client)),
                estimate(median(full, value::SERVER_CPU), 1),
                estimate(median(full, value::CLIENT_CPU), 1),
                estimate(median(full, value::RATE), 0),
                estimate(median(resumed, value::SERVER_CPU), 1),
                estimate(median(resumed, value::CLIENT_CPU), 1),
                estimate(median(resumed, value::RATE), 0),
            ],
            command: full.or(resumed).map(|cell| cell.command.clone()),
        });
    }
    table
}

/// The cells that the tables for a terminal show.
pub(super) fn shown(findings: &Findings) -> Vec<&Measured> {
    let summary = &findings.summary;
    let main = suites(summary).first().copied();
    let memory = main.into_iter().flat_map(|main| {
        summary.measured().into_iter().flat_map(move |name| {
            [Workload::Full, Workload::Resume]
                .into_iter()
                .filter_map(move |workload| summary.find(Want::handshake(workload, main).of(name)))
        })
    });
    let first = loopback_suites(summary).first().copied();
    let pairs = first.map(|suite| loopback_pairs(findings, suite)).unwrap_or_default();
    let loopback = pairs.into_iter().flat_map(|pair| [pair.full, pair.resumed]).flatten();
    memory.chain(loopback).collect()
}

/// A client for people.
pub(super) fn client_text(findings: &Findings, client: &str) -> String {
    match client {
        LOAD_CLIENT => "load generator".to_owned(),
        name => findings.summary.title(name),
    }
}

/// The harness's own cost, by the driver without cryptography.
fn harness(findings: &Findings, suite: Suite) -> Option<Note> {
    let want = Want::handshake(Workload::Full, suite);
    let null = findings.summary.find(want.of(crate::NULL))?.median(value::SERVER_CPU)?;
    let costs = findings.summary.measured().into_iter().filter_map(|name| {
        Some((name, findings.summary.find(want.of(name))?.median(value::SERVER_CPU)?.value))
    });
    let (fastest, cost) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = 100.0 * null.value / cost;
    let text = format!(
        "The harness itself costs {:.2} µs per connection (a driver without cryptography), {share:.1} % of \
         the fastest library's {cost:.1} µs ({}).",
        null.value,
        findings.summary.title(fastest)
    );
    let line = Inline::new().text(text);
    Some(match share > 2.0 {
        false => Note::info(line),
        true => {
            Note::warning(line, Inline::new().text("Leave the machine alone while it measures."))
        }
    })
}

fn plot(findings: &Findings, suite: Suite) -> Result<Option<Plot>, PlotError> {
    let names = findings.summary.measured();
    let bars = |workload: Workload| {
        let want = Want::handshake(workload, suite);
        let bar = |name: &&str| {
            let cell = findings.summary.find(want.of(name))?;
            let cost = cell.median(value::SERVER_CPU)?;
            let mark = Mark::new(cost.value).interval(cost.low, cost.high);
            Some(mark.command(cell.command.clone()))
        };
        names.iter().map(bar).collect::<Vec<_>>()
    };
    let (full, resumed) = (bars(Workload::Full), bars(Workload::Resume));
    let costs = names.iter().zip(&full).filter_map(|(name, bar)| Some((name, bar.as_ref()?.value)));
    let mut costs: Vec<(&&str, f64)> = costs.collect();
    costs.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (Some((best, least)), Some((worst, most))) = (costs.first(), costs.last()) else {
        return Ok(None);
    };
    if costs.len() < 2 {
        return Ok(None);
    }
    let alt = format!(
        "A full handshake costs the server between {least:.0} µs of CPU time with {} and {most:.0} µs \
         with {}.",
        findings.summary.title(best),
        findings.summary.title(worst)
    );
    let means = format!(
        "1000 new connections per second keep {:.0} % of a core busy with {}, and {:.0} % with {}.",
        least / 10.0,
        findings.summary.title(best),
        most / 10.0,
        findings.summary.title(worst)
    );
    let mut series = vec![Series::measured("full", full)];
    if resumed.iter().any(Option::is_some) {
        series.push(Series::measured("resumed", resumed));
    }
    let categories = names.iter().map(|name| findings.summary.title(name)).collect();
    let plot = Plot::new(
        format!("Server's CPU time per connection: {}", suite_text(suite)),
        alt,
        means,
        Axis::new("CPU time", "µs").from_zero(),
        Axis::new("", ""),
        Chart::Bars { categories, series },
    )?;
    Ok(Some(plot.caption("Medians with 95 % intervals.")))
}

fn table(findings: &Findings, suite: Suite) -> Table {
    let yardstick = findings.yardstick();
    let times =
        yardstick.map_or(String::new(), |name| format!("× {}", findings.summary.title(name)));
    let columns = vec![
        Column::new("Library"),
        Column::new("full, server").unit("µs"),
        Column::new(times.clone()),
        Column::new("full, client").unit("µs"),
        Column::new("resumed, server").unit("µs"),
        Column::new(times),
        Column::new("resumed, client").unit("µs"),
        Column::new("full on a core").unit("1/s"),
    ];
    let caption = format!(
        "CPU time per connection, {}: medians of slices, and of ratios of slices of the same round, with \
         95 % intervals",
        suite_text(suite)
    );
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let find =
            |workload, name: &str| findings.summary.find(Want::handshake(workload, suite).of(name));
        let (full, resumed) = (find(Workload::Full, name), find(Workload::Resume, name));
        if full.is_none() && resumed.is_none() {
            continue;
        }
        let ratio = |workload, own: Option<&crate::summary::Cell>| {
            let other = yardstick.filter(|other| *other != name)?;
            own?.ratio_to(find(workload, other)?, value::SERVER_CPU)
        };
        let median =
            |cell: Option<&crate::summary::Cell>, what| cell.and_then(|cell| cell.median(what));
        let server = median(full, value::SERVER_CPU);
        table.push(Row {
            cells: vec![
                Cell::text(findings.summary.title(name)),
                estimate(server, 1),
                estimate(ratio(Workload::Full, full), 2),
                estimate(median(full, value::CLIENT_CPU), 1),
                estimate(median(resumed, value::SERVER_CPU), 1),
                estimate(ratio(Workload::Resume, resumed), 2),
                estimate(median(resumed, value::CLIENT_CPU), 1),
                Cell::known(server.map(|cost| 1e6 / cost.value), 0),
            ],
            command: full.or(resumed).map(|cell| cell.command.clone()),
        });
    }
    table
}

/// The server's CPU time in every suite.
fn by_suite(findings: &Findings, suites: &[Suite]) -> Table {
    let mut columns = vec![Column::new("Library")];
    columns.extend(suites.iter().map(|suite| Column::new(suite_text(*suite)).unit("µs")));
    let mut table = Table::new("Server's CPU time of a full handshake, by suite", columns);
    for name in findings.summary.measured() {
        let mut cells = vec![Cell::text(findings.summary.title(name))];
        cells.extend(suites.iter().map(|suite| {
            let want = Want::handshake(Workload::Full, *suite);
            let cost = findings.summary.find(want.of(name));
            Cell::known(cost.and_then(|cell| cell.median(value::SERVER_CPU)).map(|m| m.value), 1)
        }));
        table.push(Row::new(cells));
    }
    table
}

/// For a terminal: which libraries of the same table cannot be told apart.
pub(super) fn told_apart(findings: &Findings) -> Option<Table> {
    let main = suites(&findings.summary).first().copied()?;
    super::slices::not_told_apart(findings, main)
}

/// For a terminal.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let main = suites(&findings.summary).first().copied()?;
    Some(table(findings, main))
}
