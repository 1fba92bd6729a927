//! What the figures mean for a moving user, a sentence each.

use handoff::{Direction, Phase};

use crate::advice::{ms, usual};
use crate::summary::{Row, Summary};

/// Milliseconds between two packets of a telephone call, as G.711 over RTP usually has it.
const VOICE_PACKET_MS: f64 = 20.0;

/// Of a time without frames.
pub(crate) fn outage(outage_ms: f64) -> String {
    let packets = (outage_ms / VOICE_PACKET_MS).round().max(0.0);
    format!(
        "A telephone call loses some {packets:.0} packets of {VOICE_PACKET_MS:.0} ms, and a page that loads stands still as long."
    )
}

/// Of outages by rate: what changes with the rate.
pub(crate) fn by_rate(summary: &Summary) -> String {
    let rows = usual(summary);
    let outage = |row: &&&Row| row.outage_ms.map_or(0.0, |outage| outage.value);
    let least = rows.iter().min_by(|a, b| outage(a).total_cmp(&outage(b)));
    let most = rows.iter().max_by(|a, b| outage(a).total_cmp(&outage(b)));
    match (least, most) {
        (Some(least), Some(most)) if rows.len() > 1 => format!(
            "Your users are cut off for {} with {} and for {} with {}; where a line rises, heavy traffic makes it \
             longer.",
            ms(outage(&least)),
            least.point.title(),
            ms(outage(&most)),
            most.point.title()
        ),
        _ => "Where a line rises, heavy traffic makes the outage longer.".to_owned(),
    }
}

/// Of the phases of a gap: the longest is what to shorten first.
pub(crate) fn phases(name: &str, row: &Row, direction: Direction) -> String {
    let own = row.way(direction).phases.iter().filter(|(phase, _)| *phase != Phase::Unexplained);
    match own.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((phase, time)) => format!(
            "To shorten the longest outage ({name}), begin with {}, which takes {} of it.",
            phase.title(),
            ms(*time)
        ),
        None => format!("The longest outage ({name}) has no phase that explains it."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::samples;

    #[test]
    fn an_outage_is_said_in_packets_of_a_call() {
        assert!(outage(1016.0).contains("some 51 packets of 20 ms"), "{}", outage(1016.0));
    }

    #[test]
    fn the_cases_and_the_longest_phase_are_named() {
        let summary = Summary::of(&samples());
        let said = by_rate(&summary);
        assert!(said.contains("1110 ms with ipsec-different-ssid"), "{said}");
        let row = usual(&summary)[0];
        let said = phases("a case", row, row.longer());
        assert!(said.starts_with("To shorten the longest outage (a case), begin with t"), "{said}");
    }
}
