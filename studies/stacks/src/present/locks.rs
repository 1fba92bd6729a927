//! Locks per handshake: a figure that does not depend on the machine.

use report::{Cell, Column, Inline, Row, Section, Status, Table};
use tls_drivers::{Key, Locks, Suite, Version, Workload};

use super::{Findings, estimate, handshake_text};
use crate::advice::{Kind, MODERN};
use crate::published::{outside, trial};
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// A count within this share of the trial's is the same.
const SAME: f64 = 0.10;

/// The trial's two handshakes.
pub(super) const TLS12_RSA: Suite = Suite { version: Version::Tls12, key: Key::Rsa2048, ..MODERN };

/// The counts of a library's locks in one kind of handshake.
pub(super) fn counted<'a>(
    summary: &'a Summary,
    name: &'a str,
    workload: Workload,
    suite: Suite,
) -> Option<&'a Measured> {
    counted_with(summary, name, workload, suite, 1)
}

/// The same with so many tickets.
fn counted_with<'a>(
    summary: &'a Summary,
    name: &'a str,
    workload: Workload,
    suite: Suite,
    tickets: u32,
) -> Option<&'a Measured> {
    let want = Want {
        tickets,
        workload: Some(workload),
        version: Some(suite.version),
        key: Some(suite.key),
        group: Some(suite.group),
        locks: Locks::Count,
        ..Want::TIMED
    };
    summary.find(want.of(name)).filter(|cell| cell.server_locks().is_some())
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let tables = [table(findings, MODERN), table(findings, TLS12_RSA)];
    if tables.iter().all(Option::is_none) {
        return None;
    }
    let text = "Acquisitions of reader-writer locks and mutexes inside the library, counted on the \
                server's side of one connection. The counts are exact and do not depend on the \
                machine; what they cost grows with the cores that take them. Not in them: the \
                C library's own locks, those of other runtimes (Rust's and Go's, made of \
                futexes, rustls's among them) and atomic instructions. Every server here issues \
                one ticket a handshake; the trial left each library its default, which is two in \
                OpenSSL's TLS 1.3, so counts with two stand beside.";
    let mut section =
        Section::new("stacks-locks", "Locks per handshake").with(Inline::new().text(text));
    for table in tables.into_iter().flatten() {
        section = section.with(table);
    }
    if let Some(table) = more(findings) {
        section = section.with(table);
    }
    if let Some(table) = sites(findings) {
        section = section.with(table);
    }
    if let Some(table) = variants(findings) {
        section = section.with(table);
    }
    Some(section)
}

fn table(findings: &Findings, suite: Suite) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("read"),
        Column::new("write"),
        Column::new("mutex"),
        Column::new("all").bars(),
        Column::new("all, two tickets"),
        Column::new("all, trial"),
        Column::new("beside the trial").unit("%"),
        Column::new(""),
    ];
    let caption =
        format!("Locks on the server's side of a full handshake, {}", handshake_text(suite));
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let Some(cell) = counted(&findings.summary, name, Workload::Full, suite) else { continue };
        let count = |what| Cell::known(cell.median(what).map(|median| median.value), 1);
        let range = range_of(name, suite);
        let all = cell.server_locks();
        let two = two_tickets(&findings.summary, name, suite);
        let nearest = range.and_then(|range| nearest(range, all, two));
        table.push(Row {
            cells: vec![
                Cell::text(findings.summary.title(name)),
                count(value::SERVER_READ),
                count(value::SERVER_WRITE),
                count(value::SERVER_MUTEX),
                Cell::known(all, 1),
                Cell::known(two, 1),
                range.map_or(Cell::Empty, range_cell),
                nearest.map_or(Cell::Empty, |(share, _)| Cell::difference(100.0 * share, 1)),
                nearest.map_or(Cell::Empty, judged),
            ],
            command: Some(cell.command.clone()),
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The server's locks where it issues two tickets; TLS 1.2 has one at most.
fn two_tickets(summary: &Summary, name: &str, suite: Suite) -> Option<f64> {
    with_two_tickets(summary, name, suite)?.server_locks()
}

fn with_two_tickets<'a>(summary: &'a Summary, name: &'a str, suite: Suite) -> Option<&'a Measured> {
    let tls13 = (suite.version == Version::Tls13).then_some(suite)?;
    counted_with(summary, name, Workload::Full, tls13, 2)
}

/// The trial's range for a library.
fn range_of(name: &str, suite: Suite) -> Option<(f64, f64)> {
    trial(name).map(|trial| match suite.version {
        Version::Tls13 => trial.tls13_ecdsa,
        Version::Tls12 => trial.tls12_rsa,
    })
}

/// Of our counts that which stands beside the trial's: of as many tickets, one or two, as it is nearer
/// with.
pub(super) fn beside_trial(findings: &Findings, name: &str, suite: Suite) -> Option<(f64, u32)> {
    let all =
        counted(&findings.summary, name, Workload::Full, suite).and_then(Measured::server_locks);
    let two = two_tickets(&findings.summary, name, suite);
    let (_, tickets) = nearest(range_of(name, suite)?, all, two)?;
    Some((if tickets == 1 { all? } else { two? }, tickets))
}

/// The cells that the table for a terminal shows.
pub(super) fn shown(findings: &Findings) -> Vec<&Measured> {
    let summary = &findings.summary;
    let of = |name| {
        let count = |suite| counted(summary, name, Workload::Full, suite);
        [count(MODERN), count(TLS12_RSA), with_two_tickets(summary, name, MODERN)]
    };
    summary.measured().into_iter().flat_map(of).flatten().collect()
}

fn range_cell((low, high): (f64, f64)) -> Cell {
    if low == high { Cell::text(format!("{low}")) } else { Cell::text(format!("{low} to {high}")) }
}

/// How far the count with one ticket lies from the trial's, or with two where that is nearer, and
/// with how many it is.
fn nearest(range: (f64, f64), one: Option<f64>, two: Option<f64>) -> Option<(f64, u32)> {
    let counts = [one, two].into_iter().zip([1, 2]);
    let shares = counts.filter_map(|(count, tickets)| Some((outside(count?, range), tickets)));
    shares.min_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))
}

