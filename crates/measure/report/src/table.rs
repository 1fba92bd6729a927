//! Tables: typed cells, so that a number sorts as a number and an interval stays with its value.

use crate::number;

/// A table. The first column names the row (`<th scope="row">`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// What the table shows; a screen reader reads it first.
    pub caption: String,
    /// The columns' heads; the first column names the row.
    pub columns: Vec<Column>,
    /// The rows. A row with fewer cells than columns is filled with [`Cell::Empty`]; cells beyond
    /// the columns are not shown.
    pub rows: Vec<Row>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Appends a row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The cell at a place, [`Cell::Empty`] where the row is short.
    pub(crate) fn cell<'a>(&self, row: &'a Row, column: usize) -> &'a Cell {
        row.cells.get(column).unwrap_or(&Cell::Empty)
    }

    /// Whether a column holds numbers: there is nothing in it but numbers and gaps. The first
    /// column does so only with a number in it.
    pub(crate) fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().map(|row| self.cell(row, column));
        let number = |cell: &Cell| matches!(cell, Cell::Number { .. } | Cell::Estimate { .. });
        cells.clone().all(|cell| number(cell) || *cell == Cell::Empty)
            && !self.rows.is_empty()
            && (column > 0 || cells.any(number))
    }

    /// Whether any row says how to make it again.
    pub(crate) fn has_commands(&self) -> bool {
        self.rows.iter().any(|row| row.again().is_some())
    }
}

/// A column's head.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    /// What the column holds.
    pub title: String,
    /// The unit of its numbers; empty for none.
    pub unit: String,
    /// Whether HTML draws a thin bar under each number, as long as the number is large in its
    /// column. The number stays.
    pub bars: bool,
}

impl Column {
    /// A column without unit.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the unit.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Asks for bars.
    #[must_use]
    pub fn bars(mut self) -> Self {
        self.bars = true;
        self
    }

    /// Title and unit in one text.
    pub(crate) fn head(&self) -> String {
        match self.unit.as_str() {
            "" => self.title.clone(),
            unit => format!("{} ({unit})", self.title),
        }
    }
}

/// A row of a [`Table`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Its cells, one for each column from the first on.
    pub cells: Vec<Cell>,
    /// The command, seed included, that measures this row again.
    pub command: Option<String>,
}

impl Row {
    /// Its command, where there is one: an empty one is none.
    pub(crate) fn again(&self) -> Option<&str> {
        self.command.as_deref().filter(|command| !command.is_empty())
    }

    /// A row without a command.
    #[must_use]
    pub fn new(cells: Vec<Cell>) -> Self {
        Self { cells, command: None }
    }

    /// Sets the command.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// A judgement, shown by a sign and words; colour only repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As it should be, or better than before.
    Good,
    /// Not as it should be, or worse than before.
    Bad,
    /// Neither, or not known.
    Neutral,
}

impl Status {
    /// The sign: one column wide on a terminal.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Good => "\u{2713}",
            Self::Bad => "\u{2717}",
            Self::Neutral => "\u{00B7}",
        }
    }
}

/// A cell of a [`Table`].
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// Nothing was measured, or nothing applies.
    #[default]
    Empty,
    /// Text, as it is.
    Text(String),
    /// Text that a program reads.
    Code(String),
    /// A number. One that is not finite is shown as [`Cell::Empty`].
    Number {
        /// The number, in its column's unit.
        value: f64,
        /// Digits after the point.
        decimals: usize,
        /// Whether a positive number carries a plus, as a difference should.
        signed: bool,
    },
    /// A number with its interval.
    Estimate {
        /// The number, in its column's unit.
        value: f64,
        /// The interval's lower end.
        low: f64,
        /// The interval's upper end.
        high: f64,
        /// Digits after the point.
        decimals: usize,
    },
    /// A judgement in words.
    Status(Status, String),
}

impl Cell {
    /// A cell of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A number without a plus, with so many digits after the point.
    #[must_use]
    pub fn number(value: f64, decimals: usize) -> Self {
        Self::Number { value, decimals, signed: false }
    }

    /// A number where there is one.
    #[must_use]
    pub fn known(value: Option<f64>, decimals: usize) -> Self {
        value.map_or(Self::Empty, |value| Self::number(value, decimals))
    }

    /// A whole number, exact to 2^53.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn count(value: u64) -> Self {
        Self::Number { value: value as f64, decimals: 0, signed: false }
    }

    /// A difference: a positive one carries a plus.
    #[must_use]
    pub fn difference(value: f64, decimals: usize) -> Self {
        Self::Number { value, decimals, signed: true }
    }

    /// A number with its interval.
    #[must_use]
    pub fn estimate(value: f64, low: f64, high: f64, decimals: usize) -> Self {
        Self::Estimate { value, low, high, decimals }
    }

    /// The number in the cell, where there is one that can be shown.
    pub(crate) fn value(&self) -> Option<f64> {
        match self {
            Self::Number { value, .. } | Self::Estimate { value, .. } if value.is_finite() => {
                Some(*value)
            }
            _ => None,
        }
    }

    /// The number as text, without its interval.
    pub(crate) fn value_text(&self) -> Option<String> {
        let value = self.value()?;
        match self {
            Self::Number { decimals, signed, .. } => {
                let text = number::fixed(value, *decimals);
                let plus = *signed && value > 0.0 && text.chars().any(|c| matches!(c, '1'..='9'));
                Some(if plus { format!("+{text}") } else { text })
            }
            Self::Estimate { decimals, .. } => Some(number::fixed(value, *decimals)),
            _ => None,
        }
    }

    /// The interval's ends as text, where there is one that can be shown.
    pub(crate) fn interval_text(&self) -> Option<(String, String)> {
        match self {
            Self::Estimate { value, low, high, decimals }
                if value.is_finite() && low.is_finite() && high.is_finite() =>
            {
                Some((number::fixed(*low, *decimals), number::fixed(*high, *decimals)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_numeric_by_its_cells() {
        let mut table = Table::new("t", ["a", "b", "c", "d"].map(Column::new).into());
        table.push(Row::new(vec![Cell::Empty, Cell::count(1), Cell::Empty, Cell::text("x")]));
        table.push(Row::new(vec![Cell::Empty, Cell::Empty, Cell::Empty, Cell::count(1)]));
        let numeric = [0, 1, 2, 3].map(|column| table.is_numeric(column));
        assert_eq!(numeric, [false, true, true, false]);
    }

    #[test]
    fn numbers_print_as_asked() {
        assert_eq!(Cell::difference(1.25, 1).value_text().as_deref(), Some("+1.2"));
        assert_eq!(Cell::difference(0.01, 1).value_text().as_deref(), Some("0.0"));
        assert_eq!(Cell::difference(-1.0, 1).value_text().as_deref(), Some("-1.0"));
        assert_eq!(Cell::number(f64::NAN, 1).value_text(), None);
        assert_eq!(Cell::estimate(1.0, 0.5, f64::INFINITY, 1).interval_text(), None);
    }
}
