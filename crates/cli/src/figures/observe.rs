//! The observe study's figures: what captures of known clients said.

use observe::truth::Agreement;
use observe::{ClassRow, Findings};
use record::Manifest;

use super::provenance;
use crate::observe_truth::Truth;

/// Handshakes by version and class, the difference between versions, and how far it is right.
pub(super) fn markdown(manifest: &Manifest, truth: &Truth) -> String {
    let mut text = format!(
        "{}. Clients of whom all is known, captured at the server; medians, from the ClientHello.\n\n",
        provenance(manifest)
    );
    text += "| version | class | handshakes | to the client's Finished | in round trips | to its first data |\n";
    text += "|---|---|---|---|---|---|\n";
    for row in &truth.findings.classes {
        text += &line(row);
    }
    text.push('\n');
    text += &difference(&truth.findings);
    text += &agreement(&truth.agreement);
    text
}

fn ms(time: Option<f64>) -> String {
    time.map_or_else(String::new, |ms| format!("{ms:.1} ms"))
}

fn line(row: &ClassRow) -> String {
    let trips = row.round_trips.map_or_else(String::new, |trips| format!("{trips:.2}"));
    format!(
        "| {} | {} | {} | {} | {trips} | {} |\n",
        row.kind,
        row.class,
        row.count,
        ms(row.handshake_ms),
        ms(row.to_data_ms)
    )
}

fn difference(findings: &Findings) -> String {
    let mut text = String::new();
    let difference = &findings.difference;
    for mode in &difference.by_mode {
        let Some(found) = &mode.compared.found else { continue };
        let saved = &found.saved_ms;
        text += &format!(
            "- {} is {:.1} ms [{:.1}, {:.1}] sooner than {} for clients at a round trip of {:.1} ms.\n",
            difference.to, saved.value, saved.low, saved.high, difference.from, mode.round_trip_ms
        );
    }
    text
}

fn agreement(agreement: &Agreement) -> String {
    let doubt: usize = agreement.uncertain.values().sum();
    let mut text = format!(
        "- {} connections made, {} with a record, {} of these with the class that the generator knows; \
         of TCP {doubt} in doubt.\n",
        agreement.made, agreement.recorded, agreement.classified
    );
    for one in &agreement.round_trips {
        text += &format!(
            "- Round trip of the clients named {}: {:.0} ms put in before jitter, {} found.\n",
            one.population,
            one.known_ms,
            ms(one.median_ms)
        );
    }
    text
}
