//! The document's picture: the share of handshakes in bins, a curve a version.

use report::{
    Axis, Cell, Chart, Column, Inline, Mark, Note, Plot, PlotError, Point, Row, Section, Series,
    Table, Uncertainty,
};

use crate::digest::Kind;
use crate::findings::{Binned, Curve, Findings};
use crate::published::{SOURCE, published};

/// A curve ends where this share of its handshakes is past.
const PAST: f64 = 99.0;

pub(super) fn section(findings: &Findings) -> Result<Section, PlotError> {
    let section = Section::new("picture", "How long, by version");
    if findings.curves.iter().all(|curve| curve.to_data.count == 0) {
        let text = "No handshake was followed by application data, so that there is no curve.";
        return Ok(section.with(Note::info(text)));
    }
    let text = "The document measured inside its server; here the same is read off the packets: from the \
                first byte of the ClientHello to the first application data of the client, early data \
                included. A client may wait before it speaks: that think time is in the first picture, \
                not in the second.";
    let caption =
        "Share of each version's own handshakes, all classes, at the lower edge of each bin.";
    let to_data = plot(findings, "ClientHello to first application data", |c| &c.to_data, true)?;
    let handshake =
        plot(findings, "ClientHello to the client's Finished", |c| &c.handshake, false)?;
    let mut section = section.with(Inline::new().text(text));
    for plot in [to_data, handshake].into_iter().flatten() {
        section = section.with(plot.caption(caption));
    }
    Ok(section.with(beside(findings)))
}

fn plot(
    findings: &Findings,
    title: &str,
    of: impl Fn(&Curve) -> &Binned,
    with_published: bool,
) -> Result<Option<Plot>, PlotError> {
    let drawn: Vec<&Curve> = findings.curves.iter().filter(|c| of(c).count > 0).collect();
    if drawn.is_empty() {
        return Ok(None);
    }
    let mut series: Vec<Series<Vec<Point>>> = drawn
        .iter()
        .map(|curve| {
            let name = format!("{} ({})", curve.kind, of(curve).count);
            Series::measured(name, points(of(curve), findings.bin_ms))
        })
        .collect();
    let mut medians: Vec<String> = Vec::new();
    for curve in &drawn {
        if let Some(median) = of(curve).median_ms {
            medians.push(format!("{} {median:.1} ms", curve.kind));
        }
    }
    // The document has a share for bins of 10 ms alone.
    if with_published && findings.bin_ms == 10.0 {
        let shares = published().into_iter().filter(|figure| figure.version == "tls13");
        let points: Vec<Point> = shares
            .filter_map(|figure| Some(Point::new(figure.low_ms, Mark::new(figure.share_percent?))))
            .collect();
        series.push(Series::published("TLS 1.3, 20 ms bin", SOURCE, points));
    }
    Plot::new(
        title,
        format!("The medians are: {}.", medians.join(", ")),
        Axis::new("Time", "ms").from_zero(),
        Axis::new("Share of the version's handshakes", "%").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
    .map(Some)
}

fn points(binned: &Binned, bin_ms: f64) -> Vec<Point> {
    let mut past = 0.0;
    let mut points = Vec::new();
    for (at, percent) in binned.percent.iter().enumerate() {
        points.push(Point::new(at as f64 * bin_ms, Mark::new(*percent)));
        past += percent;
        if past >= PAST {
            break;
        }
    }
    points
}

/// The document's figures and ours.
fn beside(findings: &Findings) -> Table {
    let columns =
        vec![Column::new("Figure"), Column::new("published"), Column::new("here").unit("ms")];
    let mut table = Table::new(format!("Beside the document ({SOURCE})"), columns);
    for figure in published() {
        let kind = if figure.version == "tls12" { Kind::TLS12 } else { Kind::TLS13 };
        let version = match figure.version.as_str() {
            "tls13-tls12" => "TLS 1.2 less TLS 1.3".to_owned(),
            _ => kind.to_string(),
        };
        let range = format!("{} to {} ms", figure.low_ms, figure.high_ms);
        let (published, here) = match figure.share_percent {
            Some(share) => (format!("{share} %"), share_between(findings, kind, &figure)),
            None if figure.version == "tls13-tls12" => (range, saved_by_mode(findings)),
            None => (range, last_mode(findings, kind)),
        };
        let name = format!("{version}: {}", figure.feature);
        table.push(Row::new(vec![Cell::text(name), Cell::text(published), here]));
    }
    table
}

/// What lies between the versions for each mode of the clients' round-trip times.
fn saved_by_mode(findings: &Findings) -> Cell {
    let modes = findings.difference.by_mode.iter();
    let found = modes.filter_map(|mode| Some(mode.compared.found.as_ref()?.saved_ms.value));
    let found: Vec<String> = found.map(|ms| format!("{ms:.1}")).collect();
    if found.is_empty() { Cell::Empty } else { Cell::text(found.join(", ") + " ms") }
}

fn share_between(findings: &Findings, kind: Kind, figure: &crate::published::Published) -> Cell {
    let curve = findings.curves.iter().find(|curve| curve.kind == kind);
    let Some(curve) = curve.filter(|curve| curve.to_data.count > 0) else { return Cell::Empty };
    let inside = |at: usize| {
        let from = at as f64 * findings.bin_ms;
        from >= figure.low_ms && from + findings.bin_ms <= figure.high_ms
    };
    let bins = curve.to_data.percent.iter().enumerate();
    let share: f64 = bins.filter(|(at, _)| inside(*at)).map(|(_, percent)| percent).sum();
    Cell::text(format!("{share:.1} %"))
}

fn last_mode(findings: &Findings, kind: Kind) -> Cell {
    let of = findings.modes.iter().find(|of| of.kind == kind);
    let modes = of.and_then(|of| of.to_data.as_ref()).filter(|modes| modes.modes.len() > 1);
    let last = modes.and_then(|modes| modes.modes.last());
    last.map_or(Cell::Empty, |mode| {
        let place = mode.place_ms;
        Cell::text(format!("{:.1} ms ({:.1} to {:.1})", place.value, place.low, place.high))
    })
}
