//! The tables: outages, phases, changes.

use handoff::{Direction, Phase};
use report::{Cell, Column, Row as TableRow, Table, decimals};
use stats::Estimate;

use crate::summary::{Row, Summary, Way};

/// All tables that have a row.
pub(crate) fn all(summary: &Summary) -> Vec<Table> {
    let tables = [outages(summary), phases(summary), changes(summary)];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// How long the host was cut off.
fn outages(summary: &Summary) -> Table {
    let ms = |title: &str| Column::new(title).unit("ms");
    let columns = vec![
        Column::new("Case"),
        Column::new("rate"),
        ms("outage"),
        ms("without t4, t5"),
        ms("up"),
        ms("down"),
        ms("gap up"),
        ms("gap down"),
        Column::new("late").unit("frames"),
        Column::new("busy").unit("%"),
        Column::new("runs"),
    ];
    let caption = "How long a moving host is cut off: frames lost by the rate (outage: the longer direction), and the \
                   longest time between two arrivals (gap); of a TCP stream, which loses no frame, the outage is the gap less \
                   the time between two frames; medians with intervals";
    let mut table = Table::new(caption, columns);
    for row in &summary.rows {
        let late = row.up.late.zip(row.down.late).map(|(up, down)| up + down);
        let cells = vec![
            Cell::text(row.case()),
            Cell::text(row.point.rate.to_string()),
            estimate(row.outage_ms),
            number(row.keyless_ms),
            number(row.up.outage_ms),
            number(row.down.outage_ms),
            number(row.up.gap_ms),
            number(row.down.gap_ms),
            Cell::known(late, 0),
            Cell::known(row.busy.map(|busy| busy * 100.0), 0),
            runs(row),
        ];
        table.push(TableRow::new(cells).command(&row.command));
    }
    table
}

/// Where the time goes, by direction: a column for each phase that any case has.
fn phases(summary: &Summary) -> Table {
    let ways = || {
        summary.rows.iter().flat_map(|row| {
            Direction::ALL.iter().map(move |direction| (row, *direction, row.way(*direction)))
        })
    };
    let has = |phase: Phase| ways().any(|(_, _, way)| way.of_phase(phase) > 0.0);
    let shown: Vec<Phase> = Phase::ALL.iter().copied().filter(|phase| has(*phase)).collect();
    let mut columns = vec![Column::new("Case"), Column::new("rate"), Column::new("direction")];
    columns.extend(shown.iter().map(|phase| Column::new(phase.title()).unit("ms")));
    columns.push(Column::new("gap").unit("ms"));
    columns.push(Column::new("explained").unit("%"));
    let caption = "Where the time goes: the phases of the gap by the paper's transitions; medians, so that they need not \
                   add up to the gap's";
    let mut table = Table::new(caption, columns);
    for (row, direction, way) in ways().filter(|(_, _, way)| !way.phases.is_empty()) {
        let mut cells = vec![
            Cell::text(row.point.title()),
            Cell::text(row.point.rate.to_string()),
            Cell::text(direction.name()),
        ];
        cells.extend(shown.iter().map(|phase| time(way, *phase)));
        cells.push(number(way.gap_ms));
        cells.push(Cell::known(way.explained.map(|share| share * 100.0), 0));
        table.push(TableRow::new(cells).command(&row.command));
    }
    table
}

/// What each change saves.
pub(crate) fn changes(summary: &Summary) -> Table {
    let columns = vec![
        Column::new("Change"),
        Column::new("case"),
        Column::new("rate"),
        Column::new("without").unit("ms"),
        Column::new("with").unit("ms"),
        Column::new("saved").unit("ms"),
        Column::new("certain"),
    ];
    let caption = "What to change: each change beside the scenario without it; saved: run by run";
    let mut table = Table::new(caption, columns);
    for changed in &summary.changes {
        table.push(
            TableRow::new(vec![
                Cell::text(changed.change.name()),
                Cell::text(&changed.scenario),
                Cell::text(&changed.rate),
                estimate(Some(changed.without_ms)),
                estimate(Some(changed.with_ms)),
                estimate(Some(changed.saved_ms)),
                Cell::text(if changed.told_apart { "yes" } else { "no" }),
            ])
            .command(&changed.command),
        );
    }
    table
}

fn time(way: &Way, phase: Phase) -> Cell {
    match way.of_phase(phase) {
        time if time > 0.0 => Cell::number(time, decimals(time)),
        _ => Cell::Empty,
    }
}

fn runs(row: &Row) -> Cell {
    let mut text = row.runs.to_string();
    if row.not_back > 0 {
        text += &format!(" ({} not back)", row.not_back);
    }
    if row.failed > 0 {
        text += &format!(" ({} failed)", row.failed);
    }
    Cell::text(text)
}

fn estimate(estimate: Option<Estimate>) -> Cell {
    estimate.map_or(Cell::Empty, |one| {
        Cell::estimate(one.value, one.low, one.high, decimals(one.value))
    })
}

fn number(estimate: Option<Estimate>) -> Cell {
    estimate.map_or(Cell::Empty, |one| Cell::number(one.value, decimals(one.value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Point;
    use crate::sample::tests::streamed;
    use crate::summary::tests::{at, samples};

    #[test]
    fn the_outage_of_a_stream_is_called_so() {
        let point = Point { sweep: "access".to_owned(), ..at("mptcp", "1000pps") };
        let samples: Vec<_> = (0..3).map(|repeat| streamed(&point, repeat, 700)).collect();
        let text = all(&Summary::of(&samples))[0].to_text(400);
        assert!(text.contains("mptcp (TCP stream)") && text.contains("700"), "{text}");
    }

    #[test]
    fn every_row_is_in_a_table_and_tables_are_whole() {
        let summary = Summary::of(&samples());
        let tables = all(&summary);
        assert_eq!(tables.len(), 3);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        }
        assert_eq!(tables[0].rows.len(), summary.rows.len());
        assert_eq!(tables[1].rows.len(), 2 * summary.rows.len());
        let text = tables[1].to_text(400);
        assert!(text.contains("t1 discovery") && !text.contains("t5 security"), "{text}");
    }
}
