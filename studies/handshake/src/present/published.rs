//! The document's figures beside ours.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Plot, PlotError, Point, Row as TableRow, Section,
    Series, Table, Uncertainty,
};

use super::Findings;
use crate::summary::{Row, value};

/// The SSLmTCP document's figures (studies/handshake/published.csv).
const PUBLISHED: &str = include_str!("../../published.csv");
const SOURCE: &str = "SSLmTCP, 2017";

/// One place of the document.
struct Place {
    name: String,
    ping_ms: f64,
    sequential_ms: Option<f64>,
    reduction_percent: Option<f64>,
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

fn row<'a>(findings: &'a Findings<'_>, mode: &str) -> Option<&'a Row> {
    findings.main_rows().into_iter().find(|row| row.key.mode.to_string() == mode)
}

/// The document's handshake, TCP then TLS 1.2 with RSA key exchange, measured here.
pub(super) fn section(findings: &Findings<'_>) -> Result<Option<Section>, PlotError> {
    let Some(sequential) = row(findings, "tcp+tls12-rsa") else { return Ok(None) };
    let Some(fit) = &sequential.ready else { return Ok(None) };
    let columns = vec![
        Column::new("Place"),
        Column::new("ping").unit("ms"),
        Column::new("TCP then TLS, published").unit("ms"),
        Column::new("TCP then TLS, here").unit("ms"),
        Column::new("one round trip less, published").unit("%"),
        Column::new("one round trip less, here").unit("%"),
    ];
    let caption = "The SSLmTCP document's handshake time (TLS 1.2, RSA key exchange) beside ours";
    let mut table = Table::new(caption, columns);
    for place in places() {
        let measured = sequential.at_rtt(place.ping_ms).and_then(|c| c.median(value::READY));
        let here = measured.map_or(fit.line().at(place.ping_ms), |median| median.value);
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |v| Cell::number(v, 1));
        table.push(TableRow::new(vec![
            Cell::text(place.name),
            Cell::number(place.ping_ms, 1),
            number(place.sequential_ms),
            Cell::number(here, 1),
            number(place.reduction_percent),
            Cell::number(100.0 * place.ping_ms / here, 1),
        ]));
    }
    let text = "The document's machines took longer to compute (about 40 ms of RSA-4096 by its text), \
                so that one round trip was a smaller share. Its three points do not fit one model: \
                reduction = RTT / (3 RTT + c) needs c = 11 ms at 0.4 ms, 48 ms at 11.6 ms and 52 ms \
                at 85.5 ms, or 70 ms by the absolute time there.";
    Ok(Some(
        Section::new("published", "Beside the published figures")
            .with(Inline::new().text(text))
            .with(plot(sequential)?)
            .with(table),
    ))
}

fn plot(sequential: &Row) -> Result<Plot, PlotError> {
    let ours = sequential.cells.iter().filter_map(|cell| {
        let median = cell.median(value::READY)?;
        let mark = Mark::new(median.value).interval(median.low, median.high);
        Some(Point::new(cell.rtt_ms, mark.command(cell.command.clone())))
    });
    let theirs = places().into_iter().filter_map(|place| {
        let mark = Mark::new(place.sequential_ms?).note(place.name);
        Some(Point::new(place.ping_ms, mark))
    });
    let series = vec![
        Series::measured("tcp+tls12-rsa", ours.collect()),
        Series::published("TCP then TLS 1.2", SOURCE, theirs.collect()),
    ];
    Plot::new(
        "Handshake time of TCP then TLS 1.2 with RSA key exchange",
        "Our handshake time grows by three round trips; the published time lies above it by the \
         document's longer compute.",
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
}