fn judged((share, tickets): (f64, u32)) -> Cell {
    match (share.abs() <= SAME, tickets) {
        (true, 1) => Cell::Status(Status::Good, "as the trial".to_owned()),
        (true, _) => Cell::Status(Status::Good, "as the trial, with two tickets".to_owned()),
        (false, _) => Cell::Status(Status::Bad, "another count".to_owned()),
    }
}

/// Resumption, and the client's side.
fn more(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("full, server"),
        Column::new("full, client"),
        Column::new("resumed, server"),
        Column::new("resumed, client"),
    ];
    let caption = format!("Locks per connection on either side, {}", handshake_text(MODERN));
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let of = |workload| counted(&findings.summary, name, workload, MODERN);
        let (full, resumed) = (of(Workload::Full), of(Workload::Resume));
        if resumed.is_none() {
            continue;
        }
        table.push(Row::new(vec![
            Cell::text(findings.summary.title(name)),
            Cell::known(full.and_then(Measured::server_locks), 1),
            Cell::known(full.and_then(Measured::client_locks), 1),
            Cell::known(resumed.and_then(Measured::server_locks), 1),
            Cell::known(resumed.and_then(Measured::client_locks), 1),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Call sites that are shown of a library.
const SHOWN: usize = 4;

fn sites(findings: &Findings) -> Option<Table> {
    let columns =
        vec![Column::new("Library"), Column::new("Functions that take them, and how often")];
    let caption = format!(
        "Where the locks of a full handshake are taken (server's side, {})",
        handshake_text(MODERN)
    );
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let cell = counted(&findings.summary, name, Workload::Full, MODERN);
        let sites = cell.map(Measured::sites).unwrap_or_default();
        let text = sites.iter().take(SHOWN).map(|(symbol, count)| format!("{symbol} {count:.1}"));
        let text = text.collect::<Vec<_>>().join(", ");
        if !text.is_empty() {
            table.push(Row::new(vec![Cell::text(findings.summary.title(name)), Cell::Code(text)]));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What sharing a context, and the C library's locks, cost on this machine.
fn variants(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("as built").unit("1/s"),
        Column::new("a context a thread").unit("1/s"),
        Column::new("won").unit("%"),
        Column::new("light locks").unit("1/s"),
        Column::new("won").unit("%"),
    ];
    let caption = "Connections per second with one shared context and the C library's locks, and \
                   what a context per thread, or light locks instead, gain";
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let of = |kind| {
            findings.changes.iter().find(|change| change.from == name && change.kind == kind)
        };
        let (own, light) = (of(Kind::Contexts), of(Kind::Locks));
        let Some(any) = own.or(light) else { continue };
        let after = |change: Option<&crate::advice::Change>| estimate(change.map(|c| c.after), 0);
        let won = |change: Option<&crate::advice::Change>| {
            change.map_or(Cell::Empty, |change| Cell::difference(change.percent(), 1))
        };
        table.push(Row {
            cells: vec![
                Cell::text(findings.summary.title(name)),
                estimate(Some(any.today), 0),
                after(own),
                won(own),
                after(light),
                won(light),
            ],
            command: Some(any.command.clone()),
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

/// For a terminal: both handshakes beside the trial.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Library"),
        Column::new("TLS 1.3 ECDSA"),
        Column::new("two tickets"),
        Column::new("trial"),
        Column::new("TLS 1.2 RSA"),
        Column::new("trial"),
    ];
    let caption = "Locks on the server's side of a full handshake (the trial left each library its \
                   number of tickets: two in OpenSSL's TLS 1.3)";
    let mut table = Table::new(caption, columns);
    for name in findings.summary.measured() {
        let of = |suite| {
            counted(&findings.summary, name, Workload::Full, suite).and_then(Measured::server_locks)
        };
        let (modern, rsa) = (of(MODERN), of(TLS12_RSA));
        if modern.is_none() && rsa.is_none() {
            continue;
        }
        let trial = trial(name);
        table.push(Row::new(vec![
            Cell::text(findings.summary.title(name)),
            Cell::known(modern, 1),
            Cell::known(two_tickets(&findings.summary, name, MODERN), 1),
            trial.map_or(Cell::Empty, |trial| range_cell(trial.tls13_ecdsa)),
            Cell::known(rsa, 1),
            trial.map_or(Cell::Empty, |trial| range_cell(trial.tls12_rsa)),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}
