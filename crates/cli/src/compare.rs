//! `wiretax compare`: what got slower between two results, and how sure that is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use record::{Outcome as Ended, Run, Sample};
use report::{Cell, Column, Row, Status, Table};
use serde::Serialize;
use stats::{CellVerdict, CompareOptions, Comparison, Verdict, compare_cells};

use crate::args::CompareArgs;
use crate::exit::{Exit, Failed, OrExit, Outcome};
use crate::output::{say, terminal_width};
use crate::talk::Talk;

/// Compares two folders of results. The status is 1 if something got slower or fails more often.
pub fn compare(args: &CompareArgs, talk: &Talk) -> Outcome {
    let before = Cells::read(&args.before, &args.value)?;
    let after = Cells::read(&args.after, &args.value)?;
    let options = CompareOptions { threshold: args.threshold.value(), ..CompareOptions::default() };
    let comparison = compare_cells(&before.times, &after.times, options).or_exit(Exit::Results)?;
    let failures = failures(&before, &after, &options).or_exit(Exit::Results)?;
    if comparison.cells.is_empty() {
        let error = anyhow::anyhow!(
            "the two results have no cell with `{}` in common; hint: compare runs of one plan",
            args.value
        );
        return Err(Failed { exit: Exit::Results, error }.into());
    }
    if args.json.json {
        let value = serde_json::json!({ "times": comparison, "failures": failures });
        let text = serde_json::to_string_pretty(&value).or_exit(Exit::Results)?;
        say(&format!("{text}\n"))?;
    } else {
        say(&format!("{}\n", table(&comparison, args).to_text(terminal_width())))?;
    }
    let worse = failures.iter().filter(|failure| failure.worse).count();
    for failure in failures.iter().filter(|failure| failure.worse) {
        talk.warning(format!(
            "{}: {} of {} failed, before {} of {}",
            failure.cell,
            failure.after.failed,
            failure.after.attempts,
            failure.before.failed,
            failure.before.attempts
        ));
    }
    for (keys, which) in [(&comparison.only_a, "before"), (&comparison.only_b, "after")] {
        if !keys.is_empty() {
            talk.note(format!("{} cells are in the results {which} only", keys.len()));
        }
    }
    let slower = comparison.with(Verdict::Slower).count();
    let faster = comparison.with(Verdict::Faster).count();
    let cells = comparison.cells.len();
    talk.note(format!("{cells} cells: {slower} slower, {faster} faster, {worse} fail more often"));
    Ok(if slower + worse > 0 { Exit::Found } else { Exit::Done })
}

/// Attempts of a cell and how many of them failed or were given up.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Attempts {
    attempts: u64,
    failed: u64,
}

/// What one folder has of each cell.
#[derive(Default)]
struct Cells {
    times: BTreeMap<String, Vec<f64>>,
    attempts: BTreeMap<String, Attempts>,
}

impl Cells {
    fn read(folder: &Path, value: &str) -> Result<Cells, Failed> {
        let run = Run::open(folder).or_exit(Exit::Results)?;
        let mut cells = Cells::default();
        for sample in &run.samples {
            cells.add(sample, value);
        }
        Ok(cells)
    }

    fn add(&mut self, sample: &Sample, value: &str) {
        let cell = sample.cell();
        let attempts = self.attempts.entry(cell.clone()).or_default();
        attempts.attempts += 1;
        match (&sample.outcome, sample.values.get(value)) {
            (Ended::Completed, Some(time)) => self.times.entry(cell).or_default().push(*time),
            (Ended::Completed, None) => {}
            _ => attempts.failed += 1,
        }
    }
}

/// Whether a cell fails more often than before.
#[derive(Debug, Serialize)]
struct Failure {
    cell: String,
    before: Attempts,
    after: Attempts,
    p_value: f64,
    worse: bool,
}

