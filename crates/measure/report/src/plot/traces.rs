//! The traces of each kind of chart.

use plotly::common::{
    ErrorData, ErrorType, Fill, Font, HoverInfo, Line, LineShape, Marker, MarkerSymbol, Mode,
    Orientation, Position,
};
use plotly::{Bar as BarTrace, BoxPlot, Scatter, Trace};
use serde_json::{Value, json};

use super::distribution::thin;
use super::{Axis, Bar, Bin, Distribution, Interval, Mark, Point, Series, Style, Uncertainty};
use crate::{clean, number};

/// Steps of a curve drawn at most; more cannot be seen and only swell the file.
const MOST_STEPS: usize = 2_000;
/// Samples of a series drawn at most.
const MOST_POINTS: usize = 4_000;

/// What is drawn.
#[derive(Default)]
pub(super) struct Traces {
    pub list: Vec<Box<dyn Trace>>,
    /// For each trace: an array with a command for each point, one command for all, or null.
    pub commands: Vec<Value>,
    pub thinned: Option<String>,
}

impl Traces {
    fn push(&mut self, trace: Box<dyn Trace>, commands: Value) {
        self.list.push(trace);
        self.commands.push(commands);
    }
}

/// Values and names of an axis in hover texts.
struct Words<'a> {
    axis: &'a Axis,
    decimals: usize,
}

impl<'a> Words<'a> {
    fn new(axis: &'a Axis, values: impl IntoIterator<Item = f64>) -> Self {
        Self { axis, decimals: number::decimals_for(values) }
    }

    fn value(&self, value: f64) -> String {
        let text = number::typeset(&number::fixed(value, self.decimals));
        format!("{} {}", text, self.axis.unit).trim_end().to_owned()
    }

    fn line(&self, value: f64, interval: Option<Interval>) -> String {
        let ends = interval.map_or_else(String::new, |interval| {
            let end = |end| number::typeset(&number::fixed(end, self.decimals));
            format!(" [{}, {}]", end(interval.low), end(interval.high))
        });
        format!("{}: {}{ends}", self.axis.title, self.value(value))
    }
}

/// A hover text: the name in bold, then lines of text from outside.
fn hover(name: &str, lines: &[String]) -> String {
    let mut out = format!("<b>{}</b>", clean::plotly(name));
    for line in lines.iter().filter(|line| !line.is_empty()) {
        out.push_str("<br>");
        out.push_str(&clean::plotly(line));
    }
    out
}

fn error_bars(marks: &[&Mark], style: Style) -> Option<ErrorData> {
    if marks.iter().all(|mark| mark.interval.is_none()) {
        return None;
    }
    let length = |f: fn(&Mark, Interval) -> f64| {
        marks.iter().map(|mark| mark.interval.map_or(0.0, |i| f(mark, i).max(0.0))).collect()
    };
    Some(
        ErrorData::new(ErrorType::Data)
            .symmetric(false)
            .array(length(|mark, interval| interval.high - mark.value))
            .array_minus(length(|mark, interval| mark.value - interval.low))
            .color(style.colour())
            .thickness(1.25)
            .width(4),
    )
}

fn line(style: Style) -> Line {
    Line::new().color(style.colour()).width(style.line_width()).dash(style.dash_type())
}

fn marker(style: Style, size: usize) -> Marker {
    let edge = if style.hollow { 2.0 } else { 0.0 };
    Marker::new()
        .symbol(style.symbol())
        .size(size)
        .color(style.colour())
        .line(Line::new().color(style.colour()).width(edge))
}

fn commands<'a>(marks: impl IntoIterator<Item = &'a Mark>) -> Value {
    marks.into_iter().map(|mark| json!(mark.command)).collect()
}

fn ends(mark: &Mark) -> [f64; 3] {
    let interval = mark.interval.unwrap_or(Interval { low: mark.value, high: mark.value });
    [mark.value, interval.low, interval.high]
}

