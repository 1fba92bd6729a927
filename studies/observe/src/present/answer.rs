//! The answer, its figures, and what may be wrong with them.

use report::{Inline, KeyFigure, Note};

use crate::change::Change;
use crate::difference::{Compared, FEWEST, Found};
use crate::findings::{Curve, Findings, percent};

pub(super) fn answer(findings: &Findings) -> Vec<Inline> {
    if findings.handshakes == 0 {
        let text = format!(
            "No TLS handshake is in the {} connections that were seen.",
            findings.connections
        );
        return vec![Inline::new().text(text)];
    }
    let mut lines = vec![Inline::new().text(difference(findings))];
    let curves: Vec<String> = findings.curves.iter().filter_map(curve_text).collect();
    if !curves.is_empty() {
        let text = format!("From the ClientHello to the first data: {}.", curves.join("; "));
        lines.push(Inline::new().text(text));
    }
    if let Some(change) = findings.changes.iter().find(|change| is_worth(change)) {
        lines.push(Inline::new().text(first_change(change)));
    }
    lines
}

fn difference(findings: &Findings) -> String {
    let difference = &findings.difference;
    let (from, to) = (difference.from, difference.to);
    let Compared { handshakes, found } = &difference.all;
    let Some(found) = found else {
        return format!(
            "{} TLS handshakes; too few full ones to tell {to} from {from}: {} and {} were timed, {FEWEST} \
             of each are needed.",
            findings.handshakes, handshakes.1, handshakes.0
        );
    };
    let Found { medians_ms, saved_ms, saved_round_trips, .. } = found;
    let in_round_trips = saved_round_trips.map_or_else(String::new, |saved| {
        format!(", {:.2} round trips ({:.2} to {:.2})", saved.value, saved.low, saved.high)
    });
    let verdict = match (saved_ms.low > 0.0, saved_ms.high < 0.0) {
        (true, _) => format!("{to} is sooner than {from} by {:.1} ms", saved_ms.value),
        (_, true) => format!("{to} is later than {from} by {:.1} ms", -saved_ms.value),
        _ => format!("{to} and {from} cannot be told apart: {:.1} ms lie between", saved_ms.value),
    };
    format!(
        "{verdict} (95 % interval {:.1} to {:.1} ms){in_round_trips}: medians {:.1} and {:.1} ms of {} and \
         {} full handshakes over TCP.",
        saved_ms.low, saved_ms.high, medians_ms.1, medians_ms.0, handshakes.1, handshakes.0
    )
}

fn curve_text(curve: &Curve) -> Option<String> {
    let median = curve.to_data.median_ms?;
    Some(format!("{} median {median:.1} ms of {}", curve.kind, curve.to_data.count))
}

fn is_worth(change: &Change) -> bool {
    change.by_the_server && change.saved_over_all_ms.is_some_and(|saved| saved > 0.0)
}

fn first_change(change: &Change) -> String {
    let most = if change.at_most { "at most " } else { "" };
    format!(
        "First to change: {} \u{2014} {most}{:.1} ms for each of {} handshakes ({:.1} %).",
        change.what.to_lowercase(),
        change.saved_ms.unwrap_or_default(),
        change.handshakes,
        change.percent
    )
}

pub(super) fn key_figures(findings: &Findings) -> Vec<KeyFigure> {
    let mut figures: Vec<KeyFigure> = findings.curves.iter().filter_map(median_figure).collect();
    figures.truncate(4);
    if let Some(found) = &findings.difference.all.found {
        let saved = found.saved_ms;
        figures.push(KeyFigure {
            value: format!("{:.1}", saved.value),
            unit: "ms".to_owned(),
            label: format!("sooner by {}", findings.difference.to),
            detail: format!("95 % interval {:.1} to {:.1} ms", saved.low, saved.high),
        });
    }
    if let Some(modes) = &findings.round_trip_modes {
        let places: Vec<String> =
            modes.modes.iter().map(|mode| format!("{:.0}", mode.place_ms.value)).collect();
        figures.push(KeyFigure {
            value: places.join(", "),
            unit: "ms".to_owned(),
            label: "modes of the clients' round-trip times".to_owned(),
            detail: format!("{} handshakes; {} modes", modes.values, modes.modes.len()),
        });
    }
    figures
}

fn median_figure(curve: &Curve) -> Option<KeyFigure> {
    Some(KeyFigure {
        value: format!("{:.1}", curve.to_data.median_ms?),
        unit: "ms".to_owned(),
        label: format!("{}: ClientHello to first data", curve.kind),
        detail: format!("median of {} handshakes, all classes", curve.to_data.count),
    })
}

pub(super) fn cautions(findings: &Findings) -> Vec<Note> {
    let mut notes = Vec::new();
    let all = findings.handshakes + findings.untold;
    let doubtful = percent(findings.doubtful_records, all);
    if findings.doubtful_records > 0 {
        notes.push(Note::warning(
            format!(
                "{} records ({doubtful:.1} %) are in doubt; their times are left out.",
                findings.doubtful_records
            ),
            "See the section on doubt for each reason; a key log (SSLKEYLOGFILE) settles most.",
        ));
    }
    if findings.frames.lost > 0 {
        notes.push(Note::warning(
            format!("The capture lost {} frames.", findings.frames.lost),
            "Give it a larger ring, or capture the handshake's port alone.",
        ));
    }
    if findings.frames.dropped_connections > 0 {
        notes.push(Note::warning(
            format!(
                "{} connections were dropped since there were too many at once.",
                findings.frames.dropped_connections
            ),
            "Raise the number of connections that are followed.",
        ));
    }
    let unconfirmed = findings.modes.iter().filter_map(|of| of.to_data.as_ref());
    if unconfirmed.chain(&findings.round_trip_modes).any(|modes| !modes.confirmed) {
        notes.push(Note::info(
            "Where mixture and kernel density do not find the same modes, the table of modes says so.",
        ));
    }
    notes
}
