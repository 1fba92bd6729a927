//! `wiretax sequence`: sequence charts of flow control, from captures.

mod args;

use std::collections::BTreeMap;

use capture::{Event, Merge};
use fault::{Fault, OrProblem, Problem};
use sequence::{Chart, Limits, Reader, text};
use tracker::{LinkType, StreamLimits};
use units::counted;

pub use self::args::SequenceArgs;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::ends_at_once;
use crate::output::{say, say_json};

/// Lines of a chart where it is not asked for all: a screen.
const SCREEN: usize = 48;

/// Prints a chart of captures.
pub fn sequence(args: &SequenceArgs, diagnostics: &Diagnostics) -> Outcome {
    ends_at_once(diagnostics)?;
    let limits = Limits::default();
    let streams = StreamLimits { seed: seed_of_run(), ..limits.streams };
    let mut reader = Reader::new(Limits { streams, ..limits });
    if let Some(file) = &args.key_log
        && reader.add_keys(&study::Options::none().key_log_of(file)?) == 0
    {
        let what = format!("{} has no TLS secrets", file.display());
        let remedy = "give what programs write to SSLKEYLOGFILE";
        return Err(Problem::new(Fault::Caller, what).with_remedy(remedy));
    }
    let mut source = Merge::open(&args.files)?;
    let mut unread_links = BTreeMap::new();
    let read = read(&mut source, &mut reader, &mut unread_links);
    for cut in source.cuts() {
        diagnostics.warning(format!("{cut}; what is whole was read"));
    }
    for (link, frames) in &unread_links {
        let name = capture::link_type_name(*link).unwrap_or("unknown");
        diagnostics.warning(format!(
            "{} of link type {link} ({name}) skipped: unsupported link type",
            counted(*frames, "frame")
        ));
    }
    let mut chart = reader.finish();
    if chart.connections.is_empty() {
        read?;
        return Err(nothing(&chart));
    }
    if let Some(number) = args.connection {
        let count = chart.connections.len();
        let Some(at) = number.checked_sub(1).filter(|at| *at < count) else {
            let what = format!("there is no connection {number}: the numbers are 1 to {count}");
            let problem = Problem::new(Fault::Caller, what);
            return Err(problem.with_remedy("leave --connection out to see the largest"));
        };
        let chosen = chart.connections.swap_remove(at);
        chart = Chart { connections: vec![chosen], ..Chart::default() };
    }
    if args.json.json {
        if !args.all {
            for connection in &mut chart.connections {
                connection.events = sequence::fold(&connection.events);
            }
        }
        say_json(&(serde_json::to_string(&chart).blame(Fault::Results)? + "\n"))?;
    } else {
        say(&text::chart(&chart, (!args.all).then_some(SCREEN)))?;
    }
    // What was read before a failure is shown too.
    read?;
    Ok(Exit::Done)
}

/// Reads captures to their end.
fn read(
    source: &mut Merge,
    reader: &mut Reader,
    unread_links: &mut BTreeMap<u32, u64>,
) -> Result<(), Problem> {
    while let Some(event) = source.next()? {
        match event {
            Event::Frame(frame) => match LinkType::from_number(frame.link) {
                Some(link) => reader.handle_packet(frame.at, link, frame.bytes),
                None => *unread_links.entry(frame.link).or_default() += 1,
            },
            Event::KeyLog(lines) => {
                reader.add_keys(lines);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why there is no chart.
fn nothing(chart: &Chart) -> Problem {
    let none = "no connection of SPDY or HTTP/2 could be read";
    let (what, remedy) = match chart.unread.first() {
        Some(unread) => (
            format!("{none}: of {} to {}, {}", unread.client, unread.server, unread.why),
            "give the secrets by --key-log, or in a pcapng (`editcap --inject-secrets`)",
        ),
        None if chart.others > 0 => (
            format!(
                "{none}: {} with something else, or nothing",
                counted(chart.others, "connection")
            ),
            "`wiretax observe` has the handshakes of all connections",
        ),
        None if chart.stray_segments > 0 => (
            format!("{none}: no connection begins in the capture"),
            "begin the capture before the connections",
        ),
        None if chart.datagrams > 0 => (
            format!("{none}: there are datagrams of UDP alone"),
            "HTTP/3 is not read: have the load made by h2",
        ),
        None => (none.to_owned(), "capture where the connections pass, from their beginning on"),
    };
    Problem::new(Fault::Caller, what).with_remedy(remedy)
}

/// Not to be known beforehand: it keys a hash table.
fn seed_of_run() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
