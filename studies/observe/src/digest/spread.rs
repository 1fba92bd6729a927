//! Distributions in fixed memory.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::options::Options;
use super::top::Add;

/// The longest time told apart: an hour, in microseconds.
const LONGEST: u64 = 3_600_000_000;

/// What all distributions of a digest are made from.
#[derive(Debug, Clone)]
pub(crate) struct Mould {
    histogram: Histogram<u64>,
    bin: Duration,
    bins: usize,
}

impl Mould {
    /// `None` if the histogram's bounds make no sense, which constants do not.
    pub(crate) fn new(options: &Options) -> Option<Mould> {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 2).ok()?;
        Some(Mould { histogram, bin: options.bin, bins: options.bins })
    }

    pub(crate) fn spread(&self) -> Spread {
        Spread {
            histogram: Histogram::new_from(&self.histogram),
            bin: self.bin,
            bins: vec![0; self.bins],
            beyond: 0,
            sum_ms: 0.0,
        }
    }
}

/// A distribution of times: bins of fixed width, and a histogram that is right to 1 % at any length.
#[derive(Debug, Clone)]
pub(crate) struct Spread {
    histogram: Histogram<u64>,
    bin: Duration,
    bins: Vec<u64>,
    beyond: u64,
    sum_ms: f64,
}

impl Spread {
    pub(crate) fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // The histogram begins at 1: zero would be below its bounds, and what it says of 1 us is zero.
        self.histogram.saturating_record(micros.max(1));
        self.sum_ms += time.as_secs_f64() * 1e3;
        let at = time.as_nanos() / self.bin.as_nanos().max(1);
        match usize::try_from(at).ok().and_then(|at| self.bins.get_mut(at)) {
            Some(bin) => *bin += 1,
            None => self.beyond += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Spread) {
        // Both have the same bounds, so that nothing can be out of range.
        let _ = self.histogram.add(&other.histogram);
        for (ours, theirs) in self.bins.iter_mut().zip(&other.bins) {
            *ours += theirs;
        }
        self.beyond += other.beyond;
        self.sum_ms += other.sum_ms;
    }

    pub(crate) fn count(&self) -> u64 {
        self.bins.iter().sum::<u64>() + self.beyond
    }

    /// In ms; `None` without times.
    pub(crate) fn quantile(&self, p: f64) -> Option<f64> {
        (!self.histogram.is_empty()).then(|| self.histogram.value_at_quantile(p) as f64 / 1e3)
    }

    /// In ms; `None` without times.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ms / count as f64)
    }

    /// Counts by bin, and what lies beyond the last.
    pub(crate) fn bins(&self) -> (&[u64], u64) {
        (&self.bins, self.beyond)
    }

    /// The histogram's own steps that hold anything: the middle of each in ms, and how many.
    pub(crate) fn steps(&self) -> Vec<(f64, u64)> {
        let middle = |value| self.histogram.median_equivalent(value) as f64 / 1e3;
        let steps = self.histogram.iter_recorded();
        steps.map(|step| (middle(step.value_iterated_to()), step.count_at_value())).collect()
    }
}

/// Steps of an octave that a [`Sketch`] tells apart.
const STEPS: f64 = 8.0;
/// Steps of a sketch: from 0.05 ms to about 50 s.
const SKETCH: usize = 160;
/// What its first step begins at, in ms.
const LEAST: f64 = 0.05;

/// A distribution for a name among many: right to 5 %, in a few hundred bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sketch(Vec<u32>);

impl Sketch {
    pub(crate) fn record(&mut self, time: Duration) {
        if self.0.is_empty() {
            self.0 = vec![0; SKETCH];
        }
        let ms = time.as_secs_f64() * 1e3;
        let step = ((ms / LEAST).max(1.0).log2() * STEPS).floor().min((SKETCH - 1) as f64);
        // Never negative: the quotient is 1 at least.
        if let Some(count) = self.0.get_mut(step as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// The median in ms, to the middle of its step.
    pub(crate) fn median(&self) -> Option<f64> {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let mut below = 0;
        for (step, count) in self.0.iter().enumerate() {
            below += u64::from(*count);
            if *count > 0 && below * 2 >= total {
                return Some(LEAST * ((step as f64 + 0.5) / STEPS).exp2());
            }
        }
        None
    }
}

impl Add for Sketch {
    fn add(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (ours, theirs) in self.0.iter_mut().zip(&other.0) {
            *ours = ours.saturating_add(*theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_as_wide_as_asked_and_nothing_is_lost() {
        let options = Options { bins: 3, ..Options::default() };
        let mut spread = Mould::new(&options).unwrap().spread();
        for ms in [0, 9, 10, 29, 30, 5000] {
            spread.record(Duration::from_millis(ms));
        }
        spread.record(Duration::from_secs(1 << 40));
        assert_eq!(spread.bins(), ([2, 1, 1].as_slice(), 3));
        let mut twice = spread.clone();
        twice.merge(&spread);
        assert_eq!((spread.count(), twice.count()), (7, 14));
        let median = spread.quantile(0.5).unwrap();
        assert!((28.5..=29.5).contains(&median), "{median}");
    }

    #[test]
    fn a_sketch_has_the_median_to_a_few_percent() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.median(), None);
        for ms in [1, 24, 25, 26, 900_000] {
            sketch.record(Duration::from_millis(ms));
        }
        let median = sketch.median().unwrap();
        assert!((median / 25.0 - 1.0).abs() < 0.06, "{median}");
        sketch.record(Duration::ZERO);
    }
}
