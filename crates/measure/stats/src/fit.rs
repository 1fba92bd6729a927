//! A line through the medians of cells: time = slope × RTT + intercept.
//!
//! The line has the least sum of weighted absolute residuals over the cell medians (least absolute
//! deviations). Weighted least squares would be a little sharper if every cell kept to the line,
//! but one cell that something else disturbed, a background job during one RTT, tilts it; under
//! absolute residuals the other cells outvote it, and it shows as a large residual instead.
//!
//! Such a line passes through two of the cells: of three, the third alone has a residual, however
//! the error is spread over them. Read the residuals beside the line.
//!
//! A cell weighs 1 unless its median is less sure than that of the usual cell; then it weighs less
//! in proportion. None weighs more than 1: what keeps an exact cell off the line is the emulator's
//! error, which more repeats do not reduce. Weights are taken once, from the samples as measured.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{check_cells, percentile_interval, resampled_median};
use crate::error::finite;
use crate::sample::median_of_sorted;
use crate::{Bootstrap, Confidence, Error, Estimate, Sample};

/// The samples measured at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell<'a> {
    /// The place, such as an RTT in ms.
    pub x: f64,
    /// What was measured there; 3 at least.
    pub samples: &'a [f64],
}

/// A line, y = slope × x + intercept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// y per x.
    pub slope: f64,
    /// y at x = 0.
    pub intercept: f64,
}

impl Line {
    /// y at `x`.
    #[must_use]
    pub fn at(self, x: f64) -> f64 {
        self.slope * x + self.intercept
    }
}

/// How far a cell lies from the line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// The cell's x, as it was given.
    pub x: f64,
    /// The median of the cell's samples.
    pub median: f64,
    /// What the line says.
    pub fitted: f64,
    /// `median - fitted`.
    pub residual: f64,
    /// How many samples the cell has.
    pub count: usize,
    /// How much the cell counted: 1, or less where its median is less sure than usual.
    pub weight: f64,
}

/// A line with intervals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineFit {
    /// y per x: round trips, where x is the RTT and y a time in the same unit.
    pub slope: Estimate,
    /// y at x = 0: what does not grow with x.
    pub intercept: Estimate,
    /// The cells in the order given.
    pub residuals: Vec<Residual>,
}

impl LineFit {
    /// The line without its intervals.
    #[must_use]
    pub fn line(&self) -> Line {
        Line { slope: self.slope.value, intercept: self.intercept.value }
    }
}

/// More cells than a sweep has; the fit takes cells² × log cells a resample.
const MAX_CELLS: usize = 200;

