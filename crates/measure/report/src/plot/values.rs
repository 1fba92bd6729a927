//! The table beneath a plot.

use super::traces::sums;
use super::{Bar, Bin, Chart, Distribution, Mark, Plot, Point, Series};
use crate::{Cell, Column, Row, Table, number};

/// Samples given one by one at most; a series of more is summarised.
const MOST_ROWS: usize = 200;

pub(super) fn table(plot: &Plot) -> Table {
    let (x, y) = plot.axes();
    let column = |axis: &super::Axis| Column::new(axis.title.clone()).unit(axis.unit.clone());
    let caption = format!("Values of the plot \u{201C}{}\u{201D}", plot.title());
    let name = Column::new("Series");
    match plot.chart() {
        Chart::Lines { series, .. } => points(caption, vec![name, column(x), column(y)], series),
        Chart::Scatter { series } => {
            if series.iter().map(|one| one.data.len()).sum::<usize>() <= MOST_ROWS {
                points(caption, vec![name, column(x), column(y)], series)
            } else {
                let summed: Vec<Series<Distribution>> = series.iter().map(y_values).collect();
                distributions(format!("{caption}, summarised"), &y.unit, &summed)
            }
        }
        Chart::Bars { categories, series } => {
            bars(caption, vec![name, Column::new("Of"), column(x)], categories, series)
        }
        Chart::Stacks { categories, series } => stacks(caption, x, categories, series),
        Chart::Ecdf { series } => distributions(caption, &x.unit, series),
        Chart::Boxes { series } => boxes(caption, &x.unit, series),
        Chart::Histogram { series } => {
            let unit = &x.unit;
            let columns = vec![
                name,
                Column::new("From").unit(unit),
                Column::new("To, not included").unit(unit),
                Column::new("Samples"),
            ];
            bins(caption, columns, series)
        }
    }
}

fn y_values(series: &Series<Vec<Point>>) -> Series<Distribution> {
    Series {
        name: series.name.clone(),
        origin: series.origin.clone(),
        muted: series.muted,
        data: Distribution::new(series.data.iter().map(|point| point.y.value).collect(), 0),
    }
}

fn mark_decimals<'a>(marks: impl Iterator<Item = &'a Mark>) -> usize {
    number::decimals_for(marks.flat_map(|mark| {
        let interval = mark.interval.map(|interval| [interval.low, interval.high]);
        std::iter::once(mark.value).chain(interval.into_iter().flatten())
    }))
}

/// Whether the notes need a column. One note that all marks share goes into the caption.
fn notes<'a>(caption: &mut String, marks: impl Iterator<Item = &'a Mark> + Clone) -> bool {
    let Some(first) = marks.clone().next().map(|mark| &mark.note) else { return false };
    if marks.clone().all(|mark| mark.note == *first) {
        if !first.is_empty() {
            caption.push_str(&format!("; each: {first}"));
        }
        return false;
    }
    true
}

fn mark_row(mut cells: Vec<Cell>, mark: &Mark, decimals: usize, notes: bool) -> Row {
    cells.push(match mark.interval {
        Some(interval) => Cell::estimate(mark.value, interval.low, interval.high, decimals),
        None => Cell::number(mark.value, decimals),
    });
    if notes {
        cells.push(match mark.note.as_str() {
            "" => Cell::Empty,
            note => Cell::text(note),
        });
    }
    Row { cells, command: mark.command.clone() }
}

fn points(mut caption: String, mut columns: Vec<Column>, series: &[Series<Vec<Point>>]) -> Table {
    let all = || series.iter().flat_map(|one| &one.data);
    let x_decimals = number::decimals_for(all().map(|point| point.x));
    let y_decimals = mark_decimals(all().map(|point| &point.y));
    let notes = notes(&mut caption, all().map(|point| &point.y));
    if notes {
        columns.push(Column::new("Note"));
    }
    let mut table = Table::new(caption, columns);
    for one in series {
        for point in &one.data {
            let cells = vec![Cell::text(one.label()), Cell::number(point.x, x_decimals)];
            table.push(mark_row(cells, &point.y, y_decimals, notes));
        }
    }
    table
}

fn bars(
    mut caption: String,
    mut columns: Vec<Column>,
    categories: &[String],
    series: &[Series<Vec<Bar>>],
) -> Table {
    let all = || series.iter().flat_map(|one| one.data.iter().flatten());
    let decimals = mark_decimals(all());
    let notes = notes(&mut caption, all());
    if notes {
        columns.push(Column::new("Note"));
    }
    // By category, as drawn.
    columns.swap(0, 1);
    let mut table = Table::new(caption, columns);
    for (at, category) in categories.iter().enumerate() {
        for one in series {
            let cells = vec![Cell::text(category), Cell::text(one.label())];
            table.push(match one.data.get(at).and_then(Option::as_ref) {
                Some(mark) => mark_row(cells, mark, decimals, notes),
                None => Row::new(cells),
            });
        }
    }
    table
}

