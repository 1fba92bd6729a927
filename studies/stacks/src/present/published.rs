//! The document's figures beside ours: ratios, since the machines differ.

use report::{Cell, Column, Inline, Note, Row, Section, Table};
use tls_drivers::{Locks, Workload};

use super::{Findings, number, rates};
use crate::published::{Published, SOURCE, published};
use crate::sample::value;
use crate::summary::Cell as Measured;

/// The document's yardstick and ours.
const YARDSTICK: &str = "openssl-1.1.1w";
/// A version that could not be had, and what stands in its place.
const STANDS_IN: (&str, &str) = ("3.0.14", "openssl-3.0.20");

/// Our measurement of what a line of the document is about: the same workload and locks, at the
/// most threads of the group that the charts show.
fn ours<'a>(findings: &Findings<'a>, library: &str, line: &Published) -> Option<&'a Measured> {
    let group = match line.scenario.as_str() {
        "full" => rates::full(findings.summary),
        _ => rates::resumed(findings.summary),
    }?;
    let threads = group.threads.last().copied()?;
    let locks: Locks = line.locks.parse().ok()?;
    let found = findings.summary.cells.iter().filter(|cell| cell.point.library == library);
    found.filter(|cell| cell.is_good()).find(|cell| {
        let point = &cell.point;
        point.workload == group.workload
            && point.wire == group.wire
            && point.suite == group.suite
            && point.threads == threads
            && point.locks == locks
            && point.contexts == tls_drivers::Contexts::Shared
    })
}

pub(super) fn section(findings: &Findings<'_>) -> Option<Section> {
    let lines = published();
    let columns = vec![
        Column::new("Scenario"),
        Column::new("Library, published"),
        Column::new("here"),
        Column::new("locks"),
        Column::new("threads, published"),
        Column::new("published").unit("1/s"),
        Column::new("× 1.1.1w, published"),
        Column::new("here").unit("1/s"),
        Column::new("× 1.1.1w, here"),
        Column::new("published note"),
    ];
    let caption = format!(
        "{SOURCE}: its figures beside ours, as multiples of OpenSSL 1.1.1w with pthread locks at the \
         same number of threads"
    );
    let mut table = Table::new(caption, columns);
    let mut any = false;
    for line in &lines {
        let base = lines.iter().find(|other| {
            other.library == YARDSTICK
                && other.locks == "pthread"
                && (&other.scenario, other.threads) == (&line.scenario, line.threads)
        });
        let cell = ours(findings, &line.library, line);
        let yardstick =
            ours(findings, YARDSTICK, &Published { locks: "pthread".to_owned(), ..line.clone() });
        let rate = |cell: Option<&Measured>| cell?.median(value::RATE).map(|rate| rate.value);
        let ratio =
            |own: Option<f64>, base: Option<f64>| own.zip(base).map(|(own, base)| own / base);
        any |= cell.is_some();
        let title = findings.summary.title(&line.library);
        table.push(Row {
            cells: vec![
                Cell::text(line.scenario.clone()),
                Cell::text(line.name.clone()),
                if cell.is_some() { Cell::text(title) } else { Cell::text("not measured") },
                Cell::text(line.locks.clone()),
                Cell::count(line.threads.into()),
                number(line.per_second, 0),
                number(ratio(line.per_second, base.and_then(|base| base.per_second)), 2),
                number(rate(cell), 0),
                number(ratio(rate(cell), rate(yardstick)), 2),
                Cell::text(line.note.clone()),
            ],
            command: cell.map(|cell| cell.command.clone()),
        });
    }
    if !any {
        return None;
    }
    let threads = rates::full(findings.summary).and_then(|group| group.threads.last().copied());
    let cores = findings.summary.machine.map_or(0, |machine| machine.cores);
    let text = format!(
        "The document measured with HAProxy on 64 cores of an aarch64 server, clients on another \
         machine; here the library alone, both sides on this machine's {cores} cores, with {} threads. \
         The machines differ, so the ratios are what can be held side by side, and what its 64 \
         threads did to locks cannot show on few cores: for that see the counts and their bound.",
        threads.unwrap_or(1)
    );
    let chain = rates::resumed(findings.summary)
        .filter(|group| !matches!(group.workload, Workload::Chain { .. }));
    let mut section = Section::new("stacks-published", "Beside the published figures")
        .with(Inline::new().text(text));
    if chain.is_some() {
        let text = "No chain of proxies was measured: resumed handshakes stand beside the \
                    document's second scenario.";
        section = section.with(Note::info(Inline::new().text(text)));
    }
    if findings.summary.about(STANDS_IN.1).is_some() {
        let text = format!(
            "OpenSSL {} can be had nowhere any more: {} stands in its place.",
            STANDS_IN.0,
            findings.summary.title(STANDS_IN.1)
        );
        section = section.with(Note::info(Inline::new().text(text)));
    }
    Some(section.with(table))
}
