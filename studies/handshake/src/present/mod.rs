//! The study's part of the report: the answer, the evidence, the tables for a terminal.

mod advice;
mod by_rtt;
mod counted;
mod fallback;
mod fits;
mod lineup;
mod loss;
mod picture;
mod published;
mod sslmtcp;
mod variations;
mod wire;

#[cfg(test)]
mod tests;

use report::{Cell, Inline, KeyFigure, Note, Section, Table};
use stats::{Distribution, Estimate};

use crate::embedded::{self, Embedded};
use crate::mode::Mode;
use crate::savings::{self, Change};
use crate::summary::{Row, Summary};

/// What the study's report is made of.
pub struct Findings<'a> {
    /// What the samples say.
    pub summary: &'a Summary,
    /// The mode that is run today.
    pub from: Mode,
    /// The clients' round-trip times, if known.
    pub clients: Option<&'a Distribution>,
    /// What each change of mode would save, the largest first.
    pub changes: Vec<Change>,
    /// What each SSLmTCP mode saves from its control.
    pub embedded: Vec<Embedded>,
    /// By how much the pump delays a frame more than it was asked to, one way at the median, in
    /// milliseconds; `None` if the lab was not calibrated.
    pub one_way_error_ms: Option<f64>,
}

impl<'a> Findings<'a> {
    /// What `summary` says to someone who runs `from` today.
    ///
    /// # Errors
    /// Statistics refuse the samples.
    pub fn new(
        summary: &'a Summary,
        from: Mode,
        clients: Option<&'a Distribution>,
        seed: u64,
    ) -> Result<Self, stats::Error> {
        let changes = savings::changes(summary, from, clients, seed)?;
        let embedded = embedded::embedded(summary)?;
        Ok(Findings { summary, from, clients, changes, embedded, one_way_error_ms: None })
    }

    /// With the calibration of the lab in which the samples were measured.
    #[must_use]
    pub fn calibrated(mut self, calibration: &pump::Calibration) -> Self {
        let errors = calibration.delays.iter().map(|check| check.one_way_error.p50_ns as f64 / 1e6);
        let errors: Vec<f64> = errors.collect();
        self.one_way_error_ms = stats::Sample::new(&errors).ok().map(|errors| errors.median());
        self
    }

    /// The answer, for the head of the report: what to change, and what it saves.
    #[must_use]
    pub fn answer(&self) -> Vec<Inline> {
        advice::answer(self)
    }

    /// The few figures that carry the answer.
    #[must_use]
    pub fn key_figures(&self) -> Vec<KeyFigure> {
        advice::key_figures(self)
    }

    /// What a reader must know before believing the answer, by the samples themselves: too few
    /// connections, modes that miss their specification, connections left out.
    #[must_use]
    pub fn cautions(&self) -> Vec<Note> {
        counted::cautions(self)
    }

    /// The study's sections, in order; those for which nothing was measured are left out.
    ///
    /// # Errors
    /// A plot cannot be drawn honestly.
    pub fn sections(&self) -> Result<Vec<Section>, report::PlotError> {
        let sections = [
            picture::section(self)?,
            advice::section(self),
            by_rtt::section(self)?,
            fits::section(self),
            sslmtcp::section(self)?,
            fallback::section(self),
            loss::section(self)?,
            variations::section(self),
            wire::section(self),
            published::section(self)?,
            advice::configuration(self),
            counted::section(self),
        ];
        Ok(sections.into_iter().flatten().collect())
    }

    /// The tables for a terminal of 120 columns: n and c, what SSLmTCP saves, what
    /// falling back costs, the tail under loss, what to change.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let tables = [
            fits::summary(self),
            sslmtcp::summary(self),
            fallback::summary(self),
            loss::summary(self),
            advice::summary(self),
        ];
        tables.into_iter().flatten().collect()
    }

    /// The rows of the main sweep, which was measured without loss at the most paths: one for each
    /// mode, all with the same certificates, group and library.
    #[must_use]
    pub fn main_rows(&self) -> Vec<&Row> {
        lineup::main_rows(self.summary, self.from)
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
