//! Where the time goes: a handshake's instructions by purpose and function, and a flame graph a library.

use report::{Block, Cell, Column, Flame, FlameFrame, Inline, Row, Section, Table};
use tls_drivers::{Key, Locks, Workload};

use super::{Findings, handshake_text, locks, workload_text};
use crate::advice::MODERN;
use crate::point::Tool;
use crate::profile::{Profile, Share};
use crate::purpose::{RULE, VALUES, names};
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// Functions that the report names of each library, and a terminal.
const NAMED: usize = 10;
const NAMED_ON_TERMINAL: usize = 3;

/// Libraries that the answer speaks of; the table has all.
const ANSWERED: usize = 4;
/// Purposes that it names of each.
const PURPOSES: usize = 2;

/// A library's instructions by purpose, at one point.
pub(super) struct Counted<'a> {
    pub(super) name: &'a str,
    pub(super) cell: &'a Measured,
    /// Instructions of the server by purpose, and of none.
    pub(super) parts: Vec<f64>,
}

impl Counted<'_> {
    /// A purpose's share of all, 0 to 1, by its place in [`VALUES`].
    pub(super) fn share(&self, at: usize) -> Option<f64> {
        let all: f64 = self.parts.iter().sum();
        self.parts.get(at).map(|part| part / all).filter(|share| share.is_finite())
    }
}

/// What was counted, library by library.
pub(super) fn counted(summary: &Summary) -> Vec<Counted<'_>> {
    let of = |name| {
        let cells = [Locks::Pthread, Locks::Light].into_iter().flat_map(move |locks| {
            let want = Want { tool: Tool::Callgrind, locks, ..Want::TIMED };
            summary.all(want.of(name))
        });
        cells.filter_map(move |cell| {
            let parts = VALUES.iter().map(|(server, _)| Some(cell.median(server)?.value));
            Some(Counted { name, cell, parts: parts.collect::<Option<_>>()? })
        })
    };
    summary.measured().into_iter().flat_map(of).collect()
}

/// What most of the server's instructions are for in a full handshake, a sentence for each library.
pub(super) fn answer(findings: &Findings) -> Vec<Inline> {
    let counted = counted(&findings.summary);
    let mut firsts: Vec<&Counted<'_>> = Vec::new();
    for one in counted.iter().filter(|one| one.cell.point.workload == Workload::Full) {
        if firsts.iter().all(|first| first.name != one.name) {
            firsts.push(one);
        }
    }
    let lines = firsts.iter().take(ANSWERED).map(|one| {
        let mut shares: Vec<(f64, &str)> = names()
            .into_iter()
            .enumerate()
            .filter_map(|(at, name)| Some((one.share(at)?, name)))
            .collect();
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let named = shares.iter().take(PURPOSES);
        let named: Vec<String> =
            named.map(|(share, name)| format!("{:.0} % on {name}", share * 100.0)).collect();
        Inline::new().text(format!(
            "{} spends {} of the server's instructions ({}; {:.0} thousand per connection).",
            findings.summary.title(one.name),
            named.join(" and "),
            what(one.cell),
            one.parts.iter().sum::<f64>() / 1e3,
        ))
    });
    lines.collect()
}

pub(super) fn what(cell: &Measured) -> String {
    let locks = if cell.point.locks == Locks::Light { ", light locks" } else { "" };
    format!("{}, {}{locks}", workload_text(cell.point.workload), handshake_text(cell.point.suite))
}

