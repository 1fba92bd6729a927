//! What `wiretax observe --prometheus` serves. Labels come from fixed lists only: a stranger's hello
//! cannot make new ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::{Exposition, Histogram};
use tracker::{Class, Connection, Counters};

/// Transport, version and class.
type Key = (&'static str, &'static str, Class);

/// What is counted of one key.
#[derive(Debug, Default)]
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
    cells: BTreeMap<Key, Cell>,
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
        let observe = |histogram: &Histogram, took| {
            let Some(took) = took else { return };
            histogram.observe(took);
        };
        observe(&cell.handshake, connection.tls_handshake_time());
        observe(&cell.to_data, connection.hello_to_data());
        observe(&cell.round_trip, connection.round_trip());
    }

    /// Says how the tracker stands, and how many frames the capture lost.
    pub fn set(&self, counters: Counters, followed: usize, lost: u64) {
        let mut state = self.state();
        (state.counters, state.followed, state.lost) = (counters, followed, lost);
    }

    /// The page that Prometheus reads.
    pub fn page(&self) -> String {
        let state = self.state();
        let mut page = Exposition::new("wiretax_", &[]);
        let counters = &state.counters;
        page.counter("frames_total", "Frames taken.", counters.frames);
        page.counter("frames_lost_total", "Frames that the kernel lost.", state.lost);
        page.counter("connections_total", "Connections begun.", counters.connections);
        let help = "Connections dropped because there were too many.";
        page.counter("connections_dropped_total", help, counters.dropped);
        page.gauge("connections", "Connections followed.", state.followed as u64);
        let counts: [Counts; 2] = [
            ("handshakes_total", "TLS handshakes.", |cell| cell.count),
            ("handshakes_uncertain_total", "Of these in doubt.", |cell| cell.uncertain),
        ];
        for (name, help, value) in counts {
            let mut family = page.counters(name, help);
            for (key, cell) in &state.cells {
                family.line(&labels(*key), value(cell));
            }
        }
        let histograms: [Histograms; 3] = [
            ("tls_handshake_seconds", "ClientHello to client's Finished.", |c| &c.handshake),
            ("hello_to_data_seconds", "ClientHello to client's first data.", |c| &c.to_data),
            ("round_trip_seconds", "Round trip by the TCP handshake.", |c| &c.round_trip),
        ];
        for (name, help, histogram) in histograms {
            let mut family = page.histograms(name, help);
            for (key, cell) in &state.cells {
                family.histogram(&labels(*key), histogram(cell));
            }
        }
        page.into_text()
    }
}

fn labels((transport, version, class): Key) -> [(&'static str, &'static str); 3] {
    [("transport", transport), ("version", version), ("class", class.name())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_nothing_has_its_counters() {
        let gauges = Gauges::default();
        gauges.set(Counters::default(), 3, 4);
        let page = gauges.page();
        assert!(page.contains("\nwiretax_connections 3\n"), "{page}");
        assert!(page.contains("\nwiretax_frames_lost_total 4\n"), "{page}");
    }

    /// The names of a text's metrics: `wiretax_` and what follows.
    fn names(text: &str) -> Vec<&str> {
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        let found = text.match_indices("wiretax_").map(|(at, _)| &text[at..]);
        found.map(|rest| &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]).collect()
    }

    #[test]
    fn the_alarms_ask_for_metrics_that_there_are() {
        let rules = include_str!("../../../../packaging/prometheus/wiretax-observe.rules.yml");
        let page = Gauges::default().page();
        let mut known = Vec::new();
        for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').unwrap();
            let suffixes: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            known.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
        }
        let asked = names(rules);
        assert!(asked.len() > 10, "{asked:?}");
        for name in asked {
            assert!(known.iter().any(|known| known == name), "{name} is none of {known:?}");
        }
        // Classes and labels, too.
        let classes = rules.split("class").skip(1).filter_map(|rest| rest.split('"').nth(1));
        for class in classes.flat_map(|classes| classes.split('|')) {
            assert!(Class::ALL.iter().any(|known| known.name() == class), "{class}");
        }
        let own = labels(("tcp", "TLS 1.3", Class::Full)).map(|(label, _)| label);
        for list in rules.split("sum by (").skip(1) {
            let list = list.split(')').next().unwrap();
            for label in list.split(", ") {
                assert!(label == "le" || own.contains(&label), "{label}");
            }
        }
    }

    #[test]
    fn what_an_alarm_records_is_what_others_ask_for() {
        let rules = include_str!("../../../../packaging/prometheus/wiretax-observe.rules.yml");
        let recorded: Vec<&str> =
            rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
        assert_eq!(recorded.len(), 4);
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        for (at, _) in rules.match_indices("wiretax:") {
            let rest = &rules[at..];
            let name = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
            assert!(recorded.contains(&name), "{name}");
        }
    }
}
