//! The whole study in one picture: where the time goes at one round-trip time.

use report::{Axis, Bar, Chart, Inline, Mark, Plot, PlotError, Section, Series};

use super::lineup::typical_rtt;
use super::{Findings, rtt_text, rtts};
use crate::mode::{Mode, Security, Transport};
use crate::summary::{Row, value};

const PARTS: [&str; 4] =
    ["TCP handshake", "TLS or QUIC handshake", "Request and response", "The rest"];

/// Round trips by the specifications, and what the measured median has beyond them; in the order of
/// [`PARTS`], in ms. `None` if the median is less than the round trips before the request.
fn parts(transport: Transport, spec: (u32, u32), rtt_ms: f64, median_ms: f64) -> Option<[f64; 4]> {
    let (ready, response) = spec;
    let open = u32::from(matches!(transport, Transport::Tcp | Transport::UserTcp));
    let round_trips = [open, ready.checked_sub(open)?, response.checked_sub(ready)?];
    let [open, secure, answer] = round_trips.map(|n| f64::from(n) * rtt_ms);
    let rest = median_ms - open - secure - answer;
    // A clock's grain may leave a median just below whole round trips.
    let (answer, rest) = if rest < 0.0 { (answer + rest, 0.0) } else { (answer, rest) };
    (answer >= 0.0).then_some([open, secure, answer, rest])
}

/// One mode's bar: its marks, and the share of round trips in it.
fn bar(row: &Row, rtt_ms: f64) -> Option<([Bar; 4], f64)> {
    let (cell, spec) = (row.at_rtt(rtt_ms)?, row.spec?);
    let median = cell.median(value::RESPONSE)?;
    let transport = row.key.mode.transport;
    let parts = parts(transport, (spec.ready, spec.response), rtt_ms, median.value)?;
    let [.., rest] = parts;
    let mut bar = parts.map(|ms| {
        let mark = Mark::new(ms).command(cell.command.clone());
        (ms > 0.0).then(|| mark.note(format!("{} connections", cell.completed())))
    });
    let share = if median.value > 0.0 { 1.0 - rest / median.value } else { 1.0 };
    if let [.., Some(last)] = &mut bar {
        let around = last
            .clone()
            .interval(rest + median.low - median.value, rest + median.high - median.value);
        *last = around;
    }
    Some((bar, share))
}

/// What users wait today, and at least where something protects them.
fn means(findings: &Findings, rows: &[&Row], rtt_ms: f64) -> String {
    let wait = |row: &&Row| {
        let median = row.at_rtt(rtt_ms)?.median(value::RESPONSE)?;
        Some((median.value, row.key.mode))
    };
    let mut waits: Vec<(f64, Mode)> = rows.iter().filter_map(wait).collect();
    waits.retain(|(_, mode)| mode.security != Security::Plain);
    waits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let today = waits.iter().find(|(_, mode)| *mode == findings.from).or(waits.last());
    match (waits.first(), today) {
        (Some((least, soonest)), Some((ms, today))) => format!(
            "Each new connection of your users at {} waits {ms:.0} ms by {}, and {least:.0} ms by {}, the least of all \
             that protect it.",
            rtt_text(rtt_ms),
            today.description(),
            soonest.description()
        ),
        _ => "Nothing that protects a connection was measured at this RTT.".to_owned(),
    }
}

/// Where the time goes, mode by mode. Fast Open without cookies takes what Fast Open takes, and is
/// left to the tables.
pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let rows = findings.main_rows();
    let Some(rtt) = typical_rtt(&rtts(rows.iter().copied())) else { return Ok(None) };
    let shown = rows.iter().filter(|row| {
        let mode = row.key.mode;
        mode.transport != Transport::TcpFastOpenNoCookie || mode == findings.from
    });
    let bars: Vec<(String, [Bar; 4], f64)> = shown
        .filter_map(|row| bar(row, rtt).map(|(bar, share)| (row.key.mode.to_string(), bar, share)))
        .collect();
    if bars.len() < 2 {
        return Ok(None);
    }
    let categories: Vec<String> = bars.iter().map(|(name, ..)| name.clone()).collect();
    let series = PARTS.iter().enumerate().map(|(part, name)| {
        let data = bars.iter().map(|(_, bar, _)| bar.get(part).cloned().flatten()).collect();
        let series = Series::measured(*name, data);
        if part == 2 { series.muted() } else { series }
    });
    let shares = || bars.iter().map(|(.., share)| 100.0 * share);
    let (least, most) = (shares().fold(100.0, f64::min), shares().fold(0.0, f64::max));
    let alt = format!(
        "Round trips make up {least:.0} to {most:.0} % of the time until the first response byte at \
         an RTT of {}.",
        rtt_text(rtt)
    );
    let means = means(findings, &rows, rtt);
    let axis = Axis::new("Time until the first response byte", "ms").from_zero();
    let names = Axis::new("", "");
    let chart = Chart::Stacks { categories, series: series.collect() };
    let plot = Plot::new(
        format!("Where the time goes at an RTT of {}", rtt_text(rtt)),
        alt,
        means,
        axis,
        names,
        chart,
    )?
    .caption(
        "Medians with 95 % intervals. Handshakes, request and response are as many round trips as \
             the specifications give; the rest is what was measured beyond them: compute, and what \
             the lab adds.",
    );
    let floor = "Request and response cost one round trip whatever comes before them. Everything \
                 else in a bar is the price of setting up the connection.";
    Ok(Some(Section::new("picture", "In one picture").with(Inline::new().text(floor)).with(plot)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_round_trips_and_a_rest() {
        let tcp = parts(Transport::Tcp, (3, 4), 50.0, 203.0);
        assert_eq!(tcp, Some([50.0, 100.0, 50.0, 3.0]));
        let quic = parts(Transport::Quic, (1, 2), 50.0, 102.0);
        assert_eq!(quic, Some([0.0, 50.0, 50.0, 2.0]));
        // A first flight that did not fit the SYN: early data is handed over, the answer waits.
        let hello = parts(Transport::TcpFastOpen, (0, 2), 50.0, 101.0);
        assert_eq!(hello, Some([0.0, 0.0, 100.0, 1.0]));
    }

    #[test]
    fn a_median_just_below_the_round_trips_leaves_no_rest() {
        let just_below = parts(Transport::TcpFastOpen, (0, 1), 50.0, 49.75);
        assert_eq!(just_below, Some([0.0, 0.0, 49.75, 0.0]));
        assert_eq!(parts(Transport::Tcp, (3, 4), 50.0, 10.0), None);
        assert_eq!(parts(Transport::Tcp, (0, 1), 50.0, 50.0), None);
    }
}
