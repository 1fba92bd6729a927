//! Points for plots, bounded in number.

use serde::{Deserialize, Serialize};

use crate::sample::quantile_of_sorted;
use crate::{Error, Sample};

/// More than a screen has pixels for.
const MAX_POINTS: usize = 100_000;

/// A corner of the empirical distribution function.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EcdfPoint {
    /// The value at which the function rises.
    pub x: f64,
    /// The fraction of samples at or below it.
    pub fraction: f64,
}

/// The empirical distribution function at no more than `max_points` of its corners, evenly spread
/// over the fractions; the least and the greatest value are always among them, and every point is
/// exact.
///
/// # Errors
/// [`Error::TooFew`] below 2 points, [`Error::TooMany`] above 100 000.
pub fn ecdf(sample: &Sample, max_points: usize) -> Result<Vec<EcdfPoint>, Error> {
    check_points(max_points)?;
    let values = sample.values();
    let count = values.len();
    let points = max_points.min(count);
    let mut corners: Vec<EcdfPoint> = Vec::with_capacity(points);
    for point in 0..points {
        // From rank 0 to the last, evenly.
        let rank = if points == 1 { count - 1 } else { point * (count - 1) / (points - 1) };
        let x = values[rank];
        let at_or_below = values.partition_point(|value| *value <= x);
        let corner = EcdfPoint { x, fraction: at_or_below as f64 / count as f64 };
        if corners.last().is_none_or(|last| last.x < x) {
            corners.push(corner);
        }
    }
    Ok(corners)
}

/// A bar of a histogram: values from `from` to below `to`; the last bar includes its `to`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Its lower edge.
    pub from: f64,
    /// Its upper edge.
    pub to: f64,
    /// How many samples lie in it.
    pub count: usize,
}

/// Bars of equal width, as wide as Freedman and Diaconis say (2 IQR / n^(1/3)), but no more than
/// `max_bins`. Samples that are all equal make one bar.
///
/// # Errors
/// [`Error::TooFew`] below 2 bins, [`Error::TooMany`] above 100 000, [`Error::NotFinite`] when the
/// range overflows.
pub fn histogram(sample: &Sample, max_bins: usize) -> Result<Vec<Bin>, Error> {
    check_points(max_bins)?;
    let (low, high) = (sample.min(), sample.max());
    let range = high - low;
    if !range.is_finite() {
        return Err(Error::NotFinite { index: 0, value: range });
    }
    let values = sample.values();
    let count = values.len();
    let spread = quantile_of_sorted(values, 0.75) - quantile_of_sorted(values, 0.25);
    let wanted = range / (2.0 * spread / (count as f64).cbrt());
    let bins = match wanted {
        _ if range == 0.0 => 1,
        // A spread of 0 with some range: Sturges' rule.
        wanted if !wanted.is_finite() => count.ilog2() as usize + 1,
        wanted => wanted.ceil() as usize,
    }
    .clamp(1, max_bins);
    let edge = |index: usize| {
        if index == bins { high } else { low + range * (index as f64 / bins as f64) }
    };
    let mut from = 0;
    Ok((0..bins)
        .map(|index| {
            let upper = edge(index + 1);
            let to = if index + 1 == bins {
                count
            } else {
                values.partition_point(|value| *value < upper).max(from)
            };
            let bin = Bin { from: edge(index), to: upper, count: to - from };
            from = to;
            bin
        })
        .collect())
}

fn check_points(points: usize) -> Result<(), Error> {
    match points {
        0 | 1 => Err(Error::TooFew { what: "a plot", needed: 2, have: points }),
        n if n > MAX_POINTS => {
            Err(Error::TooMany { what: "the number of points", have: n, limit: MAX_POINTS })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn corners_are_exact() {
        let sample = Sample::new(&[1.0, 2.0, 2.0, 5.0]).unwrap();
        let corners: Vec<_> =
            ecdf(&sample, 10).unwrap().iter().map(|p| (p.x, p.fraction)).collect();
        assert_eq!(corners, [(1.0, 0.25), (2.0, 0.75), (5.0, 1.0)]);
        let one = ecdf(&Sample::new(&[3.0]).unwrap(), 2).unwrap();
        assert_eq!(one, [EcdfPoint { x: 3.0, fraction: 1.0 }]);
        assert!(ecdf(&sample, 1).is_err() && histogram(&sample, usize::MAX).is_err());
    }

    #[test]
    fn bars_hold_their_edges() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        let bins = histogram(&Sample::new(&values).unwrap(), 4).unwrap();
        let counts: Vec<usize> = bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [25, 25, 25, 26]);
        assert_eq!((bins[0].from, bins[1].from, bins[3].to), (0.0, 25.0, 100.0));
        let same = histogram(&Sample::new(&[2.0; 9]).unwrap(), 50).unwrap();
        assert_eq!(same, [Bin { from: 2.0, to: 2.0, count: 9 }]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(values in prop::collection::vec(-1e3f64..1e3, 1..200), points in 2usize..50) {
            let sample = Sample::new(&values).unwrap();
            let bins = histogram(&sample, points).unwrap();
            prop_assert!(bins.len() <= points);
            prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<usize>(), values.len());
            let corners = ecdf(&sample, points).unwrap();
            prop_assert!(corners.len() <= points);
            prop_assert!(corners.windows(2).all(|w| w[0].x < w[1].x && w[0].fraction < w[1].fraction));
            prop_assert_eq!(corners.last().unwrap().fraction, 1.0);
        }
    }
}
