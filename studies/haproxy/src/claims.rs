//! Every figure and finding of HAProxy 2025 that HAProxy itself can show, and what these results say of each.

use std::collections::BTreeSet;

use haproxy::Locks;
use study::{Answer, Claim, with_interval};

use crate::markdown::{ours, room};
use crate::point::Scenario;
use crate::published::{Bar, bars, command};
use crate::summary::{Row, Summary};

const CLAIMS: &str = include_str!("../claims.csv");

/// The claims as a fragment for Markdown.
pub(crate) fn markdown(summary: &Summary, provenance: &str) -> String {
    study::claims_markdown(provenance, &claims(), &answers(summary))
}

/// Those of the file, and a row for each bar. A test reads our own file.
fn claims() -> Vec<Claim> {
    let stated = study::claims(CLAIMS).unwrap_or_default();
    stated.into_iter().chain(bars().iter().map(claim)).collect()
}

fn item(bar: &Bar<'_>) -> String {
    format!("{}: {}, {}, {} threads", bar.item, bar.library, bar.locks, bar.threads)
}

fn claim(bar: &Bar<'_>) -> Claim {
    let rate = bar.per_second.map(|rate| format!("{rate:.0} connections/s"));
    let ratio = bar.ratio.map(|ratio| format!("× 1.1.1w {ratio:.2}"));
    let note = Some(bar.note.to_owned()).filter(|note| !note.is_empty());
    let says: Vec<String> = [rate, ratio, note].into_iter().flatten().collect();
    Claim {
        item: item(bar),
        says: says.join("; "),
        command: format!("`{}`", command(bar.scenario, bar.library)),
        seen: String::new(),
    }
}

/// What is said of all results.
type Say = fn(&Summary) -> Option<String>;

const SAID: [(&str, Say); 6] = [
    ("Libraries", libraries),
    ("Scenario 1: full handshakes", full),
    ("Scenario 2: resumption end to end", chain),
    ("Variant: light locks", light_locks),
    ("Up to 12 to 16 threads", threads),
    ("Energy", energy),
];

fn answers(summary: &Summary) -> Vec<Answer> {
    let said = SAID.iter().map(|(item, say)| ((*item).to_owned(), say(summary)));
    let bars = bars();
    let beside = bars.iter().map(|bar| (item(bar), beside(summary, bar)));
    said.chain(beside).collect()
}

/// One text of several; `None` of none.
fn joined(texts: Vec<String>) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn beside(summary: &Summary, bar: &Bar<'_>) -> Option<String> {
    let row = *ours(summary, bar).last()?;
    let ratio = row.ratio.map(|it| with_interval((it.value, it.low, it.high), 2));
    let ratio = ratio.map_or(String::new(), |ratio| format!("× 1.1.1w {ratio}; "));
    let cpu = row.server_cpu_us.map_or(String::new(), |cpu| format!(", {:.0} us each", cpu.value));
    let room = match room(summary, bar) {
        room if room.is_empty() => room,
        room => format!("; {room}"),
    };
    Some(format!(
        "{ratio}{}, {} threads: {:.0} connections/s{cpu}{room}",
        row.cell.library, row.cell.threads, row.per_second?.value
    ))
}

fn libraries(summary: &Summary) -> Option<String> {
    let names: Vec<String> =
        summary.programs.iter().map(|program| program.library.clone()).collect();
    let releases = summary.releases.join(" and ");
    (!names.is_empty())
        .then(|| format!("in these results HAProxy {releases} on {}", names.join(", ")))
}

fn of(summary: &Summary, scenario: Scenario) -> impl Iterator<Item = &Row> {
    summary.rows.iter().filter(move |row| row.cell.scenario == scenario)
}

/// Thread counts of a scenario.
fn counts(summary: &Summary, scenario: Scenario) -> BTreeSet<usize> {
    of(summary, scenario).map(|row| row.cell.threads).collect()
}

fn counts_text(summary: &Summary, scenario: Scenario) -> String {
    let counts = counts(summary, scenario);
    counts.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ")
}

