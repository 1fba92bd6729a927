//! Under loss: the tail, with attempts that were given up kept in as censored.

use report::{
    Axis, Cell, Chart, Column, Distribution, Inline, Note, Plot, PlotError, Row as TableRow,
    Section, Series, Table,
};
use stats::{Confidence, Observation, Survival};

use super::lineup::{is_drawn, listed, order};
use super::{Findings, rtt_text};
use crate::mode::Security;
use crate::summary::{Cell as Measured, Row, value};

/// Curves in one plot at most.
const MOST_CURVES: usize = 12;

/// Fewer connections make no curve: some fell back to a mode that was not measured.
const LEAST_CURVE: usize = 10;

fn survival(cell: &Measured) -> Option<Survival> {
    let finished = cell.samples(value::RESPONSE).iter().map(|ms| Observation::Finished(*ms));
    let given_up = cell.given_up_ms.iter().map(|ms| Observation::Censored(*ms));
    Survival::new(&finished.chain(given_up).collect::<Vec<_>>()).ok()
}

/// Every row's cells with loss: by RTT, by loss, then by mode.
fn lossy(findings: &Findings) -> Vec<(&Row, &Measured)> {
    let rows = findings.summary.rows.iter().filter(|row| row.key.is_unhindered());
    let mut cells: Vec<_> =
        rows.flat_map(|row| row.lossy.iter().map(move |cell| (row, cell))).collect();
    cells.sort_by(|(a_row, a), (b_row, b)| {
        let path = a.rtt_ms.total_cmp(&b.rtt_ms).then(a.loss.total_cmp(&b.loss));
        path.then(order(a_row.key.mode).cmp(&order(b_row.key.mode)))
    });
    cells
}

/// `3 %`, without the digits that binary fractions leave.
fn percent(loss: f64) -> String {
    let rounded = (loss * 1e6).round() / 1e4;
    format!("{rounded} %")
}

/// p50, p95 and p99 under loss, for a terminal: of the modes that are drawn.
pub(super) fn summary(findings: &Findings) -> Option<Table> {
    table(findings, |row| is_drawn(row.key.mode, findings.from))
}

