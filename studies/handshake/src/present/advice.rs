//! What to change.

use report::{Cell, Code, Column, Inline, KeyFigure, Note, Row, Section, Table};

use super::lineup::{Need, few_rtts, order, typical_rtt};
use super::{Findings, decimals_at, estimate, rtt_text};
use crate::advice::Ingredient;
use crate::mode::{Mode, Security, Transport};
use crate::savings::{Change, Saving};
use crate::summary::value;

/// The RTTs at which savings are known, ascending.
fn saving_rtts(findings: &Findings) -> Vec<f64> {
    let savings = findings.changes.iter().flat_map(|change| &change.savings);
    let mut rtts: Vec<f64> = savings.map(|saving| saving.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    rtts
}

/// The saving at the RTT that speaks for most users.
fn typical<'a>(findings: &Findings, change: &'a Change) -> Option<&'a Saving> {
    let rtt = typical_rtt(&saving_rtts(findings))?;
    change.savings.iter().find(|saving| saving.rtt_ms == rtt)
}

/// The change with such a need that saves most, if it saves more than chance would have it.
fn best(findings: &Findings, need: Need) -> Option<&Change> {
    best_of(findings, |change| Need::of(change.to) == need)
}

fn best_of(findings: &Findings, wanted: impl Fn(&Change) -> bool) -> Option<&Change> {
    let saves = |change: &&Change| {
        typical(findings, change).is_some_and(|saving| saving.saved_ms.low > 0.0)
    };
    findings.changes.iter().filter(|change| wanted(change)).find(saves)
}

/// What is saved, in words: at the typical RTT, or on average over the clients where these are
/// known.
fn saved_words(findings: &Findings, change: &Change) -> String {
    if let Some(weighed) = &change.weighed {
        let percent = 100.0 * weighed.saved_ms / weighed.today_ms;
        return format!(
            "saves {:.1}\u{a0}ms of {:.1}\u{a0}ms ({percent:.0}\u{a0}%) on average over your clients' RTTs",
            weighed.saved_ms, weighed.today_ms
        );
    }
    typical(findings, change).map_or(String::new(), |saving| {
        format!(
            "saves {:.1}\u{a0}ms of {:.1}\u{a0}ms ({:.0}\u{a0}%) at an RTT of {}",
            saving.saved_ms.value,
            saving.today_ms,
            saving.percent(),
            rtt_text(saving.rtt_ms)
        )
    })
}

/// The same, short, after a sentence that said at which RTT.
fn saved_short(findings: &Findings, change: &Change) -> String {
    if let Some(weighed) = &change.weighed {
        let percent = 100.0 * weighed.saved_ms / weighed.today_ms;
        return format!("{:.1}\u{a0}ms ({percent:.0}\u{a0}%)", weighed.saved_ms);
    }
    typical(findings, change).map_or(String::new(), |saving| {
        format!("{:.1}\u{a0}ms ({:.0}\u{a0}%)", saving.saved_ms.value, saving.percent())
    })
}

/// What a change takes, as the end of a sentence.
fn condition(need: Need, mode: Mode) -> &'static str {
    match need {
        Need::Ticket if !mode.early_data() => "for clients that return with a session ticket",
        Need::Server => "by the server's configuration alone",
        Need::Udp => "where UDP port 443 is open and clients speak HTTP/3",
        Need::Ticket => {
            "for clients that return with a session ticket, and requests that may be repeated"
        }
        Need::BothEnds => "between programs of your own at both ends",
        Need::Gateway => "through gateways of your own at both ends",
        Need::NoAdvice => "which is no advice",
    }
}

pub(super) fn answer(findings: &Findings) -> Vec<Inline> {
    let today = findings.from.description();
    if findings.changes.is_empty() {
        let mut lines: Vec<String> = super::loss::headline(findings).into_iter().collect();
        let embedded = super::sslmtcp::headlines(findings);
        if embedded.is_empty() {
            lines.push(format!(
                "What a change from {today} saves is not known: it needs three connections without \
                 loss by it and by another mode at the same RTT."
            ));
        }
        lines.extend(embedded);
        return lines.into_iter().map(|text| Inline::new().text(text)).collect();
    }
    let needs = [Need::Server, Need::Udp, Need::Ticket, Need::BothEnds, Need::Gateway];
    let found: Vec<(Need, &Change)> =
        needs.into_iter().filter_map(|need| Some((need, best(findings, need)?))).collect();
    let Some(((need, first), others)) = found.split_first() else {
        let text = format!(
            "No change that was measured and can be advised is faster than {today} by more than \
             chance."
        );
        return vec![Inline::new().text(text)];
    };
    let headline = format!(
        "{} instead of {} {}, {}.",
        short(first.to, findings.from),
        short(findings.from, first.to),
        saved_words(findings, first),
        condition(*need, first.to)
    );
    let mut lines = vec![Inline::new().text(headline)];
    lines.extend(others.iter().map(|(need, change)| more(findings, *need, change)));
    lines
}

