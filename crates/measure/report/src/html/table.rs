//! A table: caption, heads with scope, numbers to the right. The script adds sorting and copying.

use super::Page;
use crate::clean::html as esc;
use crate::{Cell, Row, Status, Table, number};

/// Columns from which on a sheet of paper has no room for intervals beside their values.
const WIDE: usize = 7;

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the text.
    Text,
    /// Beneath its plot, folded.
    Plot,
}

pub(super) fn table(page: &mut Page, out: &mut String, table: &Table, place: Place) {
    let id = page.ids.unique("table");
    let class = match (place, table.columns.len() >= WIDE) {
        (Place::Plot, false) => "data values",
        (Place::Plot, true) => "data values wide",
        (Place::Text, false) => "data",
        (Place::Text, true) => "data wide",
    };
    out.push_str(&format!(
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}\">\n\
         <table class=\"{class}\">\n<caption id=\"{id}\"><span>{}</span></caption>\n<thead>\n<tr>",
        esc(&table.caption)
    ));
    let commands = table.has_commands();
    for (at, column) in table.columns.iter().enumerate() {
        let class = if table.is_numeric(at) { " class=\"n\"" } else { "" };
        let unit = match column.unit.as_str() {
            "" => String::new(),
            unit => format!(" <span class=\"unit\">({})</span>", esc(unit)),
        };
        out.push_str(&format!(
            "<th scope=\"col\"{class} data-head=\"{}\"><span class=\"head\">{}{unit}</span></th>",
            esc(&column.head()),
            esc(&column.title)
        ));
    }
    if commands {
        out.push_str("<th scope=\"col\" class=\"again\" data-head=\"Command\">Again</th>");
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    let layouts: Vec<Layout> =
        (0..table.columns.len()).map(|column| Layout::of(table, column)).collect();
    for row in &table.rows {
        out.push_str("<tr>");
        for (at, layout) in layouts.iter().enumerate() {
            out.push_str(&cell(table.cell(row, at), at == 0, layout));
        }
        if commands {
            out.push_str(&command(row));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// What the cells of a column share.
struct Layout {
    numeric: bool,
    /// Characters of the longest interval ends.
    low: usize,
    high: usize,
    /// The greatest absolute value, where bars are wanted.
    bar_of: Option<f64>,
}

impl Layout {
    fn of(table: &Table, column: usize) -> Self {
        let cells = || table.rows.iter().map(move |row| table.cell(row, column));
        let ends = || cells().filter_map(Cell::interval_text);
        let length = |text: String| number::typeset(&text).chars().count();
        let bars = table.columns.get(column).is_some_and(|column| column.bars);
        let greatest = cells().filter_map(Cell::value).map(f64::abs).fold(0.0, f64::max);
        Self {
            numeric: table.is_numeric(column),
            low: ends().map(|(low, _)| length(low)).max().unwrap_or(0),
            high: ends().map(|(_, high)| length(high)).max().unwrap_or(0),
            bar_of: (bars && greatest > 0.0).then_some(greatest),
        }
    }
}

fn cell(cell: &Cell, first: bool, layout: &Layout) -> String {
    let class = if layout.numeric { " class=\"n\"" } else { "" };
    let (attributes, content) = match cell {
        Cell::Empty => (String::new(), none()),
        Cell::Text(text) => (String::new(), esc(text)),
        Cell::Code(text) => (String::new(), format!("<code>{}</code>", esc(text))),
        Cell::Status(status, text) => (String::new(), judgement(*status, text)),
        Cell::Number { .. } | Cell::Estimate { .. } => quantity(cell, layout),
    };
    if first {
        format!("<th scope=\"row\"{class}{attributes}>{content}</th>")
    } else {
        format!("<td{class}{attributes}>{content}</td>")
    }
}

/// A dash for the eye, a word for the ear.
fn none() -> String {
    "<span aria-hidden=\"true\">\u{2013}</span><span class=\"unseen\">none</span>".to_owned()
}

fn judgement(status: Status, text: &str) -> String {
    let class = match status {
        Status::Good => "good",
        Status::Bad => "bad",
        Status::Neutral => "neutral",
    };
    format!(
        "<span class=\"{class}\"><span aria-hidden=\"true\">{} </span>{}</span>",
        status.sign(),
        esc(text)
    )
}

/// The attributes of a number's cell and its content: `data-v` is what sorting and copying read.
fn quantity(cell: &Cell, layout: &Layout) -> (String, String) {
    let (Some(value), Some(text)) = (cell.value(), cell.value_text()) else {
        return (String::new(), none());
    };
    let mut attributes = format!(" data-v=\"{value}\"");
    if let Some(greatest) = layout.bar_of {
        let share = (100.0 * value.abs() / greatest).clamp(0.0, 100.0);
        let class = if value < 0.0 { "below" } else { "above" };
        attributes.push_str(&format!(" data-bar=\"{class}\" style=\"--share:{share:.1}%\""));
    }
    let mut content = number::typeset(&text);
    match (cell, cell.interval_text()) {
        (Cell::Estimate { low, high, .. }, Some((low_text, high_text))) => {
            attributes.push_str(&format!(" data-low=\"{low}\" data-high=\"{high}\""));
            content.push_str(&format!(
                " <span class=\"interval\">[{}, {}]</span>",
                figure_spaces(&low_text, layout.low),
                figure_spaces(&high_text, layout.high)
            ));
        }
        // Keeps the number under the numbers.
        _ if layout.low > 0 => {
            let gap = "\u{2007}".repeat(layout.low + layout.high);
            content.push_str(&format!(
                " <span class=\"interval blank\" aria-hidden=\"true\">[{gap}, ]</span>"
            ));
        }
        _ => {}
    }
    (attributes, content)
}

/// Pads with spaces as wide as a digit.
fn figure_spaces(text: &str, length: usize) -> String {
    let text = number::typeset(text);
    let missing = length.saturating_sub(text.chars().count());
    format!("{}{text}", "\u{2007}".repeat(missing))
}

fn command(row: &Row) -> String {
    match row.again() {
        Some(command) => format!(
            "<td class=\"again\"><details><summary>command</summary><code>{}</code></details></td>",
            esc(command)
        ),
        None => format!("<td class=\"again\">{}</td>", none()),
    }
}
