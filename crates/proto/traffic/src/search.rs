//! The highest load of which nothing is lost (RFC 2544 §26.1).

/// What a trial came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// All frames came.
    Whole,
    /// Some were lost.
    Lossy,
}

/// A search between two loads, in any unit, by halves.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The highest load known to get through.
    low: f64,
    /// The lowest load known to lose; or the highest that there is.
    high: f64,
    /// The share of the result to which it is known in the end.
    precision: f64,
    /// Where a load this low loses, so does every one.
    least: f64,
    /// Whether the highest load is still to be tried: it may get through.
    is_first: bool,
    trials: u32,
}

/// Trials at most, whatever the precision.
const MOST_TRIALS: u32 = 64;
/// The least load that is tried, as a share of the highest: a path that loses frames of it loses some of any load, and
/// would take trial upon trial to say so.
const LEAST: f64 = 1.0 / 4096.0;

impl Search {
    /// Up to `highest`, to a share of the result as 0.005. `None`: one of them is not above 0, or not a number.
    #[must_use]
    pub fn new(highest: f64, precision: f64) -> Option<Self> {
        let is_good = |value: f64| value.is_finite() && value > 0.0;
        (is_good(highest) && is_good(precision)).then_some(Search {
            low: 0.0,
            high: highest,
            precision,
            least: highest * LEAST,
            is_first: true,
            trials: 0,
        })
    }

    /// The load to try next; `None` when the result is known.
    #[must_use]
    pub fn next(&self) -> Option<f64> {
        if self.is_first {
            return Some(self.high);
        }
        let is_known = self.high - self.low <= self.precision * self.low || self.high <= self.least;
        (!is_known && self.trials < MOST_TRIALS && self.low < self.high)
            .then_some(self.low.midpoint(self.high))
    }

    /// What the trial of [`Search::next`]'s load came to.
    pub fn note(&mut self, trial: Trial) {
        let Some(tried) = self.next() else { return };
        self.trials = self.trials.saturating_add(1);
        let was_first = std::mem::take(&mut self.is_first);
        match trial {
            Trial::Whole => self.low = tried,
            Trial::Lossy if was_first => {}
            Trial::Lossy => self.high = tried,
        }
    }

    /// The highest load known to get through; 0 if none is.
    #[must_use]
    pub const fn result(&self) -> f64 {
        self.low
    }

    /// How many trials it took so far.
    #[must_use]
    pub const fn trials(&self) -> u32 {
        self.trials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(limit: f64, highest: f64, precision: f64) -> Search {
        let mut search = Search::new(highest, precision).unwrap();
        while let Some(load) = search.next() {
            search.note(if load <= limit { Trial::Whole } else { Trial::Lossy });
        }
        search
    }

    proptest! {
        #[test]
        fn it_finds_the_limit_to_its_precision(limit in 1.0f64..1e6, over in 1.0f64..1e3) {
            let search = found(limit, limit * over, 0.005);
            prop_assert!(search.result() <= limit);
            prop_assert!(search.result() >= limit * 0.994, "{} of {}", search.result(), limit);
            prop_assert!(search.trials() <= 20);
        }
    }

    #[test]
    fn the_highest_load_is_tried_first_and_may_do() {
        let search = found(10.0, 10.0, 0.005);
        assert_eq!((search.result(), search.trials()), (10.0, 1));
    }

    #[test]
    fn a_path_that_loses_all_ends_the_search() {
        let search = found(0.0, 1000.0, 0.005);
        assert_eq!(search.result(), 0.0);
        // The highest, and twelve halves of it.
        assert_eq!(search.trials(), 13);
        assert!(Search::new(0.0, 0.1).is_none() && Search::new(f64::NAN, 0.1).is_none());
    }
}
