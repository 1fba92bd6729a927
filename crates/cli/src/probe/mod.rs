//! `wiretax probe`: the same measurement against the user's own live server; and results of several
//! places side by side.

mod args;

use std::path::Path;
use std::time::Duration;

use conn::probe::{
    Family, Kind, Mode, ModeReport, Options, ProbeError, Report, Target, Verdict, Versions,
    probe as look,
};
use fault::{Fault, OrProblem, Problem, WhileDoing, one_line};
use report::{Cell, Column, Row, Table};
use units::counted;

pub use self::args::ProbeArgs;
use crate::certificates::roots_in;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Asked;
use crate::output::{say, say_json, terminal_width};

/// Most of what a probe takes, whatever the server does.
const DEADLINE: Duration = Duration::from_secs(120);

/// Probes a server, or compares what was probed before.
pub fn probe(args: &ProbeArgs, diagnostics: &Diagnostics) -> Outcome {
    let reports = match &args.target {
        Some(target) => match measure(target, args, diagnostics)? {
            Some(report) => vec![(String::new(), report)],
            None => {
                diagnostics
                    .error(&Problem::new(Fault::Peer, "interrupted: the probe has no result"));
                return Ok(Exit::Interrupted);
            }
        },
        None => args.compare.iter().map(|file| read_report(file)).collect::<Result<_, _>>()?,
    };
    if args.json.json {
        let text = match reports.as_slice() {
            [(_, report)] => serde_json::to_string_pretty(report),
            several => serde_json::to_string_pretty(several),
        };
        say_json(&format!("{}\n", text.blame(Fault::Results)?))?;
    } else if args.target.is_some() {
        for (_, report) in &reports {
            say(&describe(report))?;
        }
    } else {
        say(&side_by_side(&reports).to_text(terminal_width()))?;
    }
    let bad = match reports.as_slice() {
        [(_, report)] if args.target.is_some() => bad(report, args),
        _ => None,
    };
    for (name, report) in &reports {
        advise(name, report, bad.is_some(), diagnostics);
    }
    bad.map_or(Ok(Exit::Done), Err)
}

/// The bad answer of a probe: no handshake, or a certificate that is not trusted.
fn bad(report: &Report, args: &ProbeArgs) -> Option<Problem> {
    let Versions { tls12, tls13, quic } = &report.versions;
    let host = &report.host;
    let works = [tls12, tls13, quic].into_iter().any(Verdict::is_supported);
    if let Some(finding) = report.finding.as_ref().filter(|_| !works) {
        let problem = Problem::new(Fault::Peer, format!("{host}: {}", finding.text));
        return Some(problem.with_remedy(finding.remedy.clone()));
    }
    let untrusted = report.certificates.as_ref().is_some_and(|found| found.problem.is_some());
    if untrusted && !args.insecure {
        let text = format!("the certificate of {host} is not trusted");
        return Some(Problem::new(Fault::Peer, text));
    }
    (!works).then(|| Problem::new(Fault::Peer, format!("{host} completed no handshake")))
}

/// What the server's owner may do, if a report knows something. The verdict is left out where the error
/// that follows has it.
fn advise(name: &str, report: &Report, is_bad: bool, diagnostics: &Diagnostics) {
    let of = if name.is_empty() { String::new() } else { format!("{name}: ") };
    let works = [&report.versions.tls12, &report.versions.tls13, &report.versions.quic];
    let works = works.into_iter().any(Verdict::is_supported);
    let said = report.finding.as_ref().filter(|_| is_bad && !works);
    for hint in &report.hints {
        if !said.is_some_and(|finding| hint.starts_with(&finding.text)) {
            diagnostics.advice(&format!("{of}{hint}"));
        }
    }
}

