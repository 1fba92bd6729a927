//! The picture of GREE 2018: the share of handshakes in bins, a curve a version.

use report::{
    Axis, Chart, Inline, Mark, Note, Plot, PlotError, Point, Section, Series, Uncertainty,
};

use crate::findings::{Binned, Curve, Findings};
use crate::published::{SOURCE, share};

/// A curve ends where this share of its handshakes is past.
const PAST: f64 = 99.0;

pub(super) fn section(findings: &Findings) -> Result<Section, PlotError> {
    let section = Section::new("picture", "How long, by version");
    if findings.curves.iter().all(|curve| curve.to_data.count == 0) {
        let text = "No handshake was followed by application data, so that there is no curve.";
        return Ok(section.with(Note::info(text)));
    }
    let text = "GREE 2018 measured inside its server; here the same is read off the packets: from the \
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
    Ok(section)
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
    // GREE 2018 has a share for bins of 10 ms alone.
    if with_published && findings.bin_ms == 10.0 {
        let share = share().into_iter();
        let points = share.map(|(from, percent)| Point::new(from, Mark::new(percent))).collect();
        series.push(Series::published("TLS 1.3, 20 ms bin", SOURCE, points));
    }
    Plot::new(
        title,
        format!("The medians are: {}.", medians.join(", ")),
        means(&drawn, of),
        Axis::new("Time", "ms").from_zero(),
        Axis::new("Share of the version's handshakes", "%").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
    .map(Some)
}

/// What lies between the kinds for the client in the middle.
fn means(drawn: &[&Curve], of: impl Fn(&Curve) -> &Binned) -> String {
    let medians = drawn.iter().filter_map(|curve| Some((of(curve).median_ms?, curve.kind)));
    let mut medians: Vec<_> = medians.collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    match medians.as_slice() {
        [(least, soonest), .., (most, latest)] => format!(
            "The client in the middle waits {least:.0} ms with {soonest} and {most:.0} ms with {latest}; a hump \
             farther right is a group of clients who are farther away."
        ),
        [(only, kind)] => format!(
            "Half of your clients wait longer than {only:.0} ms with {kind}; a hump farther right is a group of \
             clients who are farther away."
        ),
        [] => "A hump farther right is a group of clients who are farther away.".to_owned(),
    }
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
