//! The tables of docs/results/haproxy.md.

use std::collections::BTreeSet;

use haproxy::Locks;
use stats::Estimate;
use study::with_interval;

use crate::point::Scenario;
use crate::published::{Bar, bars};
use crate::summary::{Row, Summary};

/// The figures of HAProxy 2025 with ours beside them, then every build.
pub(crate) fn markdown(summary: &Summary, provenance: &str) -> String {
    let cores = cores(summary);
    let proxies = summary.proxies.unwrap_or_default();
    format!(
        "{provenance}. HAProxy {} on {cores} processors, which the load generator shares; {}, {}. `full`: \
         full handshakes that HAProxy answers itself; `resume-chain`: {proxies} proxies in a row, resumed on \
         both sides. Connections per second end to end, medians; CPU is HAProxy's per connection. × 1.1.1w: \
         as a ratio to OpenSSL 1.1.1w with pthread's locks at the same threads, pair by pair, with its 95 % \
         interval; on few cores it shows what a library's code costs, on 64 where it stops scaling.\n\n{}\n{}",
        summary.releases.join(" and "),
        summary.key,
        summary.group,
        beside(summary),
        builds(summary)
    )
}

/// Handshakes over QUIC beside those over TCP, where the chain was not measured: HAProxy 2025 has neither figures nor
/// bars of QUIC.
pub(crate) fn over_quic(summary: &Summary, provenance: &str) -> Option<String> {
    let has = |scenario| summary.rows.iter().any(|row| row.cell.scenario == scenario);
    if !has(Scenario::Quic) || has(Scenario::Chain) {
        return None;
    }
    let cores = cores(summary);
    let ratio = match have_ratios(&summary.rows) {
        true => {
            " × 1.1.1w: as a ratio to OpenSSL 1.1.1w with pthread's locks in the same scenario at the same threads, pair \
             by pair, with its 95 % interval."
        }
        false => "",
    };
    Some(format!(
        "{provenance}. HAProxy {} on {cores} processors, which the load generator shares; {}, {}. `quic`: full \
         handshakes over QUIC, each with a request over HTTP/3; `full`: over TCP, each with a request over HTTP/1.1. \
         Connections per second end to end, medians; CPU is HAProxy's per connection. The client of QUIC takes more of \
         the processors than HAProxy, so read the CPU time, not the rate.{ratio}\n\n{}",
        summary.releases.join(" and "),
        summary.key,
        summary.group,
        builds(summary)
    ))
}

/// How many processors, in words.
fn cores(summary: &Summary) -> String {
    summary.cores.map_or_else(|| "some".to_owned(), |cores| cores.to_string())
}

/// Whether there is a ratio to OpenSSL 1.1.1w.
fn have_ratios<'a>(rows: impl IntoIterator<Item = &'a Row>) -> bool {
    rows.into_iter().any(|row| row.ratio.is_some())
}

/// Each figure of HAProxy 2025.
fn beside(summary: &Summary) -> String {
    let mut text = "| HAProxy 2025 | scenario | locks | threads | connections/s | × 1.1.1w | here | connections/s by threads | × 1.1.1w here | CPU here | its threads here |\n".to_owned();
    text += &format!("|{}\n", "---|".repeat(11));
    for bar in bars() {
        let ours = ours(summary, &bar);
        let most = ours.last().copied();
        let rates: Vec<String> = ours
            .iter()
            .filter_map(|row| Some(format!("{}: {:.0}", row.cell.threads, row.per_second?.value)))
            .collect();
        let line = [
            bar.library.to_owned(),
            bar.item.to_owned(),
            bar.locks.to_string(),
            bar.threads.to_string(),
            bar.per_second.map_or_else(|| bar.note.to_owned(), |rate| format!("{rate:.0}")),
            bar.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            most.map_or("not measured".to_owned(), |row| row.cell.library.clone()),
            rates.join(", "),
            most.and_then(|row| row.ratio).map_or(String::new(), interval),
            most.and_then(|row| row.server_cpu_us).map_or(String::new(), microseconds),
            room(summary, &bar),
        ];
        text += &format!("| {} |\n", line.join(" | "));
    }
    text
}

/// Whether this machine has cores for the threads of HAProxy 2025.
pub(crate) fn room(summary: &Summary, bar: &Bar<'_>) -> String {
    match summary.cores {
        Some(cores) if bar.threads > cores as usize => {
            format!("needs {} cores; {cores} are here", bar.threads)
        }
        _ => String::new(),
    }
}

/// What was measured of the same scenario and locks with the library that stands for that of HAProxy 2025, by
/// threads.
pub(crate) fn ours<'a>(summary: &'a Summary, bar: &Bar<'_>) -> Vec<&'a Row> {
    let same = |row: &&Row| bar.is_of(row) && row.per_second.is_some();
    let mut rows: Vec<&Row> = summary.rows.iter().filter(same).collect();
    // Of several versions that one name of HAProxy 2025 stands for, the newest.
    if let Some(library) = rows.iter().map(|row| row.cell.library.clone()).max() {
        rows.retain(|row| row.cell.library == library);
    }
    rows.sort_by_key(|row| row.cell.threads);
    rows
}

