//! Resampling with a seed.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::sample::{median_of_sorted, quantile_of_sorted};
use crate::{Confidence, Error, Estimate, Sample};

/// How the bootstrap draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bootstrap {
    /// How many times the samples are drawn again; 2000 leaves an error of the 2.5 % point of
    /// about a tenth of a standard error.
    pub resamples: u32,
    /// Where the draws begin.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 2000, seed: 1 }
    }
}

/// More resamples bring nothing but time.
const MAX_RESAMPLES: u32 = 1_000_000;

impl Bootstrap {
    /// # Errors
    /// [`Error::TooFew`] below 200 resamples, where a 2.5 % tail is five draws;
    /// [`Error::TooMany`] above a million.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.resamples {
            n if n < 200 => {
                Err(Error::TooFew { what: "a bootstrap interval", needed: 200, have: n as usize })
            }
            n if n > MAX_RESAMPLES => Err(Error::TooMany {
                what: "the number of resamples",
                have: n as usize,
                limit: MAX_RESAMPLES as usize,
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn rng(&self) -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(self.seed)
    }
}

/// The median of `sorted` drawn again with replacement: as many as there are. `buffer` is reused.
pub(crate) fn resampled_median(sorted: &[f64], rng: &mut Pcg64Mcg, buffer: &mut Vec<f64>) -> f64 {
    buffer.clear();
    // u32, not usize: the same draws on every machine.
    let count = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
    buffer.extend((0..count).map(|_| sorted[rng.random_range(0..count) as usize]));
    let middle = buffer.len() / 2;
    let odd = buffer.len() % 2 == 1;
    let (lower, upper, _) = buffer.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    if odd {
        return upper;
    }
    let below = lower.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    median_of_sorted(&[below, upper])
}

/// The interval between the percentiles of `draws` around `value`; it always holds `value`.
pub(crate) fn percentile_interval(
    value: f64,
    mut draws: Vec<f64>,
    confidence: Confidence,
) -> Estimate {
    draws.retain(|draw| draw.is_finite());
    draws.sort_unstable_by(f64::total_cmp);
    let (low, high) = if draws.is_empty() {
        (value, value)
    } else {
        let tail = confidence.alpha() / 2.0;
        (quantile_of_sorted(&draws, tail), quantile_of_sorted(&draws, 1.0 - tail))
    };
    Estimate { value, low: low.min(value), high: high.max(value), confidence: confidence.level() }
}

/// Any number computed from the medians of several cells (a saving, a ratio, a weighted mean),
/// with a percentile-bootstrap interval: each cell is drawn again from itself. `statistic` gets
/// the medians in the order of `cells`; draws where it is not finite are left out.
///
/// # Errors
/// [`Error::TooFew`] for a cell below 3 samples or no cell, [`Error::NotFinite`] for a sample that
/// is not finite or a statistic that is not finite on the samples themselves (index 0).
///
/// ```
/// use stats::{Bootstrap, Confidence, bootstrap_medians};
/// let tls12 = [41.0, 40.2, 40.4, 40.3, 40.9];
/// let tls13 = [20.9, 20.3, 20.1, 20.4, 20.2];
/// let saving = bootstrap_medians(&[&tls12, &tls13], Bootstrap::default(), Confidence::C95, |m| m[0] - m[1])?;
/// assert!((saving.value - 20.1).abs() < 1e-9 && saving.low > 19.0 && saving.high < 21.0);
/// # Ok::<(), stats::Error>(())
/// ```
pub fn bootstrap_medians(
    cells: &[&[f64]],
    bootstrap: Bootstrap,
    confidence: Confidence,
    statistic: impl Fn(&[f64]) -> f64,
) -> Result<Estimate, Error> {
    bootstrap.check()?;
    let cells = check_cells(cells)?;
    let mut medians: Vec<f64> = cells.iter().map(Sample::median).collect();
    let value = statistic(&medians);
    if !value.is_finite() {
        return Err(Error::NotFinite { index: 0, value });
    }
    let mut rng = bootstrap.rng();
    let mut buffer = Vec::new();
    let draws = (0..bootstrap.resamples)
        .map(|_| {
            for (median, cell) in medians.iter_mut().zip(&cells) {
                *median = resampled_median(cell.values(), &mut rng, &mut buffer);
            }
            statistic(&medians)
        })
        .collect();
    Ok(percentile_interval(value, draws, confidence))
}

/// Fewer samples in a cell do not vary enough to say how sure they are.
pub(crate) const CELL_MIN: usize = 3;

/// Sorts the cells, each with enough samples.
pub(crate) fn check_cells(cells: &[&[f64]]) -> Result<Vec<Sample>, Error> {
    if cells.is_empty() {
        return Err(Error::TooFew { what: "a bootstrap", needed: 1, have: 0 });
    }
    cells
        .iter()
        .map(|values| {
            if values.len() < CELL_MIN {
                let have = values.len();
                return Err(Error::TooFew {
                    what: "each cell of a bootstrap",
                    needed: CELL_MIN,
                    have,
                });
            }
            Sample::new(values)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let squares: Vec<f64> = (0..30).map(|i| f64::from(i * i)).collect();
        let cells: [&[f64]; 2] = [&squares, &[3.0, 1.0, 7.0, 12.5, 4.25]];
        let of = |seed| {
            let bootstrap = Bootstrap { resamples: 500, seed };
            bootstrap_medians(&cells, bootstrap, Confidence::C95, |m| m[0] - m[1]).unwrap()
        };
        assert_eq!(of(7), of(7));
        assert!((1..20).any(|seed| of(seed) != of(7)));
    }

    #[test]
    fn too_few_and_too_many_are_refused() {
        let of = |cells: &[&[f64]], resamples| {
            bootstrap_medians(cells, Bootstrap { resamples, seed: 1 }, Confidence::C95, |m| {
                m.iter().sum()
            })
        };
        let cell: &[f64] = &[1.0, 2.0, 3.0];
        assert!(matches!(of(&[], 500), Err(Error::TooFew { .. })));
        assert!(matches!(of(&[&[1.0, 2.0]], 500), Err(Error::TooFew { needed: 3, have: 2, .. })));
        assert!(matches!(of(&[cell], 10), Err(Error::TooFew { needed: 200, .. })));
        assert!(matches!(of(&[cell], 2_000_000), Err(Error::TooMany { .. })));
        assert!(matches!(of(&[&[1.0, f64::INFINITY, 2.0]], 500), Err(Error::NotFinite { .. })));
        assert!(of(&[cell], 500).is_ok());
    }

    #[test]
    fn resampled_medians_are_medians_of_samples() {
        let mut rng = Bootstrap::default().rng();
        let mut buffer = Vec::new();
        for _ in 0..200 {
            let median = resampled_median(&[1.0, 2.0, 4.0, 8.0], &mut rng, &mut buffer);
            assert!(
                [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 4.5, 5.0, 6.0, 8.0].contains(&median),
                "{median}"
            );
        }
    }
}
