//! How throughput grows with cores: the Universal Scalability Law (Gunther, *Guerrilla Capacity
//! Planning*, 2007, §4), fitted where enough cores were measured.
//!
//! X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)): λ is the rate of one core, σ the share of work that
//! waits for its turn (contention), κ the cost of keeping the cores' views of memory together
//! (coherency), which bends the curve down again. Pure: no clock, no files; seeds are arguments.
//!
//! N / X is linear in 1/λ, σ/λ and κ/λ, so the fit is a weighted linear least-squares problem with
//! three coefficients that cannot be negative. It is solved exactly: with three coefficients every
//! set of those that are zero is tried.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};
use stats::{Confidence, Estimate};
use thiserror::Error;

/// Core counts that a fit needs: three coefficients, and as many again to see whether they hold.
pub const LEAST_COUNTS: usize = 6;

/// Why there is no curve.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ScalingError {
    /// Too few core counts.
    #[error(
        "a scaling curve needs {LEAST_COUNTS} core counts or more and got {have}; more threads than cores is not scaling"
    )]
    TooFew {
        /// How many there were.
        have: usize,
    },
    /// A rate that is not above 0 and finite.
    #[error("{cores} cores with a rate of {rate}: expected one above 0")]
    NotARate {
        /// The core count.
        cores: u32,
        /// The first such rate, per second.
        rate: f64,
    },
    /// A core count of 0, or one without rates.
    #[error("{0} cores without a rate: expected one core or more, and its rates")]
    NoRates(u32),
    /// A core count that appears twice.
    #[error("{0} cores appear twice")]
    Twice(u32),
    /// No coefficients fit.
    #[error("no curve of the law goes through these rates")]
    NoFit,
}

/// The law with its coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// λ: the rate of one core, per second.
    pub lambda: f64,
    /// σ: contention, a share.
    pub sigma: f64,
    /// κ: coherency, a share.
    pub kappa: f64,
}

impl Law {
    /// The rate of `cores` cores.
    #[must_use]
    pub fn at(&self, cores: f64) -> f64 {
        let Law { lambda, sigma, kappa } = self;
        lambda * cores / (1.0 + sigma * (cores - 1.0) + kappa * cores * (cores - 1.0))
    }

    /// The core count beyond which more cores do less; `None` where there is none.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        let at = ((1.0 - self.sigma) / self.kappa).sqrt();
        (self.kappa > 0.0 && at.is_finite()).then_some(at.max(1.0))
    }
}

/// The rates that were measured with so many cores.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Cores, each with a thread of its own.
    pub cores: u32,
    /// Repeated measurements, per second.
    pub rates: Vec<f64>,
}

/// A point that was left out and predicted from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The number of cores of that point.
    pub cores: u32,
    /// What was measured.
    pub measured: f64,
    /// What a fit through the others says.
    pub predicted: f64,
}

impl LeftOut {
    /// How far off the prediction is, as a share of what was measured.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// A fitted curve and how far to believe it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The curve through the medians.
    pub law: Law,
    /// λ with its interval.
    pub lambda: Estimate,
    /// σ with its interval.
    pub sigma: Estimate,
    /// κ with its interval.
    pub kappa: Estimate,
    /// Greatest core count measured.
    pub cores: u32,
    /// Each count left out once, the others fitted.
    pub left_out: Vec<LeftOut>,
    /// Curves of the bootstrap.
    #[serde(skip)]
    draws: Vec<Law>,
    /// Relative residuals, widened for their leverage.
    #[serde(skip)]
    residuals: Vec<f64>,
}

/// How often the rates are drawn again.
const RESAMPLES: usize = 1000;