/// What a mode is, without the transport that both of a change have.
fn short(mode: Mode, other: Mode) -> String {
    let description = mode.description();
    match description.split_once(" + ") {
        Some((_, security)) if mode.transport == other.transport => security.to_owned(),
        _ => description,
    }
}

/// A further line of the answer.
fn more(findings: &Findings, need: Need, change: &Change) -> Inline {
    let line = Inline::new().strong(change.to.description()).text(format!(
        " saves {}, {}",
        saved_short(findings, change),
        condition(need, change.to)
    ));
    // Returning clients on networks without UDP gain by TLS over TCP.
    let over_tcp = best_of(findings, |other| {
        Need::of(other.to) == Need::Ticket && other.to.transport == Transport::Tcp
    });
    match over_tcp {
        Some(tcp) if need == Need::Ticket && change.to.transport == Transport::Quic => line
            .text("; ")
            .strong(tcp.to.description())
            .text(format!(" saves them {}.", saved_short(findings, tcp))),
        _ if need == Need::BothEnds => {
            line.text(": browsers leave Fast Open off, so it is no advice for web sites.")
        }
        _ => line.text("."),
    }
}

pub(super) fn key_figures(findings: &Findings) -> Vec<KeyFigure> {
    let needs = [Need::Server, Need::Udp, Need::Ticket];
    let changes = needs.into_iter().filter_map(|need| best(findings, need));
    today(findings)
        .into_iter()
        .chain(changes.filter_map(|change| saved_figure(findings, change)))
        .collect()
}

/// What is to be paid today.
fn today(findings: &Findings) -> Option<KeyFigure> {
    let rtt = typical_rtt(&saving_rtts(findings))?;
    let row = findings.main_rows().into_iter().find(|row| row.key.mode == findings.from)?;
    let cell = row.at_rtt(rtt)?;
    let median = cell.median(value::RESPONSE)?;
    let round_trips = row.spec.map(|spec| format!("{} round trips; ", spec.response));
    Some(KeyFigure {
        value: format!("{:.1}", median.value),
        unit: "ms".to_owned(),
        label: format!("until the first response byte by {}", findings.from.description()),
        detail: format!(
            "at {} RTT; {}median of {} connections",
            rtt_text(rtt),
            round_trips.unwrap_or_default(),
            cell.completed()
        ),
        means: format!(
            "Each new connection of your users at {} waits {:.0} ms for its first response byte.",
            rtt_text(rtt),
            median.value
        ),
    })
}

fn saved_figure(findings: &Findings, change: &Change) -> Option<KeyFigure> {
    let saving = typical(findings, change)?;
    Some(KeyFigure {
        value: format!("\u{2212}{:.1}", saving.saved_ms.value),
        unit: "ms".to_owned(),
        label: format!("by {}", change.to.description()),
        detail: format!(
            "{:.0} % at {} RTT; 95 % interval {:.1} to {:.1} ms; takes: {}",
            saving.percent(),
            rtt_text(saving.rtt_ms),
            saving.saved_ms.low,
            saving.saved_ms.high,
            Need::of(change.to).text(change.to)
        ),
        means: format!(
            "They wait {:.0} ms then, instead of {:.0}.",
            saving.today_ms - saving.saved_ms.value,
            saving.today_ms
        ),
    })
}

/// The changes in the order to consider them.
fn ranked(findings: &Findings) -> Vec<&Change> {
    let mut changes: Vec<&Change> = findings.changes.iter().collect();
    // Stable: within a need the largest saving stays first.
    changes.sort_by_key(|change| {
        let need = Need::of(change.to);
        (need, if need == Need::NoAdvice { order(change.to).0 } else { 0 })
    });
    changes
}

/// RTTs for which milliseconds and percent have room beside each other.
const SIDE_BY_SIDE: usize = 4;

