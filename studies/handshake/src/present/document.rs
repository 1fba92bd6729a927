//! The rest of the SSLmTCP paper, here: its Figures 9, 10 and 11 as charts for a terminal, what it counts,
//! its compute times, and its table of functions.

use report::{Cell, Column, Inline, Row as TableRow, Section, Table};
use study::Counterpart;

use super::published::Ours;
use super::{Findings, decimals_at, functions};
use crate::embedded::{Embedded, Saved, control_of};
use crate::summary::{self, Row, value};

/// Most columns of a bar.
const BAR: f64 = 30.0;
/// What the paper counts until the first data: messages in sequence and embedded, and bytes that fall away.
const MESSAGES: (f64, f64) = (6.0, 4.0);
const BYTES: f64 = 128.0;
/// Its compute times with RSA-4096, in milliseconds: client and server.
const COMPUTE: (f64, f64) = (10.0, 30.0);
/// The key of these.
const KEY: &str = "rsa-4096";

/// The paper's handshake here, embedded and in sequence.
pub(super) struct Pair<'a> {
    pub(super) embedded: &'a Embedded,
    pub(super) row: &'a Row,
    pub(super) control: &'a Row,
}

impl<'a> Pair<'a> {
    pub(super) fn find(findings: &'a Findings) -> Option<Pair<'a>> {
        let embedded = Ours::find(findings)?.paper?;
        let mut rows = findings.summary.rows.iter();
        let row = rows.find(|row| row.key == embedded.key)?;
        let (_, control) = control_of(&findings.summary, row)?;
        Some(Pair { embedded, row, control })
    }

    /// Medians at the shortest RTT of a value of both: in sequence, embedded.
    fn both(&self, name: &str) -> Option<(f64, f64)> {
        let cell = self.row.cells.first()?;
        let control = self.control.at_rtt(cell.rtt_ms)?;
        Some((control.median(name)?.value, cell.median(name)?.value))
    }

    /// The same of the sum of two values.
    fn sums(&self, one: &str, other: &str) -> Option<(f64, f64)> {
        let ((a, b), (c, d)) = (self.both(one)?, self.both(other)?);
        Some((a + c, b + d))
    }

    /// Whether it was measured with the paper's key.
    pub(super) fn has_the_papers_key(&self) -> bool {
        self.control.key.key == KEY
    }

    /// Frames until the response: in sequence, embedded.
    pub(super) fn frames(&self) -> Option<(f64, f64)> {
        self.sums(value::UP_FRAMES, value::DOWN_FRAMES)
    }

    /// The same of Ethernet bytes.
    pub(super) fn bytes(&self) -> Option<(f64, f64)> {
        self.sums(value::UP_BYTES, value::DOWN_BYTES)
    }
}

/// What stands beside the paper's counts and compute times, in the order of the published file.
pub(super) fn counterparts(findings: &Findings, command: &str) -> Vec<(String, Counterpart)> {
    let pair = Pair::find(findings);
    let pair = pair.as_ref();
    let frames = pair.and_then(Pair::frames);
    let bytes = pair.and_then(Pair::bytes);
    let compute =
        pair.filter(|pair| pair.has_the_papers_key()).and_then(|pair| compute(pair.control));
    let of_frames = "frames until the response, acknowledgments among them";
    let of_bytes = "Ethernet bytes until the response: they rise, by the padding to 1024 bytes";
    let of_library = "time in the TLS library until the response";
    let figures = [
        ("messages until the first data/in sequence", frames.map(|both| both.0), of_frames),
        ("messages until the first data/embedded", frames.map(|both| both.1), of_frames),
        ("bytes/less", bytes.map(|(before, after)| before - after), of_bytes),
        ("RSA-4096/client", compute.map(|both| both.0), of_library),
        ("RSA-4096/server", compute.map(|both| both.1), of_library),
    ];
    let each = figures.into_iter().map(|(key, ours, difference)| {
        let beside = match ours {
            Some(value) => {
                Counterpart::Ours { value, interval: None, difference: difference.to_owned() }
            }
            None => Counterpart::NotMeasured { command: command.to_owned() },
        };
        (key.to_owned(), beside)
    });
    each.collect()
}

/// Time in the client's and in the server's TLS library, medians over all paths, in milliseconds.
pub(super) fn compute(row: &Row) -> Option<(f64, f64)> {
    let median = |name: &str| {
        let all: Vec<f64> = row.cells.iter().flat_map(|cell| cell.samples(name)).copied().collect();
        stats::median(&all)
    };
    Some((median(value::CLIENT_CRYPTO)?, median(value::SERVER_CRYPTO)?))
}

/// The tables for a terminal.
pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    let pair = Pair::find(findings);
    let of_pair = pair.as_ref().map(|pair| {
        let charts = [figure_9(pair), figure_10(pair), figure_11(pair)];
        charts.into_iter().chain([counts(pair)]).chain(computes(findings)).collect::<Vec<_>>()
    });
    of_pair.unwrap_or_default().into_iter().chain(functions::table(findings)).collect()
}

