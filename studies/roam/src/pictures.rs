//! The pictures: outages by rate beside the paper's, the phases of each case, and a handoff as it went.

use fault::{Fault, OrProblem, Problem};
use handoff::{Direction, Phase};
use report::{Axis, Chart, Mark, Plot, Point, Section, Series, Uncertainty};

use crate::advice::{ms, usual};
use crate::means;
use crate::point::PAPER;
use crate::published::FIGURES;
use crate::sample::Bar;
use crate::summary::{Row, Summary};

/// Most cases with a picture of their own.
const MOST_PICTURES: usize = 6;
/// Most pieces in one picture.
const MOST_BARS: usize = 40;

/// The sections with pictures.
pub(crate) fn sections(summary: &Summary) -> Result<Vec<Section>, Problem> {
    let mut outages = Section::new("roam-phases", "Where the time of an outage goes");
    for plot in [by_rate(summary)?, by_phase(summary)?].into_iter().flatten() {
        outages = outages.with(plot);
    }
    let mut handoffs = Section::new("roam-handoffs", "A handoff as it went");
    for row in usual(summary).into_iter().take(MOST_PICTURES) {
        if let Some(plot) = gantt(row)? {
            handoffs = handoffs.with(plot);
        }
    }
    let sections = [outages, handoffs].into_iter();
    Ok(sections.filter(|section| !section.blocks.is_empty()).collect())
}

/// The paper's Figure 8 with ours: outages by rate, a line a case; none where one rate was measured.
fn by_rate(summary: &Summary) -> Result<Option<Plot>, Problem> {
    let mut series = Vec::new();
    for name in PAPER {
        let rows = summary
            .rows
            .iter()
            .filter(|row| row.point.scenario.0 == name && row.point.difference().is_empty());
        let points: Vec<Point> = rows
            .filter_map(|row| {
                let outage = row.outage_ms?;
                let mark = Mark::new(outage.value).interval(outage.low, outage.high);
                Some(Point::new(f64::from(row.point.rate.per_second()), mark.command(&row.command)))
            })
            .collect();
        if points.len() > 1 {
            series.push(Series::measured(name, points));
            series.extend(published(name));
        }
    }
    if series.is_empty() {
        return Ok(None);
    }
    let alt =
        "The outage of each of the paper's cases by the rate of the traffic, ours and the paper's.";
    let x = Axis::new("packets per second each way", "1/s").from_zero();
    let y = Axis::new("outage", "ms").from_zero();
    let chart = Chart::Lines { series, uncertainty: Uncertainty::Bars };
    let means = means::by_rate(summary);
    let plot = Plot::new("Outages by rate (the paper's Figure 8)", alt, means, x, y, chart);
    plot.blame(Fault::Measurement).map(Some)
}

/// A case's line in the paper's Figure 8.
fn published(name: &str) -> Option<Series<Vec<Point>>> {
    let figures = study::figures(FIGURES).ok()?;
    let own = figures.iter().filter(|figure| figure.item == "Figure 8");
    let points = own.filter_map(|figure| {
        let (scenario, rate) = figure.row.split_once(' ')?;
        let rate: f64 = rate.strip_suffix("pps")?.parse().ok()?;
        (scenario == name).then_some(())?;
        Some(Point::new(rate, Mark::new(figure.value?)))
    });
    let points: Vec<Point> = points.collect();
    let source = "Ahn and Shin, 2019";
    (!points.is_empty()).then(|| Series::published(name, source, points))
}