fn failures(
    before: &Cells,
    after: &Cells,
    options: &CompareOptions,
) -> Result<Vec<Failure>, stats::Error> {
    let mut failures = Vec::new();
    for (cell, a) in &before.attempts {
        let Some(b) = after.attempts.get(cell) else { continue };
        if a.failed + b.failed == 0 {
            continue;
        }
        let p_value = stats::fisher_exact((a.failed, a.attempts), (b.failed, b.attempts))?;
        let (cell, before, after) = (cell.clone(), *a, *b);
        failures.push(Failure { cell, before, after, p_value, worse: false });
    }
    let p_values: Vec<f64> = failures.iter().map(|failure| failure.p_value).collect();
    let q_values = stats::benjamini_hochberg(&p_values);
    let limit = 1.0 - options.confidence.level();
    for (failure, q_value) in failures.iter_mut().zip(q_values) {
        let share = |attempts: &Attempts| attempts.failed as f64 / attempts.attempts as f64;
        failure.worse = q_value < limit && share(&failure.after) > share(&failure.before);
    }
    Ok(failures)
}

fn table(comparison: &Comparison, args: &CompareArgs) -> Table {
    let columns = vec![
        Column::new("Cell"),
        Column::new("before"),
        Column::new("after"),
        Column::new("change"),
        Column::new("share").unit("%"),
        Column::new("q"),
        Column::new("verdict"),
    ];
    let caption = format!(
        "{}: medians, and the shift with its interval (95 %, 90 % for few samples); q is the share of \
         false alarms that the verdict accepts over all cells",
        args.value
    );
    let names = short_names(comparison.cells.iter().map(|cell| cell.key.as_str()));
    let mut table = Table::new(caption, columns);
    let mut cells: Vec<&CellVerdict> = comparison.cells.iter().collect();
    cells.sort_by(|a, b| a.q_value.total_cmp(&b.q_value));
    for cell in cells {
        let shift = &cell.shift;
        let share = cell.relative.map_or(Cell::Empty, |r| Cell::difference(r.value * 100.0, 1));
        let (status, word) = match cell.verdict {
            Verdict::Slower => (Status::Bad, "slower"),
            Verdict::Faster => (Status::Good, "faster"),
            Verdict::NoDifference => (Status::Neutral, "no difference"),
            _ => (Status::Neutral, "too few samples to tell"),
        };
        table.push(Row::new(vec![
            Cell::text(names.get(&cell.key).unwrap_or(&cell.key).clone()),
            Cell::number(cell.median_a, 3),
            Cell::number(cell.median_b, 3),
            Cell::estimate(shift.value, shift.low, shift.high, 3),
            share,
            Cell::number(cell.q_value, 3),
            Cell::Status(status, word.to_owned()),
        ]));
    }
    table
}

/// The names of cells without the axes that are the same in all of them; mode and RTT stay.
fn short_names<'a>(keys: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<String, String> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for axis in keys.clone().flat_map(axes) {
        let name = axis.split_once('=').map_or(axis, |(name, _)| name);
        values.entry(name).or_default().insert(axis);
    }
    let tells = |axis: &&str| {
        let name = axis.split_once('=').map_or(*axis, |(name, _)| name);
        matches!(name, "mode" | "rtt") || values.get(name).is_some_and(|values| values.len() > 1)
    };
    let short = |key: &'a str| axes(key).filter(tells).collect::<Vec<_>>().join(" ");
    keys.map(|key| (key.to_owned(), short(key))).collect()
}

/// The axes in the name of a cell, as `rtt=20ms`.
fn axes(key: &str) -> impl Iterator<Item = &str> {
    key.split_once('/').map_or(key, |(_, axes)| axes).split(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_cells_share_is_left_out_of_their_names() {
        let keys = ["s/chain=1,loss=0,mode=tcp,rtt=5ms", "s/chain=1,loss=1,mode=tcp,rtt=5ms"];
        let names = short_names(keys.iter().copied());
        assert_eq!(names[keys[0]], "loss=0 mode=tcp rtt=5ms");
        assert_eq!(names[keys[1]], "loss=1 mode=tcp rtt=5ms");
    }
}
