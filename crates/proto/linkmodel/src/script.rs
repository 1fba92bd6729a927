//! Drives a link by a byte-coded script and checks after every step that the model keeps its
//! word. Property tests and a fuzz target feed it.

use std::time::Duration;

use thiserror::Error;
use units::Time;

use crate::config::LinkConfig;
use crate::error::ConfigError;
use crate::frame::{Frame, Output};
use crate::link::Link;
use crate::path::Path;
use crate::profile::Profile;

/// A frame that is only a number and a length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    number: u64,
    entered: Time,
    len: usize,
}

impl Frame for Token {
    fn len(&self) -> usize {
        self.len
    }

    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn flip_bit(&mut self, bit: usize) {
        assert!(bit < self.len * 8, "bit {bit} of a frame of {} bytes", self.len);
    }
}

/// A broken promise of the model.
#[derive(Debug, Error)]
pub enum Violation {
    /// The configuration cannot be: nothing was run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What went in is not what came out and is under way.
    #[error(
        "after step {step}: received and duplicated {came} frames, delivered, dropped and in flight {went}"
    )]
    NotConserved {
        /// Step of the script.
        step: usize,
        /// Frames received and duplicated.
        came: u64,
        /// Frames delivered, dropped and in flight.
        went: u64,
    },
    /// Outputs went back in time, or ahead of the poll.
    #[error("step {step}: a frame due at {due} came out at {now}, after one due at {previous}")]
    OutOfTime {
        /// Step of the script.
        step: usize,
        /// The frame's due time.
        due: Time,
        /// The time of the poll.
        now: Time,
        /// The due time of the output before.
        previous: Time,
    },
    /// A frame overtook another though nothing in the configuration lets it.
    #[error("step {step}: frame {number} came out after frame {previous}")]
    OutOfOrder {
        /// Step of the script.
        step: usize,
        /// Number of the frame that came too late.
        number: u64,
        /// The frame before it.
        previous: u64,
    },
    /// A frame was faster than the base delay.
    #[error("step {step}: a frame of {entered} was due at {due}")]
    TooEarly {
        /// Step of the script.
        step: usize,
        /// When it entered.
        entered: Time,
        /// When it was due.
        due: Time,
    },
    /// A frame was due before the next event that the link had named.
    #[error("step {step}: a frame was due at {due}, but the next event was to be at {named:?}")]
    EventTooLate {
        /// Step of the script.
        step: usize,
        /// When it was due.
        due: Time,
        /// The next event, as named after the step before.
        named: Option<Time>,
    },
    /// Something is under way but there is no next event, or the other way round.
    #[error("after step {step}: {in_flight} frames in flight, next event {next:?}")]
    NextEvent {
        /// Step of the script.
        step: usize,
        /// Frames in flight.
        in_flight: usize,
        /// What the link says.
        next: Option<Time>,
    },
}

/// Runs `script` on a link with each of `configs` in turn, starting with the first, then polls
/// until nothing is in flight. Each two bytes are a step:
///
/// | first byte | step | second byte |
/// |---|---|---|
/// | 0..=127 | a frame enters | its length in units of 8 bytes |
/// | 128..=191 | time goes on | by that many units of 100 us |
/// | 192..=223 | the link is polled | not used |
/// | 224..=247 | time goes to the next event and the link is polled | not used |
/// | 248..=255 | the next configuration | not used |
///
/// # Errors
/// Names the first broken promise.
pub fn run(configs: &[LinkConfig], seed: u64, script: &[u8]) -> Result<(), Violation> {
    let Some(first) = configs.first() else { return Ok(()) };
    let link = Link::new(first.clone(), seed)?;
    let mut run = Run::new(link, configs);
    for (step, pair) in script.chunks_exact(2).enumerate() {
        run.step = step;
        if let [action, argument] = *pair {
            run.act(action, argument)?;
        }
        run.check()?;
    }
    run.drain()
}

/// [`run`] for a fuzzer: the input up to its first zero byte is a profile in TOML, of which forward
/// and backward are the configurations; the rest is the script. Input without a valid profile is
/// passed over.
///
/// # Errors
/// Names the first broken promise.
pub fn run_input(input: &[u8]) -> Result<(), Violation> {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (text, script) = input.split_at(end);
    let profile = std::str::from_utf8(text).ok().and_then(|text| Profile::parse(text).ok());
    let Some(Profile { path: Path { forward, backward }, .. }) = profile else { return Ok(()) };
    run(&[forward, backward], input.len() as u64, script.get(1..).unwrap_or_default())
}

struct Run<'a> {
    link: Link<Token>,
    configs: &'a [LinkConfig],
    config: usize,
    step: usize,
    now: Time,
    entered: u64,
    last_due: Time,
    last_number: u64,
    /// The next event, as named after the step before.
    named: Option<Time>,
}

