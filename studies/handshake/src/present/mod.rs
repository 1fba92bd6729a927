//! The study's part of the report: the answer, the evidence, the tables for a terminal.

mod advice;
mod by_rtt;
mod claims;
mod compute;
mod counted;
mod document;
mod early;
mod fallback;
mod fits;
mod functions;
mod lineup;
mod loss;
mod markdown;
mod picture;
mod published;
mod queue;
mod sslmtcp;
mod variations;
mod wire;

#[cfg(test)]
mod tests;

use fault::{Fault, OrProblem, Problem};
use record::Manifest;
use report::{Caution, Cell, Inline, KeyFigure, Section, Table};
use serde_json::{Value, json};
use stats::{Distribution, Estimate};
use study::{Clock, Counterpart, Subject};

use crate::embedded::{self, Embedded};
use crate::lab_delay::LabDelay;
use crate::mode::Mode;
use crate::savings::{self, Change};
use crate::summary::{Row, Summary};

pub(crate) use published::PUBLISHED;

/// What the study's samples say to someone who runs a mode today.
pub struct Findings {
    /// What the samples say.
    pub summary: Summary,
    /// The mode that is run today.
    pub from: Mode,
    /// The clients' round-trip times, if known.
    pub clients: Option<Distribution>,
    /// What each change of mode would save, the largest first.
    pub changes: Vec<Change>,
    /// What each SSLmTCP mode saves from its control.
    pub embedded: Vec<Embedded>,
    /// The lab's own delay; `None` if the lab was not calibrated.
    pub lab_delay: Option<LabDelay>,
    /// By which time it was measured.
    pub clock: Clock,
    /// Connections that the plan has; `None` if it is not known.
    pub planned: Option<u64>,
    /// Where the samples come from, for Markdown.
    origin: String,
}

impl Findings {
    /// What `summary` says to someone who runs `from` today.
    ///
    /// # Errors
    /// Statistics refuse the samples.
    pub fn new(
        summary: Summary,
        from: Mode,
        clients: Option<Distribution>,
        seed: u64,
    ) -> Result<Self, stats::Error> {
        let changes = savings::changes(&summary, from, clients.as_ref(), seed)?;
        let embedded = embedded::embedded(&summary)?;
        Ok(Findings {
            summary,
            from,
            clients,
            changes,
            embedded,
            lab_delay: None,
            clock: Clock::Wall,
            planned: None,
            origin: String::new(),
        })
    }

    /// With what a manifest says of the lab in which the samples were measured.
    #[must_use]
    pub fn measured_by(mut self, manifest: &Manifest) -> Self {
        let calibration = manifest.calibration.clone();
        let calibration = calibration.and_then(|value| serde_json::from_value(value).ok());
        self.lab_delay = calibration.as_ref().and_then(LabDelay::of);
        self.origin = markdown::origin(manifest);
        self
    }

    /// The rows of the main sweep, which was measured without loss at the most paths: one for each
    /// mode, all with the same certificates, group and library.
    #[must_use]
    pub fn main_rows(&self) -> Vec<&Row> {
        lineup::main_rows(&self.summary, self.from)
    }
}

impl study::Findings for Findings {
    fn subject(&self) -> Subject {
        Subject {
            title: "What a secure connection costs to set up".to_owned(),
            question: "What does setting up a secure connection cost at my users' RTT, and what \
                       would I save by TLS 1.3, resumption, 0-RTT, TCP Fast Open or QUIC?"
                .to_owned(),
        }
    }

    fn answer(&self) -> Vec<Inline> {
        advice::answer(self)
    }

    fn key_figures(&self) -> Vec<KeyFigure> {
        advice::key_figures(self)
    }

    /// By the samples themselves: too few connections, modes that miss their specification,
    /// connections left out.
    fn cautions(&self) -> Vec<Caution> {
        counted::cautions(self)
    }

    /// Those for which nothing was measured are left out.
    fn sections(&self) -> Result<Vec<Section>, Problem> {
        let plots = || {
            Ok([
                picture::section(self)?,
                advice::section(self),
                by_rtt::section(self)?,
                fits::section(self),
                sslmtcp::section(self)?,
                fallback::section(self),
                loss::section(self)?,
                queue::section(self),
                variations::section(self),
                wire::section(self),
                published::section(self)?,
                document::section(self),
                early::section(self),
                advice::configuration(self),
                counted::section(self),
            ])
        };
        let sections: Result<_, report::PlotError> = plots();
        Ok(sections.blame(Fault::Results)?.into_iter().flatten().collect())
    }

    /// For a terminal of 120 columns: medians where there is no line, n and c, what SSLmTCP saves, what
    /// falling back costs, the tail under loss, what other keys and groups change, the SSLmTCP paper's figures
    /// and counts, what to change.
    fn tables(&self) -> Vec<Table> {
        let tables = [
            by_rtt::summary(self),
            fits::summary(self),
            sslmtcp::summary(self),
            fallback::summary(self),
            loss::summary(self),
            queue::table(self),
        ];
        let tables = tables.into_iter().flatten().chain(variations::tables(self));
        let tables = tables.chain(document::tables(self)).chain(early::table(self));
        tables.chain(advice::summary(self)).collect()
    }

    fn counterparts(&self) -> Vec<(String, Counterpart)> {
        published::counterparts(self)
    }

    fn json(&self) -> Result<Value, Problem> {
        let summary = serde_json::to_value(&self.summary).blame(Fault::Results)?;
        let changes = serde_json::to_value(&self.changes).blame(Fault::Results)?;
        let mut handshake = summary;
        if let Value::Object(handshake) = &mut handshake {
            let lab_delay = serde_json::to_value(self.lab_delay).blame(Fault::Results)?;
            handshake.insert("lab_delay".to_owned(), lab_delay);
        }
        Ok(json!({ "handshake": handshake, "changes": { "from": self.from, "to": changes } }))
    }

    fn markdown(&self) -> Result<Vec<(String, String)>, Problem> {
        let claims = claims::markdown(self).map(|text| ("handshake-claims".to_owned(), text));
        let modes = ("handshake".to_owned(), markdown::modes(self));
        Ok(std::iter::once(modes).chain(claims).collect())
    }

    fn empty(&self) -> Option<Problem> {
        let mut cells = self.summary.rows.iter().flat_map(|row| &row.cells);
        let none = cells.all(|cell| cell.completed() == 0);
        none.then(|| Problem::new(Fault::Measurement, "no connection got a response that counts"))
    }
}

/// A round-trip time in a heading, on one line: `11.6 ms`.
fn rtt_text(rtt_ms: f64) -> String {
    format!("{rtt_ms}\u{a0}ms")
}

/// The RTTs at which any of these rows was measured, ascending.
fn rtts<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<f64> {
    let cells = rows.into_iter().flat_map(|row| &row.cells);
    let mut rtts: Vec<f64> = cells.map(|cell| cell.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    rtts
}

/// An estimate in a table's cell.
fn estimate(estimate: &Estimate, decimals: usize) -> Cell {
    Cell::estimate(estimate.value, estimate.low, estimate.high, decimals)
}

/// Times of a short path are told apart by hundredths of a millisecond, of a long one by tenths.
fn decimals_at(rtt_ms: f64) -> usize {
    if rtt_ms < 5.0 { 2 } else { 1 }
}
