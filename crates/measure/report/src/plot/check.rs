//! What a plot must meet before it is drawn.

use std::borrow::Cow;

use fault::{Explain, Fault};

use super::{Bin, Chart, Distribution, Mark, Plot, Point, Scale, Series};

/// Why a plot cannot be made. All of these are the caller's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// There is no title.
    #[error("a plot needs a title")]
    NoTitle,
    /// There is no sentence for who cannot see it.
    #[error("the plot `{title}` needs a sentence that says what it shows")]
    NoAlt {
        /// The plot's title.
        title: String,
    },
    /// There is no sentence for the reader.
    #[error("the plot `{title}` needs a sentence that says what it means for the reader")]
    NoMeaning {
        /// The plot's title.
        title: String,
    },
    /// There is nothing to draw.
    #[error("the plot `{title}` has nothing to draw")]
    Empty {
        /// The plot's title.
        title: String,
    },
    /// A value, an interval's end or an edge is infinite or not a number.
    #[error("series `{series}` has a value that is not finite")]
    NotFinite {
        /// The series' name, as in the legend.
        series: String,
    },
    /// An interval's lower end is above its upper end.
    #[error("series `{series}` has an interval from {low} down to {high}")]
    Interval {
        /// The series' name, as in the legend.
        series: String,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// A value that has no logarithm is on a logarithmic axis.
    #[error("series `{series}` has {value} on a logarithmic axis, which only positive values fit")]
    NotPositive {
        /// The series' name, as in the legend.
        series: String,
        /// The value, zero or below.
        value: f64,
    },
    /// The length of a bar means something only from zero, and a logarithmic axis has none.
    #[error("the plot `{title}` has bars on a logarithmic axis")]
    LogBars {
        /// The plot's title.
        title: String,
    },
    /// A part of a whole cannot be less than nothing.
    #[error("series `{series}` has the part {value}: a part of a bar cannot be negative")]
    NegativePart {
        /// The series' name, as in the legend.
        series: String,
        /// The part, below zero.
        value: f64,
    },
    /// A series has not one bar for each category.
    #[error("series `{series}` has {bars} bars for {categories} categories")]
    Categories {
        /// The series' name, as in the legend.
        series: String,
        /// How many bars.
        bars: usize,
        /// How many categories.
        categories: usize,
    },
    /// A bin is empty or overlaps the one before.
    #[error("series `{series}` has bins out of order at {from}")]
    Bins {
        /// The series' name, as in the legend.
        series: String,
        /// The lower edge of the bin.
        from: f64,
    },
}

impl Explain for PlotError {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            PlotError::Empty { .. } => Some("write a note that says why instead".into()),
            PlotError::LogBars { .. } => Some("draw points instead".into()),
            _ => None,
        }
    }
}

pub(super) fn check(plot: &Plot) -> Result<(), PlotError> {
    let title = || plot.title.clone();
    if plot.title.trim().is_empty() {
        return Err(PlotError::NoTitle);
    }
    if plot.alt.trim().is_empty() {
        return Err(PlotError::NoAlt { title: title() });
    }
    if plot.means.trim().is_empty() {
        return Err(PlotError::NoMeaning { title: title() });
    }
    let log_x = plot.x.scale == Scale::Log;
    let log_y = plot.y.scale == Scale::Log;
    let drawn = match &plot.chart {
        Chart::Lines { series, .. } | Chart::Scatter { series } => points(series, log_x, log_y)?,
        Chart::Bars { categories, series } | Chart::Stacks { categories, series } => {
            if log_x || log_y {
                return Err(PlotError::LogBars { title: title() });
            }
            if matches!(plot.chart, Chart::Stacks { .. }) {
                parts(series)?;
            }
            bars(categories, series)?
        }
        Chart::Ecdf { series } => distributions(series, log_x)?,
        Chart::Boxes { series } => distributions(series, log_x)?,
        Chart::Histogram { series } => {
            if log_x || log_y {
                return Err(PlotError::LogBars { title: title() });
            }
            bins(series)?
        }
    };
    if drawn { Ok(()) } else { Err(PlotError::Empty { title: title() }) }
}

fn number(series: &str, value: f64, log: bool) -> Result<(), PlotError> {
    if !value.is_finite() {
        return Err(PlotError::NotFinite { series: series.to_owned() });
    }
    if log && value <= 0.0 {
        return Err(PlotError::NotPositive { series: series.to_owned(), value });
    }
    Ok(())
}

fn mark(series: &str, mark: &Mark, log: bool) -> Result<(), PlotError> {
    number(series, mark.value, log)?;
    let Some(interval) = mark.interval else { return Ok(()) };
    number(series, interval.low, log)?;
    number(series, interval.high, log)?;
    // The value itself may lie outside: a bootstrap interval promises nothing else.
    if interval.low <= interval.high {
        return Ok(());
    }
    Err(PlotError::Interval { series: series.to_owned(), low: interval.low, high: interval.high })
}

/// Checks the series; true when there is something to draw.
fn points(series: &[Series<Vec<Point>>], log_x: bool, log_y: bool) -> Result<bool, PlotError> {
    for line in series {
        for point in &line.data {
            number(&line.name, point.x, log_x)?;
            mark(&line.name, &point.y, log_y)?;
        }
    }
    Ok(series.iter().any(|line| !line.data.is_empty()))
}

fn bars(categories: &[String], series: &[Series<Vec<Option<Mark>>>]) -> Result<bool, PlotError> {
    for one in series {
        if one.data.len() != categories.len() {
            return Err(PlotError::Categories {
                series: one.name.clone(),
                bars: one.data.len(),
                categories: categories.len(),
            });
        }
        for bar in one.data.iter().flatten() {
            mark(&one.name, bar, false)?;
        }
    }
    Ok(series.iter().flat_map(|one| &one.data).any(Option::is_some))
}

fn parts(series: &[Series<Vec<Option<Mark>>>]) -> Result<(), PlotError> {
    for one in series {
        if let Some(part) = one.data.iter().flatten().find(|part| part.value < 0.0) {
            return Err(PlotError::NegativePart { series: one.name.clone(), value: part.value });
        }
    }
    Ok(())
}

fn distributions(series: &[Series<Distribution>], log: bool) -> Result<bool, PlotError> {
    for one in series {
        for value in one.data.sorted() {
            number(&one.name, *value, log)?;
        }
    }
    Ok(series.iter().any(|one| !one.data.sorted().is_empty()))
}

fn bins(series: &[Series<Vec<Bin>>]) -> Result<bool, PlotError> {
    for one in series {
        let mut reached = f64::NEG_INFINITY;
        for bin in &one.data {
            number(&one.name, bin.from, false)?;
            number(&one.name, bin.to, false)?;
            // Edges are computed: they may miss each other by rounding.
            let slack = 1e-9 * (bin.to - bin.from).abs();
            if bin.to <= bin.from || bin.from < reached - slack {
                return Err(PlotError::Bins { series: one.name.clone(), from: bin.from });
            }
            reached = bin.to;
        }
    }
    Ok(series.iter().any(|one| !one.data.is_empty()))
}
