//! The gateway beside other pairs of TLS proxies, in turns on one machine of the lab's making.

#[allow(dead_code, reason = "the tests take it alone")]
pub mod ends;
mod measure;
pub mod ours;
mod pairs;
mod site;
mod table;
mod traffic;
#[allow(dead_code, reason = "the benchmark takes it alone")]
pub mod unread;

use std::path::PathBuf;

use lab_test::TestResult;
use serde::Serialize;

use measure::Figures;
pub use measure::Plan;
pub use pairs::{Pair, Programs};
use site::Site;
pub use table::print;

/// What was measured.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub plan: Plan,
    pub proxy_cpu: Option<usize>,
    pub traffic_cpu: Option<usize>,
    /// Bytes of the certificates of a full handshake.
    pub chain_bytes: usize,
    pub rows: Vec<Row>,
}

/// One pair, in all rounds.
#[derive(Debug, Serialize)]
pub struct Row {
    pub pair: Pair,
    /// The release of its program.
    pub version: String,
    pub rounds: Vec<Figures>,
}

/// Whether processes can be looked at: where a container masks /proc, the lab has none of its own.
pub fn has_processes() -> bool {
    lab::entered().is_some_and(|entered| entered.own_proc)
}

/// Measures these pairs in turns; those whose program is missing are reported and left out. The lab is entered already.
pub fn measure(pairs: &[Pair], programs: &Programs, plan: Plan) -> TestResult<Outcome> {
    let mut found: Vec<(Option<PathBuf>, Row)> = Vec::new();
    for pair in pairs {
        match programs.find(*pair) {
            Ok(program) => {
                let version = program.as_deref().map(|program| pairs::version(*pair, program));
                let version = version.unwrap_or_default();
                found.push((program, Row { pair: *pair, version, rounds: Vec::new() }));
            }
            Err(missing) => eprintln!("{missing}"),
        }
    }
    let site = Site::new()?;
    for round in 0..plan.rounds {
        for at in 0..found.len() {
            // Who is first changes.
            let at = (at + round) % found.len();
            let (program, row) = &mut found[at];
            let started = row.pair.start(&site, program.as_deref())?;
            let figures = measure::figures(&site, started, plan);
            row.rounds.push(figures.map_err(|error| format!("{}: {error}", row.pair))?);
        }
        eprintln!("round {} of {}", round + 1, plan.rounds);
    }
    Ok(Outcome {
        plan,
        proxy_cpu: site.proxy_cpu,
        traffic_cpu: site.traffic_cpu,
        chain_bytes: site.chain_bytes,
        rows: found.into_iter().map(|(_, row)| row).collect(),
    })
}
