//! Medians of the rounds with their intervals, as tables in Markdown.

use lab_test::TestResult;
use stats::{Confidence, Sample};

use super::{Figures, Outcome, Pair, Row};

/// One figure of a round; of `direct` in the same round, too, where it is a difference.
type Column = (&'static str, fn(&Figures, &Figures) -> f64, usize);

/// Per connection: title, figure, decimals.
const CONNECTIONS: [Column; 7] = [
    ("connections/s", |own, _| own.connections_per_s, 0),
    ("CPU us, client's side", |own, _| own.cpu_us_per_connection[0], 0),
    ("server's side", |own, _| own.cpu_us_per_connection[1], 0),
    ("first response, us more", |own, direct| added(own, direct, |of| of.first_response_us_p50), 0),
    ("kB idle, client's side", |own, _| own.kb_per_idle_connection[0], 1),
    ("server's side", |own, _| own.kb_per_idle_connection[1], 1),
    ("bytes on the link", |own, _| own.link_bytes_per_connection, 0),
];

/// Of data: title, figure, decimals.
const DATA: [Column; 5] = [
    ("Gbit/s, one connection", |own, _| own.gbit_per_s, 2),
    ("several", |own, _| own.gbit_per_s_together, 2),
    ("CPU s per GB, both sides", |own, _| own.cpu_s_per_gbyte, 2),
    ("round trip, us more, p50", |own, direct| added(own, direct, |of| of.round_trip_us_p50), 0),
    ("p99", |own, direct| added(own, direct, |of| of.round_trip_us_p99), 0),
];

fn added(own: &Figures, direct: &Figures, figure: impl Fn(&Figures) -> f64) -> f64 {
    figure(own) - figure(direct)
}

/// Prints what was measured.
pub fn print(outcome: &Outcome) -> TestResult {
    let (plan, direct) = (&outcome.plan, direct(outcome)?);
    let cpu = |cpu: Option<usize>| cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
    println!(
        "both proxies of a pair on CPU {}, clients and server on CPU {}; TLS 1.3, AES-128-GCM, X25519, ECDSA P-256, \
         chain of {} bytes, no resumption; {} rounds of {} s in turns, {} connections at once, {} idle, {} downloads \
         together; medians [95 % interval, or all that was seen]",
        cpu(outcome.proxy_cpu),
        cpu(outcome.traffic_cpu),
        outcome.chain_bytes,
        plan.rounds,
        plan.seconds,
        plan.at_once,
        plan.idle,
        plan.downloads,
    );
    for columns in [&CONNECTIONS[..], &DATA[..]] {
        println!();
        let titles: Vec<&str> = columns.iter().map(|(title, ..)| *title).collect();
        println!("| pair | {} |", titles.join(" | "));
        println!("|---|{}", "---:|".repeat(columns.len()));
        for row in &outcome.rows {
            println!("| {} | {} |", row.pair, cells(row, direct, columns)?.join(" | "));
        }
    }
    println!();
    println!(
        "`direct` has no proxies: what clients and server do alone; its times are whole, not more than others."
    );
    for row in outcome.rows.iter().filter(|row| !row.version.is_empty()) {
        let failed: u64 = row.rounds.iter().map(|figures| figures.failed).sum();
        println!("{}: {}; {failed} connections failed", row.pair, row.version);
    }
    Ok(())
}

fn direct(outcome: &Outcome) -> TestResult<&Row> {
    let found = outcome.rows.iter().find(|row| row.pair == Pair::Direct);
    found.ok_or_else(|| "without `direct` there is nothing to compare with".into())
}

fn cells(row: &Row, direct: &Row, columns: &[Column]) -> TestResult<Vec<String>> {
    columns.iter().map(|column| cell(row, direct, *column)).collect()
}

fn cell(row: &Row, direct: &Row, (_, figure, decimals): Column) -> TestResult<String> {
    let nothing = Figures::default();
    let rounds = row.rounds.iter().zip(&direct.rounds).map(|(own, direct)| {
        // Its own times are whole.
        figure(own, if row.pair == Pair::Direct { &nothing } else { direct })
    });
    let estimate = Sample::from_vec(rounds.collect())?.median_estimate(Confidence::C95);
    let (value, low, high) = (estimate.value, estimate.low, estimate.high);
    Ok(format!("{value:.decimals$} [{low:.decimals$}, {high:.decimals$}]"))
}