/// p50, p95 and p99 of every mode under loss that is `shown`.
fn table(findings: &Findings, shown: impl Fn(&Row) -> bool) -> Option<Table> {
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
    let caption = "Time to the first response byte under loss, each way (attempts given up count as \
                   longer than their time limit, by Kaplan and Meier)";
    let mut table = Table::new(caption, columns);
    for (row, cell) in lossy(findings).into_iter().filter(|(row, _)| shown(row)) {
        let Some(survival) = survival(cell) else { continue };
        let mut cells = vec![
            Cell::text(row.key.mode.to_string()),
            Cell::number(cell.rtt_ms, 1),
            Cell::number(cell.loss * 100.0, 1),
        ];
        cells.extend([0.5, 0.95, 0.99].map(|share| quantile(&survival, share)));
        let failed: u64 = cell.failed.values().sum();
        cells.extend([
            Cell::count(survival.count() as u64 + failed),
            Cell::count(cell.given_up_ms.len() as u64),
            Cell::count(failed),
        ]);
        table.push(TableRow::new(cells).command(cell.command.clone()));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn quantile(survival: &Survival, share: f64) -> Cell {
    // A quantile beyond what the samples can show would be their greatest under another name.
    if (1.0 - share) * (survival.count() as f64) < 1.0 - 1e-9 {
        return Cell::Empty;
    }
    let Ok(bounded) = survival.quantile(share, Confidence::C95) else { return Cell::Empty };
    match (bounded.value, bounded.low, bounded.high) {
        (Some(value), Some(low), Some(high)) => Cell::estimate(value, low, high, 0),
        (Some(value), _, _) => Cell::number(value, 0),
        (None, _, _) => Cell::text(format!("> {:.0}", bounded.horizon)),
    }
}

pub(super) fn section(findings: &Findings) -> Result<Option<Section>, PlotError> {
    let Some(table) = table(findings, |_| true) else { return Ok(None) };
    let text = "A lost packet costs the timer that sends it again: one second for a SYN (RFC 6298 \
                §2) and about as long for QUIC's first packet (RFC 9002 §6.2.2), less once an RTT \
                is known. What matters here is the tail. Where a plan measures several connections \
                at once (`concurrent` in the manifest) they share a processor, and medians include \
                waiting for it: compare modes with each other, not with the tables above.";
    let mut section = Section::new("loss", "Under loss").with(Inline::marked(text));
    let cells = lossy(findings);
    let mut paths: Vec<(f64, f64)> = cells.iter().map(|(_, c)| (c.rtt_ms, c.loss)).collect();
    paths.dedup();
    for (rtt, loss) in paths {
        let own = cells.iter().filter(|(row, cell)| {
            (cell.rtt_ms, cell.loss) == (rtt, loss)
                && cell.completed() >= LEAST_CURVE
                && is_drawn(row.key.mode, findings.from)
        });
        if let Some(plot) = curves(own.take(MOST_CURVES).copied().collect(), rtt, loss)? {
            section = section.with(plot);
        }
    }
    section = section.with(table);
    let beyond = "An empty p95 or p99 means that there are fewer than 20 or 100 connections: so few \
                  cannot show it.";
    section = section.with(Note::info(Inline::new().text(beyond)));
    if let Some(note) = fell_back(findings) {
        section = section.with(note);
    }
    Ok(Some(section))
}

/// The answer of a run that measured under loss alone: how soon nine connections in ten are
/// answered, by the modes without Fast Open, the slowest first. `None` without enough connections.
pub(super) fn headline(findings: &Findings) -> Option<String> {
    let cells = lossy(findings);
    let (_, worst) = cells.last()?;
    let path = (worst.rtt_ms, worst.loss);
    let mut times: Vec<(f64, String)> = cells
        .iter()
        .filter(|(row, cell)| {
            (cell.rtt_ms, cell.loss) == path
                && cell.completed() >= LEAST_CURVE
                && is_drawn(row.key.mode, findings.from)
                && row.key.mode.security != Security::Plain
                && !row.key.mode.fast_open()
        })
        .filter_map(|(row, cell)| {
            let nine = survival(cell)?.quantile(0.9, Confidence::C95).ok()?.value?;
            Some((nine, row.key.mode.description()))
        })
        .collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let words: Vec<String> =
        times.iter().map(|(ms, mode)| format!("{ms:.0}\u{a0}ms by {mode}")).collect();
    (!words.is_empty()).then(|| {
        format!(
            "At a loss of {} each way and an RTT of {}, nine connections in ten are answered within \
             {}.",
            percent(path.1),
            rtt_text(path.0),
            listed(&words)
        )
    })
}

fn curves(
    cells: Vec<(&Row, &Measured)>,
    rtt_ms: f64,
    loss: f64,
) -> Result<Option<Plot>, PlotError> {
    let series: Vec<_> = cells
        .iter()
        .map(|(row, cell)| {
            let samples = cell.samples(value::RESPONSE).to_vec();
            let samples =
                Distribution::new(samples, cell.given_up_ms.len()).command(cell.command.clone());
            let series = Series::measured(row.key.mode.to_string(), samples);
            if row.key.mode.security == Security::Plain { series.muted() } else { series }
        })
        .collect();
    if series.is_empty() {
        return Ok(None);
    }
    let percent = percent(loss);
    let nines: Vec<(f64, String)> = cells
        .iter()
        .filter_map(|(row, cell)| {
            let survival = survival(cell)?;
            let nine = survival.quantile(0.9, Confidence::C95).ok()?.value?;
            Some((nine, row.key.mode.to_string()))
        })
        .collect();
    let within: Vec<String> =
        nines.iter().map(|(nine, mode)| format!("{nine:.0} ms by {mode}")).collect();
    let alt = match within.as_slice() {
        [] => format!("Times until the first response byte at a loss of {percent} each way."),
        within => format!(
            "At a loss of {percent} each way nine connections in ten are answered within {}.",
            listed(within)
        ),
    };
    let plot = Plot::new(
        format!(
            "Answered within, at a loss of {percent} each way and an RTT of {}",
            rtt_text(rtt_ms)
        ),
        alt,
        means(&nines),
        Axis::new("Time to the first response byte", "ms").log(),
        Axis::new("Share of connections", ""),
        Chart::Ecdf { series },
    )?;
    Ok(Some(plot.caption("A curve that ends below 100 % has attempts that were given up.")))
}

/// What the unlucky wait.
fn means(nines: &[(f64, String)]) -> String {
    let by_time = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
    match (nines.iter().min_by(by_time), nines.iter().max_by(by_time)) {
        (Some((least, soonest)), Some((most, latest))) if soonest != latest => format!(
            "One new connection in ten waits longer than {most:.0} ms by {latest}, and longer than {least:.0} ms by \
             {soonest}: what your unluckiest users see."
        ),
        (Some((nine, mode)), _) => {
            format!("One new connection in ten waits longer than {nine:.0} ms by {mode}.")
        }
        _ => "More than one new connection in ten was given up.".to_owned(),
    }
}

/// Under loss the connections that fall back are the unlucky ones: without them a mode would look
/// better than it is to whoever tries it.
fn fell_back(findings: &Findings) -> Option<Note> {
    let measured = |mode| lossy(findings).iter().any(|(row, _)| row.key.mode == mode);
    let fell: Vec<String> = findings
        .summary
        .fell_back
        .iter()
        .filter(|(fell, _)| measured(fell.intended))
        .map(|(fell, count)| format!("{count} from {} to {}", fell.intended, fell.actual))
        .collect();
    if fell.is_empty() {
        return None;
    }
    let text = format!(
        "Connections fell back in this run: {}. On a path with loss they count as what was tried: \
         the time that a lost SYN costs belongs to the mode that lost it.",
        listed(&fell)
    );
    Some(Note::info(Inline::new().text(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_prints_without_the_digits_of_binary_fractions() {
        assert_eq!(percent(0.03), "3 %");
        assert_eq!(percent(0.1), "10 %");
        assert_eq!(percent(0.005), "0.5 %");
    }

    #[test]
    fn few_connections_show_no_99th_percentile() {
        let finished = |n: u32| (1..=n).map(|ms| Observation::Finished(f64::from(ms)));
        let few = Survival::new(&finished(40).collect::<Vec<_>>()).unwrap();
        assert_eq!(quantile(&few, 0.99), Cell::Empty);
        assert_ne!(quantile(&few, 0.95), Cell::Empty);
        let enough = Survival::new(&finished(100).collect::<Vec<_>>()).unwrap();
        assert_ne!(quantile(&enough, 0.99), Cell::Empty);
    }

    #[test]
    fn a_quantile_among_the_given_up_is_more_than_their_limit() {
        let mut all = vec![Observation::Finished(1.0); 30];
        all.extend([Observation::Censored(60_000.0); 10]);
        let survival = Survival::new(&all).unwrap();
        assert_eq!(quantile(&survival, 0.95), Cell::text("> 60000"));
    }
}
