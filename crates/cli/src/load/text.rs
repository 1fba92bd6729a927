//! The text that `wiretax load` prints.

use fault::one_line;
use load::{FailureCount, Report, Stage, Summary};
use report::{Cell, Column, Row, Table};
use units::counted;

use crate::output::terminal_width;

/// The result as text.
pub(super) fn describe(report: &Report) -> String {
    let mut text = format!("{} as {}\n", report.address, one_line(&report.server_name));
    let mut line =
        |name: &str, value: String| text += &format!("  {name:14} {}\n", one_line(&value));
    for tried in &report.tried {
        line("not loaded", format!("{}: {}", tried.address, tried.problem));
    }
    line("load", format!("{}, {}", pace(report), counted(report.threads, "thread")));
    line(
        "connections",
        format!(
            "{:.1} per second over {:.1} s; {} completed, {} failed",
            report.connections_per_second, report.measured_seconds, report.completed, report.failed
        ),
    );
    let handshakes = &report.handshakes;
    line(
        "handshakes",
        format!(
            "{} full, {} resumed ({} were to resume)",
            handshakes.full, handshakes.resumed, handshakes.wanted_resumed
        ),
    );
    for agreed in &report.agreed {
        let retry = if agreed.hello_retry_request { ", after a HelloRetryRequest" } else { "" };
        let group = agreed.group.as_deref().unwrap_or("no group");
        let (version, suite) = (&agreed.version, &agreed.suite);
        line("", format!("{} {version}, {suite}, {group}{retry}", agreed.count));
    }
    line("requests", requests(report));
    if report.short_connections > 0 {
        let cut = counted(report.short_connections, "connection");
        let when = if report.streams.is_some() { "" } else { " before all their requests" };
        line("", format!("{cut} closed by the server{when}"));
    }
    line("bytes", format!("{} in, {} out", report.bytes_in, report.bytes_out));
    let (each, unit) = match report.streams {
        Some(_) => (report.cpu.us_per_request, "request"),
        None => (report.cpu.us_per_connection, "connection"),
    };
    let each = match each {
        Some(each) => format!("{each:.1} us per {unit}"),
        None => format!("no {unit}"),
    };
    line(
        "own CPU time",
        format!("{:.2} s, {each}; {:.0} % busy", report.cpu.seconds, report.cpu.busy * 100.0),
    );
    let latencies = latencies(report);
    if !latencies.rows.is_empty() {
        text.push('\n');
        text += &latencies.to_text(terminal_width());
    }
    let failures = failures(report);
    if !failures.rows.is_empty() {
        text.push('\n');
        text += &failures.to_text(terminal_width());
    }
    text
}

fn pace(report: &Report) -> String {
    let connections = counted(report.connections, "connection");
    match (report.rate, report.streams) {
        (Some(rate), None) => {
            format!("{rate} starts per second, at most {} at once", report.connections)
        }
        (None, None) => format!("{connections} at once"),
        (Some(rate), Some(streams)) => format!(
            "{rate} requests per second by HTTP/2, over {connections}, at most {streams} at once on each"
        ),
        (None, Some(streams)) => {
            format!("HTTP/2 over {connections}, {} at once on each", counted(streams, "request"))
        }
    }
}

fn requests(report: &Report) -> String {
    let mut text = format!("{} answered", report.requests);
    if report.streams.is_some() {
        text = format!(
            "{:.1} per second; {text}, {} failed",
            report.requests_per_second, report.requests_failed
        );
        if report.requests_retried > 0 {
            text += &format!(", {} sent again", report.requests_retried);
        }
    }
    text
}

fn latencies(report: &Report) -> Table {
    let latency = &report.latency;
    let due = if report.rate.is_some() { "all, from when due" } else { "all" };
    let mut rows: Vec<(&str, &Summary)> = vec![
        ("TCP connect", &latency.tcp_connect),
        ("TLS, full", &latency.tls_full),
        ("TLS, resumed", &latency.tls_resumed),
        ("first byte", &latency.first_byte),
        (due, &latency.total),
    ];
    if report.rate.is_some() {
        rows.push(("of it, started late", &latency.start_delay));
    }
    rows.retain(|(_, summary)| !summary.is_empty());
    let given_up = rows.iter().any(|(_, summary)| summary.censored > 0);
    let mut columns = vec![Column::new("Latency"), Column::new("count")];
    if given_up {
        columns.push(Column::new("given up"));
    }
    columns
        .extend(["p50", "p90", "p99", "p99.9", "max"].map(|title| Column::new(title).unit("ms")));
    let mut table = Table::new("Latency of what started after the ramp", columns);
    for (title, summary) in rows {
        let mut cells = vec![Cell::text(title), Cell::number(summary.count as f64, 0)];
        if given_up {
            cells.push(Cell::number(summary.censored as f64, 0));
        }
        cells.extend(
            [summary.p50_us, summary.p90_us, summary.p99_us, summary.p999_us, summary.max_us]
                .map(|us| time(us, summary)),
        );
        table.push(Row::new(cells));
    }
    table
}

/// A time in milliseconds, or that it is longer than was waited.
fn time(us: Option<f64>, summary: &Summary) -> Cell {
    match (us, summary.longer_than_us) {
        (Some(us), _) => Cell::number(us / 1e3, 3),
        (None, Some(longer)) => Cell::text(format!("> {}", rounded_down(longer / 1e3))),
        (None, None) => Cell::known(None, 3),
    }
}

/// Three digits of a number, not above it.
fn rounded_down(value: f64) -> String {
    let exponent = if value > 0.0 { value.log10().floor() as i32 - 2 } else { 0 };
    let step = 10f64.powi(exponent);
    // A number that is on a step stays there, though the quotient may miss it.
    let rounded = (value / step + 1e-9).floor() * step;
    format!("{rounded:.*}", usize::try_from(-exponent).unwrap_or(0))
}

fn failures(report: &Report) -> Table {
    let columns = vec![
        Column::new("Failure"),
        Column::new("stage"),
        Column::new("detail"),
        Column::new("count"),
    ];
    let mut table = Table::new("What failed", columns);
    let of = |failure: &FailureCount, request: bool| {
        let stage = match failure.stage {
            Stage::Connect => "connect",
            Stage::Tls => "TLS",
            Stage::Response if request => "request",
            Stage::Response => "response",
        };
        Row::new(vec![
            Cell::text(failure.kind.title()),
            Cell::text(stage),
            Cell::text(failure.detail.clone()),
            Cell::number(failure.count as f64, 0),
        ])
    };
    report.failures.iter().for_each(|failure| table.push(of(failure, false)));
    report.request_failures.iter().for_each(|failure| table.push(of(failure, true)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_rounded_down() {
        for (value, text) in [
            (1000.0, "1000"),
            (1000.052, "1000"),
            (1239.9, "1230"),
            (60.49, "60.4"),
            (0.5, "0.500"),
            (0.0, "0"),
        ] {
            assert_eq!(rounded_down(value), text, "{value}");
        }
    }

    #[test]
    fn what_was_given_up_is_longer() {
        let mut summary = Summary { censored: 3, longer_than_us: Some(1e6), ..Summary::default() };
        let shown = |us, summary: &Summary| {
            let mut table = Table::new("t", vec![Column::new("Latency")]);
            table.push(Row::new(vec![time(us, summary)]));
            table.to_text(80)
        };
        assert!(shown(None, &summary).contains("> 1000"));
        assert!(shown(Some(1500.0), &summary).contains("1.500"));
        summary.longer_than_us = None;
        assert!(!shown(None, &summary).contains('>'));
    }
}
