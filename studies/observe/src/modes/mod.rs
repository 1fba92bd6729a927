//! Modes found, not eyed: a mixture of normal distributions of the logarithm of time, its size chosen by
//! the Bayesian information criterion, and a kernel density beside it as a cross-check.
//!
//! Pure: the same values and seed give the same modes, bit for bit, on any number of threads: what is drawn
//! is drawn by one.

mod density;
mod mixture;
mod side_by_side;
#[cfg(test)]
mod tests;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;
use stats::Estimate;

pub use density::{Density, Peak};
use mixture::Mixture;
use side_by_side::{both, side_by_side};

/// Fewer values show no modes.
pub const FEWEST: usize = 20;
/// More values than this are thinned to evenly spaced ranks: the distribution stays, the work is
/// bounded.
const MOST: usize = 1000;
/// Components of a mixture, at most.
const COMPONENTS: usize = 5;
/// Shorter times count as this, in ms: a logarithm needs one.
const LEAST_MS: f64 = 0.01;
/// Longer times count as this, in ms.
const GREATEST_MS: f64 = 1e9;
/// Times drawn again for the intervals.
const RESAMPLES: usize = 200;
/// A mode holds at least this share of the values...
const LEAST_SHARE: f64 = 0.02;
/// ... and at least this many of them.
const LEAST_VALUES: f64 = 5.0;

/// A mode of a distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mode {
    /// Its middle, in ms: the mean of its part of the mixture, on the logarithm. It is steadier than
    /// the top of the density, which [`Density::peaks`] has.
    pub place_ms: Estimate,
    /// Its share of the values.
    pub weight: Estimate,
    /// Half the width between the points one standard deviation (of the logarithm) off, in ms.
    pub spread_ms: Estimate,
}

/// The modes of a distribution of times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Modes {
    /// Values that it rests on.
    pub values: usize,
    /// The modes, by place. Several components of the mixture that make one hump are one mode.
    pub modes: Vec<Mode>,
    /// Share of the values that belongs to no mode: outliers.
    pub outliers: f64,
    /// The criterion for 1, 2, ... components; the least is best.
    pub criterion: Vec<f64>,
    /// Components of the chosen mixture.
    pub components: usize,
    /// The kernel density's maxima.
    pub density: Density,
    /// Whether the kernel density has a maximum at each mode, and as many.
    pub confirmed: bool,
    #[serde(skip)]
    mixture: Mixture,
    /// The mode of each component; `None` for outliers.
    #[serde(skip)]
    groups: Vec<Option<usize>>,
}

impl Modes {
    /// The mode that a time most likely belongs to.
    #[must_use]
    pub fn mode_of(&self, ms: f64) -> Option<usize> {
        let log = logarithm(ms)?;
        let mut shares = vec![0.0; self.modes.len()];
        for (component, group) in self.mixture.components().iter().zip(&self.groups) {
            if let Some(share) = group.and_then(|group| shares.get_mut(group)) {
                *share += component.density(log);
            }
        }
        let best = shares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        if *best.1 > 0.0 {
            return Some(best.0);
        }
        // Far from all: the nearest.
        let far = |mode: &Mode| logarithm(mode.place_ms.value).map(|place| (place - log).abs());
        let nearest =
            self.modes.iter().enumerate().min_by(|a, b| {
                far(a.1).unwrap_or(f64::MAX).total_cmp(&far(b.1).unwrap_or(f64::MAX))
            });
        nearest.map(|(at, _)| at)
    }
}

/// The modes of `times` in ms, drawn by `seed`, on so many threads. Values that are negative or not finite
/// are left out. `None` with fewer than [`FEWEST`] others.
#[must_use]
pub fn modes(times: &[f64], seed: u64, threads: usize) -> Option<Modes> {
    let mut logs: Vec<f64> = times.iter().filter_map(|ms| logarithm(*ms)).collect();
    let values = logs.len();
    if values < FEWEST {
        return None;
    }
    logs.sort_unstable_by(f64::total_cmp);
    let logs = thinned(logs);
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let starts = mixture::starts(&logs, COMPONENTS, &mut rng);
    let (fitted, density) = both(
        threads,
        || side_by_side(threads, &starts, |start| start.fitted(&logs)),
        || density::density(&logs),
    );
    let candidates: Vec<(Mixture, f64)> =
        (1..=COMPONENTS).map(|count| mixture::best(&fitted, count, logs.len())).collect();
    let criterion: Vec<f64> = candidates.iter().map(|(_, criterion)| *criterion).collect();
    let best = candidates.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (mixture, _) = best?;
    let (groups, count) = humps(&mixture, &density, logs.len());
    let found = measure(&mixture, &groups, count);
    let draws = side_by_side(threads, &resamples(&logs, &mut rng), |drawn| {
        measure(&mixture.refined(drawn), &groups, count)
    });
    let modes: Vec<Mode> =
        found.iter().enumerate().map(|(at, shape)| with_interval(at, shape, &draws)).collect();
    let confirmed = density.peaks.len() == modes.len()
        && modes.iter().all(|mode| density.has_peak_at(mode.place_ms.value, mode.spread_ms.value));
    let in_modes: f64 = found.iter().map(|shape| shape.weight).sum();
    Some(Modes {
        values,
        modes,
        outliers: (1.0 - in_modes).max(0.0),
        criterion,
        components: mixture.components().len(),
        density,
        confirmed,
        mixture,
        groups,
    })
}

