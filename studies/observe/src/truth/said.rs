//! What the samples say: the findings of the records, and how far these agree with the logs.

use fault::{Fault, OrProblem, Problem};
use record::{Manifest, Sample};
use report::{Block, Caution, Inline, KeyFigure, Section, Table};
use serde_json::{Value, json};
use study::{Counterpart, Subject};

use super::{Agreement, STUDY, again};
use crate::digest::Options;
use crate::findings::{ClassRow, Findings};
use crate::{claims, published};

/// Findings of which samples have nothing.
const NOT_IN_SAMPLES: [&str; 4] = ["unread_quic", "without_tls", "fallbacks", "cross_names"];
/// Findings of which those recorded before 2026-11-22 have nothing either.
const NOT_IN_OLDER_SAMPLES: [&str; 10] = [
    "offers",
    "offered_versions",
    "offered_sets",
    "suites",
    "groups",
    "key_shares",
    "alpn",
    "alerts",
    "failures",
    "frames",
];

/// What the samples say.
#[derive(Debug)]
pub struct Said {
    /// What the records say.
    pub findings: Findings,
    /// How far they agree with the logs.
    pub agreement: Agreement,
    provenance: String,
}

impl Said {
    /// Of samples and the manifest that came with them; `None` if there are none of this study.
    ///
    /// # Errors
    /// The samples cannot be what this study recorded.
    pub fn of(samples: &[Sample], manifest: &Manifest) -> Result<Option<Said>, Problem> {
        let plan = manifest.plan.get(STUDY);
        let seed = plan.and_then(|plan| plan.get("seed")).and_then(Value::as_u64).unwrap_or(1);
        let bucket = std::time::Duration::from_secs(1);
        let options = Options { seed, bucket, ..Options::default() };
        let found = again(samples, options)?;
        let provenance = study::provenance(manifest);
        Ok(found.map(|(findings, agreement)| Said { findings, agreement, provenance }))
    }

    fn markdown_text(&self) -> String {
        let mut text = format!(
            "{}. Clients with known ground truth, captured at the server; medians, from the ClientHello.\n\n",
            self.provenance
        );
        text += "| clients | version | class | handshakes | to the client's Finished | in round trips | to its first data |\n";
        text += "|---|---|---|---|---|---|---|\n";
        for population in &self.findings.populations {
            for row in &population.classes {
                text += &class_line(&population.name, row);
            }
        }
        text.push('\n');
        text += &difference_lines(&self.findings);
        text += &agreement_lines(&self.agreement);
        text += &name_lines(&self.agreement);
        text
    }
}

