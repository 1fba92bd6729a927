//! What the first connections on a path say, told as soon as each mode has one: nobody has to wait for the
//! end of a plan to see a figure.

use linkmodel::Middlebox;

use crate::mode::{Mode, Security, Transport};
use crate::plan::Cell;
use crate::point::Queueing;

/// Modes that are told of, those that a server can switch on first: they fit a line.
const TOLD: usize = 4;

/// The first connections of a cell, mode by mode.
pub(crate) struct SoFar {
    place: String,
    modes: Vec<First>,
    told: bool,
}

/// A mode of the cell.
struct First {
    mode: Mode,
    /// Whether a connection of it has ended, in whichever way.
    ended: bool,
    /// The time until the first response, in milliseconds.
    ms: Option<f64>,
}

impl SoFar {
    /// Of a cell of the plan's first sweep, on a path without loss; nothing is told of others.
    pub(crate) fn of(cell: &Cell, first_sweep: &str) -> SoFar {
        let mut modes: Vec<First> = Vec::new();
        for point in cell.points.iter().filter(|point| point.sweep == first_sweep) {
            if !modes.iter().any(|first| first.mode == point.mode) {
                modes.push(First { mode: point.mode, ended: false, ms: None });
            }
        }
        let is_plain = cell.loss.is_zero()
            && cell.middlebox == Middlebox::None
            && cell.queue == Queueing::None;
        let told = !is_plain || modes.is_empty();
        SoFar { place: cell.rtt.to_string(), modes, told }
    }

    /// Takes a connection of a mode and its time until the first response byte in milliseconds; what can be
    /// told once each mode has one.
    pub(crate) fn take(&mut self, mode: Mode, ms: Option<f64>) -> Option<String> {
        if let Some(own) = self.modes.iter_mut().find(|first| first.mode == mode) {
            own.ended = true;
            own.ms = own.ms.or(ms);
        }
        if self.told || !self.modes.iter().all(|first| first.ended) {
            return None;
        }
        self.told = true;
        self.sentence()
    }

    fn sentence(&self) -> Option<String> {
        let mut modes: Vec<&First> = self.modes.iter().collect();
        // Stable: within a rank they stay in the plan's order.
        modes.sort_by_key(|first| rank(first.mode));
        let each = modes.iter().filter_map(|first| {
            let ms = first.ms?;
            let digits = if ms < 10.0 { 1 } else { 0 };
            Some(format!("{} {ms:.digits$} ms", first.mode))
        });
        let each: Vec<String> = each.take(TOLD).collect();
        let text = format!("so far, one connection each at {}: {}", self.place, each.join(", "));
        (!each.is_empty()).then_some(text)
    }
}

/// What readers look for first: TLS as most run it, then as they could, over TCP and over QUIC.
fn rank(mode: Mode) -> u8 {
    match (mode.transport, mode.security) {
        (Transport::Tcp, Security::Tls12) => 0,
        (Transport::Tcp, Security::Tls13) => 1,
        (Transport::Quic, _) if !mode.resumes() => 2,
        (Transport::Tcp | Transport::Quic, _) if mode.resumes() => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use units::Probability;

    use super::*;
    use crate::point::Point;

    fn cell(modes: &[&str]) -> Cell {
        let point = |mode: &&str| Point { mode: mode.parse().unwrap(), ..Point::of_sweep("modes") };
        Cell {
            rtt: "50ms".parse().unwrap(),
            loss: Probability::default(),
            middlebox: Middlebox::None,
            queue: Queueing::None,
            repeat: 2,
            concurrent: 1,
            points: modes.iter().map(point).collect(),
        }
    }

    #[test]
    fn a_figure_is_told_once_when_each_mode_has_one() {
        let mut so_far = SoFar::of(&cell(&["quic", "tcp+tls13", "tcp+tls12"]), "modes");
        let mut take = |mode: &str, ms| so_far.take(mode.parse().unwrap(), Some(ms));
        assert_eq!(take("quic", 103.4), None);
        assert_eq!(take("tcp+tls13", 154.0), None);
        assert_eq!(take("quic", 110.0), None);
        let told = take("tcp+tls12", 204.2).unwrap();
        let expected =
            "so far, one connection each at 50ms: tcp+tls12 204 ms, tcp+tls13 154 ms, quic 103 ms";
        assert_eq!(told, expected);
        assert_eq!(take("tcp+tls12", 204.2), None);
    }

    #[test]
    fn a_mode_that_fails_keeps_no_figure_back() {
        let mut so_far = SoFar::of(&cell(&["tcp+tls13", "quic"]), "modes");
        assert_eq!(so_far.take("quic".parse().unwrap(), None), None);
        let told = so_far.take("tcp+tls13".parse().unwrap(), Some(1.25)).unwrap();
        assert!(told.ends_with("at 50ms: tcp+tls13 1.2 ms"), "{told}");
    }

    #[test]
    fn other_sweeps_and_paths_with_loss_say_nothing() {
        let mode = "quic".parse().unwrap();
        let mut other = SoFar::of(&cell(&["quic"]), "loss");
        assert_eq!(other.take(mode, Some(1.0)), None);
        let lossy = Cell { loss: Probability::new(0.03).unwrap(), ..cell(&["quic"]) };
        assert_eq!(SoFar::of(&lossy, "modes").take(mode, Some(1.0)), None);
    }
}
