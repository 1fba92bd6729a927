//! Reports and tables on a terminal: aligned by display width, never wider than asked, no colour.

use std::collections::{BTreeMap, BTreeSet};

use fault::{one_line, plain};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{Block, Caution, Cell, Column, Inline, Note, NoteKind, Report, Table};

/// Spaces between columns.
const GAP: usize = 2;
/// A text column is cut down to this before intervals or columns are left out.
const LEAST_TEXT: usize = 8;
/// The same of the first column: its texts tell the rows apart.
const LEAST_NAME: usize = 28;
/// What stands where there is no value.
const NONE: &str = "-";

impl Table {
    /// The table as lines of at most `width` display columns (UAX #11), each ended by a line feed.
    ///
    /// Names of rows that would be cut to the same text stand whole above their rows.
    /// Where the table is too wide it loses, in this order: the ends of long texts (marked `…`;
    /// the first column keeps 28 columns), the intervals, the last columns; a last line names what
    /// is not shown. Commands are not
    /// shown: they are in the HTML and in the raw samples.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        let width = width.max(LEAST_TEXT);
        let mut columns = lay_out(self, true);
        let mut without_intervals = false;
        if !shrink(&mut columns, width) {
            columns = lay_out(self, false);
            without_intervals = true;
        }
        let mut left_out = Vec::new();
        while !shrink(&mut columns, width) && columns.len() > 1 {
            left_out.extend(columns.pop().map(|column| column.title));
        }
        if let [only] = columns.as_mut_slice() {
            only.width = only.width.min(width);
        }
        left_out.reverse();
        if without_intervals && self.has_intervals() {
            left_out.insert(0, "intervals".to_owned());
        }
        print(self, &columns, &left_out, width)
    }

    fn has_intervals(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.interval_text().is_some())
    }
}

/// A column ready for print.
struct TextColumn {
    title: String,
    unit: String,
    cells: Vec<String>,
    right: bool,
    width: usize,
}

fn lay_out(table: &Table, intervals: bool) -> Vec<TextColumn> {
    table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = column_texts(table, at, intervals);
            let title = one_line(&column.title).into_owned();
            let unit = unit_text(column);
            let width =
                cells.iter().chain([&title, &unit]).map(|text| text.width()).max().unwrap_or(0);
            TextColumn { title, unit, cells, right: table.is_numeric(at), width }
        })
        .collect()
}

fn unit_text(column: &Column) -> String {
    match one_line(&column.unit).as_ref() {
        "" => String::new(),
        unit => format!("({unit})"),
    }
}

/// The texts of a column; intervals are padded so that every bracket stands under the others.
fn column_texts(table: &Table, column: usize, intervals: bool) -> Vec<String> {
    let cells = || table.rows.iter().map(|row| table.cell(row, column));
    let ends: Vec<_> = cells().map(Cell::interval_text).collect();
    let low_width = ends.iter().flatten().map(|(low, _)| low.len()).max().unwrap_or(0);
    let high_width = ends.iter().flatten().map(|(_, high)| high.len()).max().unwrap_or(0);
    let any = intervals && low_width > 0;
    cells()
        .zip(&ends)
        .map(|(cell, ends)| {
            let head = match cell {
                Cell::Empty => NONE.to_owned(),
                Cell::Text(text) | Cell::Code(text) => one_line(text).into_owned(),
                Cell::Status(status, text) => {
                    format!("{} {}", status.sign(), one_line(text))
                }
                Cell::Number { .. } | Cell::Estimate { .. } => {
                    cell.value_text().unwrap_or_else(|| NONE.to_owned())
                }
            };
            match ends {
                Some((low, high)) if any => {
                    format!("{head} [{low:>low_width$}, {high:>high_width$}]")
                }
                // As wide as the interval, so that the number stays under the numbers.
                None if any && table.is_numeric(column) => {
                    format!("{head}{}", " ".repeat(low_width + high_width + 5))
                }
                _ => head,
            }
        })
        .collect()
}

