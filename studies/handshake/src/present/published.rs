//! The document's figures beside ours.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row as TableRow, Section,
    Series, Table, Uncertainty,
};
use stats::LineFit;

use super::Findings;
use crate::summary::{Row, value};

/// The SSLmTCP document's figures (studies/handshake/published.csv).
const PUBLISHED: &str = include_str!("../../published.csv");
const SOURCE: &str = "SSLmTCP, 2017";
/// Round trips of TCP then TLS 1.2 until the client may send.
const ROUND_TRIPS: f64 = 3.0;

/// One place of the document.
struct Place {
    name: String,
    ping_ms: f64,
    sequential_ms: Option<f64>,
    reduction_percent: Option<f64>,
}

impl Place {
    /// The compute with which one round trip less of three is the published reduction:
    /// reduction = RTT / (3 RTT + c).
    fn compute_by_reduction(&self) -> Option<f64> {
        let share = self.reduction_percent? / 100.0;
        Some(self.ping_ms / share - ROUND_TRIPS * self.ping_ms)
    }

    /// The compute that the published time leaves beside three round trips.
    fn compute_by_time(&self) -> Option<f64> {
        Some(self.sequential_ms? - ROUND_TRIPS * self.ping_ms)
    }
}

fn places() -> Vec<Place> {
    let lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).skip(1);
    let place = |line: &str| {
        let mut fields = line.split(',').map(str::trim);
        let name = fields.next()?.to_owned();
        let ping_ms = fields.next()?.parse().ok()?;
        let sequential_ms = fields.next()?.parse().ok();
        let reduction_percent = fields.nth(1)?.parse().ok();
        Some(Place { name, ping_ms, sequential_ms, reduction_percent })
    };
    lines.filter_map(place).collect()
}

/// The document's handshake, TCP then TLS 1.2 with RSA key exchange, measured here.
pub(super) fn section(findings: &Findings<'_>) -> Result<Option<Section>, PlotError> {
    let row =
        findings.main_rows().into_iter().find(|row| row.key.mode.to_string() == "tcp+tls12-rsa");
    let Some((row, fit)) = row.and_then(|row| Some((row, row.ready.as_ref()?))) else {
        return Ok(None);
    };
    Ok(Some(
        Section::new("published", "Beside the published figures")
            .with(text(row, fit))
            .with(plot(row, fit)?)
            .with(table(row, fit)),
    ))
}

fn text(row: &Row, fit: &LineFit) -> Inline {
    let computes: Vec<f64> = places().iter().filter_map(Place::compute_by_reduction).collect();
    let least = computes.iter().copied().fold(f64::INFINITY, f64::min);
    let most = computes.iter().copied().fold(0.0, f64::max);
    Inline::new().text(format!(
        "The SSLmTCP document measured TCP then TLS 1.2 with RSA key exchange and RSA-4096 (about \
         40 ms of compute by its text), and how much one round trip less saves. Here: {} keys, \
         c = {:.1} ms. Its three points do not fit one model: reduction = RTT / (3 RTT + c) needs a \
         c between {least:.0} and {most:.0} ms, place by place as in the table.",
        row.key.key, fit.intercept.value
    ))
}

fn table(row: &Row, fit: &LineFit) -> Table {
    let columns = vec![
        Column::new("Place"),
        Column::new("ping").unit("ms"),
        Column::new("time, published").unit("ms"),
        Column::new("time, here").unit("ms"),
        Column::new("1 RTT less, published").unit("%"),
        Column::new("1 RTT less, here").unit("%"),
        Column::new("c by reduction").unit("ms"),
        Column::new("c by time").unit("ms"),
    ];
    let caption = "Time until the client may send, one round trip less as a share of it, and the c \
                   that the published figures imply";
    let mut table = Table::new(caption, columns);
    for place in places() {
        let measured = row.at_rtt(place.ping_ms).and_then(|c| c.median(value::READY));
        let here = measured.map_or(fit.line().at(place.ping_ms), |median| median.value);
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |v| Cell::number(v, 1));
        let (by_reduction, by_time) = (place.compute_by_reduction(), place.compute_by_time());
        table.push(TableRow::new(vec![
            Cell::text(place.name),
            Cell::number(place.ping_ms, 1),
            number(place.sequential_ms),
            Cell::number(here, 1),
            number(place.reduction_percent),
            Cell::number(100.0 * place.ping_ms / here, 1),
            number(by_reduction),
            number(by_time),
        ]));
    }
    table
}

fn plot(row: &Row, fit: &LineFit) -> Result<Plot, PlotError> {
    let ours = row.cells.iter().filter_map(|cell| {
        let median = cell.median(value::READY)?;
        let mark = Mark::new(median.value).interval(median.low, median.high);
        Some(Point::new(cell.rtt_ms, mark.command(cell.command.clone())))
    });
    let theirs = places().into_iter().filter_map(|place| {
        let mark = Mark::new(place.sequential_ms?).note(place.name);
        Some(Point::new(place.ping_ms, mark))
    });
    let differences: Vec<String> = places()
        .iter()
        .filter_map(|place| {
            let difference = place.sequential_ms? - fit.line().at(place.ping_ms);
            let side = if difference < 0.0 { "below" } else { "above" };
            Some(format!(
                "the published time at {} ms lies {:.0} ms {side} it",
                place.ping_ms,
                difference.abs()
            ))
        })
        .collect();
    let series = vec![
        Series::measured(format!("tcp+tls12-rsa, {}", row.key.key), ours.collect()),
        Series::published("TCP then TLS 1.2, RSA-4096", SOURCE, theirs.collect()),
    ];
    Plot::new(
        "Handshake time of TCP then TLS 1.2 with RSA key exchange",
        format!(
            "Our handshake time grows by {:.2} ms with each millisecond of RTT; {}.",
            fit.slope.value,
            super::lineup::listed(&differences)
        ),
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Time until the client may send", "ms").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_file_is_read_whole() {
        let places = places();
        assert_eq!(places.len(), 3);
        assert_eq!(places[2].sequential_ms, Some(326.6));
        assert_eq!(places[0].sequential_ms, None);
        assert_eq!(places[1].reduction_percent, Some(14.0));
    }

    #[test]
    fn the_published_points_need_three_different_computes() {
        let computes: Vec<_> = places().iter().filter_map(Place::compute_by_reduction).collect();
        let rounded: Vec<_> = computes.iter().map(|c| c.round()).collect();
        assert_eq!(rounded, [11.0, 48.0, 52.0]);
        assert_eq!(places()[2].compute_by_time().map(f64::round), Some(70.0));
    }
}
