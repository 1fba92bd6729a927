//! A kernel density, its bandwidth chosen by the data (the improved Sheather-Jones method: Botev,
//! Grotowski and Kroese 2010, "Kernel density estimation via diffusion", §3).

use std::f64::consts::{PI, TAU};

use serde::Serialize;

/// Places at which the density is looked at; also the bins from which the bandwidth is found.
const GRID: usize = 512;
/// A maximum stands out of what is around it by this share of the highest one.
const PROMINENCE: f64 = 0.05;
/// To which share of it the bandwidth's root is found.
const PRECISE: f64 = 1e-12;
/// The least bandwidth: as narrow as a mixture's component may be.
const NARROWEST: f64 = 0.02;

/// A maximum of the density.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Peak {
    /// Where, in ms.
    pub place_ms: f64,
    /// How high, beside the highest: 1.
    pub height: f64,
}

/// What a kernel density shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Density {
    /// The bandwidth on the natural logarithm of time: 0.1 is about 10 %.
    pub bandwidth: f64,
    /// Its maxima that stand out, by place.
    pub peaks: Vec<Peak>,
    /// The logarithms that it was made of, sorted.
    #[serde(skip)]
    sorted: Vec<f64>,
}

impl Density {
    /// Whether a maximum lies within `spread_ms`, or the bandwidth, of a place.
    #[must_use]
    pub fn has_peak_at(&self, place_ms: f64, spread_ms: f64) -> bool {
        let reach = spread_ms.max(place_ms * self.bandwidth * 1.5);
        self.peaks.iter().any(|peak| (peak.place_ms - place_ms).abs() <= reach)
    }

    /// Whether it hardly falls between two logarithms.
    pub(super) fn is_one_hump(&self, a: f64, b: f64) -> bool {
        let at = |place: f64| height(&self.sorted, place, self.bandwidth);
        let between = (1..40).map(|step| at(a + (b - a) * f64::from(step) / 40.0));
        between.fold(f64::INFINITY, f64::min) > 0.9 * at(a).min(at(b))
    }
}

/// The density of sorted logarithms.
pub(super) fn density(sorted: &[f64]) -> Density {
    let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) else {
        return Density { bandwidth: NARROWEST, peaks: Vec::new(), sorted: Vec::new() };
    };
    // Room at both ends, so that a maximum there is one.
    let margin = ((greatest - least) / 10.0).max(5.0 * NARROWEST);
    let (from, width) = (least - margin, greatest - least + 2.0 * margin);
    let bandwidth = bandwidth(sorted, from, width);
    let place = |at: usize| from + width * (at as f64 + 0.5) / GRID as f64;
    let heights: Vec<f64> = (0..GRID).map(|at| height(sorted, place(at), bandwidth)).collect();
    let top = heights.iter().copied().fold(0.0, f64::max);
    let peaks = peaks(&heights, top * PROMINENCE);
    let peak = |at: usize| {
        let height = heights.get(at).copied().unwrap_or_default() / top;
        Peak { place_ms: place(at).exp(), height }
    };
    Density { bandwidth, peaks: peaks.into_iter().map(peak).collect(), sorted: sorted.to_vec() }
}

fn height(sorted: &[f64], at: f64, bandwidth: f64) -> f64 {
    // Beyond six bandwidths a kernel is below 2e-8 of its top.
    let first = sorted.partition_point(|value| *value < at - 6.0 * bandwidth);
    let last = sorted.partition_point(|value| *value <= at + 6.0 * bandwidth);
    let near = sorted.get(first..last).unwrap_or_default().iter();
    let kernel = |value: &f64| (-((at - value) / bandwidth).powi(2) / 2.0).exp();
    near.map(kernel).sum::<f64>() / (sorted.len() as f64 * bandwidth * TAU.sqrt())
}

/// Places of maxima that rise by `least` above the valley towards any higher one.
fn peaks(heights: &[f64], least: f64) -> Vec<usize> {
    let mut peaks = Vec::new();
    let (mut top, mut valley) = (0, f64::INFINITY);
    let mut rising = true;
    let at = |at: usize| heights.get(at).copied().unwrap_or_default();
    for (place, height) in heights.iter().copied().enumerate() {
        if rising {
            if height > at(top) {
                top = place;
            } else if height < at(top) - least {
                peaks.push(top);
                (rising, valley) = (false, height);
            }
        } else if height < valley {
            valley = height;
        } else if height > valley + least {
            (rising, top) = (true, place);
        }
    }
    if rising && at(top) >= least && least > 0.0 {
        peaks.push(top);
    }
    peaks
}

/// The bandwidth at which the diffusion's time fits the data, or Silverman's if there is none.
fn bandwidth(sorted: &[f64], from: f64, width: f64) -> f64 {
    let squares = spectrum(sorted, from, width);
    let count = sorted.len() as f64;
    let gap = |time: f64| fixed_point(time, count, &squares);
    let chosen = root(gap).map(|time| time.sqrt() * width);
    chosen.unwrap_or_else(|| silverman(sorted)).max(NARROWEST)
}