/// Savings of every change at every RTT, in milliseconds and, where there is room, in percent.
fn saved_table(findings: &Findings) -> Table {
    let rtts = saving_rtts(findings);
    let mut columns = vec![Column::new("Change to"), Column::new("takes")];
    let side_by_side = rtts.len() <= SIDE_BY_SIDE;
    for rtt in &rtts {
        columns.push(Column::new(format!("at {}", rtt_text(*rtt))).unit("ms"));
        columns.extend(side_by_side.then(|| Column::new("share").unit("%")));
    }
    if findings.clients.is_some() {
        columns.push(Column::new("your clients, mean").unit("ms"));
        columns.extend(side_by_side.then(|| Column::new("share").unit("%")));
    }
    let caption = format!(
        "Saved until the first response byte by changing from {} (medians; negative: it costs)",
        findings.from
    );
    let mut table = Table::new(caption, columns);
    for change in ranked(findings) {
        let mut cells = name_cells(change);
        for rtt in &rtts {
            let saving = at(change, *rtt);
            let saved = saving.map(|saving| estimate(&saving.saved_ms, decimals_at(*rtt)));
            let share = saving.map(|saving| Cell::number(saving.percent(), 0));
            cells.push(saved.unwrap_or_default());
            cells.extend(side_by_side.then(|| share.unwrap_or_default()));
        }
        if let Some(weighed) = &change.weighed {
            let share = Cell::number(100.0 * weighed.saved_ms / weighed.today_ms, 0);
            cells.push(Cell::number(weighed.saved_ms, 1));
            cells.extend(side_by_side.then_some(share));
        }
        table.push(Row::new(cells));
    }
    table
}

/// The same in percent of today's time.
fn percent_table(findings: &Findings) -> Table {
    let rtts = saving_rtts(findings);
    let mut columns = vec![Column::new("Change to"), Column::new("takes")];
    columns.extend(rtts.iter().map(|rtt| Column::new(format!("at {}", rtt_text(*rtt))).unit("%")));
    if findings.clients.is_some() {
        columns.push(Column::new("your clients, mean").unit("%"));
    }
    let caption = format!("The same as a share of the time that {} takes", findings.from);
    let mut table = Table::new(caption, columns);
    for change in ranked(findings) {
        let mut cells = name_cells(change);
        let share = |rtt: &f64| at(change, *rtt).map(|saving| Cell::number(saving.percent(), 0));
        cells.extend(rtts.iter().map(|rtt| share(rtt).unwrap_or_default()));
        cells.extend(
            change
                .weighed
                .as_ref()
                .map(|weighed| Cell::number(100.0 * weighed.saved_ms / weighed.today_ms, 0)),
        );
        table.push(Row::new(cells));
    }
    table
}

/// My clients x each mode = ms saved: in the mean, and at quantiles of their round-trip times.
fn clients_table(findings: &Findings) -> Option<Table> {
    let weighed: Vec<_> =
        ranked(findings).into_iter().filter_map(|change| Some((change, change.weighed?))).collect();
    let (_, first) = weighed.first()?;
    let mut columns = vec![Column::new("Change to"), Column::new("takes")];
    columns.push(Column::new("mean").unit("ms"));
    for at in &first.at {
        let of = format!("{:.0} % (RTT {:.1}\u{a0}ms)", 100.0 * at.p, at.rtt_ms);
        columns.push(Column::new(of).unit("ms"));
    }
    let caption = format!(
        "What your clients save by changing from {}: in the mean, and for as many of them as have this \
         RTT or less",
        findings.from
    );
    let mut table = Table::new(caption, columns);
    for (change, weighed) in weighed {
        let mut cells = name_cells(change);
        cells.push(Cell::number(weighed.saved_ms, 1));
        cells.extend(weighed.at.iter().map(|at| Cell::number(at.saved_ms, 1)));
        table.push(Row::new(cells));
    }
    Some(table)
}

fn name_cells(change: &Change) -> Vec<Cell> {
    vec![Cell::text(change.to.to_string()), Cell::text(Need::of(change.to).text(change.to))]
}

fn at(change: &Change, rtt_ms: f64) -> Option<&Saving> {
    change.savings.iter().find(|saving| saving.rtt_ms == rtt_ms)
}

