//! The client's side: what it takes to make connections, and how a client's cost compares with a server's.

use std::collections::BTreeSet;

use report::{Cell, Column, Inline, Row, Section, Table};
use tls_drivers::hosts::LOAD_CLIENT;
use tls_drivers::{Suite, Wire, Workload};

use super::{Findings, estimate, locks, profile, suite_text};
use crate::point::Tool;
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// The library that the load generator is built on, by its driver.
const LOAD_LIBRARY: &str = "rustls-aws-lc-rs";

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let tables = [costs(findings), threads_table(findings), generator(findings)];
    if tables.iter().all(Option::is_none) {
        return None;
    }
    let text = "What a client takes, with the same library on both sides, in memory. `server / client` is what \
                a client makes a server spend for each microsecond of its own: above 1 a flood of handshakes \
                costs who sends it less than who serves it. A client that checks nothing is cheaper still. \
                HAProxy 2025 could not make more than 400 connections/s with a load generator on OpenSSL 3.0 \
                and 48 cores, where 1.1.1 made 140,000.";
    let mut section =
        Section::new("stacks-client", "The client's side").with(Inline::new().text(text));
    for table in tables.into_iter().flatten() {
        section = section.with(table);
    }
    Some(section)
}

/// For a terminal.
pub(super) fn summary(findings: &Findings) -> Vec<Table> {
    [costs(findings), threads_table(findings), generator(findings)].into_iter().flatten().collect()
}

/// A library as its own client in memory.
fn own<'a>(summary: &'a Summary, want: Want<'a>, name: &'a str) -> Option<&'a Measured> {
    let mut cells = summary.all(want.of(name));
    cells.find(|cell| cell.point.client == name && cell.median(value::CLIENT_CPU).is_some())
}

