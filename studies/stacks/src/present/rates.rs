//! HAProxy 2025's two charts: connections per second by threads and library.

use std::collections::{BTreeMap, BTreeSet};

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Note, Plot, PlotError, Point, Row, Section, Series,
    Table, Uncertainty,
};
use tls_drivers::{Suite, Wire, Workload};

use super::{Findings, estimate, rate_text, suite_text, workload_text};
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// Cells of one workload that differ in library and threads only.
pub(super) struct Group<'a> {
    pub workload: Workload,
    pub wire: Wire,
    pub suite: Suite,
    /// By library, in the order to show them: by threads.
    pub libraries: Vec<(&'a str, BTreeMap<usize, &'a Measured>)>,
    /// All thread counts that any library was measured with.
    pub threads: BTreeSet<usize>,
}

impl Group<'_> {
    /// The most threads that have a core each: over loopback the client has as many beside.
    pub(super) fn most_cores(&self, cores: usize) -> usize {
        match self.wire {
            Wire::Memory => cores,
            Wire::Loopback => cores / 2,
        }
    }
}

/// The groups of the workloads that are wanted.
pub(super) fn groups<'a>(
    summary: &'a Summary,
    wanted: impl Fn(Workload) -> bool,
) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<(Workload, Wire, Suite, &str), Vec<&Measured>> = BTreeMap::new();
    for cell in summary.all(Want::TIMED).filter(|cell| cell.median(value::RATE).is_some()) {
        let point = &cell.point;
        if wanted(point.workload) && point.library != crate::NULL {
            let key = (point.workload, point.wire, point.suite, point.sweep.as_str());
            groups.entry(key).or_default().push(cell);
        }
    }
    let group = |((workload, wire, suite, _), cells): (_, Vec<&'a Measured>)| {
        let of = |name: &str| -> BTreeMap<usize, &'a Measured> {
            let own = cells.iter().filter(|cell| cell.point.library == name);
            own.map(|cell| (cell.point.threads, *cell)).collect()
        };
        let libraries = summary.measured().into_iter().map(|name| (name, of(name)));
        Group {
            workload,
            wire,
            suite,
            libraries: libraries.filter(|(_, cells)| !cells.is_empty()).collect(),
            threads: cells.iter().map(|cell| cell.point.threads).collect(),
        }
    };
    groups.into_iter().map(group).collect()
}

/// Of these the group with the most thread counts, then with the kernel, as servers run, then with
/// the most libraries.
fn group(summary: &Summary, wanted: impl Fn(Workload) -> bool) -> Option<Group<'_>> {
    let all = groups(summary, wanted).into_iter();
    all.max_by_key(|group| {
        (group.threads.len(), group.wire == Wire::Loopback, group.libraries.len())
    })
}

pub(super) fn full(summary: &Summary) -> Option<Group<'_>> {
    group(summary, |workload| workload == Workload::Full)
}

/// The chain; resumption alone where no chain was measured.
pub(super) fn resumed(summary: &Summary) -> Option<Group<'_>> {
    group(summary, |workload| matches!(workload, Workload::Chain { .. }))
        .or_else(|| group(summary, |workload| workload == Workload::Resume))
}

pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let groups = [full(&findings.summary), resumed(&findings.summary)];
    let groups: Vec<Group<'_>> = groups.into_iter().flatten().collect();
    if groups.is_empty() {
        return Ok(None);
    }
    let text = "New connections that end well per second, by threads. The two charts of HAProxy 2025: \
                full handshakes without resumption, and proxies in a row with resumption on both \
                sides of each.";
    let mut section =
        Section::new("stacks-rates", "Connections per second, by library and threads")
            .with(Inline::new().text(text));
    if let Some(note) = beyond(findings, &groups) {
        section = section.with(note);
    }
    let runtime = |group: &Group<'_>| {
        group.libraries.iter().any(|(name, _)| crate::programs::runtime(name).is_some())
    };
    if groups.iter().any(runtime)
        && let Some(note) = super::runtimes::beside(findings)
    {
        section = section.with(note);
    }
    for group in &groups {
        if group.threads.len() > 1 {
            section = section.with(plot(findings, group)?);
        } else {
            section = section.with(table(findings, group));
        }
    }
    Ok(Some(section))
}

