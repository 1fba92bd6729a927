//! The answer, its figures, and what may be wrong with them.

use report::{Caution, Inline, KeyFigure, Note};
use tracker::Class;
use units::counted;

use crate::change::Change;
use crate::difference::{Compared, FEWEST, Found, ModeCompared};
use crate::digest::Twice;
use crate::findings::{ClassRow, Curve, Findings, PopulationRows, percent};

/// Percent of records in doubt below which medians hardly move.
const FEW_IN_DOUBT: f64 = 1.0;

pub(super) fn answer(findings: &Findings) -> Vec<Inline> {
    if findings.handshakes == 0 {
        let text = format!("No TLS handshake in {}.", counted(findings.connections, "connection"));
        return vec![Inline::new().text(text)];
    }
    let mut lines = vec![Inline::new().text(difference(findings))];
    let curves: Vec<String> = match &findings.populations[..] {
        [] => findings.curves.iter().filter_map(curve_text).collect(),
        populations => populations.iter().flat_map(population_texts).collect(),
    };
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
    let counts = format!("{} and {} full handshakes over TCP", handshakes.1, handshakes.0);
    // Each handshake by its own round trip, where it is known: clients far and near in one median
    // would hide what each of them saves.
    let (saved, unit, decimals) = match found.saved_round_trips {
        Some(saved) => (saved, "round trips", 2),
        None => (found.saved_ms, "ms", 1),
    };
    let size = |saved: stats::Estimate| {
        format!(
            "{:.decimals$} {unit} (95 % interval {:.decimals$} to {:.decimals$})",
            saved.value, saved.low, saved.high
        )
    };
    let verdict = if saved.low > 0.0 {
        format!("{to} is faster than {from} by {}", size(saved))
    } else if saved.high < 0.0 {
        let (low, high) = (-saved.high, -saved.low);
        let cost = stats::Estimate { value: -saved.value, low, high, ..saved };
        format!("{to} is slower than {from} by {}", size(cost))
    } else {
        format!("{to} and {from} cannot be told apart: they differ by {}", size(saved))
    };
    let where_it_is: Vec<String> = difference.by_mode.iter().filter_map(in_mode).collect();
    if where_it_is.is_empty() {
        let Found { medians_ms: (from, to), .. } = found;
        return format!("{verdict}: medians {to:.1} and {from:.1} ms of {counts}.");
    }
    format!("{verdict}: {}; of {counts}.", where_it_is.join(", "))
}

/// The difference between versions for the clients of one mode.
fn in_mode(mode: &ModeCompared) -> Option<String> {
    let saved = mode.compared.found.as_ref()?.saved_ms;
    Some(format!(
        "{:.1} ms ({:.1} to {:.1}) where the RTT is about {:.0} ms",
        saved.value, saved.low, saved.high, mode.round_trip_ms
    ))
}

fn curve_text(curve: &Curve) -> Option<String> {
    let median = curve.to_data.median_ms?;
    Some(format!("{} median {median:.1} ms of {}", curve.kind, curve.to_data.count))
}

/// The medians of a population's full handshakes.
fn population_texts(population: &PopulationRows) -> Vec<String> {
    let full = population.classes.iter().filter(|row| row.class == Class::Full);
    let text = |row: &ClassRow| {
        let (name, kind, count) = (&population.name, row.kind, row.count);
        Some(format!("{name}, {kind} median {:.1} ms of {count} full", row.to_data_ms?))
    };
    full.filter_map(text).collect()
}

fn is_worth(change: &Change) -> bool {
    change.by_the_server && change.saved_over_all_ms.is_some_and(|saved| saved > 0.0)
}

fn first_change(change: &Change) -> String {
    let most = if change.at_most { "at most " } else { "" };
    format!(
        "First to change: {} \u{2014} {most}{:.1} ms for each of {} handshakes ({:.1} %).",
        within_a_sentence(&change.what),
        change.saved_ms.unwrap_or_default(),
        change.handshakes,
        change.percent
    )
}

/// A text without its capital; the names in it keep theirs.
fn within_a_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

