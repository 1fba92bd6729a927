//! Tables as Markdown (GitHub's form), for the project's own pages.

use std::fmt::Write as _;

use fault::one_line;

use crate::{Cell, Table};

impl Table {
    /// The table as Markdown: numbers to the right, intervals in brackets, nothing that a cell says is read as a
    /// mark. Its caption is left to the page.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let titles = self.columns.iter().map(|column| match column.unit.as_str() {
            "" => plain_markdown(&column.title),
            unit => format!("{} ({})", plain_markdown(&column.title), plain_markdown(unit)),
        });
        let rules =
            (0..self.columns.len()).map(|at| if self.is_numeric(at) { "--:" } else { "---" });
        let mut text = line(titles) + &line(rules.map(str::to_owned));
        for row in &self.rows {
            text += &line((0..self.columns.len()).map(|at| cell(self.cell(row, at))));
        }
        text
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut text = cells.fold("|".to_owned(), |mut text, cell| {
        // Writing to a String cannot fail.
        let _ = write!(text, " {cell} |");
        text
    });
    text.push('\n');
    text
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => plain_markdown(text),
        Cell::Code(text) => format!("`{}`", one_line(text).replace(['`', '|'], " ")),
        Cell::Status(status, text) => format!("{} {}", status.sign(), plain_markdown(text)),
        Cell::Number { .. } | Cell::Estimate { .. } => {
            let value = cell.value_text().unwrap_or_default();
            match cell.interval_text() {
                Some((low, high)) => format!("{value} [{low}, {high}]"),
                None => value,
            }
        }
    }
}

/// Text on one line in which nothing is a mark of Markdown or HTML, but code in backticks stays code.
#[must_use]
pub fn plain_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '|' | '<' | '*' | '_' | '[' | ']' if !in_code(&out) => {
                out.push('\\');
                out.push(c);
            }
            // Even in code a bar would end the cell.
            '|' => out.push_str("\\|"),
            c => out.push(c),
        }
    }
    out
}

/// Whether a span of code is open at the end of this text.
fn in_code(text: &str) -> bool {
    text.matches('`').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Column, Row, Table};

    #[test]
    fn cells_are_what_they_say_and_no_marks() {
        let columns = vec![Column::new("a|b"), Column::new("time").unit("ms"), Column::new("note")];
        let mut table = Table::new("caption", columns);
        let note = "x_y\u{1b} by `wiretax a --b_c 1|2`\nend";
        table.push(Row::new(vec![
            Cell::text("*"),
            Cell::estimate(1.25, 1.0, 2.0, 1),
            Cell::text(note),
        ]));
        table.push(Row::new(vec![Cell::Code("k|l".to_owned()), Cell::number(3.0, 1), Cell::Empty]));
        let expected = "| a\\|b | time (ms) | note |\n\
                        | --- | --: | --- |\n\
                        | \\* | 1.2 [1.0, 2.0] | x\\_y\u{fffd} by `wiretax a --b_c 1\\|2` end |\n\
                        | `k l` | 3.0 |  |\n";
        assert_eq!(table.to_markdown(), expected);
    }
}