/// The same in the report.
pub(super) fn section(findings: &Findings) -> Option<Section> {
    let tables = tables(findings);
    if tables.is_empty() {
        return None;
    }
    let text = "What the SSLmTCP paper draws and counts beside what was measured here. Its Figure 10 divides an \
                HTTPS request into DNS, connect, SSL, wait and receive: here no name is asked for and the \
                response is one byte, so that the first and the last are nothing, before and after alike.";
    let mut section = Section::new("document", "The SSLmTCP paper's figures and counts")
        .with(Inline::new().text(text));
    if let Some(why) = Pair::find(findings).as_ref().and_then(why_bytes_rise) {
        section = section.with(why);
    }
    for table in tables {
        section = section.with(table);
    }
    Some(section)
}

/// Why bytes rise where the paper says that they fall.
fn why_bytes_rise(pair: &Pair<'_>) -> Option<Inline> {
    let (before, after) = pair.bytes()?;
    let (frames_before, frames_after) = pair.frames()?;
    let (up_before, up_after) = pair.both(value::UP_BYTES)?;
    Some(Inline::new().text(format!(
        "The paper counts {:.0} messages in place of {:.0}, and {BYTES:.0} bytes less. Here frames until the \
         response fall from {frames_before:.0} to {frames_after:.0}, acknowledgments among them, but bytes \
         go from {before:.0} to {after:.0}: {}. An SSLmTCP segment is known by its length alone, so that what \
         rides on SYN, SYN+ACK and ACK is padded to 1024 bytes each; a ClientHello and a ClientKeyExchange \
         have some hundred. The client alone goes from {up_before:.0} to {up_after:.0}; the headers of the \
         frames that fall away do not make up for it.",
        MESSAGES.1,
        MESSAGES.0,
        if after > before {
            format!("{:.0} more", after - before)
        } else {
            format!("{:.0} less", before - after)
        }
    )))
}

/// A bar of a chart for a terminal, as long as its value is of the greatest.
fn bar(value: f64, greatest: f64) -> Cell {
    let share = if greatest > 0.0 { (value / greatest).clamp(0.0, 1.0) } else { 0.0 };
    Cell::text("█".repeat((share * BAR).round() as usize))
}

/// A chart of what is saved, by RTT.
fn chart(pair: &Pair<'_>, caption: &str, of: impl Fn(&Saved) -> f64) -> Table {
    let columns =
        vec![Column::new("RTT").unit("ms"), Column::new("saved").unit("ms"), Column::new("")];
    let name = format!("{caption}: {}, {}", pair.embedded.key.mode, pair.embedded.key.key);
    let mut table = Table::new(name, columns);
    let greatest = pair.embedded.saved.iter().map(&of).fold(0.0, f64::max);
    for saved in &pair.embedded.saved {
        table.push(TableRow::new(vec![
            Cell::number(saved.rtt_ms, 1),
            Cell::number(of(saved), decimals_at(saved.rtt_ms)),
            bar(of(saved), greatest),
        ]));
    }
    table
}

fn figure_9(pair: &Pair<'_>) -> Table {
    chart(pair, "The paper's Figure 9, handshake time saved", |saved| saved.ready_ms.value)
}

fn figure_11(pair: &Pair<'_>) -> Table {
    chart(pair, "The paper's Figure 11, response waiting time saved", |saved| {
        saved.response_ms.value
    })
}

/// The parts of a request, in milliseconds: connect, SSL, wait.
pub(super) fn parts(cell: &summary::Cell) -> Option<[f64; 3]> {
    let between = |from: &str, to: &str| {
        let (from, to) = cell.paired(from, to);
        let times: Vec<f64> = from.iter().zip(&to).map(|(from, to)| to - from).collect();
        stats::median(&times)
    };
    let connect = cell.median(value::CONNECT)?.value;
    // The request leaves with what rides in the handshake: then SSL takes nothing beside connect.
    let ssl = between(value::CONNECT, value::READY)?.max(0.0);
    Some([connect, ssl, between(value::READY, value::RESPONSE)?])
}

