//! `wiretax compare`: what got worse between two results, and how sure that is.

mod args;
mod cells;
mod comparable;
mod records;
mod table;

use fault::{Fault, OrProblem, Problem};
use record::Better;
use serde_json::json;
use stats::{CompareOptions, Comparison, Verdict, compare_cells};
use units::counted;

pub use self::args::CompareArgs;
use self::cells::{Cells, Failure, Side, failures};
use self::comparable::{Compared, compared};
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::interrupt::ends_at_once;
use crate::output::{say, say_json, terminal_width};

/// Compares two folders of results, or two sets of records. The status is 1 if something got worse or fails more often.
pub fn compare(args: &CompareArgs, diagnostics: &Diagnostics) -> Outcome {
    ends_at_once(diagnostics)?;
    if records::are_meant(args) {
        return records::compare(args, diagnostics);
    }
    let value = args.value.as_deref();
    let before = Side::read(&args.before, value, diagnostics)?;
    let after = Side::read(args.after.as_ref().unwrap_or(&args.before), value, diagnostics)?;
    let what = compared(&before, &after, value)?;
    let mut found = Found::default();
    for one in what {
        found.add(one, &before, &after, args.threshold.value())?;
    }
    if found.studies.iter().all(|(_, comparison)| comparison.cells.is_empty()) {
        return Err(Problem::new(
            Fault::Measurement,
            "the two results have no measured cell in common",
        )
        .with_remedy("compare runs of one plan"));
    }
    match args.json.json {
        true => say_json(&found.json()?)?,
        false => say(&found.text())?,
    }
    Ok(found.conclude(diagnostics))
}

/// What came out, study by study.
#[derive(Default)]
struct Found {
    studies: Vec<(Compared, Comparison)>,
    failures: Vec<Failure>,
}

impl Found {
    fn add(
        &mut self,
        what: Compared,
        before: &Side,
        after: &Side,
        threshold: f64,
    ) -> Result<(), Problem> {
        let more_is_better = what.kind.better == Better::More;
        let options = CompareOptions { threshold, more_is_better, ..CompareOptions::default() };
        let none = Cells::default();
        let before = before.cells.get(what.study).unwrap_or(&none);
        let after = after.cells.get(what.study).unwrap_or(&none);
        let comparison = compare_cells(&before.values, &after.values, options)?;
        let limit = 1.0 - options.confidence.level();
        self.failures.extend(failures(before, after, limit)?);
        self.studies.push((what, comparison));
        Ok(())
    }

    fn text(&self) -> String {
        let width = terminal_width();
        let shown = self.studies.iter().filter(|(_, comparison)| !comparison.cells.is_empty());
        let texts = shown.map(|(what, comparison)| table::table(what, comparison).to_text(width));
        format!("{}\n", texts.collect::<Vec<_>>().join("\n"))
    }

    fn json(&self) -> Result<String, Problem> {
        let of = |pick: fn(&Comparison) -> &Vec<String>| -> Vec<&String> {
            self.studies.iter().flat_map(|(_, comparison)| pick(comparison)).collect()
        };
        let cells: Vec<_> =
            self.studies.iter().flat_map(|(_, comparison)| &comparison.cells).collect();
        let compared: Vec<_> = self.studies.iter().map(|(what, _)| what.json()).collect();
        let value = json!({
            "compared": compared,
            "times": { "cells": cells, "only_a": of(|c| &c.only_a), "only_b": of(|c| &c.only_b) },
            "failures": self.failures,
        });
        Ok(serde_json::to_string_pretty(&value).blame(Fault::Results)? + "\n")
    }

    /// Says what is not in the table, and the sum of what is.
    fn conclude(&self, diagnostics: &Diagnostics) -> Exit {
        let worse = self.failures.iter().filter(|failure| failure.worse);
        for failure in worse.clone() {
            diagnostics.warning(failure.to_string());
        }
        let count = |pick: &dyn Fn(&Comparison) -> usize| -> usize {
            self.studies.iter().map(|(_, comparison)| pick(comparison)).sum()
        };
        let only = [(count(&|c| c.only_a.len()), "before"), (count(&|c| c.only_b.len()), "after")];
        for (cells, which) in only.into_iter().filter(|(cells, _)| *cells > 0) {
            let are = if cells == 1 { "is" } else { "are" };
            diagnostics
                .note(format!("{} {are} in the results {which} only", counted(cells, "cell")));
        }
        let slower = count(&|c| c.with(Verdict::Slower).count());
        let faster = count(&|c| c.with(Verdict::Faster).count());
        let (cells, fail) = (count(&|c| c.cells.len()), worse.count());
        diagnostics.note(format!(
            "{}: {slower} slower, {faster} faster, {fail} {} more often",
            counted(cells, "cell"),
            if fail == 1 { "fails" } else { "fail" }
        ));
        if slower + fail > 0 { Exit::Found } else { Exit::Done }
    }
}