fn full(summary: &Summary) -> Option<String> {
    let rows = || of(summary, Scenario::Full);
    let (runs, failed) =
        rows().fold((0, 0), |(runs, failed), row| (runs + row.runs, failed + row.failed));
    rows().next()?;
    Some(format!(
        "{runs} runs with {} threads, none with a resumed handshake; {failed} failed",
        counts_text(summary, Scenario::Full)
    ))
}

fn chain(summary: &Summary) -> Option<String> {
    let least = |of_row: fn(&Row) -> Option<f64>| {
        of(summary, Scenario::Chain).filter_map(of_row).reduce(f64::min)
    };
    let (front, back) = (least(|row| row.front_resumed)?, least(|row| row.back_resumed)?);
    Some(format!(
        "{} proxies, {} threads: by HAProxy's counters {:.1} % resumed at least towards clients, {:.1} % towards \
         servers",
        summary.proxies?,
        counts_text(summary, Scenario::Chain),
        100.0 * front,
        100.0 * back
    ))
}

/// The rates of each library in the chain at so many threads.
fn rates(summary: &Summary, locks: Locks, threads: usize) -> Vec<(&str, f64)> {
    let rows = of(summary, Scenario::Chain)
        .filter(|row| (row.cell.locks, row.cell.threads) == (locks, threads));
    rows.filter_map(|row| Some((row.cell.library.as_str(), row.per_second?.value))).collect()
}

/// Both rates of each library of two lists, and what the second is of the first.
fn compared(first: &[(&str, f64)], second: &[(&str, f64)]) -> Vec<String> {
    let both = first.iter().filter_map(|(name, one)| {
        let (_, other) = second.iter().find(|(own, _)| own == name)?;
        Some(format!("{name} {one:.0} to {other:.0} connections/s (× {:.2})", other / one))
    });
    both.collect()
}

fn light_locks(summary: &Summary) -> Option<String> {
    let most = *counts(summary, Scenario::Chain).last()?;
    let of = |locks| rates(summary, locks, most);
    let each = joined(compared(&of(Locks::Pthread), &of(Locks::Light)))?;
    Some(format!("in the chain with {most} threads: {each}"))
}

fn threads(summary: &Summary) -> Option<String> {
    let counts = counts(summary, Scenario::Chain);
    let (least, most) = (*counts.first()?, *counts.last()?);
    let of = |threads| rates(summary, Locks::Pthread, threads);
    let each = joined(compared(&of(least), &of(most))).filter(|_| most > least)?;
    let cores = summary.cores.map_or_else(|| "some".to_owned(), |cores| cores.to_string());
    Some(format!("{cores} cores are here; in the chain from {least} to {most} threads {each}"))
}

fn energy(summary: &Summary) -> Option<String> {
    let costs = of(summary, Scenario::Chain)
        .filter_map(|row| Some((row.cell.library.as_str(), row.server_cpu_us?.value)));
    let costs: Vec<(&str, f64)> = costs.collect();
    let (best, least) = costs.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (worst, most) = costs.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "in the chain {worst} takes {:.1} times the CPU time of {best} ({most:.0} and {least:.0} us), on few cores, \
         where threads seldom wait for a lock; no counter of energy is here",
        most / least
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn every_claim_has_its_answer() {
        for summary in [Summary::default(), Summary::of(&samples())] {
            let misfits = study::claims_misfits(&claims(), &answers(&summary));
            assert_eq!(misfits, Vec::<String>::new());
        }
        assert!(answers(&Summary::default()).iter().all(|(_, ours)| ours.is_none()));
    }

    #[test]
    fn results_answer_in_words() {
        let mut summary = Summary::of(&samples());
        summary.cores = Some(2);
        let answers = answers(&summary);
        let of = |item: &str| answers.iter().find(|(own, _)| own == item).unwrap().1.clone();
        let bar = of("full: OpenSSL 3.0.2, pthread, 64 threads").unwrap();
        assert!(bar.starts_with("× 1.1.1w 0.50 ["), "{bar}");
        assert!(
            bar.ends_with("501 connections/s, 1996 us each; needs 64 cores; 2 are here"),
            "{bar}"
        );
        assert_eq!(of("full: WolfSSL 5.7.0, pthread, 64 threads"), None);
        let energy = of("Energy").unwrap();
        assert!(energy.contains("openssl-3.0.2 takes 2.0 times"), "{energy}");
    }
}
