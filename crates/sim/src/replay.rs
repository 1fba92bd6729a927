//! A schedule of frames through the model alone.

use linkmodel::{ConfigError, DropCause, Frame, Link, LinkConfig, Output, Path};
use units::Time;

/// What became of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// When it was due at the far end; `None` if it was dropped.
    pub due: Option<Time>,
    /// When its duplicate was due, if it had one and that was not dropped.
    pub duplicate_due: Option<Time>,
    /// Why it, or else its duplicate, was dropped.
    pub dropped: Option<DropCause>,
}

/// The fates of the frames of both directions, in the order of the schedules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fates {
    /// Of the frames sent forward.
    pub forward: Vec<Fate>,
    /// Of the frames sent backward.
    pub backward: Vec<Fate>,
}

/// A frame of the schedule: its number and its length.
#[derive(Debug)]
struct Scheduled {
    number: usize,
    len: usize,
}

impl Frame for Scheduled {
    fn len(&self) -> usize {
        self.len
    }

    fn try_clone(&self) -> Option<Self> {
        Some(Scheduled { ..*self })
    }

    fn flip_bit(&mut self, _bit: usize) {}
}

/// Sends frames of given times and Ethernet lengths each way through `path`, whose traces and
/// outages count from `start`. With the seed of a link of the pump and the times at which it
/// received frames, the due times are those that it aims at.
///
/// Times must not go back within a direction; one that does counts as the one before.
///
/// # Errors
/// If the path makes no sense.
pub fn replay(
    path: &Path,
    seed: u64,
    start: Time,
    forward: &[(Time, usize)],
    backward: &[(Time, usize)],
) -> Result<Fates, ConfigError> {
    let (there, back) = path.open(start, seed)?;
    Ok(Fates { forward: drive(there, forward), backward: drive(back, backward) })
}

/// [`replay`] of one direction, with the seed of that direction's link.
///
/// # Errors
/// If the configuration makes no sense.
pub fn replay_link(
    config: &LinkConfig,
    seed: u64,
    start: Time,
    schedule: &[(Time, usize)],
) -> Result<Vec<Fate>, ConfigError> {
    Ok(drive(Link::starting_at(start, config.clone(), seed)?, schedule))
}

fn drive(mut link: Link<Scheduled>, schedule: &[(Time, usize)]) -> Vec<Fate> {
    let mut fates = vec![Fate::default(); schedule.len()];
    for (number, (at, len)) in schedule.iter().enumerate() {
        poll(&mut link, *at, &mut fates);
        if let Err(dropped) = link.handle_frame(*at, Scheduled { number, len: *len }) {
            note_drop(&mut fates, dropped.frame.number, dropped.cause);
        }
    }
    poll(&mut link, Time::MAX, &mut fates);
    fates
}

fn poll(link: &mut Link<Scheduled>, now: Time, fates: &mut [Fate]) {
    while let Some(output) = link.poll(now) {
        match output {
            Output::Drop(dropped) => note_drop(fates, dropped.frame.number, dropped.cause),
            Output::Deliver { frame, due } => {
                let Some(fate) = fates.get_mut(frame.number) else { continue };
                match fate.due {
                    None => fate.due = Some(due),
                    Some(_) => fate.duplicate_due = Some(due),
                }
            }
        }
    }
}

fn note_drop(fates: &mut [Fate], number: usize, cause: DropCause) {
    if let Some(fate) = fates.get_mut(number) {
        fate.dropped = Some(cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_those_of_the_model() {
        // 1000 bytes at 1 Mbit/s take 8 ms.
        let path = Path::symmetric("20ms".parse().unwrap())
            .with_rate("1mbit".parse::<units::Rate>().unwrap())
            .with_queue(linkmodel::Queue::Packets(1));
        let at = Time::from_millis;
        let schedule = [(at(100), 1000), (at(100), 1000), (at(101), 1000), (at(200), 500)];
        let fates = replay(&path, 1, at(50), &schedule, &schedule[3..]).unwrap();
        let due: Vec<Option<Time>> = fates.forward.iter().map(|fate| fate.due).collect();
        assert_eq!(due, [Some(at(118)), Some(at(126)), None, Some(at(214))]);
        assert_eq!(fates.forward[2].dropped, Some(DropCause::QueueFull));
        assert_eq!(fates.backward[0].due, Some(at(214)));
    }

    #[test]
    fn a_duplicate_has_its_own_due_time() {
        let duplicate = "100%".parse().unwrap();
        let rate = Some("1mbit".parse::<units::Rate>().unwrap().into());
        let config = LinkConfig { duplicate, rate, ..LinkConfig::default() };
        let fates = replay_link(&config, 1, Time::ZERO, &[(Time::ZERO, 1000)]).unwrap();
        let (due, duplicate_due) = (Some(Time::from_millis(8)), Some(Time::from_millis(16)));
        assert_eq!(fates, [Fate { due, duplicate_due, dropped: None }]);
    }

    #[test]
    fn a_trace_counts_from_the_start() {
        let trace = linkmodel::Trace::parse("5\n").unwrap();
        let config = LinkConfig { rate: Some(trace.into()), ..LinkConfig::default() };
        let start = Time::from_millis(1003);
        let fates = replay_link(&config, 1, start, &[(start, 1514)]).unwrap();
        assert_eq!(fates[0].due, Some(Time::from_millis(1008)));
    }
}
