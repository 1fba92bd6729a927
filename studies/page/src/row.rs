//! One way to load a page, over its samples.

use std::collections::BTreeMap;

use browser::{ServerPush, Windows};
use record::{Outcome, Sample};
use serde::Serialize;
use stats::{Confidence, Estimate, compare_paired};
use web::{Congestion, Protocol};

use crate::flow::Flow;
use crate::point::{Handshake, Point, Tls};
use crate::sample::{WATERFALL, Waterfall, value};
use crate::window::{InitialWindow, Window};

/// A way to load a page.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What carries it.
    pub protocol: Protocol,
    /// The TLS version.
    pub tls: Tls,
    /// Whose TCP, and how TLS begins on it.
    pub handshake: Handshake,
    /// Whose flow-control windows.
    pub windows: Windows,
    /// Another size for them.
    #[serde(skip)]
    pub stream_window: Window,
    /// Another size for TCP's buffers; none leaves them to the kernel.
    #[serde(skip)]
    pub tcp_window: Window,
    /// The congestion window at the start.
    #[serde(skip)]
    pub initial_window: InitialWindow,
    /// Congestion control of TCP and QUIC.
    pub congestion: Congestion,
    /// What the server says of what will be needed.
    pub server_push: ServerPush,
    /// Loads that are whole.
    pub loads: usize,
    /// Loads that are not, and why the first is not.
    pub failed: usize,
    /// Why the first that failed did, if any did.
    pub failure: Option<String>,
    /// Page load time in milliseconds.
    pub load_ms: Option<Estimate>,
    /// The shortest and the longest load, in milliseconds.
    pub range_ms: Option<(f64, f64)>,
    /// The median of each other value, by its name.
    pub medians: BTreeMap<String, f64>,
    /// Page load time as a ratio to HTTP/1.1's of the same turn.
    pub ratio: Option<Estimate>,
    /// The same to the load whose handshakes follow each other, over the same TCP or QUIC, by the same protocol.
    pub handshake_ratio: Option<Estimate>,
    /// The command that measures it again.
    pub command: String,
    #[serde(skip)]
    by_repeat: BTreeMap<u32, f64>,
    #[serde(skip)]
    values: BTreeMap<String, Vec<f64>>,
    #[serde(skip)]
    pub(crate) waterfall: Option<Waterfall>,
    /// The chart of a load that was captured.
    #[serde(skip)]
    pub(crate) flow: Option<Flow>,
}

impl Row {
    /// The page load time of each whole load, in milliseconds.
    pub(crate) fn loads_ms(&self) -> impl Iterator<Item = f64> {
        self.by_repeat.values().copied()
    }

    /// The page load time of each turn whose load is whole, in milliseconds.
    pub(crate) fn loads_by_turn(&self) -> &BTreeMap<u32, f64> {
        &self.by_repeat
    }

    pub(crate) fn of(point: &Point, command: &str) -> Row {
        Row {
            protocol: point.protocol,
            tls: point.tls,
            handshake: point.handshake,
            windows: point.windows,
            stream_window: point.stream_window,
            tcp_window: point.tcp_window,
            initial_window: point.initial_window,
            congestion: point.congestion,
            server_push: point.server_push,
            loads: 0,
            failed: 0,
            failure: None,
            load_ms: None,
            range_ms: None,
            medians: BTreeMap::new(),
            ratio: None,
            handshake_ratio: None,
            command: command.to_owned(),
            by_repeat: BTreeMap::new(),
            values: BTreeMap::new(),
            waterfall: None,
            flow: None,
        }
    }

    pub(crate) fn is_of(&self, point: &Point) -> bool {
        (self.protocol, self.tls, self.windows) == (point.protocol, point.tls, point.windows)
            && self.handshake == point.handshake
            && (self.stream_window, self.tcp_window) == (point.stream_window, point.tcp_window)
            && self.initial_window == point.initial_window
            && self.congestion == point.congestion
            && self.server_push == point.server_push
    }

    pub(crate) fn order(&self) -> impl Ord + use<> {
        let sizes = (self.stream_window.0, self.tcp_window.0, self.initial_window);
        let how = (self.protocol, self.handshake, self.tls, self.server_push);
        (how, self.congestion, self.windows, sizes)
    }

    pub(crate) fn take(&mut self, sample: &Sample) {
        if self.waterfall.is_none() {
            let text = sample.labels.get(WATERFALL);
            self.waterfall = text.and_then(|text| serde_json::from_str(text).ok());
        }
        if self.flow.is_none() {
            self.flow = Flow::of_sample(sample);
        }
        let why = match &sample.outcome {
            Outcome::Completed => {
                self.loads += 1;
                for (name, value) in &sample.values {
                    self.values.entry(name.clone()).or_default().push(*value);
                }
                let load = sample.values.get(value::LOAD);
                self.by_repeat.extend(load.map(|load| (sample.repeat, *load)));
                return;
            }
            Outcome::Failed { reason } => reason.clone(),
            Outcome::TimedOut { after_ms } => format!("given up after {:.0} s", after_ms / 1e3),
        };
        self.failed += 1;
        self.failure.get_or_insert(why);
    }

    pub(crate) fn sum_up(&mut self) {
        let estimate = |values: &[f64]| stats::Sample::new(values).ok();
        for (name, values) in &self.values {
            let Some(sample) = estimate(values) else { continue };
            if name == value::LOAD {
                self.load_ms = Some(sample.median_estimate(Confidence::C95));
                self.range_ms = Some((sample.min(), sample.max()));
            } else {
                self.medians.insert(name.clone(), sample.median());
            }
        }
    }

    /// Page load times of loads that took turns: this row's over the other's.
    pub(crate) fn ratio_to(&self, other: &Row) -> Option<Estimate> {
        let (theirs, ours): (Vec<f64>, Vec<f64>) = self.pairs_with(other).unzip();
        compare_paired(&theirs, &ours, Confidence::C95).ok()?.ratio
    }

    /// Page load times of loads that took turns: the other's, then this row's.
    pub(crate) fn pairs_with(&self, other: &Row) -> impl Iterator<Item = (f64, f64)> {
        let both = self.by_repeat.iter();
        both.filter_map(|(n, ours)| Some((*other.by_repeat.get(n)?, *ours)))
    }

    /// A median, by the value's name.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<f64> {
        self.medians.get(name).copied()
    }

    /// How it is told apart within a group: `h2`, `spdy/3.1, TLS 1.2, windows 64 KiB`.
    #[must_use]
    pub fn label(&self, plain: bool) -> String {
        let mut label = self.protocol.to_string();
        if plain {
            return label;
        }
        if self.tls == Tls::V12 {
            label += ", TLS 1.2";
        }
        if self.handshake != Handshake::Kernel {
            label += &format!(", {}", self.handshake);
        }
        if self.windows != Windows::Chromium {
            label += &format!(", {} windows", self.windows);
        }
        if self.stream_window != Window(None) {
            label += &format!(", windows {}", self.stream_window);
        }
        if self.tcp_window != Window(None) {
            label += &format!(", TCP {}", self.tcp_window);
        }
        if self.initial_window != InitialWindow::USUAL {
            label += &format!(", {} packets at first", self.initial_window);
        }
        if self.congestion != Congestion::Cubic {
            label += &format!(", {}", self.congestion);
        }
        match self.server_push {
            ServerPush::None => {}
            ServerPush::Hint => label += ", hints",
            ServerPush::Push => label += ", push",
        }
        label
    }
}
