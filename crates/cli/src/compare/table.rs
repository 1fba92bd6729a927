//! A comparison as a table.

use std::collections::{BTreeMap, BTreeSet};

use record::{Better, Clock};
use report::{Cell, Column, Row, Status, Table};
use stats::{CellVerdict, Comparison, Verdict};

use super::comparable::Compared;

/// The table of one study, the surest changes first.
pub(super) fn table(what: &Compared, comparison: &Comparison) -> Table {
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
        what.value
    );
    let names = short_names(comparison.cells.iter().map(|cell| cell.key.as_str()));
    let mut table = Table::new(caption, columns);
    let mut cells: Vec<&CellVerdict> = comparison.cells.iter().collect();
    cells.sort_by(|a, b| a.q_value.total_cmp(&b.q_value));
    for cell in cells {
        let shift = &cell.shift;
        let share = cell.relative.map_or(Cell::Empty, |r| Cell::difference(r.value * 100.0, 1));
        let (status, word) = verdict(what, cell.verdict);
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

fn verdict(what: &Compared, verdict: Verdict) -> (Status, &'static str) {
    // Of times and rates one says slower and faster; of counts, less and more.
    let counted = what.kind.clock == Clock::Count;
    let more_is_better = what.kind.better == Better::More;
    match (verdict, counted, more_is_better) {
        (Verdict::Slower, false, _) => (Status::Bad, "slower"),
        (Verdict::Faster, false, _) => (Status::Good, "faster"),
        (Verdict::Slower, true, false) => (Status::Bad, "worse: more"),
        (Verdict::Slower, true, true) => (Status::Bad, "worse: less"),
        (Verdict::Faster, true, false) => (Status::Good, "better: less"),
        (Verdict::Faster, true, true) => (Status::Good, "better: more"),
        (Verdict::NoDifference, ..) => (Status::Neutral, "no difference"),
        _ => (Status::Neutral, "too few samples to tell"),
    }
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
    let short = |key: &'a str| {
        let told = axes(key).filter(tells).collect::<Vec<_>>().join(" ");
        // One cell alone shares all that it has: it has its whole name.
        if told.is_empty() { axes(key).collect::<Vec<_>>().join(" ") } else { told }
    };
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
        let alone = "link/path=direct,mtu=1500";
        assert_eq!(short_names([alone].into_iter())[alone], "path=direct mtu=1500");
    }
}