/// The medians of the phases, a bar a case and direction.
fn by_phase(summary: &Summary) -> Result<Option<Plot>, Problem> {
    let ways: Vec<(String, &Row, Direction)> = usual(summary)
        .into_iter()
        .flat_map(|row| Direction::ALL.iter().map(move |direction| (row, *direction)))
        .filter(|(row, direction)| !row.way(*direction).phases.is_empty())
        .map(|(row, direction)| (format!("{}, {direction}", row.point.title()), row, direction))
        .collect();
    if ways.is_empty() {
        return Ok(None);
    }
    let series = Phase::ALL.iter().filter_map(|phase| {
        let part = |(_, row, direction): &(String, &Row, Direction)| {
            Some(Mark::new(row.way(*direction).of_phase(*phase)))
        };
        let parts: Vec<Option<Mark>> = ways.iter().map(part).collect();
        let is_there = parts.iter().flatten().any(|mark| mark.value > 0.0);
        let series = Series::measured(phase.title(), parts);
        is_there.then(|| if *phase == Phase::Unexplained { series.muted() } else { series })
    });
    let series: Vec<_> = series.collect();
    let longest = ways.iter().max_by(|a, b| gap(a.1, a.2).total_cmp(&gap(b.1, b.2)));
    let means = longest.map_or_else(
        || "Nothing was cut off.".to_owned(),
        |(name, row, direction)| means::phases(name, row, *direction),
    );
    let longest = longest.map(|(name, row, direction)| {
        format!("The longest gap is that of {name}: {}.", ms(gap(row, *direction)))
    });
    let alt = longest.unwrap_or_else(|| "The phases of each case.".to_owned());
    let categories = ways.iter().map(|(name, ..)| name.clone()).collect();
    let (x, y) = (Axis::new("time", "ms").from_zero(), Axis::new("case", ""));
    let chart = Chart::Stacks { categories, series };
    let plot = Plot::new("Phases of the gap", alt, means, x, y, chart).blame(Fault::Measurement)?;
    Ok(Some(plot.caption("Medians of each phase; their sum need not be the median of the gap.")))
}

fn gap(row: &Row, direction: Direction) -> f64 {
    row.way(direction).gap_ms.map_or(0.0, |gap| gap.value)
}

/// The run in the middle, its pieces one beneath the other by time.
fn gantt(row: &Row) -> Result<Option<Plot>, Problem> {
    let direction = row.longer();
    // What is before the trigger is the time between two frames.
    let bars = row.way(direction).bars.iter().filter(|bar| bar.2 > 0.0);
    let bars: Vec<Bar> =
        bars.map(|bar| Bar(bar.0, bar.1.max(0.0), bar.2)).take(MOST_BARS).collect();
    let Some(last) = bars.last() else { return Ok(None) };
    let until = Series::measured(
        "until it begins",
        bars.iter().map(|bar| Some(Mark::new(bar.1))).collect::<Vec<_>>(),
    );
    let mut series = vec![until.muted()];
    for phase in Phase::ALL.iter().filter(|phase| bars.iter().any(|bar| bar.0 == **phase)) {
        let part = |bar: &Bar| {
            let own = if bar.0 == *phase { (bar.2 - bar.1).max(0.0) } else { 0.0 };
            Some(Mark::new(own))
        };
        series.push(Series::measured(phase.title(), bars.iter().map(part).collect::<Vec<_>>()));
    }
    let title = format!("{}, {direction}, {}", row.point.title(), row.point.rate);
    let alt = format!("Frames come again {} after the trigger.", ms(last.2));
    let chart = Chart::Stacks { categories: categories(&bars), series };
    let (x, y) = (Axis::new("since the trigger", "ms").from_zero(), Axis::new("phase", ""));
    let means = means::outage(last.2);
    let plot = Plot::new(title, alt, means, x, y, chart).blame(Fault::Measurement)?;
    Ok(Some(plot.caption("The run with the median gap; every run's events are in its attachment.")))
}

/// The names of the pieces; a phase that comes again is numbered.
fn categories(bars: &[Bar]) -> Vec<String> {
    let name = |(at, bar): (usize, &Bar)| {
        let before = bars.iter().take(at).filter(|other| other.0 == bar.0).count();
        match before {
            0 => bar.0.title().to_owned(),
            before => format!("{} ({})", bar.0.title(), before + 1),
        }
    };
    bars.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn pictures_are_the_papers_figure_the_phases_and_a_handoff_a_case() {
        let sections = sections(&Summary::of(&samples())).unwrap();
        let plots: Vec<usize> = sections.iter().map(|section| section.blocks.len()).collect();
        assert_eq!(plots, [2, 3]);
    }

    #[test]
    fn a_phase_that_comes_again_is_numbered() {
        let bar = |phase, from, to| Bar(phase, from, to);
        let bars = [
            bar(Phase::Discovery, 0.0, 1.0),
            bar(Phase::Attachment, 1.0, 2.0),
            bar(Phase::Discovery, 2.0, 3.0),
        ];
        assert_eq!(categories(&bars), ["t1 discovery", "t2 attachment", "t1 discovery (2)"]);
    }
}