fn figure_10(pair: &Pair<'_>) -> Table {
    let columns = vec![
        Column::new("RTT").unit("ms"),
        Column::new("Mode"),
        Column::new("connect").unit("ms"),
        Column::new("SSL").unit("ms"),
        Column::new("wait").unit("ms"),
        Column::new("in all").unit("ms"),
        Column::new("connect ░, SSL ▓, wait █"),
    ];
    let caption = "The paper's Figure 10, an HTTPS request before and after (medians; DNS and receive are \
                   nothing here)";
    let mut table = Table::new(caption, columns);
    for cell in &pair.row.cells {
        let before = pair.control.at_rtt(cell.rtt_ms).and_then(parts);
        let after = parts(cell);
        let greatest = before.or(after).map_or(0.0, |parts| parts.iter().sum::<f64>());
        for (row, parts) in [(pair.control, before), (pair.row, after)] {
            let Some(parts) = parts else { continue };
            let digits = decimals_at(cell.rtt_ms);
            let [connect, ssl, wait] = parts;
            table.push(TableRow::new(vec![
                Cell::number(cell.rtt_ms, 1),
                Cell::text(row.key.mode.to_string()),
                Cell::number(connect, digits),
                Cell::number(ssl, digits),
                Cell::number(wait, digits),
                Cell::number(parts.iter().sum(), digits),
                stacked(parts, greatest),
            ]));
        }
    }
    table
}

fn stacked(parts: [f64; 3], greatest: f64) -> Cell {
    let long = |ms: f64| if greatest > 0.0 { (ms / greatest * BAR).round() as usize } else { 0 };
    let drawn = parts.iter().zip(["░", "▓", "█"]).map(|(ms, sign)| sign.repeat(long(*ms)));
    Cell::text(drawn.collect::<String>())
}

fn counts(pair: &Pair<'_>) -> Table {
    let columns = vec![
        Column::new("Until the response, here; until the first data, in the paper"),
        Column::new("in sequence"),
        Column::new("embedded"),
        Column::new("difference"),
        Column::new("in the paper"),
    ];
    let caption =
        format!("What is counted: {} and {}", pair.control.key.mode, pair.embedded.key.mode);
    let mut table = Table::new(caption, columns);
    let mut push = |name: &str, both: Option<(f64, f64)>, published: String| {
        let Some((before, after)) = both else { return };
        table.push(TableRow::new(vec![
            Cell::text(name),
            Cell::number(before, 0),
            Cell::number(after, 0),
            Cell::difference(after - before, 0),
            Cell::text(published),
        ]));
    };
    let messages = format!("{:.0} messages become {:.0}", MESSAGES.0, MESSAGES.1);
    push("frames, acknowledgments among them", pair.frames(), messages);
    push("bytes of Ethernet frames", pair.bytes(), format!("{BYTES:.0} less"));
    push("bytes up", pair.both(value::UP_BYTES), String::new());
    push("bytes down", pair.both(value::DOWN_BYTES), String::new());
    table
}

/// Compute times by key, beside the paper's.
fn computes(findings: &Findings) -> Option<Table> {
    let columns = vec![
        Column::new("Mode"),
        Column::new("key"),
        Column::new("client").unit("ms"),
        Column::new("server").unit("ms"),
        Column::new("client, paper").unit("ms"),
        Column::new("server, paper").unit("ms"),
    ];
    let caption = "Time in the TLS libraries until the response (medians over all paths), beside the paper's \
                   with RSA-4096";
    let mut table = Table::new(caption, columns);
    let rows = findings.summary.rows.iter().filter(|row| row.key.is_unhindered());
    for row in rows.filter(|row| row.key.mode.transport.is_user_space()) {
        let Some((client, server)) = compute(row) else { continue };
        let published = |ms: f64| match row.key.key == KEY && row.key.mode.is_the_papers() {
            true => Cell::number(ms, 0),
            false => Cell::Empty,
        };
        table.push(TableRow::new(vec![
            Cell::text(row.key.mode.to_string()),
            Cell::text(row.key.key.clone()),
            Cell::number(client, 2),
            Cell::number(server, 2),
            published(COMPUTE.0),
            published(COMPUTE.1),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let length = |cell: Cell| match cell {
            Cell::Text(text) => text.chars().count(),
            other => panic!("{other:?}"),
        };
        assert_eq!(length(bar(50.0, 100.0)), 15);
        assert_eq!(length(bar(100.0, 100.0)), 30);
        assert_eq!(length(bar(-1.0, 100.0)), 0);
        assert_eq!(length(bar(1.0, 0.0)), 0);
        assert_eq!(length(stacked([25.0, 25.0, 50.0], 100.0)), 31);
    }

    #[test]
    fn the_papers_counts_are_those_of_the_published_file() {
        let figures = study::figures(super::super::PUBLISHED).unwrap();
        let of = |key: &str| figures.iter().find(|figure| figure.key() == key).unwrap().value;
        assert_eq!(of("messages until the first data/in sequence"), Some(MESSAGES.0));
        assert_eq!(of("messages until the first data/embedded"), Some(MESSAGES.1));
        assert_eq!(of("bytes/less"), Some(BYTES));
        assert_eq!(of("RSA-4096/client"), Some(COMPUTE.0));
        assert_eq!(of("RSA-4096/server"), Some(COMPUTE.1));
    }
}