/// The place of locks and atomics in [`VALUES`].
pub(super) const LOCKS: usize = 3;

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let counted = counted(&findings.summary);
    if counted.is_empty() {
        return None;
    }
    let text = "The server's instructions of one connection, counted under callgrind on one thread, by what \
                they are for. A function's name says that, by the rule at the end of this part; one that the \
                rule does not name (memcpy) counts as what calls it, in proportion. Instructions are not \
                time: a lock that nobody waits for takes few, and waiting takes none that are counted here. \
                Callgrind counts who calls whom and not along which path, so in a flame graph a function \
                with several callers is divided among them as its calls are.";
    let mut section = Section::new("stacks-profile", "Where the instructions go")
        .with(Inline::new().text(text))
        .with(shares(findings, &counted));
    section = section.with(lock_shares(findings, &counted));
    section = section.with(functions(findings, &counted, NAMED));
    for (at, one) in drawn(&counted).into_iter().enumerate() {
        let Some(profile) = one.cell.profile().filter(|profile| !profile.flame.is_empty()) else {
            continue;
        };
        section.blocks.push(Block::Flame(flame(findings, one, &profile, at == 0)));
    }
    Some(section.with(rule()))
}

/// For a terminal.
pub(super) fn summary(findings: &Findings) -> Vec<Table> {
    let counted = counted(&findings.summary);
    if counted.is_empty() {
        return Vec::new();
    }
    vec![
        shares(findings, &counted),
        lock_shares(findings, &counted),
        functions(findings, &counted, NAMED_ON_TERMINAL),
    ]
}

fn shares(findings: &Findings, counted: &[Counted<'_>]) -> Table {
    let mut columns = vec![
        Column::new("Library"),
        Column::new("handshake"),
        Column::new("instructions").unit("thousand"),
    ];
    columns.extend(names().into_iter().map(|name| Column::new(name).unit("%")));
    let mut table = Table::new("Where the server's instructions go, by purpose", columns);
    for one in counted {
        let mut cells = vec![
            Cell::text(findings.summary.title(one.name)),
            Cell::text(what(one.cell)),
            Cell::number(one.parts.iter().sum::<f64>() / 1e3, 0),
        ];
        let share = |at| Cell::known(one.share(at).map(|share| 100.0 * share), 1);
        cells.extend((0..VALUES.len()).map(share));
        table.push(Row { cells, command: Some(one.cell.command.clone()) });
    }
    table
}

/// A line of the published shares.
pub(super) struct Published {
    pub(super) scenario: &'static str,
    pub(super) library: &'static str,
    pub(super) locks: Locks,
    pub(super) threads: &'static str,
    pub(super) percent: &'static str,
    pub(super) driver: &'static str,
    pub(super) workload: Workload,
}

/// How much of the CPU's time HAProxy 2025 saw in locks and atomics.
pub(super) fn published() -> Vec<Published> {
    let lines = include_str!("../../lock-shares.csv").lines();
    let lines = lines.filter(|line| !line.starts_with('#')).skip(1);
    let read = |line: &'static str| {
        let mut fields = line.split(',');
        let mut next = || fields.next();
        Some(Published {
            scenario: next()?,
            library: next()?,
            locks: next()?.parse().ok()?,
            threads: next()?,
            percent: next()?,
            driver: next()?,
            workload: next()?.parse().ok()?,
        })
    };
    lines.filter_map(read).collect()
}

/// What was counted of a driver in this kind of handshake, or else of one of its series: with RSA as the
/// document, where there is that.
pub(super) fn beside<'a, 'b>(
    counted: &'a [Counted<'b>],
    line: &Published,
) -> Option<&'a Counted<'b>> {
    let same = |one: &Counted<'_>| {
        let point = &one.cell.point;
        (point.workload, point.locks) == (line.workload, line.locks)
    };
    // As far as the last point: `openssl-3.0.`.
    let series = line.driver.rfind('.').and_then(|at| line.driver.get(..=at));
    [false, true].into_iter().find_map(|any| {
        let is = |name: &str| match series {
            Some(series) if any => name.starts_with(series),
            _ => name == line.driver,
        };
        let own = || counted.iter().filter(|one| is(one.name) && same(one));
        own().find(|one| one.cell.point.suite.key == Key::Rsa2048).or_else(|| own().next())
    })
}

