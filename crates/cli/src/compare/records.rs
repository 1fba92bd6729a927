//! Records of `wiretax observe`, before a change and after it.

use std::path::Path;

use export::{Records, TimeRange};
use fault::{Fault, OrProblem, Problem};
use observe::before_after::{
    Asked, Bounds, Changed, Compared, Group, Measure, Side, Timed, compare as judge,
};
use record::Run;
use stats::Verdict;
use units::counted;

use super::CompareArgs;
use crate::diagnostics::Diagnostics;
use crate::exit::{Exit, Outcome};
use crate::output::{say, say_json, terminal_width};

/// Whether the arguments are records: a range of time is given, or one of them is a file or a data set.
pub(super) fn are_meant(args: &CompareArgs) -> bool {
    let is_one = |path: &Path| !Run::is_results(path) && export::holds_records(path);
    args.before_time.is_some() || is_one(&args.before) || args.after.as_deref().is_some_and(is_one)
}

/// Compares two sets of records.
pub(super) fn compare(args: &CompareArgs, diagnostics: &Diagnostics) -> Outcome {
    let timed = args.value.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    let after = args.after.as_deref().unwrap_or(&args.before);
    let (before_time, after_time) = (args.before_time, args.after_time);
    let before = side(&args.before, before_time.unwrap_or(TimeRange::ALL), timed)?;
    let after = side(after, after_time.unwrap_or(TimeRange::ALL), timed)?;
    let compared = judge(&before, &after, Asked { threshold: args.threshold.value() })?;
    if compared.changes.is_empty() {
        let what = format!(
            "nothing can be compared: {} before, {} after, in groups of fewer than 20",
            counted(compared.handshakes_before, "handshake"),
            compared.handshakes_after
        );
        return Err(Problem::new(Fault::Measurement, what).with_remedy("observe for a longer time"));
    }
    if args.json.json {
        say_json(&(serde_json::to_string_pretty(&compared).blame(Fault::Results)? + "\n"))?;
    } else {
        say(&format!("{}\n", compared.table().to_text(terminal_width()).trim_end()))?;
    }
    Ok(conclude(&compared, diagnostics))
}

/// The records of one path in a range of time.
fn side(path: &Path, range: TimeRange, timed: Timed) -> Result<Side, Problem> {
    if Run::is_results(path) {
        let what = format!("{} holds results of a study, not records", path.display());
        return Err(Problem::new(Fault::Caller, what)
            .with_remedy("compare results with results, and records with records"));
    }
    let mut side = Side::new(timed, Bounds::default());
    for record in Records::open(&[path], range)? {
        side.take(&record?);
    }
    if side.handshakes() > 0 {
        return Ok(side);
    }
    let within = if range == TimeRange::ALL { String::new() } else { format!(" within {range}") };
    let shown = path.display();
    let what =
        format!("{shown} has no TLS handshake{within}, in {}", counted(side.records(), "record"));
    Err(Problem::new(Fault::Measurement, what).with_remedy("give a longer time, or other records"))
}

/// Says what is not in the table, and the sum of what is.
fn conclude(compared: &Compared, diagnostics: &Diagnostics) -> Exit {
    let only = [(&compared.only_before, "before"), (&compared.only_after, "after")];
    for (groups, which) in only.into_iter().filter(|(groups, _)| !groups.is_empty()) {
        let groups = counted(groups.len(), "group");
        diagnostics.note(format!("only in the records {which}: {groups}"));
    }
    if compared.too_few > 0 {
        let few = counted(compared.too_few, "group");
        diagnostics.note(format!("{few} with fewer than 20 handshakes: not compared"));
    }
    let of_networks = |groups: &[Group]| groups.iter().any(|g| matches!(g, Group::Network(_)));
    let compared_networks =
        compared.changes.iter().any(|changed| matches!(changed.group, Group::Network(_)));
    if !compared_networks && of_networks(&compared.only_before) && of_networks(&compared.only_after)
    {
        diagnostics.warning(
            "no client network could be compared: addresses were hidden under other keys, cut to \
             other lengths, or the clients are different ones",
        );
    }
    if let Some(moved) = compared.clients_moved() {
        let (before, after) = (moved.before, moved.after);
        diagnostics.warning_with_remedy(
            format!(
                "the clients' round-trip times moved, too (median {before:.1} ms, then {after:.1} ms): \
                 different clients, or different paths"
            ),
            Some("compare in round trips, too: --value tls_round_trips"),
        );
    }
    let count = |wanted: &dyn Fn(&Changed) -> bool| {
        compared.changes.iter().filter(|changed| wanted(changed)).count()
    };
    let judged = count(&|changed| changed.measure != Measure::RoundTrip);
    let unclear = count(&|c| c.measure != Measure::RoundTrip && c.verdict == Verdict::Unclear);
    let worse = compared.worse().count();
    diagnostics.note(format!(
        "{judged} compared: {worse} worse, {} better, {unclear} with too few handshakes to tell",
        count(&Changed::is_better)
    ));
    if worse > 0 { Exit::Found } else { Exit::Done }
}