/// More threads than cores is not scaling, and the reader is told.
fn beyond(findings: &Findings, groups: &[Group<'_>]) -> Option<Note> {
    let cores = findings.summary.machine.as_ref()?.cores as usize;
    let too_many = |group: &Group<'_>| group.threads.range(group.most_cores(cores) + 1..).count();
    let plural = if cores == 1 { "" } else { "s" };
    let text = format!(
        "This machine has {cores} core{plural}, which client and server share; over loopback the \
         client has as many threads as the server. Points with more threads than cores show what \
         waiting for each other costs, not how a library scales."
    );
    (groups.iter().map(too_many).sum::<usize>() > 0).then(|| Note::info(Inline::new().text(text)))
}

fn heading(group: &Group<'_>) -> String {
    let wire = match group.wire {
        Wire::Memory => "in memory",
        Wire::Loopback => "over loopback TCP",
    };
    format!("{}, {}, {wire}", capitalised(&workload_text(group.workload)), suite_text(group.suite))
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn plot(findings: &Findings, group: &Group<'_>) -> Result<Plot, PlotError> {
    let series = group.libraries.iter().map(|(name, cells)| {
        let points = cells.iter().filter_map(|(threads, cell)| {
            let rate = cell.median(value::RATE)?;
            let mark = Mark::new(rate.value).interval(rate.low, rate.high);
            let note = format!("{} measurements", cell.samples(value::RATE).len());
            Some(Point::new(*threads as f64, mark.note(note).command(cell.command.clone())))
        });
        Series::measured(findings.summary.title(name), points.collect::<Vec<_>>())
    });
    let series: Vec<_> = series.filter(|series| !series.data.is_empty()).collect();
    Plot::new(
        heading(group),
        alt(findings, group),
        means(findings, group),
        Axis::new("Number of threads", ""),
        Axis::new("Connections", "1/s").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
    .map(|plot| plot.caption("Medians with 95 % intervals; libraries took turns."))
}

/// The rates at the most threads, the fastest first.
fn ranked<'a>(group: &Group<'a>) -> Vec<(&'a str, f64)> {
    let Some(most) = group.threads.last() else { return Vec::new() };
    let rate = |(name, cells): &(&'a str, BTreeMap<usize, &'a Measured>)| {
        Some((*name, cells.get(most)?.median(value::RATE)?.value))
    };
    let mut rates: Vec<(&str, f64)> = group.libraries.iter().filter_map(rate).collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    rates
}

/// What they mean for who sizes a server.
fn means(findings: &Findings, group: &Group<'_>) -> String {
    match ranked(group).as_slice() {
        [(best, most), .., (worst, least)] if *least > 0.0 => format!(
            "If its processors are what limits a server, one on {} serves {:.1} times the new connections of one \
             on {}.",
            findings.summary.title(best),
            most / least,
            findings.summary.title(worst)
        ),
        [(only, rate), ..] => format!(
            "A server with this many threads that does nothing else makes at most {} new connections per second with \
             {}.",
            rate_text(*rate),
            findings.summary.title(only)
        ),
        [] => "No rate was measured with the largest number of threads, so nothing follows for a server."
            .to_owned(),
    }
}

/// The fastest and the slowest at the most threads.
fn alt(findings: &Findings, group: &Group<'_>) -> String {
    let Some(most) = group.threads.last() else { return "Nothing was measured.".to_owned() };
    match ranked(group).as_slice() {
        [(best, most_rate), .., (worst, least)] => format!(
            "With {most} threads {} makes {} connections per second, {} makes {}.",
            findings.summary.title(best),
            rate_text(*most_rate),
            findings.summary.title(worst),
            rate_text(*least)
        ),
        [(only, rate)] => format!(
            "With {most} threads {} makes {} connections per second.",
            findings.summary.title(only),
            rate_text(*rate)
        ),
        [] => "No library was measured with the largest number of threads.".to_owned(),
    }
}

fn table(findings: &Findings, group: &Group<'_>) -> Table {
    let mut columns = vec![Column::new("Library")];
    columns.extend(group.threads.iter().map(|threads| {
        let plural = if *threads == 1 { "" } else { "s" };
        Column::new(format!("{threads} thread{plural}")).unit("1/s").bars()
    }));
    let mut table = Table::new(format!("Connections per second: {}", heading(group)), columns);
    for (name, cells) in &group.libraries {
        let mut row = vec![Cell::text(findings.summary.title(name))];
        row.extend(group.threads.iter().map(|threads| {
            estimate(cells.get(threads).and_then(|cell| cell.median(value::RATE)), 0)
        }));
        let command = cells.values().next_back().map(|cell| cell.command.clone());
        table.push(Row { cells: row, command });
    }
    table
}

/// For a terminal: full handshakes; the chain's table is the report's.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let group = full(&findings.summary).filter(|group| group.threads.len() > 1)?;
    Some(table(findings, &group))
}

/// The cells that the table for a terminal shows.
pub(super) fn shown(findings: &Findings) -> Vec<&Measured> {
    let group = full(&findings.summary).filter(|group| group.threads.len() > 1);
    let libraries = group.map(|group| group.libraries).unwrap_or_default();
    libraries.into_iter().flat_map(|(_, cells)| cells.into_values()).collect()
}
