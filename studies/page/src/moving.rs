//! Page load times on a link whose capacity changes: no median says what a moving user sees.

use fault::{Fault, OrProblem, Problem};
use report::{Axis, Cell, Chart, Column, Distribution, Plot, Section, Series, Table};
use stats::Estimate;

use crate::means;
use crate::row::Row;
use crate::summary::Group;

/// What the section is called.
const TITLE: &str = "On the move";

/// The loads of each group on a moving link, as distributions; none without such a group.
pub(crate) fn section<'a>(
    groups: impl Iterator<Item = &'a Group>,
) -> Result<Option<Section>, Problem> {
    let mut section = Section::new("page-moving", TITLE);
    let groups: Vec<&Group> = groups.collect();
    for group in groups.iter().filter(|group| group.link.is_moving()) {
        section = section.with(plot(group)?);
    }
    Ok(table(groups.into_iter()).map(|table| section.with(table)))
}

/// Shares of loads, by which a distribution is said: after how long so many are done.
const SHARES: [(&str, f64); 6] =
    [("10 %", 0.1), ("25 %", 0.25), ("50 %", 0.5), ("75 %", 0.75), ("90 %", 0.9), ("all", 1.0)];

/// The same in figures: the shares of all loads, of which those that were given up or failed are longer than any. None without
/// such a group.
pub(crate) fn table<'a>(groups: impl Iterator<Item = &'a Group>) -> Option<Table> {
    let first = ["Page, link, visit", "Protocol", "loads", "not whole"].map(Column::new);
    let mut columns = Vec::from(first);
    columns.extend([Column::new("median").unit("s"), Column::new("of http/1.1")]);
    columns.extend(SHARES.map(|(name, _)| Column::new(name).unit("s")));
    let mut table = Table::new(TITLE, columns);
    for group in groups.filter(|group| group.link.is_moving()) {
        for row in &group.rows {
            table.push(report::Row::new(cells(group, row)).command(&row.command));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

fn cells(group: &Group, row: &Row) -> Vec<Cell> {
    let estimate = |estimate: Option<Estimate>, scale: f64| {
        estimate.map_or(Cell::Empty, |e| {
            Cell::estimate(e.value / scale, e.low / scale, e.high / scale, 2)
        })
    };
    let loads = distribution(row);
    let mut cells = vec![
        Cell::text(group.title()),
        Cell::text(row.label(group.is_plain())),
        Cell::count(loads.count() as u64),
        Cell::count(row.failed as u64),
        estimate(row.load_ms, 1e3),
        estimate(row.ratio, 1.0),
    ];
    cells.extend(SHARES.map(|(_, share)| match loads.quantile(share) {
        Some(seconds) => Cell::number(seconds, 2),
        None => Cell::text("never"),
    }));
    cells
}

/// A row's page load times in seconds, and loads that are not whole.
fn distribution(row: &Row) -> Distribution {
    Distribution::new(row.loads_ms().map(|ms| ms / 1e3).collect(), row.failed)
}

/// The share of loads that are done after a time, by protocol.
fn plot(group: &Group) -> Result<Plot, Problem> {
    let plain = group.is_plain();
    let series = group.rows.iter().map(|row| {
        let loads = distribution(row).command(row.command.as_str());
        Series::measured(row.label(plain), loads)
    });
    let chart = Chart::Ecdf { series: series.collect() };
    let longest = group.rows.iter().filter_map(|row| row.range_ms).map(|(_, most)| most);
    let alt = format!(
        "Share of page loads that are done after a time, by protocol; the longest took {:.1} s.",
        longest.fold(0.0, f64::max) / 1e3
    );
    let (x, y) = (Axis::new("page load time", "s").from_zero(), Axis::new("share of loads", ""));
    let means = means::moving(group);
    let plot = Plot::new(group.title(), alt, means, x, y, chart).blame(Fault::Measurement)?;
    Ok(plot.caption(
        "Loads of one turn begin at the same moment of the link's changes, so that protocols meet the same \
         outages. The SPDY paper's Figure 2 is of this, without printed values: 63 loads with SPDY and 93 with \
         HTTP, on different roads.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::tests::samples;

    fn loaded_over(link: &str) -> Vec<record::Sample> {
        let mut loads = samples();
        for load in &mut loads {
            load.point.insert("link".to_owned(), link.to_owned());
        }
        loads
    }

    #[test]
    fn a_moving_link_has_a_picture_and_others_have_none() {
        let bus = Summary::of(&loaded_over("bus")).groups;
        let section = section(bus.iter()).unwrap().unwrap();
        assert_eq!(section.blocks.len(), bus.len() + 1);
        let wired = Summary::of(&loaded_over("wired-10")).groups;
        assert!(super::section(wired.iter()).unwrap().is_none());
    }

    #[test]
    fn what_was_given_up_is_longer_than_any_load() {
        let mut loads = loaded_over("bus");
        let outcome = record::Outcome::TimedOut { after_ms: 180_000.0 };
        loads[4] = record::Sample { outcome, ..loads[4].clone() };
        assert_eq!(loads[4].point["protocol"], "h2");
        let table = table(Summary::of(&loads).groups.iter()).unwrap();
        assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
        let text = table.to_markdown();
        let row = |protocol: &str| text.lines().find(|line| line.contains(protocol)).unwrap();
        let http1 = row("| http/1.1 |");
        assert!(http1.contains("| 10 | 0 |"), "{text}");
        assert!(http1.ends_with("| 10.00 | 10.02 | 10.04 | 10.07 | 10.08 | 10.09 |"), "{text}");
        // Four fifths of that, and the second load was given up.
        let given_up = row("| h2 |");
        assert!(
            given_up.contains("| 10 | 1 |") && given_up.ends_with("| 8.07 | never |"),
            "{text}"
        );
    }
}
