//! What a load's time is made of, object by object, as a picture.

use fault::{Fault, OrProblem, Problem};
use report::{Axis, Chart, Mark, Plot, Series};

use crate::means;
use crate::present::seconds;
use crate::row::Row;
use crate::summary::Group;

/// What the parts of a waterfall's bars are.
const PHASES: [&str; 7] =
    ["until it is wanted", "blocked", "DNS", "connect", "send", "wait", "receive"];
/// Most bars in one picture; the rest is in the HAR file.
const MOST_BARS: usize = 60;

/// The first load's waterfall; none where there is none.
pub(crate) fn waterfall(group: &Group, row: &Row) -> Result<Option<Plot>, Problem> {
    let Some(bars) = row.waterfall.as_ref().map(|waterfall| &waterfall.0) else { return Ok(None) };
    if bars.is_empty() {
        return Ok(None);
    }
    let shown = bars.iter().take(MOST_BARS);
    let categories = (1..=shown.len()).map(|number| number.to_string()).collect();
    let series = PHASES.iter().enumerate().map(|(at, name)| {
        let parts = shown.clone().map(|(wanted, phases)| {
            let ms = match at {
                0 => *wanted,
                at => phases.get(at - 1).copied().unwrap_or_default(),
            };
            Some(Mark::new(ms))
        });
        let series = Series::measured(*name, parts.collect::<Vec<_>>());
        if at == 0 { series.muted() } else { series }
    });
    let title = format!("{}, {}", group.title(), row.label(group.is_plain()));
    let end = bars.iter().map(|(wanted, phases)| wanted + phases.iter().sum::<f64>());
    let means = means::waterfall(shown.clone().map(|(_, phases)| *phases));
    let alt = format!(
        "{} objects, the last is there after {}.",
        bars.len(),
        seconds(end.fold(0.0, f64::max))
    );
    let chart = Chart::Stacks { categories, series: series.collect() };
    let (x, y) = (Axis::new("since the load began", "ms").from_zero(), Axis::new("object", ""));
    let plot = Plot::new(title, alt, means, x, y, chart).blame(Fault::Measurement)?;
    let more = bars.len().saturating_sub(MOST_BARS);
    let rest = if more > 0 { format!(" {more} more are in its HAR file.") } else { String::new() };
    Ok(Some(
        plot.caption(format!(
            "The first load; objects in the order in which they were wanted.{rest}"
        )),
    ))
}
