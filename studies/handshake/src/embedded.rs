//! What SSLmTCP saves from the same handshake in sequence over the same TCP, so that the saving is
//! the handshake's and not the stack's.

use serde::Serialize;
use stats::{Confidence, Estimate};

use crate::mode::Mode;
use crate::summary::{Cell, Row, RowKey, Summary, value};

/// One SSLmTCP mode beside its control.
#[derive(Debug, Clone, Serialize)]
pub struct Embedded {
    /// The SSLmTCP mode's row.
    pub key: RowKey,
    /// The mode that does the same in sequence.
    pub control: Mode,
    /// What is saved, at each RTT that both were measured at, by RTT.
    pub saved: Vec<Saved>,
    /// The c of the model with which its reductions fit best.
    pub model: Option<Model>,
}

/// What is saved at one round-trip time. Connections of both modes took turns, and are compared in
/// pairs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Saved {
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Pairs of connections.
    pub pairs: usize,
    /// Median time of the control until the client may send, in milliseconds.
    pub control_ms: f64,
    /// The same of the SSLmTCP mode.
    pub embedded_ms: f64,
    /// What is saved until the client may send, in milliseconds; negative if it costs.
    pub ready_ms: Estimate,
    /// What is saved until the first response byte, in milliseconds: the SSLmTCP paper's response waiting
    /// time (its Figure 11).
    pub response_ms: Estimate,
    /// The time until the client may send, as a share less of the control's: 0.25 is a quarter less.
    pub reduction: Option<Estimate>,
}

/// reduction = RTT / (n RTT + c): one round trip less of n, beside c that does not grow with the RTT.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Model {
    /// Round trips of the control.
    pub round_trips: f64,
    /// c in milliseconds.
    pub c_ms: f64,
}

impl Model {
    /// The reduction at an RTT in milliseconds, as a share.
    #[must_use]
    pub fn at(self, rtt_ms: f64) -> f64 {
        rtt_ms / (self.round_trips * rtt_ms + self.c_ms)
    }

    /// The c that a reduction at an RTT needs.
    #[must_use]
    pub fn c_for(round_trips: f64, rtt_ms: f64, reduction: f64) -> f64 {
        rtt_ms / reduction - round_trips * rtt_ms
    }

    /// The c with the least squares over `(RTT, reduction)`; `None` without a reduction above 0.
    #[must_use]
    pub fn fit(round_trips: f64, points: &[(f64, f64)]) -> Option<Model> {
        if !points.iter().any(|(rtt, reduction)| *rtt > 0.0 && *reduction > 0.0) {
            return None;
        }
        let error = |log_c: f64| {
            let model = Model { round_trips, c_ms: log_c.exp() };
            points.iter().map(|(rtt, reduction)| (reduction - model.at(*rtt)).powi(2)).sum::<f64>()
        };
        // Between a nanosecond and a quarter of an hour; the grid's best bin holds the minimum.
        let (first, last) = (1e-6_f64.ln(), 1e6_f64.ln());
        let step = (last - first) / GRID;
        let grid = (0..=GRID as u32).map(|n| first + f64::from(n) * step);
        let best = grid.min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
        let (mut low, mut high) = (best - step, best + step);
        for _ in 0..HALVINGS {
            let third = (high - low) / 3.0;
            if error(low + third) < error(high - third) {
                high -= third;
            } else {
                low += third;
            }
        }
        Some(Model { round_trips, c_ms: ((low + high) / 2.0).exp() })
    }
}

/// Bins of the grid in which the least squares are looked for.
const GRID: f64 = 400.0;
/// Steps that narrow the bin, by a third each.
const HALVINGS: u32 = 80;

/// Fewer pairs say nothing about how sure a median is.
const LEAST_PAIRS: usize = 3;

