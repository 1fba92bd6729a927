//! The pictures: delay by load and by hops.

use fault::{Fault, OrProblem, Problem};
use report::{Axis, Chart, Mark, Plot, Series, Uncertainty};
use stats::Estimate;

use crate::means;
use crate::point::Offered;
use crate::summary::{Row, Summary, is_usual};

/// All that there are.
pub(crate) fn all(summary: &Summary) -> Result<Vec<Plot>, Problem> {
    Ok([by_load(summary)?, by_hops(summary)?].into_iter().flatten().collect())
}

/// Delay by load, a line a protocol; none where one load was measured. One backend alone has a picture.
fn by_load(summary: &Summary) -> Result<Option<Plot>, Problem> {
    let mbps = |row: &Row| match row.point.load {
        Offered::Rate(rate) => Some(rate.bits_per_second() as f64 / 1e6),
        _ => None,
    };
    let backend = summary.delays().map(|(row, _)| row.point.backend).next();
    let rows = || {
        let own = summary.delays().map(|(row, _)| row);
        own.filter(|row| Some(row.point.backend) == backend && is_usual(&row.point))
    };
    let lines = lines(rows().filter_map(|row| Some((name(row), mbps(row)?, row.median_us?))));
    if lines.iter().all(|(_, points)| points.len() < 2) {
        return Ok(None);
    }
    let alt = "The median delay of each protocol by the load that is offered.";
    let x = Axis::new("offered", "Mbit/s").from_zero();
    let means = means::under_load(&lines);
    plot("Delay under load", alt, means, x, lines).map(Some)
}

/// Delay by hops, a line a protocol.
fn by_hops(summary: &Summary) -> Result<Option<Plot>, Problem> {
    let Some(first) = summary.per_hop.first() else { return Ok(None) };
    let own = summary.per_hop.iter().filter(|one| {
        (&one.backend, &one.load, one.frame) == (&first.backend, &first.load, first.frame)
    });
    let means = means::per_hop(own.clone());
    let points = own.flat_map(|one| {
        let name = format!("{}, {}", one.protocol, one.reach);
        let exact = |value: f64| Estimate { value, low: value, high: value, confidence: 0.0 };
        one.medians.iter().map(move |(hops, us)| (name.clone(), f64::from(*hops), exact(*us)))
    });
    let alt = "The median delay grows by the same time with each hop, by protocol.";
    let x = Axis::new("number of hops", "").from_zero();
    plot("Delay by hops", alt, means, x, lines(points)).map(Some)
}

/// A line's name and its points.
pub(crate) type Line = (String, Vec<report::Point>);

fn lines(points: impl Iterator<Item = (String, f64, Estimate)>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (name, x, y) in points {
        let point = report::Point::new(x, Mark::new(y.value).interval(y.low, y.high));
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, own)) => own.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    lines
}

fn plot(title: &str, alt: &str, means: String, x: Axis, lines: Vec<Line>) -> Result<Plot, Problem> {
    let series = lines.into_iter().map(|(name, points)| Series::measured(name, points)).collect();
    let chart = Chart::Lines { series, uncertainty: Uncertainty::Bars };
    let y = Axis::new("delay one way", "µs").from_zero();
    Plot::new(title, alt, means, x, y, chart).blame(Fault::Measurement)
}

fn name(row: &Row) -> String {
    match row.point.gateway.0 {
        Some(rate) => format!("{} limited to {rate}", row.point.label()),
        None => row.point.label(),
    }
}