/// The changes that can be advised, for a terminal: at four RTTs at most.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let changes: Vec<&Change> =
        ranked(findings).into_iter().filter(|c| Need::of(c.to) < Need::NoAdvice).collect();
    if changes.is_empty() {
        return None;
    }
    let rtts = few_rtts(&saving_rtts(findings));
    let mut columns = vec![Column::new("Change to"), Column::new("takes")];
    if findings.clients.is_some() {
        columns.extend([Column::new("your clients").unit("ms"), Column::new("").unit("%")]);
    }
    for rtt in &rtts {
        columns.push(Column::new(rtt_text(*rtt)).unit("ms"));
        columns.push(Column::new("").unit("%"));
    }
    let caption = format!(
        "What a change from {} saves until the first response byte, by RTT (medians; intervals and \
         other changes are in the report)",
        findings.from
    );
    let mut table = Table::new(caption, columns);
    for change in changes {
        let mut cells = name_cells(change);
        if let Some(weighed) = &change.weighed {
            cells.push(Cell::number(weighed.saved_ms, 1));
            cells.push(Cell::number(100.0 * weighed.saved_ms / weighed.today_ms, 0));
        }
        for rtt in &rtts {
            match at(change, *rtt) {
                Some(saving) => cells.extend([
                    Cell::number(saving.saved_ms.value, decimals_at(*rtt)),
                    Cell::number(saving.percent(), 0),
                ]),
                None => cells.extend([Cell::Empty, Cell::Empty]),
            }
        }
        table.push(Row::new(cells));
    }
    Some(table)
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    if findings.changes.is_empty() {
        return None;
    }
    let text = "What each change takes: the **server** alone; **UDP** open on the way, and clients \
                that speak HTTP/3 (on a first visit only if DNS tells them so: an HTTPS record, \
                RFC 9460); a **ticket** from an earlier visit; **both ends**, since browsers leave \
                Fast Open off (and it needs a cookie from an earlier connection); **gateways**, \
                a pair of `wiretax gateway` that speak SSLmTCP between them. **No advice**: \
                Fast Open without cookies, which lets forged SYNs make a server work (RFC 7413 \
                §6.2), and a HelloRetryRequest, which is a cost to avoid.";
    let mut section = Section::new("change", "What to change")
        .with(Inline::marked(text))
        .with(saved_table(findings));
    if saving_rtts(findings).len() > SIDE_BY_SIDE {
        section = section.with(percent_table(findings));
    }
    if findings.clients.is_some() {
        let text = "What your clients save is computed by the fitted lines: the mean over their RTTs \
                    is n times their mean RTT and c, and a quantile is n times that of their RTTs and c.";
        section = section.with(Note::info(Inline::new().text(text)));
        if let Some(table) = clients_table(findings) {
            section = section.with(table);
        }
    }
    Some(section)
}

/// How to switch on what the changes need that can be advised and that save something.
pub(super) fn configuration(findings: &Findings) -> Option<Section> {
    let saves = |change: &Change| typical(findings, change).is_some_and(|s| s.saved_ms.low > 0.0);
    let changes: Vec<&Change> = ranked(findings)
        .into_iter()
        .filter(|change| Need::of(change.to) < Need::NoAdvice && saves(change))
        .collect();
    let has = Ingredient::of(findings.from);
    let needed = |ingredient: &Ingredient| {
        let mut users = changes.iter().map(|change| Ingredient::of(change.to));
        users.any(|needs| needs.contains(ingredient)) && !has.contains(ingredient)
    };
    let ingredients: Vec<Ingredient> = Ingredient::ALL.into_iter().filter(needed).collect();
    if ingredients.is_empty() {
        return None;
    }
    let mut section = Section::new("configuration", "How to switch it on");
    for ingredient in ingredients {
        let modes = changes.iter().filter(|change| Ingredient::of(change.to).contains(&ingredient));
        let mut line = Inline::new().strong(ingredient.title()).text(", for ");
        for (number, change) in modes.enumerate() {
            line = line.text(if number > 0 { ", " } else { "" }).code(change.to.to_string());
        }
        section = section
            .with(line.text(". "))
            .with(Note::info(Inline::new().text(ingredient.caution())));
        for setting in ingredient.settings() {
            section = section.with(Code {
                language: setting.of.to_lowercase(),
                caption: setting.of.to_owned(),
                text: setting.lines.to_owned(),
            });
        }
    }
    if findings.from.security == Security::Tls12 && findings.from.transport == Transport::Tcp {
        let text = "The lines are for a server that runs TLS 1.2 today; check them against the \
                    version that you run before you load them.";
        section = section.with(Inline::new().text(text));
    }
    Some(section)
}
