//! The table of the project's README.

use tls_drivers::{Locks, Suite, Wire, Workload};

use super::locks::TLS12_RSA;
use super::{Findings, YARDSTICK};
use crate::advice::MODERN;
use crate::point::Tool;
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// What a connection costs each library, and what its locks allow.
pub(super) fn markdown(findings: &Findings) -> String {
    let (summary, bounds) = (&findings.summary, findings.bounds());
    let mut text = format!(
        "{}. Medians; the server's CPU time a connection, in memory, TLS 1.3 with ECDSA P-256 and \
         X25519 (over loopback TCP for Go and Java, which are programs of their own); locks of the \
         server in a full handshake, with one and two tickets, and of TLS 1.2 with RSA-2048; at most: \
         what any number of cores can reach if all of these are one lock, bounded and not measured.\n",
        findings.provenance
    );
    text += "\n| library | full | × 1.1.1w | resumed | client, full | locks 1.3 | two tickets | locks 1.2 RSA | thousand instructions | atomics | at most |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for name in summary.measured() {
        let bound = bounds.iter().find(|bound| bound.library == name && bound.workload == "full");
        let most = bound.and_then(|bound| bound.bound.locks_per_s);
        text += &line(summary, name, most);
    }
    text
}

/// A library's cell of one thread: in memory where there is one.
fn handshake<'a>(summary: &'a Summary, name: &'a str, workload: Workload) -> Option<&'a Measured> {
    let memory = Want::handshake(workload, MODERN).of(name);
    let loopback = Want { wire: Some(Wire::Loopback), ..memory };
    summary.find(memory).or_else(|| summary.find(loopback))
}

/// The server's locks in a full handshake.
fn locks(summary: &Summary, name: &str, suite: Suite, tickets: u32) -> Option<f64> {
    let want = Want { locks: Locks::Count, tickets, ..Want::handshake(Workload::Full, suite) };
    summary.find(want.of(name)).and_then(Measured::server_locks)
}

fn line(summary: &Summary, name: &str, most: Option<f64>) -> String {
    let (full, resumed) =
        (handshake(summary, name, Workload::Full), handshake(summary, name, Workload::Resume));
    let median = |cell: Option<&Measured>, what| Some(cell?.median(what)?.value);
    let ratio = full
        .zip(handshake(summary, YARDSTICK, Workload::Full))
        .filter(|(own, other)| own.point.wire == other.point.wire)
        .and_then(|(own, other)| own.ratio_to(other, value::SERVER_CPU));
    let counted = Want { tool: Tool::Callgrind, ..Want::handshake(Workload::Full, MODERN) };
    let counted = summary.find(counted.of(name));
    let thousand = median(counted, value::SERVER_INSTRUCTIONS).map(|count| count / 1e3);
    let cells = [
        summary.title(name),
        microseconds(median(full, value::SERVER_CPU)),
        number(ratio.map(|ratio| ratio.value), 2),
        microseconds(median(resumed, value::SERVER_CPU)),
        microseconds(median(full, value::CLIENT_CPU)),
        number(locks(summary, name, MODERN, 1), 0),
        number(locks(summary, name, MODERN, 2), 0),
        number(locks(summary, name, TLS12_RSA, 1), 0),
        number(thousand, 0),
        number(median(counted, value::SERVER_ATOMICS), 0),
        most.map_or(String::new(), |rate| format!("{:.0} thousand/s", rate / 1e3)),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.decimals$}"))
}

fn microseconds(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.0} us"))
}