/// Every SSLmTCP mode whose control was measured beside it, on paths without loss.
///
/// # Errors
/// Statistics refuse the samples.
pub fn embedded(summary: &Summary) -> Result<Vec<Embedded>, stats::Error> {
    let mut all = Vec::new();
    for row in summary.rows.iter().filter(|row| row.key.is_unhindered()) {
        let Some((mode, control)) = control_of(summary, row) else { continue };
        let mut saved = Vec::new();
        for cell in &row.cells {
            let beside = control.at_rtt(cell.rtt_ms);
            saved.extend(beside.map(|beside| compare(cell, beside)).transpose()?.flatten());
        }
        if saved.is_empty() {
            continue;
        }
        let model = control.spec.and_then(|spec| model(f64::from(spec.ready), &saved));
        all.push(Embedded { key: row.key.clone(), control: mode, saved, model });
    }
    Ok(all)
}

/// The control's row: alike in all but the mode.
pub(crate) fn control_of<'a>(summary: &'a Summary, row: &Row) -> Option<(Mode, &'a Row)> {
    let mode = row.key.mode.control()?;
    let key = RowKey { mode, ..row.key.clone() };
    Some((mode, summary.rows.iter().find(|row| row.key == key)?))
}

fn compare(cell: &Cell, control: &Cell) -> Result<Option<Saved>, stats::Error> {
    let (ready, control_ready) = cell.paired_with(control, value::READY);
    let (response, control_response) = cell.paired_with(control, value::RESPONSE);
    if ready.len() < LEAST_PAIRS || response.len() < LEAST_PAIRS {
        return Ok(None);
    }
    // B - A and B / A: the control is B of the difference, and A of the ratio.
    let by_ready = stats::compare_paired(&ready, &control_ready, Confidence::C95)?;
    let by_response = stats::compare_paired(&response, &control_response, Confidence::C95)?;
    let ratio = stats::compare_paired(&control_ready, &ready, Confidence::C95)?.ratio;
    Ok(Some(Saved {
        rtt_ms: cell.rtt_ms,
        pairs: by_ready.pairs,
        control_ms: stats::Sample::new(&control_ready)?.median(),
        embedded_ms: stats::Sample::new(&ready)?.median(),
        ready_ms: by_ready.difference,
        response_ms: by_response.difference,
        reduction: ratio.map(less),
    }))
}

/// A ratio as what it is less than one.
fn less(ratio: Estimate) -> Estimate {
    let Estimate { value, low, high, confidence } = ratio;
    Estimate { value: 1.0 - value, low: 1.0 - high, high: 1.0 - low, confidence }
}

fn model(round_trips: f64, saved: &[Saved]) -> Option<Model> {
    let points = saved.iter().filter_map(|saved| Some((saved.rtt_ms, saved.reduction?.value)));
    Model::fit(round_trips, &points.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_finds_the_c_that_made_the_points() {
        for c_ms in [0.5, 11.0, 48.0, 700.0] {
            let made = Model { round_trips: 3.0, c_ms };
            let points: Vec<_> =
                [0.4, 11.6, 50.0, 200.0].map(|rtt| (rtt, made.at(rtt))).into_iter().collect();
            let found = Model::fit(3.0, &points).unwrap();
            assert!((found.c_ms / c_ms - 1.0).abs() < 1e-6, "{found:?}");
        }
        assert_eq!(Model::fit(3.0, &[]), None);
        assert_eq!(Model::fit(3.0, &[(50.0, -0.1)]), None);
    }

    /// The SSLmTCP paper's own figures: 3.2 % at 0.4 ms needs 11 ms, 27.7 % at 85.5 ms 52 ms.
    #[test]
    fn a_reduction_needs_its_c() {
        assert_eq!(Model::c_for(3.0, 0.4, 0.032).round(), 11.0);
        assert_eq!(Model::c_for(3.0, 85.5, 0.277).round(), 52.0);
        let model = Model { round_trips: 3.0, c_ms: Model::c_for(3.0, 11.6, 0.14) };
        assert!((model.at(11.6) - 0.14).abs() < 1e-12);
    }

    #[test]
    fn a_share_less_turns_the_interval_round() {
        let ratio = Estimate { value: 0.75, low: 0.7, high: 0.9, confidence: 0.95 };
        let less = less(ratio);
        assert!((less.value - 0.25).abs() < 1e-12 && less.low < less.value);
        assert!((less.high - 0.3).abs() < 1e-12 && (less.low - 0.1).abs() < 1e-12);
    }
}
