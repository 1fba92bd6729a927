//! The study's part of the report, and the same for a terminal.

mod answer;
mod connections;
mod picture;
mod tables;
mod truth;

use report::{Caution, Inline, KeyFigure, PlotError, Report, Section, Table};

use crate::findings::Findings;

pub(crate) use connections::connections;
pub(crate) use truth::section as truth_section;

impl Findings {
    /// The answer: how long each version takes, and what lies between.
    #[must_use]
    pub fn answer(&self) -> Vec<Inline> {
        answer::answer(self)
    }

    /// The few figures that carry the answer.
    #[must_use]
    pub fn key_figures(&self) -> Vec<KeyFigure> {
        answer::key_figures(self)
    }

    /// What a reader must know before believing the answer.
    #[must_use]
    pub fn cautions(&self) -> Vec<Caution> {
        answer::cautions(self)
    }

    /// The study's sections, in order.
    ///
    /// # Errors
    /// A plot cannot be drawn honestly.
    pub fn sections(&self) -> Result<Vec<Section>, PlotError> {
        let mut sections = vec![picture::section(self)?, tables::modes_section(self)];
        sections.extend([
            tables::difference_section(self),
            tables::change_section(self),
            tables::classes_section(self),
        ]);
        if self.has_messages() {
            sections.push(tables::offers_section(self));
        }
        sections.extend([tables::who_section(self), tables::time_section(self)]);
        if self.has_messages() {
            sections.push(tables::failures_section(self));
        }
        sections.push(tables::doubt_section(self));
        Ok(sections)
    }

    /// Whether these are of the lab's samples, not of a capture.
    pub(crate) fn is_of_samples(&self) -> bool {
        !self.populations.is_empty()
    }

    /// Whether it is known what clients offered: samples of the lab that were recorded before
    /// 2026-11-22 do not have it.
    pub(crate) fn has_messages(&self) -> bool {
        !self.is_of_samples() || self.offered_versions.total > 0
    }

    /// A report of its own, without a manifest, date or command: the caller knows these.
    ///
    /// # Errors
    /// A plot cannot be drawn honestly.
    pub fn report(&self) -> Result<Report, PlotError> {
        let mut report = Report::new("How long real clients take");
        report.subtitle = "TLS handshakes as the packets at the server show them".to_owned();
        report.question =
            "How long do my clients take to set up TLS, and what would a newer version save?"
                .to_owned();
        report.answer = self.answer();
        report.key_figures = self.key_figures();
        report.cautions = self.cautions();
        report.sections = self.sections()?;
        let counterparts = crate::published::counterparts(self);
        let beside = study::beside(&crate::published::figures().unwrap_or_default(), &counterparts);
        let section = Section::new("published", "Beside the published figures");
        report.sections.push(beside.into_iter().fold(section, Section::with));
        Ok(report)
    }

    /// The tables for a terminal, those that answer the question first.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let all = [
            tables::classes(self),
            tables::modes(self),
            tables::difference(self),
            tables::changes(self),
            tables::names("Versions offered", "version", &self.offered_versions, 10),
            tables::groups("By server name", "server name", &self.server_names, 8),
            tables::groups("By client network", "network", &self.networks, 8),
            tables::names("Why handshakes failed", "why", &self.failures, 8),
            tables::cross_names(self),
            tables::fallbacks(self),
            tables::doubt(self),
            tables::frames(self),
        ];
        all.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// The answer and the tables for a terminal of so many columns. The first lines are the answer.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut text = String::new();
        for line in self.answer() {
            text.push_str(&line.to_plain());
            text.push('\n');
        }
        for caution in self.cautions() {
            let effect = caution.effect_text();
            text.push_str(&format!("note: {}\n  {effect}\n", caution.note.text.to_plain()));
        }
        for table in self.tables() {
            text.push('\n');
            text.push_str(table.to_text(width).trim_end());
            text.push('\n');
        }
        text
    }
}
