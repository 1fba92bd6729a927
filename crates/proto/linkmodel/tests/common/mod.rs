//! A frame that is only a number and a length, and what becomes of a schedule of them.
#![allow(dead_code)] // Each test file uses a part.

use linkmodel::{DropCause, Frame, Link, LinkConfig, Output};
use units::Time;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub number: usize,
    pub len: usize,
}

impl Frame for Token {
    fn len(&self) -> usize {
        self.len
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, _bit: usize) {}
}

/// What became of a frame: when it was due in microseconds, or why it was dropped.
pub type Fate = Result<u64, DropCause>;

/// Polls until there is nothing by `now`.
pub fn poll(link: &mut Link<Token>, now: Time) -> Vec<(usize, Fate)> {
    let mut fates = Vec::new();
    while let Some(output) = link.poll(now) {
        fates.push(match output {
            Output::Deliver { frame, due } => (frame.number, Ok(due.as_nanos() / 1000)),
            Output::Drop(dropped) => (dropped.frame.number, Err(dropped.cause)),
        });
    }
    fates
}

/// Sends frames at (microseconds, length), polling only at the end; the fates in the order of the
/// frames.
pub fn fates(config: &LinkConfig, seed: u64, schedule: &[(u64, usize)]) -> Vec<Fate> {
    let mut link = Link::new(config.clone(), seed).unwrap();
    let mut fates = Vec::new();
    for (number, (micros, len)) in schedule.iter().enumerate() {
        let token = Token { number, len: *len };
        if let Err(dropped) = link.handle_frame(Time::from_micros(*micros), token) {
            fates.push((number, Err(dropped.cause)));
        }
    }
    fates.extend(poll(&mut link, Time::MAX));
    assert_eq!((link.in_flight(), link.next_event()), (0, None));
    fates.sort_by_key(|(number, _)| *number);
    fates.into_iter().map(|(_, fate)| fate).collect()
}

/// A configuration as a TOML file writes it.
pub fn config(toml: &str) -> LinkConfig {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}