impl study::Findings for Said {
    fn subject(&self) -> Subject {
        Subject {
            title: "How long clients take, and how that is known".to_owned(),
            question:
                "What does a capture say of clients with known ground truth, and is it right?"
                    .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        self.findings.answer()
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        self.findings.key_figures()
    }

    fn cautions(&self) -> Vec<Caution> {
        self.findings.cautions()
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let mut sections = self.findings.sections()?;
        sections.push(self.agreement.section());
        Ok(sections)
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = self.findings.tables();
        let blocks = self.agreement.section().blocks.into_iter();
        tables.extend(blocks.filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        }));
        tables
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        published::counterparts(&self.findings)
    }

    fn json(&self) -> Result<Value, Problem> {
        let mut findings = serde_json::to_value(&self.findings).blame(Fault::Results)?;
        // Samples do not have these: not known is not none.
        let older: &[&str] = if self.findings.has_messages() { &[] } else { &NOT_IN_OLDER_SAMPLES };
        for name in NOT_IN_SAMPLES.iter().chain(older) {
            if let Some(field) = findings.get_mut(*name) {
                *field = Value::Null;
            }
        }
        if let Some(lost) = findings.pointer_mut("/frames/lost") {
            *lost = Value::Null;
        }
        let agreement = serde_json::to_value(&self.agreement).blame(Fault::Results)?;
        Ok(json!({ STUDY: { "findings": findings, "agreement": agreement } }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        let claims = claims::markdown(&self.findings, &self.agreement, &self.provenance);
        Ok(vec![(STUDY.to_owned(), self.markdown_text()), (format!("{STUDY}-claims"), claims)])
    }

    fn empty(&self) -> Option<Problem> {
        let what = "no connection of the known clients was recorded";
        (self.findings.handshakes == 0).then(|| Problem::new(Fault::Measurement, what))
    }
}

fn ms(time: Option<f64>) -> String {
    time.map_or_else(String::new, |ms| format!("{ms:.1} ms"))
}

fn class_line(clients: &str, row: &ClassRow) -> String {
    let trips = row.round_trips.map_or_else(String::new, |trips| format!("{trips:.2}"));
    format!(
        "| {clients} | {} | {} | {} | {} | {trips} | {} |\n",
        row.kind,
        row.class,
        row.count,
        ms(row.handshake_ms),
        ms(row.to_data_ms)
    )
}

fn difference_lines(findings: &Findings) -> String {
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

fn agreement_lines(agreement: &Agreement) -> String {
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

/// What was made of several names and of think times, where there were any.
fn name_lines(agreement: &Agreement) -> String {
    let mut text = String::new();
    if agreement.hosts.len() > 1 {
        let each = agreement.hosts.iter();
        let each = each.map(|row| format!("{} of {} at {}", row.recorded, row.made, row.host));
        let each: Vec<String> = each.collect();
        text += &format!("- Records have the name that was asked for: {}.\n", each.join(", "));
    }
    for row in &agreement.crossed {
        let bytes = |value: Option<f64>| value.map_or_else(String::new, |own| format!("{own:.0}"));
        text += &format!(
            "- {}, clients named {}: {} of {} resumed at another name; the server sends {} bytes, in full {}; \
             first data after {}, in full {}.\n",
            row.visit,
            row.population,
            row.resumed,
            row.count,
            bytes(row.flight_bytes),
            bytes(row.full_flight_bytes),
            ms(row.to_data_ms),
            ms(row.full_to_data_ms)
        );
    }
    let series = agreement.series;
    if series.could_cross > 0 {
        text += &format!(
            "- Of {} full handshakes of clients that made several connections, {} were at a name new to a client \
             with a session of another.\n",
            series.full, series.could_cross
        );
    }
    for row in &agreement.fallbacks {
        text += &format!(
            "- {}, clients named {}: {:.0} ms from the first hello to the second, {:.1} round trips, {} times.\n",
            row.visit, row.population, row.lost_ms, row.round_trips, row.count
        );
    }
    for row in &agreement.pauses {
        text += &format!(
            "- Think time {}: {:.1} ms put in at the median, {:.1} ms found.\n",
            row.pause, row.put_in_ms, row.found_ms
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use study::Findings as _;

    use super::super::sample::label;
    use super::*;

    /// The committed results: clients at 25 ms and at 55 ms, whose common median would be of neither.
    #[test]
    fn each_population_has_rows_of_its_own_and_nothing_is_zero_for_want_of_samples() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/observe");
        let run = record::Run::open(&folder).unwrap();
        let said = Said::of(&run.samples, &run.manifest).unwrap().unwrap();
        let markdown = said.markdown_text();
        println!("{markdown}");
        for population in ["| wifi | TLS 1.2 | full |", "| cellular | TLS 1.2 | full |"] {
            assert!(markdown.contains(population), "{markdown}");
        }
        let full = |name: &str| {
            let own = said.findings.populations.iter().find(|own| own.name == name).unwrap();
            let is_it = |row: &&ClassRow| row.class == tracker::Class::Full && !row.kind.quic;
            own.classes.iter().find(is_it).unwrap().handshake_ms.unwrap()
        };
        assert!((20.0..40.0).contains(&full("wifi")) && (50.0..80.0).contains(&full("cellular")));
        let json = said.json().unwrap();
        let frames = &json[STUDY]["findings"]["frames"];
        assert!(frames["frames"].is_u64() && frames["lost"].is_null(), "{frames}");
        assert!(json[STUDY]["findings"]["unread_quic"].is_null());
        // Samples that were recorded before messages and frames were.
        let mut older = run.samples.clone();
        for sample in &mut older {
            sample
                .labels
                .retain(|name, _| ![label::MESSAGES, label::FRAMES].contains(&name.as_str()));
        }
        let said = Said::of(&older, &run.manifest).unwrap().unwrap();
        assert!(said.json().unwrap()[STUDY]["findings"]["frames"].is_null());
        let headings: Vec<_> = said.sections().unwrap().into_iter().map(|own| own.id).collect();
        assert!(!headings.iter().any(|id| id == "offers" || id == "failures"), "{headings:?}");
        assert!(said.tables().iter().all(|table| table.caption != "What was seen"));
    }
}
