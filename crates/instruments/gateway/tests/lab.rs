//! The gateway's cost as the benchmark measures it, shortened: every part of it works.

mod beside;

use std::process::ExitCode;

use beside::{Pair, Plan, Programs, ends};
use lab_test::{Need, Test, TestResult, skip};

/// Bytes that a full handshake has at least besides the certificates: its hellos, CertificateVerify and Finished.
const OTHER_MESSAGES: f64 = 300.0;

fn main() -> ExitCode {
    match beside::ours::side() {
        None => lab_test::main(&[
            Test::new("the_gateway_is_measured_beside_none", wiretax),
            Test::new("a_killed_peer_ends_downloads", || {
                entered(ends::a_killed_peer_ends_downloads)
            }),
            Test::new("unread_downloads_share_a_budget", || {
                entered(ends::unread_downloads_share_a_budget)
            }),
            Test::new("other_proxies_are_measured_where_they_are_installed", others),
        ]),
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn wiretax() -> TestResult {
    entered(|| measured(&[Pair::Direct, Pair::Embedded, Pair::Sequential]))
}

fn others() -> TestResult {
    let programs = Programs::default();
    let mut pairs = vec![Pair::Direct];
    let others = [Pair::Stunnel, Pair::Haproxy, Pair::Ghostunnel];
    pairs.extend(others.into_iter().filter(|pair| programs.find(*pair).is_ok()));
    if pairs.len() == 1 {
        return skip(Need::Host, "neither stunnel nor haproxy nor ghostunnel is on this machine");
    }
    entered(|| measured(&pairs))
}

/// Enters the lab, whose processes can be looked at.
fn entered(test: impl FnOnce() -> TestResult) -> TestResult {
    lab_test::net::enter()?;
    if !beside::has_processes() {
        return skip(Need::Host, "the lab has no /proc of its own here");
    }
    test()
}

/// Counts alone are looked at: times are the machine's.
fn measured(pairs: &[Pair]) -> TestResult {
    let outcome = beside::measure(pairs, &Programs::default(), Plan::SHORT)?;
    beside::print(&outcome)?;
    let mut direct = 0.0;
    for row in &outcome.rows {
        let figures = row.rounds.first().ok_or("no round")?;
        assert_eq!(figures.failed, 0, "{}", row.pair);
        assert!(figures.connections_per_s > 0.0 && figures.gbit_per_s > 0.0, "{figures:?}");
        if row.pair == Pair::Direct {
            direct = figures.link_bytes_per_connection;
            continue;
        }
        // Every handshake brought the certificates: none was resumed.
        let bytes = figures.link_bytes_per_connection - direct;
        let full = outcome.chain_bytes as f64 + OTHER_MESSAGES;
        assert!(bytes > full, "{}: {bytes} bytes, no full handshake has below {full}", row.pair);
    }
    Ok(())
}
