//! The live view: how things stand, a second at a time, on a terminal.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use tracker::{Connection, Counters};

/// Handshakes of each version that the view's medians rest on.
const RECENT: usize = 1000;
/// Versions that are shown at most.
const VERSIONS: usize = 8;

/// The last handshakes of a version.
#[derive(Debug, Default)]
struct Recent {
    count: u64,
    handshakes: VecDeque<f64>,
    to_data: VecDeque<f64>,
    round_trips: VecDeque<f64>,
}

fn keep(values: &mut VecDeque<f64>, time: Option<Duration>) {
    if let Some(time) = time {
        if values.len() == RECENT {
            values.pop_front();
        }
        values.push_back(time.as_secs_f64() * 1e3);
    }
}

fn median(values: &VecDeque<f64>) -> String {
    let mut sorted: Vec<f64> = values.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"))
}

/// How things stand.
#[derive(Debug, Default)]
pub struct Now {
    versions: BTreeMap<String, Recent>,
    failed: u64,
    uncertain: u64,
    frames_before: u64,
}

impl Now {
    /// Takes a record.
    pub fn take(&mut self, connection: &Connection) {
        let Some(tls) = &connection.tls else { return };
        if tls.client_finished.is_none() {
            self.failed += 1;
            return;
        }
        self.uncertain += u64::from(!connection.uncertain.is_empty());
        let name = tls.version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
        let quic = if connection.quic.is_some() { ", QUIC" } else { "" };
        let name = format!("{name}{quic}");
        if self.versions.len() >= VERSIONS && !self.versions.contains_key(&name) {
            return;
        }
        let recent = self.versions.entry(name).or_default();
        recent.count += 1;
        keep(&mut recent.handshakes, connection.tls_handshake_time());
        keep(&mut recent.to_data, connection.hello_to_data());
        keep(&mut recent.round_trips, connection.round_trip());
    }

    /// The view's text; `since` is the time since the last one.
    pub fn text(
        &mut self,
        elapsed: Duration,
        since: Duration,
        counters: &Counters,
        followed: usize,
        lost: u64,
    ) -> String {
        let fresh = counters.frames.saturating_sub(self.frames_before);
        self.frames_before = counters.frames;
        let rate = fresh as f64 / since.as_secs_f64().max(1e-3);
        let seconds = elapsed.as_secs();
        let mut text = format!(
            "{seconds} s, {} frames ({rate:.0}/s), {lost} lost, {followed} connections followed, \
             {} failed, {} uncertain",
            counters.frames, self.failed, self.uncertain
        );
        if !self.versions.is_empty() {
            let _ = write!(
                text,
                "\n{:<20} {:>10} {:>12} {:>14} {:>12}",
                "version", "handshakes", "handshake", "hello to data", "round trip"
            );
        }
        for (name, recent) in &self.versions {
            let _ = write!(
                text,
                "\n{name:<20} {:>10} {:>12} {:>14} {:>12}",
                recent.count,
                median(&recent.handshakes),
                median(&recent.to_data),
                median(&recent.round_trips)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_since_the_last_view() {
        let mut now = Now::default();
        let second = Duration::from_secs(1);
        let mut counters = Counters::default();
        counters.frames = 100;
        assert!(now.text(second, second, &counters, 1, 0).contains("100 frames (100/s)"));
        counters.frames = 150;
        let text = now.text(second * 3, second * 2, &counters, 1, 7);
        assert!(text.contains("150 frames (25/s), 7 lost"), "{text}");
    }

    #[test]
    fn a_median_rests_on_the_last_thousand() {
        let mut values = VecDeque::new();
        assert_eq!(median(&values), "-");
        for ms in 0..3000 {
            keep(&mut values, Some(Duration::from_millis(ms)));
        }
        assert_eq!((values.len(), median(&values).as_str()), (RECENT, "2500.0 ms"));
    }
}
