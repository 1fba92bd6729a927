//! A chart as text: sentences about windows, and a ladder of frames.

use std::time::Duration;

use crate::chart::{Chart, Connection};
use crate::event::{Event, Kind};
use crate::fold::fold;
use crate::protocol::Protocol;
use crate::windows::{Least, Updates, Windows};

/// Of a ladder that is cut, one line in so many is of its end.
const END: usize = 4;
/// Connections without secrets that are named.
const NAMED: usize = 3;

/// The chart of all that was read: what can be read of windows, and a ladder of the connection with most
/// data, of at most so many lines in all, runs of like frames folded into one. `None`: every connection,
/// every frame.
#[must_use]
pub fn chart(chart: &Chart, most: Option<usize>) -> String {
    let mut lines = Vec::new();
    let by_data = chart.by_data();
    let shown = match most {
        Some(_) => by_data.get(..1).unwrap_or(&[]),
        None => by_data.as_slice(),
    };
    let end = ending(chart, by_data.len().saturating_sub(shown.len()));
    for (number, one) in shown {
        let mut head = vec![title(*number, one)];
        head.extend(sentences(one));
        head.push(String::new());
        // Two lines are the ladder's head and its last.
        let taken = head.len().saturating_add(end.len()).saturating_add(2);
        let left = most.map(|most| most.saturating_sub(taken));
        lines.append(&mut head);
        lines.extend(ladder(one, left));
        if most.is_none() {
            lines.push(String::new());
        }
    }
    lines.extend(end);
    lines.join("\n") + "\n"
}

/// What is said of the whole capture.
fn ending(chart: &Chart, further: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if further > 0 {
        let s = plural(further as u64);
        lines
            .push(format!("{further} further connection{s}: --connection N shows one, --all all."));
    }
    for unread in chart.unread.iter().take(NAMED) {
        let name = in_brackets(unread.server_name.as_deref());
        let (client, server) = (unread.client, unread.server);
        lines.push(format!("Not read: {client} to {server}{name}: {}.", unread.why));
    }
    let more = (chart.unread.len().saturating_sub(NAMED) as u64).saturating_add(chart.more_unread);
    for (count, what) in [
        (more, "further connections could not be read"),
        (chart.others, "connections speak something else"),
        (chart.left_out, "connections are beyond the limit and left out"),
    ] {
        if count > 0 {
            lines.push(format!("{} {what}.", thousands(count)));
        }
    }
    lines
}

/// Which connection it is.
#[must_use]
pub fn title(number: usize, connection: &Connection) -> String {
    let name = in_brackets(connection.server_name.as_deref());
    let tls = connection.tls.as_deref().map_or("in clear".to_owned(), |tls| format!("in {tls}"));
    let Connection { client, server, protocol, .. } = connection;
    format!("Connection {number}: {client} to {server}{name}, {protocol} {tls}")
}

/// A name that a client asked for, which may be any text.
fn in_brackets(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" ({})", fault::one_line(name)))
}

/// What can be read of a connection's windows, a line each.
#[must_use]
pub fn sentences(connection: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    let both = [
        ("client", "server", &connection.server_sends),
        ("server", "client", &connection.client_sends),
    ];
    for (receiver, sender, windows) in both {
        lines.extend(announces(connection.protocol, receiver, windows));
        lines.extend(sends(connection.protocol, sender, windows));
    }
    for gap in &connection.gaps {
        let who = if gap.from_client { "client" } else { "server" };
        lines.push(format!("  The {who}'s frames are not read to the end: {}.", gap.why));
    }
    if connection.left_out > 0 {
        let count = thousands(connection.left_out);
        lines.push(format!(
            "  {count} frames exceed the limit: no line shows them, all windows include them."
        ));
    }
    lines
}

/// How a receiver gives windows.
fn announces(protocol: Protocol, receiver: &str, windows: &Windows) -> Vec<String> {
    let start = size(windows.start_bytes.into());
    let mut text = match windows.announced_bytes {
        Some(bytes) => {
            format!("  {receiver} announces {} per stream (start {start})", size(bytes.into()))
        }
        None => format!("  {receiver} announces no window: streams keep {start}"),
    };
    if let Some(bytes) = windows.connection_bytes {
        text += &format!(", {} for the {}", size(bytes), protocol.whole());
    }
    let mut lines = vec![text];
    let whole = format!("the {}", protocol.whole());
    let updates = [("a stream", &windows.stream_updates), (&whole, &windows.connection_updates)];
    let frame = windows.largest_frame_bytes;
    lines.extend(updates.into_iter().filter_map(|(what, updates)| after(what, updates, frame)));
    lines
}