/// A row for each category: its parts and their sum.
fn stacks(
    caption: String,
    axis: &super::Axis,
    categories: &[String],
    series: &[Series<Vec<Bar>>],
) -> Table {
    let marks = || series.iter().flat_map(|one| one.data.iter().flatten());
    let sums = sums(series, categories.len());
    let decimals = number::decimals_for(marks().map(|mark| mark.value).chain(sums.iter().copied()));
    let mut columns = vec![Column::new("Of")];
    columns.extend(series.iter().map(|one| Column::new(one.label()).unit(axis.unit.clone())));
    columns.push(Column::new("Sum").unit(axis.unit.clone()));
    let mut table = Table::new(caption, columns);
    for ((at, category), sum) in categories.iter().enumerate().zip(sums) {
        let parts = series.iter().map(|one| one.data.get(at).and_then(Option::as_ref));
        let command = parts.clone().flatten().find_map(|mark| mark.command.clone());
        let mut cells = vec![Cell::text(category)];
        cells.extend(parts.map(|part| quantity(part.map(|mark| mark.value), decimals)));
        cells.push(Cell::number(sum, decimals));
        table.push(Row { cells, command });
    }
    table
}

fn bins(caption: String, columns: Vec<Column>, series: &[Series<Vec<Bin>>]) -> Table {
    let edges = series.iter().flat_map(|one| &one.data).flat_map(|bin| [bin.from, bin.to]);
    let decimals = number::decimals_for(edges);
    let mut table = Table::new(caption, columns);
    for one in series {
        for bin in &one.data {
            table.push(Row::new(vec![
                Cell::text(one.label()),
                Cell::number(bin.from, decimals),
                Cell::number(bin.to, decimals),
                Cell::count(bin.count),
            ]));
        }
    }
    table
}

fn all_decimals(series: &[Series<Distribution>]) -> usize {
    number::decimals_for(series.iter().flat_map(|one| one.data.sorted()).copied())
}

fn quantity(value: Option<f64>, decimals: usize) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::number(value, decimals))
}

fn sample_cells(one: &Series<Distribution>) -> Vec<Cell> {
    vec![
        Cell::text(one.label()),
        Cell::count(one.data.count() as u64),
        Cell::count(one.data.censored() as u64),
    ]
}

fn distributions(caption: String, unit: &str, series: &[Series<Distribution>]) -> Table {
    const SHARES: [(&str, f64); 5] =
        [("p5", 0.05), ("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];
    let decimals = all_decimals(series);
    let mut columns = vec![Column::new("Series"), Column::new("Samples"), Column::new("Failed")];
    columns.push(Column::new("Least").unit(unit));
    columns.extend(SHARES.iter().map(|(name, _)| Column::new(*name).unit(unit)));
    columns.push(Column::new("Greatest").unit(unit));
    let mut table = Table::new(caption, columns);
    for one in series {
        let mut cells = sample_cells(one);
        cells.push(quantity(one.data.sorted().first().copied(), decimals));
        cells.extend(SHARES.iter().map(|(_, share)| quantity(one.data.quantile(*share), decimals)));
        // With failures the greatest is not known.
        cells.push(quantity(one.data.quantile(1.0), decimals));
        table.push(Row { cells, command: one.data.command_text().map(str::to_owned) });
    }
    table
}

fn boxes(caption: String, unit: &str, series: &[Series<Distribution>]) -> Table {
    let decimals = all_decimals(series);
    let mut columns = vec![Column::new("Series"), Column::new("Samples"), Column::new("Failed")];
    columns.extend(
        ["Lower whisker", "Quartile 1", "Median", "Quartile 3", "Upper whisker"]
            .map(|name| Column::new(name).unit(unit)),
    );
    columns.push(Column::new("Beyond whiskers"));
    let mut table = Table::new(caption, columns);
    for one in series {
        let mut cells = sample_cells(one);
        if let Some(five) = one.data.five() {
            cells.extend(
                [five.lower, five.q1, five.median, five.q3, five.upper]
                    .map(|value| Cell::number(value, decimals)),
            );
            cells.push(Cell::count(five.beyond.len() as u64));
        }
        table.push(Row { cells, command: one.data.command_text().map(str::to_owned) });
    }
    table
}