/// Words for the axes of points.
fn point_words<'a>(
    series: &[Series<Vec<Point>>],
    x: &'a Axis,
    y: &'a Axis,
) -> (Words<'a>, Words<'a>) {
    let points = || series.iter().flat_map(|one| &one.data);
    (
        Words::new(x, points().map(|point| point.x)),
        Words::new(y, points().flat_map(|point| ends(&point.y))),
    )
}

fn point_hovers(name: &str, points: &[Point], x: &Words<'_>, y: &Words<'_>) -> Vec<String> {
    points
        .iter()
        .map(|p| {
            let lines = [x.line(p.x, None), y.line(p.y.value, p.y.interval), p.y.note.clone()];
            hover(name, &lines)
        })
        .collect()
}

pub(super) fn lines(
    series: &[Series<Vec<Point>>],
    uncertainty: Uncertainty,
    x: &Axis,
    y: &Axis,
) -> Traces {
    let (x_words, y_words) = point_words(series, x, y);
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let style = Style::of(index, one);
        let marks: Vec<&Mark> = one.data.iter().map(|point| &point.y).collect();
        if uncertainty == Uncertainty::Band
            && let Some(band) = band(&one.data, style, index)
        {
            traces.push(band, Value::Null);
        }
        let mut trace = Scatter::new(
            one.data.iter().map(|point| point.x).collect(),
            marks.iter().map(|mark| mark.value).collect(),
        )
        .name(clean::plotly(&one.label()))
        .legend_group(index.to_string())
        .mode(Mode::LinesMarkers)
        .line(line(style))
        .marker(marker(style, if style.slot == 0 { 5 } else { 8 }))
        .hover_info(HoverInfo::Text)
        .hover_text_array(point_hovers(&one.label(), &one.data, &x_words, &y_words));
        if uncertainty == Uncertainty::Bars
            && let Some(bars) = error_bars(&marks, style)
        {
            trace = trace.error_y(bars);
        }
        traces.push(trace, commands(marks));
    }
    traces
}

/// The outline of the intervals: along the upper ends and back along the lower ones.
fn band(points: &[Point], style: Style, index: usize) -> Option<Box<dyn Trace>> {
    let ends: Vec<(f64, Interval)> =
        points.iter().filter_map(|point| Some((point.x, point.y.interval?))).collect();
    if ends.is_empty() {
        return None;
    }
    let there = ends.iter().map(|(x, interval)| (*x, interval.high));
    let back = ends.iter().rev().map(|(x, interval)| (*x, interval.low));
    let (x, y) = there.chain(back).unzip();
    let trace = Scatter::new(x, y)
        .legend_group(index.to_string())
        .mode(Mode::Lines)
        .line(Line::new().width(0.0).color(style.band()))
        .fill(Fill::ToSelf)
        .fill_color(style.band())
        .hover_info(HoverInfo::Skip);
    Some(trace)
}

pub(super) fn scatter(series: &[Series<Vec<Point>>], x: &Axis, y: &Axis) -> Traces {
    let (x_words, y_words) = point_words(series, x, y);
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let style = Style::of(index, one);
        let points = thin(one.data.clone(), MOST_POINTS);
        if points.len() < one.data.len() {
            traces.thinned = Some(format!("At most {MOST_POINTS} samples of a series are drawn."));
        }
        let trace = Scatter::new(
            points.iter().map(|point| point.x).collect(),
            points.iter().map(|point| point.y.value).collect(),
        )
        .name(clean::plotly(&one.label()))
        .legend_group(index.to_string())
        .mode(Mode::Markers)
        .opacity(0.75)
        .marker(marker(style, 6))
        .hover_info(HoverInfo::Text)
        .hover_text_array(point_hovers(&one.label(), &points, &x_words, &y_words));
        traces.push(trace, commands(points.iter().map(|point| &point.y)));
    }
    traces
}