/// After how much a WINDOW_UPDATE comes; `frame` is the largest one's length.
fn after(what: &str, updates: &Updates, frame: u64) -> Option<String> {
    let (median, share) = (updates.median_bytes?, updates.median_share?);
    let (count, s) = (thousands(updates.count), plural(updates.count));
    // Whatever the threshold is, it is less than one frame.
    let most = if u64::from(median) == frame { "each frame, " } else { "" };
    let threshold = if most.is_empty() { "" } else { "threshold at most " };
    let median = size(median.into());
    Some(format!(
        "    WINDOW_UPDATE after {most}{median} of {what} ({threshold}{share:.3} of its window, {count} time{s})"
    ))
}

/// What a sender sent, and how near a window was to being shut.
fn sends(protocol: Protocol, sender: &str, windows: &Windows) -> Vec<String> {
    if windows.data_frames == 0 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "  {sender} sends {} in {} DATA frame{} of at most {}, {} before SETTINGS came",
        size(i64::try_from(windows.data_bytes).unwrap_or(i64::MAX)),
        thousands(windows.data_frames),
        plural(windows.data_frames),
        size(i64::try_from(windows.largest_frame_bytes).unwrap_or(i64::MAX)),
        size(i64::try_from(windows.before_settings_bytes).unwrap_or(i64::MAX)),
    )];
    let least = |what: String, least: Option<Least>| {
        least.map(|least| format!("{} of {what}", size(least.bytes)))
    };
    let of_stream = windows.least_stream.map(|least| format!("stream {}", least.stream));
    let left: Vec<String> = [
        least(of_stream.unwrap_or_default(), windows.least_stream),
        least(format!("the {}", protocol.whole()), windows.least_connection),
    ]
    .into_iter()
    .flatten()
    .collect();
    let near = match (windows.shut, windows.was_nearly_shut()) {
        (0, false) => "never within one frame of a shut window".to_owned(),
        (0, true) => "within one frame of a shut window".to_owned(),
        (times, _) => format!("a window was shut {} time{}", thousands(times), plural(times)),
    };
    lines.push(format!("    smallest window left: {}", left.join(", ")));
    lines.push(format!("    {near}"));
    if windows.overruns > 0 {
        let (count, s) = (thousands(windows.overruns), plural(windows.overruns));
        lines.push(format!(
            "    {count} DATA frame{s} beyond a window: it was overrun, or the capture lacks frames"
        ));
    }
    if windows.unknown > 0 {
        let count = thousands(windows.unknown);
        lines.push(format!("    {count} DATA frames on more streams than are followed at once"));
    }
    lines
}

/// The frames, a line each. With a limit: runs of like frames are one line, and what is too much between
/// the beginning and the end is left out, and said.
#[must_use]
pub fn ladder(connection: &Connection, most: Option<usize>) -> Vec<String> {
    let folded = fold(&connection.events);
    let events = if most.is_some() { &folded } else { &connection.events };
    let mut lines = vec![format!("{:>12}  client   server", "ms")];
    let most = most.unwrap_or(usize::MAX).max(1);
    let line = |event: &Event| ladder_line(connection, event);
    if events.len() <= most {
        lines.extend(events.iter().map(line));
        return lines;
    }
    let last = most / END;
    let first = most.saturating_sub(last);
    let from = events.len().saturating_sub(last);
    lines.extend(events.iter().take(first).map(line));
    let left_out = thousands(from.saturating_sub(first) as u64);
    lines.push(format!("{:>12}  {left_out} lines are left out: --all shows every frame", "..."));
    lines.extend(events.iter().skip(from).map(line));
    lines
}

fn ladder_line(connection: &Connection, event: &Event) -> String {
    let since = event.at.saturating_since(connection.begun);
    let line = "\u{2500}".repeat(7);
    let arrow = if event.from_client { format!("{line}>") } else { format!("<{line}") };
    format!("{:>12}  {arrow}  {}", millis(since), describe(connection.protocol, event))
}

