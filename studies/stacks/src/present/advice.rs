//! What to change: the answer, and a table of changes.

use std::collections::BTreeMap;

use report::{Cell, Column, Inline, KeyFigure, Row, Section, Table};
use stats::claims::{Better, MARGIN, Ranking, Words};
use tls_drivers::{Suite, Workload};

use super::{Findings, estimate, rate_text, suite_text};
use crate::advice::{Change, Kind, MODERN, best};
use crate::sample::value;
use crate::summary::Want;

/// Words of a ranking by CPU time.
const CHEAPEST: Words = Words { wins: "is cheapest", behind: "dearer", pairs: "rounds" };

/// A library, and CPU-seconds of its server per million full handshakes.
type Median<'a> = (&'a str, f64);

/// Libraries by their server's CPU time for a full handshake.
struct Costs<'a> {
    suite: Suite,
    /// The least first.
    medians: Vec<Median<'a>>,
    ranking: Ranking,
}

/// Returns the ranking of the answer.
pub(super) fn rankings(findings: &Findings) -> Vec<(String, Ranking)> {
    let costs = costs(findings).filter(|costs| costs.ranking.len() > 1);
    costs.map(|costs| (suite_text(costs.suite), costs.ranking)).into_iter().collect()
}

/// Ranks the servers by full handshakes; `None` if none was measured.
fn costs(findings: &Findings) -> Option<Costs<'_>> {
    let suite = super::cost::suites(&findings.summary).first().copied()?;
    let find = |name| findings.summary.find(Want::handshake(Workload::Full, suite).of(name));
    let measured = findings.summary.measured().into_iter();
    let mut medians: Vec<Median<'_>> = measured
        .filter_map(|name| Some((name, find(name)?.median(value::SERVER_CPU)?.value)))
        .collect();
    medians.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut ranking = Ranking::new(Better::Less, MARGIN);
    for (name, _) in &medians {
        let rounds = find(name).and_then(|cell| cell.by_round(value::SERVER_CPU));
        ranking.push_turns(findings.summary.title(name), rounds.unwrap_or(&BTreeMap::new()));
    }
    (!medians.is_empty()).then_some(Costs { suite, medians, ranking })
}

/// The least and the most.
fn ends<'a>(costs: &Costs<'a>) -> Option<(Median<'a>, Median<'a>)> {
    Some((*costs.medians.first()?, *costs.medians.last()?))
}

/// CPU-seconds per million connections, as words.
fn saved_text(change: &Change) -> String {
    format!(
        "{:.0} CPU-seconds per million connections ({:.0} %)",
        change.saved.value.abs(),
        change.percent().abs()
    )
}

pub(super) fn answer(findings: &Findings) -> Vec<Inline> {
    let Some(costs) = costs(findings) else {
        let text = "Which library costs least is not known: no full handshakes were measured in memory on \
                    one thread.";
        let counted = super::profile::answer(findings);
        let mut lines = if counted.is_empty() { vec![Inline::new().text(text)] } else { counted };
        lines.extend(super::sessions::answer(findings));
        return lines;
    };
    let title = |name: &str| findings.summary.title(name);
    if let [(only, least)] = costs.medians.as_slice() {
        let text = format!(
            "{} spends {least:.0} CPU-seconds on the server for a million full handshakes; there is \
             no other library to compare it with. `make drivers` builds more.",
            title(only)
        );
        return vec![Inline::marked(&text)];
    }
    let seconds =
        |at: usize| costs.medians.get(at).map_or(String::new(), |(_, s)| format!("{s:.0}"));
    let said = CHEAPEST.sentence(&costs.ranking.verdict(), seconds);
    let text = format!(
        "Server CPU-seconds per million full handshakes ({}): {said}.",
        suite_text(costs.suite)
    );
    let mut lines = vec![Inline::new().text(text)];
    let best_name = costs.medians.first().map_or("", |(name, _)| *name);
    lines.extend(upgrade(findings));
    lines.extend(locks(findings));
    let from = findings.yardstick().unwrap_or(best_name);
    for (kind, words) in [
        (Kind::Key, "An ECDSA P-256 key instead of RSA-2048"),
        (Kind::Resume, "Resumption instead of a full handshake"),
    ] {
        if let Some(change) = best(&findings.changes, &[kind], from) {
            let rest = format!(" saves {} with {}.", saved_text(change), title(from));
            lines.push(Inline::new().strong(words).text(rest));
        }
    }
    lines.extend(sharing(findings));
    lines.extend(super::sessions::answer(findings));
    lines
}

/// The version of OpenSSL to move to from the worst one.
fn upgrade(findings: &Findings) -> Option<Inline> {
    let names = findings.summary.measured();
    let surest = |name: &&str| best(&findings.changes, &[Kind::Version], name);
    let change =
        names.iter().filter_map(surest).max_by(|a, b| a.percent().total_cmp(&b.percent()))?;
    Some(
        Inline::new()
            .strong(format!(
                "{} instead of {}",
                findings.summary.title(&change.to),
                findings.summary.title(&change.from)
            ))
            .text(format!(" saves {}, in the same family.", saved_text(change))),
    )
}

