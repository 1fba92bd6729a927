//! What a report holds.

use crate::{Caution, Flame, Inline, Plot, Table};

/// A report. [`crate::render`] makes HTML of it.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was measured, in a few words.
    pub title: String,
    /// Where and how, in one line.
    pub subtitle: String,
    /// The engineer's question that the report answers.
    pub question: String,
    /// The answer: the first sentence is printed large, so it says what to change.
    pub answer: Vec<Inline>,
    /// The few figures that carry the answer.
    pub key_figures: Vec<KeyFigure>,
    /// One card for each study, where the report has several: in place of question, answer and figures. The
    /// sections are folded then.
    pub cards: Vec<Card>,
    /// What a reader must know before believing the answer; printed beneath the figures.
    pub cautions: Vec<Caution>,
    /// The evidence, in the order of the contents.
    pub sections: Vec<Section>,
    /// How far the lab can be trusted, as it measured itself.
    pub calibration: Vec<Fact>,
    /// What made the result: versions, kernel, machine. Any JSON; `null` leaves it out.
    pub manifest: serde_json::Value,
    /// When the result was measured, as the caller wants it printed; the report has no clock.
    pub generated_at: String,
    /// The command that makes the whole result again: text of our own, to be copied.
    pub command: String,
    /// The command that made the results, as they have it: a stranger's text, shown as a quote.
    pub recorded_command: String,
}

impl Report {
    /// An empty report with a title.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }
}

/// One study's answer, at the head of a report of several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Card {
    /// What the study is about, in a few words.
    pub title: String,
    /// The engineer's question.
    pub question: String,
    /// The answer, in a sentence.
    pub answer: Inline,
    /// The figure that carries it.
    pub figure: Option<KeyFigure>,
    /// The [`Section::id`] at which the study's evidence begins.
    pub section: String,
}

/// A figure in large type, with what it means.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyFigure {
    /// The number, formatted.
    pub value: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// What it is, in a few words.
    pub label: String,
    /// Interval, place, sample size: what a reader needs to believe it.
    pub detail: String,
    /// What it means for the reader, in one sentence made of measured values.
    pub means: String,
}

/// A part of the report with its own entry in the contents.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// A short name for links; made unique and fit for HTML when rendered.
    pub id: String,
    /// The heading, which the contents list too.
    pub title: String,
    /// What is in it, in order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty section.
    #[must_use]
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), blocks: Vec::new() }
    }

    /// Appends a block.
    #[must_use]
    pub fn with(mut self, block: impl Into<Block>) -> Self {
        self.blocks.push(block.into());
        self
    }
}

/// One thing in a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// One paragraph of text.
    Paragraph(Inline),
    /// A list of points, unordered.
    List(Vec<Inline>),
    /// A plot with its alternative text and its table.
    Plot(Box<Plot>),
    /// A flame graph with its table.
    Flame(Flame),
    /// A table of typed cells.
    Table(Table),
    /// Lines of a configuration or a shell.
    Code(Code),
    /// Something that the reader must know about the result.
    Note(Note),
}

impl From<Inline> for Block {
    fn from(line: Inline) -> Self {
        Self::Paragraph(line)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Self {
        Self::Plot(Box::new(plot))
    }
}

impl From<Flame> for Block {
    fn from(flame: Flame) -> Self {
        Self::Flame(flame)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Code> for Block {
    fn from(code: Code) -> Self {
        Self::Code(code)
    }
}

impl From<Note> for Block {
    fn from(note: Note) -> Self {
        Self::Note(note)
    }
}

/// Lines to copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Code {
    /// What reads it: `nginx`, `haproxy`, `sysctl`, `sh`.
    pub language: String,
    /// What it switches on.
    pub caption: String,
    /// The lines, as they are to be copied.
    pub text: String,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// Good to know.
    Info,
    /// The result may be wrong or narrower than it looks.
    Warning,
}

/// A remark with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub kind: NoteKind,
    /// What is the case.
    pub text: Inline,
    /// What to do about it, where something can be done.
    pub remedy: Option<Inline>,
}

impl Note {
    /// Something good to know.
    #[must_use]
    pub fn info(text: impl Into<Inline>) -> Self {
        Self { kind: NoteKind::Info, text: text.into(), remedy: None }
    }

    /// A warning, with its remedy.
    #[must_use]
    pub fn warning(text: impl Into<Inline>, remedy: impl Into<Inline>) -> Self {
        Self { kind: NoteKind::Warning, text: text.into(), remedy: Some(remedy.into()) }
    }
}

/// A named value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// Its value with unit.
    pub value: String,
    /// What it means for the result; may be empty.
    pub meaning: String,
}

impl Fact {
    /// A named value and what it means.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), value: value.into(), meaning: meaning.into() }
    }
}
