//! Mixtures of normal distributions, fitted by expectation and maximisation (Dempster, Laird and Rubin
//! 1977) from seeded starts (k-means++, Arthur and Vassilvitskii 2007).

use std::f64::consts::TAU;

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// The least standard deviation of a logarithm: times within 2 % of each other are not told apart. It
/// also keeps a component from closing in on one value.
const NARROWEST: f64 = 0.02;
/// Starts of each fit; the best counts.
const STARTS: usize = 6;
const ROUNDS: usize = 200;
/// Rounds for a resample, which begins at the fit to all.
const REFINING: usize = 15;
/// Gain of log-likelihood a value below which a fit is done.
const DONE: f64 = 1e-7;

/// One normal distribution of a mixture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Component {
    pub weight: f64,
    pub mean: f64,
    pub deviation: f64,
}

impl Component {
    /// Its part of the mixture's density.
    pub(super) fn density(&self, at: f64) -> f64 {
        let z = (at - self.mean) / self.deviation;
        self.weight * (-z * z / 2.0).exp() / (self.deviation * TAU.sqrt())
    }

    /// The two terms of the logarithm of its density that are the same everywhere.
    fn log_terms(&self) -> [f64; 2] {
        [self.weight.max(f64::MIN_POSITIVE).ln(), (self.deviation * TAU.sqrt()).ln()]
    }

    fn log_density(&self, at: f64, [weight, width]: [f64; 2]) -> f64 {
        let z = (at - self.mean) / self.deviation;
        weight - z * z / 2.0 - width
    }
}

/// A mixture of normal distributions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mixture(Vec<Component>);

/// A mixture fitted to values, and the logarithm of its likelihood.
pub(super) type Fitted = (Mixture, f64);

/// Where the fits of 1 to `most` components to sorted values begin, drawn one after the other.
pub(super) fn starts(sorted: &[f64], most: usize, rng: &mut Pcg64Mcg) -> Vec<Mixture> {
    let starts = |count| if count == 1 { 1 } else { STARTS };
    let counts = (1..=most).flat_map(|count| std::iter::repeat_n(count, starts(count)));
    counts.map(|count| Mixture::start(sorted, count, rng)).collect()
}

/// The best of the fits of `count` components to so many values. Also the criterion: the less the better.
pub(super) fn best(fitted: &[Fitted], count: usize, values: usize) -> (Mixture, f64) {
    let mut best: Option<&Fitted> = None;
    for fit in fitted.iter().filter(|(mixture, _)| mixture.0.len() == count) {
        if best.is_none_or(|(_, before)| fit.1 > *before) {
            best = Some(fit);
        }
    }
    let (mixture, likelihood) = best.cloned().unwrap_or((Mixture(Vec::new()), f64::NEG_INFINITY));
    // Means, deviations, and all weights but one (Schwarz 1978).
    let parameters = (3 * count - 1) as f64;
    (mixture, parameters * (values as f64).ln() - 2.0 * likelihood)
}

impl Mixture {
    pub(super) fn components(&self) -> &[Component] {
        &self.0
    }

    /// Middles drawn far from each other, each with the values nearest to it.
    fn start(values: &[f64], count: usize, rng: &mut Pcg64Mcg) -> Mixture {
        let last = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let first = values.get(rng.random_range(0..last.max(1)) as usize).copied();
        let first = first.unwrap_or_default();
        let mut middles = vec![first];
        while middles.len() < count {
            let far: Vec<f64> = values.iter().map(|value| distance2(*value, &middles)).collect();
            let mut left = rng.random::<f64>() * far.iter().sum::<f64>();
            let drawn = values.iter().zip(&far).find(|(_, far)| {
                left -= **far;
                left <= 0.0
            });
            middles.push(drawn.map_or(first, |(value, _)| *value));
        }
        let spread = deviation(values) / count as f64;
        let weight = 1.0 / count as f64;
        let component = |mean| Component { weight, mean, deviation: spread.max(NARROWEST) };
        Mixture(middles.into_iter().map(component).collect())
    }