fn costs(findings: &Findings) -> Option<Table> {
    let summary = &findings.summary;
    let columns = vec![
        Column::new("Library"),
        Column::new("handshake"),
        Column::new("client").unit("µs"),
        Column::new("client alone, a core").unit("1/s"),
        Column::new("server").unit("µs"),
        Column::new("server / client"),
        Column::new("client / server, instructions"),
        Column::new("client's locks"),
    ];
    let mut table =
        Table::new("CPU time of a client and of its server, a full handshake each", columns);
    for suite in super::cost::suites(summary) {
        for name in summary.measured() {
            let Some(cell) = own(summary, Want::handshake(Workload::Full, suite), name) else {
                continue;
            };
            let median = |what| cell.median(what);
            let client = median(value::CLIENT_CPU);
            let counted = Want { tool: Tool::Callgrind, ..Want::handshake(Workload::Full, suite) };
            let counted = summary.find(counted.of(name));
            let locks = locks::counted(summary, name, Workload::Full, suite);
            table.push(Row {
                cells: vec![
                    Cell::text(summary.title(name)),
                    Cell::text(suite_text(suite)),
                    estimate(client, 1),
                    Cell::known(client.map(|client| 1e6 / client.value), 0),
                    estimate(median(value::SERVER_CPU), 1),
                    Cell::known(server_by_client(cell), 2),
                    Cell::known(counted.and_then(profile::client_ratio), 2),
                    Cell::known(locks.and_then(Measured::client_locks), 0),
                ],
                command: Some(cell.command.clone()),
            });
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What the server spends for each microsecond of the client's.
pub(super) fn server_by_client(cell: &Measured) -> Option<f64> {
    let of = |name| cell.median(name).map(|median| median.value);
    let ratio = of(value::SERVER_CPU)? / of(value::CLIENT_CPU)?;
    ratio.is_finite().then_some(ratio)
}

/// Connections a second that the client's side alone would make: the rate of both sides, which share the
/// threads, by the client's part of the CPU time. What threads wait for is in it, divided alike.
fn client_alone(cell: &Measured) -> Option<f64> {
    let of = |name| cell.median(name).map(|median| median.value);
    let (rate, client) = (of(value::RATE)?, of(value::CLIENT_CPU)?);
    let alone = rate * (client + of(value::SERVER_CPU)?) / client;
    alone.is_finite().then_some(alone)
}

/// The suite with the most core counts, and these.
fn most_counts(summary: &Summary) -> Option<(Suite, Vec<usize>)> {
    let counts = |suite: &Suite| -> Vec<usize> {
        let want = Want { threads: None, ..Want::handshake(Workload::Full, *suite) };
        let own = summary.all(want).filter(|cell| cell.point.client == cell.point.library);
        own.map(|cell| cell.point.threads).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let all = super::cost::suites(summary).into_iter().rev().map(|suite| (suite, counts(&suite)));
    all.max_by_key(|(_, counts)| counts.len()).filter(|(_, counts)| counts.len() > 1)
}

/// What a library's clients alone would make.
pub(super) struct ByThreads<'a> {
    pub(super) name: &'a str,
    /// Connections a second by threads, two at least.
    pub(super) rates: Vec<(usize, f64)>,
    command: Option<String>,
}

impl ByThreads<'_> {
    /// What the most threads bring over the fewest.
    pub(super) fn gain(&self) -> f64 {
        let ends = self.rates.first().zip(self.rates.last());
        ends.map_or(f64::NAN, |((_, fewest), (_, most))| most / fewest)
    }
}

/// Of each library that was measured with several thread counts in memory, full handshakes of one suite.
pub(super) fn by_threads(findings: &Findings) -> Vec<ByThreads<'_>> {
    let summary = &findings.summary;
    let Some((suite, counts)) = most_counts(summary) else { return Vec::new() };
    let each = summary.measured().into_iter().map(|name| {
        let cell = |threads| {
            let want = Want { threads: Some(threads), ..Want::handshake(Workload::Full, suite) };
            own(summary, want, name)
        };
        let rate = |count: &usize| Some((*count, client_alone(cell(*count)?)?));
        let command = counts.last().and_then(|count| cell(*count)).map(|one| one.command.clone());
        ByThreads { name, rates: counts.iter().filter_map(rate).collect(), command }
    });
    each.filter(|one| one.rates.len() > 1).collect()
}

fn threads_table(findings: &Findings) -> Option<Table> {
    let (suite, counts) = most_counts(&findings.summary)?;
    let mut columns = vec![Column::new("Library")];
    columns.extend(counts.iter().map(|count| {
        let threads = if *count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
        Column::new(threads).unit("1/s")
    }));
    columns.push(Column::new("by the threads"));
    let caption = format!(
        "Connections per second that clients alone would make, {}: the rate of both sides in memory by the \
         client's part of the CPU time; and what the most threads bring over one",
        suite_text(suite)
    );
    let mut table = Table::new(caption, columns);
    for one in by_threads(findings) {
        let rate = |count: &usize| {
            let found = one.rates.iter().find(|(threads, _)| threads == count);
            Cell::known(found.map(|(_, rate)| *rate), 0)
        };
        let mut cells = vec![Cell::text(findings.summary.title(one.name))];
        cells.extend(counts.iter().map(rate));
        cells.push(Cell::number(one.gain(), 2));
        table.push(Row { cells, command: one.command });
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The load generator beside the client of its own library over loopback, where both were measured.
fn generator(findings: &Findings) -> Option<Table> {
    let summary = &findings.summary;
    let columns = vec![
        Column::new("Handshake"),
        Column::new("load generator").unit("µs"),
        Column::new("beside the server of"),
        Column::new("its library's client").unit("µs"),
        Column::new("ratio"),
    ];
    let caption = "CPU time of the load generator per connection over loopback, and of a client made of its \
                   library and nothing else (each with the kernel's part): it is to be 1.15 at most";
    let mut table = Table::new(caption, columns);
    let want = Want { threads: Some(1), wire: Some(Wire::Loopback), ..Want::TIMED };
    let cpu = |cell: &Measured| cell.median(value::CLIENT_CPU);
    for load in summary.all(want).filter(|cell| cell.point.client == LOAD_CLIENT) {
        let point = &load.point;
        let library = summary.all(want.of(LOAD_LIBRARY)).find(|cell| {
            cell.point.client == LOAD_LIBRARY
                && (cell.point.workload, cell.point.suite) == (point.workload, point.suite)
        });
        let Some((ours, theirs)) = cpu(load).zip(library.and_then(cpu)) else { continue };
        table.push(Row {
            cells: vec![
                Cell::text(format!(
                    "{}, {}",
                    super::workload_text(point.workload),
                    suite_text(point.suite)
                )),
                estimate(Some(ours), 0),
                Cell::text(summary.title(&point.library)),
                estimate(Some(theirs), 0),
                Cell::number(ours.value / theirs.value, 2),
            ],
            command: Some(load.command.clone()),
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::summarise;

    fn committed() -> Findings {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/stacks");
        let run = record::Run::open(folder).unwrap();
        Findings::new(summarise(run.samples), 1e5, 1)
    }

    #[test]
    fn committed_results_have_their_client_s_side() {
        let findings = committed();
        let table = costs(&findings).unwrap();
        assert!(table.rows.len() > 50, "{}", table.rows.len());
        let text = table.to_text(400);
        assert!(text.contains("OpenSSL 1.1.1w"), "{text}");
        let text = generator(&findings).unwrap().to_text(400);
        assert!(text.contains("Go crypto/tls"), "{text}");
        assert!(section(&findings).is_some());
        assert!(summary(&Findings::new(summarise([]), 1e5, 1)).is_empty());
    }

    #[test]
    fn a_client_alone_makes_what_its_part_of_the_time_allows() {
        let findings = committed();
        let want = Want::handshake(Workload::Full, crate::advice::MODERN);
        let cell = own(&findings.summary, want, "openssl-1.1.1w").unwrap();
        let (alone, cpu) =
            (client_alone(cell).unwrap(), cell.median(value::CLIENT_CPU).unwrap().value);
        // On one thread it is what fits beside nothing else, but for what a slice spends between.
        assert!((0.7..=1.05).contains(&(alone * cpu / 1e6)), "{alone} {cpu}");
        assert!(server_by_client(cell).is_some_and(|ratio| (0.1..2.0).contains(&ratio)));
    }
}