/// Squares of the cosine transform of the values' histogram, without the constant.
fn spectrum(sorted: &[f64], from: f64, width: f64) -> Vec<f64> {
    let mut shares = vec![0.0; GRID];
    for value in sorted {
        let bin = ((value - from) / width * GRID as f64).clamp(0.0, GRID as f64 - 1.0);
        if let Some(share) = shares.get_mut(bin as usize) {
            *share += 1.0 / sorted.len() as f64;
        }
    }
    let filled: Vec<(usize, f64)> =
        shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0).collect();
    let coefficient = |k: usize| -> f64 {
        let turn = |at: usize| PI * k as f64 * (2 * at + 1) as f64 / (2 * GRID) as f64;
        filled.iter().map(|(at, share)| share * turn(*at).cos()).sum()
    };
    (1..GRID).map(|k| coefficient(k).powi(2)).collect()
}

/// How far a time is above the one that the data at that time ask for (the paper's fixed point, seven
/// stages).
fn fixed_point(time: f64, count: f64, squares: &[f64]) -> f64 {
    let norm = |order: i32, time: f64| -> f64 {
        let term = |(at, square): (usize, &f64)| {
            let k2 = ((at + 1) * (at + 1)) as f64;
            k2.powi(order) * square * (-k2 * PI * PI * time).exp()
        };
        2.0 * PI.powi(2 * order) * squares.iter().enumerate().map(term).sum::<f64>()
    };
    let mut functional = norm(7, time);
    for order in (2..7).rev() {
        let odd: f64 = (1..=order).map(|n| f64::from(2 * n - 1)).product();
        let constant = (1.0 + 0.5f64.powf(f64::from(order) + 0.5)) / 3.0;
        let stage = 2.0 * constant * odd / TAU.sqrt() / (count * functional);
        functional = norm(order, stage.powf(2.0 / (3.0 + 2.0 * f64::from(order))));
    }
    time - (2.0 * count * PI.sqrt() * functional).powf(-0.4)
}

/// The least root up to 0.1, where a bandwidth is a third of the width: bracketed by doubling, then by false
/// position, which halves the weight of an end that stays (the Illinois method: Dowell and Jarratt 1971). A
/// gap takes thousands of exponentials, so that each one less counts.
fn root(gap: impl Fn(f64) -> f64) -> Option<f64> {
    let (mut low, mut high) = (1e-12, 1e-10);
    let (mut below, mut above) = (f64::NAN, gap(high));
    while above.is_nan() || above < 0.0 {
        (low, below) = (high, above);
        high *= 2.0;
        if high > 0.1 {
            return None;
        }
        above = gap(high);
    }
    let mut rose = None;
    for _ in 0..60 {
        if high - low <= high * PRECISE {
            break;
        }
        let crossing = low - below * (high - low) / (above - below);
        // Where a gap is not a number there is nothing to go by.
        let inside = crossing > low && crossing < high;
        let middle = if inside { crossing } else { f64::midpoint(low, high) };
        let found = gap(middle);
        let rises = found.is_nan() || found < 0.0;
        let stays = rose == Some(rises);
        if rises {
            (low, below) = (middle, found);
            above = if stays { above / 2.0 } else { above };
        } else {
            (high, above) = (middle, found);
            below = if stays { below / 2.0 } else { below };
        }
        rose = Some(rises);
    }
    Some(high).filter(|time| time.is_finite())
}

/// Silverman 1986, §3.4.2.
fn silverman(sorted: &[f64]) -> f64 {
    let count = sorted.len().max(1) as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let variance = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let rank = |p: f64| sorted.get((p * (count - 1.0)) as usize).copied().unwrap_or(mean);
    let quartiles = (rank(0.75) - rank(0.25)) / 1.34;
    let deviation = variance.sqrt();
    let narrow = if quartiles > 0.0 { deviation.min(quartiles) } else { deviation };
    0.9 * narrow * count.powf(-0.2)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn roots_are_found_in_few_steps() {
        let cases: [(f64, &dyn Fn(f64) -> f64); 4] = [
            (3e-4, &|t| t - 3e-4),
            (1e-3, &|t| t.powi(3) - 1e-9),
            (2e-6, &|t| (t / 2e-6).ln()),
            // Not a number below the root, as where a density has no such derivative.
            (5e-5, &|t| if t < 5e-5 { f64::NAN } else { t }),
        ];
        for (root_of, gap) in cases {
            let looks = Cell::new(0);
            let found = root(|time| {
                looks.set(looks.get() + 1);
                gap(time)
            });
            let found = found.unwrap();
            assert!((found / root_of - 1.0).abs() < 1e-11, "{found} for {root_of}");
            assert!(looks.get() < 70, "{} looks for {root_of}", looks.get());
        }
        assert_eq!(root(|_| -1.0), None);
        assert_eq!(root(|_| f64::NAN), None);
    }
}
