//! What sessions are resumed by: tickets beside session IDs, from a library's own cache and from a store
//! outside it.

use std::collections::BTreeMap;

use report::{Cell, Column, Inline, Row, Section, Table};
use stats::Estimate;
use tls_drivers::{Contexts, Locks, Sessions, Wire, Workload};

use super::{Findings, estimate, handshake_text};
use crate::point::{Point, Tool};
use crate::sample::value;
use crate::summary::Cell as Measured;

/// A difference below this share is not worth a sentence.
const TRIFLE: f64 = 0.02;

/// The ways that stand beside tickets.
const BY_ID: [Sessions; 2] = [Sessions::Cache, Sessions::External];

/// One point by each way, in the order of [`Sessions::ALL`].
struct Beside<'a> {
    point: &'a Point,
    cells: [Option<&'a Measured>; 3],
}

impl<'a> Beside<'a> {
    fn of(&self, sessions: Sessions) -> Option<&'a Measured> {
        let at = Sessions::ALL.iter().position(|one| *one == sessions)?;
        *self.cells.get(at)?
    }

    /// A value by one way as a multiple of it by tickets, slice by slice.
    fn ratio(&self, sessions: Sessions, name: &str) -> Option<Estimate> {
        let tickets = self.of(Sessions::Tickets).filter(|cell| cell.is_good())?;
        self.of(sessions)?.ratio_to(tickets, name)
    }
}

/// The points that were measured with session IDs, in the order of the libraries and of their threads.
fn beside(findings: &Findings) -> Vec<Beside<'_>> {
    let mut found: BTreeMap<Point, Beside<'_>> = BTreeMap::new();
    for cell in &findings.summary.cells {
        let point = &cell.point;
        if point.workload != Workload::Resume || point.tool != Tool::Host {
            continue;
        }
        // Whatever sweep it is of.
        let key = Point { sweep: String::new(), sessions: Sessions::Tickets, ..point.clone() };
        let one = found.entry(key).or_insert(Beside { point, cells: [None; 3] });
        let at = Sessions::ALL.iter().position(|way| *way == point.sessions);
        if let Some(place) = at.and_then(|at| one.cells.get_mut(at))
            && place.is_none_or(|before| before.slices < cell.slices)
        {
            *place = Some(cell);
        }
    }
    let mut found: Vec<Beside<'_>> =
        found.into_values().filter(|one| BY_ID.iter().any(|way| one.of(*way).is_some())).collect();
    let order = |name: &str| findings.summary.libraries.iter().position(|about| about.name == name);
    found.sort_by_key(|one| {
        let point = one.point;
        (order(&point.library), point.wire, point.suite, point.contexts, point.locks, point.threads)
    });
    found
}

/// The points that the tables here show.
pub(super) fn shown(findings: &Findings) -> Vec<&Measured> {
    beside(findings).iter().flat_map(|one| one.cells).flatten().collect()
}

/// A value in a table, or why there is none.
fn known(cell: Option<&Measured>, name: &str, decimals: usize) -> Cell {
    match cell {
        Some(cell) if cell.is_good() => estimate(cell.median(name), decimals),
        Some(cell) if cell.failed.contains_key("unsupported") => Cell::text("not supported"),
        Some(_) => Cell::text("failed"),
        None => Cell::Empty,
    }
}

fn difference(ratio: Option<Estimate>) -> Cell {
    ratio.map_or(Cell::Empty, |ratio| Cell::difference(100.0 * (ratio.value - 1.0), 1))
}

fn columns(unit: &str, differences: bool) -> Vec<Column> {
    let mut columns: Vec<Column> =
        ["Library", "handshake", "over", "threads"].map(Column::new).into();
    let value = |name: &str| match unit {
        "" => Column::new(name),
        unit => Column::new(name).unit(unit),
    };
    columns.push(value("tickets"));
    for name in ["its cache", "a store outside"] {
        columns.push(value(name));
        if differences {
            columns.push(Column::new("beside tickets").unit("%"));
        }
    }
    columns
}

fn head(findings: &Findings, point: &Point) -> Vec<Cell> {
    let mut over = match point.wire {
        Wire::Memory => "memory".to_owned(),
        Wire::Loopback => "loopback TCP".to_owned(),
    };
    if point.contexts == Contexts::PerThread {
        over += ", a context per thread";
    }
    if point.locks == Locks::Light {
        over += ", light locks";
    }
    vec![
        Cell::text(findings.summary.title(&point.library)),
        Cell::text(handshake_text(point.suite)),
        Cell::text(over),
        Cell::count(point.threads as u64),
    ]
}

/// A value that was timed, by each way.
fn timed(findings: &Findings, (name, unit, decimals): (&str, &str, usize), caption: &str) -> Table {
    let mut table = Table::new(caption, columns(unit, true));
    for one in beside(findings).iter().filter(|one| one.point.locks != Locks::Count) {
        let mut cells = head(findings, one.point);
        cells.push(known(one.of(Sessions::Tickets), name, decimals));
        for way in BY_ID {
            cells.push(known(one.of(way), name, decimals));
            cells.push(difference(one.ratio(way, name)));
        }
        table.push(Row { cells, command: command(one) });
    }
    table
}