impl Fit {
    /// Fits the law to rates at different core counts, by least squares of relative errors over the
    /// medians. Intervals are 95 %: each count's rates are drawn again from themselves, and the
    /// curve's own residuals are put on top, so that both noise and misfit are in them.
    ///
    /// # Errors
    /// [`ScalingError`].
    pub fn new(points: &[Rates], seed: u64) -> Result<Fit, ScalingError> {
        let medians = medians(points)?;
        if medians.len() < LEAST_COUNTS {
            return Err(ScalingError::TooFew { have: medians.len() });
        }
        let law = least_squares(&medians).ok_or(ScalingError::NoFit)?;
        let left_out = left_out(&medians);
        // A residual of the fit is smaller than that of a new point: what the point pulled the
        // curve towards itself is missing. Leaving it out gives it back.
        let residuals: Vec<f64> = left_out.iter().map(LeftOut::error).collect();
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let draws: Vec<Law> = (0..RESAMPLES)
            .filter_map(|_| {
                let drawn = points.iter().zip(&medians).map(|(point, (cores, median))| {
                    let noise = drawn_median(&point.rates, &mut rng) / median;
                    let misfit = 1.0 + drawn(&residuals, &mut rng).unwrap_or(0.0);
                    (*cores, law.at(*cores) * noise * misfit.max(0.05))
                });
                least_squares(&drawn.collect::<Vec<_>>())
            })
            .collect();
        let interval = |value: f64, of: fn(&Law) -> f64| interval(value, draws.iter().map(of));
        Ok(Fit {
            law,
            lambda: interval(law.lambda, |law| law.lambda),
            sigma: interval(law.sigma, |law| law.sigma),
            kappa: interval(law.kappa, |law| law.kappa),
            cores: points.iter().map(|point| point.cores).max().unwrap_or(0),
            left_out,
            residuals,
            draws,
        })
    }

    /// The rate of `cores` cores with the 95 % interval for one further measurement there.
    #[must_use]
    pub fn predict(&self, cores: u32, seed: u64) -> Estimate {
        let cores = f64::from(cores);
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let drawn = self
            .draws
            .iter()
            .map(|law| law.at(cores) * (1.0 + drawn(&self.residuals, &mut rng).unwrap_or(0.0)));
        interval(self.law.at(cores), drawn)
    }

    /// The worst of the predictions of a point that was left out, as a share.
    #[must_use]
    pub fn worst_error(&self) -> f64 {
        self.left_out.iter().map(|left_out| left_out.error().abs()).fold(0.0, f64::max)
    }
}

/// (cores, median rate), checked.
fn medians(points: &[Rates]) -> Result<Vec<(f64, f64)>, ScalingError> {
    let mut seen = std::collections::BTreeSet::new();
    let median = |point: &Rates| {
        let Rates { cores, rates } = point;
        let wrong = rates.iter().find(|rate| !(rate.is_finite() && **rate > 0.0));
        if let Some(rate) = wrong.copied() {
            return Err(ScalingError::NotARate { cores: *cores, rate });
        }
        if *cores == 0 {
            return Err(ScalingError::NoRates(0));
        }
        if !seen.insert(*cores) {
            return Err(ScalingError::Twice(*cores));
        }
        let sample = stats::Sample::new(rates);
        let median = sample.map_err(|_| ScalingError::NoRates(*cores))?;
        Ok((f64::from(*cores), median.median()))
    };
    points.iter().map(median).collect()
}

fn left_out(medians: &[(f64, f64)]) -> Vec<LeftOut> {
    let without = |out: usize| {
        let others = medians.iter().enumerate().filter(move |(at, _)| *at != out);
        others.map(|(_, point)| *point).collect::<Vec<_>>()
    };
    let predicted = medians.iter().enumerate().filter_map(|(out, (cores, measured))| {
        let law = least_squares(&without(out))?;
        let (measured, predicted) = (*measured, law.at(*cores));
        Some(LeftOut { cores: *cores as u32, measured, predicted })
    });
    predicted.collect()
}

/// One of `values`, by chance.
fn drawn(values: &[f64], rng: &mut Pcg64Mcg) -> Option<f64> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    values.get(rng.random_range(0..count) as usize).copied()
}

/// The median of as many values as there are, each drawn from all.
fn drawn_median(values: &[f64], rng: &mut Pcg64Mcg) -> f64 {
    let again: Vec<f64> = values.iter().filter_map(|_| drawn(values, rng)).collect();
    stats::median(&again).unwrap_or(f64::NAN)
}

