//! What falling back costs: middleboxes that do not tolerate data on a SYN, and ordinary servers.

use report::{Cell, Column, Inline, Note, Row as TableRow, Section, Table};
use stats::{Bootstrap, Confidence, Estimate};

use super::lineup::{listed, order};
use super::{Findings, decimals_at, estimate, rtt_text};
use crate::mode::{Mode, Security, Transport};
use crate::summary::{Cell as Measured, Row, RowKey, value};

/// What is said of each row that something hinders.
struct Hindered<'a> {
    row: &'a Row,
    cell: &'a Measured,
    /// Ordinary TCP and TLS in the same place.
    ordinary: Option<(Mode, &'a Measured)>,
}

/// Every row with a middlebox or an ordinary server, at each RTT.
fn hindered<'a>(findings: &'a Findings) -> Vec<Hindered<'a>> {
    let rows = findings.summary.rows.iter();
    let rows = rows.filter(|row| !row.key.is_unhindered() && row.key.queue == "none");
    let mut all: Vec<Hindered<'_>> = rows
        .flat_map(|row| {
            row.cells.iter().map(move |cell| {
                let ordinary = ordinary(findings, row, cell);
                Hindered { row, cell, ordinary }
            })
        })
        .collect();
    all.sort_by(|a, b| {
        let place = |h: &Hindered<'_>| (h.row.key.middlebox.clone(), h.row.key.peer.clone());
        let mode = |h: &Hindered<'_>| (order(h.row.key.mode), h.row.key.visit.clone());
        let by_place = place(a).cmp(&place(b)).then(a.cell.rtt_ms.total_cmp(&b.cell.rtt_ms));
        by_place.then_with(|| mode(a).cmp(&mode(b)))
    });
    all
}

/// What ordinary TCP, then TLS of the same kind, takes on the same path: over the kernel's TCP for
/// what runs over it, over ours for SSLmTCP. QUIC has none.
fn ordinary<'a>(
    findings: &'a Findings,
    row: &Row,
    cell: &Measured,
) -> Option<(Mode, &'a Measured)> {
    let Mode { transport, security } = row.key.mode;
    let transport = match transport {
        Transport::TcpFastOpen | Transport::TcpFastOpenNoCookie => Transport::Tcp,
        Transport::SslmTcp => Transport::UserTcp,
        Transport::Tcp | Transport::UserTcp | Transport::Quic => return None,
    };
    let mode = Mode::new(transport, security)?;
    let visit = "first".to_owned();
    let key = RowKey { mode, visit, ..row.key.clone() };
    let beside = findings.summary.rows.iter().find(|row| row.key == key)?;
    Some((mode, beside.at_rtt(cell.rtt_ms)?))
}

impl Hindered<'_> {
    /// What it takes more than ordinary TCP and TLS until the first response byte, in milliseconds.
    fn cost(&self) -> Option<Estimate> {
        let (_, ordinary) = self.ordinary?;
        let (a, b) = (self.cell.observed(value::RESPONSE), ordinary.observed(value::RESPONSE));
        if a.len() < 3 || b.len() < 3 {
            return None;
        }
        stats::bootstrap_medians(&[&a, &b], Bootstrap::default(), Confidence::C95, |medians| {
            let at = |n: usize| medians.get(n).copied().unwrap_or_default();
            at(0) - at(1)
        })
        .ok()
    }

    /// What its connections became, by the wire.
    fn became(&self) -> String {
        let modes = self.cell.actual.iter().map(|(mode, count)| match self.cell.actual.len() {
            1 => mode.clone(),
            _ => format!("{mode} ({count})"),
        });
        listed(&modes.collect::<Vec<_>>())
    }
}

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let all = hindered(findings);
    if all.is_empty() {
        return None;
    }
    let text = "Some networks drop a SYN that carries data, some take the data out of it (RFC 7413 \
                §7.1), and most servers do not know it. Each mode is compared with ordinary TCP and \
                TLS on the same path. A dropped SYN costs the timer that sends it again without data, \
                a second (RFC 6298 §2.1); SSLmTCP then remembers the destination for an hour, and \
                the next connection (**remembered**) begins with a bare SYN at once. The lab forgets \
                after each connection where the visit is the **first**.";
    let mut section =
        Section::new("fallback", "What falling back costs").with(Inline::marked(text));
    for line in sentences(&all) {
        section = section.with(line);
    }
    let note = "Linux too gives Fast Open up for an hour when it seems to be dropped \
                (tcp_fastopen_blackhole_timeout_sec); the lab has that off, so that its Fast Open \
                rows are all first visits.";
    Some(section.with(table(&all)).with(Note::info(Inline::new().text(note))))
}