pub(super) fn key_figures(findings: &Findings) -> Vec<KeyFigure> {
    let mut figures: Vec<KeyFigure> = match &findings.populations[..] {
        [] => findings.curves.iter().filter_map(median_figure).collect(),
        populations => populations.iter().flat_map(population_figures).collect(),
    };
    figures.truncate(4);
    if let Some(saved) =
        findings.difference.all.found.as_ref().and_then(|found| found.saved_round_trips)
    {
        figures.push(KeyFigure {
            value: format!("{:.2}", saved.value),
            unit: "RTT".to_owned(),
            label: format!("saved by {}", findings.difference.to),
            detail: format!("95 % interval {:.2} to {:.2} round trips", saved.low, saved.high),
            means: format!(
                "A client that comes by the newer version saves its own RTT {:.1} times on each full handshake.",
                saved.value
            ),
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
            means: format!(
                "Your clients are at {} distances: a round trip that you save brings each group so much.",
                modes.modes.len()
            ),
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
        means: format!("Half of the clients that use {} need longer.", curve.kind),
    })
}

/// The medians of a population's full handshakes over TCP.
fn population_figures(population: &PopulationRows) -> Vec<KeyFigure> {
    let full = |row: &&ClassRow| row.class == Class::Full && !row.kind.quic;
    let figure = |row: &ClassRow| {
        Some(KeyFigure {
            value: format!("{:.1}", row.to_data_ms?),
            unit: "ms".to_owned(),
            label: format!("{}, {}: ClientHello to first data", population.name, row.kind),
            detail: format!("median of {} full handshakes", row.count),
            means: format!(
                "Half of the {} clients that use {} need longer.",
                population.name, row.kind
            ),
        })
    };
    population.classes.iter().filter(full).filter_map(figure).collect()
}

pub(super) fn cautions(findings: &Findings) -> Vec<Caution> {
    let mut notes = Vec::new();
    let all = findings.handshakes + findings.untold;
    let doubtful = percent(findings.doubtful_records, all);
    if findings.doubtful_records > 0 {
        let note = Note::warning(
            format!(
                "{} in doubt ({doubtful:.1} %): the times that the doubt touches are left out.",
                counted(findings.doubtful_records, "record")
            ),
            "See the section on doubt for each reason; a key log (SSLKEYLOGFILE) settles most.",
        );
        notes.push(if doubtful < FEW_IN_DOUBT {
            note.answer_stands(format!("so few ({doubtful:.1} %) hardly move a median."))
        } else {
            note.answer_may_change(
                "medians could move if what is in doubt is slower or faster than the rest.",
            )
        });
    }
    notes.extend(twice(&findings.twice));
    if findings.frames.lost > 0 {
        let note = Note::warning(
            format!("The capture lost {}.", counted(findings.frames.lost, "frame")),
            "Give it a larger ring, or capture the handshake's port alone.",
        );
        notes.push(note.answer_may_change(
            "busy moments, when frames are lost, may be the slow ones: medians could be longer.",
        ));
    }
    if findings.frames.dropped_connections > 0 {
        let note = Note::warning(
            format!(
                "{} dropped: too many at once.",
                counted(findings.frames.dropped_connections, "connection")
            ),
            "Raise the number of connections that are followed.",
        );
        notes.push(note.answer_covers_less("these connections are left out of all figures."));
    }
    let unconfirmed = findings.modes.iter().filter_map(|of| of.to_data.as_ref());
    if unconfirmed.chain(&findings.round_trip_modes).any(|modes| !modes.confirmed) {
        let text = "Mixture and kernel density do not find the same modes everywhere; the table of modes says where.";
        let effect = "the difference between versions does not depend on modes.";
        notes.push(Note::info(text).answer_stands(effect));
    }
    notes
}

/// Says what the capture has twice, and which clocks differ.
fn twice(twice: &Twice) -> Vec<Caution> {
    let note = |(what, remedy): (String, String)| Note::warning(what, remedy);
    let mut notes = Vec::new();
    notes.extend(twice.copied_text().map(note).map(|note| {
        note.answer_stands("the first copy of each frame gives the times.".to_owned())
    }));
    notes.extend(
        twice
            .translated_text()
            .map(note)
            .map(|note| note.answer_stands("each handshake is counted once.".to_owned())),
    );
    notes.extend(twice.clocks_text().map(note).map(|note| {
        note.answer_stands(
            "handshakes and round trips are measured by the client's frames alone.".to_owned(),
        )
    }));
    notes
}

#[cfg(test)]
mod tests {
    use super::within_a_sentence;

    #[test]
    fn names_keep_their_capitals_within_a_sentence() {
        let text = "Honour tickets and session ids of TLS 1.2";
        assert_eq!(within_a_sentence(text), "honour tickets and session ids of TLS 1.2");
    }
}
