//! How long loads took, one after the other and as they were made: several at once.

use record::Sample;
use serde::Serialize;

use crate::sample::{STUDY, value};

/// The time of all loads of some samples. First loads that repeated ones needed, and of which no sample was
/// asked for, are in neither sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Passed {
    /// How many loads.
    pub loads: usize,
    /// What they take one after the other, in seconds: the sum of their page load times.
    pub serial_s: f64,
    /// In which at least one was under way, in seconds.
    pub took_s: f64,
}

impl Passed {
    /// The time of the page loads among these samples.
    #[must_use]
    pub fn of(samples: &[Sample]) -> Passed {
        let own = samples.iter().filter(|sample| sample.study == STUDY && sample.at_unix_ms > 0);
        let mut loads: Vec<(f64, f64)> = own
            .filter_map(|sample| {
                let (load, end) = (*sample.values.get(value::LOAD)?, sample.at_unix_ms as f64);
                Some((end - load, end))
            })
            .collect();
        loads.sort_by(|a, b| a.0.total_cmp(&b.0));
        let serial: f64 = loads.iter().map(|(from, to)| to - from).sum();
        let (mut took, mut until) = (0.0, f64::NEG_INFINITY);
        for (from, to) in &loads {
            took += (to - from.max(until)).max(0.0);
            until = until.max(*to);
        }
        Passed { loads: loads.len(), serial_s: serial / 1e3, took_s: took / 1e3 }
    }

    /// The two in a sentence, where some loads were under way at once.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let Passed { loads, serial_s, took_s } = *self;
        (serial_s > took_s * 1.01).then(|| {
            let (serial, took) = (duration(serial_s), duration(took_s));
            format!("{loads} loads, several at once, took {took}; one after the other, {serial}.")
        })
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        0.0..120.0 => format!("{seconds:.0} s"),
        120.0..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::sample;

    fn load(end: u64, ms: f64) -> Sample {
        Sample { at_unix_ms: end, ..sample("h2", "first", 0, ms) }
    }

    #[test]
    fn time_that_loads_share_counts_once() {
        // 1 to 3, 2 to 4, and after a pause 10 to 11.
        let samples = [load(11_000, 1000.0), load(3000, 2000.0), load(4000, 2000.0)];
        let passed = Passed::of(&samples);
        assert_eq!(passed, Passed { loads: 3, serial_s: 5.0, took_s: 4.0 });
        let said = passed.sentence().unwrap();
        assert_eq!(said, "3 loads, several at once, took 4 s; one after the other, 5 s.");
        assert_eq!(Passed::of(&samples[..1]).sentence(), None);
        assert_eq!(Passed::of(&[]), Passed::default());
        assert_eq!((duration(28_080.0), duration(600.0)), ("7.8 h".into(), "10.0 min".into()));
    }
}