/// What a probe found; `None` if it was interrupted.
fn measure(
    target: &str,
    args: &ProbeArgs,
    diagnostics: &Diagnostics,
) -> Result<Option<Report>, Problem> {
    conn::qlog::write_to(args.qlog.as_deref())?;
    let target = Target {
        server_name: args.name.clone(),
        trust: trust(args)?,
        family: match (args.ipv4, args.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        },
        ..args.reach.target(target, diagnostics)?
    };
    let options = Options {
        repeats: args.repeat,
        timeout: args.timeout.duration(),
        deadline: DEADLINE,
        client: args.client,
        groups: args.group.clone(),
        ..Options::default()
    };
    let runtime = crate::runtime::runtime()?;
    let mut progress = diagnostics.progress();
    let looked = runtime.block_on(async {
        let mut signals = Asked::listen()?;
        let probing = look(&target, &options, |at| {
            let step = at.next.map_or("done", Mode::title);
            // Modes take about as long as each other: a second each is a fair guess.
            let (done, of) = (at.done as u64, at.of as u64);
            progress.show(step, Duration::from_secs(done), Duration::from_secs(of));
        });
        Ok::<_, Problem>(tokio::select! {
            () = signals.next() => None,
            looked = probing => Some(looked.map_err(failed)?),
        })
    });
    progress.finish();
    // A name server that does not answer must not hold up the end.
    runtime.shutdown_background();
    looked
}

/// Whatever kept the server from being reached: that it was not is what the probe found.
fn failed(error: ProbeError) -> Problem {
    match &error {
        ProbeError::Options(_) | ProbeError::Thread { .. } => error.into(),
        _ => Problem::from(error).blaming(Fault::Peer),
    }
}

/// `HOST`, `HOST:PORT`, `ADDRESS`, `[IPV6]:PORT`; `default` is the port if none is given.
pub fn parse_target(text: &str, default: u16) -> Result<Target, Problem> {
    let wrong = |problem: &str| {
        Problem::new(Fault::Caller, format!("`{text}` names no server: {problem}"))
            .with_remedy("write example.org, example.org:8443, 192.0.2.1 or [2001:db8::1]:443")
    };
    if text.contains('/') {
        return Err(wrong("it is a URL or a path"));
    }
    let port_of = |port: &str| match port.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(wrong(&format!("`{port}` is not a port"))),
    };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, tail) =
            rest.split_once(']').ok_or_else(|| wrong("the bracket is not closed"))?;
        match tail.strip_prefix(':') {
            Some(port) => (host, port_of(port)?),
            None if tail.is_empty() => (host, default),
            None => return Err(wrong("something else than a port follows the bracket")),
        }
    } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
        (text, default)
    } else {
        match text.split_once(':') {
            Some((host, port)) => (host, port_of(port)?),
            None => (text, default),
        }
    };
    if host.is_empty() || host.chars().any(char::is_whitespace) {
        return Err(wrong("it has no host"));
    }
    Ok(Target { port, ..Target::new(host) })
}

fn trust(args: &ProbeArgs) -> Result<tls::Trust, Problem> {
    if args.insecure {
        return Ok(tls::Trust::Insecure);
    }
    let Some(path) = &args.ca else { return Ok(tls::Trust::System) };
    Ok(tls::Trust::Roots(roots_in(path)?))
}

fn read_report(path: &Path) -> Result<(String, Report), Problem> {
    let text = study::Options::none().text_of(path, "probe result")?;
    let report = serde_json::from_str(&text)
        .blame(Fault::Caller)
        .while_doing(|| format!("{} is not a probe result", path.display()))
        .map_err(|problem| problem.with_remedy("make one by `wiretax probe HOST --json`"))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok((name.unwrap_or_default(), report))
}

