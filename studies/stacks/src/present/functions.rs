//! The table by function: each cell with its source or test.

use report::{Cell, Column, Inline, Row, Section, Table};
use tls_drivers::{Group, Sessions, Version, Workload, function};

use super::Findings;
use crate::about::About;
use crate::point::Tool;
use crate::summary::Summary;
use tls_drivers::hosts::LOAD_CLIENT;

/// What real handshakes showed of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tested {
    /// They were tried, and succeeded.
    Yes,
    /// The library refused.
    No,
    /// They were tried, and failed.
    Failed,
    /// They were not tried.
    Not,
}

fn tested(summary: &Summary, name: &str, is: impl Fn(&crate::point::Point) -> bool) -> Tested {
    let cells = summary.cells.iter();
    let own = cells.filter(|cell| {
        // A handshake with itself: the other side's lack is not this library's.
        let point = &cell.point;
        // The load generator has no lack in what is pinned.
        let sure = point.client == name || point.client == LOAD_CLIENT;
        point.library == name && sure && point.tool == Tool::Host && is(point)
    });
    let (mut refused, mut failed) = (false, false);
    for cell in own {
        if cell.is_good() {
            return Tested::Yes;
        }
        refused |= cell.failed.contains_key("unsupported");
        failed |= cell.failed.keys().any(|reason| reason != "unsupported");
    }
    match (failed, refused) {
        (true, _) => Tested::Failed,
        (false, true) => Tested::No,
        (false, false) => Tested::Not,
    }
}

/// A cell by test, or else by what the driver's build says.
fn cell(tested: Tested, says: bool) -> String {
    match (tested, says) {
        (Tested::Yes, _) => "yes [t]".to_owned(),
        (Tested::No, _) => "no [t]".to_owned(),
        (Tested::Failed, _) => "fails [t]".to_owned(),
        (Tested::Not, true) => "yes [d]".to_owned(),
        (Tested::Not, false) => "no [d]".to_owned(),
    }
}

/// The table, and the sources that its cells point to.
pub(super) fn table(findings: &Findings) -> Option<(Table, Vec<String>)> {
    // Drivers say so since session IDs can be measured: what none of a run says is not known of it.
    let by_id =
        findings.summary.libraries.iter().any(|about| {
            about.functions & (function::SESSION_CACHE | function::SESSION_STORE) != 0
        }) || findings.summary.cells.iter().any(|cell| cell.point.sessions != Sessions::Tickets);
    let mut columns = vec![
        "Library",
        "TLS 1.0, 1.1",
        "TLS 1.2",
        "TLS 1.3",
        "resumption",
        "0-RTT",
        "QUIC API",
        "QUIC of its own",
        "X25519MLKEM768",
        "FIPS module",
        "kernel TLS",
        "ECH",
        "LTS until",
        "licence",
    ];
    if by_id {
        columns.splice(RESUMPTION..RESUMPTION, ["IDs, cache", "IDs, store"]);
    }
    let mut table = Table::new(
        "By function. [t]: shown by handshakes of this run; [d]: by what its driver is built with, or its \
         runtime says; \
         numbers: sources below",
        columns.into_iter().map(Column::new).collect(),
    );
    let mut sources: Vec<String> = Vec::new();
    for about in &findings.summary.libraries {
        if about.name == crate::NULL || about.absent.is_some() {
            continue;
        }
        table.push(row(&findings.summary, about, by_id, &mut sources));
    }
    (!table.rows.is_empty()).then_some((table, sources))
}

/// How many columns there are with that of resumption.
const RESUMPTION: usize = 5;

/// A server's ways to resume by session IDs, which a runtime's program does not try.
fn session_ids(summary: &Summary, about: &About) -> [String; 2] {
    let ways =
        [(Sessions::Cache, function::SESSION_CACHE), (Sessions::External, function::SESSION_STORE)];
    ways.map(|(sessions, bit)| {
        let tried = tested(summary, &about.name, |point| point.sessions == sessions);
        match tried {
            Tested::Not if crate::programs::runtime(&about.name).is_some() => {
                "not tried".to_owned()
            }
            tried => cell(tried, about.functions & bit != 0),
        }
    })
}

