//! A plot as plotly.js reads it: traces and layout from the `plotly` crate, as JSON.

use plotly::common::{Font, Title};
use plotly::layout::{
    Axis as PlotlyAxis, AxisRange, AxisType, BarMode, HoverMode, Margin, RangeMode,
};
use plotly::{Layout, Trace};
use serde_json::{Value, json};

use super::traces::{self, Traces};
use super::{Axis, Chart, Plot, Scale, Series, Style};
use crate::clean;

/// A plot ready for the page.
pub(crate) struct Figure {
    /// `{data, layout, commands}`: what the script draws. `commands` has an entry for each trace:
    /// one command for each of its points, or one for all.
    pub json: String,
    /// The height of the drawing in CSS pixels.
    pub height: usize,
    /// The legend's entries in the order of the series.
    pub legend: Vec<Legend>,
    /// What was left out of the drawing, if anything.
    pub thinned: Option<String>,
}

/// An entry of the legend.
pub(crate) struct Legend {
    pub label: String,
    pub style: Style,
    /// Whether the swatch has a line, a marker, a filled area.
    pub line: bool,
    pub marker: bool,
    pub area: bool,
}

pub(crate) fn figure(plot: &Plot) -> Figure {
    let (x, y) = plot.axes();
    let mut layout = base_layout();
    let (traces, height, legend) = match plot.chart() {
        Chart::Lines { series, uncertainty } => {
            layout = layout.x_axis(value_axis(x, true)).y_axis(value_axis(y, false));
            (traces::lines(series, *uncertainty, x, y), 400, legend(series, true, true, false))
        }
        Chart::Scatter { series } => {
            layout = layout.x_axis(value_axis(x, true)).y_axis(value_axis(y, false));
            (traces::scatter(series, x, y), 400, legend(series, false, true, false))
        }
        Chart::Ecdf { series } => {
            let share = value_axis(y, false).range(AxisRange::new(0.0, 1.02)).tick_format(".0%");
            layout = layout.x_axis(value_axis(x, true)).y_axis(share);
            (traces::ecdf(series, x), 360, legend(series, true, false, false))
        }
        Chart::Histogram { series } => {
            let counts = value_axis(y, false).range_mode(RangeMode::ToZero);
            layout = layout.x_axis(value_axis(x, true)).y_axis(counts);
            (traces::histogram(series, x), 320, legend(series, true, false, true))
        }
        Chart::Bars { categories, series } => {
            let values = value_axis(x, true).range_mode(RangeMode::ToZero);
            layout = layout
                .x_axis(values)
                .y_axis(named_axis(categories))
                .bar_mode(BarMode::Group)
                .bar_gap(0.28)
                .bar_group_gap(0.08);
            let rows = categories.len() * (12 + 16 * series.len().max(1));
            (traces::bars(series, categories, x), 76 + rows, legend(series, false, false, true))
        }
        Chart::Stacks { categories, series } => {
            // Room for the sums.
            let most = traces::sums(series, categories.len()).into_iter().fold(0.0, f64::max);
            let values = value_axis(x, true).range(AxisRange::new(0.0, 1.16 * most));
            layout = layout
                .x_axis(values)
                .y_axis(named_axis(categories))
                .bar_mode(BarMode::Stack)
                .bar_gap(0.28);
            let rows = 26 * categories.len();
            (traces::stacks(series, categories, x), 76 + rows, legend(series, false, false, true))
        }
        Chart::Boxes { series } => {
            let names: Vec<String> = series.iter().map(Series::label).collect();
            layout = layout.x_axis(value_axis(x, true)).y_axis(named_axis(&names));
            (traces::boxes(series, x), 76 + 40 * names.len(), Vec::new())
        }
    };
    let Traces { list, commands, thinned } = traces;
    // The bar of a single series is named by its category and by the title.
    let legend = if legend.len() > 1 || legend.iter().any(|entry| entry.style.hollow) {
        legend
    } else {
        Vec::new()
    };
    Figure { json: to_json(&list, &layout.height(height), &commands), height, legend, thinned }
}

fn to_json(traces: &[Box<dyn Trace>], layout: &Layout, commands: &[Value]) -> String {
    // Each trace is numbers and texts in structures of its own: it cannot fail to serialise.
    let data: Vec<Value> = traces
        .iter()
        .map(|trace| serde_json::from_str(&trace.to_json()).unwrap_or(Value::Null))
        .collect();
    let layout: Value = serde_json::from_str(&layout.to_json()).unwrap_or(Value::Null);
    clean::json_for_script(
        &json!({ "data": data, "layout": layout, "commands": commands }).to_string(),
    )
}

fn legend<T>(series: &[Series<T>], line: bool, marker: bool, area: bool) -> Vec<Legend> {
    series
        .iter()
        .enumerate()
        .map(|(index, one)| Legend {
            label: one.label(),
            style: Style::of(index, one),
            line,
            marker,
            area,
        })
        .collect()
}

fn base_layout() -> Layout {
    Layout::new()
        .show_legend(false)
        .auto_size(true)
        .hover_mode(HoverMode::Closest)
        .margin(Margin::new().left(52).right(14).top(26).bottom(46))
        .font(Font::new().family("system-ui, sans-serif").size(12).color("var(--ink)"))
        .paper_background_color("var(--bg)")
        .plot_background_color("var(--bg)")
}

fn common_axis() -> PlotlyAxis {
    PlotlyAxis::new()
        .auto_margin(true)
        .grid_color("var(--grid)")
        .line_color("var(--axis)")
        .tick_color("var(--axis)")
        .zero_line_color("var(--axis)")
        .zero_line(false)
}