/// Narrows text columns, the widest first, until the table fits; false when it cannot.
fn shrink(columns: &mut [TextColumn], width: usize) -> bool {
    loop {
        let total: usize = columns.iter().map(|column| column.width).sum::<usize>()
            + GAP * columns.len().saturating_sub(1);
        let Some(excess) = total.checked_sub(width).filter(|excess| *excess > 0) else {
            return true;
        };
        // Names go before other texts only where a single value beside them would go instead.
        let least_name = if columns.len() > 2 { LEAST_NAME } else { LEAST_TEXT };
        let least = |at: usize| if at == 0 { least_name } else { LEAST_TEXT };
        let texts =
            columns.iter_mut().enumerate().filter(|(at, c)| !c.right && c.width > least(*at));
        let Some((at, widest)) = texts.max_by_key(|(_, column)| column.width) else {
            return false;
        };
        widest.width = widest.width.saturating_sub(excess).max(least(at));
    }
}

fn print(table: &Table, columns: &[TextColumn], left_out: &[String], width: usize) -> String {
    let mut out = String::new();
    if !table.caption.is_empty() {
        wrap(&mut out, "", &one_line(&table.caption), width);
    }
    let line = |out: &mut String, texts: Vec<&str>| {
        let mut row = String::new();
        for (at, (column, text)) in columns.iter().zip(texts).enumerate() {
            if at > 0 {
                row.push_str(&" ".repeat(GAP));
            }
            row.push_str(&pad(text, column.width, column.right));
        }
        out.push_str(row.trim_end());
        out.push('\n');
    };
    line(&mut out, columns.iter().map(|column| column.title.as_str()).collect());
    if columns.iter().any(|column| !column.unit.is_empty()) {
        line(&mut out, columns.iter().map(|column| column.unit.as_str()).collect());
    }
    let rules: Vec<String> = columns.iter().map(|column| "\u{2500}".repeat(column.width)).collect();
    line(&mut out, rules.iter().map(String::as_str).collect());
    let alike = columns.first().map(alike_when_cut).unwrap_or_default();
    for row in 0..table.rows.len() {
        let mut texts: Vec<&str> =
            columns.iter().map(|c| c.cells.get(row).map_or("", String::as_str)).collect();
        if let Some(name) = texts.first_mut().filter(|name| alike.contains(**name)) {
            wrap(&mut out, "", name, width);
            *name = "";
        }
        line(&mut out, texts);
    }
    if !left_out.is_empty() {
        wrap(&mut out, "", &format!("(too narrow for: {})", left_out.join(", ")), width);
    }
    out
}

/// Returns the names that differ only in what the column cuts off.
fn alike_when_cut(column: &TextColumn) -> BTreeSet<&str> {
    let mut names: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for name in &column.cells {
        names.entry(cut(name, column.width)).or_default().insert(name);
    }
    names.into_values().filter(|names| names.len() > 1).flatten().collect()
}

/// `text` in exactly `width` display columns; what is cut off is marked.
fn pad(text: &str, width: usize, right: bool) -> String {
    let text = cut(text, width);
    let space = " ".repeat(width.saturating_sub(text.width()));
    if right { format!("{space}{text}") } else { format!("{text}{space}") }
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        out.push(c);
    }
    out.push('\u{2026}');
    out
}

/// Appends `text` in lines of at most `width`, the first after `lead`, the others indented as far.
/// A word longer than a line is cut into lines.
fn wrap(out: &mut String, lead: &str, text: &str, width: usize) {
    let indent = " ".repeat(lead.width());
    let room = width.saturating_sub(lead.width()).max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        for piece in pieces(word, room) {
            let Some(last) = lines.last_mut() else { break };
            if last.is_empty() {
                *last = piece;
            } else if last.width() + 1 + piece.width() <= room {
                last.push(' ');
                last.push_str(&piece);
            } else {
                lines.push(piece);
            }
        }
    }
    for (at, line) in lines.iter().enumerate() {
        out.push_str(if at == 0 { lead } else { &indent });
        out.push_str(line);
        out.push('\n');
    }
}