/// Fewest and most locks.
fn locks(findings: &Findings) -> Option<Inline> {
    let counts = findings.summary.measured().into_iter().filter_map(|name| {
        let cell = super::locks::counted(&findings.summary, name, Workload::Full, MODERN)?;
        Some((name, cell.server_locks()?))
    });
    let mut counts: Vec<(&str, f64)> = counts.collect();
    counts.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((few, least), (many, most)) = (counts.first()?, counts.last()?);
    if few == many {
        return None;
    }
    let title = |name: &str| findings.summary.title(name);
    let contended = findings.summary.machine.as_ref().and_then(|machine| machine.contended);
    let estimate = contended.and_then(|contended| {
        super::scale::contention_of(&findings.summary, many, Workload::Full, MODERN, contended)?
            .1
            .locks_per_s
    });
    let estimate = estimate.map_or(String::new(), |rate| {
        let published = super::counterparts::published_full(many).map_or(String::new(), |rate| {
            format!("; HAProxy 2025 measured {} with 64 cores", rate_text(rate))
        });
        format!(
            " If each were handed from core to core as on this machine, all of one lock, that would be {} \
             handshakes per second (an estimate, and no bound{published}).",
            rate_text(rate)
        )
    });
    Some(Inline::new().strong("Locks").text(format!(
        ": {} takes {most:.0} on the server for a full handshake, {} takes {least:.0}.{estimate}",
        title(many),
        title(few)
    )))
}

/// What a context for each thread wins at most.
fn sharing(findings: &Findings) -> Option<Inline> {
    let sure = findings.changes.iter().filter(|change| {
        matches!(change.kind, Kind::Contexts | Kind::Locks)
            && change.is_sure()
            && change.saved.value > 0.0
    });
    let change = sure.max_by(|a, b| a.percent().total_cmp(&b.percent()))?;
    Some(
        Inline::new()
            .strong(format!(
                "{} with {}",
                if change.kind == Kind::Contexts {
                    "A context for each thread"
                } else {
                    "Light locks"
                },
                findings.summary.title(&change.from)
            ))
            .text(format!(
                " gain {:.0} % more connections per second on this machine's cores.",
                change.percent()
            )),
    )
}

pub(super) fn key_figures(findings: &Findings) -> Vec<KeyFigure> {
    let mut figures = Vec::new();
    if let Some(((best, least), (worst, most))) = costs(findings).as_ref().and_then(ends) {
        figures.push(KeyFigure {
            value: format!("{least:.0}"),
            unit: "CPU-s per million".to_owned(),
            label: format!("full handshakes, server, {}", findings.summary.title(best)),
            detail: "measured, in memory, one thread".to_owned(),
            means: format!(
                "1000 new connections per second keep {:.0} % of a core busy with handshakes.",
                least / 10.0
            ),
        });
        if best != worst {
            figures.push(KeyFigure {
                value: format!("{:.1}", most / least),
                unit: "times".to_owned(),
                label: "from the least median to the greatest".to_owned(),
                detail: format!(
                    "{} and {}",
                    findings.summary.title(worst),
                    findings.summary.title(best)
                ),
                means: format!(
                    "A server on {} needs {:.1} times the processors of one on {} for the same handshakes.",
                    findings.summary.title(worst),
                    most / least,
                    findings.summary.title(best)
                ),
            });
        }
    }
    let counts = findings.summary.measured().into_iter().filter_map(|name| {
        let cell = super::locks::counted(&findings.summary, name, Workload::Full, MODERN)?;
        Some((name, cell.server_locks()?))
    });
    if let Some((name, count)) = counts.max_by(|a, b| a.1.total_cmp(&b.1)) {
        figures.push(KeyFigure {
            value: format!("{count:.0}"),
            unit: "locks".to_owned(),
            label: format!("a full handshake, server, {}", findings.summary.title(name)),
            detail: "counted; does not depend on the machine".to_owned(),
            means: format!(
                "Each new connection takes {count:.0} locks, at which threads of one process may wait for each other."
            ),
        });
    }
    figures
}

/// Every sure change.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let table = table(findings, usize::MAX)?;
    let text = "What a change saves of the server's CPU time (for contexts and locks: what it gains in \
                connections per second). Changes that may be chance, or are below 2 %, are left out; of \
                other libraries the best stands for all.";
    Some(Section::new("stacks-change", "What to change").with(Inline::new().text(text)).with(table))
}

fn table(findings: &Findings, most: usize) -> Option<Table> {
    let columns = vec![
        Column::new("Today"),
        Column::new("Change to"),
        Column::new("today"),
        Column::new("then"),
        Column::new("saved"),
        Column::new("of today").unit("%"),
        Column::new("unit"),
    ];
    let mut table = Table::new("What to change, and what it saves", columns);
    for change in shown(findings).into_iter().take(most) {
        let unit = match change.kind {
            Kind::Contexts | Kind::Locks => "connections/s",
            _ => "CPU-s per million",
        };
        let to = match change.kind {
            Kind::Library | Kind::Version => findings.summary.title(&change.to),
            _ => change.to.clone(),
        };
        table.push(Row {
            cells: vec![
                Cell::text(findings.summary.title(&change.from)),
                Cell::text(to),
                estimate(Some(change.today), 0),
                estimate(Some(change.after), 0),
                estimate(Some(change.saved), 0),
                Cell::difference(change.percent(), 0),
                Cell::text(unit),
            ],
            command: Some(change.command.clone()),
        });
    }
    (!table.rows.is_empty()).then_some(table)
}

/// For each library the best of each kind of change; what costs is shown too.
fn shown(findings: &Findings) -> Vec<&Change> {
    let kinds = [
        Kind::Library,
        Kind::Version,
        Kind::Key,
        Kind::Resume,
        Kind::Tls13,
        Kind::Contexts,
        Kind::Locks,
    ];
    let mut shown = Vec::new();
    for name in findings.summary.measured() {
        shown.extend(kinds.iter().filter_map(|kind| best(&findings.changes, &[*kind], name)));
        shown.extend(findings.changes.iter().filter(|change| {
            change.from == name && change.kind == Kind::PostQuantum && change.is_sure()
        }));
    }
    shown
}

/// For a terminal.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    const FEW: usize = 24;
    table(findings, FEW)
}
