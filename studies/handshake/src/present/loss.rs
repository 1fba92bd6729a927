//! Under loss: the tail, with attempts that were given up kept in as censored.

use report::{
    Axis, Cell, Chart, Column, Distribution, Inline, Plot, PlotError, Row as TableRow, Section,
    Series, Table,
};
use stats::{Confidence, Observation, Survival};

use super::Findings;
use crate::summary::{Cell as Measured, Row, value};

fn survival(cell: &Measured) -> Option<Survival> {
    let finished = cell.samples(value::RESPONSE).iter().map(|ms| Observation::Finished(*ms));
    let given_up = cell.given_up_ms.iter().map(|ms| Observation::Censored(*ms));
    Survival::new(&finished.chain(given_up).collect::<Vec<_>>()).ok()
}

/// Every row's cells with loss.
fn lossy<'a>(findings: &'a Findings<'_>) -> impl Iterator<Item = (&'a Row, &'a Measured)> {
    let rows = findings.summary.rows.iter();
    rows.flat_map(|row| row.lossy.iter().map(move |cell| (row, cell)))
}

/// p50, p95 and p99 of every mode under loss.
pub(super) fn table(findings: &Findings<'_>) -> Option<Table> {
    let columns = vec![
        Column::new("Mode"),
        Column::new("RTT").unit("ms"),
        Column::new("loss").unit("%"),
        Column::new("p50").unit("ms"),
        Column::new("p95").unit("ms"),
        Column::new("p99").unit("ms"),
        Column::new("connections"),
        Column::new("given up"),
        Column::new("failed"),
    ];
    let caption = "Time to the first response byte under loss (Kaplan-Meier: attempts given up count \
                   as longer than their time limit)";
    let mut table = Table::new(caption, columns);
    for (row, cell) in lossy(findings) {
        let Some(survival) = survival(cell) else { continue };
        let mut cells = vec![
            Cell::text(row.key.mode.to_string()),
            Cell::number(cell.rtt_ms, 1),
            Cell::number(cell.loss * 100.0, 1),
        ];
        cells.extend([0.5, 0.95, 0.99].map(|share| quantile(&survival, share)));
        let failed = cell.failed.values().sum();
        cells.extend([
            Cell::count(survival.count() as u64),
            Cell::count(cell.given_up_ms.len() as u64),
            Cell::count(failed),
        ]);
        table.push(TableRow::new(cells).command(cell.command.clone()));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn quantile(survival: &Survival, share: f64) -> Cell {
    let Ok(bounded) = survival.quantile(share, Confidence::C95) else { return Cell::Empty };
    match (bounded.value, bounded.low, bounded.high) {
        (Some(value), Some(low), Some(high)) => Cell::estimate(value, low, high, 1),
        (Some(value), _, _) => Cell::number(value, 1),
        (None, _, _) => Cell::text(format!("> {:.0}", bounded.horizon)),
    }
}

pub(super) fn section(findings: &Findings<'_>) -> Result<Option<Section>, PlotError> {
    let Some(table) = table(findings) else { return Ok(None) };
    let text = "A lost SYN waits for the kernel's first retransmission timer (1 s), a lost flight \
                for less once an RTT is known: fewer round trips are also fewer packets that can be \
                lost, and fewer timers to wait for.";
    let mut section = Section::new("loss", "Under loss").with(Inline::new().text(text));
    let worst = lossy(findings).map(|(_, cell)| cell.loss).max_by(f64::total_cmp);
    let series: Vec<_> = lossy(findings)
        .filter(|(_, cell)| Some(cell.loss) == worst && cell.completed() > 0)
        .map(|(row, cell)| {
            let given_up = cell.given_up_ms.len();
            let samples = cell.samples(value::RESPONSE).to_vec();
            let samples = Distribution::new(samples, given_up).command(cell.command.clone());
            Series::measured(row.key.mode.to_string(), samples)
        })
        .take(8)
        .collect();
    if let (Some(worst), false) = (worst, series.is_empty()) {
        let percent = worst * 100.0;
        section = section.with(Plot::new(
            format!("Share of connections answered within a time, loss {percent} % each way"),
            format!(
                "At {percent} % loss most connections are as fast as without, and a tail waits for \
                 retransmission timers."
            ),
            Axis::new("Time to the first response byte", "ms").log(),
            Axis::new("Share of connections", ""),
            Chart::Ecdf { series },
        )?);
    }
    Ok(Some(section.with(table)))
}