fn describe(report: &Report) -> String {
    let head = format!("{} at {}, as {}", report.host, report.address, report.server_name);
    let mut text = format!("{}\n", one_line(&head));
    let mut line =
        |name: &str, value: String| text += &format!("  {name:14} {}\n", one_line(&value));
    if let Some(dns) = &report.dns {
        line("DNS", {
            let addresses = dns.addresses.len();
            let noun = if addresses == 1 { "address" } else { "addresses" };
            format!("{:.1} ms, {addresses} {noun}", dns.time_ms)
        });
    }
    let ms = |value: Option<f64>| value.map_or("not seen".to_owned(), |ms| format!("{ms:.1} ms"));
    let path = &report.path;
    let before = report.before_tls.clone().unwrap_or_default();
    if let Some(proxy) = &before.proxy {
        let port = before.port.map_or(String::new(), |port| format!(", to port {port}"));
        line("proxy", format!("{proxy}{port}; the round trip to the server is not known"));
    }
    let to = if before.proxy.is_some() { " to the proxy" } else { "" };
    line("TCP connect", format!("{}{to}; least RTT {}", ms(path.connect_ms), ms(path.min_rtt_ms)));
    if let Some(before) = before_tls(report) {
        line("before TLS", before);
    }
    let versions = &report.versions;
    line("TLS 1.2", verdict(&versions.tls12));
    line("TLS 1.3", verdict(&versions.tls13) + retried(report));
    line("QUIC", verdict(&versions.quic));
    if let Some(offer) = &report.offer {
        let retry = if offer.hello_retry_request { ", after a HelloRetryRequest" } else { "" };
        let kind = report.finding.as_ref().map(|finding| finding.kind);
        let by = match kind {
            Some(Kind::Unusual | Kind::LongCertificates) => "; the client offers everything",
            Some(Kind::OldSuites) => "; the client offers older suites",
            _ => "",
        };
        line(
            "negotiates",
            format!(
                "{}, {}, group {}, ALPN {}{retry}{by}",
                offer.version,
                offer.cipher_suite,
                offer.group.as_deref().unwrap_or("none"),
                offer.alpn.as_deref().unwrap_or("none")
            ),
        );
    }
    if let Some(certificates) = &report.certificates {
        let trusted = match (&certificates.problem, certificates.trusted) {
            (Some(problem), _) => format!("NOT trusted: {problem}"),
            (None, Some(true)) => "trusted".to_owned(),
            (None, _) => "not checked".to_owned(),
        };
        line(
            "certificates",
            format!(
                "{} sent, {} bytes, {}; {trusted}",
                certificates.count,
                certificates.total_bytes,
                certificates.key_type.as_deref().unwrap_or("key unknown")
            ),
        );
    }
    let table = table(report).to_text(terminal_width());
    format!("{text}\n{table}\n{} made\n", counted(report.connections, "connection"))
}

/// Time of the steps between TCP and TLS: the median of the first mode that has one.
fn before_tls(report: &Report) -> Option<String> {
    let time = report.modes.iter().find_map(|mode| mode.before_tls)?.median_ms;
    let before = report.before_tls.as_ref()?;
    let proxy = before.proxy.as_ref().map(|_| "the proxy's answer".to_owned());
    let starttls = before.starttls.as_ref().map(|name| format!("STARTTLS ({name})"));
    let steps: Vec<String> = proxy.into_iter().chain(starttls).collect();
    Some(format!("{time:.1} ms for {}, within the TLS times below", steps.join(" and ")))
}

/// Returns the note on a HelloRetryRequest in the measured handshakes of TLS 1.3.
fn retried(report: &Report) -> &'static str {
    let mode = report.mode(Mode::Tls13);
    let retried = mode.is_some_and(|mode| mode.verdict.is_supported() && mode.hello_retry_request);
    if retried { ", with HelloRetryRequest" } else { "" }
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Supported => "yes".to_owned(),
        Verdict::Refused { reason } => format!("no: {reason}"),
        Verdict::TimedOut { after_ms } => format!("no answer within {after_ms} ms"),
        Verdict::NotTested { reason } => format!("not tested: {reason}"),
    }
}

/// The verdict where there is little room. The whole reason stands above the table, or in the JSON.
fn short(of: &Verdict) -> String {
    const ROOM: usize = 60;
    let whole = verdict(of);
    match whole.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or_default()),
        None => whole,
    }
}

