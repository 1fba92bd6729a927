//! The table of docs/results/stacks.md.

use study::with_interval;
use tls_drivers::hosts::LOAD_CLIENT;
use tls_drivers::{Key, Locks, Suite, Wire, Workload};

use super::counterparts::published_full;
use super::locks::TLS12_RSA;
use super::{Findings, YARDSTICK};
use crate::advice::MODERN;
use crate::point::Tool;
use crate::sample::value;
use crate::summary::{Cell as Measured, Summary, Want};

/// What a connection costs each library, and its locks.
pub(super) fn markdown(findings: &Findings) -> String {
    let (summary, estimates) = (&findings.summary, findings.contention());
    let mut text = format!(
        "{}. Medians of slices; the server's CPU time per connection, in memory, TLS 1.3 with ECDSA P-256 \
         and X25519 (over loopback TCP for Go and Java, which are programs of their own; the client \
         beside them is `wiretax load`, this program's load generator); ratios are of slices of the \
         same round, with their 95 % interval, and one that holds 1.00 cannot be told apart from \
         OpenSSL 1.1.1w; locks of the server in a full handshake, counted, with one and two tickets, \
         and of TLS 1.2 with RSA-2048; server / client: what a client makes a server spend for each \
         microsecond of its own in a full TLS 1.3 handshake, by the server's key (HAProxy 2025 speaks of 10 to \
         15); contention: an estimate for this machine and no bound, as if all \
         those locks were one and each were handed from core to core; published: what HAProxy 2025 \
         measured of the nearest version in HAProxy on 64 cores of another machine.\n",
        findings.provenance
    );
    text += "\n| library | full | × 1.1.1w | resumed | client, full | locks 1.3 | two tickets | locks 1.2 RSA | thousand instructions | atomics | server / client, RSA-2048 | RSA-4096 | contention | published |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for name in summary.measured() {
        let own = estimates.iter().find(|one| one.library == name && one.workload == "full");
        text += &line(summary, name, own.and_then(|own| own.estimate.locks_per_s));
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

fn line(summary: &Summary, name: &str, estimate: Option<f64>) -> String {
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
        ratio
            .filter(|_| name != YARDSTICK)
            .map_or(String::new(), |ratio| with_interval((ratio.value, ratio.low, ratio.high), 2)),
        microseconds(median(resumed, value::SERVER_CPU)),
        full.map_or(String::new(), client),
        number(locks(summary, name, MODERN, 1), 0),
        number(locks(summary, name, MODERN, 2), 0),
        number(locks(summary, name, TLS12_RSA, 1), 0),
        number(thousand, 0),
        number(median(counted, value::SERVER_ATOMICS), 0),
        number(by_client(summary, name, Key::Rsa2048), 1),
        number(by_client(summary, name, Key::Rsa4096), 1),
        thousands(estimate),
        thousands(published_full(name)),
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// What the server spends for each microsecond of its client's, with this key.
fn by_client(summary: &Summary, name: &str, key: Key) -> Option<f64> {
    let want = Want::handshake(Workload::Full, Suite { key, ..MODERN });
    summary.find(want.of(name)).and_then(super::client::server_by_client)
}

/// The client's CPU time, with its name where it is no library of the table.
fn client(full: &Measured) -> String {
    let time = microseconds(full.median(value::CLIENT_CPU).map(|median| median.value));
    match full.point.client.as_str() {
        LOAD_CLIENT if !time.is_empty() => format!("{time} (`wiretax load`)"),
        _ => time,
    }
}

fn thousands(rate: Option<f64>) -> String {
    rate.map_or(String::new(), |rate| format!("{:.0} thousand/s", rate / 1e3))
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or(String::new(), |value| format!("{value:.decimals$}"))
}

fn microseconds(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.0} us"))
}