fn logarithm(ms: f64) -> Option<f64> {
    (ms.is_finite() && ms >= 0.0).then(|| ms.clamp(LEAST_MS, GREATEST_MS).ln())
}

/// At most [`MOST`] of the sorted values, by evenly spaced ranks.
fn thinned(sorted: Vec<f64>) -> Vec<f64> {
    if sorted.len() <= MOST {
        return sorted;
    }
    let rank = |at: usize| (2 * at + 1) * sorted.len() / (2 * MOST);
    (0..MOST).filter_map(|at| sorted.get(rank(at)).copied()).collect()
}

/// What is measured of a mode, on the logarithm but for the weight.
#[derive(Debug, Clone, Copy)]
struct Shape {
    place: f64,
    weight: f64,
    deviation: f64,
}

impl Shape {
    fn place_ms(&self) -> f64 {
        self.place.exp()
    }

    fn spread_ms(&self) -> f64 {
        ((self.place + self.deviation).exp() - (self.place - self.deviation).exp()) / 2.0
    }
}

/// To which hump each component belongs, and how many humps there are, by place. A component is of the
/// hump whose top is reached uphill from its middle. Two humps are two only if the kernel density falls
/// between them too: what is no normal distribution may take several, and is one hump.
fn humps(mixture: &Mixture, density: &Density, values: usize) -> (Vec<Option<usize>>, usize) {
    let climbed: Vec<f64> =
        mixture.components().iter().map(|component| mixture.top_from(component.mean)).collect();
    let mut tops = climbed.clone();
    tops.sort_unstable_by(f64::total_cmp);
    tops.dedup_by(|next, kept| {
        mixture.is_one_hump(*kept, *next) || density.is_one_hump(*kept, *next)
    });
    let of = |top: f64| {
        let near =
            |a: &(usize, &f64), b: &(usize, &f64)| (a.1 - top).abs().total_cmp(&(b.1 - top).abs());
        tops.iter().enumerate().min_by(near).map(|(at, _)| at)
    };
    let groups: Vec<Option<usize>> = climbed.iter().map(|top| of(*top)).collect();
    let shapes = measure(mixture, &groups, tops.len());
    let least = LEAST_SHARE.max(LEAST_VALUES / values as f64);
    let mut kept: Vec<(usize, &Shape)> =
        shapes.iter().enumerate().filter(|(_, shape)| shape.weight >= least).collect();
    kept.sort_by(|a, b| a.1.place.total_cmp(&b.1.place));
    let place = |group: Option<usize>| kept.iter().position(|(at, _)| Some(*at) == group);
    (groups.into_iter().map(place).collect(), kept.len())
}

fn measure(mixture: &Mixture, groups: &[Option<usize>], count: usize) -> Vec<Shape> {
    let one = |at: usize| {
        let own = || {
            let all = mixture.components().iter().zip(groups);
            all.filter(move |(_, group)| **group == Some(at)).map(|(component, _)| component)
        };
        let weight: f64 = own().map(|component| component.weight).sum();
        let place = own().map(|c| c.weight * c.mean).sum::<f64>() / weight;
        let second = |c: &mixture::Component| {
            c.weight * (c.deviation * c.deviation + (c.mean - place) * (c.mean - place))
        };
        let deviation = (own().map(second).sum::<f64>() / weight).sqrt();
        Shape { place, weight, deviation }
    };
    (0..count).map(one).collect()
}

/// The values drawn again, with repetition, for the intervals.
fn resamples(logs: &[f64], rng: &mut Pcg64Mcg) -> Vec<Vec<f64>> {
    // u32, not usize: the same draws on every machine.
    let count = u32::try_from(logs.len()).unwrap_or(u32::MAX);
    let mut draw = |_| logs.get(rng.random_range(0..count) as usize).copied();
    (0..RESAMPLES).map(|_| (0..count).filter_map(&mut draw).collect()).collect()
}

fn with_interval(at: usize, shape: &Shape, draws: &[Vec<Shape>]) -> Mode {
    let of = |value: f64, read: fn(&Shape) -> f64| {
        let mut all: Vec<f64> = draws
            .iter()
            .filter_map(|draw| draw.get(at))
            .map(read)
            .filter(|v| v.is_finite())
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        let rank = |p: f64| {
            let last = all.len().saturating_sub(1) as f64;
            all.get((p * last).round() as usize).copied().unwrap_or(value)
        };
        let (low, high) = (rank(0.025).min(value), rank(0.975).max(value));
        Estimate { value, low, high, confidence: 0.95 }
    };
    Mode {
        place_ms: of(shape.place_ms(), Shape::place_ms),
        weight: of(shape.weight, |shape| shape.weight),
        spread_ms: of(shape.spread_ms(), Shape::spread_ms),
    }
}
