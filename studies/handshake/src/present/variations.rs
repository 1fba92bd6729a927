//! The other sweeps without loss: keys, groups, chains, libraries. Each has a table of its own, and
//! a sentence for each thing varied that says what it costs, where the data show it.

use report::{Block, Cell, Column, Inline, Row as TableRow, Section, Table};
use stats::Estimate;

use super::lineup::{alike, listed, order};
use super::{Findings, estimate, rtt_text, rtts};
use crate::mode::Transport;
use crate::summary::{Cell as Measured, Row, RowKey, value};

/// What a row can differ in beside its mode: the name of the axis and its value.
type AxisOf = (&'static str, fn(&RowKey) -> &str);

const AXES: [AxisOf; 4] = [
    ("key", |key| &key.key),
    ("group", |key| &key.group),
    ("chain", |key| &key.chain),
    ("library", |key| &key.library),
];

/// How far a measured difference may lie from whole round trips, to be called them.
const ROUND_TRIP_TOLERANCE: f64 = 0.25;
/// Below this RTT a round trip drowns in compute.
const TELLING_RTT_MS: f64 = 5.0;

pub(super) fn section(findings: &Findings) -> Option<Section> {
    let sweeps = sweeps(findings);
    if sweeps.is_empty() {
        return None;
    }
    let text = "What other certificates, key exchange groups and libraries change. Sentences are \
                computed from the medians: they name a round trip where sizes on the wire and the \
                clock agree on it, and CPU time where the intervals lie apart.";
    let mut section = Section::new("variations", "Keys, groups, chains, libraries")
        .with(Inline::new().text(text));
    for sweep in sweeps {
        let sentences = sweep.sentences();
        if !sentences.is_empty() {
            section = section.with(Block::List(sentences));
        }
        section = section.with(sweep.table());
    }
    Some(section)
}

/// The tables for a terminal.
pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    sweeps(findings).iter().map(Sweep::table).collect()
}

/// The sweeps with rows beside the main ones.
fn sweeps<'a>(findings: &'a Findings) -> Vec<Sweep<'a>> {
    let main = findings.main_rows();
    let is_main = |row: &Row| main.iter().any(|other| other.key == row.key);
    let is_varied = |row: &Row| !row.cells.is_empty() && row.key.is_unhindered();
    let varied: Vec<&Row> =
        findings.summary.rows.iter().filter(|row| is_varied(row) && !is_main(row)).collect();
    let mut names: Vec<&str> = varied.iter().map(|row| row.key.sweep.as_str()).collect();
    names.dedup();
    let sweep = |name| {
        let own = varied.iter().copied().filter(|row| row.key.sweep == name).collect();
        Sweep::new(name, own, &main)
    };
    names.into_iter().map(sweep).collect()
}

/// One sweep with what it is held against.
struct Sweep<'a> {
    name: &'a str,
    /// Its rows and their references, in the order to show them.
    rows: Vec<&'a Row>,
    /// Each varied row with its reference: the same mode in the main sweep's variant.
    pairs: Vec<(&'a Row, &'a Row)>,
}

