//! The highest load, and the longest burst, of which nothing is lost.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use traffic::{Load, Search};
use units::{CountedBytes, Rate};

use crate::{Error, Outcome, Tester, Trial};

/// How far a search goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Searching {
    /// The highest load to try, in bit/s, as the trial's frames count without check sequence.
    pub highest: f64,
    /// To which share of the result it is to be known: RFC 2544 asks for none, 0.005 is usual.
    pub precision: f64,
}

/// What a search found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The highest load without loss, in bit/s; 0 if every one lost.
    pub bits_per_second: f64,
    /// The same in frames per second.
    pub frames_per_second: f64,
    /// Trials that it took.
    pub trials: u32,
    /// Whether the highest load that was tried got through: the path may bear more.
    pub is_highest: bool,
    /// Trials in which the tester itself could not send all that was due in time: it, not the path, is the limit
    /// there.
    pub unsent: u32,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// How much longer than a trial its sending may take, as a share of the trial, for its load to count as offered. A tester
/// that is held up and catches up has offered it: the frames between went as a burst, which asks more of the path.
const LATE: f64 = 0.01;

/// The throughput (RFC 2544 §26.1): the highest load, in trials like `trial`, at which every frame comes. A load
/// that the tester cannot offer counts as lost: no result says more than was sent.
///
/// # Errors
/// [`Error::Search`]; as [`Tester::run`].
pub fn throughput(
    tester: &mut Tester,
    trial: &Trial,
    searching: Searching,
    stop: &dyn Fn() -> bool,
) -> Result<Found, Error> {
    let mut search = Search::new(searching.highest, searching.precision).ok_or(Error::Search)?;
    let mut found = Found::default();
    while let Some(load) = search.next() {
        let Some(rate) = Rate::new(load as u64, CountedBytes::Ethernet) else { break };
        let outcome = tester.run(&Trial { load: Load::Rate(rate), ..*trial }, stop)?;
        if outcome.stopped {
            found.stopped = true;
            break;
        }
        let offered = is_offered(&outcome, trial.duration);
        found.unsent += u32::from(!offered);
        let whole = offered && outcome.is_whole();
        found.is_highest = whole && search.trials() == 0;
        search.note(if whole { traffic::Trial::Whole } else { traffic::Trial::Lossy });
    }
    found.trials = search.trials();
    found.bits_per_second = search.result();
    found.frames_per_second = search.result() / (8.0 * trial.sizes.mean());
    Ok(found)
}

/// Whether the tester sent what was due, in the time that there was.
fn is_offered(outcome: &Outcome, duration: Duration) -> bool {
    let most = duration.mul_f64(1.0 + LATE);
    outcome.unsent() == 0 && outcome.flows.iter().all(|flow| flow.sending <= most)
}

/// The longest burst without a gap of which every frame comes (RFC 2544 §26.4), up to `trial.frames`; in frames.
///
/// # Errors
/// As [`Tester::run`].
pub fn longest_burst(
    tester: &mut Tester,
    trial: &Trial,
    stop: &dyn Fn() -> bool,
) -> Result<u32, Error> {
    let (mut whole, mut lossy) = (0u32, trial.frames.saturating_add(1));
    let mut frames = trial.frames;
    while whole + 1 < lossy && frames > 0 {
        let outcome = tester.run(&Trial { load: Load::BackToBack, frames, ..*trial }, stop)?;
        if outcome.stopped {
            break;
        }
        if outcome.is_whole() {
            whole = frames
        } else {
            lossy = frames
        }
        frames = whole.midpoint(lossy);
    }
    Ok(whole)
}