/// Fits medians = slope × x + intercept, with percentile-bootstrap intervals from resampling inside
/// each cell. Nothing is constrained: a negative intercept is reported as it is. The intervals
/// speak of chance in the samples; an error that a whole cell shares shows in the residuals only.
///
/// # Errors
/// [`Error::OneX`] below 2 different x, [`Error::TooFew`] for a cell below 3 samples,
/// [`Error::NotFinite`], [`Error::TooMany`] above 200 cells or a million resamples.
///
/// ```
/// use stats::{Bootstrap, Cell, Confidence, fit_medians};
/// let near = [2.8, 2.9, 3.0, 2.9];
/// let far = [172.9, 172.8, 173.1, 173.0];
/// let cells = [Cell { x: 0.4, samples: &near }, Cell { x: 85.5, samples: &far }];
/// let fit = fit_medians(&cells, Bootstrap::default(), Confidence::C95)?;
/// assert!(fit.slope.contains(2.0) && fit.intercept.contains(2.1));
/// # Ok::<(), stats::Error>(())
/// ```
pub fn fit_medians(
    cells: &[Cell<'_>],
    bootstrap: Bootstrap,
    confidence: Confidence,
) -> Result<LineFit, Error> {
    bootstrap.check()?;
    let xs: Vec<f64> = cells.iter().map(|cell| cell.x).collect();
    check_xs(&xs)?;
    let slices: Vec<&[f64]> = cells.iter().map(|cell| cell.samples).collect();
    let samples = check_cells(&slices)?;
    let weights = weights(&samples);
    let medians: Vec<f64> = samples.iter().map(Sample::median).collect();
    let line = least_absolute(&xs, &medians, &weights);

    let mut rng = bootstrap.rng();
    let mut buffer = Vec::new();
    let mut drawn = medians.clone();
    let (mut slopes, mut intercepts) = (Vec::new(), Vec::new());
    for _ in 0..bootstrap.resamples {
        for (median, sample) in drawn.iter_mut().zip(&samples) {
            *median = resampled_median(sample.values(), &mut rng, &mut buffer);
        }
        let Line { slope, intercept } = least_absolute(&xs, &drawn, &weights);
        slopes.push(slope);
        intercepts.push(intercept);
    }
    let residuals = xs
        .iter()
        .zip(&medians)
        .zip(samples.iter().zip(&weights))
        .map(|((&x, &median), (sample, &weight))| {
            let fitted = line.at(x);
            Residual { x, median, fitted, residual: median - fitted, count: sample.len(), weight }
        })
        .collect();
    Ok(LineFit {
        slope: percentile_interval(line.slope, slopes, confidence),
        intercept: percentile_interval(line.intercept, intercepts, confidence),
        residuals,
    })
}

/// The line of least absolute deviations through points of equal weight, without intervals: for
/// published figures, and for plans too small to say how sure they are.
///
/// # Errors
/// [`Error::OneX`], [`Error::NotFinite`], [`Error::TooMany`] as for [`fit_medians`];
/// [`Error::Unpaired`] when there are not as many y as x.
pub fn fit_line(xs: &[f64], ys: &[f64]) -> Result<Line, Error> {
    if xs.len() != ys.len() {
        return Err(Error::Unpaired { a: xs.len(), b: ys.len() });
    }
    check_xs(xs)?;
    finite(ys)?;
    Ok(least_absolute(xs, ys, &vec![1.0; xs.len()]))
}

fn check_xs(xs: &[f64]) -> Result<(), Error> {
    finite(xs)?;
    if xs.len() > MAX_CELLS {
        return Err(Error::TooMany {
            what: "the number of cells",
            have: xs.len(),
            limit: MAX_CELLS,
        });
    }
    let mut sorted = xs.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.dedup();
    if sorted.len() < 2 {
        return Err(Error::OneX { distinct: sorted.len() });
    }
    Ok(())
}

/// 1, or the usual standard error of a median over the cell's where that is larger.
fn weights(samples: &[Sample]) -> Vec<f64> {
    // For normal samples the error of the median goes as MAD / sqrt(n); only ratios matter here.
    let errors: Vec<f64> = samples.iter().map(|s| s.mad() / (s.len() as f64).sqrt()).collect();
    let mut sorted = errors.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let usual = median_of_sorted(&sorted);
    errors
        .iter()
        .map(|&error| if error > usual && usual > 0.0 { usual / error } else { 1.0 })
        .collect()
}

/// The line with the least Σ w |y - line(x)|. One of the optimal lines passes through a point (two,
/// in fact), so the best line through each point is found, exactly, as a weighted median of
/// slopes; of those the best wins, on a tie the one with the smaller sum of squares.
fn least_absolute(xs: &[f64], ys: &[f64], weights: &[f64]) -> Line {
    let mut best: Option<(f64, f64, Line)> = None;
    let mut slopes: Vec<(f64, f64)> = Vec::with_capacity(xs.len());
    for (&x, &y) in xs.iter().zip(ys) {
        slopes.clear();
        for ((&other_x, &other_y), &weight) in xs.iter().zip(ys).zip(weights) {
            let run = other_x - x;
            if run != 0.0 {
                slopes.push(((other_y - y) / run, weight * run.abs()));
            }
        }
        for slope in weighted_medians(&mut slopes) {
            let line = Line { slope, intercept: y - slope * x };
            let (mut sum, mut squares) = (0.0, 0.0);
            for ((&x, &y), &weight) in xs.iter().zip(ys).zip(weights) {
                let residual = y - line.at(x);
                sum += weight * residual.abs();
                squares += weight * residual * residual;
            }
            // Sums that differ by rounding only are a tie.
            let better = best.is_none_or(|(best_sum, best_squares, _)| {
                let slack = 1e-12 * best_sum.abs();
                sum < best_sum - slack || (sum <= best_sum + slack && squares < best_squares)
            });
            if better {
                best = Some((sum, squares, line));
            }
        }
    }
    best.map_or(Line { slope: f64::NAN, intercept: f64::NAN }, |(_, _, line)| line)
}

/// The value at which half the weight is reached, and the next one where it is reached exactly.
fn weighted_medians(values: &mut [(f64, f64)]) -> impl Iterator<Item = f64> {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let mut lower = None;
    let mut upper = None;
    for &(value, weight) in values.iter() {
        sum += weight;
        if lower.is_none() && sum >= half * (1.0 - 1e-12) {
            lower = Some(value);
        }
        if sum > half * (1.0 + 1e-12) {
            upper = Some(value);
            break;
        }
    }
    let upper = upper.filter(|upper| Some(*upper) != lower);
    lower.into_iter().chain(upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTTS: [f64; 6] = [0.4, 11.6, 20.0, 50.0, 85.5, 200.0];

    fn fit(cells: &[(f64, Vec<f64>)]) -> Result<LineFit, Error> {
        let cells: Vec<Cell> = cells.iter().map(|(x, samples)| Cell { x: *x, samples }).collect();
        fit_medians(&cells, Bootstrap { resamples: 400, seed: 5 }, Confidence::C95)
    }

    #[test]
    fn one_disturbed_cell_does_not_tilt_the_line() {
        let mut cells: Vec<(f64, Vec<f64>)> = RTTS
            .iter()
            .map(|&x| {
                (x, [0.0, 0.01, 0.02, 0.03, 0.04].map(|noise| 2.0 * x + 1.5 + noise).to_vec())
            })
            .collect();
        for value in &mut cells[3].1 {
            *value += 30.0;
        }
        let fit = fit(&cells).unwrap();
        assert!((fit.slope.value - 2.0).abs() < 1e-9, "{fit:?}");
        assert!((fit.intercept.value - 1.52).abs() < 1e-9, "{fit:?}");
        assert!((fit.residuals[3].residual - 30.0).abs() < 1e-9);
        assert!(fit.slope.contains(2.0) && fit.intercept.contains(1.52));
    }

    #[test]
    fn an_outlier_does_not_pull() {
        // The optimum by enumeration of all pairs of points: slope 2.05, intercept 1.
        let xs = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let line = fit_line(&xs, &[1.0, 3.0, 5.5, 7.1, 9.2, 11.0, 40.0]).unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(line.slope, 2.05) && close(line.intercept, 1.0), "{line:?}");
    }

    #[test]
    fn what_has_no_line_is_refused() {
        let cell = vec![1.0, 2.0, 3.0];
        assert!(matches!(fit(&[]), Err(Error::OneX { distinct: 0 })));
        assert!(matches!(
            fit(&[(1.0, cell.clone()), (1.0, cell.clone())]),
            Err(Error::OneX { distinct: 1 })
        ));
        assert!(matches!(
            fit(&[(1.0, cell.clone()), (2.0, vec![1.0])]),
            Err(Error::TooFew { needed: 3, have: 1, .. })
        ));
        assert!(matches!(
            fit(&[(1.0, cell.clone()), (f64::NAN, cell.clone())]),
            Err(Error::NotFinite { index: 1, .. })
        ));
        let many: Vec<_> = (0..201).map(|x| (f64::from(x), cell.clone())).collect();
        assert!(matches!(fit(&many), Err(Error::TooMany { .. })));
        assert!(matches!(fit_line(&[1.0], &[]), Err(Error::Unpaired { .. })));
    }

    #[test]
    fn a_noisy_cell_weighs_less() {
        let quiet = vec![1.0, 1.1, 1.2, 1.3, 1.4];
        let noisy = quiet.iter().map(|v| v * 10.0).collect::<Vec<_>>();
        let fit = fit(&[(0.0, quiet.clone()), (1.0, quiet.clone()), (2.0, quiet), (3.0, noisy)]);
        let weights: Vec<f64> = fit.unwrap().residuals.iter().map(|r| r.weight).collect();
        assert!(weights[..3] == [1.0; 3] && (weights[3] - 0.1).abs() < 1e-9, "{weights:?}");
    }

    proptest! {
        #[test]
        fn exact_lines_are_recovered(
            slope in -10.0f64..10.0, intercept in -100.0f64..100.0, cells in 2usize..7,
        ) {
            let cells: Vec<_> = RTTS[..cells.min(6)]
                .iter()
                .map(|&x| (x, vec![slope * x + intercept; 3]))
                .collect();
            let fit = fit(&cells).unwrap();
            prop_assert!((fit.slope.value - slope).abs() < 1e-9);
            prop_assert!((fit.intercept.value - intercept).abs() < 1e-8);
            prop_assert!(fit.slope.high - fit.slope.low < 1e-9);
        }

        #[test]
        fn no_line_through_two_of_the_points_is_better(
            ys in prop::collection::vec(-50i32..50, 6), heavy in 0usize..6,
        ) {
            let ys: Vec<f64> = ys.into_iter().map(f64::from).collect();
            let mut weights = [1.0; 6];
            weights[heavy] = 0.3;
            let cost = |line: Line| -> f64 {
                (0..6).map(|i| weights[i] * (ys[i] - line.at(RTTS[i])).abs()).sum()
            };
            let best = cost(least_absolute(&RTTS, &ys, &weights));
            for i in 0..6 {
                for j in 0..i {
                    let slope = (ys[i] - ys[j]) / (RTTS[i] - RTTS[j]);
                    let line = Line { slope, intercept: ys[i] - slope * RTTS[i] };
                    prop_assert!(best <= cost(line) + 1e-9);
                }
            }
        }

        #[test]
        fn nothing_panics(xs in prop::collection::vec(any::<f64>(), 0..5), ys in prop::collection::vec(any::<f64>(), 3)) {
            let cells: Vec<_> = xs.into_iter().map(|x| (x, ys.clone())).collect();
            let _ = fit(&cells);
        }
    }
}
