//! Prometheus's text exposition format, version 0.0.4.

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of a histogram's buckets, in milliseconds.
const BUCKETS_MS: [u64; 14] = [1, 2, 5, 10, 20, 30, 50, 75, 100, 200, 500, 1000, 2000, 5000];

/// How long something took. It can be counted on by several threads at once.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each bucket, and the last for what is above all of them; not cumulative.
    counts: [AtomicU64; BUCKETS_MS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    /// Counts one value.
    pub fn observe(&self, took: Duration) {
        let bucket = BUCKETS_MS.partition_point(|bound| Duration::from_millis(*bound) < took);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// What the value of a metric means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A page under construction.
#[derive(Debug)]
pub struct Exposition {
    text: String,
    /// What the name of every metric begins with.
    prefix: &'static str,
    /// Labels that every line has.
    common: String,
}

impl Exposition {
    /// An empty page. `prefix` begins every metric's name, every line has the labels `common`.
    #[must_use]
    pub fn new(prefix: &'static str, common: &[(&str, &str)]) -> Exposition {
        let mut labels = String::new();
        append_labels(&mut labels, common);
        Exposition { text: String::with_capacity(8 << 10), prefix, common: labels }
    }

    /// The finished page, in the text format of Prometheus.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// A number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help).line(&[], value);
    }

    /// A number of things that are there now.
    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.gauges(name, help).line(&[], value);
    }

    /// Numbers that only grow, one for each combination of labels.
    pub fn counters(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, Kind::Counter)
    }

    /// Numbers of things that are there now, one for each combination of labels.
    pub fn gauges(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, Kind::Gauge)
    }

    /// Histograms of seconds, one for each combination of labels.
    pub fn histograms(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, Kind::Histogram)
    }

    /// HELP and TYPE, once a metric.
    fn family(&mut self, name: &str, help: &str, kind: Kind) -> Family<'_> {
        let name = format!("{}{name}", self.prefix);
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: self, name }
    }
}

/// The lines of one metric.
#[derive(Debug)]
pub struct Family<'a> {
    page: &'a mut Exposition,
    name: String,
}

impl Family<'_> {
    /// A value under these labels.
    pub fn line(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.write("", labels, value);
    }

    /// A histogram under these labels.
    pub fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let mut total = 0;
        let bounds = BUCKETS_MS.iter().map(|ms| (*ms as f64 / 1e3).to_string());
        for (count, bound) in histogram.counts.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            total += count.load(Ordering::Relaxed);
            self.write("_bucket", &[labels, &[("le", &bound)]].concat(), total);
        }
        let sum = histogram.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        self.write("_sum", labels, sum);
        self.write("_count", labels, total);
    }

    fn write(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let Exposition { text, common, .. } = &mut *self.page;
        let mut all = common.clone();
        append_labels(&mut all, labels);
        let _ = match all.as_str() {
            "" => writeln!(text, "{}{suffix} {value}", self.name),
            all => writeln!(text, "{}{suffix}{{{all}}} {value}", self.name),
        };
    }
}

fn append_labels(out: &mut String, labels: &[(&str, &str)]) {
    for (label, value) in labels {
        let comma = if out.is_empty() { "" } else { "," };
        let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let _ = write!(out, "{comma}{label}=\"{value}\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_its_help_and_type_once() {
        let mut page = Exposition::new("p_", &[]);
        page.gauge("now", "Things.", 3);
        let mut family = page.counters("all_total", "All of\nthem, \\ too.");
        family.line(&[("a", "x\"y\\z\n"), ("b", "")], 1);
        family.line(&[("a", "w")], 2.5);
        assert_eq!(
            page.into_text(),
            "# HELP p_now Things.\n# TYPE p_now gauge\np_now 3\n\
             # HELP p_all_total All of\\nthem, \\\\ too.\n# TYPE p_all_total counter\n\
             p_all_total{a=\"x\\\"y\\\\z\\n\",b=\"\"} 1\np_all_total{a=\"w\"} 2.5\n"
        );
    }

    #[test]
    fn buckets_are_cumulative_and_their_bounds_inclusive() {
        let histogram = Histogram::default();
        for millis in [1, 10, 11, 7000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut page = Exposition::new("", &[("role", "r")]);
        page.histograms("t", "Time.").histogram(&[("a", "b")], &histogram);
        let page = page.into_text();
        for line in [
            "t_bucket{role=\"r\",a=\"b\",le=\"0.001\"} 1",
            "t_bucket{role=\"r\",a=\"b\",le=\"0.01\"} 2",
            "t_bucket{role=\"r\",a=\"b\",le=\"0.02\"} 3",
            "t_bucket{role=\"r\",a=\"b\",le=\"5\"} 3",
            "t_bucket{role=\"r\",a=\"b\",le=\"+Inf\"} 4",
            "t_sum{role=\"r\",a=\"b\"} 7.022",
            "t_count{role=\"r\",a=\"b\"} 4",
        ] {
            assert!(page.lines().any(|got| got == line), "{line}\n{page}");
        }
    }
}