/// An axis of values. The y axis' title stands above the plot, in HTML, where it can be read
/// without turning the head and takes no width from a narrow screen.
fn value_axis(axis: &Axis, is_x: bool) -> PlotlyAxis {
    let mut out = common_axis().show_line(is_x);
    if is_x {
        out = out.title(Title::with_text(clean::plotly(&axis.head()))).n_ticks(8);
    }
    match axis.scale {
        Scale::Log => out.type_(AxisType::Log),
        Scale::Linear => out.type_(AxisType::Linear).range_mode(if axis.from_zero {
            RangeMode::ToZero
        } else {
            RangeMode::Normal
        }),
    }
}

/// An axis of names at 0, 1, 2, ..., the first on top. Names are tick labels, not categories,
/// since plotly.js takes a category that looks like a number or a date for one.
#[allow(clippy::cast_precision_loss)]
fn named_axis(names: &[String]) -> PlotlyAxis {
    let places: Vec<f64> = (0..names.len()).map(|n| n as f64).collect();
    common_axis()
        .type_(AxisType::Linear)
        .show_grid(false)
        .tick_values(places)
        .tick_text(names.iter().map(|name| clean::plotly(name)).collect())
        .range(AxisRange::new(names.len() as f64 - 0.5, -0.5))
        .fixed_range(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Distribution, Mark, Point, Uncertainty};

    fn parsed(plot: &Plot) -> Value {
        serde_json::from_str(&figure(plot).json).expect("JSON")
    }

    fn lines(name: &str, uncertainty: Uncertainty) -> Plot {
        let mark = Mark::new(2.0).interval(1.5, 4.0).note("n").command("wiretax x --seed 7");
        let series = vec![
            Series::measured(name, vec![Point::new(1.0, mark)]),
            Series::published("b", "somewhere", vec![Point::new(1.0, Mark::new(3.0))]),
        ];
        let chart = Chart::Lines { series, uncertainty };
        Plot::new("t", "a", "m", Axis::new("RTT", "ms"), Axis::new("Time", "ms").log(), chart)
            .expect("a plot")
    }

    #[test]
    fn error_bars_are_lengths_from_the_value() {
        let json = parsed(&lines("a", Uncertainty::Bars));
        let trace = &json["data"][0];
        assert_eq!(trace["error_y"]["array"], json!([2.0]));
        assert_eq!(trace["error_y"]["arrayminus"], json!([0.5]));
        assert_eq!(trace["error_y"]["type"], "data");
        assert_eq!(json["layout"]["yaxis"]["type"], "log");
        assert_eq!(json["commands"][0], json!(["wiretax x --seed 7"]));
    }

    #[test]
    fn published_figures_are_hollow_and_dotted() {
        let json = parsed(&lines("a", Uncertainty::Bars));
        assert_eq!(json["data"][0]["marker"]["symbol"], "circle");
        assert_eq!(json["data"][1]["marker"]["symbol"], "square-open");
        assert_eq!(json["data"][1]["line"]["dash"], "dot");
    }

    #[test]
    fn a_band_lies_beneath_its_line() {
        let json = parsed(&lines("a", Uncertainty::Band));
        assert_eq!(json["data"][0]["fill"], "toself");
        assert_eq!(json["data"][0]["y"], json!([4.0, 1.5]));
        assert_eq!(json["data"][0]["legendgroup"], "0");
        assert_eq!(json["data"][1]["legendgroup"], "0");
    }

    #[test]
    fn parts_are_laid_end_to_end_with_their_sum_beyond_the_interval() {
        let series = vec![
            Series::measured("a", vec![Some(Mark::new(2.0)), None]),
            Series::measured("b", vec![Some(Mark::new(1.0).interval(0.5, 1.5)), None]),
        ];
        let chart = Chart::Stacks { categories: vec!["one".into(), "two".into()], series };
        let axis = || Axis::new("v", "ms");
        let plot = Plot::new("t", "a", "m", axis(), axis(), chart).expect("a plot");
        let json = parsed(&plot);
        assert_eq!(json["layout"]["barmode"], "stack");
        assert_eq!(json["data"][2]["x"], json!([3.5, 0.0]));
        assert!(json["data"][2]["text"][0].as_str().expect("text").contains('3'), "{json}");
        let table = plot.values();
        assert_eq!(table.columns.len(), 4);
        assert_eq!(table.rows[0].cells[3].value(), Some(3.0));
        assert_eq!(table.rows[1].cells[1], crate::Cell::Empty);
    }

    #[test]
    fn a_hostile_name_is_text() {
        let json = parsed(&lines("<a href='x'>&</script>", Uncertainty::Bars));
        let hover = json["data"][0]["hovertext"][0].as_str().expect("text");
        assert!(hover.contains("&lt;a href='x'&gt;&amp;&lt;/script&gt;"), "{hover}");
        assert!(!figure(&lines("</script>", Uncertainty::Bars)).json.contains('<'));
    }

    #[test]
    fn a_curve_with_failures_ends_below_one() {
        let series = vec![Series::measured("a", Distribution::new(vec![1.0, 2.0], 2))];
        let axis = || Axis::new("v", "ms");
        let plot =
            Plot::new("t", "a", "m", axis(), axis(), Chart::Ecdf { series }).expect("a plot");
        let json = parsed(&plot);
        assert_eq!(json["data"][0]["x"], json!([1.0, 1.0, 2.0]));
        assert_eq!(json["data"][0]["y"], json!([0.0, 0.25, 0.5]));
        assert_eq!(json["data"][0]["line"]["shape"], "hv");
    }
}