fn interval(value: f64, draws: impl Iterator<Item = f64>) -> Estimate {
    let draws: Vec<f64> = draws.filter(|draw| draw.is_finite()).collect();
    let confidence = Confidence::C95.level();
    let ends = stats::Sample::from_vec(draws).ok().and_then(|draws| {
        let tail = (1.0 - confidence) / 2.0;
        Some((draws.quantile(tail).ok()?, draws.quantile(1.0 - tail).ok()?))
    });
    let (low, high) = ends.unwrap_or((value, value));
    Estimate { value, low: low.min(value), high: high.max(value), confidence }
}

/// The law that comes nearest to (cores, rate) by relative error; `None` where none does.
fn least_squares(points: &[(f64, f64)]) -> Option<Law> {
    // Each row is divided by its own y = N / X: every rate then counts by its relative error, and
    // the right side is 1.
    let rows: Vec<[f64; 3]> = points
        .iter()
        .map(|(n, rate)| [1.0, n - 1.0, n * (n - 1.0)].map(|basis| basis * rate / n))
        .collect();
    let cost = |a: &[f64; 3]| -> f64 {
        let error = |row: &[f64; 3]| 1.0 - row.iter().zip(a).map(|(r, a)| r * a).sum::<f64>();
        rows.iter().map(|row| error(row).powi(2)).sum()
    };
    // 1/λ is always there; σ/λ and κ/λ may be zero.
    let sets: [&[usize]; 4] = [&[0], &[0, 1], &[0, 2], &[0, 1, 2]];
    let solutions = sets.iter().filter_map(|set| solve(&rows, set));
    let feasible = solutions.filter(|a| a[0] > 0.0 && a.iter().all(|a| a.is_finite() && *a >= 0.0));
    let best = feasible.min_by(|a, b| cost(a).total_cmp(&cost(b)))?;
    let [inverse, contention, coherency] = best;
    Some(Law { lambda: 1.0 / inverse, sigma: contention / inverse, kappa: coherency / inverse })
}

/// Least squares over the columns in `set`; the others are zero.
fn solve(rows: &[[f64; 3]], set: &[usize]) -> Option<[f64; 3]> {
    // Columns of like length keep the elimination exact enough: n (n - 1) grows to thousands.
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at).copied());
    let lengths: Vec<f64> =
        set.iter().map(|at| column(*at).map(|x| x * x).sum::<f64>().sqrt()).collect();
    if lengths.iter().any(|length| !(length.is_finite() && *length > 0.0)) {
        return None;
    }
    let mut columns: Vec<Vec<f64>> = set
        .iter()
        .zip(&lengths)
        .map(|(at, length)| column(*at).map(|x| x / length).collect())
        .collect();
    // Gram-Schmidt twice over (QR): no normal equations, whose condition is the square.
    let mut right: Vec<f64> = vec![1.0; rows.len()];
    let count = columns.len();
    let mut upper = vec![vec![0.0; count]; count];
    let mut along = vec![0.0; count];
    for at in 0..count {
        let (before, rest) = columns.split_at_mut(at);
        let own = rest.first_mut()?;
        for _ in 0..2 {
            for (other, q) in before.iter().enumerate() {
                let shared = dot(q, own);
                *upper.get_mut(other)?.get_mut(at)? += shared;
                own.iter_mut().zip(q).for_each(|(own, q)| *own -= shared * q);
            }
        }
        let length = dot(own, own).sqrt();
        // No number is none, too.
        if length.is_nan() || length <= 1e-12 {
            return None;
        }
        own.iter_mut().for_each(|own| *own /= length);
        *upper.get_mut(at)?.get_mut(at)? = length;
        let shared = dot(own, &right);
        *along.get_mut(at)? = shared;
        right.iter_mut().zip(&*own).for_each(|(right, q)| *right -= shared * q);
    }
    let mut solved = vec![0.0; count];
    for at in (0..count).rev() {
        let row = upper.get(at)?;
        let known: f64 = row.iter().zip(&solved).skip(at + 1).map(|(u, x)| u * x).sum();
        *solved.get_mut(at)? = (along.get(at)? - known) / row.get(at)?;
    }
    let mut all = [0.0; 3];
    for ((at, value), length) in set.iter().zip(solved).zip(lengths) {
        *all.get_mut(*at)? = value / length;
    }
    Some(all)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