impl<'a> Run<'a> {
    fn new(link: Link<Token>, configs: &'a [LinkConfig]) -> Self {
        let (now, last_due) = (Time::ZERO, Time::ZERO);
        Run {
            link,
            configs,
            config: 0,
            step: 0,
            now,
            entered: 0,
            last_due,
            last_number: 0,
            named: None,
        }
    }

    fn act(&mut self, action: u8, argument: u8) -> Result<(), Violation> {
        match action {
            0..=127 => {
                let (number, entered) = (self.entered, self.now);
                let len = usize::from(argument) * 8;
                self.entered += 1;
                // A refusal is in the counters.
                let _refused = self.link.handle_frame(self.now, Token { number, entered, len });
            }
            128..=191 => self.now += Duration::from_micros(100) * u32::from(argument),
            192..=223 => self.poll()?,
            224..=247 => {
                self.now = self.link.next_event().map_or(self.now, |at| at.max(self.now));
                self.poll()?;
            }
            248..=255 => {
                self.config = (self.config + 1) % self.configs.len();
                if let Some(config) = self.configs.get(self.config) {
                    self.link.set_config(self.now, config.clone())?;
                }
            }
        }
        Ok(())
    }

    /// No configuration in the run lets a frame overtake another.
    fn keeps_order(&self) -> bool {
        let loose = |c: &LinkConfig| c.jitter_may_reorder || !c.reorder.probability.is_zero();
        !self.configs.iter().any(loose)
    }

    fn poll(&mut self) -> Result<(), Violation> {
        let (step, now) = (self.step, self.now);
        while let Some(output) = self.link.poll(now) {
            let Output::Deliver { frame: Token { number, entered, .. }, due } = output else {
                continue;
            };
            if self.named.is_none_or(|named| due < named) {
                return Err(Violation::EventTooLate { step, due, named: self.named });
            }
            let previous = self.last_due;
            if due > now || due < previous {
                return Err(Violation::OutOfTime { step, due, now, previous });
            }
            self.last_due = due;
            let ordered = self.keeps_order();
            if ordered && number < self.last_number {
                let previous = self.last_number;
                return Err(Violation::OutOfOrder { step, number, previous });
            }
            self.last_number = number;
            let least = self.configs.iter().map(|config| config.delay).min().unwrap_or_default();
            let floor = if ordered { least.duration() } else { Duration::ZERO };
            if due < entered + floor {
                return Err(Violation::TooEarly { step, entered, due });
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), Violation> {
        let (step, counters) = (self.step, self.link.counters());
        let (delivered, dropped) = (counters.delivered, counters.dropped_in_all());
        let in_flight = self.link.in_flight();
        let came = counters.received.frames + counters.duplicated.frames;
        let went = delivered.frames + dropped.frames + in_flight as u64;
        let bytes_came = counters.received.bytes + counters.duplicated.bytes;
        let bytes_went = delivered.bytes
            + dropped.bytes
            + counters.stripped.bytes
            + self.link.bytes_in_flight() as u64;
        if came != went || bytes_came != bytes_went {
            return Err(Violation::NotConserved { step, came, went });
        }
        let next = self.link.next_event();
        if in_flight > 0 && next.is_none() {
            return Err(Violation::NextEvent { step, in_flight, next });
        }
        self.named = next;
        Ok(())
    }

    /// Polls at every next event until there is none. Each event gives out a frame or sends one on,
    /// so their number is bounded by the frames under way.
    fn drain(&mut self) -> Result<(), Violation> {
        let bound = 2 * self.link.in_flight() + 2;
        for _ in 0..bound {
            let Some(next) = self.link.next_event() else { break };
            self.now = self.now.max(next);
            self.poll()?;
            self.check()?;
        }
        let (step, in_flight, next) = (self.step, self.link.in_flight(), self.link.next_event());
        if in_flight > 0 || next.is_some() {
            return Err(Violation::NextEvent { step, in_flight, next });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_profile_and_a_script() {
        let profile = b"[forward]\ndelay = \"1ms\"\n[backward]\nrate = \"1mbit\"\0";
        let script = [0, 10, 5, 200, 250, 0, 7, 7, 130, 3, 200, 0, 230, 0, 9];
        assert!(run_input(&[&profile[..], &script].concat()).is_ok());
        for other in [&b""[..], b"\0", b"\xff\0ab", b"delay = \0ab", b"\0\0\0\0"] {
            assert!(run_input(other).is_ok(), "{other:?}");
        }
    }

    #[test]
    fn a_run_that_cannot_be_says_so() {
        let config = LinkConfig { delay: Duration::MAX.into(), ..LinkConfig::default() };
        assert!(matches!(run(&[config], 1, &[]), Err(Violation::Config(_))));
    }
}