/// The table for a terminal.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    let all = hindered(findings);
    (!all.is_empty()).then(|| table(&all))
}

/// What hinders a row, in words.
fn place(key: &RowKey) -> String {
    let middlebox = match key.middlebox.as_str() {
        "drop-syn-data" => Some("SYN data dropped"),
        "strip-syn-data" => Some("SYN data stripped"),
        _ => None,
    };
    let server = (key.peer == "plain").then_some("plain server");
    let words: Vec<String> = [middlebox, server].into_iter().flatten().map(str::to_owned).collect();
    match words.as_slice() {
        [] => "nothing".to_owned(),
        words => listed(words),
    }
}

fn table(all: &[Hindered<'_>]) -> Table {
    let columns = vec![
        Column::new("Path"),
        Column::new("Mode"),
        Column::new("visit"),
        Column::new("was"),
        Column::new("RTT").unit("ms"),
        Column::new("ready").unit("ms"),
        Column::new("response").unit("ms"),
        Column::new("more than ordinary").unit("ms"),
    ];
    let caption = "What falling back costs until the first response byte, beside ordinary TCP and \
                   TLS on the same path (medians)";
    let mut table = Table::new(caption, columns);
    for hindered in all {
        let Hindered { row, cell, .. } = hindered;
        let digits = decimals_at(cell.rtt_ms);
        let median = |name| {
            cell.median(name).map_or(Cell::Empty, |median| Cell::number(median.value, digits))
        };
        let cells = vec![
            Cell::text(place(&row.key)),
            Cell::text(row.key.mode.to_string()),
            Cell::text(row.key.visit.clone()),
            Cell::text(hindered.became()),
            Cell::number(cell.rtt_ms, 1),
            median(value::READY),
            median(value::RESPONSE),
            hindered.cost().map_or(Cell::Empty, |cost| estimate(&cost, digits)),
        ];
        table.push(TableRow::new(cells).command(cell.command.clone()));
    }
    table
}

/// One sentence for each thing that hinders: what SSLmTCP with TLS 1.3 costs there.
fn sentences(all: &[Hindered<'_>]) -> Vec<Inline> {
    let reported = all.iter().filter(|hindered| {
        let mode = hindered.row.key.mode;
        mode.transport == Transport::SslmTcp && mode.security == Security::Tls13
    });
    reported.filter_map(|hindered| {
        let (mode, _) = hindered.ordinary?;
        let cost = hindered.cost()?;
        let key = &hindered.row.key;
        let visit = if key.visit == "first" { "" } else { ", remembered" };
        let path = place(key);
        let mut letters = path.chars();
        let path = letters.next().map(|first| first.to_uppercase().collect::<String>());
        let head = format!("{}{}{visit}", path.unwrap_or_default(), letters.as_str());
        let rtt = rtt_text(hindered.cell.rtt_ms);
        Some(Inline::new().strong(head).text(format!(
            ": {} takes {:.1} ms more than {mode} at an RTT of {rtt} (95 % interval {:.1} to {:.1} ms).",
            key.mode, cost.value, cost.low, cost.high
        )))
    })
    .collect()
}
