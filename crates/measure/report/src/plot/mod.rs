//! Plots: what they show, checked when made, with a sentence and a table beside the picture.

mod check;
mod distribution;
mod figure;
mod style;
mod traces;
mod values;

pub use check::PlotError;
pub use distribution::Distribution;
pub(crate) use figure::{Legend, figure};
pub(crate) use style::{Shape, Style};

use crate::Table;

/// A plot. It is made by [`Plot::new`], which refuses what cannot be shown honestly, and from
/// which [`Plot::values`] derives the table that stands beneath it.
#[derive(Debug, Clone)]
pub struct Plot {
    title: String,
    alt: String,
    means: String,
    x: Axis,
    y: Axis,
    chart: Chart,
    caption: String,
}

impl Plot {
    /// A plot of `chart`. `alt` is one sentence that says what the plot shows to who cannot see
    /// it: the finding, not the drawing. `means` is one sentence on what that means for the reader, made of the
    /// measured values: "each new connection of users at 50 ms waits 204 ms; TLS 1.3 makes it 154".
    ///
    /// # Errors
    /// The caller's fault, see [`PlotError`]: no title or a sentence missing, nothing to draw, a number that
    /// is not finite, an interval upside down, a logarithm of what is not
    /// positive, bars on a logarithmic axis.
    pub fn new(
        title: impl Into<String>,
        alt: impl Into<String>,
        means: impl Into<String>,
        x: Axis,
        y: Axis,
        chart: Chart,
    ) -> Result<Self, PlotError> {
        let (title, alt, means) = (title.into(), alt.into(), means.into());
        let plot = Self { title, alt, means, x, y, chart, caption: String::new() };
        check::check(&plot)?;
        Ok(plot)
    }

    /// Adds a line beneath the plot: what the intervals are, how many samples.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// The title, shown above the plot.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The sentence for who cannot see the plot.
    #[must_use]
    pub fn alt(&self) -> &str {
        &self.alt
    }

    /// What the plot means for the reader.
    #[must_use]
    pub fn means(&self) -> &str {
        &self.means
    }

    /// The values drawn, as a table. Distributions are given by their quantiles.
    #[must_use]
    pub fn values(&self) -> Table {
        values::table(self)
    }

    pub(crate) fn caption_text(&self) -> &str {
        &self.caption
    }

    pub(crate) fn axes(&self) -> (&Axis, &Axis) {
        (&self.x, &self.y)
    }

    pub(crate) fn chart(&self) -> &Chart {
        &self.chart
    }
}

/// How an axis maps values to places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal steps are equally long.
    #[default]
    Linear,
    /// Equal ratios; all values must be positive.
    Log,
}

/// What an axis shows: its title with the unit, its scale and where it begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// How it maps values.
    pub scale: Scale,
    /// Whether a linear axis begins at zero.
    pub from_zero: bool,
}

impl Axis {
    /// A linear axis.
    #[must_use]
    pub fn new(title: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { title: title.into(), unit: unit.into(), ..Self::default() }
    }

    /// Makes it logarithmic.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.scale = Scale::Log;
        self
    }

    /// Makes it begin at zero.
    #[must_use]
    pub fn from_zero(mut self) -> Self {
        self.from_zero = true;
        self
    }

    pub(crate) fn head(&self) -> String {
        match self.unit.as_str() {
            "" => self.title.clone(),
            unit => format!("{} ({unit})", self.title),
        }
    }
}

/// Whose figures a series holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    /// Measured in this run.
    #[default]
    Measured,
    /// Taken from a publication: drawn hollow and dotted, and named in legend and table.
    Published {
        /// The publication, by authors and year.
        source: String,
    },
}

/// A named series.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series<T> {
    /// Its name in the legend and in the table.
    pub name: String,
    /// Whether it was measured in this run, or published.
    pub origin: Origin,
    /// Whether it is drawn thin and grey, as a background to the others.
    pub muted: bool,
    /// Its values, in the form that the chart needs.
    pub data: T,
}

impl<T> Series<T> {
    /// Values measured in this run.
    #[must_use]
    pub fn measured(name: impl Into<String>, data: T) -> Self {
        Self { name: name.into(), origin: Origin::Measured, muted: false, data }
    }

    /// Values taken from a publication.
    #[must_use]
    pub fn published(name: impl Into<String>, source: impl Into<String>, data: T) -> Self {
        let origin = Origin::Published { source: source.into() };
        Self { name: name.into(), origin, muted: false, data }
    }

    /// Draws it thin and grey.
    #[must_use]
    pub fn muted(mut self) -> Self {
        self.muted = true;
        self
    }

