//! `wiretax load`: the load generator.

mod args;
mod text;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fault::{Fault, OrProblem, Problem, one_line};
use load::{Close, Control, Kind, Options, Pace, Progress, Report};
use units::counted;

pub use self::args::LoadArgs;
use self::args::{CloseArg, HttpArg};
use crate::certificates::roots_in;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{say, say_json};
use crate::reach::client_identity;

/// Connections of an open loop that may be under way at once, if not said.
const OPEN_CONNECTIONS: usize = 1000;
/// Requests at once on a connection of HTTP/2, if not said.
const STREAMS: u32 = 10;
/// Above this share of the threads' time the generator is the limit.
const BUSY: f64 = 0.9;

/// Loads a server and prints what came of it.
pub fn load(args: &LoadArgs, diagnostics: &Diagnostics) -> Outcome {
    let options = options(args, diagnostics)?;
    options.check()?;
    if args.tls.insecure {
        diagnostics
            .warning("any certificate is accepted: this load says nothing about who answers it");
    }
    let interrupt = Interrupt::listen()?;
    let control = Control::default();
    let mut progress = diagnostics.progress();
    let report = ::load::run_with(&options, &control, |at| {
        show(&mut progress, &at, args.work.http);
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
        say(&text::describe(&report))?;
    }
    advise(&report, diagnostics);
    Ok(if report.interrupted {
        Exit::Interrupted
    } else if nothing_succeeded(&report) {
        Exit::Found
    } else {
        Exit::Done
    })
}

/// Whether nothing of what the load is made of succeeded.
fn nothing_succeeded(report: &Report) -> bool {
    match report.streams {
        Some(_) => report.requests == 0,
        None => report.completed == 0,
    }
}

fn show(progress: &mut crate::diagnostics::Progress, at: &Progress, http: HttpArg) {
    let failures = match at.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let unit = if http == HttpArg::Two { "request" } else { "connection" };
    let text = format!("{}{failures}", counted(at.completed, unit));
    let left = at.left.unwrap_or(Duration::from_secs(1));
    progress.show(&text, at.elapsed, at.elapsed.saturating_add(left));
}

fn options(args: &LoadArgs, diagnostics: &Diagnostics) -> Result<Options, Problem> {
    let target = &args.target;
    let name = args.tls.name.as_deref().unwrap_or(&target.host);
    let addresses = addresses(args)?;
    let first = addresses.first().copied().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 443)));
    let mut options = Options { addresses, ..Options::new(first, name) };
    request(args, &mut options)?;
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
    if let Some(file) = &args.tls.cert {
        let key = args.tls.key.as_ref().unwrap_or(file);
        options.client_certificate = Some(client_identity(file, key, diagnostics)?);
    }
    options.sources.clone_from(&args.route.source);
    options.allow_remote = args.route.allow_remote;
    Ok(options)
}

/// Sets the requests of each connection.
fn request(args: &LoadArgs, options: &mut Options) -> Result<(), Problem> {
    let (target, work) = (&args.target, &args.work);
    let wrong = |text: &str, remedy: &str| {
        Err(Problem::new(Fault::Caller, text.to_owned()).with_remedy(remedy.to_owned()))
    };
    let http2 = work.http == HttpArg::Two;
    if target.plaintext && !http2 {
        return wrong(
            "http is not https: without TLS only HTTP/2 is spoken",
            "write https://host:port/path, or add --http h2",
        );
    }
    if work.streams.is_some() && !http2 {
        return wrong("--streams is of HTTP/2", "add --http h2");
    }
    options.plaintext = target.plaintext;
    let (host, path) = (target.authority(), &target.path);
    if http2 {
        let streams = work.streams.unwrap_or(STREAMS) as usize;
        options.get_http2(&host, path, streams, work.requests_per_connection);
    } else {
        options.get(&host, path, work.requests_per_connection.unwrap_or(1));
    }
    if work.handshake_only {
        options.request = None;
    }
    Ok(())
}

/// Where to connect: what was said, or the addresses of the name.
fn addresses(args: &LoadArgs) -> Result<Vec<SocketAddr>, Problem> {
    if let Some((address, port)) = args.route.connect_to {
        return Ok(vec![SocketAddr::new(address, port.unwrap_or(args.target.port))]);
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

/// What makes the result worth less, and what can be done about it.
fn advise(report: &Report, diagnostics: &Diagnostics) {
    if report.interrupted {
        let cut_off = counted(report.unfinished, "connection");
        diagnostics.note(format!("interrupted; {cut_off} cut off"));
    }
    let unit = if report.streams.is_some() { "request" } else { "connection" };
    if let Some(alike) = &report.stopped_early {
        diagnostics.warning(format!(
            "stopped early: every {unit} failed alike: {} ({})",
            alike.kind.title(),
            one_line(&alike.detail)
        ));
    } else if nothing_succeeded(report) && report.started > 0 && !report.interrupted {
        diagnostics.warning(format!("every {unit} failed"));
    }
    if report.not_started > 0 {
        let started = match report.streams {
            Some(_) => report.requests + report.requests_failed,
            None => report.started,
        };
        let due = started + report.not_started;
        let share = report.not_started as f64 / due as f64 * 100.0;
        diagnostics.warning(format!(
            "{} of {due} starts that were due could not be made ({share:.1} %): the server did not keep \
             up with the rate; they count as longer than they waited",
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
        let cut = counted(report.short_connections, "connection");
        let carried = report.requests + report.requests_failed;
        let each = carried as f64 / report.completed.max(1) as f64;
        if report.streams.is_some() {
            diagnostics.note(format!(
                "the server closed {cut}; a connection carried {each:.1} requests on average"
            ));
        } else if report.short_connections == report.completed {
            diagnostics.warning(format!(
                "the server does not keep connections open: it closed each after {each:.1} requests"
            ));
        } else {
            diagnostics.note(format!(
                "the server closed {cut} before all their requests; a connection carried {each:.1} on \
                 average"
            ));
        }
    }
    if handshakes.asked_for_certificate > 0 {
        let count = counted(handshakes.asked_for_certificate, "handshake");
        diagnostics.note(format!("the server asked for a client certificate in {count}"));
    }
    let hints = [
        (Kind::NoPort, "connect from more addresses (--source), or close by --close reset"),
        (Kind::NoDescriptor, "raise `ulimit -n`, or use fewer connections"),
        (Kind::Certificate, "name the server's root by --ca, or its name by --name"),
        (Kind::Refused, "check the port, and that the server runs"),
        (Kind::ClientCertificate, "show a certificate that the server accepts: --cert and --key"),
        (Kind::Http2, "check that the server speaks HTTP/2, or leave --http h2 out"),
    ];
    let plain = |failure: &load::FailureCount| failure.detail == load::NOT_TLS;
    if report.failures.iter().any(plain) {
        diagnostics.advice("check the port: what answers there does not speak TLS");
    }
    for (kind, hint) in hints {
        if report.failures.iter().any(|failure| failure.kind == kind) {
            diagnostics.advice(hint);
        }
    }
}