/// Milliseconds, to the hundredth.
#[must_use]
pub fn millis(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// A frame, or a run of them, in words: type, stream, length, and the windows after it.
#[must_use]
pub fn describe(protocol: Protocol, event: &Event) -> String {
    let mut text = event.kind.name().to_owned();
    if event.stream > 0 {
        text += &format!(" {}", event.stream);
    }
    match &event.kind {
        Kind::Data { .. } if event.frames > 1 => {
            let (frames, length) = (thousands(event.frames), thousands(event.length));
            text += &format!(", {frames} frames, {length} bytes each");
            if event.bytes != event.length.saturating_mul(event.frames) {
                text += &format!(", {} in all", thousands(event.bytes));
            }
        }
        Kind::Data { .. }
        | Kind::SynStream { .. }
        | Kind::SynReply { .. }
        | Kind::Headers { .. } => text += &format!(", {} bytes", thousands(event.length)),
        Kind::Settings { ack: true, .. } => text += " ack",
        Kind::Settings { entries, .. } => {
            let entries: Vec<String> = entries.iter().map(|one| setting(protocol, *one)).collect();
            text += &format!(" {}", entries.join(", "));
        }
        Kind::WindowUpdate { increment } => {
            let of =
                if event.stream == 0 { format!(" {}", protocol.whole()) } else { String::new() };
            text += &format!("{of} +{}", thousands((*increment).into()));
        }
        Kind::RstStream { code } | Kind::Goaway { code } => text += &format!(", code {code}"),
        Kind::Other { number } => text += &format!(" of type {number}"),
        _ => {}
    }
    if event.kind.is_last() {
        text += ", the last";
    }
    let left: Vec<String> =
        [("stream", event.stream_window), (protocol.whole(), event.connection_window)]
            .into_iter()
            .filter_map(|(what, left)| Some(format!("{what} {}", size(left?))))
            .collect();
    if !left.is_empty() && !matches!(event.kind, Kind::Settings { .. }) {
        text += &format!("  [left: {}]", left.join(", "));
    }
    text
}

fn setting(protocol: Protocol, (id, value): (u32, u32)) -> String {
    let name = protocol.setting_name(id).map_or_else(|| format!("setting {id}"), str::to_owned);
    let value = match name.ends_with("WINDOW_SIZE") {
        true => size(value.into()),
        false => thousands(value.into()),
    };
    format!("{name} {value}")
}

const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A number of bytes: exact where it is a whole number of KiB or MiB or small, else to a tenth of a MiB.
#[must_use]
pub fn size(bytes: i64) -> String {
    const KIB: i64 = 1 << 10;
    const MIB: i64 = 1 << 20;
    match bytes {
        0 => "0 bytes".to_owned(),
        bytes if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
        bytes if bytes % KIB == 0 && bytes.abs() < MIB => format!("{} KiB", bytes / KIB),
        bytes if bytes.abs() >= MIB => format!("{:.1} MiB", bytes as f64 / MIB as f64),
        bytes => {
            let sign = if bytes < 0 { "-" } else { "" };
            format!("{sign}{} bytes", thousands(bytes.unsigned_abs()))
        }
    }
}

/// A whole number with a comma at each thousand.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len().saturating_add(digits.len() / 3));
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_steers_nothing_and_fakes_no_line() {
        let (client, server) = (([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 443).into());
        let server_name = Some("x\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\nConnection 1: ".to_owned());
        let unread = crate::chart::Unread { client, server, server_name, why: "no".to_owned() };
        let text = chart(&Chart { unread: vec![unread], ..Chart::default() }, None);
        assert!(!text.contains(fault::steers), "{text:?}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn sizes_are_exact_where_they_are_whole_or_small() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (65_535, "65,535 bytes"),
            (65_536, "64 KiB"),
            (10 << 20, "10 MiB"),
            ((5 << 20) + 1, "5.0 MiB"),
            (-(44 << 10), "-44 KiB"),
            (-1, "-1 bytes"),
            (1_000_000, "1,000,000 bytes"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((thousands(999), thousands(1_234_567)), ("999".into(), "1,234,567".into()));
    }
}
