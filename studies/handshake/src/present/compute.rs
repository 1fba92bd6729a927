//! What c is made of, and how far each RTT lies from its line.

use report::{Block, Cell, Column, Inline, Row as TableRow, Table};
use stats::{Estimate, LineFit};

use super::{Findings, decimals_at, estimate, rtt_text, rtts};
use crate::summary::{Row, value};

/// What the lab adds to a round trip, in a sentence.
pub(super) fn lab_words(findings: &Findings) -> String {
    match findings.lab_delay.map(|lab| lab.over(1)) {
        Some(Estimate { value, low, high, .. }) => format!(
            "the lab's own delay is taken off: {value:.2} ms per round trip ({low:.2} to {high:.2}, by \
             its calibration)"
        ),
        None => "the lab's own delay is part of it, and not known: the lab was not calibrated"
            .to_owned(),
    }
}

/// c without the lab's own delay where that is known.
pub(super) fn own(findings: &Findings, fit: &LineFit, round_trips: u32) -> Estimate {
    let c = fit.intercept;
    findings.lab_delay.map_or(c, |lab| lab.taken_off(&c, round_trips))
}

/// The tables of the section on n and c, less the first.
pub(super) fn blocks(findings: &Findings) -> Vec<Block> {
    let rows = findings.main_rows();
    let mut blocks = vec![Block::Table(parts(findings, &rows))];
    let text = "The line is that of least absolute deviations: it passes through the medians of two \
                RTTs. Of three RTTs the third alone is off it, by the whole of what does not fit.";
    blocks.push(Block::Paragraph(Inline::new().text(text)));
    for (what, name) in [("ready", value::READY), ("response", value::RESPONSE)] {
        blocks.push(Block::Table(residuals(&rows, what, name)));
    }
    blocks
}

/// c, what of it is the lab's, and what is left.
fn parts(findings: &Findings, rows: &[&Row]) -> Table {
    let mut columns = vec![Column::new("Mode")];
    for what in ["ready", "response"] {
        columns.push(Column::new(format!("c {what}")).unit("ms"));
        columns.push(Column::new("of it the lab's own delay").unit("ms"));
        columns.push(Column::new("c less the lab's delay").unit("ms"));
    }
    let caption = "What does not grow with the RTT: as fitted, the lab's own delay on the round trips \
                   of the specification by its calibration (its ends: the least and the greatest \
                   median of the delays calibrated), and what is left";
    let mut table = Table::new(caption, columns);
    for row in rows {
        let (Some(ready), Some(response), Some(spec)) = (&row.ready, &row.response, row.spec)
        else {
            continue;
        };
        let mut cells = vec![Cell::text(row.key.mode.to_string())];
        for (fit, round_trips) in [(ready, spec.ready), (response, spec.response)] {
            cells.push(estimate(&fit.intercept, 2));
            match findings.lab_delay {
                Some(lab) => cells.extend([
                    estimate(&lab.over(round_trips), 2),
                    estimate(&lab.taken_off(&fit.intercept, round_trips), 2),
                ]),
                None => cells.extend([Cell::Empty, Cell::Empty]),
            }
        }
        table.push(TableRow::new(cells));
    }
    table
}

/// The median at each RTT less what the line says there, with the median's interval.
fn residuals(rows: &[&Row], what: &str, name: &str) -> Table {
    let rtts = rtts(rows.iter().copied());
    let mut columns = vec![Column::new("Mode")];
    columns.extend(rtts.iter().map(|rtt| Column::new(format!("at {}", rtt_text(*rtt))).unit("ms")));
    let caption = format!("Residuals of {what}: the median at each RTT less the line");
    let mut table = Table::new(caption, columns);
    for row in rows {
        let fit = if name == value::READY { &row.ready } else { &row.response };
        let Some(fit) = fit else { continue };
        let residual = |rtt: &f64| {
            let fitted = fit.residuals.iter().find(|residual| residual.x == *rtt)?.fitted;
            let median = row.at_rtt(*rtt)?.median(name)?;
            Some(estimate(&median.map(|ms| ms - fitted), decimals_at(*rtt).max(2)))
        };
        let cells = rtts.iter().map(|rtt| residual(rtt).unwrap_or_default());
        let name = Cell::text(row.key.mode.to_string());
        table.push(TableRow::new(std::iter::once(name).chain(cells).collect()));
    }
    table
}