pub(super) fn ecdf(series: &[Series<Distribution>], x: &Axis) -> Traces {
    let words = Words::new(x, series.iter().flat_map(|one| one.data.sorted()).copied());
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let style = Style::of(index, one);
        let steps = one.data.steps(MOST_STEPS);
        if steps.len() == MOST_STEPS {
            traces.thinned = Some(format!("At most {MOST_STEPS} steps of a curve are drawn."));
        }
        // The curve rises from zero at the first sample.
        let start = steps.first().map(|(value, _)| (*value, 0.0));
        let all: Vec<(f64, f64)> = start.into_iter().chain(steps).collect();
        let texts = all
            .iter()
            .map(|(value, share)| {
                let at = format!("{:.1} % of {} at or below", share * 100.0, one.data.count());
                hover(&one.label(), &[format!("{at} {}", words.value(*value))])
            })
            .collect();
        let (xs, ys): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        let trace = Scatter::new(xs, ys)
            .name(clean::plotly(&one.label()))
            .legend_group(index.to_string())
            .mode(Mode::Lines)
            .line(line(style).shape(LineShape::Hv))
            .hover_info(HoverInfo::Text)
            .hover_text_array(texts);
        traces.push(trace, json!(one.data.command_text()));
    }
    traces
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn histogram(series: &[Series<Vec<Bin>>], x: &Axis) -> Traces {
    let edges = series.iter().flat_map(|one| &one.data).flat_map(|bin| [bin.from, bin.to]);
    let words = Words::new(x, edges);
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let style = Style::of(index, one);
        let mut corners: Vec<(f64, f64, String)> = Vec::new();
        let mut reached: Option<f64> = None;
        for bin in &one.data {
            // Down to zero across a gap between bins.
            if let Some(end) = reached.filter(|end| *end < bin.from) {
                corners.push((end, 0.0, String::new()));
            }
            let range = format!("{} to {}", words.value(bin.from), words.value(bin.to));
            let text = hover(&one.label(), &[range, format!("{} samples", bin.count)]);
            corners.push((bin.from, bin.count as f64, text));
            reached = Some(bin.to);
        }
        corners.extend(reached.map(|end| (end, 0.0, String::new())));
        let texts = corners.iter().map(|corner| corner.2.clone()).collect();
        let trace = Scatter::new(
            corners.iter().map(|corner| corner.0).collect(),
            corners.iter().map(|corner| corner.1).collect(),
        )
        .name(clean::plotly(&one.label()))
        .legend_group(index.to_string())
        .mode(Mode::Lines)
        .line(line(style).shape(LineShape::Hv))
        .fill(Fill::ToZeroY)
        .fill_color(style.band())
        .hover_info(HoverInfo::Text)
        .hover_text_array(texts);
        traces.push(trace, Value::Null);
    }
    traces
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn bars(series: &[Series<Vec<Bar>>], categories: &[String], x: &Axis) -> Traces {
    let marks = series.iter().flat_map(|one| one.data.iter().flatten());
    let words = Words::new(x, marks.flat_map(ends));
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let style = Style::of(index, one);
        let mut places = Vec::new();
        let mut marks: Vec<&Mark> = Vec::new();
        let mut texts = Vec::new();
        for (at, (bar, category)) in one.data.iter().zip(categories).enumerate() {
            let Some(mark) = bar else { continue };
            places.push(at as f64);
            marks.push(mark);
            let value = words.line(mark.value, mark.interval);
            texts.push(hover(category, &[one.label(), value, mark.note.clone()]));
        }
        let fill = if style.hollow { "var(--bg)".to_owned() } else { style.colour() };
        let mut trace = BarTrace::new(marks.iter().map(|mark| mark.value).collect(), places)
            .orientation(Orientation::Horizontal)
            .name(clean::plotly(&one.label()))
            .legend_group(index.to_string())
            .marker(Marker::new().color(fill).line(
                Line::new().color(style.colour()).width(if style.hollow { 2.0 } else { 0.0 }),
            ))
            .hover_info(HoverInfo::Text)
            .hover_text_array(texts);
        if let Some(bars) = error_bars(&marks, style) {
            trace = trace.error_x(bars.color("var(--ink)"));
        }
        traces.push(trace, commands(marks));
    }
    traces
}