fn lock_shares(findings: &Findings, counted: &[Counted<'_>]) -> Table {
    let columns = vec![
        Column::new("HAProxy 2025: library"),
        Column::new("scenario"),
        Column::new("locks"),
        Column::new("threads"),
        Column::new("of the time").unit("%"),
        Column::new("here"),
        Column::new("of the instructions").unit("%"),
        Column::new("locks, counted"),
        Column::new(""),
    ];
    let mut table = Table::new(
        "Locks and atomics: the share of HAProxy 2025, of time on 64 busy cores, waiting with it; and ours, of \
         the instructions of one thread, where nothing waits. What theirs is above ours is waiting",
        columns,
    );
    for line in published() {
        let own = beside(counted, &line);
        let count = locks::counted(&findings.summary, line.driver, line.workload, MODERN);
        let why = if own.is_some() { "" } else { "not counted here" };
        table.push(Row {
            cells: vec![
                Cell::text(line.library),
                Cell::text(line.scenario),
                Cell::text(line.locks.to_string()),
                Cell::text(line.threads),
                Cell::text(line.percent),
                Cell::text(own.map_or(String::new(), |own| {
                    format!("{}, {}", findings.summary.title(own.name), what(own.cell))
                })),
                Cell::known(own.and_then(|own| own.share(LOCKS)).map(|share| 100.0 * share), 1),
                Cell::known(count.and_then(Measured::server_locks), 0),
                Cell::text(why),
            ],
            command: own.map(|own| own.cell.command.clone()),
        });
    }
    table
}

/// Of each library the point that is drawn: the modern suite's full handshake, or the first.
fn drawn<'a, 'b>(counted: &'a [Counted<'b>]) -> Vec<&'a Counted<'b>> {
    let mut drawn: Vec<&Counted<'_>> = Vec::new();
    for one in counted {
        let point = &one.cell.point;
        let full = (point.suite, point.workload) == (MODERN, Workload::Full);
        let modern = full && point.locks == Locks::Pthread;
        match drawn.iter_mut().find(|other| other.name == one.name) {
            None => drawn.push(one),
            Some(other) if modern => *other = one,
            Some(_) => {}
        }
    }
    drawn
}

