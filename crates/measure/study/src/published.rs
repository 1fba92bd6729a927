//! Published figures: what a paper states, and our own beside it.
//!
//! One schema for all papers, in CSV: `document,item,row,value,unit,note`. `document` names the paper, `item`
//! is the table or figure, `row` what identifies the number in it; `value` may be empty where the paper gives
//! only a rank or a picture.

use std::collections::BTreeMap;

use fault::{Explain, Fault};
use report::{Cell, Column, Row, Table, decimals};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// One number of a paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Figure {
    /// The paper, by authors and year, as `HAProxy 2025`.
    pub document: String,
    /// The table or figure in it.
    pub item: String,
    /// What identifies the number there.
    pub row: String,
    /// The number; `None` where the paper gives a rank or a picture.
    pub value: Option<f64>,
    /// Its unit, as `ms`; empty for ratios and counts.
    pub unit: String,
    /// What the paper says about it.
    #[serde(default)]
    pub note: String,
}

impl Figure {
    /// Item and row, by which a study's counterpart is found.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.item, self.row)
    }
}

/// What stands beside a published figure.
#[derive(Debug, Clone, PartialEq)]
pub enum Counterpart {
    /// Our number, with its interval.
    Ours {
        /// Our value, in the figure's unit.
        value: f64,
        /// The interval's ends.
        interval: Option<(f64, f64)>,
        /// How it differs: another machine, another key; may be empty.
        difference: String,
    },
    /// These results do not have it; another command measures it.
    NotMeasured {
        /// The command that measures it.
        command: String,
    },
    /// There is none, for a reason.
    None {
        /// Why there is none.
        reason: String,
    },
}

/// A file of published figures that does not read. Ours.
#[derive(Debug, Error)]
#[error("published figures cannot be read: {0}")]
pub struct PublishedError(#[from] csv::Error);

impl Explain for PublishedError {
    fn fault(&self) -> Fault {
        Fault::Results
    }
}

/// Reads a file of published figures.
///
/// # Errors
/// [`PublishedError`].
pub fn figures(csv: &str) -> Result<Vec<Figure>, PublishedError> {
    read(csv)
}

/// The rows of a file, less its comments.
pub(crate) fn read<T: DeserializeOwned>(csv: &str) -> Result<Vec<T>, PublishedError> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(csv.as_bytes());
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

/// Ours beside the published: one table a document, the same on a terminal as in HTML. A figure for
/// which the study names no counterpart says so: a test of each study holds that there is none.
#[must_use]
pub fn beside(figures: &[Figure], counterparts: &[(String, Counterpart)]) -> Vec<Table> {
    let ours: BTreeMap<&str, &Counterpart> =
        counterparts.iter().map(|(key, ours)| (key.as_str(), ours)).collect();
    let mut documents: Vec<&str> = Vec::new();
    for figure in figures {
        if !documents.contains(&figure.document.as_str()) {
            documents.push(&figure.document);
        }
    }
    let of = |document: &str| {
        let columns = ["Item", "row", "published", "ours", "unit", "remark"].map(Column::new);
        let caption = format!("Beside the published figures: {document}");
        let mut table = Table::new(caption, columns.to_vec());
        for figure in figures.iter().filter(|figure| figure.document == document) {
            table.push(row(figure, ours.get(figure.key().as_str()).copied()));
        }
        table
    };
    documents.into_iter().map(of).collect()
}

fn row(figure: &Figure, ours: Option<&Counterpart>) -> Row {
    let published = figure
        .value
        .map_or_else(|| Cell::text("not stated"), |value| Cell::number(value, stated(value)));
    let decimals = |ours: f64| figure.value.map_or(0, stated).max(decimals(ours));
    let remark = |text: &str| match (figure.note.as_str(), text) {
        (note, "") => note.to_owned(),
        ("", text) => text.to_owned(),
        (note, text) => format!("{note}; {text}"),
    };
    let (cell, remark) = match ours {
        Some(Counterpart::Ours { value, interval, difference }) => {
            let cell = match interval {
                Some((low, high)) => Cell::estimate(*value, *low, *high, decimals(*value)),
                None => Cell::number(*value, decimals(*value)),
            };
            (cell, remark(difference))
        }
        Some(Counterpart::NotMeasured { command }) => {
            (Cell::text("not measured"), remark(&format!("`{command}` measures it")))
        }
        Some(Counterpart::None { reason }) => (Cell::text("none"), remark(reason)),
        None => (Cell::text("none"), remark("no counterpart is named")),
    };
    Row::new(vec![
        Cell::text(figure.item.clone()),
        Cell::text(figure.row.clone()),
        published,
        cell,
        Cell::text(figure.unit.clone()),
        Cell::text(remark),
    ])
}

/// Decimals with which a document states a number.
fn stated(value: f64) -> usize {
    value.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# A comment\n\
        document,item,row,value,unit,note\n\
        Doc 2020,table 1,fast,12.5,ms,\n\
        Doc 2020,table 1,slow,,ms,a rank only\n\
        Other 2021,figure 2,x,3000,1/s,\"a, b\"\n";

    #[test]
    fn every_line_is_a_figure() {
        let figures = figures(FILE).unwrap();
        assert_eq!(figures.len(), 3);
        assert_eq!((figures[1].value, figures[2].note.as_str()), (None, "a, b"));
        assert_eq!(figures[0].key(), "table 1/fast");
        assert!(super::figures("document,item\na,b\n").is_err());
    }

    #[test]
    fn ours_stands_beside_each_or_a_reason_does() {
        let ours = Counterpart::Ours {
            value: 11.0,
            interval: Some((10.0, 12.0)),
            difference: "here".into(),
        };
        let none = Counterpart::None { reason: "a rank".into() };
        let counterparts = [("table 1/fast".to_owned(), ours), ("table 1/slow".to_owned(), none)];
        let tables = beside(&figures(FILE).unwrap(), &counterparts);
        assert_eq!(tables.len(), 2);
        let text = tables[0].to_text(200);
        for part in ["12.5", "11.0", "here", "a rank only; a rank"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(tables[1].to_text(200).contains("no counterpart is named"));
    }
}