/// The sum of each category's parts.
pub(super) fn sums(series: &[Series<Vec<Bar>>], categories: usize) -> Vec<f64> {
    let part = |one: &Series<Vec<Bar>>, at: usize| match one.data.get(at) {
        Some(Some(mark)) => mark.value,
        _ => 0.0,
    };
    (0..categories).map(|at| series.iter().map(|one| part(one, at)).sum()).collect()
}

/// Bars laid end to end by the layout, and the sums at their ends.
#[allow(clippy::cast_precision_loss)]
pub(super) fn stacks(series: &[Series<Vec<Bar>>], categories: &[String], x: &Axis) -> Traces {
    let mut traces = bars(series, categories, x);
    let sums = sums(series, categories.len());
    let words = Words::new(x, sums.iter().copied());
    // Beyond the longer arm of an interval, so that it does not cross the figure.
    let beyond = |at: usize| {
        let last = series.iter().rev().find_map(|one| one.data.get(at)?.as_ref());
        let high = last.and_then(|mark| Some(mark.interval?.high - mark.value));
        high.unwrap_or(0.0).max(0.0)
    };
    let ends = sums.iter().enumerate().map(|(at, sum)| sum + beyond(at)).collect();
    let places: Vec<f64> = (0..categories.len()).map(|at| at as f64).collect();
    // Without the unit, which the axis names: a narrow screen has no room for it.
    let text =
        |sum: &f64| format!("\u{2002}{}", number::typeset(&number::fixed(*sum, words.decimals)));
    let texts: Vec<String> = sums.iter().map(text).collect();
    let labels = Scatter::new(ends, places)
        .mode(Mode::Text)
        .text_array(texts)
        .text_position(Position::MiddleRight)
        .text_font(Font::new().color("var(--ink)").size(12))
        .clip_on_axis(false)
        .hover_info(HoverInfo::Skip);
    traces.push(labels, Value::Null);
    traces
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn boxes(series: &[Series<Distribution>], x: &Axis) -> Traces {
    let words = Words::new(x, series.iter().flat_map(|one| one.data.sorted()).copied());
    let mut traces = Traces::default();
    for (index, one) in series.iter().enumerate() {
        let Some(five) = one.data.five() else { continue };
        let style = Style::of(index, one);
        let place = index as f64;
        let command = json!(one.data.command_text());
        let drawn = BoxPlot::<f64, f64>::new(vec![place])
            .orientation(Orientation::Horizontal)
            .name(clean::plotly(&one.label()))
            .legend_group(index.to_string())
            .q1(vec![five.q1])
            .median(vec![five.median])
            .q3(vec![five.q3])
            .lower_fence(vec![five.lower])
            .upper_fence(vec![five.upper])
            .line(Line::new().color(style.colour()).width(1.5))
            .fill_color(if style.hollow { "var(--bg)".to_owned() } else { style.band() })
            .hover_info(HoverInfo::X);
        traces.push(drawn, command.clone());
        let beyond = thin(five.beyond, MOST_POINTS);
        if beyond.is_empty() {
            continue;
        }
        let texts: Vec<String> =
            beyond.iter().map(|value| hover(&one.label(), &[words.line(*value, None)])).collect();
        let points = Scatter::new(beyond.clone(), vec![place; beyond.len()])
            .legend_group(index.to_string())
            .mode(Mode::Markers)
            .marker(Marker::new().symbol(MarkerSymbol::CircleOpen).size(5).color(style.colour()))
            .hover_info(HoverInfo::Text)
            .hover_text_array(texts);
        traces.push(points, command);
    }
    traces
}