fn functions(findings: &Findings, counted: &[Counted<'_>], most: usize) -> Table {
    let columns = vec![
        Column::new("Library"),
        Column::new("function"),
        Column::new("for"),
        Column::new("itself").unit("thousand"),
        Column::new("of all").unit("%"),
    ];
    let mut table =
        Table::new("The functions that execute most themselves, on the server's side", columns);
    for one in drawn(counted) {
        let Some(profile) = one.cell.profile() else { continue };
        let all: f64 = one.parts.iter().sum();
        let title = findings.summary.title(one.name);
        let mut row = |name: Cell, purpose: &str, own: f64| {
            table.push(Row::new(vec![
                Cell::text(title.clone()),
                name,
                Cell::text(purpose),
                Cell::number(own / 1e3, 1),
                Cell::number(100.0 * own / all, 1),
            ]));
        };
        for Share(name, purpose, own) in profile.top.iter().take(most) {
            row(Cell::Code(name.clone()), purpose, *own);
        }
        let (rest, others) = profile.rest;
        let more = profile.top.iter().skip(most);
        let count = more.clone().count() + others;
        let sum = more.map(|share| share.2).sum::<f64>() + rest;
        if count > 0 {
            row(Cell::text(format!("{count} others")), "", sum);
        }
    }
    table
}

fn flame(findings: &Findings, one: &Counted<'_>, profile: &Profile, open: bool) -> Flame {
    let names = names();
    let title = findings.summary.title(one.name);
    let what = what(one.cell);
    let largest = (0..VALUES.len()).max_by(|a, b| {
        let share = |at: &usize| one.share(*at).unwrap_or_default();
        share(a).total_cmp(&share(b))
    });
    let largest = largest.and_then(|at| Some((names.get(at)?, one.share(at)?)));
    let most = largest.map_or(String::new(), |(name, share)| {
        format!("; most is {name} ({:.0} %)", 100.0 * share)
    });
    let all = one.parts.iter().sum::<f64>() / 1e3;
    let means = match largest {
        Some((name, share)) => format!(
            "Of the {all:.0} thousand instructions of a connection {name} takes {:.0} %: a library that did it for \
             nothing would save no more.",
            100.0 * share
        ),
        None => format!("A connection takes {all:.0} thousand instructions of the server."),
    };
    let frames = profile.flame.iter().map(|frame| FlameFrame {
        depth: frame.0,
        label: frame.1.clone(),
        kind: names.iter().position(|name| *name == frame.2).unwrap_or(usize::MAX),
        value: frame.3,
    });
    Flame {
        title: format!("{title}: the server's instructions, {what}"),
        alt: format!(
            "Callers above what they call, as wide as the instructions per connection below them: {:.0} \
             thousand in all{most}. Frames below 1 % are left out.",
            all
        ),
        means,
        unit: "instructions".to_owned(),
        kinds: names.iter().map(|name| (*name).to_owned()).collect(),
        frames: frames.collect(),
        open,
    }
}

/// The rule by which names have purposes.
fn rule() -> Table {
    let columns =
        vec![Column::new("Names"), Column::new("for"), Column::new("where the library has them")];
    let mut table = Table::new(
        "The rule: the first line that fits a function's name; `*` stands for any characters",
        columns,
    );
    for line in RULE.iter() {
        let purpose = line.purpose.map_or("as its callers", crate::Purpose::name);
        table.push(Row::new(vec![
            Cell::Code(line.pattern.clone()),
            Cell::text(purpose),
            Cell::text(&line.source),
        ]));
    }
    table
}

/// For docs/results/stacks.md; nothing where nothing was counted so.
pub(super) fn markdown(findings: &Findings) -> Option<String> {
    let counted = counted(&findings.summary);
    if counted.is_empty() {
        return None;
    }
    let mut text = format!(
        "{}. The server's instructions of one connection under callgrind, one thread, and what they are for, \
         in percent. \"Locks, HAProxy 2025\" is of time on 64 busy cores, waiting included; ours are \
         instructions where nothing waits.\n\n",
        findings.provenance
    );
    let heads: Vec<String> = names().into_iter().map(|name| format!(" {name} |")).collect();
    text += &format!(
        "| library | handshake | thousand |{} largest functions | locks, HAProxy 2025 |\n",
        heads.concat()
    );
    text += &format!("|{}\n", "---|".repeat(VALUES.len() + 5));
    for one in &counted {
        text += &line(findings, one);
    }
    Some(text)
}

fn line(findings: &Findings, one: &Counted<'_>) -> String {
    let shares: Vec<String> = (0..VALUES.len())
        .map(|at| one.share(at).map_or(String::new(), |share| format!("{:.1}", 100.0 * share)))
        .collect();
    let top = one.cell.profile().map(|profile| profile.top).unwrap_or_default();
    let all: f64 = one.parts.iter().sum();
    let top: Vec<String> = top
        .iter()
        .take(3)
        .map(|share| format!("`{}` {:.0}", share.0.replace(['`', '|'], ""), 100.0 * share.2 / all))
        .collect();
    let theirs = published();
    let counted = std::slice::from_ref(one);
    let of = theirs
        .iter()
        .filter(|line| beside(counted, line).is_some() && one.cell.point.suite.key == Key::Rsa2048);
    let theirs: Vec<String> =
        of.map(|line| format!("{} % ({})", line.percent, line.library)).collect();
    format!(
        "| {} | {} | {:.0} | {} | {} | {} |\n",
        findings.summary.title(one.name),
        what(one.cell),
        all / 1e3,
        shares.join(" | "),
        top.join(", "),
        theirs.join(", ")
    )
}

/// The client's instructions as a multiple of the server's.
pub(super) fn client_ratio(cell: &Measured) -> Option<f64> {
    let of = |name| cell.median(name).map(|median| median.value);
    let ratio = of(value::CLIENT_INSTRUCTIONS)? / of(value::SERVER_INSTRUCTIONS)?;
    ratio.is_finite().then_some(ratio)
}
