//! Samples of one quantity, with those that were cut off.

/// Samples of one quantity. A censored sample is one that failed or timed out: it is known to lie
/// above every value and stays in the count.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Distribution {
    sorted: Vec<f64>,
    censored: usize,
    command: Option<String>,
}

impl Distribution {
    /// A distribution of `values`, in any order, and `censored` samples above them all.
    #[must_use]
    pub fn new(mut values: Vec<f64>, censored: usize) -> Self {
        values.sort_by(f64::total_cmp);
        Self { sorted: values, censored, command: None }
    }

    /// Sets the command, seed included, that measures the samples again.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// The values from the least to the greatest.
    #[must_use]
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// How many samples are censored.
    #[must_use]
    pub fn censored(&self) -> usize {
        self.censored
    }

    /// How many samples there are, censored ones included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.sorted.len().saturating_add(self.censored)
    }

    pub(crate) fn command_text(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// The least value at or below which at least the share `q` of all samples lies (the inverse
    /// of the curve drawn); `None` where that is a censored sample.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = (q.clamp(0.0, 1.0) * self.count() as f64 - 1e-9).ceil().max(1.0) as usize;
        self.sorted.get(rank - 1).copied()
    }

    /// The five figures of a box plot: lower whisker, quartiles, upper whisker; and the samples
    /// beyond the whiskers. `None` where a quartile is censored or nothing was measured.
    pub(crate) fn five(&self) -> Option<Five> {
        let (q1, median, q3) = (self.quantile(0.25)?, self.quantile(0.5)?, self.quantile(0.75)?);
        let reach = 1.5 * (q3 - q1);
        let inside = |value: &&f64| (q1 - reach..=q3 + reach).contains(*value);
        Some(Five {
            lower: *self.sorted.iter().find(inside)?,
            q1,
            median,
            q3,
            upper: *self.sorted.iter().rev().find(inside)?,
            beyond: self.sorted.iter().filter(|value| !inside(value)).copied().collect(),
        })
    }

    /// The steps of the curve: each distinct value and the share at or below it, at most `most`.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn steps(&self, most: usize) -> Vec<(f64, f64)> {
        let total = self.count() as f64;
        let mut steps: Vec<(f64, f64)> = Vec::new();
        for (at, value) in self.sorted.iter().enumerate() {
            let share = (at + 1) as f64 / total;
            match steps.last_mut() {
                Some(last) if last.0 == *value => last.1 = share,
                _ => steps.push((*value, share)),
            }
        }
        thin(steps, most)
    }
}

/// The figures of a box.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Five {
    pub lower: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
    pub upper: f64,
    pub beyond: Vec<f64>,
}

/// At most `most` of the items, evenly by rank, the first and the last among them.
pub(crate) fn thin<T: Clone>(items: Vec<T>, most: usize) -> Vec<T> {
    let most = most.max(2);
    if items.len() <= most {
        return items;
    }
    let last = items.len() - 1;
    (0..most).filter_map(|n| items.get(n * last / (most - 1)).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn censored_samples_hold_the_tail() {
        let d = Distribution::new(vec![3.0, 1.0, 2.0], 1);
        assert_eq!(d.quantile(0.25), Some(1.0));
        assert_eq!(d.quantile(0.5), Some(2.0));
        assert_eq!(d.quantile(0.75), Some(3.0));
        assert_eq!(d.quantile(0.76), None);
        assert_eq!(d.steps(10), [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75)]);
    }

    #[test]
    fn equal_values_are_one_step() {
        assert_eq!(
            Distribution::new(vec![1.0, 1.0, 2.0, 2.0], 0).steps(9),
            [(1.0, 0.5), (2.0, 1.0)]
        );
    }

    #[test]
    fn whiskers_end_at_samples() {
        let five = Distribution::new(vec![1.0, 2.0, 3.0, 4.0, 100.0], 0).five().expect("five");
        assert_eq!(
            (five.lower, five.q1, five.median, five.q3, five.upper),
            (1.0, 2.0, 3.0, 4.0, 4.0)
        );
        assert_eq!(five.beyond, [100.0]);
        assert_eq!(Distribution::new(vec![1.0], 3).five(), None);
        assert_eq!(Distribution::default().five(), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_curve_inverted(
            values in prop::collection::vec(-1e3..1e3, 1..50), censored in 0_usize..10, q in 0.01..1.0,
        ) {
            let d = Distribution::new(values, censored);
            let by_curve = d.steps(usize::MAX).into_iter().find(|(_, share)| *share >= q - 1e-9).map(|(v, _)| v);
            prop_assert_eq!(d.quantile(q), by_curve);
        }

        #[test]
        fn thinning_keeps_the_ends(items in prop::collection::vec(any::<u32>(), 1..500), most in 0_usize..50) {
            let thinned = thin(items.clone(), most);
            prop_assert!(thinned.len() <= most.max(2));
            prop_assert_eq!(thinned.first(), items.first());
            prop_assert_eq!(thinned.last(), items.last());
        }
    }
}