    /// The name with the source of what is published.
    pub(crate) fn label(&self) -> String {
        match &self.origin {
            Origin::Measured => self.name.clone(),
            Origin::Published { source } => format!("{} (published: {source})", self.name),
        }
    }

    pub(crate) fn is_published(&self) -> bool {
        matches!(self.origin, Origin::Published { .. })
    }
}

/// An interval of a value, in the value's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A value to draw, and what makes it again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mark {
    /// The value drawn, in the axis' unit.
    pub value: f64,
    /// Its interval, where there is one.
    pub interval: Option<Interval>,
    /// What else to show when a reader points at it: sample size, seed.
    pub note: String,
    /// The command, seed included, that measures it again.
    pub command: Option<String>,
}

impl Mark {
    /// A bare value.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Sets the interval.
    #[must_use]
    pub fn interval(mut self, low: f64, high: f64) -> Self {
        self.interval = Some(Interval { low, high });
        self
    }

    /// Sets the note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Sets the command.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// A mark at a place on the x axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// The place on the x axis.
    pub x: f64,
    /// The value there.
    pub y: Mark,
}

impl Point {
    /// A mark at `x`.
    #[must_use]
    pub fn new(x: f64, y: Mark) -> Self {
        Self { x, y }
    }
}

/// One series' bar in a category; `None` where nothing was measured.
pub type Bar = Option<Mark>;

/// A bin of a histogram: `from` belongs to it, `to` to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The lower edge.
    pub from: f64,
    /// The upper edge.
    pub to: f64,
    /// How many samples.
    pub count: u64,
}

impl Bin {
    /// Counts `values` in `bins` bins of equal width from the least to the greatest, which belongs
    /// to the last bin. Values that are not finite are not counted.
    #[must_use]
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn count(values: &[f64], bins: usize) -> Vec<Self> {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (Some(least), Some(greatest)) = (finite().reduce(f64::min), finite().reduce(f64::max))
        else {
            return Vec::new();
        };
        let bins = bins.clamp(1, 1000);
        let width = match (greatest - least) / bins as f64 {
            width if width > 0.0 && width.is_finite() => width,
            _ => {
                return vec![Self { from: least, to: least + 1.0, count: finite().count() as u64 }];
            }
        };
        let mut out: Vec<Self> = (0..bins)
            .map(|n| Self {
                from: least + n as f64 * width,
                to: least + (n + 1) as f64 * width,
                count: 0,
            })
            .collect();
        for value in finite() {
            // Rounding towards zero is meant; the greatest value would fall beyond the last bin.
            let at = (((value - least) / width) as usize).min(bins - 1);
            if let Some(bin) = out.get_mut(at) {
                bin.count += 1;
            }
        }
        out
    }
}

/// How a line shows its intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uncertainty {
    /// A bar at each point.
    #[default]
    Bars,
    /// A band along the line.
    Band,
}

/// What is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// Points joined by lines, in the order given.
    Lines {
        /// One line per series.
        series: Vec<Series<Vec<Point>>>,
        /// How intervals are shown.
        uncertainty: Uncertainty,
    },
    /// Horizontal bars from zero, grouped by category; the first category on top. The x axis is
    /// the values', the y axis the categories'.
    Bars {
        /// The categories' names.
        categories: Vec<String>,
        /// One bar in each category from each series.
        series: Vec<Series<Vec<Bar>>>,
    },
    /// Horizontal bars from zero, one for each category, made of parts laid end to end: the first
    /// series begins at zero, and the sum stands at the end. The first category is on top. An
    /// interval of a part is drawn around the end of that part.
    Stacks {
        /// The categories' names.
        categories: Vec<String>,
        /// One part of each category from each series; none is negative.
        series: Vec<Series<Vec<Bar>>>,
    },
    /// The share of samples at or below each value; the x axis is the values'. A censored sample
    /// counts as above every value, so its curve ends below one.
    Ecdf {
        /// One distribution of raw samples per series.
        series: Vec<Series<Distribution>>,
    },
    /// Counts by bin; the x axis is the values'.
    Histogram {
        /// Bins of each series, in order, not overlapping.
        series: Vec<Series<Vec<Bin>>>,
    },
    /// Quartiles, whiskers to the last sample within 1.5 interquartile ranges, and the samples
    /// beyond; horizontal, the first series on top; the x axis is the values'.
    Boxes {
        /// One distribution of raw samples per series.
        series: Vec<Series<Distribution>>,
    },
    /// Samples as they are.
    Scatter {
        /// One cloud of points per series.
        series: Vec<Series<Vec<Point>>>,
    },
}
