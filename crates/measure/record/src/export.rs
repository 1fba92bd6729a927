//! Samples for spreadsheets and data frames.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use crate::{Error, Outcome, Problem, Run, Sample};

/// Columns beyond which a table is of no use; a run has some dozens.
const MAX_COLUMNS: usize = 4096;

/// The columns that samples have besides the fixed ones.
#[derive(Default)]
struct Columns {
    point: BTreeSet<String>,
    values: BTreeSet<String>,
    labels: BTreeSet<String>,
}

/// Writes the samples of a folder as CSV (RFC 4180), one row a sample, one column for each axis
/// (`point.mode`), value (`value.ready_ms`) and label (`label.group`) that any of them has. Gives
/// the number of rows. A text that a spreadsheet takes for a formula has `'` before it. The file is read twice, so that the memory needed is that of one line.
///
/// # Errors
/// As [`Run::open`]; [`Problem::TooLarge`] above 4096 columns; [`Problem::DiskFull`] and
/// [`Problem::Io`] from `out`.
pub fn export_csv(dir: impl AsRef<Path>, out: impl Write) -> Result<u64, Error> {
    let dir = dir.as_ref();
    let mut columns = Columns::default();
    for sample in Run::stream(dir)?.1 {
        columns.add(&sample?);
        if columns.count() > MAX_COLUMNS {
            let problem = Problem::TooLarge {
                what: "the number of columns",
                limit: MAX_COLUMNS as u64,
                verb: "exported",
                remedy: "read samples.jsonl itself",
            };
            return Err(Error::new(dir, problem));
        }
    }
    let mut writer = csv::Writer::from_writer(out);
    let failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => Error::io(dir, "writing CSV", error),
        other => Error::io(dir, "writing CSV", std::io::Error::other(format!("{other:?}"))),
    };
    writer.write_record(columns.heads()).map_err(failed)?;
    let mut rows = 0;
    for sample in Run::stream(dir)?.1 {
        writer.write_record(columns.row(&sample?)).map_err(failed)?;
        rows += 1;
    }
    writer.flush().map_err(|error| Error::io(dir, "writing CSV", error))?;
    Ok(rows)
}

const FIXED: [&str; 8] =
    ["study", "repeat", "seed", "at_unix_ms", "outcome", "reason", "after_ms", "command"];

impl Columns {
    fn add(&mut self, sample: &Sample) {
        let add = |set: &mut BTreeSet<String>, key: &String| {
            if !set.contains(key) {
                set.insert(key.clone());
            }
        };
        sample.point.keys().for_each(|key| add(&mut self.point, key));
        sample.values.keys().for_each(|key| add(&mut self.values, key));
        sample.labels.keys().for_each(|key| add(&mut self.labels, key));
    }

    fn count(&self) -> usize {
        self.point.len() + self.values.len() + self.labels.len()
    }

    fn heads(&self) -> Vec<String> {
        let named = |prefix: &'static str, set: &BTreeSet<String>| -> Vec<String> {
            set.iter().map(|key| format!("{prefix}.{key}")).collect()
        };
        let mut heads: Vec<String> = FIXED.map(str::to_owned).into();
        heads.extend(named("point", &self.point));
        heads.extend(named("value", &self.values));
        heads.extend(named("label", &self.labels));
        heads
    }

    fn row(&self, sample: &Sample) -> Vec<String> {
        let cell = |text: &str| fault::cell(text).into_owned();
        let (reason, after_ms) = match &sample.outcome {
            Outcome::Completed => (String::new(), String::new()),
            Outcome::Failed { reason } => (cell(reason), String::new()),
            Outcome::TimedOut { after_ms } => (String::new(), after_ms.to_string()),
        };
        let mut row = vec![
            cell(&sample.study),
            sample.repeat.to_string(),
            sample.seed.to_string(),
            sample.at_unix_ms.to_string(),
            sample.outcome.name().to_owned(),
            reason,
            after_ms,
            cell(&sample.command),
        ];
        let text = |found: Option<&String>| found.map_or_else(String::new, |text| cell(text));
        row.extend(self.point.iter().map(|key| text(sample.point.get(key))));
        row.extend(self.values.iter().map(|key| {
            // The shortest text that reads back to the same number.
            sample.values.get(key).map_or_else(String::new, f64::to_string)
        }));
        row.extend(self.labels.iter().map(|key| text(sample.labels.get(key))));
        row
    }
}