fn table(report: &Report) -> Table {
    let columns = vec![
        Column::new("Mode"),
        Column::new("may send").unit("ms"),
        Column::new("round trips"),
        Column::new("first byte").unit("ms"),
        Column::new("round trips"),
        Column::new("verdict"),
    ];
    let before = report.before_tls.clone().unwrap_or_default();
    let round_trips = match report.path.connect_ms {
        Some(ms) if ms < 1.0 => "no round trips: the path's is below 1 ms",
        _ => "round trips of the TCP connect time",
    };
    let caption = match (before.proxy, before.starttls) {
        (Some(_), _) => "Medians from the start of each connection, through the proxy".to_owned(),
        (None, Some(_)) => {
            format!("Medians from the start of each connection; {round_trips}, without STARTTLS")
        }
        (None, None) => format!("Medians from the start of each connection; {round_trips}"),
    };
    let mut table = Table::new(caption, columns);
    for mode in &report.modes {
        let number =
            |value: Option<f64>, digits| value.map_or(Cell::Empty, |v| Cell::number(v, digits));
        table.push(Row::new(vec![
            Cell::text(mode.mode.title()),
            number(mode.ready.map(|summary| summary.median_ms), 1),
            number(mode.ready_round_trips, 1),
            number(mode.first_byte.map(|summary| summary.median_ms), 1),
            number(mode.first_byte_round_trips, 1),
            Cell::text(short(&mode.verdict)),
        ]));
    }
    table
}

/// The same server (or several) as seen from several places.
fn side_by_side(reports: &[(String, Report)]) -> Table {
    let mut columns = vec![Column::new("Mode")];
    columns.extend(
        reports
            .iter()
            .map(|(name, report)| Column::new(format!("{name}: {}", report.host)).unit("ms")),
    );
    let mut table = Table::new("Time until the client may send, medians", columns);
    for mode in Mode::ALL {
        let mut cells = vec![Cell::text(mode.title())];
        cells.extend(reports.iter().map(|(_, report)| cell_of(report.mode(mode))));
        table.push(Row::new(cells));
    }
    table
}

fn cell_of(mode: Option<&ModeReport>) -> Cell {
    match mode {
        None => Cell::Empty,
        Some(mode) => match mode.ready {
            Some(summary) => Cell::estimate(summary.median_ms, summary.min_ms, summary.max_ms, 1),
            None => Cell::text(short(&mode.verdict)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As that of a CONNECTION_CLOSE of QUIC (RFC 9000 §19.19).
    #[test]
    fn a_reason_fakes_no_line() {
        let refused = |reason: &str| serde_json::json!({ "refused": { "reason": reason } });
        let report = |reason: &str| -> Report {
            let path = conn::probe::PathReport::default();
            serde_json::from_value(serde_json::json!({
                "schema": 1, "host": reason, "address": "192.0.2.1:443", "server_name": reason,
                "at_unix_ms": 0, "dns": null, "path": path,
                "versions": {
                    "tls12": refused(reason), "tls13": refused(reason), "quic": refused(reason),
                },
                "modes": [], "offer": null, "certificates": null, "connections": 1, "hints": [],
            }))
            .unwrap()
        };
        let lines = |reason: &str| describe(&report(reason)).lines().count();
        assert_eq!(lines("no\n  QUIC           yes\r\n"), lines("no"));
    }

    #[test]
    fn targets_are_read_as_people_write_them() {
        for (text, host, port) in [
            ("example.org", "example.org", 443),
            ("example.org:8443", "example.org", 8443),
            ("192.0.2.1:1", "192.0.2.1", 1),
            ("2001:db8::1", "2001:db8::1", 443),
            ("[2001:db8::1]:8443", "2001:db8::1", 8443),
            ("[2001:db8::1]", "2001:db8::1", 443),
        ] {
            let target = parse_target(text, 443).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
        }
        for wrong in ["", ":443", "a b", "x:0", "x:99999", "[::1", "[::1]x", "https://x/", "x/y"] {
            assert!(parse_target(wrong, 443).is_err(), "{wrong}");
        }
    }
}
