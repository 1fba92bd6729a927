//! `wiretax load`: the load generator.

mod args;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, one_line};
use load::{Close, Control, Kind, Options, Pace, Progress, Report, Stage, Summary};
use report::{Cell, Column, Row, Table};
use units::counted;

use self::args::CloseArg;
pub use self::args::LoadArgs;
use crate::certificates::roots_in;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{say, say_json, terminal_width};

/// Connections of an open loop that may be under way at once, if not said.
const OPEN_CONNECTIONS: usize = 1000;
/// Above this share of the threads' time the generator is the limit.
const BUSY: f64 = 0.9;

/// Loads a server and prints what came of it.
pub fn load(args: &LoadArgs, diagnostics: &Diagnostics) -> Outcome {
    let options = options(args)?;
    options.check()?;
    if args.tls.insecure {
        diagnostics
            .warning("any certificate is accepted: this load says nothing about who answers it");
    }
    let interrupt = Interrupt::listen()?;
    let control = Control::default();
    let mut progress = diagnostics.progress();
    let report = ::load::run_with(&options, &control, |at| {
        show(&mut progress, &at);
        if interrupt.came() {
            control.stop();
        }
    });
    progress.finish();
    let report = report?;
    if args.json.json {
        let text = serde_json::to_string_pretty(&report).blame(Fault::Results)?;
        say_json(&format!("{text}\n"))?;
    } else {
        say(&describe(&report))?;
    }
    advise(&report, diagnostics);
    Ok(if report.interrupted {
        Exit::Interrupted
    } else if report.completed == 0 {
        Exit::Found
    } else {
        Exit::Done
    })
}

fn show(progress: &mut crate::diagnostics::Progress, at: &Progress) {
    let failures = match at.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let text = format!("{}{failures}", counted(at.completed, "connection"));
    let left = at.left.unwrap_or(Duration::from_secs(1));
    progress.show(&text, at.elapsed, at.elapsed.saturating_add(left));
}

fn options(args: &LoadArgs) -> Result<Options, Problem> {
    let target = &args.target;
    let name = args.tls.name.as_deref().unwrap_or(&target.host);
    let mut options = Options::new(address(args)?, name);
    if !args.work.handshake_only {
        options.get(&target.authority(), &target.path, args.work.requests_per_connection);
    }
    if let Some(rate) = args.pace.rate {
        options.pace = Pace::Open { rate };
        options.connections = OPEN_CONNECTIONS;
    }
    options.connections = args.pace.connections.unwrap_or(options.connections);
    options.threads = args.pace.threads.unwrap_or(options.threads);
    options.count = args.pace.count;
    options.duration = match (args.pace.duration, args.pace.count) {
        (Some(duration), _) => Some(duration.duration()),
        (None, Some(_)) => None,
        (None, None) => options.duration,
    };
    options.ramp = args.pace.ramp.duration();
    options.timeout = args.pace.timeout.duration();
    options.resume = args.work.resume.value();
    options.close = match args.work.close {
        CloseArg::Fin => Close::Fin,
        CloseArg::Reset => Close::Reset,
        CloseArg::Notify => Close::Notify,
        CloseArg::Server => Close::Server,
    };
    if !args.tls.versions.is_empty() {
        options.versions.clone_from(&args.tls.versions);
    }
    if !args.tls.groups.is_empty() {
        options.groups.clone_from(&args.tls.groups);
    }
    options.suites.clone_from(&args.tls.suites);
    options.alpn = args.tls.alpn.clone().map(String::into_bytes);
    options.trust = match (&args.tls.ca, args.tls.insecure) {
        (_, true) => tls::Trust::Insecure,
        (Some(file), _) => tls::Trust::Roots(roots_in(file)?),
        (None, _) => tls::Trust::System,
    };
    options.sources.clone_from(&args.route.source);
    options.allow_remote = args.route.allow_remote;
    Ok(options)
}

/// Where to connect: what was said, or the first address of the name.
fn address(args: &LoadArgs) -> Result<SocketAddr, Problem> {
    if let Some((address, port)) = args.route.connect_to {
        return Ok(SocketAddr::new(address, port.unwrap_or(args.target.port)));
    }
    let wanted = |address: IpAddr| {
        (!args.route.ipv4 || address.is_ipv4()) && (!args.route.ipv6 || address.is_ipv6())
    };
    args.target.resolve(wanted).map_err(|cause| {
        let host = &args.target.host;
        Problem::new(Fault::Caller, format!("{host} has no address: {cause}"))
            .with_remedy("check the name, or give an address by --connect-to")
    })
}

