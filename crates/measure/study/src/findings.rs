//! What a study's samples say.

use fault::Problem;
use report::{Caution, Inline, KeyFigure, Section, Table};
use serde_json::Value;
use stats::claims::Ranking;

use crate::published::Counterpart;

/// What a report is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The title, in a few words.
    pub title: String,
    /// The engineer's question.
    pub question: String,
}

/// What a study's samples say. A report has the parts in the order in which they stand here.
pub trait Findings {
    /// What the report is about.
    fn subject(&self) -> Subject;

    /// The answer; the first sentence stands alone.
    fn answer(&self) -> Vec<Inline>;

    /// The rankings behind the answer, by title: their samples decide which group may be called better.
    fn rankings(&self) -> Vec<(String, Ranking)> {
        Vec::new()
    }

    /// The few figures that carry the answer.
    fn key_figures(&self) -> Vec<KeyFigure>;

    /// What a reader must know before believing the answer, and whether the answer would change.
    fn cautions(&self) -> Vec<Caution>;

    /// The evidence, less the published figures.
    ///
    /// # Errors
    /// A plot cannot be drawn honestly.
    fn sections(&self) -> Result<Vec<Section>, Problem>;

    /// The tables for a terminal, less the published figures. Whatever was measured is in one of them.
    fn tables(&self) -> Vec<Table>;

    /// What stands beside each published figure, by its key ([`crate::Figure::key`]).
    fn counterparts(&self) -> Vec<(String, Counterpart)>;

    /// All that was found, for `--json`.
    ///
    /// # Errors
    /// A value cannot be written as JSON.
    fn json(&self) -> Result<Value, Problem>;

    /// The named texts for Markdown files (`<!-- figures:NAME -->`), which are generated so that prose
    /// never says other than the results.
    ///
    /// # Errors
    /// The results lack what a text needs.
    fn markdown(&self) -> Result<Vec<(String, String)>, Problem>;

    /// Why nothing was found, if samples are there and none of them says anything: then the command
    /// fails, after the report is written.
    fn empty(&self) -> Option<Problem>;
}
