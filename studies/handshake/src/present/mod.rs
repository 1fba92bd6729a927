//! The study's part of the report: the answer, the evidence, the tables for a terminal.

mod advice;
mod evidence;
mod loss;
mod published;

use report::{Inline, KeyFigure, Section, Table};
use stats::Distribution;

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
        Ok(Findings { summary, from, clients, changes })
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

    /// The study's sections, in order; those for which nothing was measured are left out.
    ///
    /// # Errors
    /// A plot cannot be drawn honestly.
    pub fn sections(&self) -> Result<Vec<Section>, report::PlotError> {
        let sections = [
            advice::section(self),
            evidence::by_rtt(self)?,
            evidence::fits(self),
            published::section(self)?,
            evidence::wire(self),
            loss::section(self)?,
            evidence::variations(self),
            advice::configuration(self),
            evidence::how(self),
        ];
        Ok(sections.into_iter().flatten().collect())
    }

    /// The tables for a terminal: n and c, and what to change.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        [evidence::fit_table(self), loss::table(self), advice::table(self)]
            .into_iter()
            .flatten()
            .collect()
    }

    /// The rows that were measured without loss at the most paths for their mode: the main sweep's.
    #[must_use]
    pub fn main_rows(&self) -> Vec<&Row> {
        let sweep = self.summary.rows.iter().max_by_key(|row| {
            let same = |other: &&Row| other.key.sweep == row.key.sweep && !other.cells.is_empty();
            self.summary.rows.iter().filter(same).map(|other| other.cells.len()).sum::<usize>()
        });
        let Some(sweep) = sweep.map(|row| &row.key.sweep) else { return Vec::new() };
        let of_sweep = |row: &&Row| row.key.sweep == *sweep && !row.cells.is_empty();
        self.summary.rows.iter().filter(of_sweep).collect()
    }
}

/// A round-trip time in a heading: `11.6 ms`.
fn rtt_text(rtt_ms: f64) -> String {
    format!("{rtt_ms} ms")
}

/// The RTTs at which any of these rows was measured, ascending.
fn rtts<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<f64> {
    let cells = rows.into_iter().flat_map(|row| &row.cells);
    let mut rtts: Vec<f64> = cells.map(|cell| cell.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    rtts.dedup();
    rtts
}