/// Every build in the scenarios that were measured, at the most threads.
fn builds(summary: &Summary) -> String {
    let most = summary.rows.iter().map(|row| row.cell.threads).max().unwrap_or_default();
    let rows: Vec<&Row> = summary.rows.iter().filter(|row| row.cell.threads == most).collect();
    let is_measured = |scenario: &&Scenario| rows.iter().any(|row| row.cell.scenario == **scenario);
    let scenarios: Vec<Scenario> = Scenario::ALL.iter().filter(is_measured).copied().collect();
    // Without OpenSSL 1.1.1w there is nothing to be a ratio to.
    let (columns, ratio) =
        if have_ratios(rows.iter().copied()) { (3, " × 1.1.1w |") } else { (2, "") };
    let mut text = format!("| library, {most} threads | locks |");
    for scenario in &scenarios {
        text += &format!(" {scenario}, connections/s | CPU |{ratio}");
    }
    text += &format!("\n|{}\n", "---|".repeat(2 + columns * scenarios.len()));
    let builds: BTreeSet<(&str, Locks)> =
        rows.iter().map(|row| (row.cell.library.as_str(), row.cell.locks)).collect();
    for (library, locks) in builds {
        let cell = |scenario: &Scenario| {
            let row = rows.iter().find(|row| {
                let cell = &row.cell;
                (cell.scenario, cell.library.as_str(), cell.locks) == (*scenario, library, locks)
            });
            cells(row.copied())
        };
        let cells: Vec<String> = scenarios
            .iter()
            .flat_map(|scenario| cell(scenario).into_iter().take(columns))
            .collect();
        text += &format!("| {library} | {locks} | {} |\n", cells.join(" | "));
    }
    text
}

fn cells(row: Option<&Row>) -> [String; 3] {
    let Some(row) = row else { return Default::default() };
    let failed = row.failure.clone().filter(|_| row.runs == 0).map(|why| why.replace('|', " "));
    [
        failed.unwrap_or_else(|| {
            row.per_second.map_or(String::new(), |rate| format!("{:.0}", rate.value))
        }),
        row.server_cpu_us.map_or(String::new(), microseconds),
        row.ratio.map_or(String::new(), interval),
    ]
}

fn microseconds(estimate: Estimate) -> String {
    format!("{:.0} us", estimate.value)
}

fn interval(ratio: Estimate) -> String {
    with_interval((ratio.value, ratio.low, ratio.high), 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn every_figure_of_the_document_and_every_build_has_its_line() {
        let mut summary = Summary::of(&samples());
        summary.cores = Some(2);
        let text = markdown(&summary, "Measured somewhere");
        let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(lines("| OpenSSL 3.0.2 |"), 2, "{text}");
        assert_eq!(lines("| openssl-3.0.2 | pthread |"), 1);
        assert_eq!(lines("| openssl-1.1.1w | pthread |"), 1);
        assert_eq!(text.matches("not measured").count(), bars().len() - 5, "{text}");
        assert!(text.contains("needs 64 cores; 2 are here"));
        assert!(text.contains("1: 501, 2: 501, 4: 501"), "{text}");
        assert!(
            text.contains("| locks | full, connections/s | CPU | × 1.1.1w | chain, "),
            "{text}"
        );
        assert!(!text.contains("quic,"), "it was not measured: {text}");
        assert!(over_quic(&summary, "").is_none());
        summary.cores = Some(64);
        assert!(!markdown(&summary, "").contains("needs"), "there are enough");
    }

    #[test]
    fn quic_beside_tcp_has_a_table_of_its_own() {
        let mut summary = Summary::of(&samples());
        summary.rows.retain(|row| row.cell.scenario == Scenario::Full);
        assert!(over_quic(&summary, "").is_none(), "no QUIC was measured");
        let mut quic = summary.rows.clone();
        quic.iter_mut().for_each(|row| row.cell.scenario = Scenario::Quic);
        summary.rows.extend(quic);
        let text = over_quic(&summary, "Measured somewhere").unwrap();
        assert!(
            text.contains("| full, connections/s | CPU | × 1.1.1w | quic, connections/s |"),
            "{text}"
        );
        assert!(!text.contains("chain, connections") && !text.contains("not measured"), "{text}");
        summary.rows.iter_mut().for_each(|row| row.ratio = None);
        let text = over_quic(&summary, "").unwrap();
        assert!(
            text.contains("| full, connections/s | CPU | quic, connections/s | CPU |"),
            "{text}"
        );
        assert!(!text.contains("1.1.1w:") && !text.contains("× 1.1.1w"), "{text}");
    }
}