/// Locks on the server's side, by each way.
fn counted(findings: &Findings) -> Table {
    let caption = "Locks on the server's side of a resumed handshake, counted";
    let mut table = Table::new(caption, columns("", false));
    for one in beside(findings).iter().filter(|one| one.point.locks == Locks::Count) {
        let mut cells = head(findings, one.point);
        cells.extend(Sessions::ALL.iter().map(|way| {
            let cell = one.of(*way);
            match cell.and_then(Measured::server_locks) {
                Some(locks) => Cell::number(locks, 1),
                None => known(cell, value::SERVER_MUTEX, 1),
            }
        }));
        table.push(Row { cells, command: command(one) });
    }
    table
}

/// The command of what has session IDs.
fn command(one: &Beside<'_>) -> Option<String> {
    let cell = one.of(Sessions::Cache).or(one.of(Sessions::External));
    cell.map(|cell| cell.command.clone())
}

/// All tables that have rows.
pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    let rates = "Resumed connections per second, by threads: tickets beside session IDs";
    let costs = "The server's CPU time of a resumed connection: tickets beside session IDs";
    let tables = [
        timed(findings, (value::RATE, "1/s", 0), rates),
        timed(findings, (value::SERVER_CPU, "µs", 1), costs),
        counted(findings),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let tables = tables(findings);
    if tables.is_empty() {
        return None;
    }
    let text = "With tickets a server keeps nothing and decrypts what clients bring. With session IDs (TLS 1.2) it \
                remembers: in its library's own cache, or in a store outside that the library asks by callbacks, \
                here one table under one mutex for all threads, which holds sessions as bytes. A \
                connection counts only where the wire shows that it was resumed and that no ticket was issued. Locks \
                of the store are counted with the library's; rustls's cache and store have locks of Rust, which no \
                count sees.";
    let section = Section::new("stacks-sessions", "What sessions are resumed by")
        .with(Inline::new().text(text));
    Some(tables.into_iter().fold(section, Section::with))
}

/// The tables of docs/results/stacks.md, of results that have nothing but these.
pub(super) fn markdown(findings: &Findings) -> Option<String> {
    let tables = tables(findings);
    if tables.is_empty() {
        return None;
    }
    let tables = tables
        .iter()
        .map(|table| format!("{}:\n\n{}", table.caption, table.to_markdown().trim_end()));
    Some(format!("{}.\n\n{}\n", findings.provenance, tables.collect::<Vec<_>>().join("\n\n")))
}

/// The largest sure difference, at the most threads of its library, with the locks beside.
pub(super) fn answer(findings: &Findings) -> Option<Inline> {
    let all = beside(findings);
    let usual = |one: &&Beside<'_>| one.point.locks == Locks::Pthread;
    let threads = |name: &str| {
        let own = all.iter().filter(usual).filter(|one| one.point.library == name);
        own.map(|one| one.point.threads).max()
    };
    let most = all.iter().filter(usual).filter(|one| {
        one.point.library != crate::NULL && Some(one.point.threads) == threads(&one.point.library)
    });
    let differences = most.flat_map(|one| {
        BY_ID.into_iter().filter_map(move |way| Some((one, way, one.ratio(way, value::RATE)?)))
    });
    let sure = differences.filter(|(_, _, ratio)| {
        (ratio.low > 1.0 || ratio.high < 1.0) && (ratio.value - 1.0).abs() >= TRIFLE
    });
    let size = |ratio: &Estimate| ratio.value.ln().abs();
    let (one, way, ratio) = sure.max_by(|a, b| size(&a.2).total_cmp(&size(&b.2)))?;
    let share = 100.0 * (ratio.value - 1.0);
    let more = if share > 0.0 { "more" } else { "fewer" };
    let plural = if one.point.threads == 1 { "" } else { "s" };
    let counts = all.iter().find(|other| {
        let same =
            (&one.point.library, one.point.suite) == (&other.point.library, other.point.suite);
        other.point.locks == Locks::Count && same
    });
    let locks = counts.and_then(|counts| {
        let of = |way| counts.of(way).and_then(Measured::server_locks);
        Some((of(way)?, of(Sessions::Tickets)?))
    });
    let locks = locks.map_or(String::new(), |(ids, tickets)| {
        format!("; a handshake takes {ids:.0} locks on the server, with tickets {tickets:.0}")
    });
    Some(Inline::new().strong(format!("Resumption by {}", way.text())).text(format!(
        " instead of tickets makes {:.0} % {more} connections per second with {} ({}, {} thread{plural}){locks}.",
        share.abs(),
        findings.summary.title(&one.point.library),
        handshake_text(one.point.suite),
        one.point.threads
    )))
}
