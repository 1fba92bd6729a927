//! The summary as an answer: for the terminal and for the report.

use std::fmt::Write as _;

use fault::{Fault, OrProblem, Problem};
use report::{Caution, Inline, KeyFigure, Note, Section, Table};
use serde_json::{Value, json};
use study::{Clock, Counterpart, Subject};
use units::counted;

use crate::advice::{self, usual};
use crate::summary::{Row, Summary};
use crate::{means, pictures, tables};

/// So few runs have no interval of 95 %.
const FEW: usize = 6;

/// What the samples say.
pub struct Findings {
    summary: Summary,
    provenance: String,
}

impl Findings {
    /// What `summary` says; `provenance`: date, machine and command, for Markdown.
    #[must_use]
    pub fn new(summary: Summary, provenance: String) -> Findings {
        Findings { summary, provenance }
    }
}

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "A moving host".to_owned(),
            question: "How long is a moving host cut off under IPsec, MACsec and WireGuard, and where does the time go?"
                .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        let lines = advice::sentences(&self.summary);
        lines.into_iter().map(|line| Inline::new().text(line)).collect()
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        let figure = |row: &Row| {
            let outage = row.outage_ms?;
            Some(KeyFigure {
                value: format!("{:.0}", outage.value),
                unit: "ms".to_owned(),
                label: format!("cut off: {}", row.point.title()),
                detail: format!("[{:.0}, {:.0}], {}", outage.low, outage.high, row.point.rate),
                means: means::outage(outage.value),
            })
        };
        usual(&self.summary).into_iter().filter_map(figure).take(4).collect()
    }

    fn cautions(&self) -> Vec<Caution> {
        let rows = &self.summary.rows;
        let mut notes = Vec::new();
        let fewest = rows.iter().map(|row| row.runs).min().unwrap_or(FEW);
        if fewest < FEW {
            let text =
                format!("As few as {} per point: no interval of 95 %.", counted(fewest, "run"));
            let remedy = format!("measure with --repeat {FEW} or more");
            let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
            notes.push(note.answer_may_change("cases close to each other could change places."));
        }
        let failed: usize = rows.iter().map(|row| row.failed).sum();
        if failed > 0 {
            let why = rows.iter().find_map(|row| row.failure.clone()).unwrap_or_default();
            let text = format!("{} in no figure; the first: {why}.", counted(failed, "failed run"));
            notes.push(Note::info(text).answer_covers_less("the other runs' figures stand."));
        }
        let not_back: usize = rows.iter().map(|row| row.not_back).sum();
        if not_back > 0 {
            let text = format!(
                "In {not_back} runs the host did not come back before the trial ended: their outages are longer than \
                 what is shown."
            );
            let remedy = "measure with a longer --trial".to_owned();
            let note = Note::warning(Inline::new().text(text), Inline::new().text(remedy));
            notes.push(note.answer_may_change("the outages of these cases could be much longer."));
        }
        if let Some(row) = rows
            .iter()
            .find(|row| !row.is_stream && (row.up.late > Some(0.0) || row.down.late > Some(0.0)))
        {
            let text = format!(
                "Frames that somebody kept and delivered late count as delivered, as in {}: there the gap is longer \
                 than the frames lost say.",
                row.point.title()
            );
            let effect =
                "the outage is by frames lost; by the gap, which is shown beside it, it is longer.";
            notes.push(Note::info(text).answer_may_change(effect));
        }
        notes.extend(Clock::Virtual.caution());
        let text = "Radios are simulated by the kernel (mac80211_hwsim): the Wi-Fi stack is Linux's own, the air is \
                    not: no contention, no rate control, no interference. Other stations of a cell are idle, and the loss \
                    of a radio (`radio-loss`) leaves out management frames.";
        let effect = "phases that wait for an answer by radio (discovery, attachment) take longer on real air, in a \
                      busy cell more so; what passes between the edges stands.";
        notes.push(Note::info(text).answer_may_change(effect));
        notes
    }

    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let mut section = Section::new("roam", "How long a moving host is cut off");
        for table in self.tables() {
            section = section.with(table);
        }
        let mut sections = vec![section];
        sections.extend(pictures::sections(&self.summary)?);
        Ok(sections)
    }

    fn tables(&self) -> Vec<Table> {
        tables::all(&self.summary)
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        crate::published::counterparts(&self.summary)
    }

    fn json(&self) -> Result<Value, Problem> {
        let summary = serde_json::to_value(&self.summary).blame(Fault::Results)?;
        Ok(json!({ "roam": summary }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        let mut text = format!("{}.\n", self.provenance);
        for line in self.answer() {
            text.push_str("\n- ");
            text.push_str(&line.to_plain());
        }
        text.push_str("\n\n");
        text.push_str(&self.beside_the_paper());
        let mut fragments = vec![("roam".to_owned(), text)];
        if !self.summary.changes.is_empty() {
            let changes = tables::changes(&self.summary).to_markdown();
            fragments
                .push(("roam-changes".to_owned(), format!("{}.\n\n{changes}", self.provenance)));
        }
        Ok(fragments)
    }

    fn empty(&self) -> Option<Problem> {
        let none = self.summary.rows.iter().all(|row| row.runs == 0);
        none.then(|| {
            let why = self.summary.rows.iter().find_map(|row| row.failure.clone());
            let what = format!("no handoff came to anything: {}", why.unwrap_or_default());
            Problem::new(Fault::Measurement, what)
        })
    }
}

impl Findings {
    /// Outages of all cases in a Markdown table, the paper's average beside.
    fn beside_the_paper(&self) -> String {
        let figures = study::figures(crate::published::FIGURES).unwrap_or_default();
        let paper = |row: &Row| {
            let key = format!("Figure 8/{} {}", row.point.scenario, row.point.rate);
            let found = figures.iter().find(|figure| figure.key() == key);
            let is_plain = row.point.difference().is_empty();
            found.filter(|_| is_plain).and_then(|figure| figure.value)
        };
        let mut text = "| case | packets/s | outage | up | down | without t4, t5 | the paper's |\n\
                        |---|---|---|---|---|---|---|\n"
            .to_owned();
        for row in &self.summary.rows {
            let Some(outage) = row.outage_ms else { continue };
            let median = |estimate: Option<stats::Estimate>| {
                estimate.map_or_else(String::new, |own| advice::ms(own.value))
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} [{:.0}, {:.0}] | {} | {} | {} | {} |",
                row.case(),
                row.point.rate.per_second(),
                advice::ms(outage.value),
                outage.low,
                outage.high,
                median(row.up.outage_ms),
                median(row.down.outage_ms),
                median(row.keyless_ms),
                paper(row).map_or_else(String::new, advice::ms),
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use study::Findings as _;

    use super::*;
    use crate::summary::tests::samples;

    fn findings() -> Findings {
        Findings::new(Summary::of(&samples()), "Measured".to_owned())
    }

    #[test]
    fn the_answer_fits_a_screen_and_the_report_has_its_sections() {
        assert!(findings().answer().len() <= 20);
        let sections = findings().sections().unwrap();
        let ids: Vec<&str> = sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids, ["roam", "roam-phases", "roam-handoffs"]);
        assert_eq!(findings().key_figures().len(), 3);
    }

    #[test]
    fn markdown_has_the_papers_figures_beside() {
        let texts = findings().markdown().unwrap();
        let text = &texts[0].1;
        assert!(text.contains("| ipsec-different-ssid | 1000 | 1110 ms [1100, 1120] | 1010 ms | 1110 ms | 1090 ms | 1016 ms |"), "{text}");
    }

    #[test]
    fn json_has_points_as_fields() {
        let value = findings().json().unwrap();
        assert_eq!(value["roam"]["rows"][0]["point"]["scenario"], "ipsec-different-ssid");
        assert_eq!(value["roam"]["rows"][0]["outage_ms"]["value"], 1110.0);
        assert_eq!(value["roam"]["order"][0]["holds"], true);
    }

    #[test]
    fn nothing_that_came_is_a_failure_of_the_measurement() {
        let mut samples = samples();
        for sample in &mut samples {
            sample.outcome = record::Outcome::Failed { reason: "no carrier".to_owned() };
            sample.values.clear();
        }
        let findings = Findings::new(Summary::of(&samples), String::new());
        assert!(findings.empty().unwrap().to_string().contains("no carrier"));
        assert!(!findings.answer().is_empty());
        findings.sections().unwrap();
    }
}