fn describe(report: &Report) -> String {
    let mut text = format!("{} as {}\n", report.address, one_line(&report.server_name));
    let mut line =
        |name: &str, value: String| text += &format!("  {name:14} {}\n", one_line(&value));
    let pace = match report.rate {
        Some(rate) => format!("{rate} starts per second, at most {} at once", report.connections),
        None => format!("{} at once", counted(report.connections, "connection")),
    };
    line("load", format!("{pace}, {} threads", report.threads));
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
    line("requests", format!("{} answered", report.requests));
    line("bytes", format!("{} in, {} out", report.bytes_in, report.bytes_out));
    let each = match report.cpu.us_per_connection {
        Some(each) => format!("{each:.1} us per connection"),
        None => "no connection".to_owned(),
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
    if !report.failures.is_empty() {
        text.push('\n');
        text += &failures(report).to_text(terminal_width());
    }
    text
}

fn latencies(report: &Report) -> Table {
    let mut columns = vec![Column::new("Latency")];
    columns.push(Column::new("count"));
    columns
        .extend(["p50", "p90", "p99", "p99.9", "max"].map(|title| Column::new(title).unit("ms")));
    let mut table = Table::new("Latency of what started after the ramp", columns);
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
    for (title, summary) in rows {
        if summary.count == 0 {
            continue;
        }
        let mut cells = vec![Cell::text(title), Cell::number(summary.count as f64, 0)];
        cells.extend(
            [summary.p50_us, summary.p90_us, summary.p99_us, summary.p999_us, summary.max_us]
                .map(|us| Cell::number(us / 1e3, 3)),
        );
        table.push(Row::new(cells));
    }
    table
}

fn failures(report: &Report) -> Table {
    let columns = vec![
        Column::new("Failure"),
        Column::new("stage"),
        Column::new("detail"),
        Column::new("count"),
    ];
    let mut table = Table::new("What failed", columns);
    for failure in &report.failures {
        let stage = match failure.stage {
            Stage::Connect => "connect",
            Stage::Tls => "TLS",
            Stage::Response => "response",
        };
        table.push(Row::new(vec![
            Cell::text(failure.kind.title()),
            Cell::text(stage),
            Cell::text(failure.detail.clone()),
            Cell::number(failure.count as f64, 0),
        ]));
    }
    table
}

/// What makes the result worth less, and what can be done about it.
fn advise(report: &Report, diagnostics: &Diagnostics) {
    if report.interrupted {
        let cut_off = counted(report.unfinished, "connection");
        diagnostics.note(format!("interrupted; {cut_off} cut off"));
    }
    if report.completed == 0 && report.started > 0 && !report.interrupted {
        diagnostics.warning("every connection failed");
    }
    if report.not_started > 0 {
        let due = report.started + report.not_started;
        let share = report.not_started as f64 / due as f64 * 100.0;
        diagnostics.warning(format!(
            "{} of {due} starts that were due could not be made: the server did not keep up with the \
             rate; the slowest {share:.1} % are missing from the latencies",
            report.not_started
        ));
    }
    if report.cpu.busy > BUSY {
        diagnostics.warning(format!(
            "the generator was busy {:.0} % of its time and may itself be the limit",
            report.cpu.busy * 100.0
        ));
        diagnostics.advice("give it more cores and --threads, or read the rate as a lower bound");
    }
    let handshakes = &report.handshakes;
    if handshakes.wanted_resumed > handshakes.resumed {
        diagnostics.note(format!(
            "of {} to be resumed {} did: {} had no ticket, {} declined",
            counted(handshakes.wanted_resumed, "connection"),
            handshakes.resumed,
            handshakes.without_ticket,
            handshakes.declined
        ));
    }
    if report.short_connections > 0 {
        diagnostics.note(format!(
            "{} closed by the server before all their requests",
            counted(report.short_connections, "connection")
        ));
    }
    let hints = [
        (Kind::NoPort, "connect from more addresses (--source), or close by --close reset"),
        (Kind::NoDescriptor, "raise `ulimit -n`, or use fewer connections"),
        (Kind::Certificate, "name the server's root by --ca, or its name by --name"),
        (Kind::Refused, "check the port, and that the server runs"),
    ];
    for (kind, hint) in hints {
        if report.failures.iter().any(|failure| failure.kind == kind) {
            diagnostics.advice(hint);
        }
    }
}