/// A word in parts of at most `width` display columns (a single wide character may exceed 1).
fn pieces(word: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in word.chars() {
        let full = parts
            .last()
            .is_some_and(|p| !p.is_empty() && p.width() + c.width().unwrap_or(0) > width);
        if full {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

impl Inline {
    /// The text in lines of at most `width` display columns, each ended.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        let mut out = String::new();
        wrap(&mut out, "", &self.to_plain(), width.max(LEAST_TEXT));
        out
    }
}

impl Report {
    /// The report as text in lines of at most `width` display columns: the answer, then each
    /// section's words and tables. A plot is given as its sentence; its values are in the HTML.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        let width = width.max(LEAST_TEXT);
        let mut out = String::new();
        heading(&mut out, &self.title, '=', width);
        for text in [&self.subtitle, &self.question] {
            if !text.is_empty() {
                wrap(&mut out, "", &one_line(text), width);
            }
        }
        if !self.answer.is_empty() {
            out.push('\n');
        }
        for sentence in &self.answer {
            wrap(&mut out, "", &sentence.to_plain(), width);
        }
        for figure in &self.key_figures {
            let text = format!("{} {} {}", figure.value, figure.unit, figure.label);
            let detail = match figure.detail.as_str() {
                "" => String::new(),
                detail => format!(" ({detail})"),
            };
            wrap(&mut out, "* ", &one_line(&format!("{text}{detail}")), width);
            if !figure.means.is_empty() {
                wrap(&mut out, "  ", &one_line(&figure.means), width);
            }
        }
        for card in &self.cards {
            out.push('\n');
            heading(&mut out, &card.title, '-', width);
            wrap(&mut out, "", &one_line(&card.question), width);
            wrap(&mut out, "", &card.answer.to_plain(), width);
        }
        for caution in &self.cautions {
            caution_text(&mut out, caution, width);
        }
        for section in &self.sections {
            out.push('\n');
            heading(&mut out, &section.title, '-', width);
            for (at, block) in section.blocks.iter().enumerate() {
                if at > 0 {
                    out.push('\n');
                }
                block_text(&mut out, block, width);
            }
        }
        out
    }
}

fn heading(out: &mut String, text: &str, rule: char, width: usize) {
    let text = one_line(text);
    wrap(out, "", &text, width);
    out.extend(std::iter::repeat_n(rule, text.width().clamp(1, width)));
    out.push('\n');
}

fn block_text(out: &mut String, block: &Block, width: usize) {
    match block {
        Block::Paragraph(line) => wrap(out, "", &line.to_plain(), width),
        Block::List(items) => list_text(out, items, width),
        Block::Plot(plot) => {
            wrap(out, "", &one_line(plot.title()), width);
            wrap(out, "  ", &one_line(plot.means()), width);
            wrap(out, "  ", &one_line(plot.alt()), width);
        }
        Block::Flame(flame) => {
            wrap(out, "", &one_line(&flame.title), width);
            wrap(out, "  ", &one_line(&flame.means), width);
            wrap(out, "  ", &one_line(&flame.alt), width);
        }
        Block::Table(table) => out.push_str(&table.to_text(width)),
        Block::Code(code) => {
            wrap(out, "", &one_line(&code.caption), width);
            // Lines to copy are not wrapped: a broken line would no longer work.
            for line in plain(&code.text).lines() {
                out.push_str("    ");
                out.push_str(line);
                out.push('\n');
            }
        }
        Block::Note(note) => note_text(out, note, width),
    }
}

fn list_text(out: &mut String, items: &[Inline], width: usize) {
    for item in items {
        wrap(out, "* ", &item.to_plain(), width);
    }
}

fn note_text(out: &mut String, note: &Note, width: usize) {
    let lead = match note.kind {
        NoteKind::Info => "note: ",
        NoteKind::Warning => "warning: ",
    };
    wrap(out, lead, &note.text.to_plain(), width);
    if let Some(remedy) = &note.remedy {
        wrap(out, "hint: ", &remedy.to_plain(), width);
    }
}

fn caution_text(out: &mut String, caution: &Caution, width: usize) {
    note_text(out, &caution.note, width);
    wrap(out, "", &caution.effect_text(), width);
}

#[cfg(test)]
mod tests;