fn row(summary: &Summary, about: &About, by_id: bool, sources: &mut Vec<String>) -> Row {
    let name = about.name.as_str();
    let has = |bit: u64| about.functions & bit != 0;
    // That a library resumes by no session ID says nothing of its versions, nor of tickets.
    let usual = |point: &crate::point::Point| point.sessions == Sessions::Tickets;
    let version =
        |version| tested(summary, name, |point| usual(point) && point.suite.version == version);
    let resumption =
        tested(summary, name, |point| usual(point) && point.workload == Workload::Resume);
    let hybrid = tested(summary, name, |point| point.suite.group == Group::X25519MlKem768);
    let by_driver = |bit| cell(Tested::Not, has(bit));
    let old = match (has(function::TLS_1_0), has(function::TLS_1_1)) {
        (true, true) => "yes [d]",
        (false, true) => "1.1 [d]",
        (true, false) => "1.0 [d]",
        (false, false) => "no [d]",
    };
    let mut fact = |what: &str, otherwise: &str| {
        let found = about.facts.iter().find(|fact| fact.what == what);
        found.map_or_else(
            || otherwise.to_owned(),
            |fact| format!("{} [{}]", fact.says, number_of(&fact.source, sources)),
        )
    };
    let lts = fact("lts", "not known");
    let fips = match (has(function::FIPS), about.facts.iter().any(|fact| fact.what == "fips")) {
        (here, true) => {
            let says = fact("fips", "");
            if here { format!("{says}; in this build [d]") } else { says }
        }
        (true, false) => "in this build [d]".to_owned(),
        (false, false) => "not in this build [d]".to_owned(),
    };
    let mut cells = vec![
        about.title.clone(),
        old.to_owned(),
        cell(version(Version::Tls12), has(function::TLS_1_2)),
        cell(version(Version::Tls13), has(function::TLS_1_3)),
        cell(resumption, false).replace("no [d]", "not tried"),
        by_driver(function::EARLY_DATA),
        by_driver(function::QUIC_TLS),
        by_driver(function::QUIC_TRANSPORT),
        cell(hybrid, has(function::POST_QUANTUM)),
        fips,
        by_driver(function::KTLS),
        by_driver(function::ECH),
        lts,
        if about.licence.is_empty() { "not known".to_owned() } else { about.licence.clone() },
    ];
    if by_id {
        cells.splice(RESUMPTION..RESUMPTION, session_ids(summary, about));
    }
    Row::new(cells.into_iter().map(Cell::text).collect())
}

fn number_of(source: &str, sources: &mut Vec<String>) -> usize {
    match sources.iter().position(|known| known == source) {
        Some(at) => at + 1,
        None => {
            sources.push(source.to_owned());
            sources.len()
        }
    }
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let (table, sources) = table(findings)?;
    let mut section = Section::new("stacks-functions", "By function").with(table);
    let maintained = findings.summary.libraries.iter().filter_map(|about| {
        let fact = about.facts.iter().find(|fact| fact.what == "maintainer")?;
        Some(Inline::new().text(format!("{}: {} ({})", about.title, fact.says, fact.source)))
    });
    let maintained: Vec<Inline> = maintained.collect();
    if !sources.is_empty() {
        let numbered = sources.iter().enumerate();
        let lines =
            numbered.map(|(at, source)| Inline::new().text(format!("[{}] {source}", at + 1)));
        section.blocks.push(report::Block::List(lines.collect()));
    }
    if let Some(table) = super::documented::table(findings) {
        section = section.with(table);
    }
    if !maintained.is_empty() {
        section = section.with(Inline::new().text("Who maintains them:"));
        section.blocks.push(report::Block::List(maintained));
    }
    Some(section)
}
