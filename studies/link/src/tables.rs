//! The tables: delay, throughput, hops, bytes.

use report::{Cell, Column, Table, decimals};
use stats::Estimate;

use crate::advice;
use crate::point::{Backend, Offered, Point};
use crate::summary::{Row, Summary};

/// All tables that have a row; between interfaces the first two alone say something.
pub(crate) fn all(summary: &Summary) -> Vec<Table> {
    let tables = [
        delays(summary, false),
        throughputs(summary, false),
        delays(summary, true),
        throughputs(summary, true),
        hops(summary),
        sizes(summary),
        Some(advice::settings(summary)),
    ];
    let between = |row: &Row| row.point.backend == Backend::Between;
    let all_between = summary.rows.iter().all(between);
    let kept = tables.into_iter().flatten().filter(|table| !table.rows.is_empty());
    if all_between { kept.take(2).collect() } else { kept.collect() }
}

/// An axis, and its value of a point.
type Field = (&'static str, fn(&Point) -> String);

/// What tells rows of one table apart, beside the protocol: only what differs between them.
struct Apart {
    columns: Vec<Field>,
}

impl Apart {
    fn of(rows: &[&Row]) -> Apart {
        let all: [Field; 8] = [
            ("backend", |point| point.backend.to_string()),
            ("network", |point| point.network.to_string()),
            ("hops", |point| point.hops.to_string()),
            ("reach", |point| point.reach.to_string()),
            ("gateway", |point| point.gateway.to_string()),
            ("frame", |point| point.frame.to_string()),
            ("ways", |point| point.ways.to_string()),
            ("load", |point| point.load.to_string()),
        ];
        let differs =
            |of: &fn(&Point) -> String| rows.iter().any(|row| of(&row.point) != of(&rows[0].point));
        Apart { columns: all.into_iter().filter(|(_, of)| differs(of)).collect() }
    }

    fn head(&self) -> Vec<Column> {
        let own = self.columns.iter().map(|(name, _)| Column::new(*name));
        std::iter::once(Column::new("Protocol")).chain(own).collect()
    }

    fn cells(&self, row: &Row) -> Vec<Cell> {
        let own = self.columns.iter().map(|(_, of)| Cell::text(of(&row.point)));
        std::iter::once(Cell::text(row.point.label())).chain(own).collect()
    }
}

/// Delays in real time, or in a guest machine's.
fn delays(summary: &Summary, in_guest: bool) -> Option<Table> {
    let own = |row: &&Row| (row.point.backend == Backend::Guest) == in_guest;
    let rows: Vec<&Row> = summary.delays().map(|(row, _)| row).filter(own).collect();
    let first = rows.first()?;
    let unit = if in_guest { "10³ instr." } else { "µs" };
    let apart = Apart::of(&rows);
    let mut columns = apart.head();
    columns.extend([
        Column::new("median").unit(unit),
        Column::new("above plain").unit(unit),
        Column::new("p99").unit(unit),
        Column::new("delivered").unit("Mbit/s"),
        Column::new("lost").unit("%"),
        Column::new("trials"),
    ]);
    let frames = match rows.iter().all(|row| row.point.frame == first.point.frame) {
        true => format!(", frames of {} bytes", first.point.frame),
        false => String::new(),
    };
    let caption = match in_guest {
        true => format!("In a guest machine: thousands of instructions one way{frames}"),
        false => format!("Delay one way{frames}; medians with intervals"),
    };
    let mut table = Table::new(caption, columns);
    for row in rows {
        let plain = summary.plain_of(row).and_then(|plain| plain.median_us);
        let above = row.median_us.zip(plain).map(|(own, plain)| own.value - plain.value);
        let mut cells = apart.cells(row);
        cells.extend([
            estimate(row.median_us),
            above.map_or(Cell::Empty, |above| Cell::difference(above, decimals(above))),
            Cell::known(row.p99_us.map(|one| one.value), 1),
            Cell::known(row.delivered_mbps.map(|one| one.value), 1),
            Cell::known(row.lost.map(|lost| lost * 100.0), 2),
            trials(row),
        ]);
        table.push(report::Row::new(cells).command(&row.command));
    }
    Some(table)
}

/// What gets through without loss, in real time or in a guest machine's.
fn throughputs(summary: &Summary, in_guest: bool) -> Option<Table> {
    let searched = |row: &&Row| {
        matches!(row.point.load, Offered::Throughput | Offered::Burst)
            && (row.point.backend == Backend::Guest) == in_guest
    };
    let rows: Vec<&Row> = summary.rows.iter().filter(searched).collect();
    rows.first()?;
    let apart = Apart::of(&rows);
    let mut columns = apart.head();
    columns.extend([
        Column::new("without loss").unit("Mbit/s"),
        Column::new("frames").unit("1/s"),
        Column::new("of plain").unit("%"),
        Column::new("burst").unit("frames"),
        Column::new("of it each").unit("ns"),
        Column::new("CPU").unit("ns/frame"),
        Column::new("trials"),
    ]);
    let caption = match in_guest {
        true => "The most without loss in a guest machine's virtual time (RFC 2544 §26.1, §26.4)",
        false => "The most without loss (RFC 2544 §26.1, §26.4)",
    };
    let mut table = Table::new(caption, columns);
    for row in rows {
        let plain = summary.plain_of(row).and_then(|plain| plain.throughput_mbps);
        let share =
            row.throughput_mbps.zip(plain).map(|(own, plain)| own.value / plain.value * 100.0);
        let mut cells = apart.cells(row);
        cells.extend([
            estimate(row.throughput_mbps),
            Cell::known(row.throughput_pps.map(|one| one.value), 0),
            Cell::known(share, 0),
            Cell::known(row.burst.map(|one| one.value), 0),
            Cell::known(row.per_frame_ns.map(|one| one.value), 0),
            Cell::known(row.cpu_ns.map(|one| one.value), 0),
            trials(row),
        ]);
        table.push(report::Row::new(cells).command(&row.command));
    }
    Some(table)
}

/// What a hop adds.
fn hops(summary: &Summary) -> Option<Table> {
    let columns = vec![
        Column::new("Protocol"),
        Column::new("backend"),
        Column::new("reach"),
        Column::new("load"),
        Column::new("a hop").unit("µs"),
        Column::new("without a hop").unit("µs"),
        Column::new("medians by hops").unit("µs"),
    ];
    let mut table = Table::new("What a hop adds to the delay", columns);
    for one in &summary.per_hop {
        let medians = one.medians.iter().map(|(hops, us)| format!("{hops}: {us:.1}"));
        table.push(report::Row::new(vec![
            Cell::text(&one.protocol),
            Cell::text(&one.backend),
            Cell::text(one.reach.name()),
            Cell::text(&one.load),
            estimate(Some(one.slope_us)),
            estimate(Some(one.intercept_us)),
            Cell::text(medians.collect::<Vec<_>>().join(", ")),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// How long frames become.
fn sizes(summary: &Summary) -> Option<Table> {
    let columns = vec![
        Column::new("Protocol"),
        Column::new("frame").unit("bytes"),
        Column::new("access").unit("bytes"),
        Column::new("core").unit("bytes"),
        Column::new("security").unit("bytes"),
        Column::new("of the core").unit("%"),
        Column::new("counted on the wire"),
    ];
    let mut table = Table::new("How long frames become, by the formats and on the wire", columns);
    let mut known = Vec::new();
    for row in &summary.rows {
        let Some(size) = row.computed else { continue };
        let key = (row.point.label(), size, row.counted.is_some());
        if row.point.backend == Backend::Between || known.contains(&key) {
            continue;
        }
        known.push(key);
        let counted = match row.counted {
            None => "not counted".to_owned(),
            Some(_) if agrees(row) => "equal".to_owned(),
            Some([access, core]) => format!("{access:.1} and {core:.1}"),
        };
        table.push(report::Row::new(vec![
            Cell::text(row.point.label()),
            Cell::count(size.offered as u64),
            Cell::count(size.access as u64),
            Cell::count(size.core as u64),
            Cell::difference(size.security() as f64, 0),
            Cell::number(size.efficiency() * 100.0, 1),
            Cell::text(counted),
        ]));
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Whether what was counted is what the formats say.
pub(crate) fn agrees(row: &Row) -> bool {
    match (row.counted, row.computed) {
        (Some([access, core]), Some(computed)) => {
            access == computed.access as f64 && core == computed.core as f64
        }
        _ => true,
    }
}

fn estimate(estimate: Option<Estimate>) -> Cell {
    estimate.map_or(Cell::Empty, |one| {
        Cell::estimate(one.value, one.low, one.high, decimals(one.value))
    })
}

fn trials(row: &Row) -> Cell {
    Cell::text(match row.failed {
        0 => row.trials.to_string(),
        failed => format!("{} ({failed} failed)", row.trials),
    })
}