    /// The same, fitted to values from where it is.
    pub(super) fn fitted(&self, values: &[f64]) -> Fitted {
        let mut fitted = self.clone();
        let likelihood = fitted.climb(values, ROUNDS);
        (fitted, likelihood)
    }

    /// The same, fitted to other values from where it is, in few rounds.
    pub(super) fn refined(&self, values: &[f64]) -> Mixture {
        let mut refined = self.clone();
        refined.climb(values, REFINING);
        refined
    }

    /// Climbs to the nearest maximum of the likelihood, whose logarithm it returns.
    fn climb(&mut self, values: &[f64], rounds: usize) -> f64 {
        let mut before = f64::NEG_INFINITY;
        let mut sums = vec![[0.0; 3]; self.0.len()];
        let mut logs = vec![0.0; self.0.len()];
        let mut terms = vec![[0.0; 2]; self.0.len()];
        for _ in 0..rounds {
            for (terms, component) in terms.iter_mut().zip(&self.0) {
                *terms = component.log_terms();
            }
            let likelihood = self.round(values, &terms, &mut sums, &mut logs);
            let done = likelihood - before < DONE * values.len() as f64;
            before = likelihood;
            if done {
                break;
            }
        }
        before
    }

    /// One round: who belongs to whom, then the components from those that belong to them.
    fn round(
        &mut self,
        values: &[f64],
        terms: &[[f64; 2]],
        sums: &mut [[f64; 3]],
        logs: &mut [f64],
    ) -> f64 {
        sums.fill([0.0; 3]);
        let mut likelihood = 0.0;
        for value in values {
            let mut greatest = f64::NEG_INFINITY;
            for ((log, component), terms) in logs.iter_mut().zip(&self.0).zip(terms) {
                *log = component.log_density(*value, *terms);
                greatest = greatest.max(*log);
            }
            let mut total = 0.0;
            for log in logs.iter_mut() {
                *log = (*log - greatest).exp();
                total += *log;
            }
            likelihood += greatest + total.ln();
            for ((share, sum), component) in logs.iter().zip(sums.iter_mut()).zip(&self.0) {
                // Around the mean of before, so that nothing cancels.
                let (share, off) = (share / total, value - component.mean);
                let [n, first, second] = sum;
                *n += share;
                *first += share * off;
                *second += share * off * off;
            }
        }
        for (component, [n, first, second]) in self.0.iter_mut().zip(sums.iter()) {
            component.weight = n / values.len() as f64;
            if *n > 1e-9 {
                let off = first / n;
                component.mean += off;
                component.deviation = (second / n - off * off).max(0.0).sqrt().max(NARROWEST);
            }
        }
        likelihood
    }

    fn density(&self, at: f64) -> f64 {
        self.0.iter().map(|component| component.density(at)).sum()
    }

    /// The top that is reached uphill from a place (mean shift, which never steps over one).
    pub(super) fn top_from(&self, place: f64) -> f64 {
        let mut at = place;
        for _ in 0..500 {
            let (mut sum, mut weights) = (0.0, 0.0);
            for component in &self.0 {
                let pull = component.density(at) / (component.deviation * component.deviation);
                sum += pull * component.mean;
                weights += pull;
            }
            if weights <= 0.0 {
                break;
            }
            let next = sum / weights;
            let step = (next - at).abs();
            at = next;
            if step < 1e-9 {
                break;
            }
        }
        at
    }

    /// Whether the density between two tops hardly falls: they are one hump.
    pub(super) fn is_one_hump(&self, a: f64, b: f64) -> bool {
        let lower = self.density(a).min(self.density(b));
        let between = (1..40).map(|step| a + (b - a) * f64::from(step) / 40.0);
        let valley = between.map(|at| self.density(at)).fold(f64::INFINITY, f64::min);
        valley > 0.9 * lower
    }
}

fn distance2(value: f64, middles: &[f64]) -> f64 {
    middles.iter().map(|middle| (value - middle) * (value - middle)).fold(f64::INFINITY, f64::min)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    (squares.sum::<f64>() / values.len().max(1) as f64).sqrt()
}