impl<'a> Sweep<'a> {
    fn new(name: &'a str, own: Vec<&'a Row>, main: &[&'a Row]) -> Sweep<'a> {
        let is_usual = |row: &Row| {
            main.iter().any(|other| other.key.mode == row.key.mode && alike(row, other))
        };
        let reference = |row: &Row| {
            let same_mode = |other: &&&'a Row| other.key.mode == row.key.mode;
            let here = own.iter().filter(same_mode).find(|other| is_usual(other));
            let there = || main.iter().find(same_mode);
            here.or_else(there).or_else(|| own.iter().find(same_mode)).copied()
        };
        let pairs: Vec<(&Row, &Row)> = own
            .iter()
            .filter_map(|row| Some((reference(row)?, *row)))
            .filter(|(reference, row)| reference.key != row.key)
            .collect();
        let mut rows = own;
        for (reference, _) in &pairs {
            if !rows.iter().any(|row| row.key == reference.key) {
                rows.push(reference);
            }
        }
        // A reference stands before what is held against it.
        rows.sort_by_key(|row| (order(row.key.mode), !is_usual(row)));
        Sweep { name, rows, pairs }
    }

    /// The axes on which its rows differ. QUIC's library is its own, and no variation.
    fn axes(&self) -> Vec<AxisOf> {
        let varies = |(name, of): &AxisOf| {
            let rows = || {
                let quic = |row: &&&Row| row.key.mode.transport == Transport::Quic;
                self.rows.iter().filter(move |row| *name != "library" || !quic(row))
            };
            let first = rows().next().map(|row| of(&row.key));
            rows().any(|row| Some(of(&row.key)) != first)
        };
        AXES.into_iter().filter(varies).collect()
    }

    fn table(&self) -> Table {
        let axes = self.axes();
        let varied = self.rows.iter().copied().filter(|row| row.key.sweep == self.name);
        // Where all can be compared.
        let common = |rtt: &f64| self.rows.iter().all(|row| row.at_rtt(*rtt).is_some());
        let longest = rtts(varied).into_iter().rfind(common);
        let mut columns = vec![Column::new("Mode")];
        columns.extend(axes.iter().map(|(name, _)| Column::new(*name)));
        columns.extend([
            Column::new("n ready").unit("RTT"),
            Column::new("spec"),
            Column::new("holds"),
            Column::new("c ready").unit("ms"),
            Column::new("ClientHello").unit("bytes"),
            Column::new("server CPU").unit("ms"),
        ]);
        columns.extend(longest.map(|rtt| Column::new(format!("at {}", rtt_text(rtt))).unit("ms")));
        let names: Vec<String> = axes.iter().map(|(name, _)| (*name).to_owned()).collect();
        let what = if names.is_empty() { "the mode".to_owned() } else { listed(&names) };
        let caption = format!(
            "Sweep \u{201C}{}\u{201D}: by {what} (medians; last column: until the first response byte; \
             sizes and CPU time: at the shortest RTT)",
            self.name
        );
        let mut table = Table::new(caption, columns);
        for row in &self.rows {
            table.push(table_row(row, &axes, longest));
        }
        table
    }

    /// What each difference costs.
    fn sentences(&self) -> Vec<Inline> {
        let mut differences: Vec<(String, Vec<(&Row, &Row)>)> = Vec::new();
        for (reference, row) in &self.pairs {
            let difference = difference(&reference.key, &row.key);
            match differences.iter_mut().find(|(known, _)| *known == difference) {
                Some((_, pairs)) => pairs.push((reference, row)),
                None => differences.push((difference, vec![(reference, row)])),
            }
        }
        differences.iter().filter_map(|(name, pairs)| sentence(name, pairs)).collect()
    }
}

fn table_row(row: &Row, axes: &[AxisOf], longest: Option<f64>) -> TableRow {
    let first = row.cells.first();
    let median = |cell: Option<&Measured>, name: &str, decimals| {
        let median = cell.and_then(|cell| cell.median(name));
        median.map_or(Cell::Empty, |median| Cell::number(median.value, decimals))
    };
    let mut cells = vec![Cell::text(row.key.mode.to_string())];
    cells.extend(axes.iter().map(|(_, of)| Cell::text(of(&row.key))));
    let fit = row.ready.as_ref();
    cells.extend([
        fit.map_or(Cell::Empty, |fit| estimate(&fit.slope, 2)),
        row.spec.map_or(Cell::Empty, |spec| Cell::count(spec.ready.into())),
        row.holds.map_or(Cell::Empty, super::fits::answer),
        fit.map_or(Cell::Empty, |fit| estimate(&fit.intercept, 1)),
        median(first, value::HELLO_BYTES, 0),
        median(first, value::SERVER_CPU, 2),
    ]);
    cells.extend(longest.map(|rtt| median(row.at_rtt(rtt), value::RESPONSE, 1)));
    let line = TableRow::new(cells);
    match first {
        Some(cell) => line.command(cell.command.clone()),
        None => line,
    }
}

/// `key rsa-4096 instead of rsa-2048`.
fn difference(reference: &RowKey, row: &RowKey) -> String {
    let differing = AXES.iter().filter(|(_, of)| of(reference) != of(row));
    let words =
        differing.map(|(name, of)| format!("{name} {} instead of {}", of(row), of(reference)));
    listed(&words.collect::<Vec<_>>())
}

/// What one difference costs in round trips, bytes and CPU time; `None` if the data show nothing.
fn sentence(difference: &str, pairs: &[(&Row, &Row)]) -> Option<Inline> {
    let mut parts = round_trips(pairs);
    parts.extend(size(pairs, value::HELLO_BYTES, "the ClientHello has", "bytes"));
    parts.extend(size(pairs, value::DOWN_BYTES, "the server sends", "bytes"));
    parts.extend(cpu(pairs, value::SERVER_CPU, "the server"));
    parts.extend(cpu(pairs, value::CLIENT_CPU, "the client"));
    if parts.is_empty() {
        return None;
    }
    let line = Inline::new().strong(capital(difference));
    Some(line.text(format!(": {}.", parts.join("; "))))
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + chars.as_str()
}

/// Round trips more or less until the first response byte, by mode.
fn round_trips(pairs: &[(&Row, &Row)]) -> Vec<String> {
    let mut by_step: Vec<(i64, Vec<String>)> = Vec::new();
    for (reference, row) in pairs {
        let Some(step) = step(reference, row) else { continue };
        let mode = row.key.mode.to_string();
        match by_step.iter_mut().find(|(known, _)| *known == step) {
            Some((_, modes)) => modes.push(mode),
            None => by_step.push((step, vec![mode])),
        }
    }
    by_step.sort_by_key(|(step, _)| -step);
    let words = |(step, modes): &(i64, Vec<String>)| {
        let many = |n: i64| if n == 1 { "round trip" } else { "round trips" };
        let count = match *step {
            0 => "no round trip more".to_owned(),
            step if step > 0 => format!("{step} {} more", many(step)),
            step => format!("{} {} less", -step, many(-step)),
        };
        format!("{count} over {}", listed(modes))
    };
    by_step.iter().map(words).collect()
}

/// Round trips that a row takes more than its reference, where the specification, by the sizes on
/// the wire, and the clock at the longest common RTT agree on it.
fn step(reference: &Row, row: &Row) -> Option<i64> {
    let (a, b) = (reference.spec?, row.spec?);
    let by_spec = i64::from(b.response) - i64::from(a.response);
    let common = row.cells.iter().rev().find_map(|cell| {
        let other = reference.at_rtt(cell.rtt_ms)?;
        Some((cell.rtt_ms, other.median(value::RESPONSE)?, cell.median(value::RESPONSE)?))
    });
    let by_clock = match (common, &reference.response, &row.response) {
        (Some((rtt, a, b)), ..) if rtt >= TELLING_RTT_MS => (b.value - a.value) / rtt,
        // Measured at other RTTs: the slopes tell.
        (_, Some(a), Some(b)) => b.slope.value - a.slope.value,
        _ => return None,
    };
    ((by_clock - by_spec as f64).abs() <= ROUND_TRIP_TOLERANCE).then_some(by_spec)
}

/// The medians of the first pair that has both, at the shortest RTT of each.
fn medians(pairs: &[(&Row, &Row)], name: &str) -> Option<(String, Estimate, Estimate)> {
    pairs.iter().find_map(|(reference, row)| {
        let (a, b) = (reference.cells.first()?, row.cells.first()?);
        Some((row.key.mode.to_string(), a.median(name)?, b.median(name)?))
    })
}

fn size(pairs: &[(&Row, &Row)], name: &str, what: &str, unit: &str) -> Option<String> {
    let (mode, a, b) = medians(pairs, name)?;
    // Lengths differ by a few bytes from one signature or ticket to the next.
    let differs = (b.value - a.value).abs() > 0.1 * a.value;
    differs.then(|| format!("{what} {:.0} {unit} instead of {:.0} ({mode})", b.value, a.value))
}

fn cpu(pairs: &[(&Row, &Row)], name: &str, who: &str) -> Option<String> {
    let (mode, a, b) = medians(pairs, name)?;
    let apart = b.low > a.high || b.high < a.low;
    apart.then(|| format!("{who} computes {:.2} ms instead of {:.2} ms ({mode})", b.value, a.value))
}
