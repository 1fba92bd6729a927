//! What the path did, at the end of `wiretax lab`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path as FilePath;

use fault::{Fault, OrProblem, Problem, WhileDoing};
use linkmodel::{DropCause, Path};
use outfile::OutFile;
use pump::{DirectionStats, Stats};
use serde_json::json;
use units::counted;

use super::Ended;
use super::hold::Held;
use crate::diagnostics::Diagnostics;

/// Prints the counters of both directions, and how late frames left.
pub fn say(stats: &Stats, diagnostics: &Diagnostics) {
    diagnostics.notes(&table(stats));
    let lost: u64 = [&stats.forward, &stats.backward].map(lost_by_the_emulator).iter().sum();
    if lost > 0 {
        diagnostics.warning_with_remedy(
            format!("the emulator lost {}, not the path", counted(lost, "frame")),
            Some("use a lower rate, or stop other programs"),
        );
    }
}

/// Frames that the pump lost for want of room, or let pass with a wrong checksum.
fn lost_by_the_emulator(way: &DirectionStats) -> u64 {
    let pump = &way.pump;
    pump.ring_full + pump.too_long + pump.no_buffer + pump.unfinished_checksum
}

fn table(stats: &Stats) -> String {
    let mut text = format!(
        "{:<18}{:>12}{:>12}{:>10}{:>26}\n",
        "path", "frames", "bytes", "dropped", "left late (median, p99)"
    );
    let ways = [("client to server", &stats.forward), ("server to client", &stats.backward)];
    for (name, way) in ways {
        let link = &way.link;
        let late = way.release_error;
        let late = match late.count {
            0 => String::new(),
            _ => format!("{}, {}", micros(late.p50_ns), micros(late.p99_ns)),
        };
        // Writing to a string does not fail.
        let row = format!(
            "{name:<18}{:>12}{:>12}{:>10}{late:>26}",
            link.delivered.frames,
            bytes(link.delivered.bytes),
            link.dropped_in_all().frames,
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    for (name, way) in ways {
        let causes = DropCause::ALL.iter().filter_map(|cause| {
            let frames = way.link.dropped.of(*cause).frames;
            (frames > 0).then(|| format!("{frames} {}", said(*cause)))
        });
        let causes = causes.collect::<Vec<_>>().join(", ");
        if !causes.is_empty() {
            let _ = writeln!(text, "dropped, {name}: {causes}");
        }
    }
    text
}

fn said(cause: DropCause) -> &'static str {
    match cause {
        DropCause::Middlebox => "by the middlebox",
        DropCause::Loss => "by the path's loss",
        DropCause::QueueFull => "by a full queue",
        DropCause::Codel => "by CoDel",
        DropCause::Outage => "in an outage",
        DropCause::DelayLineFull => "because too much was under way",
    }
}

fn micros(nanos: u64) -> String {
    format!("{:.1} us", nanos as f64 / 1e3)
}

fn bytes(count: u64) -> String {
    match count as f64 {
        few if few < 1e3 => format!("{count} B"),
        some if some < 1e6 => format!("{:.1} kB", some / 1e3),
        many if many < 1e9 => format!("{:.1} MB", many / 1e6),
        most => format!("{:.2} GB", most / 1e9),
    }
}

/// Begins the file of the counters, so that one that cannot be written is known before the program runs.
pub fn open(file: &FilePath) -> Result<OutFile, Problem> {
    OutFile::create(file).map_err(|error| {
        Problem::of(Fault::Results, error)
            .while_doing(format!("{} cannot be written", file.display()))
            .with_remedy("name another file for --stats")
    })
}

/// Writes the counters to a file that was begun.
pub fn write(
    (mut to, file): (OutFile, &FilePath),
    path: &Path,
    (stats, held): (Option<&Stats>, Option<&[Held]>),
    ended: &Ended,
) -> Result<(), Problem> {
    let all = json!({
        "path": path,
        "exit_status": ended.code,
        "seconds": ended.took.as_secs_f64(),
        "stats": stats,
        "held": held,
    });
    let text = serde_json::to_string_pretty(&all).blame(Fault::Results)? + "\n";
    to.write_all(text.as_bytes())
        .and_then(|()| to.finish())
        .blame(Fault::Results)
        .while_doing(|| format!("{} cannot be written", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_a_terminal_and_names_what_was_dropped() {
        let mut stats = Stats::default();
        stats.forward.link.delivered.frames = 123_456_789;
        stats.forward.link.delivered.bytes = 98_700_000_000;
        stats.forward.link.dropped.loss.frames = 12;
        stats.forward.release_error.count = 1;
        stats.forward.release_error.p50_ns = 1_100;
        stats.forward.release_error.p99_ns = 999_999_999;
        let text = table(&stats);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("98.70 GB") && text.contains("1.1 us, 1000000.0 us"), "{text}");
        assert!(text.contains("dropped, client to server: 12 by the path's loss"), "{text}");
        assert_eq!(bytes(999), "999 B");
    }
}
