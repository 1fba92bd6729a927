//! What `wiretax observe --prometheus` serves (text exposition format 0.0.4). Labels come from fixed
//! lists only: a stranger's hello cannot make new ones.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracker::{Class, Connection, Counters};

/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0];

/// Cumulative only when it is printed.
#[derive(Debug, Clone, Default)]
struct Histogram {
    counts: [u64; BUCKETS.len() + 1],
    sum: f64,
}

impl Histogram {
    fn take(&mut self, time: Option<Duration>) {
        let Some(seconds) = time.map(|time| time.as_secs_f64()) else { return };
        let place = BUCKETS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum += seconds;
    }

    fn print(&self, name: &str, labels: &str, out: &mut String) {
        let mut total = 0;
        let bounds = BUCKETS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(self.counts) {
            total += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {total}");
        }
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{{labels}}} {total}");
    }
}

/// One transport, version and class.
#[derive(Debug, Clone, Default)]
struct Cell {
    handshake: Histogram,
    to_data: Histogram,
    round_trip: Histogram,
    count: u64,
    uncertain: u64,
}

/// A family of metrics: its name, its help, and a cell's value of it.
type Counts = (&'static str, &'static str, fn(&Cell) -> u64);
/// The same of histograms.
type Histograms = (&'static str, &'static str, fn(&Cell) -> &Histogram);

#[derive(Debug, Default)]
struct State {
    cells: BTreeMap<(&'static str, &'static str, Class), Cell>,
    counters: Counters,
    followed: usize,
    lost: u64,
}

/// What is served. A record takes its lock, a frame does not.
#[derive(Debug, Default)]
pub struct Gauges(Mutex<State>);

/// The version as a label.
fn version(connection: &Connection) -> &'static str {
    let Some(version) = connection.tls.as_ref().and_then(|tls| tls.version) else {
        return "none";
    };
    match version.0 {
        0x0002 => "SSL 2.0",
        0x0300 => "SSL 3.0",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        _ if version.is_tls13() => "TLS 1.3 draft",
        _ => "other",
    }
}

impl Gauges {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection.
    pub fn take(&self, connection: &Connection) {
        let Some(class) = connection.class() else { return };
        let transport = if connection.quic.is_some() { "quic" } else { "tcp" };
        let mut state = self.state();
        let cell = state.cells.entry((transport, version(connection), class)).or_default();
        cell.count += 1;
        cell.uncertain += u64::from(!connection.uncertain.is_empty());
        cell.handshake.take(connection.tls_handshake_time());
        cell.to_data.take(connection.hello_to_data());
        cell.round_trip.take(connection.round_trip());
    }

    /// Says how the tracker stands, and how many frames the capture lost.
    pub fn set(&self, counters: Counters, followed: usize, lost: u64) {
        let mut state = self.state();
        (state.counters, state.followed, state.lost) = (counters, followed, lost);
    }

    /// The page.
    pub fn page(&self) -> String {
        let state = self.state();
        let mut out = String::new();
        let mut number = |name: &str, kind: &str, help: &str, value: u64| {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        };
        let counters = &state.counters;
        number("wiretax_frames_total", "counter", "Frames taken.", counters.frames);
        number("wiretax_frames_lost_total", "counter", "Frames that the kernel lost.", state.lost);
        number("wiretax_connections_total", "counter", "Connections begun.", counters.connections);
        number(
            "wiretax_connections_dropped_total",
            "counter",
            "Connections dropped because there were too many.",
            counters.dropped,
        );
        number("wiretax_connections", "gauge", "Connections followed.", state.followed as u64);
        let counts: [Counts; 2] = [
            ("wiretax_handshakes_total", "TLS handshakes.", |cell| cell.count),
            ("wiretax_handshakes_uncertain_total", "Of these in doubt.", |cell| cell.uncertain),
        ];
        for (name, help, value) in counts {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
            for (key, cell) in &state.cells {
                let _ = writeln!(out, "{name}{{{}}} {}", labels(*key), value(cell));
            }
        }
        let histograms: [Histograms; 3] = [
            ("wiretax_tls_handshake_seconds", "ClientHello to client's Finished.", |c| {
                &c.handshake
            }),
            ("wiretax_hello_to_data_seconds", "ClientHello to client's first data.", |c| {
                &c.to_data
            }),
            ("wiretax_round_trip_seconds", "Round trip by the TCP handshake.", |c| &c.round_trip),
        ];
        for (name, help, histogram) in histograms {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
            for (key, cell) in &state.cells {
                histogram(cell).print(name, &labels(*key), &mut out);
            }
        }
        out
    }
}

fn labels((transport, version, class): (&str, &str, Class)) -> String {
    format!("transport=\"{transport}\",version=\"{version}\",class=\"{class}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_their_bounds_inclusive() {
        let mut histogram = Histogram::default();
        for millis in [1, 10, 11, 7000] {
            histogram.take(Some(Duration::from_millis(millis)));
        }
        histogram.take(None);
        let mut out = String::new();
        histogram.print("t", "a=\"b\"", &mut out);
        for line in [
            "t_bucket{a=\"b\",le=\"0.001\"} 1",
            "t_bucket{a=\"b\",le=\"0.01\"} 2",
            "t_bucket{a=\"b\",le=\"0.02\"} 3",
            "t_bucket{a=\"b\",le=\"5\"} 3",
            "t_bucket{a=\"b\",le=\"+Inf\"} 4",
            "t_count{a=\"b\"} 4",
        ] {
            assert!(out.lines().any(|got| got == line), "{line}\n{out}");
        }
    }

    #[test]
    fn a_page_of_nothing_has_its_counters() {
        let gauges = Gauges::default();
        gauges.set(Counters::default(), 3, 4);
        let page = gauges.page();
        assert!(page.contains("\nwiretax_connections 3\n"), "{page}");
        assert!(page.contains("\nwiretax_frames_lost_total 4\n"), "{page}");
    }
}
